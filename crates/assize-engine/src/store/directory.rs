//! Run directories: create, find, open, remove.

use super::error::{StoreError, io};
use super::index::{self, Index, Places, RowCounts, StoredIndex};
use super::manifest::{Manifest, RunState};
use super::overview::RunOverview;
use super::reader::{Lines, RowReader};
use super::record_id::{CellSet, RecordIds};
use super::repair::{drop_uncommitted, repair};
use super::trace_pack::{self, IndexEntry, TraceReader};
use super::{RunFile, files, scoring, writer::Writer};
use crate::event::Listener;
use crate::random::attempt_seed;
use crate::workspace::archive_name;
use assize_contracts::{CellKey, Outcome, ProfileRow, RunRecord, ScoreRecord, SessionTrace};
use assize_secrets::private_file_options;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The beginning of the name of a run that is being removed.
const LEAVING: &str = ".removing-";

/// The longest wait for a lock, and the time between tries.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);

/// Bytes that are worth a write of their own.
const ENOUGH: usize = 1 << 20;

/// A run on disk, open for reading.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    manifest: Manifest,
}

/// The state of rows and manifest that something is derived from, by which version.
#[derive(Debug)]
pub struct DerivedFrom(String);

/// The runs in a results directory, oldest first. Directories that are not runs are passed over.
pub fn list(results: &Path) -> Result<Vec<RunDirectory>, StoreError> {
    list_named(results, |_| true)
}

/// The same for those with a name that is wanted.
pub(crate) fn list_named(
    results: &Path,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<RunDirectory>, StoreError> {
    let name = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let mut runs: Vec<RunDirectory> = entries_of(results)?
        .iter()
        .filter(|path| is_wanted(&name(path)))
        .filter_map(|path| RunDirectory::open(path).ok())
        .collect();
    runs.sort_by(|a, b| a.id().cmp(b.id()));
    Ok(runs)
}

/// True when there is any run in a results directory.
pub fn has_runs(results: &Path) -> bool {
    let entries = entries_of(results).unwrap_or_default();
    let is_run = |path: &PathBuf| RunDirectory::open(path).is_ok();
    entries.iter().any(is_run)
}

/// Paths in a results directory.
pub(super) fn entries_of(results: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match std::fs::read_dir(results) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io("read", results)(error)),
    };
    let entries: Vec<_> = entries.filter_map(Result::ok).collect();
    for entry in &entries {
        // Another process was killed while removing it.
        if entry.file_name().to_string_lossy().starts_with(LEAVING) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(entries.iter().map(std::fs::DirEntry::path).collect())
}

/// The id of a run and its path, without its manifest where an overview is kept.
fn id_of(path: PathBuf) -> Option<(String, PathBuf)> {
    let id = match RunOverview::stored(&path) {
        Some(overview) => overview.run_id,
        None => RunDirectory::open(&path).ok()?.manifest.run_id,
    };
    Some((id, path))
}

