//! Design of an experiment: the smallest difference it can show, the trials that a difference takes, and the best split of
//! money between scenarios and repetitions. Everything rests on the exact noncentral t distribution.

use libm::sqrt;
use serde::Serialize;

use crate::interval::Level;
use crate::special::{
    chi_square_quantile, noncentral_t_power, normal_quantile, power_beyond, student_t_quantile,
};
use crate::statistic::Statistic;
use crate::task_t;

/// More scenarios than this are no plan.
const MOST_SCENARIOS: u64 = 1_000_000;
/// More repetitions than this are no plan.
const MOST_REPETITIONS: u64 = 100_000;
/// Splits with more repetitions are not searched: at this number the median is as exact as money can make it.
const MOST_SPLIT: u64 = 2_000;
/// Above this power splits are distinguished by their detectable difference.
const ALL_BUT_CERTAIN: f64 = 0.999;
/// Both ends of a range leave out this share: ranges hold the truth in 80 % of cases.
const RANGE_TAIL: f64 = 0.1;

/// The variances that a paired comparison meets, on its own scale (logs for ratios).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Components {
    /// Scenarios that they were estimated from.
    pub scenarios: u64,
    /// Repetitions that they were estimated from.
    pub repetitions: f64,
    /// Variance of the effect per scenario as it was observed.
    pub spread2: f64,
    /// The part of it that is left when runs do not vary: the effect differs from scenario to scenario.
    pub omega2: f64,
    /// Variance of a single run of A plus that of a single run of B inside a scenario.
    pub within2: f64,
    /// The statistic over the runs of a scenario.
    pub statistic: Statistic,
    /// The success rate of both modes, where success is compared: how much runs vary then follows from the rates that are asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
}

impl Components {
    /// Splits an observed variance of effects per scenario into what runs explain and what is left.
    pub fn new(
        scenarios: u64,
        repetitions: f64,
        spread2: f64,
        within2: f64,
        statistic: Statistic,
    ) -> Self {
        let mut components = Self {
            scenarios,
            repetitions,
            spread2,
            omega2: 0.0,
            within2,
            statistic,
            success_rate: None,
        };
        components.omega2 = (spread2 - components.within(repetitions)).max(0.0);
        components
    }

    /// The same for success, passed by this share of the runs of both modes.
    pub fn with_success_rate(mut self, rate: f64) -> Self {
        self.success_rate = Some(rate);
        self
    }

    /// The same where the modes differ by `delta`: one of them keeps its success rate, the other has the one, higher or
    /// lower, at which runs vary more. Other metrics vary as they did.
    fn at_difference(mut self, delta: f64) -> Self {
        let Some(rate) = self.success_rate else {
            return self;
        };
        let chance = |rate: f64| rate * (1.0 - rate);
        let others = [rate - delta, rate + delta];
        let possible = others.into_iter().filter(|rate| (0.0..=1.0).contains(rate));
        let other = possible.map(chance).fold(0.0, f64::max);
        self.within2 = match chance(rate) > 0.0 {
            true => self.within2 / 2.0 * (1.0 + other / chance(rate)),
            false => self.within2 / 2.0 + other,
        };
        self
    }

    /// Variance of the effect of one scenario that comes from its runs.
    pub fn within(&self, repetitions: f64) -> f64 {
        let repetitions = repetitions.max(1.0);
        self.within2 * statistic_factor(self.statistic, repetitions) / repetitions
    }

    /// Variance of the effect of one scenario with so many repetitions.
    pub fn per_scenario(&self, repetitions: f64) -> f64 {
        self.omega2 + self.within(repetitions)
    }

    /// The share of the error that comes from scenarios rather than from runs; 0 when nothing varies.
    pub fn between_share(&self, repetitions: f64) -> f64 {
        let all = self.per_scenario(repetitions);
        if all > 0.0 { self.omega2 / all } else { 0.0 }
    }

