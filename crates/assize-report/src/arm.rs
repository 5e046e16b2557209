//! The numbers of trials, kept in columns: what is left of a row once it has been read.

mod cells;

use crate::TextCounts;
use crate::classification::Confusion;
use crate::reason::{Reasons, Tally};
use crate::row::Row;
use assize_contracts::Nature;
use assize_contracts::{Catalog, MetricKind, Outcome, RowField};
pub(crate) use cells::Cells;
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
    pub(crate) cells: Cells,
    /// Labels that came out, by the metric that reports them.
    pub(crate) labels: BTreeMap<String, Confusion>,
    /// Other texts, by the metric that reports them.
    pub(crate) texts: BTreeMap<String, TextCounts>,
}

/// The trials of one arm on one scenario. Columns hold one place per judged trial; NaN where nothing was measured. There may be
/// a million cells of one trial each, so every byte counts.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    /// All void trials.
    pub(crate) void: u32,
    /// Those of them whose cause cannot depend on the mode.
    pub(crate) void_unrelated: u32,
    pub(crate) unmeasured: u32,
    pub(crate) unpriced: u32,
    pub(crate) retried: u32,
    /// Judged trials whose numbers are only the agent's claims.
    pub(crate) not_captured: u32,
    /// Judged trials whose tokens are part of a subscription.
    pub(crate) subscription: u32,
    /// Passed trials without a single check.
    pub(crate) unchecked: u32,
    /// Trials that a scorer failed without reporting a check: it looks at something nevertheless.
    pub(crate) failed_unchecked: u32,
    /// One per judged trial.
    marks: Vec<Marks>,
    columns: Columns,
    bounds: Option<Box<Bounds>>,
    /// By the place of the check's id among the words of all trials.
    pub(crate) checks: Vec<(u32, CheckTally)>,
    /// Failed and void trials, by index into the reasons.
    pub(crate) reasons: Vec<(u32, Tally)>,
}

/// Properties of a judged trial beside its numbers.
#[derive(Debug, Clone, Copy)]
struct Marks {
    success: bool,
    censored: bool,
    /// Of the first version of rows.
    old: bool,
}

/// Additional data of cut-off trials and lower bounds; most cells have none.
#[derive(Debug, Default)]
struct Bounds {
    /// Values that are known only as lower bounds. They are no measurements: only comparisons that handle lower bounds use them.
    lower: Vec<LowerBound>,
    /// Metrics with lower bounds among their values, once only measurements are kept.
    columns: Vec<BoundedColumn>,
}

/// Measurements of trials, by metric. In large suites most cells hold one trial, for which a list per metric would be most of
/// the memory.
#[derive(Debug)]
enum Columns {
    One(Box<[f64]>),
    Several(Vec<Vec<f64>>),
}

impl Default for Columns {
    fn default() -> Self {
        Self::One(Box::default())
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

/// Counts of a check that held and did not hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CheckTally {
    pub(crate) passed: u32,
    pub(crate) made: u32,
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
    /// Names of checks.
    pub(crate) words: Names,
    pub(crate) extent: Extent,
    /// Reasons why trials did not pass.
    pub(crate) reasons: Reasons,
    /// The measurements of the trial that is being added, by column.
    found: Vec<f64>,
}

/// The number of metrics that are not built in. Agents choose the names of tools and plugins those of metrics, so that there may
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

