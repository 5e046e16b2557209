//! Puts runs of one plan together: the shards of several machines, or parts of one. Every cell is taken once, nothing is decoded that
//! need not be, and what is held in memory is a few numbers per cell.

mod belonging;
mod copy;

use super::directory::{RunDirectory, lock};
use super::error::{StoreError, io};
use super::files;
use super::manifest::{Manifest, RunState};
use super::reader::Lines;
use super::{RunFile, record_id::RecordIds};
use crate::shard::Shard;
use assize_contracts::{JsonMap, Outcome, Timestamp};
use belonging::Family;
use copy::Target;
use foldhash::fast::FixedState;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Trials run twice that are named; the others are only counted.
const MOST_NAMED: usize = 20;

/// The merged run, and what should be said about it.
#[derive(Debug)]
pub struct Merged {
    pub run: RunDirectory,
    pub rows: u64,
    /// The trials of the plan.
    pub planned: u64,
    /// The runs it was put together from, by shard.
    pub sources: Vec<MergedSource>,
    /// The number of trials that were run more than once; of each, one counts.
    pub repeated: u64,
    /// The first of those that do not count.
    pub superseded: Vec<Superseded>,
    /// Shards that were not found, as far as the others show how many there are.
    pub absent: Vec<Shard>,
    /// The progress of each shard, by round and shard.
    pub shards: Vec<MergedShard>,
    /// Differences between the runs that do not keep them apart, in words.
    pub remarks: Vec<String>,
}

/// A run that was merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedSource {
    /// Its directory.
    pub path: PathBuf,
    pub run_id: String,
    /// Its part of the plan. Absent: all of it.
    pub shard: Option<Shard>,
    /// The round that this is a part of, where there are several.
    pub round: Option<u32>,
    /// The trials it has done.
    pub done: u64,
    /// The trials it was to do.
    pub planned: u64,
    /// Rows of it that count.
    pub taken: u64,
}

/// The progress of a shard that was found in one run or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedShard {
    /// Its part of the plan.
    pub shard: Shard,
    /// The round it is of, where there are several.
    pub round: Option<u32>,
    /// Its different trials that are done.
    pub done: u64,
    /// The trials it was to do.
    pub planned: u64,
}

/// A trial that was run although its cell was done elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superseded {
    /// Its place in the plan.
    pub position: u64,
    /// The run in which it was done again.
    pub run_id: String,
    /// The run whose row counts.
    pub taken_from: String,
}

/// Merges the runs in these directories into a new one. One that is there is added to, and replaced at once.
pub fn merge(directories: &[PathBuf], out: &Path) -> Result<Merged, StoreError> {
    let run_id = super::manifest::new_run_id(&Timestamp::now());
    put_together(directories, out, |manifest| {
        manifest.run_id = run_id;
        manifest.shard = None;
    })
}

/// Makes the run of a shard again from parts of it, below a directory of runs. It can be resumed.
pub fn restore_shard(directories: &[PathBuf], results: &Path) -> Result<Merged, StoreError> {
    let first = directories.first().ok_or(StoreError::NothingToMerge)?;
    let first = RunDirectory::open(first)?;
    let shard = first.manifest().shard.clone();
    let mut run_id = super::manifest::new_run_id(&Timestamp::now());
    if let Some(record) = &shard {
        run_id.push_str(&record.suffix());
    }
    files::create_directory(results)?;
    put_together(directories, &results.join(&run_id), |manifest| {
        manifest.run_id.clone_from(&run_id);
        manifest.shard = shard;
    })
}

