//! One metric over trials: the plain description, or what is left of it where trials were cut off.

use crate::arm::Cell;
use assize_contracts::{AtLimit, Metric};
use assize_stats::{
    Description, Level, MetricKind, Statistic, censored_median, censored_percentile, describe,
    scenario_typical_ci,
};
use serde::Serialize;

/// Summary of a metric. A number is absent where trials whose time was cut off, or that are known in part, leave it unknown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricSummary {
    /// Trials in which it was measured, in whole or in part.
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
    /// Trials of which only a lower bound is known, for tokens and cost: a model call did not report all it used.
    #[serde(skip_serializing_if = "is_zero")]
    pub bounded: usize,
    /// The least that the numbers above can be. Present where there are lower bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<AtLeast>,
    /// The typical value of a task like these. Absent for few tasks, and where trials were cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical_task: Option<TypicalTask>,
}

/// Lower bounds of numbers that are not known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AtLeast {
    /// Of the arithmetic mean.
    pub mean: f64,
    /// Of the median.
    pub median: f64,
    /// Of the 90th percentile.
    pub p90: f64,
    /// Of the 95th percentile.
    pub p95: f64,
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

/// With fewer tasks nothing is stated about others.
const FEWEST_TASKS: usize = 5;

impl MetricSummary {
    /// The value of a statistic. Absent where cut-off trials leave it unknown.
    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::P90 => self.p90,
            Statistic::P95 => self.p95,
            Statistic::Min => Some(self.min).filter(|_| self.bounded == 0),
            Statistic::Max => Some(self.max).filter(|_| self.bounded == 0),
            _ => self.median,
        }
    }

    /// The least that a statistic can be, where it is not known.
    pub fn least(&self, statistic: Statistic) -> Option<f64> {
        let least = self.at_least?;
        match statistic {
            Statistic::Mean => Some(least.mean),
            Statistic::Median => Some(least.median),
            Statistic::P90 => Some(least.p90),
            Statistic::P95 => Some(least.p95),
            _ => None,
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The kind of numbers that the statistics distinguish.
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

/// The metric in this column over the given cells. `None` when no trial measured it.
pub(crate) fn summarize(
    metric: &Metric,
    place: usize,
    cells: &[Cell<'_>],
    level: Level,
) -> Option<MetricSummary> {
    // A clock that was cut off did not measure; what else was used until then was used.
    let is_clock = metric.at_limit == AtLimit::Clock;
    let mut values = Vec::new();
    let mut completed = Vec::new();
    for cell in cells {
        for (value, is_bound) in cell.bounded_values(place, is_clock) {
            values.push(value);
            completed.push(!is_bound);
        }
    }
    if values.is_empty() {
        return None;
    }
    let description = describe(&values);
    match completed.contains(&false) {
        true if is_clock => Some(censored(&description, &values, &completed)),
        true => Some(partly_known(&description, &values, &completed)),
        false => Some(whole(
            &description,
            typical_task(place, cells, level)
                .filter(|_| cells.iter().all(|cell| cell.censored() == 0)),
        )),
    }
}

fn whole(description: &Description, typical_task: Option<TypicalTask>) -> MetricSummary {
    MetricSummary {
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
        bounded: 0,
        at_least: None,
        typical_task,
    }
}

/// Some values are lower bounds. A percentile is known all the same where it does not depend on how far they are exceeded.
fn partly_known(least: &Description, values: &[f64], completed: &[bool]) -> MetricSummary {
    let beyond = least.max + least.max.abs().max(1.0);
    let open = values.iter().zip(completed);
    let open: Vec<f64> = open
        .map(|(value, is_known)| if *is_known { *value } else { beyond })
        .collect();
    let most = describe(&open);
    let known = |least: f64, most: f64| (least == most).then_some(least);
    MetricSummary {
        count: least.count,
        mean: None,
        median: known(least.median, most.median),
        p90: known(least.p90, most.p90),
        p95: known(least.p95, most.p95),
        min: least.min,
        max: least.max,
        iqr: None,
        quartiles: None,
        cv: None,
        stddev: None,
        censored: 0,
        bounded: completed.iter().filter(|known| !**known).count(),
        at_least: Some(AtLeast {
            mean: least.mean,
            median: least.median,
            p90: least.p90,
            p95: least.p95,
        }),
        typical_task: None,
    }
}

fn typical_task(place: usize, cells: &[Cell<'_>], level: Level) -> Option<TypicalTask> {
    let measured = cells.iter().map(|cell| cell.known(place));
    let measured = measured.filter(|values| !values.is_empty());
    let found = scenario_typical_ci(measured, level)
        .filter(|found| found.df as usize + 1 >= FEWEST_TASKS && !found.degenerate)?;
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
        bounded: 0,
        at_least: None,
        typical_task: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64], completed: &[bool], median: Option<f64>, least: f64) {
        let found = partly_known(&describe(values), values, completed);
        let bound = found.at_least.unwrap();
        assert_eq!((found.median, bound.median), (median, least), "{values:?}");
        assert_eq!((found.mean, found.stddev), (None, None));
    }

    #[test]
    fn a_median_that_lower_bounds_could_move_is_unknown() {
        check(&[1.0, 2.0, 3.0], &[false; 3], None, 2.0);
        check(&[1.0, 2.0, 3.0], &[false, true, true], None, 2.0);
    }

    #[test]
    fn a_median_below_all_lower_bounds_is_known() {
        check(&[1.0, 2.0, 3.0], &[true, true, false], Some(2.0), 2.0);
        check(
            &[1.0, 2.0, 2.0, 9.0],
            &[true, true, true, false],
            Some(2.0),
            2.0,
        );
    }
}