    /// The same with the observed spread at both ends of its 80 % range: few scenarios know their spread badly.
    pub fn range(&self) -> [Self; 2] {
        let df = self.scenarios.saturating_sub(1) as f64;
        let end = |share: f64| {
            let spread2 = if df < 1.0 {
                self.spread2
            } else {
                self.spread2 * df / chi_square_quantile(share, df)
            };
            Self {
                success_rate: self.success_rate,
                ..Self::new(
                    self.scenarios,
                    self.repetitions,
                    spread2,
                    self.within2,
                    self.statistic,
                )
            }
        };
        [end(1.0 - RANGE_TAIL), end(RANGE_TAIL)]
    }
}

/// Variance of a statistic over R runs, as a multiple of the mean's. Medians of few normal values are exact; other
/// quantiles take their limit for many.
fn statistic_factor(statistic: Statistic, repetitions: f64) -> f64 {
    // R times the variance of the median of R standard normal values (integrated numerically).
    const MEDIAN: [f64; 20] = [
        1.0, 1.0, 1.346, 1.1928, 1.4342, 1.2886, 1.4731, 1.3458, 1.4949, 1.3839, 1.5088, 1.4111,
        1.5184, 1.4316, 1.5254, 1.4477, 1.5308, 1.4608, 1.535, 1.4716,
    ];
    match statistic {
        Statistic::Median => {
            let at = |whole: f64| match MEDIAN.get(whole as usize - 1) {
                Some(factor) => *factor,
                None => std::f64::consts::FRAC_PI_2 * (1.0 - 0.9 / whole),
            };
            // Ragged counts have a fractional mean number of runs.
            let (low, high) = (libm::floor(repetitions), libm::ceil(repetitions));
            at(low) + (at(high) - at(low)) * (repetitions - low)
        }
        Statistic::P90 if repetitions > 2.0 => 2.922,
        Statistic::P95 if repetitions > 2.0 => 4.465,
        _ => 1.0,
    }
}

/// A difference to be shown, with the error rate and the power of the comparison that should show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The difference, on the scale of the comparison.
    pub delta: f64,
    /// The error rate that its verdict is held to, after adjustment for all questions of the report.
    pub alpha: Level,
    /// Probability of showing the difference if it is there.
    pub power: Level,
}

impl Question {
    /// Probability of showing the difference with this design; 0 for fewer than two scenarios.
    pub fn power_of(&self, components: &Components, scenarios: u64, repetitions: f64) -> f64 {
        let components = components.at_difference(self.delta);
        let variance = components.per_scenario(repetitions);
        if scenarios < 2 {
            return 0.0;
        }
        if variance <= 0.0 {
            return if self.delta > 0.0 { 1.0 } else { 0.0 };
        }
        if components.success_rate.is_some() {
            let chance = components.within(repetitions);
            return task_t::power(self.delta, [variance, chance / 2.0], scenarios, self.alpha);
        }
        let shift = self.delta / sqrt(variance / scenarios as f64);
        noncentral_t_power(shift, (scenarios - 1) as f64, self.alpha.value())
    }

    /// The fewest scenarios that show the difference; none when no sensible number does.
    pub fn scenarios_needed(&self, components: &Components, repetitions: f64) -> Option<u64> {
        self.fewest(2, MOST_SCENARIOS, |scenarios| {
            self.power_of(components, scenarios, repetitions)
        })
    }

    /// The fewest repetitions of so many scenarios that show the difference; none when no number of them does.
    pub fn repetitions_needed(&self, components: &Components, scenarios: u64) -> Option<u64> {
        self.fewest(1, MOST_REPETITIONS, |repetitions| {
            self.power_of(components, scenarios, repetitions as f64)
        })
    }

