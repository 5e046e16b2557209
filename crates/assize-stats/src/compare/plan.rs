//! The size that a comparison would need to become conclusive, from the variances it met.
//!
//! A `Basis` is gathered with the numbers; the plan is made when the family is known, because the verdict is held to the
//! error rate that is left after adjustment.

use serde::Serialize;

use super::CompareOptions;
use crate::count::CountDifference;
use crate::design::{Components, Question, detectable};
use crate::effect::{Effect, Inside, Measure, ScenarioEffects};
use crate::interval::{Level, Scope};
use crate::sample::{Sample, finite};
use crate::scenario::{Pair, common_scale};
use crate::special::{normal_quantile, student_t_quantile};
use crate::statistic::Statistic;
use crate::success::{MatchedTallies, chance_inside, mean_rate, per_task_variance};

/// The smallest effect that the design detects, and the size needed for a smaller one.
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
    /// The 80 % range of `scenarios_needed`: few scenarios know badly how much they differ.
    pub scenarios_range: Option<[u64; 2]>,
    /// The share of the error that comes from differences between scenarios; absent for exactly these scenarios.
    pub between_share: Option<f64>,
    /// The error rate that the verdict is held to.
    pub alpha: Level,
    /// Probability of finding an effect of that size.
    pub power: Level,
}

/// The smallest difference in success that the design detects, and the size needed for `target_pp`.
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
    /// The 80 % range of `scenarios_needed`: few scenarios know badly how much they differ.
    pub scenarios_range: Option<[u64; 2]>,
    /// The share of the error that comes from differences between scenarios; absent for exactly these scenarios.
    pub between_share: Option<f64>,
    /// The error rate that the verdict is held to.
    pub alpha: Level,
    /// Probability of finding a difference of that size.
    pub power: Level,
}

/// The error rate that one of so many questions is held to at first.
pub(super) fn level_of_family(options: &CompareOptions<'_>, family_size: usize) -> Option<Level> {
    Level::new(options.confidence_level.complement() / family_size.max(1) as f64).ok()
}

/// The facts that a plan for new tasks is made of, whatever the verdict was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanBasis {
    /// The variances that were met.
    pub components: Components,
    /// Scale of the comparison.
    pub measure: Measure,
    /// Differences are multiples of this; 1 for ratios.
    pub unit: f64,
    /// B's size in that unit, which shares refer to.
    pub size: f64,
}

impl PlanBasis {
    /// The effect, on the scale of the components, of a reduction by a share of B.
    pub fn effect(&self, share: f64) -> f64 {
        match self.measure {
            Measure::LogRatio => -libm::log1p(-share),
            Measure::Difference => share * self.size,
        }
    }

    /// The share of B that an effect on the scale of the components comes to; none where B is 0.
    pub fn share(&self, effect: f64) -> Option<f64> {
        match self.measure {
            Measure::LogRatio => Some(-libm::expm1(-effect)),
            Measure::Difference => (self.size > 0.0).then(|| effect / self.size),
        }
    }
}

/// The plan for a metric on new tasks, whatever was compared. None when nothing varies.
pub fn plan_for_metric(basis: &PlanBasis, alpha: Level) -> Option<ComparisonPlan> {
    let wanted = CompareOptions::default().plan_effect;
    Basis::Scenarios(*basis).plan(wanted, alpha)
}

/// The plan for success on new tasks, whatever was compared.
pub fn plan_for_success(components: &Components, alpha: Level) -> Option<SuccessPlan> {
    let wanted = CompareOptions::default().plan_effect;
    SuccessBasis::Tasks(*components).plan(wanted, alpha)
}

/// The facts that a plan for a metric is made of.
#[derive(Clone, Debug)]
pub(super) enum Basis {
    /// Effects per scenario, for new tasks like these.
    Scenarios(PlanBasis),
    /// Runs of exactly these scenarios.
    Runs {
        effect: Effect,
        repetitions: f64,
        size: f64,
    },
    /// Rare counts.
    Counts { variance: f64, scenarios: u64 },
}

