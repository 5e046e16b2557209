//! Decides which runs are parts of one plan, and explains why others are not.

use super::super::manifest::Manifest;
use super::{RunDirectory, StoreError};
use crate::shard::Shard;
use assize_contracts::{Catalog, Reading, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

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
        let mut reference: Option<(Manifest, PathBuf, String)> = None;
        let mut readings: Vec<Reading> = Vec::new();
        let mut sources: Vec<Source> = Vec::new();
        let mut metrics = Catalog::default();
        let mut facts = Facts::default();
        let mut seen = BTreeSet::new();
        for path in directories {
            // The same directory may be given twice, by different names.
            if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                continue;
            }
            let run = RunDirectory::open(path)?;
            let manifest = run.manifest();
            let fingerprint = manifest.plan_fingerprint();
            match &reference {
                Some((first, first_path, expected)) if *expected != fingerprint => {
                    return Err(StoreError::Unrelated {
                        first: first_path.clone(),
                        other: path.clone(),
                        differences: first.plan_differences(manifest),
                    });
                }
                Some(_) => {}
                None => reference = Some((manifest.clone(), path.clone(), fingerprint)),
            }
            let reading = manifest.reading()?;
            if let (Some((_, first, _)), Some(before)) = (&reference, readings.first())
                && before.until != reading.until
            {
                let changed = "`execution.until` differs, which is declared before the first trial and cannot change";
                return Err(StoreError::Unrelated {
                    first: first.clone(),
                    other: path.clone(),
                    differences: vec![changed.to_owned()],
                });
            }
            if !readings.contains(&reading) {
                readings.push(reading);
            }
            for metric in manifest.catalog().iter() {
                if !metrics.contains(&metric.name) {
                    metrics.insert(metric.clone());
                }
            }
            facts.note(manifest);
            sources.push(Source {
                path: path.clone(),
                run_id: manifest.run_id.clone(),
                shard: manifest.shard.as_ref().map(|record| record.shard),
                round: manifest
                    .shard
                    .as_ref()
                    .and_then(|record| record.round.as_ref())
                    .map(|round| round.number),
                planned: manifest.planned(),
                created_at: manifest.created_at.clone(),
            });
        }
        let Some((mut reference, ..)) = reference else {
            return Err(StoreError::NothingToMerge);
        };
        let mut remarks = facts.remarks();
        remarks.extend(Self::settle_readings(&mut reference, readings)?);
        sources.sort_by(|a, b| {
            let key = |source: &Source| {
                let created_at = source.created_at.as_str().to_owned();
                (source.round, source.shard, created_at)
            };
            key(a).cmp(&key(b)).then_with(|| a.run_id.cmp(&b.run_id))
        });
        let created = sources.iter().map(|source| &source.created_at);
        let earliest = created.min_by(|a, b| a.as_str().cmp(b.as_str()));
        Ok(Self {
            created_at: earliest.cloned().unwrap_or_else(Timestamp::now),
            reference,
            sources,
            metrics,
            remarks,
        })
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
