//! Sources of workspaces: every distinct source is prepared once per run, and each attempt gets a view of it.

use super::{Begun, Setting, blocking, set_up};
use crate::suite::ProfileSuite;
use assize_contracts::{GitSource, WorkspaceMethod, WorkspaceSpec};
use assize_process::Error;
use assize_process::workspace::{Draft, Layer, Method, Workspaces, default_root};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

/// The sources of a run.
pub(super) struct Sources {
    prepared: Mutex<HashMap<Source, Arc<OnceCell<Prepared>>>>,
    is_shared_outside: bool,
    /// In place of what scenarios ask for.
    method: Option<WorkspaceMethod>,
}

/// The identity of a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Source {
    origin: Origin,
    commands: Vec<String>,
    /// Of the commands; empty without any.
    environment: Vec<(String, String)>,
    method: WorkspaceMethod,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Origin {
    Nothing,
    Directory(PathBuf),
    Commit {
        repository: PathBuf,
        revision: String,
    },
}

/// A source that is ready.
#[derive(Clone)]
struct Prepared {
    layer: Arc<Layer>,
    /// Its commands wrote the path of the directory into files, so they are run in every workspace instead.
    repeats_commands: bool,
}

/// The methods by which the workspaces of a suite are made here, by what the suite asks for. An error if one does not work.
pub(crate) fn methods(
    suite: &ProfileSuite,
) -> Result<BTreeMap<WorkspaceMethod, &'static str>, Error> {
    let specs = suite
        .scenarios
        .iter()
        .filter_map(|scenario| scenario.workspace.as_ref());
    let wanted: Vec<WorkspaceMethod> = specs
        .filter(|spec| spec.has_source())
        .map(|spec| spec.method.unwrap_or_default())
        .collect();
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let place = Workspaces::open(&default_root()?)?;
    let sources = Sources::of(suite);
    let choose = |wanted| Ok((wanted, sources.choose(&place, wanted)?.as_str()));
    wanted.into_iter().map(choose).collect()
}

impl Sources {
    pub(super) fn of(suite: &ProfileSuite) -> Self {
        Self {
            prepared: Mutex::default(),
            is_shared_outside: names_a_container_engine(suite),
            method: None,
        }
    }

    /// Sources by the best method that there is, whatever scenarios ask for.
    pub(super) fn by_any_method(self) -> Self {
        Self {
            method: Some(WorkspaceMethod::Auto),
            ..self
        }
    }

    /// A view of the source that a scenario names.
    pub(super) async fn begin<'a>(
        &self,
        place: &Arc<Workspaces>,
        setting: &Setting<'a>,
    ) -> Result<Begun<'a>, String> {
        let explained = |error: Error| error.explained();
        if !setting.spec.has_source() {
            let place = Arc::clone(place);
            let workspace = blocking(move || place.empty()).await.map_err(explained)?;
            let commands = Vec::new();
            return Ok(Begun {
                workspace,
                commands,
            });
        }
        let cell = self.cell(Source::of(setting));
        let prepare = || self.prepare(place, setting);
        let prepared = cell.get_or_try_init(prepare).await?;
        let workspace = prepared.layer.view().await.map_err(explained)?;
        let repeated = &setting.spec.setup_once;
        let commands = repeated.iter().filter(|_| prepared.repeats_commands);
        Ok(Begun {
            workspace,
            commands: commands.collect(),
        })
    }

    fn cell(&self, source: Source) -> Arc<OnceCell<Prepared>> {
        let prepared = self.prepared.lock();
        let mut prepared = prepared.unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(prepared.entry(source).or_default())
    }

    async fn prepare(
        &self,
        place: &Arc<Workspaces>,
        setting: &Setting<'_>,
    ) -> Result<Prepared, String> {
        let explained = |error: Error| error.explained();
        let wanted = setting.spec.method.unwrap_or_default();
        let method = self.choose(place, wanted).map_err(explained)?;
        let mut draft = draft(place, setting).await.map_err(explained)?;
        for line in &setting.spec.setup_once {
            set_up(line, draft.path(), setting).await?;
        }
        let mut repeats_commands = false;
        if !setting.spec.setup_once.is_empty() {
            let looked = blocking(move || {
                let mention = draft.mention_of_itself()?;
                Ok((draft, mention.is_some()))
            });
            (draft, repeats_commands) = looked.await.map_err(explained)?;
        }
        if repeats_commands {
            draft = self::draft(place, setting).await.map_err(explained)?;
        }
        let layer = blocking(move || draft.into_layer(method)).await;
        Ok(Prepared {
            layer: Arc::new(layer.map_err(explained)?),
            repeats_commands,
        })
    }

    fn choose(&self, place: &Workspaces, wanted: WorkspaceMethod) -> Result<Method, Error> {
        match self.method.unwrap_or(wanted) {
            // Its daemon does not see what is mounted for the descendants of this process.
            WorkspaceMethod::Auto if self.is_shared_outside => place
                .choose(Method::Reflink)
                .or_else(|_| place.choose(Method::Recycle)),
            WorkspaceMethod::Auto => place.choose(Method::Auto),
            WorkspaceMethod::Overlay => place.choose(Method::Overlay),
            WorkspaceMethod::Reflink => place.choose(Method::Reflink),
            WorkspaceMethod::Recycle => place.choose(Method::Recycle),
            WorkspaceMethod::Copy => place.choose(Method::Copy),
        }
    }
}

impl Source {
    fn of(setting: &Setting<'_>) -> Self {
        let spec = setting.spec;
        let commands = spec.setup_once.clone();
        let given = setting.environment.iter().chain(&spec.environment);
        let given = given.filter(|_| !commands.is_empty());
        Self {
            origin: Origin::of(spec, setting.directory),
            environment: given
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            commands,
            method: spec.method.unwrap_or_default(),
        }
    }
}

impl Origin {
    fn of(spec: &WorkspaceSpec, directory: &Path) -> Self {
        match (&spec.git, &spec.from) {
            (Some(GitSource { repo, reference }), _) => Self::Commit {
                repository: directory.join(repo),
                revision: reference.clone(),
            },
            (None, Some(from)) => Self::Directory(directory.join(from)),
            (None, None) => Self::Nothing,
        }
    }
}

async fn draft(place: &Arc<Workspaces>, setting: &Setting<'_>) -> Result<Draft, Error> {
    let place = Arc::clone(place);
    match Origin::of(setting.spec, setting.directory) {
        Origin::Commit {
            repository,
            revision,
        } => place.checkout(&repository, &revision).await,
        Origin::Directory(from) => blocking(move || place.copy_of(&from)).await,
        Origin::Nothing => blocking(move || place.blank()).await,
    }
}

/// True if the suite runs a container engine, which would have to find the workspace from outside.
fn names_a_container_engine(suite: &ProfileSuite) -> bool {
    const ENGINES: [&str; 4] = ["docker", "podman", "nerdctl", "kubectl"];
    let names_one = |text: &str| ENGINES.iter().any(|engine| text.contains(engine));
    let modes = suite
        .modes
        .iter()
        .map(|mode| serde_json::to_string(&*mode.overrides));
    let scenarios = suite.scenarios.iter().map(|scenario| {
        let workspace = scenario.workspace.as_ref();
        let commands = workspace.map(|spec| (&spec.setup, &spec.setup_once));
        serde_json::to_string(&(commands, &scenario.checks))
    });
    modes
        .chain(scenarios)
        .flatten()
        .any(|text| names_one(&text))
}
