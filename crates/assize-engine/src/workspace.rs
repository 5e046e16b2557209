//! Workspaces of trials: a fresh one for every attempt, what the agent changed in it, and what is kept of it.

mod hide;
mod sources;

use crate::store::RunFile;
use crate::suite::{KeepWorkspace, ProfileSuite};
use assize_contracts::{WorkspaceChange, WorkspaceSpec};
use assize_process::workspace::{
    Change, ChangeKind, Clean, Limits, Looked, Node, Snapshot, Workspace, Workspaces, default_root,
    remove_tree, restore, store_clean,
};
use assize_process::{Bound, Command, Error, Output};
use assize_secrets::{Redactor, create_private_directory};
use sources::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

const SETUP_TIMEOUT: Duration = Duration::from_secs(600);

/// Bytes of a set-up command's output that are kept from each end.
const SETUP_OUTPUT: u64 = 2_000;

/// Makes workspaces for the attempts of a run and keeps what they leave.
pub(crate) struct TrialWorkspaces {
    /// Made for the first scenario that needs one.
    place: OnceCell<Arc<Workspaces>>,
    sources: Sources,
    /// The folder of archives.
    kept: PathBuf,
    keep: KeepWorkspace,
    /// Made ahead, each for the first attempt that wants the same.
    ready: Mutex<Vec<Ready>>,
}

/// A workspace that waits for an attempt, and what it was made of.
struct Ready {
    spec: WorkspaceSpec,
    environment: BTreeMap<String, String>,
    workspace: TrialWorkspace,
}

/// The workspace of one attempt.
pub(crate) struct TrialWorkspace {
    workspace: Arc<Workspace>,
}

pub(crate) use sources::methods;

/// The content hashes of the directories that workspaces are copied from, by their name in the suite. One that cannot be read is
/// left out.
pub(crate) fn fixtures(suite: &ProfileSuite) -> BTreeMap<&str, String> {
    let specs = suite
        .scenarios
        .iter()
        .filter_map(|each| each.workspace.as_ref());
    let names: BTreeSet<&str> = specs.filter_map(|spec| spec.from.as_deref()).collect();
    let fingerprint = |name: &str| {
        Some(
            Snapshot::of_source(&suite.directory.join(name))
                .ok()?
                .fingerprint(),
        )
    };
    names
        .into_iter()
        .filter_map(|name| Some((name, fingerprint(name)?)))
        .collect()
}

/// The file of a kept workspace. Names of scenarios and modes are not fit to be paths.
pub(crate) fn archive_name(attempt_seed: u64) -> String {
    format!("{attempt_seed:016x}.tar.zst")
}

/// The state of a workspace after the agent.
pub(crate) struct Observed {
    /// Files and links, not directories, and nothing of git's own. `Err` explains why the changes are unknown.
    pub(crate) changes: Result<Vec<WorkspaceChange>, String>,
    /// The error that kept it from being archived.
    pub(crate) archive_error: Option<String>,
}

impl Observed {
    fn nothing(reason: String) -> Self {
        Self {
            changes: Err(reason),
            archive_error: None,
        }
    }
}

/// A workspace before its set-up commands.
struct Begun<'a> {
    workspace: Workspace,
    /// Commands meant to be run once that have to be run in every workspace.
    commands: Vec<&'a String>,
}

/// Whose set-up it is.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) spec: &'a WorkspaceSpec,
    /// The suite's directory.
    pub(crate) directory: &'a Path,
    /// The mode's environment.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// Ends of paths that the agent must not find.
    pub(crate) hidden: &'a [String],
}

impl TrialWorkspaces {
    pub(crate) fn new(suite: &ProfileSuite, run_directory: &Path, keep: KeepWorkspace) -> Self {
        Self {
            place: OnceCell::new(),
            sources: Sources::of(suite),
            kept: RunFile::Workspaces.within(run_directory),
            keep,
            ready: Mutex::default(),
        }
    }

    /// Puts archives below another run directory.
    pub(crate) fn keep_below(&mut self, run_directory: &Path) {
        self.kept = RunFile::Workspaces.within(run_directory);
    }

    /// Makes a workspace for the first attempt that wants the same. `Err` explains why there is none.
    pub(crate) async fn prepare_ahead(&self, setting: &Setting<'_>) -> Result<(), String> {
        let workspace = self.prepare(setting).await?;
        self.ready().push(Ready {
            spec: setting.spec.clone(),
            environment: setting.environment.clone(),
            workspace,
        });
        Ok(())
    }

