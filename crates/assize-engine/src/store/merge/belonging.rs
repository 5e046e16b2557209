//! Decides which runs are parts of one plan, and explains why others are not.

use super::super::manifest::Manifest;
use super::{RunDirectory, StoreError};
use crate::shard::Shard;
use assize_contracts::{Catalog, Reading, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Runs of one plan.
pub(super) struct Family {
    /// The first manifest; what all have in common is read from it.
    pub(super) reference: Manifest,
    /// By round and shard.
    pub(super) sources: Vec<Source>,
    pub(super) created_at: Timestamp,
    pub(super) metrics: Catalog,
    pub(super) remarks: Vec<String>,
}

/// The part of a manifest that is kept of every run: a thousand whole ones would not be.
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) run_id: String,
    pub(super) shard: Option<Shard>,
    pub(super) round: Option<u32>,
    pub(super) planned: u64,
    created_at: Timestamp,
}

/// Facts that should be the same everywhere, but do not keep runs apart: the values found, each with the first run that has it.
#[derive(Default)]
struct Facts(BTreeMap<String, BTreeMap<String, String>>);

impl Family {
    /// Reads the manifests and refuses runs that do not belong together.
    pub(super) fn of(directories: &[PathBuf]) -> Result<Self, StoreError> {
        let mut gathered = Gathered::default();
        let mut seen = BTreeSet::new();
        for path in directories {
            // The same directory may be given twice, by different names.
            if seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                gathered.add(path)?;
            }
        }
        gathered.family()
    }

    /// The last reading counts, as in a run that is resumed; all tables of prices stay named.
    fn settle_readings(
        reference: &mut Manifest,
        readings: Vec<Reading>,
    ) -> Result<Option<String>, StoreError> {
        let without_prices = |reading: &Reading| Reading {
            prices: Vec::new(),
            ..reading.clone()
        };
        let differ = readings
            .windows(2)
            .any(|pair| without_prices(&pair[0]) != without_prices(&pair[1]));
        for reading in readings.into_iter().skip(1) {
            reference.read_as(reading)?;
        }
        Ok(differ.then(|| {
            "the runs differ in how they are to be read (analysis or gates); the last one counts"
                .to_owned()
        }))
    }
}

/// The runs so far.
#[derive(Default)]
struct Gathered {
    first: Option<First>,
    readings: Vec<Reading>,
    sources: Vec<Source>,
    metrics: Catalog,
    facts: Facts,
}

/// The run that others are compared with.
struct First {
    manifest: Manifest,
    path: PathBuf,
    fingerprint: String,
}

impl Gathered {
    fn add(&mut self, path: &Path) -> Result<(), StoreError> {
        let run = RunDirectory::open(path)?;
        let manifest = run.manifest();
        let fingerprint = manifest.plan_fingerprint();
        let first = self.first.get_or_insert_with(|| First {
            manifest: manifest.clone(),
            path: path.to_owned(),
            fingerprint: fingerprint.clone(),
        });
        let unrelated = |differences| StoreError::Unrelated {
            first: first.path.clone(),
            other: path.to_owned(),
            differences,
        };
        if first.fingerprint != fingerprint {
            return Err(unrelated(first.manifest.plan_differences(manifest)));
        }
        let reading = manifest.reading()?;
        if let Some(before) = self.readings.first()
            && before.until != reading.until
        {
            let changed = "`execution.until` differs, which is declared before the first trial and cannot change";
            return Err(unrelated(vec![changed.to_owned()]));
        }
        if !self.readings.contains(&reading) {
            self.readings.push(reading);
        }
        for metric in manifest.catalog().iter() {
            if !self.metrics.contains(&metric.name) {
                self.metrics.insert(metric.clone());
            }
        }
        self.facts.note(manifest);
        self.sources.push(Source::of(path, manifest));
        Ok(())
    }

    fn family(mut self) -> Result<Family, StoreError> {
        let Some(First { mut manifest, .. }) = self.first else {
            return Err(StoreError::NothingToMerge);
        };
        let mut remarks = self.facts.remarks();
        remarks.extend(Family::settle_readings(&mut manifest, self.readings)?);
        self.sources.sort_by(|a, b| {
            let key = |source: &Source| {
                let created_at = source.created_at.as_str().to_owned();
                (source.round, source.shard, created_at)
            };
            key(a).cmp(&key(b)).then_with(|| a.run_id.cmp(&b.run_id))
        });
        let created = self.sources.iter().map(|source| &source.created_at);
        let earliest = created.min_by(|a, b| a.as_str().cmp(b.as_str()));
        Ok(Family {
            created_at: earliest.cloned().unwrap_or_else(Timestamp::now),
            reference: manifest,
            sources: self.sources,
            metrics: self.metrics,
            remarks,
        })
    }
}

impl Source {
    fn of(path: &Path, manifest: &Manifest) -> Self {
        let shard = manifest.shard.as_ref();
        let round = shard.and_then(|record| record.round.as_ref());
        Self {
            path: path.to_owned(),
            run_id: manifest.run_id.clone(),
            shard: shard.map(|record| record.shard),
            round: round.map(|round| round.number),
            planned: manifest.planned(),
            created_at: manifest.created_at.clone(),
        }
    }
}

impl Facts {
    fn note(&mut self, manifest: &Manifest) {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut add = |fact: String, value: String| {
            let values = self.0.entry(fact).or_default();
            values
                .entry(value)
                .or_insert_with(|| manifest.run_id.clone());
        };
        add("Assize".to_owned(), manifest.assize_version.clone());
        for key in ["os", "arch"] {
            if let Some(value) = manifest.provenance.get(key) {
                add(key.to_owned(), text(value));
            }
        }
        let git = manifest.provenance.get("git");
        if let Some(commit) = git.and_then(|git| git.get("commit")) {
            add("the commit".to_owned(), text(commit));
        }
        let agents = manifest.provenance.get("agents").and_then(Value::as_object);
        for (agent, version) in agents.into_iter().flatten() {
            add(format!("agent `{agent}`"), text(version));
        }
    }

    fn remarks(&self) -> Vec<String> {
        let differing = self.0.iter().filter(|(_, values)| values.len() > 1);
        let in_words = |(fact, values): (&String, &BTreeMap<String, String>)| {
            let values: Vec<String> = values
                .iter()
                .take(4)
                .map(|(value, run)| format!("{value} (run {run})"))
                .collect();
            format!("{fact} is not the same everywhere: {}", values.join(", "))
        };
        differing.map(in_words).collect()
    }
}
