//! One metric over trials: the plain description, or what is left of it where trials were cut off.

use crate::arm::Cell;
use assize_contracts::{AtLimit, Metric};
use assize_stats::{
    Description, Level, MetricKind, Statistic, censored_median, censored_percentile, describe,
    scenario_typical_ci,
};
use serde::Serialize;

/// Summary of a metric. A number is absent where trials that ran out of time leave it unknown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricSummary {
    /// Trials in which it was measured.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Middle value; with cut-off times the Kaplan-Meier median.
    pub median: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Distance between the quartiles.
    pub iqr: Option<f64>,
    /// The quartiles.
    #[serde(skip)]
    pub quartiles: Option<[f64; 2]>,
    /// Standard deviation divided by the mean; absent when the mean is 0.
    pub cv: Option<f64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
    /// Trials that were cut off, for times.
    #[serde(skip_serializing_if = "is_zero")]
    pub censored: usize,
    /// What a task like these typically takes. Absent for few tasks, and where trials were cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical_task: Option<TypicalTask>,
}

/// The geometric mean of the tasks' medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TypicalTask {
    /// The value.
    pub value: f64,
    /// Its interval, for new tasks like these.
    pub ci95: [f64; 2],
}

/// With fewer tasks nothing is said about others.
const FEWEST_TASKS: usize = 5;

impl MetricSummary {
    /// The number that a statistic stands for. Absent where cut-off trials leave it unknown.
    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::P90 => self.p90,
            Statistic::P95 => self.p95,
            Statistic::Min => Some(self.min),
            Statistic::Max => Some(self.max),
            _ => self.median,
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The kind of numbers that the statistics tell apart.
pub(crate) fn kind(metric: &Metric) -> MetricKind {
    match metric.at_limit {
        AtLimit::Clock => MetricKind::Time,
        _ if metric.is_count() => MetricKind::Count,
        _ => MetricKind::Amount,
    }
}

/// True where a trial that ran out of time measures only a lower bound. A part of the time may have ended before the limit.
pub(crate) fn is_limited(metric: &Metric) -> bool {
    let is_part = matches!(metric.kind, assize_contracts::MetricKind::TimeSegment(_));
    metric.at_limit != AtLimit::Whole && !is_part
}

/// The metric in this column over the given cells. None when nobody measured it.
pub(crate) fn summarize(
    metric: &Metric,
    place: usize,
    cells: &[&Cell],
    level: Level,
) -> Option<MetricSummary> {
    let mut values = Vec::new();
    let mut completed = Vec::new();
    for cell in cells {
        for trial in 0..cell.trials() {
            let value = cell.value(place, trial);
            if value.is_finite() {
                values.push(value);
                completed.push(!cell.is_censored(trial));
            }
        }
    }
    if values.is_empty() {
        return None;
    }
    let description = describe(&values);
    // Only clocks are known to run until the limit; of other numbers a cut-off trial says just "at least".
    if metric.at_limit == AtLimit::Clock && completed.contains(&false) {
        return Some(censored(&description, &values, &completed));
    }
    Some(MetricSummary {
        count: description.count,
        mean: Some(description.mean),
        median: Some(description.median),
        p90: Some(description.p90),
        p95: Some(description.p95),
        min: description.min,
        max: description.max,
        iqr: Some(description.iqr),
        quartiles: Some(description.quartiles),
        cv: description.cv_defined.then_some(description.cv),
        stddev: Some(description.stddev),
        censored: 0,
        typical_task: match completed.contains(&false) {
            true => None,
            false => typical_task(place, cells, level),
        },
    })
}

fn typical_task(place: usize, cells: &[&Cell], level: Level) -> Option<TypicalTask> {
    let of_cell = |cell: &&Cell| -> Vec<f64> {
        let trials = 0..cell.trials();
        let values = trials.map(|trial| cell.value(place, trial));
        values.filter(|value| value.is_finite()).collect()
    };
    let measured = cells
        .iter()
        .map(of_cell)
        .filter(|values| !values.is_empty());
    let groups: Vec<Vec<f64>> = measured.collect();
    let found = scenario_typical_ci(&groups, level)
        .filter(|found| groups.len() >= FEWEST_TASKS && !found.degenerate)?;
    Some(TypicalTask {
        value: found.point_estimate,
        ci95: [found.lower, found.upper],
    })
}

fn censored(description: &Description, values: &[f64], completed: &[bool]) -> MetricSummary {
    let median = censored_median(values, completed).ok();
    let percentile = |share| censored_percentile(values, completed, share).ok().flatten();
    let quartiles = percentile(0.25).zip(percentile(0.75));
    MetricSummary {
        count: description.count,
        mean: median.as_ref().and_then(|median| median.restricted_mean),
        median: median.as_ref().and_then(|median| median.median),
        p90: percentile(0.9),
        p95: percentile(0.95),
        min: description.min,
        max: description.max,
        iqr: quartiles.map(|(low, high)| high - low),
        quartiles: None,
        cv: None,
        stddev: None,
        censored: completed.iter().filter(|done| !**done).count(),
        typical_task: None,
    }
}
