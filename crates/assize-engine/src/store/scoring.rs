//! New scores in place of old ones. Everything is replaced by one commit, so that a reader sees either scoring and never a mixture; the
//! old rows are kept in `superseded.jsonl`, and the manifest records the checks that the run is scored by now.

use super::directory::{RunDirectory, lock, record_ids};
use super::error::{StoreError, io};
use super::files::{self, AppendFile, sync_directory};
use super::manifest::Manifest;
use super::outside::{Outside, write_clean};
use super::reader::Lines;
use super::{RunFile, repair};
use crate::rescore::Rescored;
use crate::suite::ProfileSuite;
use assize_contracts::{Catalog, CustomMetric, JsonMap, ProfileRow, ScoreRecord, Timestamp};
use assize_secrets::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// A scoring under way. Dropped without a commit, it leaves the run as it was.
pub(crate) struct Scoring {
    run: PathBuf,
    catalog: Catalog,
    manifest: Manifest,
    rows: BufWriter<File>,
    superseded: BufWriter<File>,
    /// New scores of tasks.
    scores: BufWriter<File>,
    /// Run records whose scores are as before.
    kept: HashSet<String>,
    is_committed: bool,
    _lock: File,
}

const ROWS: &str = "rows.scoring";
const SUPERSEDED: &str = "superseded.scoring";
const NEW_SCORES: &str = "scores.scoring";
const OLD_SCORES: &str = "superseded-scores.scoring";
const COMMIT: &str = "scoring.commit";

/// A line that is put back or away unread.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfRun {
    run_id: String,
}

impl Scoring {
    /// Locks the run. Its rows may have been opened before: no other process can have changed them.
    pub(crate) fn start(run: RunDirectory) -> Result<Self, StoreError> {
        let (path, manifest) = run.into_parts();
        let lock = lock(&path, &manifest.run_id)?;
        repair(&path, record_ids(&manifest))?;
        let create = |name: &str| {
            let path = path.join(name);
            files::create(&path).map(BufWriter::new)
        };
        Ok(Self {
            rows: create(ROWS)?,
            superseded: create(SUPERSEDED)?,
            scores: create(NEW_SCORES)?,
            kept: HashSet::new(),
            is_committed: false,
            run: path,
            catalog: manifest.catalog(),
            manifest,
            _lock: lock,
        })
    }

    /// A trial with its new score.
    pub(crate) fn add(
        &mut self,
        old: &ProfileRow,
        new: &ProfileRow,
        redactor: &Redactor,
    ) -> Result<(), StoreError> {
        let path = self.run.join(ROWS);
        self.rows
            .write_all(&line(new.clone(), redactor))
            .map_err(io("write", &path))?;
        if old != new {
            let path = self.run.join(SUPERSEDED);
            self.superseded
                .write_all(&line(old.clone(), redactor))
                .map_err(io("write", &path))?;
        }
        Ok(())
    }

    /// The new scores of a task's trial.
    pub(crate) fn add_scores(
        &mut self,
        scores: &[ScoreRecord],
        redactor: &Redactor,
    ) -> Result<(), StoreError> {
        let path = self.run.join(NEW_SCORES);
        for score in scores {
            let written = self.scores.write_all(&line(score.clone(), redactor));
            written.map_err(io("write", &path))?;
        }
        Ok(())
    }

    /// The scores of this trial, if it has any, stay as they are.
    pub(crate) fn keep_scores(&mut self, row: &ProfileRow) {
        self.kept.extend(row.session_id.clone());
    }

    /// Puts the old scores where they belong: among the new ones, or out of the way.
    fn sort_old_scores(&mut self) -> Result<(), StoreError> {
        let (new, old) = (self.run.join(NEW_SCORES), self.run.join(OLD_SCORES));
        let mut lines = Lines::open(&RunFile::Scores.within(&self.run))?;
        let mut away = BufWriter::new(files::create(&old)?);
        while let Some(line) = lines.next()? {
            let of_run = serde_json::from_slice::<OfRun>(line);
            match of_run.is_ok_and(|score| self.kept.contains(&score.run_id)) {
                true => self.scores.write_all(line).map_err(io("write", &new))?,
                false => away.write_all(line).map_err(io("write", &old))?,
            }
        }
        away.flush().map_err(io("write", &old))?;
        let synced = away.get_ref().sync_data();
        synced.map_err(io("write", &old))
    }

    /// The metrics of the run so far.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Adds metrics that come with the scores.
    pub(crate) fn add_metrics(&mut self, found: &[CustomMetric]) {
        for metric in found {
            self.catalog.insert(metric.into());
        }
    }

