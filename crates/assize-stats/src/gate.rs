//! Gates: is the candidate worse than the reference by no more than a margin? `limit` holds numbers against fixed limits.

mod limit;

use serde::Serialize;

use crate::effect::{Effect, Inside, Measure};
use crate::error::{StatsError, non_negative};
use crate::interval::{Bounds, Level, Scope};
use crate::sample::finite;
use crate::scenario::Matched;
use crate::statistic::Statistic;
use crate::warning::{Warning, Warnings};
pub use limit::{OneSided, Relation, absolute_gate, suite_bounds};

/// The decision of a gate on the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateVerdict {
    /// Shown to be within the margin or bound.
    Pass,
    /// Shown to be outside of it.
    Fail,
    /// The data fit both.
    Inconclusive,
}

/// The better direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Tokens, time, cost, errors, turns.
    Lower,
    /// Success, scores.
    Higher,
}

/// The largest acceptable worsening.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// A share of the reference: 0.05 for 5 %.
    Relative(f64),
    /// In the metric's unit.
    Absolute(f64),
}

/// Settings of a gate against a reference.
#[derive(Clone, Copy, Debug)]
pub struct GateOptions {
    /// The largest acceptable worsening.
    pub margin: Margin,
    /// Error rate of each one-sided test.
    pub alpha: Level,
    /// New tasks like these, or exactly these.
    pub scope: Scope,
    /// The better direction.
    pub direction: Direction,
    /// Summary of the runs of one scenario; the suite scope always uses means (of logs for ratios).
    pub statistic: Statistic,
}

impl GateOptions {
    /// The usual gate with this margin: lower is better, 5 % error, population scope.
    pub fn new(margin: Margin) -> Self {
        Self {
            margin,
            alpha: Level::ALPHA_05,
            scope: Scope::Population,
            direction: Direction::Lower,
            statistic: Statistic::Median,
        }
    }
}

/// Result of a gate against a reference. Numbers are absent where they are undefined.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoninferiorityGate {
    /// Candidate divided by reference; only for relative margins.
    pub ratio: Option<f64>,
    /// Candidate minus reference; only for absolute margins.
    pub difference: Option<f64>,
    /// One-sided lower bound of the number above.
    pub lower_bound: Option<f64>,
    /// One-sided upper bound.
    pub upper_bound: Option<f64>,
    /// Small when the candidate is clearly within the margin.
    pub p_non_inferior: Option<f64>,
    /// Small when the candidate is clearly outside of it.
    pub p_regression: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// The tasks that the numbers apply to.
    pub scope: Scope,
    /// The decision.
    pub verdict: GateVerdict,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Tests whether candidate `a` is worse than reference `b` by less than the margin, scenario by scenario.
pub fn noninferiority_gate<G: AsRef<[f64]>>(
    a: &[G],
    b: &[G],
    options: &GateOptions,
) -> Result<NoninferiorityGate, StatsError> {
    let matched = Matched::new(a, b)?;
    let (measure, limit) = match options.margin {
        Margin::Relative(margin) => (
            Measure::LogRatio,
            libm::log1p(non_negative("margin", margin)?),
        ),
        Margin::Absolute(margin) => (Measure::Difference, non_negative("margin", margin)?),
    };
    let mut warnings = matched.warnings();
    let effect = Effect::new(&matched.pairs, options.scope, options.statistic, measure);
    warnings.add_if(
        effect.is_some_and(|effect| effect.is_constant()),
        Warning::NoVariation,
    );
    let without_logs = effect.is_none() && Inside::new(&matched.pairs, measure).is_none();
    warnings.add_if(without_logs, Warning::BaselineNonpositive);
    Ok(match effect {
        Some(effect) => gate_effect(&effect, limit, options, warnings),
        None => undecided(options.scope, warnings),
    })
}

