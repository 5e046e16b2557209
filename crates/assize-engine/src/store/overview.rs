//! The overview of a run for lists of runs, kept beside its rows: a thousand manifests would take a while to read.
//!
//! Like the index it is derived, names the rows and the manifest it was made of, and is made again when they are others.

use super::directory::{RunDirectory, entries_of};
use super::index::{read_derived, source_of, write_derived};
use super::manifest::RunState;
use super::{RunFile, StoreError, scoring};
use assize_contracts::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Changes with the form of the file and with the version of Assize, which may read manifests otherwise.
const VERSION: &str = concat!("assize ", env!("CARGO_PKG_VERSION"), " overview 1");

/// A run in a list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOverview {
    /// The run's id.
    pub run_id: String,
    /// The suite's name.
    pub name: String,
    /// Time of the first start.
    pub created_at: Timestamp,
    /// As the manifest has it: `Running` may also be a run that was killed.
    pub state: RunState,
    /// Modes, each with each of its models.
    pub arms: usize,
    /// Trials that the run does.
    pub planned: u64,
    /// Trials that are done.
    pub done: u64,
    /// Hash of everything that could change a trial's result.
    pub fingerprint: String,
    /// Its directory.
    #[serde(skip)]
    pub path: PathBuf,
}

/// The runs in a results directory, oldest first. Directories that are not runs are passed over.
pub fn overviews(results: &Path) -> Result<Vec<RunOverview>, StoreError> {
    let mut runs = Vec::new();
    for path in entries_of(results)? {
        let Some(overview) = RunOverview::stored(&path) else {
            let run = RunDirectory::open(&path).ok();
            runs.extend(run.map(|run| RunOverview::of(&run)).transpose()?);
            continue;
        };
        runs.push(overview);
    }
    runs.sort_by(|a, b| a.run_id.cmp(&b.run_id));
    Ok(runs)
}

impl RunOverview {
    /// Makes the overview of a run, and keeps it if possible: a run may lie in a read-only directory.
    pub fn of(run: &RunDirectory) -> Result<Self, StoreError> {
        let source = source_of(run.path(), VERSION);
        // The manifest may have been replaced since the run was opened.
        let run = RunDirectory::open(run.path())?;
        let manifest = run.manifest();
        let overview = Self {
            run_id: manifest.run_id.clone(),
            name: manifest.name.clone(),
            created_at: manifest.created_at.clone(),
            state: manifest.state,
            arms: manifest.plan.arms.len(),
            planned: manifest.planned(),
            done: run.counts()?.rows,
            fingerprint: manifest.fingerprint.clone(),
            path: run.path().to_owned(),
        };
        // A run under way changes with every trial.
        if overview.state != RunState::Running
            && let Ok(text) = serde_json::to_vec(&overview)
        {
            let _ = write_derived(run.path(), RunFile::Overview.name(), &source, &text);
        }
        Ok(overview)
    }

    /// The overview that is kept in a directory, if it is that of the present rows and manifest.
    pub(super) fn stored(path: &Path) -> Option<Self> {
        scoring::complete(path).ok()?;
        let text = read_derived(path, RunFile::Overview.name(), VERSION)?;
        let overview: Self = serde_json::from_slice(&text).ok()?;
        Some(Self {
            path: path.to_owned(),
            ..overview
        })
    }
}