    /// Puts the new rows, scores and manifest in place. Everything is on disk under other names before the one file is written
    /// that makes the scoring count; from then on whoever opens the run completes it.
    pub(crate) fn commit(
        mut self,
        suite: &ProfileSuite,
        rescored: &Rescored,
    ) -> Result<(), StoreError> {
        if RunFile::Scores.within(&self.run).exists() {
            self.sort_old_scores()?;
        }
        for (file, name) in [
            (&mut self.superseded, SUPERSEDED),
            (&mut self.rows, ROWS),
            (&mut self.scores, NEW_SCORES),
        ] {
            let path = self.run.join(name);
            file.flush().map_err(io("write", &path))?;
            file.get_ref().sync_data().map_err(io("write", &path))?;
        }
        // Where something of a task itself is new, the tasks are no longer those of the run.
        let tasks = suite.tasks.as_ref().filter(|_| rescored.lost.is_empty());
        let tasks = tasks.map(|tasks| &tasks.record);
        self.manifest.set_metrics(std::mem::take(&mut self.catalog));
        self.manifest.score_by(&suite.description, tasks);
        note(&mut self.manifest.provenance, rescored);
        let length = |file: RunFile| {
            std::fs::metadata(file.within(&self.run)).map_or(0, |metadata| metadata.len())
        };
        let commit = Commit {
            manifest: self.manifest.clone(),
            superseded: length(RunFile::Superseded),
            superseded_scores: length(RunFile::SupersededScores),
        };
        let commit = serde_json::to_vec(&commit).expect("a commit is plain data");
        files::replace(&self.run.join(COMMIT), &commit)?;
        self.is_committed = true;
        put_in_place(&self.run)
    }
}

/// A committed scoring. The lengths of the archives make it safe to complete it twice.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Commit {
    manifest: Manifest,
    superseded: u64,
    superseded_scores: u64,
}

/// Completes a scoring that was killed after its commit, and forgets one that was killed before.
pub(super) fn complete(run: &Path) -> Result<(), StoreError> {
    if !run.join(COMMIT).exists() {
        return Ok(());
    }
    let id = run.file_name().unwrap_or_default().to_string_lossy();
    let _lock = lock(run, &id)?;
    put_in_place(run)
}

fn put_in_place(run: &Path) -> Result<(), StoreError> {
    let path = run.join(COMMIT);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        // Another process completed it meanwhile.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("read", &path)(error)),
    };
    let commit: Commit = serde_json::from_slice(&text).map_err(|error| StoreError::Corrupt {
        path: path.clone(),
        line: 1,
        expected: "scoring to complete",
        reason: error.to_string(),
    })?;
    for (from, to, length) in [
        (SUPERSEDED, RunFile::Superseded, commit.superseded),
        (
            OLD_SCORES,
            RunFile::SupersededScores,
            commit.superseded_scores,
        ),
    ] {
        append_at(&run.join(from), &to.within(run), length)?;
    }
    let scores = RunFile::Scores.within(run);
    if scores.exists() {
        put(&run.join(NEW_SCORES), &scores)?;
    }
    put(&run.join(ROWS), &RunFile::Rows.within(run))?;
    sync_directory(run)?;
    commit.manifest.write(run)?;
    std::fs::remove_file(&path).map_err(io("remove", &path))?;
    remove_drafts(run);
    sync_directory(run)
}

/// Gives a file its final name, unless that was done before.
fn put(from: &Path, to: &Path) -> Result<(), StoreError> {
    match from.exists() {
        true => std::fs::rename(from, to).map_err(io("replace", from)),
        false => Ok(()),
    }
}

fn remove_drafts(run: &Path) {
    for name in [ROWS, SUPERSEDED, NEW_SCORES, OLD_SCORES] {
        let _ = std::fs::remove_file(run.join(name));
    }
}

impl Drop for Scoring {
    fn drop(&mut self) {
        // After the commit the drafts are what is to be put in place.
        if !self.is_committed {
            remove_drafts(&self.run);
        }
    }
}

/// A record as a line.
fn line<T: Serialize + Outside>(mut record: T, redactor: &Redactor) -> Vec<u8> {
    let mut line = Vec::new();
    write_clean(&mut line, &mut record, redactor);
    line.push(b'\n');
    line
}

/// Appends a file to another that had this length, piece by piece. Bytes that an interrupted try appended are cut first.
fn append_at(from: &Path, to: &Path, length: u64) -> Result<(), StoreError> {
    let Ok(mut file) = File::open(from) else {
        return Ok(());
    };
    if let Ok(archive) = File::options().write(true).open(to) {
        archive.set_len(length).map_err(io("write", to))?;
    }
    let mut archive = AppendFile::new(to.to_owned());
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece).map_err(io("read", from))? {
            0 => return archive.sync(),
            length => archive.append(&piece[..length])?,
        }
    }
}

/// Time and result of scoring a run again.
fn note(provenance: &mut JsonMap, rescored: &Rescored) {
    let scorings = provenance.entry("scoredAgain").or_insert_with(|| json!([]));
    if let Value::Array(scorings) = scorings {
        scorings.push(json!({
            "at": Timestamp::now(),
            "assizeVersion": env!("CARGO_PKG_VERSION"),
            "scored": rescored.scored,
            "changed": rescored.changed.values().sum::<u64>(),
            "notScored": rescored.lost,
            "asBefore": rescored.kept,
        }));
    }
}