fn gate_effect(
    effect: &Effect,
    limit: f64,
    options: &GateOptions,
    warnings: Warnings,
) -> NoninferiorityGate {
    let limit = limit / effect.unit;
    let Bounds { lower, upper } = effect.bounds(options.alpha.two_sided_for_one_sided_alpha());
    let (p_non_inferior, p_regression, within) = match options.direction {
        Direction::Lower => (
            effect.p_below(limit),
            effect.p_above(limit),
            effect.mean <= limit,
        ),
        Direction::Higher => (
            effect.p_above(-limit),
            effect.p_below(-limit),
            effect.mean >= -limit,
        ),
    };
    let alpha = options.alpha.value();
    let verdict = match (p_non_inferior, p_regression) {
        (Some(p), _) if p <= alpha => GateVerdict::Pass,
        (_, Some(p)) if p <= alpha => GateVerdict::Fail,
        (Some(_), _) => GateVerdict::Inconclusive,
        (None, _) if within => GateVerdict::Pass,
        (None, _) => GateVerdict::Fail,
    };
    let is_ratio = effect.measure == Measure::LogRatio;
    let shown = |value: f64| {
        if is_ratio {
            Effect::ratio(value)
        } else {
            finite(value * effect.unit)
        }
    };
    NoninferiorityGate {
        ratio: is_ratio.then(|| shown(effect.mean)),
        difference: (!is_ratio).then(|| shown(effect.mean)),
        lower_bound: Some(shown(lower)),
        upper_bound: Some(shown(upper)),
        p_non_inferior,
        p_regression,
        df: Some(effect.df),
        scope: options.scope,
        verdict,
        warnings,
    }
}

fn undecided(scope: Scope, warnings: Warnings) -> NoninferiorityGate {
    NoninferiorityGate {
        ratio: None,
        difference: None,
        lower_bound: None,
        upper_bound: None,
        p_non_inferior: None,
        p_regression: None,
        df: None,
        scope,
        verdict: GateVerdict::Inconclusive,
        warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_variation_the_mean_decides() {
        let gate = |a: f64| {
            let options = GateOptions::new(Margin::Relative(0.05));
            noninferiority_gate(
                &[[a, a], [2.0 * a, 2.0 * a]],
                &[[10.0, 10.0], [20.0, 20.0]],
                &options,
            )
            .unwrap()
        };
        assert_eq!(gate(10.4).verdict, GateVerdict::Pass);
        assert_eq!(gate(10.6).verdict, GateVerdict::Fail);
        assert!(gate(10.4).warnings.contains(Warning::NoVariation));
    }

    #[test]
    fn higher_is_better_mirrors_the_gate() {
        let (a, b) = (
            [[8.0, 9.0], [17.0, 20.0], [4.0, 4.4]],
            [[10.0, 11.0], [22.0, 20.0], [5.0, 5.5]],
        );
        let lower = noninferiority_gate(&b, &a, &GateOptions::new(Margin::Relative(0.1))).unwrap();
        let options = GateOptions {
            direction: Direction::Higher,
            ..GateOptions::new(Margin::Relative(0.1))
        };
        let higher = noninferiority_gate(&a, &b, &options).unwrap();
        assert_eq!(lower.verdict, higher.verdict);
        let (lower, higher) = (
            lower.p_non_inferior.unwrap(),
            higher.p_non_inferior.unwrap(),
        );
        assert!((lower - higher).abs() < 1e-12);
    }

    #[test]
    fn ratios_of_zero_cannot_be_gated() {
        let options = GateOptions::new(Margin::Relative(0.1));
        let gate = noninferiority_gate(
            &[[0.0, 0.0], [1.0, 2.0]],
            &[[1.0, 1.0], [1.0, 2.0]],
            &options,
        )
        .unwrap();
        assert_eq!(gate.verdict, GateVerdict::Inconclusive);
        assert!(gate.warnings.contains(Warning::BaselineNonpositive));
        let absolute = GateOptions::new(Margin::Absolute(5.0));
        let gate = noninferiority_gate(
            &[[0.0, 0.0], [1.0, 2.0]],
            &[[1.0, 1.0], [1.0, 2.0]],
            &absolute,
        )
        .unwrap();
        assert_eq!(gate.verdict, GateVerdict::Pass);
    }
}
