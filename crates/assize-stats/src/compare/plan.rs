//! What a comparison would need to become conclusive, from the variances it met.

use serde::Serialize;

use super::CompareOptions;
use crate::count::CountDifference;
use crate::effect::{Effect, Inside, Measure, ScenarioEffects};
use crate::interval::{Level, Scope};
use crate::power::{PowerInputs, PowerPlan, power_plan};
use crate::sample::{Sample, finite};
use crate::scenario::{Pair, common_scale};
use crate::special::{normal_quantile, student_t_quantile};
use crate::statistic::Statistic;
use crate::success::{MatchedTallies, chance_inside, mean_rate, per_task_variance};

/// What the design can see and what it would take to see a smaller effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonPlan {
    /// The effect planned for, in percent of B; absent for rare counts, which are planned in their unit.
    pub target_pct: Option<f64>,
    /// The effect planned for: a log ratio, or a difference in the metric's unit.
    pub target_effect: f64,
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

/// What a comparison of success can see and what it would take to see `target_pp`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessPlan {
    /// The difference planned for, in points.
    pub target_pp: f64,
    /// Smallest difference this design finds, in points.
    pub min_detectable_pp: f64,
    /// Repetitions that would show the target with these scenarios; absent when more repetitions alone will not do.
    pub repetitions_needed: Option<u64>,
    /// Scenarios that would show the target with these repetitions; absent for verdicts on exactly these scenarios.
    pub scenarios_needed: Option<u64>,
    /// Probability of finding a difference of that size.
    pub power: Level,
}

/// None when there is nothing to plan from.
pub(super) fn success_plan(
    matched: &MatchedTallies,
    scope: Scope,
    options: &CompareOptions<'_>,
) -> Option<SuccessPlan> {
    if matched.tasks() == 0 {
        return None;
    }
    match scope {
        Scope::Population => population_plan(matched, options),
        Scope::Suite => suite_plan(matched, options),
    }
}

fn population_plan(matched: &MatchedTallies, options: &CompareOptions<'_>) -> Option<SuccessPlan> {
    let repetitions = harmonic_trials(matched);
    let [chance_a, chance_b] = [&matched.a, &matched.b].map(|tallies| chance_inside(tallies));
    let variance = per_task_variance(matched)?;
    let mut inputs = PowerInputs {
        scenarios: matched.tasks() as u64,
        repetitions,
        omega2: (variance - chance_a - chance_b).max(0.0),
        sigma_a2: chance_a * repetitions,
        sigma_b2: chance_b * repetitions,
        delta: options.plan_effect,
    };
    let alpha = Level::new(options.confidence_level.complement()).ok()?;
    let detectable = power_plan(&inputs, alpha, Level::POWER_80)
        .ok()?
        .min_detectable_effect?;
    inputs.delta = target_below(detectable, options.plan_effect);
    let plan = power_plan(&inputs, alpha, Level::POWER_80).ok()?;
    Some(SuccessPlan {
        target_pp: inputs.delta * 100.0,
        min_detectable_pp: detectable.min(1.0) * 100.0,
        repetitions_needed: plan.repetitions_needed,
        scenarios_needed: plan.scenarios_needed,
        power: Level::POWER_80,
    })
}

/// On exactly these tasks only more runs help.
fn suite_plan(matched: &MatchedTallies, options: &CompareOptions<'_>) -> Option<SuccessPlan> {
    let repetitions = harmonic_trials(matched);
    let tasks = matched.tasks() as f64;
    // Rates are drawn a little to the middle, so that rates of 0 and 1 do not promise certainty.
    let per_run = |tallies: &[crate::proportion::Tally]| {
        let runs = tasks * repetitions;
        let rate = (mean_rate(tallies)? * runs + 1.0) / (runs + 2.0);
        Some(rate * (1.0 - rate))
    };
    let variance = per_run(&matched.a)? + per_run(&matched.b)?;
    let reach = -normal_quantile(options.confidence_level.complement() / 2.0)
        + normal_quantile(Level::POWER_80.value());
    let detectable = reach * libm::sqrt(variance / (tasks * repetitions));
    let target = target_below(detectable, options.plan_effect);
    let needed = libm::ceil(variance * (reach / target) * (reach / target) / tasks);
    Some(SuccessPlan {
        target_pp: target * 100.0,
        min_detectable_pp: detectable.min(1.0) * 100.0,
        repetitions_needed: (needed < 1e15).then_some(needed as u64),
        scenarios_needed: None,
        power: Level::POWER_80,
    })
}

/// The wanted effect, halved until the design does not see it yet.
fn target_below(detectable: f64, wanted: f64) -> f64 {
    let mut target = wanted;
    while target >= detectable && target > 1e-6 {
        target /= 2.0;
    }
    target
}

