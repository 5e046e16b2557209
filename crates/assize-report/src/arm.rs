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
    columns: Columns,
    /// By the place of the check's id among the words of all trials.
    pub(crate) checks: Vec<(usize, CheckTally)>,
    /// Failed and void trials by the place of what went wrong among the words.
    pub(crate) reasons: Vec<(usize, u64)>,
}

/// What trials measured, by metric. In large suites most cells hold one trial, for which a list per metric would be most of
/// the memory.
#[derive(Debug)]
enum Columns {
    One(Vec<f64>),
    Several(Vec<Vec<f64>>),
}

impl Default for Columns {
    fn default() -> Self {
        Self::One(Vec::new())
    }
}

/// How often a check held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CheckTally {
    pub(crate) passed: u64,
    pub(crate) made: u64,
}

/// Names in the order in which they were first seen. The place of a metric's name is its column.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) names: Vec<String>,
    places: HashMap<String, usize, FixedState>,
}

impl Names {
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
    /// Adds a trial. `words` are what checks and reasons are called.
    pub(crate) fn add(&mut self, row: &Row<'_>, metrics: &mut Names, words: &mut Names) {
        for check in &row.checkpoint_details {
            let tally = counted(&mut self.checks, words.place(&check.id));
            tally.made += 1;
            tally.passed += u64::from(check.passed);
        }
        let outcome = row.outcome();
        if outcome != Outcome::Pass {
            *counted(&mut self.reasons, words.place(reason(row))) += 1;
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
        row.for_each_measurement(|name, value| self.set(metrics.place(name), trial, value));
    }

    /// Tools that were seen, none of which is of a category: that is zero calls, not an unknown number.
    pub(crate) fn fill_categories(&mut self, names: &Names) {
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
        let value = match &self.columns {
            Columns::One(values) => values.get(place).filter(|_| trial == 0),
            Columns::Several(columns) => columns.get(place).and_then(|column| column.get(trial)),
        };
        value.copied().unwrap_or(f64::NAN)
    }

    /// Forgets which trial measured what, and where nothing was measured.
    pub(crate) fn keep_measurements(&mut self) {
        if let Columns::Several(columns) = &mut self.columns {
            for column in columns {
                column.retain(|value| value.is_finite());
            }
        }
    }

    /// What was measured of a metric, once only that is kept.
    pub(crate) fn measurements(&self, place: usize) -> &[f64] {
        match &self.columns {
            Columns::One(values) => match values.get(place) {
                Some(value) if value.is_finite() => std::slice::from_ref(value),
                _ => &[],
            },
            Columns::Several(columns) => columns.get(place).map_or(&[], Vec::as_slice),
        }
    }

    fn set(&mut self, place: usize, trial: usize, value: f64) {
        match &mut self.columns {
            Columns::One(values) if trial == 0 => put(values, place, value),
            Columns::One(values) => {
                let lists = values.iter().map(|value| vec![*value]);
                self.columns = Columns::Several(lists.collect());
                self.set(place, trial, value);
            }
            Columns::Several(columns) => {
                if columns.len() <= place {
                    columns.resize_with(place + 1, Vec::new);
                }
                put(&mut columns[place], trial, value);
            }
        }
    }
}

/// Puts a value in its place; those before it that are not there yet were not measured.
fn put(values: &mut Vec<f64>, place: usize, value: f64) {
    if values.len() <= place {
        values.resize(place + 1, f64::NAN);
    }
    values[place] = value;
}

/// The count at a place, which begins with nothing. There are few in a cell.
fn counted<T: Default>(counts: &mut Vec<(usize, T)>, place: usize) -> &mut T {
    let known = counts.iter().position(|(known, _)| *known == place);
    let known = known.unwrap_or_else(|| {
        counts.push((place, T::default()));
        counts.len() - 1
    });
    &mut counts[known].1
}

/// Why a trial did not pass, as a word.
fn reason<'a>(row: &'a Row<'_>) -> &'a str {
    let completion = row.completion_reason.as_ref().map(|reason| &*reason.0);
    match (&row.error_code, completion) {
        (Some(code), _) => &code.0,
        (None, None | Some("stop")) => "checks failed",
        (None, Some(reason)) => reason,
    }
}
