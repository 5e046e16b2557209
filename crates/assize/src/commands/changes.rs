//! The changes that agents made to their workspaces, as a diff: the stored changes against the workspace's origin.

use assize_contracts::{ProfileRow, WorkspaceSpec};
use assize_engine::store::RunDirectory;
use assize_process::workspace::{ChangeKind, Node, Snapshot, StoredChange, read_changes};
use serde_json::Value;
use similar::TextDiff;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A longer file is named, not shown.
const LONGEST_FILE: u64 = 1 << 20;

/// More files than this are only counted.
const MOST_FILES: usize = 200;

/// Files that take longer to compare are shown with more lines than have changed.
const LONGEST_DIFF: Duration = Duration::from_secs(1);

/// Makes the diffs of a run's trials.
pub(super) struct Changes<'a> {
    run: &'a RunDirectory,
    /// By scenario.
    origins: HashMap<String, Origin>,
}

/// The origin of a workspace.
#[derive(Clone)]
enum Origin {
    Nothing,
    Directory(PathBuf),
    Commit {
        repository: PathBuf,
        name: String,
    },
    /// It is no longer known, for this reason.
    Lost(String),
}

/// The changes of one trial.
pub(super) struct Diff {
    /// In the unified form. Files that are no text are named.
    pub(super) text: String,
    /// A remark for the reader, if there is one.
    pub(super) remark: Option<String>,
}

impl<'a> Changes<'a> {
    pub(super) fn of(run: &'a RunDirectory) -> Self {
        Self {
            run,
            origins: HashMap::new(),
        }
    }

    /// The diff of a trial. None when nothing was changed or nothing was kept.
    pub(super) fn diff(&mut self, row: &ProfileRow) -> Option<Diff> {
        let archive = self.run.workspace(row)?;
        let mut changes = match read_changes(&archive, LONGEST_FILE) {
            Ok(changes) => changes,
            Err(error) => {
                let remark = Some(error.to_string());
                let text = String::new();
                return Some(Diff { text, remark });
            }
        };
        changes.retain(|change| change.node != Node::Directory && !is_of_git(&change.path));
        let run = self.run;
        let origin = self.origins.entry(row.scenario_id.clone());
        let origin = origin.or_insert_with(|| Origin::find(run, &row.scenario_id));
        let shown = changes.iter().take(MOST_FILES);
        let text: String = shown.map(|change| file_diff(change, origin)).collect();
        let more = changes.len().saturating_sub(MOST_FILES);
        let remark = match (&*origin, more) {
            (Origin::Lost(reason), _) => Some(format!("old contents are not known: {reason}")),
            (_, 0) => None,
            (_, more) => Some(format!("{more} more files were changed")),
        };
        (!changes.is_empty()).then_some(Diff { text, remark })
    }
}

fn is_of_git(path: &Path) -> bool {
    path.iter().any(|part| part == ".git")
}

impl Origin {
    fn find(run: &RunDirectory, scenario: &str) -> Self {
        let manifest = run.manifest();
        let spec = manifest
            .suite
            .get("scenarios")
            .and_then(|scenarios| scenarios.get(scenario)?.get("workspace"))
            .and_then(|spec| serde_json::from_value::<WorkspaceSpec>(spec.clone()).ok());
        let Some(spec) = spec else {
            return Self::Lost("the run does not record what the workspace was made of".to_owned());
        };
        if !spec.setup.is_empty() || !spec.setup_once.is_empty() {
            return Self::Lost("set-up commands may have written them".to_owned());
        }
        let suite = manifest.provenance.get("suitePath").and_then(Value::as_str);
        let directory = suite.and_then(|suite| Path::new(suite).parent());
        match (directory, &spec.from, &spec.git) {
            (Some(directory), Some(from), _) => {
                let recorded = manifest.provenance.get("fixtures");
                let recorded = recorded.and_then(|fixtures| fixtures.get(from)?.as_str());
                Self::directory(directory.join(from), recorded)
            }
            (Some(directory), None, Some(git)) => Self::Commit {
                repository: directory.join(&git.repo),
                name: git.reference.clone(),
            },
            (_, None, None) => Self::Nothing,
            (None, ..) => Self::Lost("the run does not record where its suite lies".to_owned()),
        }
    }

    /// A directory that is still what it was when the run began.
    fn directory(path: PathBuf, recorded: Option<&str>) -> Self {
        let now = Snapshot::of_source(&path).map(|snapshot| snapshot.fingerprint());
        match (now, recorded) {
            (Err(_), _) => Self::Lost(format!("`{}` cannot be read any more", path.display())),
            (Ok(now), Some(recorded)) if now != recorded => {
                Self::Lost(format!("`{}` was edited since", path.display()))
            }
            _ => Self::Directory(path),
        }
    }

    /// The old content of a file. None when it is not known.
    fn content(&self, path: &Path) -> Option<Vec<u8>> {
        match self {
            Self::Nothing => Some(Vec::new()),
            Self::Lost(_) => None,
            Self::Directory(directory) => {
                let path = directory.join(path);
                let is_short = std::fs::metadata(&path).ok()?.len() <= LONGEST_FILE;
                is_short.then(|| std::fs::read(&path).ok()).flatten()
            }
            Self::Commit { repository, name } => {
                let blob = format!("{name}:{}", path.to_str()?);
                let shown = Command::new("git")
                    .arg("-C")
                    .arg(repository)
                    .args(["show", "--end-of-options", &blob])
                    .stderr(Stdio::null())
                    .output()
                    .ok()?;
                shown.status.success().then_some(shown.stdout)
            }
        }
    }
}

fn file_diff(change: &StoredChange, origin: &Origin) -> String {
    let path = change.path.display();
    let word = match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    };
    let named = || format!("{word}: {path}\n");
    let old = match change.kind {
        ChangeKind::Added => Some(Vec::new()),
        _ => origin.content(&change.path),
    };
    let new = match change.kind {
        ChangeKind::Deleted => Some(Vec::new()),
        _ => change.content.clone(),
    };
    let text = |content: Option<Vec<u8>>| String::from_utf8(content?).ok();
    let (Some(old), Some(new)) = (text(old), text(new)) else {
        return named();
    };
    if old == new || old.contains('\0') || new.contains('\0') {
        return named();
    }
    let header = |is_there: bool, side: &str| match is_there {
        true => format!("{side}/{path}"),
        false => "/dev/null".to_owned(),
    };
    TextDiff::configure()
        .timeout(LONGEST_DIFF)
        .diff_lines(&*old, &*new)
        .unified_diff()
        .header(
            &header(change.kind != ChangeKind::Added, "a"),
            &header(change.kind != ChangeKind::Deleted, "b"),
        )
        .to_string()
}