impl RunDirectory {
    /// Opens a run by its path. A scoring that was killed after its commit is completed first.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        scoring::complete(path)?;
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
        let runs = entries_of(results)?.into_iter().filter_map(id_of);
        let mut runs: Vec<(String, PathBuf)> = runs.collect();
        runs.sort();
        if id == "last" {
            let (_, last) = runs.pop().ok_or_else(missing)?;
            return Self::open(&last);
        }
        if let Some((_, exact)) = runs.iter().find(|(known, _)| known == id) {
            return Self::open(exact);
        }
        runs.retain(|(known, _)| known.starts_with(id) || known.ends_with(id));
        match &runs[..] {
            [] => Err(missing()),
            [(_, only)] => Self::open(only),
            _ => Err(StoreError::Ambiguous {
                id: id.to_owned(),
                matches: runs.into_iter().map(|(known, _)| known).collect(),
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

    /// Counts the rows of the run.
    pub fn counts(&self) -> Result<RowCounts, StoreError> {
        Ok(StoredIndex::open(&self.path, &self.manifest)?.counts())
    }

    /// The bytes that were stored under this name, if the same version derived them from the current rows and manifest.
    pub fn derived(&self, name: &str, version: &str) -> Option<Vec<u8>> {
        index::read_derived(&self.path, name, version)
    }

    /// The rows and the manifest as they are now, to derive something from them.
    pub fn derive(&self, version: &str) -> DerivedFrom {
        DerivedFrom(index::source_of(&self.path, version))
    }

    /// The rows of warm-up trials. Those that cannot be read are left out: they count for nothing but their cost.
    pub fn warmup_rows(&self) -> Vec<ProfileRow> {
        let text = std::fs::read(self.file(RunFile::Warmup)).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }

    /// Trials that were replaced by another one of their cell: run twice by restarted jobs, or void and run again. Rows that were only
    /// scored again are none.
    pub fn replaced_trials(&self) -> Result<Vec<ProfileRow>, StoreError> {
        let text = std::fs::read(self.file(RunFile::Superseded)).unwrap_or_default();
        let trial = |row: &ProfileRow| {
            let started = row.started_at.as_str().to_owned();
            (CellKey::of(row), started)
        };
        let mut replaced: BTreeMap<_, ProfileRow> = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            if let Ok(row) = serde_json::from_slice::<ProfileRow>(line) {
                replaced.insert(trial(&row), row);
            }
        }
        if !replaced.is_empty() {
            for row in self.rows()? {
                replaced.remove(&trial(&row?));
            }
        }
        Ok(replaced.into_values().collect())
    }

    /// Marks a run complete that has all trials it needs, though fewer than its plan: looks have stopped the rest.
    pub fn mark_complete(&mut self) -> Result<(), StoreError> {
        self.manifest.state = RunState::Complete;
        self.manifest.write(&self.path)
    }

    /// Keeps what follows from rows and manifest, to save making it again. Nothing is lost where that cannot be done.
    pub fn keep_derived(&self, name: &str, source: &DerivedFrom, text: &[u8]) {
        if let Err(error) = index::write_derived(&self.path, name, &source.0, text) {
            tracing::info!(%error, "cannot keep what was derived from the rows");
        }
    }

    /// The row of the trial in this position of the plan. Absent when it is not done.
    pub fn row_at(&self, position: u64) -> Result<Option<ProfileRow>, StoreError> {
        let is_it = |row: &ProfileRow| row.position == Some(position);
        if let Some(places) = self.places(position) {
            let mut lines = Lines::open_at(&self.file(RunFile::Rows), places.row - 1)?;
            let row = lines.parse("row").ok().flatten().filter(is_it);
            if row.is_some() {
                return Ok(row);
            }
        }
        // The index knows only what it is sure of.
        for row in self.rows()? {
            let row = row?;
            if is_it(&row) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The trace of one trial. Absent when none was stored.
    pub fn trace(&self, row: &ProfileRow) -> Result<Option<SessionTrace>, StoreError> {
        let key = CellKey::of(row);
        let index = self.file(RunFile::Traces).join(trace_pack::INDEX);
        if !index.exists() {
            return Ok(None);
        }
        let place = self.place_of(row, |places| places.trace);
        if let Some(offset) = place {
            let mut lines = Lines::open_at(&index, offset)?;
            let entry = lines.parse::<IndexEntry>("trace index entry").ok();
            if let Some(entry) = entry.flatten().filter(|entry| entry.key == key) {
                return TraceReader::of_entry(&self.path, entry).trace(&key);
            }
        }
        self.traces()?.trace(&key)
    }

    fn places(&self, position: u64) -> Option<Places> {
        let index = StoredIndex::open(&self.path, &self.manifest).ok()?;
        index.places(position)
    }

    /// The offset of one of a trial's records, if the index knows it.
    fn place_of(&self, row: &ProfileRow, place: fn(Places) -> u64) -> Option<u64> {
        place(self.places(row.position?)?).checked_sub(1)
    }

    /// The record of a task's execution. Absent for trials of scenarios.
    pub fn run_record(&self, row: &ProfileRow) -> Result<Option<RunRecord>, StoreError> {
        let path = self.file(RunFile::RunRecords);
        if !path.exists() {
            return Ok(None);
        }
        if let Some(offset) = self.place_of(row, |places| places.run) {
            let mut lines = Lines::open_at(&path, offset)?;
            let record = lines.parse::<RunRecord>("run record").ok().flatten();
            let is_it = |record: &RunRecord| Some(&record.id) == row.session_id.as_ref();
            if let Some(record) = record.filter(is_it) {
                return Ok(Some(record));
            }
        }
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
        let path = self.file(RunFile::Scores);
        let is_it = |score: &ScoreRecord| Some(&score.run_id) == row.session_id.as_ref();
        let mut scores = Vec::new();
        if let Some(offset) = self.place_of(row, |places| places.scores) {
            // Those of one trial are neighbours.
            let mut lines = Lines::open_at(&path, offset)?;
            while let Ok(Some(score)) = lines.parse::<ScoreRecord>("score record")
                && is_it(&score)
            {
                scores.push(score);
            }
        }
        if !scores.is_empty() {
            return Ok(scores);
        }
        let mut lines = Lines::open(&path)?;
        while let Some(score) = lines.parse::<ScoreRecord>("score record")? {
            if is_it(&score) {
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
        let locked = lock_within(&self.path, self.id(), Duration::ZERO);
        matches!(locked, Err(StoreError::Locked { .. }))
    }

    /// Deletes the run. Refused while a process writes to it. Killed in between, it leaves a run that is still listed, or a
    /// directory that the next look at the runs removes.
    pub fn remove(self) -> Result<(), StoreError> {
        let _lock = lock(&self.path, self.id())?;
        let entries = std::fs::read_dir(&self.path).map_err(io("read", &self.path))?;
        for entry in entries.flatten() {
            let path = entry.path();
            let last = [RunFile::Manifest, RunFile::Lock];
            let is_last = last.iter().any(|file| file.within(&self.path) == path);
            let removed = match entry.file_type() {
                _ if is_last => Ok(()),
                Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(&path),
                _ => std::fs::remove_file(&path),
            };
            removed.map_err(io("remove", &path))?;
        }
        let leaving = self.path.with_file_name(format!("{LEAVING}{}", self.id()));
        std::fs::rename(&self.path, &leaving).map_err(io("remove", &self.path))?;
        std::fs::remove_dir_all(&leaving).map_err(io("remove", &leaving))
    }
}

/// A run directory that this process alone may write to.
pub(crate) struct OpenRun {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
    /// Cells that already have a row.
    pub(crate) done: CellSet,
    /// The index of what is there. Absent where it must be made again.
    index: Option<Index>,
    lock: File,
}

impl OpenRun {
    /// Makes the directory of a new run.
    pub(crate) fn create(results: &Path, manifest: Manifest) -> Result<Self, StoreError> {
        let path = results.join(&manifest.run_id);
        files::create_directory(results)?;
        let mut private = std::fs::DirBuilder::new();
        let made = private.mode(0o700).create(&path);
        made.map_err(io("create", &path))?;
        let lock = lock(&path, &manifest.run_id)?;
        manifest.write(&path)?;
        files::sync_directory(results)?;
        Ok(Self {
            done: CellSet::new(record_ids(&manifest)),
            index: Some(Index::default()),
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
        let ids = record_ids(&run.manifest);
        let index = Index::of_closed(&run.path);
        let done = match &index {
            Some(index) => index.done(ids),
            None => repair(&run.path, ids)?,
        };
        let mut manifest = run.manifest;
        manifest.plan = now.plan.clone();
        // The reading of trials may change between starts of a run; what was run may not.
        manifest.read_as(now.reading()?)?;
        manifest.state = RunState::Running;
        manifest.write(&run.path)?;
        Ok(Self {
            path: run.path,
            manifest,
            done,
            index,
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
            self.index = None;
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
        let Self {
            path,
            manifest,
            index,
            lock,
            ..
        } = self;
        Writer::start(path, manifest, index, lock, listener, on_failure)
    }
}

pub(super) fn record_ids(manifest: &Manifest) -> RecordIds {
    RecordIds::new(&manifest.run_id, manifest.plan.seed)
}

/// Locks a run. Programs of a run that was just killed may hold its lock until they have ended, too.
pub(super) fn lock(run: &Path, id: &str) -> Result<File, StoreError> {
    lock_within(run, id, PATIENCE)
}

fn lock_within(run: &Path, id: &str, patience: Duration) -> Result<File, StoreError> {
    let path = RunFile::Lock.within(run);
    let mut file = private_file_options()
        .create(true)
        .read(true)
        .append(true)
        .open(&path)
        .map_err(io("create", &path))?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(STEP),
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked {
                    id: id.to_owned(),
                    process: holder(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
        }
    }
    // For people who look; the lock itself is what counts.
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(io("write", &path))?;
    Ok(file)
}

/// The process that holds a lock, as far as it is known.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    let number = text.trim();
    let name = std::fs::read_to_string(format!("/proc/{number}/comm"));
    match (number.parse::<u32>(), name) {
        (Ok(number), Ok(name)) => format!("process {number} ({})", name.trim()),
        (Ok(number), Err(_)) => {
            format!("a program that process {number} started, which has ended itself")
        }
        (Err(_), _) => "another process".to_owned(),
    }
}