impl Basis {
    /// None for fewer than two scenarios, or when logs of single runs do not exist.
    pub(super) fn of_scenarios(
        pairs: &[Pair],
        statistic: Statistic,
        measure: Measure,
    ) -> Option<Self> {
        let effects = ScenarioEffects::new(pairs, statistic, measure)?;
        let inside = Inside::new(pairs, measure)?;
        let spread = Sample::new(&effects.values)
            .filter(|values| values.count() > 1)?
            .stddev();
        let side = |side: fn(&Pair) -> &Sample| variance_inside(inside.pairs.iter().map(side));
        let within2 = side(|pair| &pair.a) + side(|pair| &pair.b);
        let (scenarios, repetitions) = (pairs.len() as u64, harmonic_mean(pairs));
        Some(Self::Scenarios(PlanBasis {
            components: Components::new(
                scenarios,
                repetitions,
                spread * spread,
                within2,
                statistic,
            ),
            measure,
            unit: effects.unit,
            size: baseline_size(pairs, statistic),
        }))
    }

    /// None when a scenario has a single run, or when logs of single runs do not exist.
    pub(super) fn of_runs(pairs: &[Pair], measure: Measure) -> Option<Self> {
        Some(Self::Runs {
            effect: Effect::new(pairs, Scope::Suite, Statistic::Mean, measure)?,
            repetitions: harmonic_mean(pairs),
            size: baseline_size(pairs, Statistic::Mean),
        })
    }

    pub(super) fn of_counts(found: &CountDifference) -> Option<Self> {
        let (variance, df) = found.variance.zip(found.df)?;
        Some(Self::Counts {
            variance,
            scenarios: df as u64 + 1,
        })
    }

    /// The facts for new tasks, where the comparison has them.
    pub(super) fn of_new_tasks(&self) -> Option<PlanBasis> {
        match self {
            Self::Scenarios(basis) => Some(*basis),
            Self::Runs { .. } => None,
            // For counts that are mostly 0, the share of the variance within scenarios is unknown.
            Self::Counts {
                variance,
                scenarios,
            } => Some(PlanBasis {
                components: Components::new(*scenarios, 1.0, *variance, 0.0, Statistic::Mean),
                measure: Measure::Difference,
                unit: 1.0,
                size: 0.0,
            }),
        }
    }

    /// None when nothing varies, which says nothing about what it would take.
    pub(super) fn plan(&self, wanted: f64, alpha: Level) -> Option<ComparisonPlan> {
        match self {
            Self::Scenarios(basis) => {
                let scale = Scale {
                    measure: basis.measure,
                    unit: basis.unit,
                    size: basis.size,
                };
                scenarios_plan(&basis.components, scale, wanted, alpha)
            }
            Self::Runs {
                effect,
                repetitions,
                size,
            } => {
                let scale = Scale {
                    measure: effect.measure,
                    unit: effect.unit,
                    size: *size,
                };
                runs_plan(effect, *repetitions, scale, wanted, alpha)
            }
            Self::Counts { .. } => counts_plan(&self.of_new_tasks()?.components, alpha),
        }
    }
}

/// The scale on which effects are planned.
#[derive(Clone, Copy)]
struct Scale {
    measure: Measure,
    unit: f64,
    size: f64,
}

impl Scale {
    /// A reduction by a share of B.
    fn effect(self, share: f64) -> f64 {
        match self.measure {
            Measure::LogRatio => -libm::log1p(-share),
            Measure::Difference => share * self.size,
        }
    }

    /// The wanted share, halved until the design does not see it yet.
    fn unseen(self, detectable: f64, wanted: f64) -> f64 {
        let mut share = wanted;
        while share > 1e-6 && self.effect(share) >= detectable && self.effect(share) > 0.0 {
            share /= 2.0;
        }
        share
    }

