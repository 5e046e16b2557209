//! Success on exactly these tasks: Wilson's interval with the number of runs that carries the same information.

use serde::Serialize;

use super::{MatchedTallies, mean_rate};
use crate::error::StatsError;
use crate::interval::Level;
use crate::proportion::{ProportionInterval, Tally, difference, wilson};
use crate::special::{normal_cdf, normal_quantile};
use crate::warning::{Warning, Warnings};

/// Fewer runs than this carry no interval.
const FEWEST_RUNS: f64 = 5.0;
/// From this ratio of the most to the fewest runs of a task on, the counts are uneven.
const UNEVEN: u64 = 4;
/// Beyond this many standard errors a p-value cannot be written as a number.
const FARTHEST_Z: f64 = 37.0;

/// A success rate on exactly these tasks. The interval is absent for too few runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiteRate {
    /// Plain mean of the rates per task.
    pub estimate: Option<f64>,
    /// Lower bound.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// The number of equal runs that carries the same information.
    pub effective_runs: Option<f64>,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Rate A minus rate B on exactly these tasks. The interval is absent for too few runs of a mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiteDifference {
    /// Plain mean of A's rates per task.
    pub rate_a: Option<f64>,
    /// Plain mean of B's rates per task.
    pub rate_b: Option<f64>,
    /// Difference of the two.
    pub estimate: Option<f64>,
    /// Lower bound.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// The error rate at which the interval touches 0.
    pub p_value: Option<f64>,
    /// The number of equal runs of A and of B that carries the same information.
    pub effective_runs: Option<[f64; 2]>,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Success rate on exactly these tasks. Tasks without a judged trial are left out.
pub fn suite_rate(a: &[Tally], alpha: Level) -> SuiteRate {
    let runs = SuiteRuns::new(a);
    let bounds = runs
        .as_ref()
        .and_then(|runs| runs.interval(z_of(alpha.value())));
    let mut warnings = Warnings::default();
    warnings.add_if(bounds.is_none(), Warning::FewRuns);
    warnings.add_if(
        runs.as_ref().is_some_and(|runs| runs.uneven),
        Warning::UnevenRuns,
    );
    SuiteRate {
        estimate: mean_rate(a),
        lower: bounds.map(|bounds| bounds.lower),
        upper: bounds.map(|bounds| bounds.upper),
        effective_runs: runs.map(|runs| runs.effective),
        warnings,
    }
}

/// Difference of two success rates on exactly these tasks; task `s` of `a` belongs to task `s` of `b`. Tasks without a
/// judged trial on one side are left out.
pub fn suite_difference(
    a: &[Tally],
    b: &[Tally],
    alpha: Level,
) -> Result<SuiteDifference, StatsError> {
    let matched = MatchedTallies::new(a, b)?;
    Ok(suite_difference_of(&matched, alpha.value()))
}

pub(super) fn suite_difference_of(matched: &MatchedTallies, alpha: f64) -> SuiteDifference {
    difference_of(&matched.a, &matched.b, alpha)
}

/// The same where the two sides are not pairs of tasks: the combinations on either side of a contrast.
pub(crate) fn suite_sides(a: &[Tally], b: &[Tally], alpha: Level) -> SuiteDifference {
    difference_of(a, b, alpha.value())
}

fn difference_of(a: &[Tally], b: &[Tally], alpha: f64) -> SuiteDifference {
    let runs = SuiteRuns::new(a).zip(SuiteRuns::new(b));
    let interval = |z: f64| {
        let (a, b) = runs.as_ref()?;
        Some(difference(&a.interval(z)?, &b.interval(z)?, 0.0))
    };
    let bounds = interval(z_of(alpha));
    let (rate_a, rate_b) = (mean_rate(a), mean_rate(b));
    let estimate = rate_a.zip(rate_b).map(|(a, b)| a - b);
    let mut warnings = Warnings::default();
    warnings.add_if(bounds.is_none(), Warning::FewRuns);
    let uneven = runs.as_ref().is_some_and(|(a, b)| a.uneven || b.uneven);
    warnings.add_if(uneven, Warning::UnevenRuns);
    SuiteDifference {
        rate_a,
        rate_b,
        estimate,
        lower: bounds.map(|bounds| bounds.lower),
        upper: bounds.map(|bounds| bounds.upper),
        p_value: bounds.and_then(|_| touching_zero(estimate?, interval)),
        effective_runs: runs.map(|(a, b)| [a.effective, b.effective]),
        warnings,
    }
}

/// Standard errors of a two-sided interval with error rate `alpha`.
pub(super) fn z_of(alpha: f64) -> f64 {
    -normal_quantile(alpha / 2.0)
}

/// The two-sided error rate at which the interval touches zero.
fn touching_zero(
    estimate: f64,
    interval: impl Fn(f64) -> Option<ProportionInterval>,
) -> Option<f64> {
    if estimate == 0.0 {
        return Some(1.0);
    }
    let (mut low, mut high) = (0.0, FARTHEST_Z);
    while high - low > 1e-10 {
        let middle = (low + high) / 2.0;
        let interval = interval(middle)?;
        if interval.lower > 0.0 || interval.upper < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((2.0 * normal_cdf(-(low + high) / 2.0)).min(1.0))
}

/// The runs of one mode on the tasks that have any.
struct SuiteRuns {
    rate: f64,
    /// The harmonic number of runs.
    runs: f64,
    /// The runs that count: fewer where the uncertain tasks are those with few runs.
    effective: f64,
    uneven: bool,
}

impl SuiteRuns {
    /// None without a judged trial.
    fn new(tallies: &[Tally]) -> Option<Self> {
        let judged = || tallies.iter().filter(|tally| tally.trials() > 0);
        let tasks = judged().count() as f64;
        let rate = mean_rate(tallies)?;
        let inverse = judged()
            .map(|tally| 1.0 / tally.trials() as f64)
            .sum::<f64>();
        let binomial = rate * (1.0 - rate);
        let within = judged()
            .map(|tally| variance_inside(*tally, binomial) / tally.trials() as f64)
            .sum::<f64>()
            / inverse;
        let share = if within > binomial {
            (binomial / within).max(0.25)
        } else {
            1.0
        };
        let runs = tasks * tasks / inverse;
        let most = judged().map(|tally| tally.trials()).max()?;
        let fewest = judged().map(|tally| tally.trials()).min()?;
        Some(Self {
            rate,
            runs,
            effective: runs * share,
            uneven: most / UNEVEN >= fewest,
        })
    }

    fn interval(&self, z: f64) -> Option<ProportionInterval> {
        // A hair of slack: five tasks with one run each are five runs, whatever the rounding of the sum.
        if self.runs < FEWEST_RUNS - 1e-9 {
            return None;
        }
        let bounds = wilson(self.rate, self.effective, z);
        Some(ProportionInterval {
            point_estimate: self.rate,
            lower: bounds.lower,
            upper: bounds.upper,
            confidence_level: Level::CONFIDENCE_95,
        })
    }
}

/// The unbiased variance of a single run of this task; that of all runs where the task has a single one.
fn variance_inside(tally: Tally, binomial: f64) -> f64 {
    let trials = tally.trials() as f64;
    match tally.rate() {
        Some(rate) if tally.trials() > 1 => rate * (1.0 - rate) * trials / (trials - 1.0),
        _ => binomial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(successes: u64, trials: u64) -> Tally {
        Tally::new(successes, trials).unwrap()
    }

    #[test]
    fn the_p_value_is_the_level_at_which_the_interval_touches_zero() {
        let (a, b) = (vec![tally(17, 20); 2], vec![tally(9, 20); 2]);
        let at = |alpha: f64| suite_difference(&a, &b, Level::new(alpha).unwrap()).unwrap();
        let p = at(0.05).p_value.unwrap();
        assert!(at(p).lower.unwrap().abs() < 1e-9, "{p}");
    }

    #[test]
    fn four_runs_carry_no_interval() {
        let few = suite_rate(&[tally(4, 4)], Level::ALPHA_05);
        assert_eq!((few.estimate, few.lower), (Some(1.0), None));
        assert!(few.warnings.contains(Warning::FewRuns));
        assert!(suite_rate(&[tally(5, 5)], Level::ALPHA_05).lower.is_some());
        assert!(suite_rate(&[], Level::ALPHA_05).estimate.is_none());
    }

    #[test]
    fn uneven_runs_are_named() {
        let uneven = suite_rate(&[tally(8, 8), tally(2, 2)], Level::ALPHA_05);
        assert!(uneven.warnings.contains(Warning::UnevenRuns));
        let even = suite_rate(&[tally(7, 7), tally(2, 2)], Level::ALPHA_05);
        assert!(!even.warnings.contains(Warning::UnevenRuns));
    }
}
