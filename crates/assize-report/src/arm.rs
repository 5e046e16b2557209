//! The numbers of trials, kept in columns: what is left of a row once it has been read.

use crate::classification::Confusion;
use crate::row::{CATEGORY, Row};
use crate::summary::Nature;
use assize_contracts::Outcome;
use foldhash::fast::FixedState;
use std::collections::{BTreeMap, HashMap};

/// Trials that may be counted together: same suite, mode, model and nature.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) suite: Option<String>,
    pub(crate) mode: String,
    pub(crate) model: String,
    pub(crate) nature: Nature,
    /// By the scenario's place in the list of scenarios.
    pub(crate) cells: BTreeMap<usize, Cell>,
    /// Labels that came out, by the metric that tells them.
    pub(crate) labels: BTreeMap<String, Confusion>,
}

/// The trials of one arm on one scenario. Columns hold one place per judged trial; NaN where nothing was measured.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) void: u64,
    pub(crate) unmeasured: u64,
    pub(crate) unpriced: u64,
    pub(crate) retried: u64,
    pub(crate) success: Vec<bool>,
    pub(crate) censored: Vec<bool>,
    pub(crate) columns: Vec<Vec<f64>>,
    pub(crate) checks: BTreeMap<String, CheckTally>,
    /// Failed and void trials by what went wrong.
    pub(crate) reasons: BTreeMap<String, u64>,
}

/// How often a check held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CheckTally {
    pub(crate) passed: u64,
    pub(crate) made: u64,
}

/// Metric names in the order in which they were first seen; a name's place is its column.
#[derive(Debug, Default)]
pub(crate) struct MetricNames {
    pub(crate) names: Vec<String>,
    places: HashMap<String, usize, FixedState>,
}

impl MetricNames {
    pub(crate) fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }
}

impl Cell {
    pub(crate) fn add(&mut self, row: &Row<'_>, names: &mut MetricNames) {
        for check in &row.checkpoint_details {
            self.count_check(&check.id, check.passed);
        }
        let outcome = row.outcome();
        if outcome != Outcome::Pass {
            self.count_reason(row);
        }
        match outcome {
            Outcome::Void => {
                self.void += 1;
                return;
            }
            Outcome::Pass => self.passed += 1,
            Outcome::Fail => self.failed += 1,
        }
        self.unmeasured += u64::from(row.is_unmeasured());
        self.unpriced += u64::from(row.has_unpriced_tokens());
        self.retried += u64::from(row.was_retried_after_failing());
        let trial = self.success.len();
        self.success.push(outcome == Outcome::Pass);
        self.censored.push(row.is_censored());
        row.for_each_measurement(|name, value| self.set(names.place(name), trial, value));
    }

    /// Tools that were seen, none of which is of a category: that is zero calls, not an unknown number.
    pub(crate) fn fill_categories(&mut self, names: &MetricNames) {
        let Some(total) = names.find("tool_calls_total") else {
            return;
        };
        let categories = names.names.iter().enumerate();
        for (place, _) in categories.filter(|(_, name)| name.starts_with(CATEGORY)) {
            for trial in 0..self.success.len() {
                if self.value(total, trial).is_finite() && self.value(place, trial).is_nan() {
                    self.set(place, trial, 0.0);
                }
            }
        }
    }

    /// What one trial measured; NaN when it did not.
    pub(crate) fn value(&self, place: usize, trial: usize) -> f64 {
        let column = self.columns.get(place);
        column
            .and_then(|column| column.get(trial).copied())
            .unwrap_or(f64::NAN)
    }

    fn set(&mut self, place: usize, trial: usize, value: f64) {
        if self.columns.len() <= place {
            self.columns.resize_with(place + 1, Vec::new);
        }
        let column = &mut self.columns[place];
        if column.len() <= trial {
            column.resize(trial + 1, f64::NAN);
        }
        column[trial] = value;
    }

    fn count_check(&mut self, id: &str, passed: bool) {
        let tally = match self.checks.get_mut(id) {
            Some(tally) => tally,
            None => self.checks.entry(id.to_owned()).or_default(),
        };
        tally.made += 1;
        tally.passed += u64::from(passed);
    }

    fn count_reason(&mut self, row: &Row<'_>) {
        let reason = row.completion_reason.as_ref().map(|reason| &*reason.0);
        let what = match (&row.error_code, reason) {
            (Some(code), _) => &code.0,
            (None, None | Some("stop")) => "checks failed",
            (None, Some(reason)) => reason,
        };
        match self.reasons.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.reasons.insert(what.to_owned(), 1)),
        }
    }
}
