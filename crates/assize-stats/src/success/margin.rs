//! Success against a margin or a threshold, with one-sided error rates.

use serde::Serialize;

use super::population::rate_with_errors;
use super::suite::suite_difference_of;
use super::{MatchedTallies, TaskDifferences, mean_rate, suite_rate};
use crate::error::{StatsError, non_negative};
use crate::gate::GateVerdict;
use crate::interval::{Bounds, Level, Scope};
use crate::proportion::Tally;
use crate::task_t::ROUNDING;
use crate::warning::{Warning, Warnings};

/// Settings for comparing a difference of two success rates with a margin.
#[derive(Clone, Copy, Debug)]
pub struct SuccessMarginOptions {
    /// The largest acceptable loss of success: 0.1 for 10 points.
    pub margin: f64,
    /// Error rate of each one-sided test.
    pub alpha: Level,
    /// New tasks like these, or exactly these.
    pub scope: Scope,
}

/// The difference of two success rates against a margin. Bounds are absent where the data carry none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessMargin {
    /// Candidate's rate minus the reference's; absent without tasks.
    pub estimate: Option<f64>,
    /// One-sided lower bound.
    pub lower: Option<f64>,
    /// One-sided upper bound.
    pub upper: Option<f64>,
    /// Passes when the candidate is worse by less than the margin.
    pub non_inferior: GateVerdict,
    /// True when the difference is shown to be smaller than the margin on both sides.
    pub equivalent: bool,
    /// The tasks that the numbers apply to.
    pub scope: Scope,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// A success rate against a threshold. Bounds are absent where the data carry none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessGate {
    /// Plain mean of the rates per task; absent without tasks.
    pub estimate: Option<f64>,
    /// One-sided lower bound.
    pub lower: Option<f64>,
    /// One-sided upper bound.
    pub upper: Option<f64>,
    /// Passes when the rate reaches the threshold.
    pub verdict: GateVerdict,
    /// The tasks that the numbers apply to.
    pub scope: Scope,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Holds the difference of two success rates against a margin; task `s` of `a` belongs to task `s` of `b`.
pub fn success_margin(
    a: &[Tally],
    b: &[Tally],
    options: &SuccessMarginOptions,
) -> Result<SuccessMargin, StatsError> {
    let SuccessMarginOptions { alpha, scope, .. } = *options;
    let margin = non_negative("margin", options.margin)?;
    let matched = MatchedTallies::new(a, b)?;
    let (bounds, warnings) = one_sided_difference(&matched, alpha.value(), scope);
    // A bound that touches the margin but for rounding is not within it.
    let is_above = |value: f64, limit: f64| value > limit + ROUNDING;
    let non_inferior = match bounds {
        Some(Bounds { lower, .. }) if is_above(lower, -margin) => GateVerdict::Pass,
        Some(Bounds { upper, .. }) if is_above(-margin, upper) => GateVerdict::Fail,
        _ => GateVerdict::Inconclusive,
    };
    let within = |bounds: Bounds| is_above(bounds.lower, -margin) && is_above(margin, bounds.upper);
    Ok(SuccessMargin {
        estimate: mean_rate(&matched.a)
            .zip(mean_rate(&matched.b))
            .map(|(a, b)| a - b),
        lower: bounds.map(|bounds| bounds.lower),
        upper: bounds.map(|bounds| bounds.upper),
        non_inferior,
        equivalent: bounds.is_some_and(within),
        scope,
        warnings,
    })
}

/// Holds a success rate against a threshold.
pub fn success_gate(a: &[Tally], threshold: f64, alpha: Level, scope: Scope) -> SuccessGate {
    let two_sided = 2.0 * alpha.value();
    let (estimate, lower, upper, mut warnings) = match scope {
        Scope::Population => {
            let rate = rate_with_errors(a, two_sided, alpha.value());
            (rate.estimate, rate.lower, rate.upper, rate.warnings)
        }
        Scope::Suite => {
            let rate = suite_rate(a, one_sided(alpha));
            (rate.estimate, rate.lower, rate.upper, rate.warnings)
        }
    };
    warnings.add_if(lower.is_none(), Warning::FewRuns);
    let verdict = match (lower, upper) {
        (Some(lower), _) if lower >= threshold => GateVerdict::Pass,
        (_, Some(upper)) if upper < threshold => GateVerdict::Fail,
        _ => GateVerdict::Inconclusive,
    };
    SuccessGate {
        estimate,
        lower,
        upper,
        verdict,
        scope,
        warnings,
    }
}

