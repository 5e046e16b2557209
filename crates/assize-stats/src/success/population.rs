//! Success on new tasks like these: one rate, and the difference of two modes on the same tasks.

use serde::Serialize;

use super::{MatchedTallies, mean_rate, rates};
use crate::error::StatsError;
use crate::interval::{Bounds, Level};
use crate::proportion::Tally;
use crate::task_t::{ROUNDING, TaskT, unseen_share};
use crate::verdict::Verdict;
use crate::warning::{Warning, Warnings};

/// Rate A minus rate B over tasks that both modes ran. The interval and all that belongs to it is absent for fewer than
/// two tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessDifference {
    /// Plain mean of A's rates per task.
    pub rate_a: Option<f64>,
    /// Plain mean of B's rates per task.
    pub rate_b: Option<f64>,
    /// Plain mean of the differences per task, between -1 and 1.
    pub estimate: Option<f64>,
    /// Lower bound.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// The error rate at which the interval touches 0.
    pub p_value: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// Variance of the differences, not below half of what chance inside the tasks makes.
    pub variance: Option<f64>,
    /// Change of that variance per unit of the mean.
    pub slope: Option<f64>,
    /// The share of tasks of a kind that so many tasks may have missed altogether.
    pub unseen_share: Option<f64>,
    /// The most favourable task was counted only as much as the next one.
    pub capped: bool,
    /// The interval lies on one side of zero.
    pub excludes_zero: bool,
    /// Better, worse or inconclusive for A, before any adjustment for several comparisons.
    pub verdict: Verdict,
    /// Tasks with judged trials of both modes.
    pub tasks: usize,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// A success rate over tasks. The interval is absent for fewer than two tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessRate {
    /// Plain mean of the rates per task.
    pub estimate: Option<f64>,
    /// Lower bound.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// Variance of the rates, not below half of what chance inside the tasks makes.
    pub variance: Option<f64>,
    /// Change of that variance per unit of the mean.
    pub slope: Option<f64>,
    /// The share of tasks of a kind that so many tasks may have missed altogether.
    pub unseen_share: Option<f64>,
    /// Tasks with judged trials.
    pub tasks: usize,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Difference of two success rates for new tasks like these; task `s` of `a` belongs to task `s` of `b`. Tasks without a
/// judged trial on one side are left out.
pub fn success_difference(
    a: &[Tally],
    b: &[Tally],
    alpha: Level,
) -> Result<SuccessDifference, StatsError> {
    let matched = MatchedTallies::new(a, b)?;
    let mut answer = SuccessDifference {
        rate_a: mean_rate(&matched.a),
        rate_b: mean_rate(&matched.b),
        estimate: None,
        lower: None,
        upper: None,
        p_value: None,
        df: None,
        variance: None,
        slope: None,
        unseen_share: None,
        capped: false,
        excludes_zero: false,
        verdict: Verdict::Inconclusive,
        tasks: matched.tasks(),
        warnings: Warnings::default(),
    };
    answer.estimate = answer.rate_a.zip(answer.rate_b).map(|(a, b)| a - b);
    answer
        .warnings
        .add_if(matched.tasks() == 1, Warning::SingleScenario);
    if let Some(differences) = TaskDifferences::new(&matched) {
        answer.take(&differences, alpha);
    }
    Ok(answer)
}

/// Success rate for new tasks like these. Tasks without a judged trial are left out.
pub fn success_rate(a: &[Tally], alpha: Level) -> SuccessRate {
    rate_with_errors(a, alpha.value(), alpha.value())
}

/// The success rate whose t part has error rate `alpha` and whose unseen share has `unseen_alpha`.
pub(super) fn rate_with_errors(a: &[Tally], alpha: f64, unseen_alpha: f64) -> SuccessRate {
    let judged: Vec<Tally> = a.iter().copied().filter(|a| a.trials() > 0).collect();
    let tasks = judged.len();
    let fit = TaskT::new(rates(&judged), chance_inside(&judged) / 2.0);
    let estimate = mean_rate(&judged);
    let unseen = fit.as_ref().map(|_| unseen_share(tasks, unseen_alpha));
    let bounds = fit.as_ref().zip(unseen).map(|(fit, unseen)| {
        let Bounds { lower, upper } = fit.bounds(alpha);
        let seen = (1.0 - unseen) * fit.mean;
        Bounds {
            lower: lower.min(seen).clamp(0.0, 1.0),
            upper: upper.max(seen + unseen).clamp(0.0, 1.0),
        }
    });
    let mut warnings = Warnings::default();
    warnings.add_if(tasks == 1, Warning::SingleScenario);
    SuccessRate {
        estimate,
        lower: bounds.map(|bounds| bounds.lower),
        upper: bounds.map(|bounds| bounds.upper),
        df: fit.as_ref().map(TaskT::df),
        variance: fit.as_ref().map(|fit| fit.variance),
        slope: fit.as_ref().map(|fit| fit.slope),
        unseen_share: unseen,
        tasks,
        warnings,
    }
}

/// The per-task differences of two modes.
pub(crate) struct TaskDifferences {
    fit: TaskT,
    tasks: usize,
}

/// An interval of the difference and how it came about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DifferenceBounds {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    pub(crate) capped: bool,
    /// Zero lies inside.
    pub(crate) holds_zero: bool,
}

impl TaskDifferences {
    /// None for fewer than two tasks.
    pub(crate) fn new(matched: &MatchedTallies) -> Option<Self> {
        let pairs = rates(&matched.a).into_iter().zip(rates(&matched.b));
        let differences = pairs.map(|(a, b)| a - b).collect();
        let floor = (chance_inside(&matched.a) + chance_inside(&matched.b)) / 2.0;
        Some(Self {
            fit: TaskT::new(differences, floor)?,
            tasks: matched.tasks(),
        })
    }

