//! What a comparison would need to become conclusive, from the variances it met.

use serde::Serialize;

use super::CompareOptions;
use crate::effect::{Inside, Measure, ScenarioEffects};
use crate::interval::Level;
use crate::power::{PowerInputs, PowerPlan, power_plan};
use crate::sample::{Sample, finite};
use crate::scenario::{Pair, common_scale};
use crate::statistic::Statistic;

/// What the design can see and what it would take to see `target_pct`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonPlan {
    /// The effect planned for, in percent of B.
    pub target_pct: f64,
    /// Smallest reduction this design finds, in percent; only for ratios.
    pub min_detectable_pct: Option<f64>,
    /// Smallest effect this design finds: a log ratio, or a difference in the metric's unit.
    pub min_detectable_effect: Option<f64>,
    /// Repetitions that would show the target with these scenarios; absent when more repetitions alone will not do.
    pub repetitions_needed: Option<u64>,
    /// Scenarios that would show the target with these repetitions.
    pub scenarios_needed: Option<u64>,
    /// Probability of finding an effect of that size.
    pub power: Level,
}

/// None for fewer than two scenarios, or when logs of single runs do not exist.
pub(super) fn plan(
    pairs: &[Pair],
    statistic: Statistic,
    measure: Measure,
    options: &CompareOptions<'_>,
) -> Option<ComparisonPlan> {
    let effects = ScenarioEffects::new(pairs, statistic, measure)?;
    let inside = Inside::new(pairs, measure)?;
    let spread = Sample::new(&effects.values)
        .filter(|values| values.count() > 1)?
        .stddev();
    let repetitions = harmonic_mean(pairs);
    let sigma_a2 = variance_inside(inside.pairs.iter().map(|pair| &pair.a));
    let sigma_b2 = variance_inside(inside.pairs.iter().map(|pair| &pair.b));
    let inputs = PowerInputs {
        scenarios: pairs.len() as u64,
        repetitions,
        omega2: (spread * spread - (sigma_a2 + sigma_b2) / repetitions).max(0.0),
        sigma_a2,
        sigma_b2,
        delta: target(pairs, statistic, measure, options.plan_effect),
    };
    let alpha = Level::new(options.confidence_level.complement()).ok()?;
    let plan = power_plan(&inputs, alpha, Level::POWER_80).ok()?;
    Some(shown(&plan, measure, effects.unit, options.plan_effect))
}

fn shown(plan: &PowerPlan, measure: Measure, unit: f64, plan_effect: f64) -> ComparisonPlan {
    let is_ratio = measure == Measure::LogRatio;
    let percent = |effect: f64| -libm::expm1(-effect) * 100.0;
    ComparisonPlan {
        target_pct: plan_effect * 100.0,
        min_detectable_pct: plan.min_detectable_effect.filter(|_| is_ratio).map(percent),
        min_detectable_effect: plan
            .min_detectable_effect
            .map(|effect| finite(effect * unit)),
        repetitions_needed: plan.repetitions_needed,
        scenarios_needed: plan.scenarios_needed,
        power: Level::POWER_80,
    }
}

/// The planned effect on the scale of the comparison: a reduction by a share of B.
fn target(pairs: &[Pair], statistic: Statistic, measure: Measure, plan_effect: f64) -> f64 {
    match measure {
        Measure::LogRatio => -libm::log1p(-plan_effect),
        Measure::Difference => plan_effect * baseline_size(pairs, statistic),
    }
}

/// Mean magnitude of B's scenario statistics, in the unit in which differences are computed.
pub(super) fn baseline_size(pairs: &[Pair], statistic: Statistic) -> f64 {
    let scale = common_scale(pairs.iter().flat_map(|pair| [&pair.a, &pair.b]));
    let sizes: Vec<f64> = pairs
        .iter()
        .map(|pair| statistic.of(&pair.b).abs() * scale.inverse)
        .collect();
    Sample::new(&sizes).map_or(0.0, |sizes| sizes.mean())
}

/// Pooled variance inside scenarios; 0 when every scenario has a single run, which leaves all of it between them.
fn variance_inside<'a>(samples: impl Iterator<Item = &'a Sample>) -> f64 {
    let (mut squares, mut df) = (0.0, 0.0);
    for sample in samples {
        let freedom = (sample.count() - 1) as f64;
        squares += freedom * sample.stddev() * sample.stddev();
        df += freedom;
    }
    if df == 0.0 { 0.0 } else { squares / df }
}

/// The number of repetitions that gives the same error when all scenarios have it.
fn harmonic_mean(pairs: &[Pair]) -> f64 {
    let inverse = pairs
        .iter()
        .flat_map(|pair| [&pair.a, &pair.b])
        .map(|sample| 1.0 / sample.count() as f64);
    2.0 * pairs.len() as f64 / inverse.sum::<f64>()
}