/// The number of repetitions that gives the same error when all scenarios have it.
fn harmonic_trials(matched: &MatchedTallies) -> f64 {
    let all = matched.a.iter().chain(&matched.b);
    let inverse: f64 = all.map(|tally| 1.0 / tally.trials() as f64).sum();
    2.0 * matched.tasks() as f64 / inverse
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
    let mut inputs = PowerInputs {
        scenarios: pairs.len() as u64,
        repetitions,
        omega2: (spread * spread - (sigma_a2 + sigma_b2) / repetitions).max(0.0),
        sigma_a2,
        sigma_b2,
        delta: target(pairs, statistic, measure, options.plan_effect),
    };
    let alpha = Level::new(options.confidence_level.complement()).ok()?;
    let plan = power_plan(&inputs, alpha, Level::POWER_80).ok()?;
    // What does not vary says nothing about what it would take.
    plan.min_detectable_effect.filter(|&least| least > 0.0)?;
    // A design that already sees the wanted effect is planned for a smaller one.
    let mut effect = options.plan_effect;
    let sees = |effect: f64| {
        let delta = target(pairs, statistic, measure, effect);
        delta > 0.0
            && plan
                .min_detectable_effect
                .is_some_and(|least| least <= delta)
    };
    while sees(effect) && effect > 1e-6 {
        effect /= 2.0;
    }
    inputs.delta = target(pairs, statistic, measure, effect);
    let plan = power_plan(&inputs, alpha, Level::POWER_80).ok()?;
    let told = Told {
        measure,
        unit: effects.unit,
        share: effect,
        delta: inputs.delta,
    };
    Some(told.plan(&plan))
}

/// What more runs of exactly these scenarios would show. None when a scenario has a single run, or when logs of single runs
/// do not exist.
pub(super) fn suite_runs_plan(
    pairs: &[Pair],
    measure: Measure,
    options: &CompareOptions<'_>,
) -> Option<ComparisonPlan> {
    let effect = Effect::new(pairs, Scope::Suite, Statistic::Mean, measure)?;
    let reach = options.confidence_level.t(effect.df)
        + student_t_quantile(Level::POWER_80.value(), effect.df);
    let detectable = reach * effect.se;
    let (mut share, mut delta) = (options.plan_effect, 0.0);
    while share > 1e-6 {
        delta = target(pairs, Statistic::Mean, measure, share);
        if delta < detectable {
            break;
        }
        share /= 2.0;
    }
    let needed = libm::ceil(harmonic_mean(pairs) * (detectable / delta) * (detectable / delta));
    let plan = PowerPlan {
        repetitions_needed: (needed < 1e15).then_some(needed as u64),
        scenarios_needed: None,
        min_detectable_effect: (detectable > 0.0).then_some(detectable),
    };
    let told = Told {
        measure,
        unit: effect.unit,
        share,
        delta,
    };
    (delta > 0.0 && delta < detectable).then(|| told.plan(&plan))
}

/// What would show half of the difference in rare counts that this design sees. How much of the variance comes from single
/// runs is not known of counts that are mostly 0, so only more tasks are promised.
pub(super) fn count_plan(
    found: &CountDifference,
    options: &CompareOptions<'_>,
) -> Option<ComparisonPlan> {
    let (variance, df) = found.variance.zip(found.df)?;
    let mut inputs = PowerInputs {
        scenarios: df as u64 + 1,
        repetitions: 1.0,
        omega2: variance,
        sigma_a2: 0.0,
        sigma_b2: 0.0,
        delta: 0.0,
    };
    let alpha = Level::new(options.confidence_level.complement()).ok()?;
    let seen = power_plan(&inputs, alpha, Level::POWER_80).ok()?;
    inputs.delta = seen.min_detectable_effect? / 2.0;
    let mut plan = power_plan(&inputs, alpha, Level::POWER_80).ok()?;
    plan.repetitions_needed = None;
    let told = Told {
        measure: Measure::Difference,
        unit: 1.0,
        share: 0.0,
        delta: inputs.delta,
    };
    Some(told.plan(&plan))
}

/// The scale of a plan, and the effect it is made for.
struct Told {
    measure: Measure,
    unit: f64,
    /// The effect as a share of B; 0 where it is told in the metric's unit only.
    share: f64,
    delta: f64,
}

impl Told {
    fn plan(&self, plan: &PowerPlan) -> ComparisonPlan {
        let is_ratio = self.measure == Measure::LogRatio;
        let percent = |effect: f64| -libm::expm1(-effect) * 100.0;
        ComparisonPlan {
            target_pct: (self.share > 0.0).then_some(self.share * 100.0),
            target_effect: finite(self.delta * self.unit),
            min_detectable_pct: plan.min_detectable_effect.filter(|_| is_ratio).map(percent),
            min_detectable_effect: plan
                .min_detectable_effect
                .map(|effect| finite(effect * self.unit)),
            repetitions_needed: plan.repetitions_needed,
            scenarios_needed: plan.scenarios_needed,
            power: Level::POWER_80,
        }
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