/// The fewest tasks with which equivalence or non-inferiority within `margin` can be shown for new tasks while no
/// difference was seen, however many runs; none for a margin that no number of tasks can show or that needs none.
pub fn tasks_for_margin(margin: f64, alpha: Level) -> Option<u64> {
    if !(margin > 0.0 && margin < 1.0) {
        return None;
    }
    let tasks = libm::ceil(libm::log(alpha.value()) / libm::log1p(-margin));
    (tasks < 1e15).then_some(tasks as u64)
}

fn one_sided_difference(
    matched: &MatchedTallies,
    alpha: f64,
    scope: Scope,
) -> (Option<Bounds>, Warnings) {
    let mut warnings = Warnings::default();
    let bounds = match scope {
        Scope::Population => {
            warnings.add_if(matched.tasks() == 1, Warning::SingleScenario);
            TaskDifferences::new(matched).map(|differences| {
                let bounds = differences.bounds(2.0 * alpha, alpha);
                warnings.add_if(bounds.holds_zero, Warning::UnseenTasks);
                warnings.add_if(bounds.capped, Warning::TaskCapped);
                Bounds {
                    lower: bounds.lower,
                    upper: bounds.upper,
                }
            })
        }
        Scope::Suite => {
            let suite = suite_difference_of(matched, 2.0 * alpha);
            warnings.extend(&suite.warnings);
            suite
                .lower
                .zip(suite.upper)
                .map(|(lower, upper)| Bounds { lower, upper })
        }
    };
    (bounds, warnings)
}

/// The two-sided error rate whose bounds are one-sided bounds with error rate `alpha`.
fn one_sided(alpha: Level) -> Level {
    Level::new(2.0 * alpha.value()).unwrap_or(Level::ALMOST_ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_needs_as_many_tasks_as_could_miss_it() {
        let needed = |margin| tasks_for_margin(margin, Level::ALPHA_05);
        assert_eq!(needed(0.1), Some(29));
        assert_eq!(needed(0.05), Some(59));
        assert_eq!(needed(0.2), Some(14));
        assert_eq!((needed(0.0), needed(1.0)), (None, None));
    }

    #[test]
    fn a_margin_that_the_unseen_share_touches_is_not_shown() {
        for tasks in 2..60 {
            let tallies = vec![Tally::new(3, 3).unwrap(); tasks];
            let options = SuccessMarginOptions {
                margin: 1.0 - 0.05_f64.powf(1.0 / tasks as f64),
                alpha: Level::ALPHA_05,
                scope: Scope::Population,
            };
            let found = success_margin(&tallies, &tallies, &options).unwrap();
            assert_eq!(found.non_inferior, GateVerdict::Inconclusive, "{tasks}");
            assert!(!found.equivalent);
        }
    }

    #[test]
    fn equal_rates_pass_a_suite_margin_and_a_clear_loss_fails_it() {
        let tallies = |successes: u64| vec![Tally::new(successes, 50).unwrap(); 4];
        let margin = |a, b| {
            let options = SuccessMarginOptions {
                margin: 0.1,
                alpha: Level::ALPHA_05,
                scope: Scope::Suite,
            };
            success_margin(&tallies(a), &tallies(b), &options)
                .unwrap()
                .non_inferior
        };
        assert_eq!(margin(45, 45), GateVerdict::Pass);
        assert_eq!(margin(30, 45), GateVerdict::Fail);
        assert_eq!(margin(40, 45), GateVerdict::Inconclusive);
    }
}