    /// The number of metrics that were left out.
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
            found,
            reasons,
        } = names;
        self.checks.reserve_exact(match self.checks.is_empty() {
            true => row.checkpoint_details.len(),
            false => 0,
        });
        for check in &row.checkpoint_details {
            let tally = counted(&mut self.checks, words.place(&check.id));
            tally.made += 1;
            tally.passed += u32::from(check.passed);
        }
        let outcome = row.outcome();
        if outcome != Outcome::Pass {
            let tally = counted(&mut self.reasons, reasons.place(row));
            tally.trials += 1;
            tally.position = match (tally.position, row.position()) {
                (Some(known), Some(new)) => Some(known.min(new)),
                (known, new) => known.or(new),
            };
        }
        match outcome {
            Outcome::Void => {
                self.void += 1;
                self.void_unrelated += u32::from(row.is_void_unrelated());
                return;
            }
            Outcome::Pass => self.passed += 1,
            Outcome::Fail => self.failed += 1,
        }
        self.unmeasured += u32::from(row.is_unmeasured());
        self.unpriced += u32::from(row.has_unpriced_tokens());
        self.retried += u32::from(row.was_retried_after_failing());
        self.not_captured += u32::from(row.not_captured);
        self.subscription += u32::from(row.subscription);
        if row.has_no_checks() {
            match outcome {
                Outcome::Pass => self.unchecked += 1,
                _ => self.failed_unchecked += u32::from(reason(row) == CHECKS_FAILED),
            }
        }
        let trial = self.trials();
        if trial == 0 {
            self.marks.reserve_exact(1);
        }
        self.marks.push(Marks {
            success: outcome == Outcome::Pass,
            censored: row.is_censored(),
            old: row.is_of_first_version(),
        });
        found.clear();
        row.for_each_measurement(catalog, |name, value| {
            if let Some(place) = extent.column(name, catalog, metrics) {
                put(found, place, value);
            }
        });
        self.set_all(trial, found);
        row.for_each_lower_bound(catalog, |name, value| {
            let place = extent.column(name, catalog, metrics);
            let is_measured =
                |place: &usize| found.get(*place).is_some_and(|value| value.is_finite());
            let place = place.filter(|place| !is_measured(place));
            let bound = place.map(|place| LowerBound {
                place,
                trial,
                value,
            });
            if let Some(bound) = bound {
                self.bounds.get_or_insert_default().lower.push(bound);
            }
        });
    }

    /// The number of judged trials.
    pub(crate) fn trials(&self) -> usize {
        self.marks.len()
    }

    /// All trials, void ones included.
    pub(crate) fn all_trials(&self) -> u64 {
        self.judged() + u64::from(self.void)
    }

    /// Trials that passed or failed.
    pub(crate) fn judged(&self) -> u64 {
        u64::from(self.passed) + u64::from(self.failed)
    }

    pub(crate) fn is_success(&self, trial: usize) -> bool {
        self.marks[trial].success
    }

    pub(crate) fn is_censored(&self, trial: usize) -> bool {
        self.marks[trial].censored
    }

    /// Judged trials that ran out of time.
    pub(crate) fn censored(&self) -> u64 {
        self.marks.iter().filter(|marks| marks.censored).count() as u64
    }

    /// Judged trials of which a part is known only as a lower bound, though time was not over.
    pub(crate) fn incomplete(&self) -> u64 {
        let mut trials: Vec<usize> = self
            .lower_bounds()
            .iter()
            .map(|bound| bound.trial)
            .collect();
        trials.dedup();
        let is_incomplete = |trial: &&usize| !self.is_censored(**trial);
        trials.iter().filter(is_incomplete).count() as u64
    }

    /// The same of one metric.
    pub(crate) fn incomplete_in(&self, place: usize) -> u64 {
        let is_meant = |bound: &&LowerBound| bound.place == place && !self.is_censored(bound.trial);
        self.lower_bounds().iter().filter(is_meant).count() as u64
    }

    /// Void trials whose cause may depend on the mode.
    pub(crate) fn related_voids(&self) -> u64 {
        u64::from(self.void - self.void_unrelated)
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
            for trial in 0..self.trials() {
                if self.value(total, trial).is_finite() && self.value(place, trial).is_nan() {
                    self.set(place, trial, 0.0);
                }
            }
        }
    }

    /// Forgets a metric of the trials that are meant.
    pub(crate) fn forget(&mut self, place: usize, is_meant: fn(bool) -> bool) {
        for trial in 0..self.trials() {
            if is_meant(self.marks[trial].old) && self.value(place, trial).is_finite() {
                self.set(place, trial, f64::NAN);
            }
        }
    }

    /// The measurement of one trial; NaN when it has none.
    pub(crate) fn value(&self, place: usize, trial: usize) -> f64 {
        let value = match &self.columns {
            Columns::One(values) => values.get(place).filter(|_| trial == 0),
            Columns::Several(columns) => columns.get(place).and_then(|column| column.get(trial)),
        };
        value.copied().unwrap_or(f64::NAN)
    }

    /// Forgets which trial measured what, and where nothing was measured.
    pub(crate) fn keep_measurements(&mut self, is_limited: &[bool]) {
        let columns = self.bounded_columns(is_limited);
        if !columns.is_empty() {
            self.bounds.get_or_insert_default().columns = columns;
        }
        if let Columns::Several(columns) = &mut self.columns {
            for column in columns {
                column.retain(|value| value.is_finite());
            }
        }
    }

    /// Marks the `comparable` values of a metric that are lower bounds; empty when none is.
    pub(crate) fn cut(&self, place: usize) -> &[bool] {
        self.bounded(place).map_or(&[], |column| &column.cut)
    }

    /// The values that comparisons of a metric use, once only measurements are kept: measurements, and lower bounds marked by `cut`.
    pub(crate) fn comparable(&self, place: usize) -> &[f64] {
        match self.bounded(place) {
            Some(column) => &column.values,
            None => self.measurements(place),
        }
    }

    fn bounded(&self, place: usize) -> Option<&BoundedColumn> {
        let columns = self.bounds.iter().flat_map(|bounds| &bounds.columns);
        columns.into_iter().find(|column| column.place == place)
    }

    fn lower_bounds(&self) -> &[LowerBound] {
        self.bounds.as_ref().map_or(&[], |bounds| &bounds.lower)
    }

    fn bounded_columns(&self, is_limited: &[bool]) -> Vec<BoundedColumn> {
        if self.lower_bounds().is_empty() && self.censored() == 0 {
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
        (0..self.trials()).filter_map(move |trial| {
            let measured = self.value(place, trial);
            // Bounds stand in the order of their trials.
            let bounds = self.lower_bounds();
            let first = bounds.partition_point(|bound| bound.trial < trial);
            let bounds = bounds[first..]
                .iter()
                .take_while(|bound| bound.trial == trial);
            let bound = bounds.into_iter().find(|bound| bound.place == place);
            match (measured.is_finite(), bound) {
                (true, _) => Some((measured, is_limited && self.is_censored(trial))),
                (false, bound) => bound.map(|bound| (bound.value, true)),
            }
        })
    }

    /// The measurements of a metric, once only they are kept.
    pub(crate) fn measurements(&self, place: usize) -> &[f64] {
        match &self.columns {
            Columns::One(values) => match values.get(place) {
                Some(value) if value.is_finite() => std::slice::from_ref(value),
                _ => &[],
            },
            Columns::Several(columns) => columns.get(place).map_or(&[], Vec::as_slice),
        }
    }

    /// Stores the measurements of a new trial, by column.
    fn set_all(&mut self, trial: usize, found: &[f64]) {
        if trial == 0 {
            self.columns = Columns::One(found.into());
            return;
        }
        for (place, value) in found.iter().enumerate() {
            if value.is_finite() {
                self.set(place, trial, *value);
            }
        }
    }

    fn set(&mut self, place: usize, trial: usize, value: f64) {
        match &mut self.columns {
            Columns::One(values) if trial == 0 => {
                let mut list = std::mem::take(values).into_vec();
                put(&mut list, place, value);
                *values = list.into();
            }
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
fn counted<T: Default>(counts: &mut Vec<(u32, T)>, place: usize) -> &mut T {
    let place = place as u32;
    let known = counts.iter().position(|(known, _)| *known == place);
    let known = known.unwrap_or_else(|| {
        counts.push((place, T::default()));
        counts.len() - 1
    });
    &mut counts[known].1
}

const CHECKS_FAILED: &str = "checks failed";

/// The reason why a trial did not pass, as a word.
fn reason<'a>(row: &'a Row<'_>) -> &'a str {
    let completion = row.completion_reason.as_ref().map(|reason| &*reason.0);
    match (&row.error_code, completion) {
        (Some(code), _) => &code.0,
        (None, None | Some("stop")) => CHECKS_FAILED,
        (None, Some(reason)) => reason,
    }
}
