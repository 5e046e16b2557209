//! The numbers of trials, kept in columns: what is left of a row once it has been read.

use crate::TextCounts;
use crate::classification::Confusion;
use crate::row::Row;
use assize_contracts::Nature;
use assize_contracts::{Catalog, MetricKind, Outcome, RowField};
use foldhash::fast::FixedState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;

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
    /// Other texts, by the metric that tells them.
    pub(crate) texts: BTreeMap<String, TextCounts>,
}

/// The trials of one arm on one scenario. Columns hold one place per judged trial; NaN where nothing was measured.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// All void trials.
    pub(crate) void: u64,
    /// Those of them whose cause cannot depend on the mode.
    pub(crate) void_unrelated: u64,
    pub(crate) unmeasured: u64,
    pub(crate) unpriced: u64,
    pub(crate) retried: u64,
    /// Judged trials whose numbers are only the agent's claims.
    pub(crate) not_captured: u64,
    /// Judged trials whose tokens are part of a subscription.
    pub(crate) subscription: u64,
    /// Passed trials without a single check.
    pub(crate) unchecked: u64,
    /// Trials that a scorer failed without telling a check: it looks at something all the same.
    pub(crate) failed_unchecked: u64,
    pub(crate) success: Vec<bool>,
    pub(crate) censored: Vec<bool>,
    /// Trials of the first version of rows.
    pub(crate) old: Vec<bool>,
    columns: Columns,
    /// What is known as a lower bound only. It is no measurement: only comparisons that know lower bounds use it.
    lower_bounds: Vec<LowerBound>,
    /// Metrics with lower bounds among their values, once only measurements are kept.
    bounded: Vec<BoundedColumn>,
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

/// The least that a trial took of a metric.
#[derive(Debug, Clone, Copy)]
struct LowerBound {
    place: usize,
    trial: usize,
    value: f64,
}

/// The values of a metric, some of which are lower bounds.
#[derive(Debug)]
struct BoundedColumn {
    place: usize,
    values: Vec<f64>,
    cut: Vec<bool>,
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

/// The names that trials use.
#[derive(Debug, Default)]
pub(crate) struct AllNames {
    /// The meaning of the metrics.
    pub(crate) catalog: Catalog,
    pub(crate) metrics: Names,
    /// Names of checks and reasons.
    pub(crate) words: Names,
    pub(crate) extent: Extent,
}

/// How many metrics there are that are not built in. Agents choose the names of tools and plugins those of metrics, so that there may
/// be any number.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    tools: usize,
    others: usize,
    /// Hashes of the names that are too many.
    left_out: HashSet<u64, FixedState>,
}

/// Categories of tools beyond these are left out.
const MOST_TOOLS: usize = 200;

/// Metrics of plugins beyond these are left out.
const MOST_METRICS: usize = 1_000;

impl Extent {
    /// The column of a metric. Absent when there are too many.
    fn column(&mut self, name: &str, catalog: &Catalog, metrics: &mut Names) -> Option<usize> {
        if let Some(place) = metrics.find(name) {
            return Some(place);
        }
        let metric = catalog.metric(name);
        let (count, most) = match metric.kind {
            MetricKind::ToolCategory(_) => (&mut self.tools, MOST_TOOLS),
            _ if metric.is_built_in() => return Some(metrics.place(name)),
            _ => (&mut self.others, MOST_METRICS),
        };
        if *count >= most {
            self.left_out.insert(FixedState::default().hash_one(name));
            return None;
        }
        *count += 1;
        Some(metrics.place(name))
    }

