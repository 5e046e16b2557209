//! Rows go in one at a time, a summary comes out. Memory grows with the numbers, never with the text of rows.

use crate::arm::{AllNames, Arm, Ids};
use crate::judge::JudgeTally;
use crate::looks::DriftTally;
use crate::{Analysis, ReportError, Row, RowBytes, Summary, read_rows, summary};
use assize_contracts::{Catalog, Outcome};
use foldhash::fast::FixedState;
use foldhash::quality;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::BufRead;

/// Collects trials of any number of runs.
#[derive(Debug, Default)]
pub struct SummaryBuilder {
    pub(crate) arms: Vec<Arm>,
    pub(crate) scenarios: Ids,
    /// By a hash of the scenario's id: the ids themselves are kept once.
    places: HashMap<u32, u32, FixedState>,
    pub(crate) names: AllNames,
    pub(crate) extensions: BTreeSet<String>,
    /// A hash of the names of the last row's extensions.
    last_extensions: Option<u64>,
    seen: SeenCells,
    pub(crate) judge: JudgeTally,
    pub(crate) drift: DriftTally,
    pub(crate) duplicates: u64,
    pub(crate) torn: u64,
    pub(crate) has_old_trials: bool,
    pub(crate) has_current_trials: bool,
    /// Old trials lost their changed metrics to current ones.
    pub(crate) has_mixed_versions: bool,
    /// The values of metrics that changed their meaning were left out.
    pub(crate) has_forgotten_metrics: bool,
}

impl SummaryBuilder {
    /// Adds what a run says about its metrics. Call it before the rows are read; of two meanings of one name the first counts.
    pub fn add_catalog(&mut self, catalog: &Catalog) {
        self.names.catalog.merge(catalog);
    }

    /// Adds every row of a reader; `suite` distinguishes suites whose rows must not be mixed.
    pub fn read(&mut self, reader: impl BufRead, suite: Option<&str>) -> Result<(), ReportError> {
        read_rows(reader, |bytes| self.add_bytes(bytes, suite).map(drop))
    }

    /// Adds only the rows of one mode, under another name: to compare it with itself in another run.
    pub fn read_mode_as(
        &mut self,
        reader: impl BufRead,
        mode: &str,
        name: &str,
    ) -> Result<(), ReportError> {
        read_rows(reader, |bytes| match Row::parse_without_calls(bytes.json) {
            Ok(row) if row.mode != mode => Ok(()),
            Ok(mut row) => {
                row.mode = name.into();
                self.add(&row, None);
                Ok(())
            }
            Err(_) => self.add_bytes(bytes, None).map(drop),
        })
    }

    /// Adds a row in the form of its file. True if it counts.
    pub fn add_bytes(
        &mut self,
        bytes: RowBytes<'_>,
        suite: Option<&str>,
    ) -> Result<bool, ReportError> {
        match Row::parse_without_calls(bytes.json) {
            Ok(row) => Ok(self.add(&row, suite)),
            Err(_) if bytes.may_be_torn => {
                self.torn += 1;
                Ok(false)
            }
            Err(error) => Err(ReportError::Row {
                number: bytes.number,
                reason: error.to_string(),
            }),
        }
    }

    /// Adds one trial. A second row of the same cell is counted as a duplicate and otherwise ignored.
    pub fn add(&mut self, row: &Row<'_>, suite: Option<&str>) -> bool {
        if !self.seen.is_new(row, suite) {
            self.duplicates += 1;
            return false;
        }
        self.note_version(row);
        self.judge.add(row, &self.names.catalog);
        self.note_extensions(row);
        let scenario = self.scenario(&row.scenario_id);
        let arm = self.arm(row, suite);
        self.drift.add(row, arm, scenario);
        let cells = &mut self.arms[arm].cells;
        cells.add(scenario, row, &mut self.names);
        if row.outcome() != Outcome::Void {
            let labels = &mut self.arms[arm].labels;
            row.for_each_label(|name, expected, actual| {
                let confusion = labels.entry(name.to_owned()).or_default();
                confusion.add(expected, actual);
            });
            let texts = &mut self.arms[arm].texts;
            row.for_each_text(|name, text| match texts.get_mut(name) {
                Some(counts) => counts.add(text),
                None => texts.entry(name.to_owned()).or_default().add(text),
            });
        }
        true
    }

    /// Most rows have the extensions of the one before.
    fn note_extensions(&mut self, row: &Row<'_>) {
        let mut hasher = FixedState::default().build_hasher();
        row.extension_names()
            .for_each(|name| name.hash(&mut hasher));
        let names = hasher.finish();
        if self.last_extensions == Some(names) {
            return;
        }
        self.last_extensions = Some(names);
        for name in row.extension_names() {
            if !self.extensions.contains(name) {
                self.extensions.insert(name.to_owned());
            }
        }
    }

    /// Everything that follows from the rows.
    pub fn finish(self, analysis: &Analysis) -> Result<Summary, ReportError> {
        let mut summaries = summary::summarize(vec![(self, analysis)])?;
        Ok(summaries.remove(0))
    }

    /// The same for several sets of rows whose comparisons belong to one report: their p-values are adjusted together.
    pub fn finish_together(trials: Vec<(Self, &Analysis)>) -> Result<Vec<Summary>, ReportError> {
        summary::summarize(trials)
    }

    /// The trials that were added.
    pub fn trials(&self) -> u64 {
        let cells = self.arms.iter().flat_map(|arm| arm.cells.values());
        cells.map(|cell| cell.all_trials()).sum()
    }

    /// Drops what only further rows would need: of a million it is much.
    pub(crate) fn forget_lookups(&mut self) {
        self.seen = SeenCells::default();
        self.places = HashMap::default();
    }

    fn scenario(&mut self, id: &str) -> usize {
        let mut hash = FixedState::default().hash_one(id) as u32;
        // Another id has the same hash; the next number is tried.
        while let Some(place) = self.places.get(&hash) {
            let place = *place as usize;
            if self.scenarios[place] == *id {
                return place;
            }
            hash = hash.wrapping_add(1);
        }
        self.places.insert(hash, self.scenarios.len() as u32);
        self.scenarios.push(id);
        self.scenarios.len() - 1
    }

    fn arm(&mut self, row: &Row<'_>, suite: Option<&str>) -> usize {
        let nature = row.nature();
        let is_same = |arm: &Arm| {
            arm.mode == row.mode
                && arm.model == row.model
                && arm.nature == nature
                && arm.suite.as_deref() == suite
        };
        self.arms.iter().position(is_same).unwrap_or_else(|| {
            self.arms.push(Arm {
                suite: suite.map(str::to_owned),
                mode: row.mode.clone().into_owned(),
                model: row.model.clone().into_owned(),
                nature,
                order: self.arms.len() as u32,
                cells: Default::default(),
                labels: Default::default(),
                texts: Default::default(),
            });
            self.arms.len() - 1
        })
    }
}

/// The trials met so far, so that none counts twice.
#[derive(Debug, Default)]
pub struct SeenCells(HashSet<u64, FixedState>);

impl SeenCells {
    /// True when the row is the first one of its cell.
    pub fn is_new(&mut self, row: &Row<'_>, suite: Option<&str>) -> bool {
        self.0.insert(fingerprint(row, suite))
    }
}

/// Identifies a trial in 64 bits: a clash among a million rows is as likely as one in 30 million.
fn fingerprint(row: &Row<'_>, suite: Option<&str>) -> u64 {
    quality::FixedState::default().hash_one((
        suite,
        &row.run_id,
        &row.scenario_id,
        &row.mode,
        &row.model,
        row.iteration,
    ))
}
