//! Engines and images that this process has found, fetched or built: each once, however many sessions ask for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::error::{Error, Result};

use super::engine::{Engine, EngineKind};
use super::image::{Build, context_fingerprint};

/// Time limit for building an image unless the suite sets one.
pub const BUILD_LIMIT: Duration = Duration::from_secs(1800);

/// The source of a container's image.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ImageSource {
    /// An image by its name; fetched if it is not there.
    Named(String),
    /// A directory with a `Dockerfile`, built once per content.
    Built {
        /// The directory.
        context: PathBuf,
        /// Time limit of the build.
        limit: Duration,
    },
}

type Cells<K, V> = LazyLock<Mutex<HashMap<K, Arc<OnceCell<V>>>>>;

static ENGINES: Cells<Option<EngineKind>, Engine> = LazyLock::new(Mutex::default);
static IMAGES: Cells<(EngineKind, ImageSource), String> = LazyLock::new(Mutex::default);

/// The engine of this kind, or the first that answers. The first call also removes what a killed Assize left there.
pub async fn engine_for(wanted: Option<EngineKind>) -> Result<Engine> {
    let find = async || {
        let engine = Engine::find(wanted).await?;
        match engine.sweep().await {
            Ok(swept) if swept.removed.is_empty() => {}
            Ok(swept) => tracing::info!(removed = ?swept.removed, "removed abandoned containers"),
            Err(error) => tracing::warn!(%error, "cannot look for abandoned containers"),
        }
        Ok(engine)
    };
    let cell = cell(&ENGINES, wanted);
    cell.get_or_try_init(find).await.cloned()
}

/// The name of the image, once it is there.
pub async fn image_for(engine: &Engine, source: &ImageSource) -> Result<String> {
    let provide = async || match source {
        ImageSource::Named(name) => engine.provide_image(name).await.map(|_| name.clone()),
        ImageSource::Built { context, limit } => build(engine, context, *limit).await,
    };
    let cell = cell(&IMAGES, (engine.kind(), source.clone()));
    cell.get_or_try_init(provide).await.cloned()
}

async fn build(engine: &Engine, context: &std::path::Path, limit: Duration) -> Result<String> {
    let file = context.join("Dockerfile");
    if !file.is_file() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::file("read", &file)(missing));
    }
    let owned = context.to_owned();
    let fingerprint = tokio::task::spawn_blocking(move || context_fingerprint(&owned)).await;
    let fingerprint =
        fingerprint.map_err(|_| engine.refused("build an image", "it was stopped"))??;
    let tag = format!("localhost/assize-built:{fingerprint}");
    if engine.image_id(&tag).await.is_some() {
        return Ok(tag);
    }
    let build = Build {
        context: context.to_owned(),
        file,
        tag,
        arguments: Vec::new(),
        uses_host_network: false,
        timeout: limit,
    };
    engine.build(&build).await
}

fn cell<K: Eq + Hash, V>(cells: &Cells<K, V>, key: K) -> Arc<OnceCell<V>> {
    let mut cells = cells.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(cells.entry(key).or_default())
}
