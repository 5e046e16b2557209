//! Run directories: create, find, open, remove.

use super::error::{StoreError, io};
use super::manifest::{Manifest, RunState};
use super::reader::{Lines, RowReader};
use super::record_id::{CellSet, RecordIds};
use super::repair::{drop_uncommitted, repair};
use super::trace_pack::TraceReader;
use super::{RunFile, files, writer::Writer};
use crate::event::Listener;
use crate::random::attempt_seed;
use crate::workspace::archive_name;
use assize_contracts::{CellKey, Outcome, ProfileRow, RunRecord, ScoreRecord};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Bytes that are worth a write of their own.
const ENOUGH: usize = 1 << 20;

/// A run on disk, open for reading.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    manifest: Manifest,
}

/// The runs in a results directory, oldest first. Directories that are not runs are passed over.
pub fn list(results: &Path) -> Result<Vec<RunDirectory>, StoreError> {
    let entries = match std::fs::read_dir(results) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io("read", results)(error)),
    };
    let mut runs: Vec<RunDirectory> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| RunDirectory::open(&entry.path()).ok())
        .collect();
    runs.sort_by(|a, b| a.id().cmp(b.id()));
    Ok(runs)
}

impl RunDirectory {
    /// Opens a run by its path.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let manifest = Manifest::read(path)?;
        Ok(Self {
            path: path.to_owned(),
            manifest,
        })
    }

    /// True for a directory that has a manifest.
    pub fn is_run(path: &Path) -> bool {
        RunFile::Manifest.within(path).exists()
    }

    /// Finds a run by its id, the beginning or end of its id, `last`, or its path.
    pub fn find(results: &Path, id: &str) -> Result<Self, StoreError> {
        if Self::is_run(Path::new(id)) {
            return Self::open(Path::new(id));
        }
        let missing = || StoreError::NotFound {
            id: id.to_owned(),
            directory: results.to_owned(),
        };
        let mut runs = list(results)?;
        if id == "last" {
            return runs.pop().ok_or_else(missing);
        }
        if let Some(exact) = runs.iter().position(|run| run.id() == id) {
            return Ok(runs.swap_remove(exact));
        }
        runs.retain(|run| run.id().starts_with(id) || run.id().ends_with(id));
        match runs.len() {
            0 => Err(missing()),
            1 => Ok(runs.remove(0)),
            _ => Err(StoreError::Ambiguous {
                id: id.to_owned(),
                matches: runs.iter().map(|run| run.id().to_owned()).collect(),
            }),
        }
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        &self.manifest.run_id
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    pub fn file(&self, file: RunFile) -> PathBuf {
        file.within(&self.path)
    }

    /// The manifest: what was run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its rows, in the order in which trials ended.
    pub fn rows(&self) -> Result<RowReader, StoreError> {
        RowReader::open(&self.file(RunFile::Rows))
    }

    /// Its traces.
    pub fn traces(&self) -> Result<TraceReader, StoreError> {
        TraceReader::open(&self.path)
    }

    /// The record of a task's execution. Absent for trials of scenarios.
    pub fn run_record(&self, row: &ProfileRow) -> Result<Option<RunRecord>, StoreError> {
        let mut lines = Lines::open(&self.file(RunFile::RunRecords))?;
        while let Some(record) = lines.parse::<RunRecord>("run record")? {
            if Some(&record.id) == row.session_id.as_ref() {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The scores of a task's execution.
    pub fn scores(&self, row: &ProfileRow) -> Result<Vec<ScoreRecord>, StoreError> {
        let mut lines = Lines::open(&self.file(RunFile::Scores))?;
        let mut scores = Vec::new();
        while let Some(score) = lines.parse::<ScoreRecord>("score record")? {
            if Some(&score.run_id) == row.session_id.as_ref() {
                scores.push(score);
            }
        }
        Ok(scores)
    }

    /// The archive of the workspace that a trial left, if it was kept.
    pub fn workspace(&self, row: &ProfileRow) -> Option<PathBuf> {
        let cell = [&*row.scenario_id, &row.mode, &row.model];
        let seed = self.manifest.plan.seed;
        let seed = attempt_seed(seed, cell, row.iteration, row.attempts.len());
        let archive = self.file(RunFile::Workspaces).join(archive_name(seed));
        archive.is_file().then_some(archive)
    }

    pub(crate) fn into_parts(self) -> (PathBuf, Manifest) {
        (self.path, self.manifest)
    }

    /// True while a process writes to it.
    pub fn is_locked(&self) -> bool {
        matches!(lock(&self.path, self.id()), Err(StoreError::Locked { .. }))
    }

    /// Deletes the run. Refused while a process writes to it.
    pub fn remove(self) -> Result<(), StoreError> {
        let _lock = lock(&self.path, self.id())?;
        std::fs::remove_dir_all(&self.path).map_err(io("remove", &self.path))
    }
}

/// A run directory that this process alone may write to.
pub(crate) struct OpenRun {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
    /// Cells that already have a row.
    pub(crate) done: CellSet,
    lock: File,
}

impl OpenRun {
    /// Makes the directory of a new run.
    pub(crate) fn create(results: &Path, manifest: Manifest) -> Result<Self, StoreError> {
        let path = results.join(&manifest.run_id);
        std::fs::create_dir_all(results).map_err(io("create", results))?;
        std::fs::create_dir(&path).map_err(io("create", &path))?;
        let lock = lock(&path, &manifest.run_id)?;
        manifest.write(&path)?;
        files::sync_directory(results)?;
        Ok(Self {
            done: CellSet::new(record_ids(&manifest)),
            path,
            manifest,
            lock,
        })
    }

    /// Opens a run to resume it: locks, repairs, and checks that new trials would be comparable.
    pub(crate) fn resume(run: RunDirectory, now: &Manifest) -> Result<Self, StoreError> {
        let lock = lock(&run.path, run.id())?;
        let changes = run.manifest.differences(now);
        if !changes.is_empty() {
            return Err(StoreError::Changed {
                id: run.id().to_owned(),
                changes,
            });
        }
        let done = repair(&run.path, record_ids(&run.manifest))?;
        let mut manifest = run.manifest;
        manifest.plan = now.plan.clone();
        // How trials are read as evidence may change between them; what was run may not.
        manifest.read_as(now.reading()?)?;
        manifest.state = RunState::Running;
        manifest.write(&run.path)?;
        Ok(Self {
            path: run.path,
            manifest,
            done,
            lock,
        })
    }

    /// Moves the rows of void trials away, so that their cells are open again, and returns those cells.
    pub(crate) fn reopen_void(&mut self) -> Result<CellSet, StoreError> {
        let path = RunFile::Rows.within(&self.path);
        // First into the archive: a crash in between keeps a row twice rather than not at all.
        let mut archive = files::AppendFile::new(RunFile::Superseded.within(&self.path));
        let mut void = Vec::new();
        let mut reopened = CellSet::new(record_ids(&self.manifest));
        for row in RowReader::open(&path)? {
            let row = row?;
            if row.outcome == Some(Outcome::Void) {
                serde_json::to_writer(&mut void, &row).expect("a row is plain data");
                void.push(b'\n');
                reopened.insert(&CellKey::of(&row));
            }
            if void.len() > ENOUGH {
                archive.append(&void)?;
                void.clear();
            }
        }
        if !reopened.is_empty() {
            archive.append(&void)?;
            archive.sync()?;
            self.done.remove_all(&reopened);
            drop_uncommitted(&self.path, &self.done)?;
        }
        Ok(reopened)
    }

    /// Starts the thread that writes trials. It cancels the token if it cannot continue.
    pub(crate) fn into_writer(
        self,
        listener: Arc<dyn Listener>,
        on_failure: CancellationToken,
    ) -> Writer {
        Writer::start(self.path, self.manifest, self.lock, listener, on_failure)
    }
}

pub(super) fn record_ids(manifest: &Manifest) -> RecordIds {
    RecordIds::new(&manifest.run_id, manifest.plan.seed)
}

pub(super) fn lock(run: &Path, id: &str) -> Result<File, StoreError> {
    let path = RunFile::Lock.within(run);
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(io("create", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StoreError::Locked { id: id.to_owned() }),
        Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
    }
    // For people who look; the lock itself is what counts.
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(io("write", &path))?;
    Ok(file)
}
