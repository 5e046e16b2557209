//! Rare counts: failed tool calls, retries, errors. Most runs have none, so medians are blind and means are compared.

use serde::Serialize;

use crate::error::StatsError;
use crate::interval::Level;
use crate::sample::{finite, sum};
use crate::scenario::{Matched, Pair};
use crate::task_t::{ROUNDING, TaskT, unseen_share};
use crate::warning::{Warning, Warnings};

/// Fewer events of B than this carry no ratio.
const FEWEST_FOR_RATIO: f64 = 5.0;

/// Events per run of A minus those of B. The interval is absent for fewer than two tasks or without any event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountDifference {
    /// Mean over tasks of A's events per run.
    pub rate_a: Option<f64>,
    /// Mean over tasks of B's events per run.
    pub rate_b: Option<f64>,
    /// Difference of the two.
    pub estimate: Option<f64>,
    /// Lower bound.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// The error rate at which the interval touches 0.
    pub p_value: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// Variance of the differences per task, not below half of what chance inside the tasks makes.
    pub variance: Option<f64>,
    /// Change of that variance per unit of the mean.
    pub slope: Option<f64>,
    /// The share of tasks of a kind that so many tasks may have missed altogether.
    pub unseen_share: Option<f64>,
    /// The most telling task was counted only as much as the next one.
    pub capped: bool,
    /// The interval lies on one side of zero.
    pub excludes_zero: bool,
    /// A's rate divided by B's; only where B has enough events.
    pub ratio: Option<f64>,
    /// No event in either mode.
    pub nothing_happened: bool,
    /// Without any event: the most events per run of A that the data fit, on these tasks.
    pub at_most_a: Option<f64>,
    /// The same for B.
    pub at_most_b: Option<f64>,
    pub runs_a: usize,
    pub runs_b: usize,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Compares events per run; task `s` of `a` belongs to task `s` of `b`.
pub fn count_difference<G: AsRef<[f64]>>(
    a: &[G],
    b: &[G],
    alpha: Level,
) -> Result<CountDifference, StatsError> {
    let matched = Matched::new(a, b)?;
    Ok(count_difference_of(
        &matched.pairs,
        alpha,
        matched.warnings(),
    ))
}

pub(crate) fn count_difference_of(
    pairs: &[Pair],
    alpha: Level,
    warnings: Warnings,
) -> CountDifference {
    let (a, b) = (
        Events::new(pairs.iter().map(|pair| pair.a.values())),
        Events::new(pairs.iter().map(|pair| pair.b.values())),
    );
    let mut answer = CountDifference {
        rate_a: a.rate(),
        rate_b: b.rate(),
        estimate: a.rate().zip(b.rate()).map(|(a, b)| finite(a - b)),
        lower: None,
        upper: None,
        p_value: None,
        df: None,
        variance: None,
        slope: None,
        unseen_share: None,
        capped: false,
        excludes_zero: false,
        ratio: a
            .rate()
            .zip(b.rate())
            .filter(|(_, b_rate)| b.total >= FEWEST_FOR_RATIO && *b_rate > 0.0)
            .map(|(a, b)| finite(a / b)),
        nothing_happened: false,
        at_most_a: None,
        at_most_b: None,
        runs_a: a.runs,
        runs_b: b.runs,
        warnings,
    };
    if pairs.is_empty() {
        return answer;
    }
    if a.total == 0.0 && b.total == 0.0 {
        answer.nothing_happened = true;
        answer.at_most_a = Some(a.at_most(alpha));
        answer.at_most_b = Some(b.at_most(alpha));
        answer.warnings.add(Warning::NothingHappened);
        return answer;
    }
    let floor = (a.chance_inside() + b.chance_inside()) / 2.0;
    let differences = a.means.iter().zip(&b.means).map(|(a, b)| a - b).collect();
    if let Some(fit) = TaskT::new(differences, floor) {
        answer.take(&fit, pairs.len(), alpha);
    }
    answer
}

impl CountDifference {
    fn take(&mut self, fit: &TaskT, tasks: usize, alpha: Level) {
        let alpha = alpha.value();
        let fitted = fit.capped_bounds(alpha);
        self.lower = Some(fitted.bounds.lower);
        self.upper = Some(fitted.bounds.upper);
        self.p_value = Some(fit.p_value());
        self.df = Some(fit.df());
        self.variance = Some(finite(fit.variance));
        self.slope = Some(fit.slope);
        self.unseen_share = Some(unseen_share(tasks, alpha));
        self.capped = fitted.capped;
        self.excludes_zero = fitted.bounds.lower > ROUNDING || fitted.bounds.upper < -ROUNDING;
        self.warnings.add_if(fitted.capped, Warning::TaskCapped);
    }
}

/// The events of one mode.
struct Events {
    /// Mean of the runs of each task.
    means: Vec<f64>,
    /// Mean over tasks of one over the number of runs.
    inverse_runs: f64,
    total: f64,
    runs: usize,
}

impl Events {
    fn new<'a>(tasks: impl Iterator<Item = &'a [f64]>) -> Self {
        let mut events = Self {
            means: Vec::new(),
            inverse_runs: 0.0,
            total: 0.0,
            runs: 0,
        };
        for runs in tasks {
            let total = sum(runs.iter().copied());
            events.means.push(total / runs.len() as f64);
            events.inverse_runs += 1.0 / runs.len() as f64;
            events.total += total;
            events.runs += runs.len();
        }
        events.inverse_runs /= events.means.len().max(1) as f64;
        events
    }

    fn rate(&self) -> Option<f64> {
        let tasks = self.means.len();
        (tasks > 0).then(|| finite(sum(self.means.iter().copied()) / tasks as f64))
    }

    /// The variance of a task's mean if events came by chance alone.
    fn chance_inside(&self) -> f64 {
        (self.total + 0.5) / self.runs as f64 * self.inverse_runs
    }

    /// The rate at which no event in all runs would still be seen with probability `alpha`.
    fn at_most(&self, alpha: Level) -> f64 {
        -libm::log(alpha.value()) / self.runs as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_event_bounds_the_rate_instead_of_showing_equality() {
        let none = [[0.0; 4], [0.0; 4]];
        let answer = count_difference(&none, &none, Level::ALPHA_05).unwrap();
        assert!(answer.nothing_happened && answer.p_value.is_none());
        assert!(answer.warnings.contains(Warning::NothingHappened));
    }

    #[test]
    fn a_ratio_needs_five_events_of_the_baseline() {
        let ratio = |b: f64| {
            count_difference(
                &[[4.0, 4.0], [4.0, 4.0]],
                &[[b, b], [b, b]],
                Level::ALPHA_05,
            )
            .unwrap()
            .ratio
        };
        assert_eq!((ratio(1.0), ratio(2.0)), (None, Some(2.0)));
    }
}