    /// How many metrics were left out.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out.len()
    }
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
    /// Adds a trial.
    pub(crate) fn add(&mut self, row: &Row<'_>, names: &mut AllNames) {
        let AllNames {
            catalog,
            metrics,
            words,
            extent,
        } = names;
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
                self.void_unrelated += u64::from(row.is_void_unrelated());
                return;
            }
            Outcome::Pass => self.passed += 1,
            Outcome::Fail => self.failed += 1,
        }
        self.unmeasured += u64::from(row.is_unmeasured());
        self.unpriced += u64::from(row.has_unpriced_tokens());
        self.retried += u64::from(row.was_retried_after_failing());
        self.not_captured += u64::from(row.not_captured);
        self.subscription += u64::from(row.subscription);
        if row.has_no_checks() {
            match outcome {
                Outcome::Pass => self.unchecked += 1,
                _ => self.failed_unchecked += u64::from(reason(row) == CHECKS_FAILED),
            }
        }
        let trial = self.success.len();
        self.success.push(outcome == Outcome::Pass);
        self.censored.push(row.is_censored());
        self.old.push(row.is_of_first_version());
        row.for_each_measurement(catalog, |name, value| {
            if let Some(place) = extent.column(name, catalog, metrics) {
                self.set(place, trial, value);
            }
        });
        row.for_each_lower_bound(catalog, |name, value| {
            let place = extent.column(name, catalog, metrics);
            let bound = place.map(|place| LowerBound {
                place,
                trial,
                value,
            });
            self.lower_bounds.extend(bound);
        });
    }

    /// Void trials whose cause may depend on the mode.
    pub(crate) fn related_voids(&self) -> u64 {
        self.void - self.void_unrelated
    }

    /// Tools that were seen, none of which is of a category: that is zero calls, not an unknown number.
    pub(crate) fn fill_categories(&mut self, names: &AllNames) {
        let metrics = &names.metrics;
        let Some(total) = metrics.find(names.catalog.name_of(RowField::ToolCalls)) else {
            return;
        };
        let is_category = |name: &str| {
            let kind = &names.catalog.metric(name).kind;
            matches!(kind, MetricKind::ToolCategory(_))
        };
        let categories = metrics.names.iter().enumerate();
        for (place, _) in categories.filter(|(_, name)| is_category(name)) {
            for trial in 0..self.success.len() {
                if self.value(total, trial).is_finite() && self.value(place, trial).is_nan() {
                    self.set(place, trial, 0.0);
                }
            }
        }
    }

    /// Forgets a metric of the trials that are meant.
    pub(crate) fn forget(&mut self, place: usize, is_meant: fn(bool) -> bool) {
        for trial in 0..self.old.len() {
            if is_meant(self.old[trial]) && self.value(place, trial).is_finite() {
                self.set(place, trial, f64::NAN);
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
    pub(crate) fn keep_measurements(&mut self, is_limited: &[bool]) {
        self.bounded = self.bounded_columns(is_limited);
        if let Columns::Several(columns) = &mut self.columns {
            for column in columns {
                column.retain(|value| value.is_finite());
            }
        }
    }

    /// Which of the `comparable` values of a metric are lower bounds; empty when none is.
    pub(crate) fn cut(&self, place: usize) -> &[bool] {
        self.bounded(place).map_or(&[], |column| &column.cut)
    }

    /// What comparisons of a metric use, once only measurements are kept: measurements, and lower bounds marked by `cut`.
    pub(crate) fn comparable(&self, place: usize) -> &[f64] {
        match self.bounded(place) {
            Some(column) => &column.values,
            None => self.measurements(place),
        }
    }

    fn bounded(&self, place: usize) -> Option<&BoundedColumn> {
        self.bounded.iter().find(|column| column.place == place)
    }

    fn bounded_columns(&self, is_limited: &[bool]) -> Vec<BoundedColumn> {
        if self.lower_bounds.is_empty() && !self.censored.contains(&true) {
            return Vec::new();
        }
        let columns = is_limited.iter().enumerate();
        let columns = columns.filter(|(_, is_limited)| **is_limited);
        columns
            .map(|(place, _)| self.bounded_column(place))
            .filter(|column| column.cut.contains(&true))
            .collect()
    }

    fn bounded_column(&self, place: usize) -> BoundedColumn {
        let (values, cut) = self.bounded_values(place, true).unzip();
        BoundedColumn { place, values, cut }
    }

    /// The values of a metric trial by trial, and whether each is a lower bound: known only as such, or of a trial that was
    /// cut off by a limit that bounds the metric.
    pub(crate) fn bounded_values(
        &self,
        place: usize,
        is_limited: bool,
    ) -> impl Iterator<Item = (f64, bool)> {
        (0..self.success.len()).filter_map(move |trial| {
            let measured = self.value(place, trial);
            let is_here = |bound: &&LowerBound| (bound.place, bound.trial) == (place, trial);
            let bound = self.lower_bounds.iter().find(is_here);
            match (measured.is_finite(), bound) {
                (true, _) => Some((measured, is_limited && self.censored[trial])),
                (false, bound) => bound.map(|bound| (bound.value, true)),
            }
        })
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

const CHECKS_FAILED: &str = "checks failed";

/// Why a trial did not pass, as a word.
fn reason<'a>(row: &'a Row<'_>) -> &'a str {
    let completion = row.completion_reason.as_ref().map(|reason| &*reason.0);
    match (&row.error_code, completion) {
        (Some(code), _) => &code.0,
        (None, None | Some("stop")) => CHECKS_FAILED,
        (None, Some(reason)) => reason,
    }
}
