//! Images: whether they are there, fetching and building them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Result;
use crate::workspace::Snapshot;

use super::engine::{Engine, EngineKind};

/// Time limit for fetching an image.
const PULL_LIMIT: Duration = Duration::from_secs(1800);

/// An image to build.
#[derive(Debug, Clone)]
pub struct Build {
    /// The directory with everything that goes into it.
    pub context: PathBuf,
    /// Its Dockerfile.
    pub file: PathBuf,
    /// The name of the image.
    pub tag: String,
    /// Variables for the steps of the build.
    pub arguments: Vec<(String, String)>,
    /// The steps use the network of this machine as it is.
    pub uses_host_network: bool,
    /// Time limit of the build.
    pub timeout: Duration,
}

impl Engine {
    /// The id of an image, if it is there.
    pub async fn image_id(&self, image: &str) -> Option<String> {
        let question = ["image", "inspect", "--format", "{{.Id}}", image];
        let id = self.call("inspect the image", question).await.ok()?;
        id.lines().next().map(|id| id.trim().to_owned())
    }

    /// Fetches an image unless it is there, and returns its id.
    pub async fn provide_image(&self, image: &str) -> Result<String> {
        if let Some(id) = self.image_id(image).await {
            return Ok(id);
        }
        let pull = self.command(["pull", image]).timeout(PULL_LIMIT);
        let action = format!("fetch the image `{image}`");
        self.finish(&action, pull).await?;
        let missing = || self.refused(&action, "it is not there afterwards");
        self.image_id(image).await.ok_or_else(missing)
    }

    /// The user of an image. Empty for its default.
    pub async fn image_user(&self, image: &str) -> Result<String> {
        let question = ["image", "inspect", "--format", "{{.Config.User}}", image];
        self.call("inspect the image", question).await
    }

    /// True if the image has a program of this name, in its own PATH.
    pub async fn has_program(&self, image: &str, program: &str) -> bool {
        let script = "command -v \"$0\"";
        let mut call = self.command(["run", "--rm", "--network", "none"]);
        call = call.args(self.ulimits());
        call = call.args(["--entrypoint", "sh", image, "-c", script, program]);
        let call = call.timeout(Duration::from_secs(120));
        self.finish("look for a program", call).await.is_ok()
    }

    /// Builds an image and returns its name.
    pub async fn build(&self, build: &Build) -> Result<String> {
        let mut call = self.command(["build", "--tag", &build.tag]);
        call = call.arg("--file").arg(&build.file);
        if build.uses_host_network {
            call = call.args(["--network", "host"]);
        }
        for (name, value) in &build.arguments {
            // The value comes from the client's environment, so that it does not show in the list of processes.
            call = call.arg("--build-arg").arg(name).env(name, value);
        }
        if self.kind() != EngineKind::Nerdctl {
            call = call.args(self.ulimits());
        }
        let call = call.arg(&build.context).timeout(build.timeout);
        let action = format!("build the image of `{}`", build.context.display());
        self.finish(&action, call).await?;
        Ok(build.tag.clone())
    }
}

/// A name for the content of a build context: the same content needs no second build.
pub fn context_fingerprint(context: &Path) -> Result<String> {
    let whole = Snapshot::of(context)?.fingerprint();
    Ok(whole.chars().take(16).collect())
}
