//! The numbers of trials, kept in columns: what is left of a row once it has been read.

mod cells;
mod column;
mod ids;

use crate::TextCounts;
use crate::classification::Confusion;
use crate::reason::{Reasons, Tally};
use crate::row::Row;
use assize_contracts::Nature;
use assize_contracts::{Catalog, MetricKind, Outcome};
pub(crate) use cells::{Cell, Cells};
use foldhash::fast::FixedState;
pub(crate) use ids::Ids;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;

/// Trials that may be counted together: same suite, mode, model and nature.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) suite: Option<String>,
    pub(crate) mode: String,
    pub(crate) model: String,
    pub(crate) nature: Nature,
    /// The number of arms that were met before.
    pub(crate) order: u32,
    /// By the scenario's place in the list of scenarios.
    pub(crate) cells: Cells,
    /// Labels that came out, by the metric that reports them.
    pub(crate) labels: BTreeMap<String, Confusion>,
    /// Other texts, by the metric that reports them.
    pub(crate) texts: BTreeMap<String, TextCounts>,
}

/// The counts of the trials of one arm on one scenario. Cells whose only trials look the same share them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tallies {
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
    /// No other cell shares them.
    is_own: bool,
    /// One per judged trial.
    marks: Vec<Marks>,
    /// Measurements by metric, one per judged trial; NaN where nothing was measured. Absent while there is one trial at most,
    /// whose measurements the cells of an arm keep together.
    columns: Option<Vec<Vec<f64>>>,
    bounds: Option<Box<Bounds>>,
    /// By the place of the check's id among the words of all trials.
    pub(crate) checks: Vec<(u32, CheckTally)>,
    /// Failed and void trials, by index into the reasons. [`Cell::reasons`] knows their positions, too.
    reasons: Vec<(u32, Tally)>,
}

/// Properties of a judged trial beside its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Marks {
    success: bool,
    censored: bool,
    /// Of the first version of rows.
    old: bool,
}

/// Additional data of cut-off trials and lower bounds; most cells have none.
#[derive(Debug, Clone, Default, PartialEq)]
struct Bounds {
    /// Values that are known only as lower bounds. They are no measurements: only comparisons that handle lower bounds use them.
    lower: Vec<LowerBound>,
    /// Metrics with lower bounds among their values, once only measurements are kept.
    columns: Vec<BoundedColumn>,
}

/// The least that a trial took of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LowerBound {
    place: usize,
    trial: usize,
    value: f64,
}

/// The values of a metric, some of which are lower bounds.
#[derive(Debug, Clone, PartialEq)]
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

impl Tallies {
    /// Counts a trial and leaves its measurements in `names.found`. They belong to the last judged trial, unless the trial is void.
    fn add(&mut self, row: &Row<'_>, names: &mut AllNames) {
        let AllNames {
            catalog,
            metrics,
            words,
            extent,
            found,
            reasons,
        } = names;
        found.clear();
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
            tally.meet(row.position());
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
        row.for_each_measurement(catalog, |name, value| {
            if let Some(place) = extent.column(name, catalog, metrics) {
                put(found, place, value);
            }
        });
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

    /// Marks the `comparable` values of a metric that are lower bounds; empty when none is.
    pub(crate) fn cut(&self, place: usize) -> &[bool] {
        self.bounded(place).map_or(&[], |column| &column.cut)
    }

    fn bounded(&self, place: usize) -> Option<&BoundedColumn> {
        let columns = self.bounds.iter().flat_map(|bounds| &bounds.columns);
        columns.into_iter().find(|column| column.place == place)
    }

    fn lower_bounds(&self) -> &[LowerBound] {
        self.bounds.as_ref().map_or(&[], |bounds| &bounds.lower)
    }
}

impl Tally {
    /// Notes the position of a trial: the first one counts.
    fn meet(&mut self, position: Option<u32>) {
        self.position = match (self.position, position) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
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