    fn take_ready(&self, setting: &Setting<'_>) -> Option<TrialWorkspace> {
        let mut ready = self.ready();
        let is_same = |ready: &Ready| {
            ready.spec == *setting.spec && ready.environment == *setting.environment
        };
        let place = ready.iter().position(is_same)?;
        Some(ready.swap_remove(place).workspace)
    }

    fn ready(&self) -> MutexGuard<'_, Vec<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Workspaces in which stored trials are scored again. Nothing is kept of them.
    pub(crate) fn for_scoring(suite: &ProfileSuite, run_directory: &Path) -> Self {
        Self {
            sources: Sources::of(suite).by_any_method(),
            ..Self::new(suite, run_directory, KeepWorkspace::None)
        }
    }

    /// A fresh workspace, set up. `Err` explains why there is none.
    pub(crate) async fn prepare(&self, setting: &Setting<'_>) -> Result<TrialWorkspace, String> {
        if let Some(workspace) = self.take_ready(setting) {
            return Ok(workspace);
        }
        let place = self
            .place
            .get_or_try_init(|| blocking(|| Workspaces::open(&default_root()?).map(Arc::new)))
            .await
            .map_err(|error| error.explained())?;
        let Begun {
            mut workspace,
            mut commands,
        } = self.sources.begin(place, setting).await?;
        commands.extend(&setting.spec.setup);
        for line in &commands {
            set_up(line, workspace.path(), setting).await?;
        }
        let is_changed = !commands.is_empty() | hide::hide(workspace.path(), setting.hidden)?;
        if is_changed {
            let settle = move || workspace.settle().map(|()| workspace);
            workspace = blocking(settle).await.map_err(|error| error.explained())?;
        }
        Ok(TrialWorkspace {
            workspace: Arc::new(workspace),
        })
    }

    /// Restores a workspace to the state in which an agent left it, and returns what that agent changed. `Err` explains
    /// why that cannot be done.
    pub(crate) async fn bring_back(
        &self,
        workspace: &TrialWorkspace,
        archive: Option<PathBuf>,
        is_whole: bool,
    ) -> Result<Vec<WorkspaceChange>, String> {
        let workspace = Arc::clone(&workspace.workspace);
        let bring = move || bring_back(&workspace, archive.as_deref(), is_whole);
        spawn_blocking(bring)
            .await
            .unwrap_or_else(|panic| Err(panic.to_string()))
    }

    /// Looks at what the agent changed and keeps it under `name`.
    pub(crate) async fn observe(
        &self,
        workspace: &TrialWorkspace,
        name: String,
        (cancel, redactor): (CancellationToken, Redactor),
    ) -> Observed {
        let workspace = Arc::clone(&workspace.workspace);
        let (keep, kept) = (self.keep, self.kept.clone());
        let stop = move || cancel.is_cancelled();
        // Checks that are made again later quote these files, when the keys of the session are no longer known.
        let clean = move |content: Vec<u8>| redactor.bytes(content);
        spawn_blocking(move || observe(&workspace, keep, &kept.join(name), (&stop, &clean)))
            .await
            .unwrap_or_else(|panic| Observed::nothing(panic.to_string()))
    }
}

impl TrialWorkspace {
    pub(crate) fn path(&self) -> &Path {
        self.workspace.path()
    }

    /// The directory around it, which is this attempt's alone.
    pub(crate) fn place(&self) -> &Path {
        self.workspace.place()
    }

    /// Removing a large directory takes time, so it is not left to the drop.
    pub(crate) async fn remove(self) {
        let _ = spawn_blocking(move || drop(self.workspace)).await;
    }

    /// Removes the workspace of a failed attempt; nothing of it is reused.
    pub(crate) async fn discard(mut self) {
        if let Some(workspace) = Arc::get_mut(&mut self.workspace) {
            workspace.distrust();
        }
        self.remove().await;
    }
}

async fn set_up(line: &str, workspace: &Path, setting: &Setting<'_>) -> Result<(), String> {
    let WorkspaceSpec {
        environment,
        setup_timeout_ms,
        ..
    } = setting.spec;
    let timeout = setup_timeout_ms.map_or(SETUP_TIMEOUT, Duration::from_millis);
    let command = Command::from_argv(["sh", "-c", line], workspace)
        .pass_usual_env()
        .timeout(timeout)
        .bound(Bound {
            head: SETUP_OUTPUT,
            tail: SETUP_OUTPUT,
        });
    let given = setting.environment.iter().chain(environment);
    let command = given.fold(command, |command, (name, value)| command.env(name, value));
    let output = command
        .run_to_end()
        .await
        .map_err(|error| error.explained())?;
    if output.exit.is_success() {
        return Ok(());
    }
    let ended = output.exit.in_words(timeout);
    Err(format!(
        "the set-up command `{line}` {ended}{}",
        printed(&output)
    ))
}