    fn plan(self, share: f64, detectable: f64, alpha: Level) -> ComparisonPlan {
        let is_ratio = self.measure == Measure::LogRatio;
        ComparisonPlan {
            target_pct: Some(share * 100.0),
            target_effect: finite(self.effect(share) * self.unit),
            min_detectable_pct: is_ratio.then(|| -libm::expm1(-detectable) * 100.0),
            min_detectable_effect: Some(finite(detectable * self.unit)),
            repetitions_needed: None,
            scenarios_needed: None,
            scenarios_range: None,
            between_share: None,
            alpha,
            power: Level::POWER_80,
        }
    }
}

fn scenarios_plan(
    components: &Components,
    scale: Scale,
    wanted: f64,
    alpha: Level,
) -> Option<ComparisonPlan> {
    let needs = Needs::new(components, alpha)?;
    let share = scale.unseen(needs.detectable, wanted);
    let needs = needs.for_difference(scale.effect(share));
    Some(ComparisonPlan {
        repetitions_needed: needs.repetitions,
        scenarios_needed: needs.scenarios,
        scenarios_range: needs.range,
        between_share: Some(components.between_share(components.repetitions)),
        ..scale.plan(share, needs.detectable, alpha)
    })
}

/// The repetitions of exactly these scenarios that would show the wanted effect.
fn runs_plan(
    effect: &Effect,
    repetitions: f64,
    scale: Scale,
    wanted: f64,
    alpha: Level,
) -> Option<ComparisonPlan> {
    let reach = student_t_quantile(1.0 - alpha.value() / 2.0, effect.df)
        + student_t_quantile(Level::POWER_80.value(), effect.df);
    let detectable = reach * effect.se;
    let share = scale.unseen(detectable, wanted);
    let delta = scale.effect(share);
    if !(delta > 0.0 && delta < detectable) {
        return None;
    }
    let needed = libm::ceil(repetitions * (detectable / delta) * (detectable / delta));
    Some(ComparisonPlan {
        repetitions_needed: (needed < 1e15).then_some(needed as u64),
        ..scale.plan(share, detectable, alpha)
    })
}

/// The size needed for half of the difference in rare counts that this design detects. Only more tasks are promised.
fn counts_plan(components: &Components, alpha: Level) -> Option<ComparisonPlan> {
    let needs = Needs::new(components, alpha)?;
    let delta = needs.detectable / 2.0;
    let needs = needs.for_difference(delta);
    let scale = Scale {
        measure: Measure::Difference,
        unit: 1.0,
        size: 1.0,
    };
    Some(ComparisonPlan {
        target_pct: None,
        target_effect: finite(delta),
        scenarios_needed: needs.scenarios,
        scenarios_range: needs.range,
        ..scale.plan(delta, needs.detectable, alpha)
    })
}

/// The detectable difference of a design, and the size that a difference needs.
struct Needs<'a> {
    components: &'a Components,
    alpha: Level,
    detectable: f64,
    repetitions: Option<u64>,
    scenarios: Option<u64>,
    range: Option<[u64; 2]>,
}

impl<'a> Needs<'a> {
    /// None for fewer than two scenarios, or when nothing varies.
    fn new(components: &'a Components, alpha: Level) -> Option<Self> {
        let Components {
            scenarios,
            repetitions,
            ..
        } = *components;
        let detectable = detectable(components, scenarios, repetitions, alpha, Level::POWER_80)?;
        (detectable > 0.0).then_some(Self {
            components,
            alpha,
            detectable,
            repetitions: None,
            scenarios: None,
            range: None,
        })
    }

    fn for_difference(mut self, delta: f64) -> Self {
        let question = Question {
            delta,
            alpha: self.alpha,
            power: Level::POWER_80,
        };
        let components = self.components;
        let scenarios_of =
            |components: &Components| question.scenarios_needed(components, components.repetitions);
        self.repetitions = question.repetitions_needed(components, components.scenarios);
        self.scenarios = scenarios_of(components);
        let [low, high] = components.range();
        self.range = scenarios_of(&low)
            .zip(scenarios_of(&high))
            .map(|(low, high)| [low, high]);
        self
    }
}