    /// The t part has error rate `alpha`, the unseen share `unseen_alpha`.
    pub(crate) fn bounds(&self, alpha: f64, unseen_alpha: f64) -> DifferenceBounds {
        let fitted = self.fit.capped_bounds(alpha);
        let Bounds {
            mut lower,
            mut upper,
        } = fitted.bounds;
        let holds_zero = lower <= ROUNDING && upper >= -ROUNDING;
        if holds_zero {
            let unseen = unseen_share(self.tasks, unseen_alpha);
            lower = lower.min(-unseen);
            upper = upper.max(unseen);
        }
        DifferenceBounds {
            lower: lower.clamp(-1.0, 1.0),
            upper: upper.clamp(-1.0, 1.0),
            capped: fitted.capped,
            holds_zero,
        }
    }
}

impl SuccessDifference {
    fn take(&mut self, differences: &TaskDifferences, alpha: Level) {
        let alpha = alpha.value();
        let (fit, tasks) = (&differences.fit, differences.tasks);
        let bounds = differences.bounds(alpha, alpha);
        let unseen = unseen_share(tasks, alpha);
        self.estimate = Some(fit.mean);
        self.lower = Some(bounds.lower);
        self.upper = Some(bounds.upper);
        self.p_value = Some(fit.p_value());
        self.df = Some(fit.df());
        self.variance = Some(fit.variance);
        self.slope = Some(fit.slope);
        self.unseen_share = Some(unseen);
        self.capped = bounds.capped;
        self.excludes_zero = !bounds.holds_zero;
        self.verdict = Verdict::of_interval(self.lower, self.upper);
        let size = fit.mean.abs();
        self.warnings
            .add_if(bounds.holds_zero, Warning::UnseenTasks);
        self.warnings.add_if(bounds.capped, Warning::TaskCapped);
        self.warnings.add_if(
            !bounds.holds_zero && size / (1.0 + size) < unseen,
            Warning::FewTasksCouldReverse,
        );
    }
}

/// The variance of the per-task differences, not below the floor; none for fewer than two tasks.
pub(crate) fn per_task_variance(matched: &MatchedTallies) -> Option<f64> {
    TaskDifferences::new(matched).map(|differences| differences.fit.variance)
}

/// The mean variance of a task's rate by chance alone, never 0: each rate is drawn a little towards the mean of all.
pub(crate) fn chance_inside(tallies: &[Tally]) -> f64 {
    let tasks = tallies.len() as f64;
    let prior = (rates(tallies).iter().sum::<f64>() + 1.0) / (tasks + 2.0);
    let variance = |tally: &Tally| {
        let trials = tally.trials() as f64;
        let rate = (tally.successes() as f64 + prior) / (trials + 1.0);
        rate * (1.0 - rate) / trials
    };
    tallies.iter().map(variance).sum::<f64>() / tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies(successes: &[u64], trials: u64) -> Vec<Tally> {
        successes
            .iter()
            .map(|&successes| Tally::new(successes, trials).unwrap())
            .collect()
    }

    fn difference(a: &[Tally], b: &[Tally], alpha: f64) -> SuccessDifference {
        success_difference(a, b, Level::new(alpha).unwrap()).unwrap()
    }

    #[test]
    fn the_p_value_is_the_level_at_which_the_interval_touches_zero() {
        let (a, b) = (
            tallies(&[5, 4, 5, 3, 5, 4, 5], 5),
            tallies(&[4, 3, 5, 1, 4, 2, 0], 5),
        );
        let p = difference(&a, &b, 0.05).p_value.unwrap();
        assert!(difference(&a, &b, p * 1.001).excludes_zero);
        assert!(!difference(&a, &b, p * 0.999).excludes_zero);
    }

    #[test]
    fn exchanging_the_modes_mirrors_everything() {
        let (a, b) = (tallies(&[5, 4, 5, 3, 5], 5), tallies(&[4, 3, 5, 1, 0], 5));
        let (ahead, behind) = (difference(&a, &b, 0.05), difference(&b, &a, 0.05));
        assert!((ahead.lower.unwrap() + behind.upper.unwrap()).abs() < 1e-15);
        assert!((ahead.upper.unwrap() + behind.lower.unwrap()).abs() < 1e-15);
        assert!((ahead.p_value.unwrap() - behind.p_value.unwrap()).abs() < 1e-15);
    }

    #[test]
    fn unequal_counts_of_equal_rates_show_no_difference() {
        let tally = |successes, trials| Tally::new(successes, trials).unwrap();
        let a: Vec<Tally> = [tally(18, 20), tally(1, 10)].repeat(5);
        let b: Vec<Tally> = [tally(9, 10), tally(2, 20)].repeat(5);
        let answer = difference(&a, &b, 0.05);
        assert!(answer.estimate.unwrap().abs() < 1e-12);
        assert_eq!(answer.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn one_task_has_an_estimate_and_no_interval() {
        let answer = difference(&tallies(&[5], 5), &tallies(&[1], 5), 0.05);
        assert_eq!((answer.estimate, answer.lower), (Some(0.8), None));
        assert!(answer.warnings.contains(Warning::SingleScenario));
        let nothing = difference(&tallies(&[0], 0), &tallies(&[1], 5), 0.05);
        assert_eq!((nothing.estimate, nothing.tasks), (None, 0));
    }
}
