//! Two modes compared inside each scenario: the headline of every report.

use serde::Serialize;

use crate::effect::{Effect, Measure, ScenarioEffects};
use crate::error::StatsError;
use crate::interval::{Level, Scope};
use crate::scenario::{Matched, Pair};
use crate::statistic::Statistic;
use crate::warning::{Warning, Warnings};

/// Settings of a paired comparison.
#[derive(Clone, Copy, Debug)]
pub struct PairedOptions {
    /// Summary of the runs of one scenario. The suite scope always uses means (of logs for ratios).
    pub statistic: Statistic,
    /// Nominal coverage.
    pub confidence_level: Level,
    /// New tasks like these, or exactly these.
    pub scope: Scope,
}

impl Default for PairedOptions {
    fn default() -> Self {
        Self {
            statistic: Statistic::Median,
            confidence_level: Level::CONFIDENCE_95,
            scope: Scope::Population,
        }
    }
}

/// A compared with B over scenarios. Numbers are absent where they are undefined.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairedComparison {
    /// Scale of the comparison.
    pub measure: Measure,
    /// The tasks that the interval applies to.
    pub scope: Scope,
    /// The percentage by which A is below B; only for ratios.
    pub reduction_pct: Option<f64>,
    /// A minus B in the metric's unit; only for differences.
    pub difference: Option<f64>,
    /// Lower bound of the number above.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// Two-sided p-value of no effect.
    pub p_value: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// No variation: the bounds say nothing about uncertainty.
    pub degenerate: bool,
    /// Scenarios compared.
    pub scenarios: usize,
    /// Scenarios in which A is below B.
    pub scenarios_lower: usize,
    /// Scenarios in which A is above B.
    pub scenarios_higher: usize,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Compares by ratio. Needs the statistic of every scenario above zero; scenario `s` of `a` belongs to `s` of `b`.
pub fn paired_log_ratio<G: AsRef<[f64]>>(
    a: &[G],
    b: &[G],
    options: &PairedOptions,
) -> Result<PairedComparison, StatsError> {
    let matched = Matched::new(a, b)?;
    Ok(compare(
        &matched.pairs,
        Measure::LogRatio,
        options,
        matched.warnings(),
    ))
}

/// Compares by difference, in the metric's unit.
pub fn paired_difference<G: AsRef<[f64]>>(
    a: &[G],
    b: &[G],
    options: &PairedOptions,
) -> Result<PairedComparison, StatsError> {
    let matched = Matched::new(a, b)?;
    Ok(compare(
        &matched.pairs,
        Measure::Difference,
        options,
        matched.warnings(),
    ))
}

/// The scale on which these scenarios can be compared: ratios where everything needed is above zero.
pub(crate) fn natural_measure(pairs: &[Pair], statistic: Statistic) -> Measure {
    let positive = pairs
        .iter()
        .all(|pair| statistic.of(&pair.a) > 0.0 && statistic.of(&pair.b) > 0.0);
    if positive {
        Measure::LogRatio
    } else {
        Measure::Difference
    }
}

pub(crate) fn compare(
    pairs: &[Pair],
    measure: Measure,
    options: &PairedOptions,
    mut warnings: Warnings,
) -> PairedComparison {
    let effects = ScenarioEffects::new(pairs, options.statistic, measure);
    warnings.add_if(effects.is_none(), Warning::BaselineNonpositive);
    let effect = Effect::new(pairs, options.scope, options.statistic, measure);
    warnings.add_if(
        effect.is_some_and(|effect| effect.is_constant()),
        Warning::NoVariation,
    );
    let count = |is_counted: fn(&f64) -> bool| {
        effects.as_ref().map_or(0, |effects| {
            effects
                .values
                .iter()
                .filter(|value| is_counted(value))
                .count()
        })
    };
    let point = effect.map(|effect| effect.shown(effect.mean));
    let bounds = effect.map(|effect| effect.shown_bounds(options.confidence_level));
    PairedComparison {
        measure,
        scope: options.scope,
        reduction_pct: point.filter(|_| measure == Measure::LogRatio),
        difference: point.filter(|_| measure == Measure::Difference),
        lower: bounds.map(|bounds| bounds.lower),
        upper: bounds.map(|bounds| bounds.upper),
        p_value: effect.and_then(|effect| effect.p_value()),
        df: effect.map(|effect| effect.df),
        degenerate: effect.is_some_and(|effect| effect.is_constant()),
        scenarios: pairs.len(),
        scenarios_lower: count(|value| *value < 0.0),
        scenarios_higher: count(|value| *value > 0.0),
        warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_have_no_p_value() {
        let a = [vec![7.0, 7.0], vec![70.0, 70.0], vec![0.7, 0.7]];
        let b = [vec![10.0, 10.0], vec![100.0, 100.0], vec![1.0, 1.0]];
        let answer = paired_log_ratio(&a, &b, &PairedOptions::default()).unwrap();
        assert!(answer.degenerate && answer.p_value.is_none());
        assert!((answer.reduction_pct.unwrap() - 30.0).abs() < 1e-9);
        assert_eq!(answer.lower, answer.upper);
        assert!(answer.warnings.contains(Warning::NoVariation));
    }

    #[test]
    fn one_scenario_has_no_population_answer_but_a_suite_answer() {
        let (a, b) = ([vec![5.0, 6.0, 7.0]], [vec![9.0, 12.0, 10.0]]);
        let population = paired_log_ratio(&a, &b, &PairedOptions::default()).unwrap();
        assert_eq!(population.reduction_pct, None);
        assert!(population.warnings.contains(Warning::SingleScenario));
        let suite = PairedOptions {
            scope: Scope::Suite,
            ..Default::default()
        };
        assert!(
            paired_log_ratio(&a, &b, &suite)
                .unwrap()
                .reduction_pct
                .is_some()
        );
    }

    #[test]
    fn the_suite_interval_is_welchs_t_interval_for_one_scenario() {
        let (a, b) = ([vec![1.0, 2.0, 4.0, 7.0]], [vec![3.0, 8.0, 9.0]]);
        let suite = PairedOptions {
            scope: Scope::Suite,
            ..Default::default()
        };
        let answer = paired_difference(&a, &b, &suite).unwrap();
        // scipy 1.17.1: ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
        assert!(
            (answer.lower.unwrap() - WELCH.0).abs() < 1e-9,
            "{:?}",
            answer.lower
        );
        assert!(
            (answer.upper.unwrap() - WELCH.1).abs() < 1e-9,
            "{:?}",
            answer.upper
        );
        assert!(
            (answer.p_value.unwrap() - WELCH.2).abs() < 1e-9,
            "{:?}",
            answer.p_value
        );
    }

    const WELCH: (f64, f64, f64) = (
        -9.572_014_200_127_544,
        3.238_680_866_794_211,
        0.239_108_210_568_670_3,
    );

    #[test]
    fn extreme_ratios_stay_finite() {
        let answer = paired_log_ratio(
            &[[1e300], [1e-300]],
            &[[1e-300], [1e300]],
            &PairedOptions::default(),
        )
        .unwrap();
        assert!(answer.lower.unwrap().is_finite() && answer.upper.unwrap().is_finite());
    }
}