    /// Doubles until enough, then halves the gap: power rises with both numbers.
    fn fewest(&self, first: u64, most: u64, power: impl Fn(u64) -> f64) -> Option<u64> {
        let is_enough = |number: u64| power(number) >= self.power.value();
        if self.delta <= 0.0 {
            return None;
        }
        if is_enough(first) {
            return Some(first);
        }
        let (mut too_few, mut enough) = (first, first * 2);
        while !is_enough(enough) {
            too_few = enough;
            enough = Some(enough * 2).filter(|&more| more <= most)?;
        }
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            if is_enough(middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Some(enough)
    }
}

/// The smallest difference found with the wanted power, in standard errors of its estimate: the exact counterpart of
/// `t[1-alpha/2] + t[power]`. None for fewer than two scenarios.
pub fn detectable_in_errors(scenarios: u64, alpha: Level, power: Level) -> Option<f64> {
    let df = scenarios.checked_sub(1).filter(|&df| df > 0)? as f64;
    let critical = student_t_quantile(1.0 - alpha.value() / 2.0, df);
    // On the scale of normal quantiles power is nearly a line, so few steps of the secant method are enough.
    let goal = normal_quantile(power.value());
    let missed = |shift: f64| {
        let reached = power_beyond(shift, df, critical);
        normal_quantile(reached.clamp(1e-15, 1.0 - 1e-15)) - goal
    };
    let (mut before, mut shift) = (critical, critical + student_t_quantile(power.value(), df));
    let mut missed_before = missed(before);
    for _ in 0..60 {
        let missed_now = missed(shift);
        if missed_now.abs() < 1e-10 || (missed_now - missed_before).abs() < 1e-14 {
            break;
        }
        let step = missed_now * (shift - before) / (missed_now - missed_before);
        (before, missed_before) = (shift, missed_now);
        shift = (shift - step).clamp(shift / 4.0, shift * 4.0);
    }
    shift.is_finite().then_some(shift)
}

/// The smallest difference that a design shows with the wanted power, on the scale of the comparison.
pub fn detectable(
    components: &Components,
    scenarios: u64,
    repetitions: f64,
    alpha: Level,
    power: Level,
) -> Option<f64> {
    if components.success_rate.is_some() {
        let is_shown = |delta: f64| {
            let question = Question {
                delta,
                alpha,
                power,
            };
            question.power_of(components, scenarios, repetitions) >= power.value()
        };
        return (scenarios > 1).then(|| smallest_shown(is_shown));
    }
    let errors = detectable_in_errors(scenarios, alpha, power)?;
    Some(errors * sqrt(components.per_scenario(repetitions) / scenarios as f64))
        .filter(|difference| difference.is_finite())
}

/// The smallest difference of success that is shown, by halving: its variance depends on it. Nothing differs by more than 1.
fn smallest_shown(is_shown: impl Fn(f64) -> bool) -> f64 {
    let (mut hidden, mut shown) = (0.0, 1.0);
    while shown - hidden > 1e-4 {
        let middle = (hidden + shown) / 2.0;
        match is_shown(middle) {
            true => shown = middle,
            false => hidden = middle,
        }
    }
    shown
}

/// The cost of scenarios and rounds, in any one unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SplitCost {
    /// Making one more scenario.
    pub scenario: f64,
    /// Running one scenario once in every mode.
    pub round: f64,
}

/// A number of scenarios and repetitions for the money.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Split {
    pub scenarios: u64,
    /// Repetitions of each.
    pub repetitions: u64,
    /// Total cost, in the unit of [`SplitCost`].
    pub cost: f64,
    /// Probability of showing the difference.
    pub power: f64,
    /// Smallest difference shown with the wanted power.
    pub min_detectable_effect: Option<f64>,
}

/// The number of repetitions that is best in theory: the square root of cost and variance ratios. Infinite when
/// scenarios do not differ, 0 when scenarios are free.
pub fn ideal_repetitions(components: &Components, cost: &SplitCost) -> f64 {
    sqrt(cost.scenario / cost.round * components.within2 / components.omega2)
}

/// The split of a budget with the most power. None when the budget does not pay for two scenarios.
pub fn best_split(
    components: &Components,
    cost: &SplitCost,
    budget: f64,
    question: &Question,
) -> Option<Split> {
    let affordable = |repetitions: u64| {
        let each = cost.scenario + repetitions as f64 * cost.round;
        let scenarios = libm::floor(budget / each * (1.0 + 1e-12));
        (scenarios >= 2.0 && scenarios <= MOST_SCENARIOS as f64).then_some(Split {
            scenarios: scenarios as u64,
            repetitions,
            cost: scenarios * each,
            power: 0.0,
            min_detectable_effect: None,
        })
    };
    let with_power = |mut split: Split| {
        let repetitions = split.repetitions as f64;
        split.power = question.power_of(components, split.scenarios, repetitions);
        split
    };
    let splits: Vec<Split> = (1..=MOST_SPLIT)
        .map_while(affordable)
        .map(with_power)
        .collect();
    let best = splits
        .iter()
        .max_by(|a, b| {
            let by_power = a.power.total_cmp(&b.power);
            by_power.then(b.repetitions.cmp(&a.repetitions))
        })
        .copied()?;
    let best = match best.power > ALL_BUT_CERTAIN {
        true => sharpest(&splits, components, question),
        false => Some(best),
    };
    finished(best, components, question)
}