/// The facts that a plan for success is made of.
#[derive(Clone, Debug)]
pub(super) enum SuccessBasis {
    /// Differences per task, for new tasks like these.
    Tasks(Components),
    /// Runs of exactly these tasks: variance of one run of A plus one of B.
    Runs {
        variance: f64,
        tasks: f64,
        repetitions: f64,
    },
}

/// The variances of success, for new tasks like these. None for fewer than two tasks.
pub(super) fn success_components(matched: &MatchedTallies) -> Option<Components> {
    let spread2 = per_task_variance(matched)?;
    let repetitions = harmonic_trials(matched);
    let [chance_a, chance_b] = [&matched.a, &matched.b].map(|tallies| chance_inside(tallies));
    let both = || matched.a.iter().chain(&matched.b);
    let rates = both().map(|tally| tally.successes() as f64 / tally.trials().max(1) as f64);
    let components = Components::new(
        matched.tasks() as u64,
        repetitions,
        spread2,
        (chance_a + chance_b) * repetitions,
        Statistic::Mean,
    );
    Some(components.with_success_rate(rates.sum::<f64>() / both().count() as f64))
}

impl SuccessBasis {
    /// None when there is nothing to plan from.
    pub(super) fn new(matched: &MatchedTallies, scope: Scope) -> Option<Self> {
        if matched.tasks() == 0 {
            return None;
        }
        match scope {
            Scope::Population => success_components(matched).map(Self::Tasks),
            Scope::Suite => Self::of_runs(matched, harmonic_trials(matched)),
        }
    }

    fn of_runs(matched: &MatchedTallies, repetitions: f64) -> Option<Self> {
        let tasks = matched.tasks() as f64;
        // Rates are drawn a little to the middle, so that rates of 0 and 1 do not promise certainty.
        let per_run = |tallies: &[crate::proportion::Tally]| {
            let runs = tasks * repetitions;
            let rate = (mean_rate(tallies)? * runs + 1.0) / (runs + 2.0);
            Some(rate * (1.0 - rate))
        };
        Some(Self::Runs {
            variance: per_run(&matched.a)? + per_run(&matched.b)?,
            tasks,
            repetitions,
        })
    }

    pub(super) fn plan(&self, wanted: f64, alpha: Level) -> Option<SuccessPlan> {
        match self {
            Self::Tasks(components) => {
                let needs = Needs::new(components, alpha)?;
                let target = target_below(needs.detectable, wanted);
                let needs = needs.for_difference(target);
                Some(SuccessPlan {
                    target_pp: target * 100.0,
                    min_detectable_pp: needs.detectable.min(1.0) * 100.0,
                    repetitions_needed: needs.repetitions,
                    scenarios_needed: needs.scenarios,
                    scenarios_range: needs.range,
                    between_share: Some(components.between_share(components.repetitions)),
                    alpha,
                    power: Level::POWER_80,
                })
            }
            Self::Runs {
                variance,
                tasks,
                repetitions,
            } => {
                let reach = -normal_quantile(alpha.value() / 2.0)
                    + normal_quantile(Level::POWER_80.value());
                let detectable = reach * libm::sqrt(variance / (tasks * repetitions));
                let target = target_below(detectable, wanted);
                let needed = libm::ceil(variance * (reach / target) * (reach / target) / tasks);
                Some(SuccessPlan {
                    target_pp: target * 100.0,
                    min_detectable_pp: detectable.min(1.0) * 100.0,
                    repetitions_needed: (needed < 1e15).then_some(needed as u64),
                    scenarios_needed: None,
                    scenarios_range: None,
                    between_share: None,
                    alpha,
                    power: Level::POWER_80,
                })
            }
        }
    }
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
pub(crate) fn variance_inside<'a>(samples: impl Iterator<Item = &'a Sample>) -> f64 {
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
