//! New scores in place of old ones. Rows are replaced all at once, so that a reader sees either scoring and never a mixture; the
//! old rows are kept in `superseded.jsonl`, and the manifest records the checks that the run is scored by now.

use super::directory::{RunDirectory, lock, record_ids};
use super::error::{StoreError, io};
use super::files::{AppendFile, sync_directory};
use super::manifest::Manifest;
use super::reader::Lines;
use super::redact::Redactor;
use super::{RunFile, repair};
use crate::rescore::Rescored;
use crate::suite::ProfileSuite;
use assize_contracts::{Catalog, CustomMetric, JsonMap, ProfileRow, ScoreRecord, Timestamp};
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
    _lock: File,
}

const ROWS: &str = "rows.scoring";
const SUPERSEDED: &str = "superseded.scoring";
const NEW_SCORES: &str = "scores.scoring";
const OLD_SCORES: &str = "superseded-scores.scoring";

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
            File::create(&path)
                .map_err(io("create", &path))
                .map(BufWriter::new)
        };
        Ok(Self {
            rows: create(ROWS)?,
            superseded: create(SUPERSEDED)?,
            scores: create(NEW_SCORES)?,
            kept: HashSet::new(),
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
            .write_all(&line(new, redactor))
            .map_err(io("write", &path))?;
        if old != new {
            let path = self.run.join(SUPERSEDED);
            self.superseded
                .write_all(&line(old, redactor))
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
            let written = self.scores.write_all(&line(score, redactor));
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
        let mut away = BufWriter::new(File::create(&old).map_err(io("create", &old))?);
        while let Some(line) = lines.next()? {
            let of_run = serde_json::from_slice::<OfRun>(line);
            match of_run.is_ok_and(|score| self.kept.contains(&score.run_id)) {
                true => self.scores.write_all(line).map_err(io("write", &new))?,
                false => away.write_all(line).map_err(io("write", &old))?,
            }
        }
        away.flush().map_err(io("write", &old))?;
        self.scores.flush().map_err(io("write", &new))?;
        let synced = self.scores.get_ref().sync_data();
        synced.map_err(io("write", &new))
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

    /// Puts the new rows in place. The old ones go into the archive first: a crash in between keeps a row twice rather than
    /// not at all. Rows are what everybody reads; a crash between scores and rows is repaired by scoring again.
    pub(crate) fn commit(
        mut self,
        suite: &ProfileSuite,
        rescored: &Rescored,
    ) -> Result<(), StoreError> {
        let (new, old) = (self.run.join(ROWS), self.run.join(SUPERSEDED));
        self.superseded.flush().map_err(io("write", &old))?;
        append(&old, &RunFile::Superseded.within(&self.run))?;
        self.rows.flush().map_err(io("write", &new))?;
        self.rows.get_ref().sync_data().map_err(io("write", &new))?;
        if RunFile::Scores.within(&self.run).exists() {
            self.sort_old_scores()?;
            let away = RunFile::SupersededScores.within(&self.run);
            append(&self.run.join(OLD_SCORES), &away)?;
            let scores = self.run.join(NEW_SCORES);
            std::fs::rename(&scores, RunFile::Scores.within(&self.run))
                .map_err(io("replace", &scores))?;
        }
        std::fs::rename(&new, RunFile::Rows.within(&self.run)).map_err(io("replace", &new))?;
        sync_directory(&self.run)?;
        // Where something of a task itself is new, the tasks are no longer those of the run.
        let tasks = suite.tasks.as_ref().filter(|_| rescored.lost.is_empty());
        let tasks = tasks.map(|tasks| &tasks.record);
        self.manifest.set_metrics(std::mem::take(&mut self.catalog));
        self.manifest.score_by(&suite.description, tasks);
        note(&mut self.manifest.provenance, rescored);
        self.manifest.write(&self.run)
    }
}

impl Drop for Scoring {
    fn drop(&mut self) {
        for name in [ROWS, SUPERSEDED, NEW_SCORES, OLD_SCORES] {
            let _ = std::fs::remove_file(self.run.join(name));
        }
    }
}

/// A record as a line.
fn line(record: &impl Serialize, redactor: &Redactor) -> Vec<u8> {
    let json = serde_json::to_vec(record).expect("records are plain data");
    let mut line = redactor.redact(&json).into_owned();
    line.push(b'\n');
    line
}

/// Adds a file to another, piece by piece.
fn append(from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut file = File::open(from).map_err(io("read", from))?;
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