fn put_together(
    directories: &[PathBuf],
    out: &Path,
    name: impl FnOnce(&mut Manifest),
) -> Result<Merged, StoreError> {
    let mut directories = directories.to_vec();
    let _lock = match RunDirectory::is_run(out) {
        true => {
            directories.insert(0, out.to_owned());
            Some(lock(out, RunDirectory::open(out)?.id())?)
        }
        false => {
            refuse_other_files(out)?;
            None
        }
    };
    let family = Family::of(&directories)?;
    let planned = family.reference.plan.cells();
    let (taken, shards) = choose_trials(&family)?;
    let mut manifest = merged_manifest(&family);
    name(&mut manifest);
    if taken.cells >= manifest.planned() {
        manifest.state = RunState::Complete;
    }
    remove_abandoned(out);
    let beside = unfinished_path(out);
    let mut target = Target::create(&beside, manifest)?;
    let merged = copy_all(&family, &taken, &mut target).and_then(|sources| {
        target.finish(&sources)?;
        put_in_place(&beside, out)?;
        Ok(sources)
    });
    let sources = merged.inspect_err(|_| drop(std::fs::remove_dir_all(&beside)))?;
    let rows = sources.iter().map(|source| source.taken).sum();
    Ok(Merged {
        run: RunDirectory::open(out)?,
        rows,
        planned,
        absent: absent_shards(&shards, rows == planned),
        shards,
        sources,
        repeated: target.repeated,
        superseded: std::mem::take(&mut target.named),
        remarks: family.remarks,
    })
}

/// Chooses the trials that count, and counts those of each shard.
fn choose_trials(family: &Family) -> Result<(Taken, Vec<MergedShard>), StoreError> {
    let mut taken = Taken::new(family.reference.plan.cells());
    let mut shards: Vec<MergedShard> = Vec::new();
    let mut positions: HashSet<u64, FixedState> = HashSet::default();
    for (number, source) in family.sources.iter().enumerate() {
        let is_same =
            |known: &MergedShard| (Some(known.shard), known.round) == (source.shard, source.round);
        if !shards.last().is_some_and(is_same) {
            positions.clear();
            shards.extend(source.shard.map(|shard| MergedShard {
                shard,
                round: source.round,
                done: 0,
                planned: source.planned,
            }));
        }
        let is_counted = source.shard.is_some();
        taken.scan(number as u32, &source.path, |position| {
            if is_counted {
                positions.insert(position);
            }
        })?;
        if let Some(shard) = shards.last_mut().filter(|_| is_counted) {
            shard.done = positions.len() as u64;
        }
    }
    Ok((taken, shards))
}