/// Where power no longer distinguishes splits, the one with the smallest detectable difference: of those that are equal but for
/// rounding the one with the fewest repetitions, since scenarios say more.
fn sharpest(splits: &[Split], components: &Components, question: &Question) -> Option<Split> {
    let shown = |split: &Split| {
        let df = (split.scenarios - 1) as f64;
        let errors = student_t_quantile(1.0 - question.alpha.value() / 2.0, df)
            + student_t_quantile(question.power.value(), df);
        let variance = components.per_scenario(split.repetitions as f64);
        errors * sqrt(variance / split.scenarios as f64)
    };
    let least = splits.iter().map(shown).fold(f64::INFINITY, f64::min);
    let mut splits = splits.iter();
    splits.find(|split| shown(split) <= least * 1.01).copied()
}

/// The cheapest split that shows the difference with the wanted power. None when no sensible one does.
pub fn cheapest_split(
    components: &Components,
    cost: &SplitCost,
    question: &Question,
) -> Option<Split> {
    // Few numbers of repetitions are worth a look: each is cheaper per run than the one before only by a little.
    let candidates = (1..=20).chain([25, 30, 40, 50, 75, 100]);
    let split = |repetitions: u64| {
        let runs = repetitions as f64;
        let scenarios = question.scenarios_needed(components, runs)?;
        Some(Split {
            scenarios,
            repetitions,
            cost: scenarios as f64 * (cost.scenario + runs * cost.round),
            power: question.power_of(components, scenarios, runs),
            min_detectable_effect: None,
        })
    };
    let cheapest = candidates
        .filter_map(split)
        .min_by(|a, b| a.cost.total_cmp(&b.cost));
    finished(cheapest, components, question)
}

fn finished(split: Option<Split>, components: &Components, question: &Question) -> Option<Split> {
    let mut split = split?;
    split.min_detectable_effect = detectable(
        components,
        split.scenarios,
        split.repetitions as f64,
        question.alpha,
        question.power,
    );
    Some(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(statistic: Statistic) -> Components {
        Components::new(10, 5.0, 0.08, 0.3, statistic)
    }

    #[test]
    fn the_variance_of_medians_is_not_booked_as_a_difference_between_scenarios() {
        // Runs alone explain 0.3 · 1.434 / 5 = 0.086 of the spread; as a mean they would explain 0.06 only.
        assert_eq!(components(Statistic::Median).omega2, 0.0);
        assert!(components(Statistic::Mean).omega2 > 0.019);
    }

    #[test]
    fn the_range_holds_the_estimate_and_narrows_with_scenarios() {
        let width = |scenarios| {
            let [low, high] = Components::new(scenarios, 5.0, 0.5, 0.3, Statistic::Mean).range();
            assert!(low.spread2 < 0.5 && high.spread2 > 0.5);
            high.spread2 / low.spread2
        };
        assert!(width(5) > width(20));
    }

    #[test]
    fn repetitions_alone_do_not_help_where_scenarios_differ() {
        let question = Question {
            delta: 0.1,
            alpha: Level::ALPHA_05,
            power: Level::POWER_80,
        };
        let components = Components::new(10, 3.0, 0.2, 0.1, Statistic::Mean);
        assert_eq!(question.repetitions_needed(&components, 10), None);
        let needed = question.scenarios_needed(&components, 3.0).unwrap();
        let power = |scenarios| question.power_of(&components, scenarios, 3.0);
        assert!(power(needed) >= 0.8 && power(needed - 1) < 0.8);
    }
}