fn printed(output: &Output) -> String {
    let text = format!("{}{}", output.stdout.text(), output.stderr.text());
    match text.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

fn bring_back(
    workspace: &Workspace,
    archive: Option<&Path>,
    is_whole: bool,
) -> Result<Vec<WorkspaceChange>, String> {
    let explained = |error: Error| error.explained();
    let path = workspace.path();
    if let Some(archive) = archive {
        if is_whole {
            remove_tree(path).map_err(explained)?;
            make_readable(path).map_err(explained)?;
        }
        let restored = restore(archive, path).map_err(explained)?;
        if let Some(first) = restored.left_out.first() {
            let (count, first) = (restored.left_out.len(), first.display());
            return Err(format!(
                "{count} changed files were too large to be kept, such as `{first}`"
            ));
        }
    }
    let changes = workspace.changes().map_err(explained)?;
    Ok(changes
        .iter()
        .filter(|change| is_reported(change))
        .map(reported)
        .collect())
}

fn observe(
    workspace: &Workspace,
    keep: KeepWorkspace,
    archive: &Path,
    (stop, clean): (&dyn Fn() -> bool, Clean<'_>),
) -> Observed {
    let path = workspace.path();
    let Looked { changes, left_out } = match make_readable(path).and_then(|()| workspace.look(stop))
    {
        Ok(looked) => looked,
        Err(error) => return Observed::nothing(error.explained()),
    };
    // Half of the changes says nothing about the rest.
    if left_out.stopped.is_some() {
        return Observed::nothing(left_out.in_words().unwrap_or_default());
    }
    let kept = match keep {
        KeepWorkspace::None => Ok(None),
        KeepWorkspace::Changed if changes.is_empty() => Ok(None),
        KeepWorkspace::Changed => archive_of(path, &changes, archive, clean),
        KeepWorkspace::All => Snapshot::empty()
            .look(path, stop)
            .and_then(|all| archive_of(path, &all.changes, archive, clean)),
    };
    let not_kept = kept.unwrap_or_else(|error| Some(error.explained()));
    let errors: Vec<String> = left_out.in_words().into_iter().chain(not_kept).collect();
    let shown = changes
        .iter()
        .filter(|change| is_reported(change))
        .map(reported);
    Observed {
        changes: Ok(shown.collect()),
        archive_error: (!errors.is_empty()).then(|| errors.join("; ")),
    }
}

/// An agent that removed, replaced or locked its workspace has changed it, no more. Checks need a directory to look into.
fn make_readable(path: &Path) -> Result<(), Error> {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let made = if is_directory {
        match fs::read_dir(path) {
            Ok(_) => Ok(()),
            Err(_) => fs::set_permissions(path, fs::Permissions::from_mode(0o700)),
        }
    } else {
        let _ = fs::remove_file(path);
        fs::create_dir(path)
    };
    made.map_err(|source| Error::File {
        action: "read",
        path: path.to_owned(),
        source,
    })
}

/// Keeps the changes, and says what was left out of the archive.
fn archive_of(
    path: &Path,
    changes: &[Change],
    archive: &Path,
    clean: Clean<'_>,
) -> Result<Option<String>, Error> {
    if let Some(parent) = archive.parent() {
        create_private_directory(parent).map_err(|source| Error::File {
            action: "create",
            path: parent.to_owned(),
            source,
        })?;
    }
    let stored = store_clean(path, changes, archive, (Limits::default(), clean))?;
    Ok(stored.left_out.first().map(|first| {
        let (count, first) = (stored.left_out.len(), first.display());
        format!("{count} changed files are not in the archive, such as `{first}`: too large, too many or unreadable")
    }))
}

/// Directories come and go with their files, and git writes to its own on every look.
fn is_reported(change: &Change) -> bool {
    change.node != Node::Directory && !change.path.iter().any(|part| part == ".git")
}

fn reported(change: &Change) -> WorkspaceChange {
    let kind = match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    };
    WorkspaceChange {
        path: change.path.to_string_lossy().into_owned(),
        kind: kind.to_owned(),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or_else(|panic| {
        Err(Error::File {
            action: "prepare",
            path: PathBuf::from("workspace"),
            source: std::io::Error::other(panic),
        })
    })
}