/// All runs below a directory, or the one it is. Runs are not searched for others.
pub fn runs_below(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    const DEEPEST: usize = 5;
    let mut found = Vec::new();
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((directory, depth)) = waiting.pop() {
        if RunDirectory::is_run(&directory) {
            found.push(directory);
            continue;
        }
        if depth == DEEPEST {
            continue;
        }
        let entries = std::fs::read_dir(&directory).map_err(io("read", &directory))?;
        for entry in entries.flatten() {
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // Links could lead in circles.
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && (!is_hidden || entry.file_name() == ".assize") {
                waiting.push((entry.path(), depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Text of a line that is borrowed where it has no escapes, so that its place in the line is known.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The part of a row that merging needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RowHead<'a> {
    #[serde(borrow)]
    run_id: Text<'a>,
    #[serde(borrow)]
    scenario_id: Text<'a>,
    #[serde(borrow)]
    mode: Text<'a>,
    #[serde(borrow)]
    model: Text<'a>,
    iteration: i64,
    #[serde(borrow)]
    started_at: Text<'a>,
    #[serde(borrow)]
    completed_at: Text<'a>,
    #[serde(borrow, default)]
    session_id: Option<Text<'a>>,
    position: Option<u64>,
    outcome: Option<Outcome>,
    #[serde(default)]
    attempts: Vec<IgnoredAny>,
}

impl<'a> RowHead<'a> {
    fn read(line: &'a [u8], path: &Path, number: u64) -> Result<Self, StoreError> {
        serde_json::from_slice(line).map_err(|error| StoreError::Corrupt {
            path: path.to_owned(),
            line: number,
            expected: "row",
            reason: error.to_string(),
        })
    }

    fn cell(&self) -> [&str; 3] {
        [&self.scenario_id.0, &self.mode.0, &self.model.0]
    }

    /// A number that is the same for copies of one trial and differs for two trials of one cell.
    fn trial(&self) -> u64 {
        let session = self.session_id.as_ref().map(|id| {
            // The session of a task is named after the run it is in.
            let own = id.0.strip_prefix(&*self.run_id.0);
            own.unwrap_or(&id.0)
        });
        FixedState::default().hash_one((&*self.started_at.0, &*self.completed_at.0, session))
    }

    /// Sorts by time: the digits of `2026-11-15T21:03:59.120Z`. Other forms come last.
    fn completed(&self) -> u64 {
        let text = self.completed_at.0.as_bytes();
        let is_ours = text.len() == 24 && text[23] == b'Z';
        let digits = text.iter().filter(|byte| byte.is_ascii_digit());
        match is_ours {
            true => digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')),
            false => u64::MAX,
        }
    }
}

/// The trial that counts for each cell, by position.
struct Taken {
    trials: Vec<Option<TakenTrial>>,
    cells: u64,
}

#[derive(Clone, Copy)]
struct TakenTrial {
    source: u32,
    completed: u64,
    trial: u64,
}

impl Taken {
    fn new(planned: u64) -> Self {
        Self {
            trials: vec![None; planned as usize],
            cells: 0,
        }
    }

    /// Looks through the rows of a run. Of several trials of one cell the one that was finished first counts.
    fn scan(
        &mut self,
        source: u32,
        run: &Path,
        mut found_at: impl FnMut(u64),
    ) -> Result<(), StoreError> {
        let path = RunFile::Rows.within(run);
        let mut lines = Lines::open(&path)?;
        while let Some(number) = lines.advance()? {
            let row = RowHead::read(lines.line(), &path, number)?;
            found_at(row.position.unwrap_or_default());
            let place = self.place(&row, &path, number)?;
            let found = TakenTrial {
                source,
                completed: row.completed(),
                trial: row.trial(),
            };
            match place {
                Some(taken) if taken.completed <= found.completed => {}
                Some(taken) => *taken = found,
                None => {
                    *place = Some(found);
                    self.cells += 1;
                }
            }
        }
        Ok(())
    }

    fn place(
        &mut self,
        row: &RowHead<'_>,
        path: &Path,
        line: u64,
    ) -> Result<&mut Option<TakenTrial>, StoreError> {
        let planned = self.trials.len();
        let position = row
            .position
            .and_then(|position| usize::try_from(position).ok());
        let place = position.and_then(|position| self.trials.get_mut(position));
        place.ok_or_else(|| StoreError::Corrupt {
            path: path.to_owned(),
            line,
            expected: "row of this plan",
            reason: match row.position {
                Some(position) => format!("position {position} of a plan of {planned} trials"),
                None => "it has no position".to_owned(),
            },
        })
    }

    /// The trial that counts for a row's cell, if the row was there when trials were chosen.
    fn of(&self, row: &RowHead<'_>) -> Option<&TakenTrial> {
        self.trials.get(row.position? as usize)?.as_ref()
    }
}

/// A directory with anything else in it is not replaced.
fn refuse_other_files(out: &Path) -> Result<(), StoreError> {
    let is_free = match std::fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    match is_free {
        true => Ok(()),
        false => Err(StoreError::Foreign {
            path: out.to_owned(),
            reason: "it holds other files, and a merged run needs a place of its own".to_owned(),
        }),
    }
}

fn copy_all(
    family: &Family,
    taken: &Taken,
    target: &mut Target,
) -> Result<Vec<MergedSource>, StoreError> {
    let mut merged = Vec::new();
    for (number, source) in family.sources.iter().enumerate() {
        let ids = RecordIds::new(&source.run_id, family.reference.plan.seed);
        let run_id_of = |number: u32| family.sources[number as usize].run_id.as_str();
        let counts = target.add(&source.path, ids, number as u32, taken, run_id_of)?;
        merged.push(MergedSource {
            path: source.path.clone(),
            run_id: source.run_id.clone(),
            shard: source.shard,
            round: source.round,
            done: counts.rows,
            planned: source.planned,
            taken: counts.taken,
        });
    }
    Ok(merged)
}

fn merged_manifest(family: &Family) -> Manifest {
    let mut manifest = family.reference.clone();
    manifest.created_at = family.created_at.clone();
    manifest.set_metrics(family.metrics.clone());
    manifest.state = RunState::Incomplete;
    manifest
}

/// Notes in the manifest which runs it was put together from.
fn note_sources(provenance: &mut JsonMap, sources: &[MergedSource]) {
    let mut all: Vec<Value> = match provenance.shift_remove("merged") {
        Some(Value::Array(earlier)) => earlier,
        _ => Vec::new(),
    };
    for source in sources.iter().filter(|source| source.taken > 0) {
        let is_known = |known: &Value| known["runId"] == *source.run_id;
        if !all.iter().any(is_known) {
            let shard = source.shard.map(|shard| shard.to_string());
            all.push(json!({ "runId": source.run_id, "shard": shard, "rows": source.taken }));
        }
    }
    provenance.insert("merged".to_owned(), all.into());
}

/// Shards that others of the newest round know of. Nothing is absent where all trials are there.
fn absent_shards(shards: &[MergedShard], is_complete: bool) -> Vec<Shard> {
    let newest = shards.iter().map(|shard| shard.round).max().flatten();
    let of_round = || shards.iter().filter(|shard| shard.round == newest);
    let shards = || of_round().map(|found| found.shard);
    let counts: Vec<u32> = shards().map(|shard| shard.count).collect();
    let (Some(count), false) = (counts.first().copied(), is_complete) else {
        return Vec::new();
    };
    if counts.iter().any(|other| *other != count) {
        return Vec::new();
    }
    let mut absent: Vec<bool> = vec![true; count as usize];
    for shard in shards() {
        absent[shard.index as usize - 1] = false;
    }
    let indices = (1..=count).filter(|index| absent[*index as usize - 1]);
    indices.map(|index| Shard { index, count }).collect()
}

/// Beside the directory of the merged run: on the same file system, and no run until it is renamed.
fn unfinished_path(out: &Path) -> PathBuf {
    out.with_file_name(format!("{}{}", unfinished_name(out), std::process::id()))
}

fn unfinished_name(out: &Path) -> String {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    format!(".merging-{name}-")
}

/// Removes what merges into the same directory left behind when they were killed. One on another machine may still be under way: its
/// files change.
fn remove_abandoned(out: &Path) {
    const LONG: Duration = Duration::from_secs(600);
    let directory = out.parent().filter(|parent| *parent != Path::new(""));
    let entries = std::fs::read_dir(directory.unwrap_or(Path::new(".")));
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(&unfinished_name(out));
        let is_ours = process.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
        let is_quiet = |path: &Path| {
            let changed = std::fs::metadata(path).and_then(|found| found.modified());
            changed.is_ok_and(|time| time.elapsed().is_ok_and(|passed| passed > LONG))
        };
        let files = || std::fs::read_dir(entry.path()).into_iter().flatten();
        if is_ours
            && is_quiet(&entry.path())
            && files().flatten().all(|file| is_quiet(&file.path()))
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Gives the finished directory its name. One that had it is exchanged at once and then removed.
fn put_in_place(finished: &Path, out: &Path) -> Result<(), StoreError> {
    if RunDirectory::is_run(out) {
        exchange(finished, out)?;
        std::fs::remove_dir_all(finished).map_err(io("remove", finished))?;
    } else {
        // An empty directory may be there; any other is not replaced.
        std::fs::rename(finished, out).map_err(io("create", out))?;
    }
    files::sync_directory(
        out.parent()
            .filter(|parent| *parent != Path::new(""))
            .unwrap_or(Path::new(".")),
    )
}

fn exchange(finished: &Path, out: &Path) -> Result<(), StoreError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, finished, CWD, out, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // File systems that cannot: for a moment there is no run of that name, but both are on disk.
        Err(_) => {
            let old = finished.with_extension("old");
            std::fs::rename(out, &old).map_err(io("replace", out))?;
            std::fs::rename(finished, out).map_err(io("replace", out))?;
            std::fs::rename(&old, finished).map_err(io("replace", out))
        }
    }
}
