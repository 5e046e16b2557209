//! New scores in place of old ones. Rows are replaced all at once, so that a reader sees either scoring and never a mixture; the
//! old rows are kept in `superseded.jsonl`, and the manifest says by what the run is scored now.

use super::directory::{RunDirectory, lock, record_ids};
use super::error::{StoreError, io};
use super::files::{AppendFile, sync_directory};
use super::manifest::Manifest;
use super::redact::Redactor;
use super::repair;
use crate::rescore::Rescored;
use assize_contracts::{CustomMetric, JsonMap, ProfileRow, Timestamp};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// A scoring under way. Dropped without a commit, it leaves the run as it was.
pub(crate) struct Scoring {
    run: PathBuf,
    manifest: Manifest,
    rows: BufWriter<File>,
    superseded: BufWriter<File>,
    _lock: File,
}

const ROWS: &str = "rows.scoring";
const SUPERSEDED: &str = "superseded.scoring";

impl Scoring {
    /// Locks the run. Its rows may have been opened before: nobody else can have changed them.
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
            run: path,
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
        let line = |row: &ProfileRow| {
            let json = serde_json::to_vec(row).expect("a row is plain data");
            let mut line = redactor.redact(&json).into_owned();
            line.push(b'\n');
            line
        };
        let path = self.run.join(ROWS);
        self.rows
            .write_all(&line(new))
            .map_err(io("write", &path))?;
        if old != new {
            let path = self.run.join(SUPERSEDED);
            self.superseded
                .write_all(&line(old))
                .map_err(io("write", &path))?;
        }
        Ok(())
    }

    /// Units of metrics that come with the scores.
    pub(crate) fn learn_units(&mut self, metrics: &[CustomMetric]) {
        for metric in metrics {
            let units = &mut self.manifest.metric_units;
            units.insert(metric.name.clone(), metric.unit.to_string());
        }
    }

    /// Puts the new rows in place. The old ones go into the archive first: a crash in between keeps a row twice rather than
    /// not at all.
    pub(crate) fn commit(mut self, suite: &JsonMap, rescored: &Rescored) -> Result<(), StoreError> {
        let (new, old) = (self.run.join(ROWS), self.run.join(SUPERSEDED));
        self.superseded.flush().map_err(io("write", &old))?;
        let superseded = std::fs::read(&old).map_err(io("read", &old))?;
        let mut archive = AppendFile::new(self.run.join("superseded.jsonl"));
        archive.append(&superseded)?;
        archive.sync()?;
        self.rows.flush().map_err(io("write", &new))?;
        self.rows.get_ref().sync_data().map_err(io("write", &new))?;
        std::fs::rename(&new, self.run.join("rows.jsonl")).map_err(io("replace", &new))?;
        sync_directory(&self.run)?;
        self.manifest.score_by(suite);
        note(&mut self.manifest.provenance, rescored);
        self.manifest.write(&self.run)
    }
}

impl Drop for Scoring {
    fn drop(&mut self) {
        for name in [ROWS, SUPERSEDED] {
            let _ = std::fs::remove_file(self.run.join(name));
        }
    }
}

/// When the run was scored again, and what came of it.
fn note(provenance: &mut JsonMap, rescored: &Rescored) {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let scorings = provenance.entry("scoredAgain").or_insert_with(|| json!([]));
    if let Value::Array(scorings) = scorings {
        scorings.push(json!({
            "at": Timestamp::from_unix_ms(since_1970.as_millis() as i64),
            "assizeVersion": env!("CARGO_PKG_VERSION"),
            "scored": rescored.scored,
            "changed": rescored.changed.values().sum::<u64>(),
            "notScored": rescored.lost,
            "asBefore": rescored.kept,
        }));
    }
}
