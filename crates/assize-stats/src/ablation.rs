//! Finds the parts that matter among many: balanced random subsets screen all at once, and a short list is confirmed on fresh trials.
//!
//! Screening only chooses. Every claim comes from the confirmation, adjusted by Holm's method over the short list.

use libm::sqrt;
use serde::Serialize;

use crate::adjust::holm_family;
use crate::error::StatsError;
use crate::interval::Level;
use crate::proportion::Tally;
use crate::random::{Stream, index};
use crate::special::normal_quantile;
use crate::success::suite_difference;

/// The longest short list.
pub const LONGEST_SHORTLIST: usize = 8;

/// The chance of any false claim over the short list. Below 5 %, because the p-values are approximations.
pub const CLAIM_ERROR: f64 = 0.03;

/// The chance that a part with the planned effect gets onto the short list.
const SCREENING_POWER: f64 = 0.95;

/// The chance that a part on the short list with the planned effect is confirmed.
const CONFIRMING_POWER: f64 = 0.9;

/// The parts that are absent in each block: each in half of the blocks of every scenario, drawn independently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancedSubsets {
    sections: usize,
    scenarios: usize,
    blocks: usize,
    absent: Vec<bool>,
}

/// The outcome of one trial of the screening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenedTrial {
    /// The scenario, from 0.
    pub scenario: usize,
    /// The block of that scenario, from 0.
    pub block: usize,
    /// True when the trial passed.
    pub success: bool,
}

/// The screening result of one part. No claim: it only chooses the parts to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScreenedEffect {
    /// The part, from 0.
    pub section: usize,
    /// Success with it minus success without it.
    pub effect: f64,
    /// The effect in standard errors.
    pub z: f64,
}

/// The confirmation of one part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmedEffect {
    /// Success with it minus success without it, on exactly these scenarios. Absent for too few trials.
    pub effect: Option<f64>,
    /// Interval of the effect at the level that was asked for.
    pub interval: Option<[f64; 2]>,
    /// Adjusted over the short list.
    pub p_adjusted: Option<f64>,
    /// The claim, if there is one.
    pub finding: AblationFinding,
}

/// The claim about a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AblationFinding {
    /// Without it success is lower.
    Helps,
    /// Without it success is higher.
    Hurts,
    /// Neither is shown.
    Undecided,
}

/// The number of trials of an ablation, decided before the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AblationBudget {
    /// Parts that are looked at.
    pub sections: usize,
    pub scenarios: usize,
    /// Blocks of every scenario in the screening; even. 0: there are so few parts that all of them are confirmed.
    pub blocks: usize,
    /// Parts that are confirmed, at most.
    pub shortlist: usize,
    /// Arms that have everything. All others are compared with them, so that additional trials help most there.
    pub whole_arms: usize,
    /// Repetitions of every scenario in each arm of the confirmation.
    pub repetitions: usize,
    /// The difference of success rates that it is planned for.
    pub effect: f64,
}

impl BalancedSubsets {
    /// Draws the subsets. The same seed gives the same ones.
    pub fn new(seed: u64, sections: usize, scenarios: usize, blocks: usize) -> Self {
        let stream = Stream::for_purpose(seed, "ablation");
        let mut absent = vec![false; sections * scenarios * blocks];
        for (place, row) in absent.chunks_mut(blocks.max(1)).enumerate() {
            let mut generator = stream.generator(place);
            let half = row.len() / 2;
            row[..half].fill(true);
            for last in (1..row.len()).rev() {
                row.swap(last, index(&mut generator, last + 1));
            }
        }
        Self {
            sections,
            scenarios,
            blocks,
            absent,
        }
    }

    /// True when a part is absent in a block of a scenario. Places outside the design have everything.
    pub fn is_absent(&self, section: usize, scenario: usize, block: usize) -> bool {
        let is_inside = section < self.sections && scenario < self.scenarios && block < self.blocks;
        is_inside && self.absent[(section * self.scenarios + scenario) * self.blocks + block]
    }

    /// The parts that a block of a scenario has.
    pub fn present(&self, scenario: usize, block: usize) -> Vec<usize> {
        let all = 0..self.sections;
        all.filter(|section| !self.is_absent(*section, scenario, block))
            .collect()
    }

    /// The effect of every part within scenarios, the largest first. Scenarios whose trials are all alike say nothing.
    pub fn screen(&self, trials: &[ScreenedTrial]) -> Vec<ScreenedEffect> {
        let by_scenario: Vec<Vec<&ScreenedTrial>> = (0..self.scenarios)
            .map(|scenario| {
                let own = trials.iter().filter(|trial| trial.scenario == scenario);
                own.collect()
            })
            .collect();
        let mut effects: Vec<ScreenedEffect> = (0..self.sections)
            .map(|section| self.effect(section, &by_scenario))
            .collect();
        effects.sort_by(|a, b| b.z.abs().total_cmp(&a.z.abs()));
        effects
    }

    fn effect(&self, section: usize, by_scenario: &[Vec<&ScreenedTrial>]) -> ScreenedEffect {
        let (mut sum, mut variance, mut count) = (0.0, 0.0, 0.0);
        for trials in by_scenario {
            let mut with = Count::default();
            let mut without = Count::default();
            for trial in trials {
                let side = match self.is_absent(section, trial.scenario, trial.block) {
                    true => &mut without,
                    false => &mut with,
                };
                side.add(trial.success);
            }
            if let Some((with_rate, without_rate)) = with.rate().zip(without.rate()) {
                let pooled = with.plus(without).rate().unwrap_or(0.0);
                sum += with_rate - without_rate;
                variance += pooled * (1.0 - pooled) * (1.0 / with.trials + 1.0 / without.trials);
                count += 1.0;
            }
        }
        let effect = if count > 0.0 { sum / count } else { 0.0 };
        let error = if count > 0.0 {
            sqrt(variance) / count
        } else {
            0.0
        };
        ScreenedEffect {
            section,
            effect,
            z: if error > 0.0 { effect / error } else { 0.0 },
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    successes: f64,
    trials: f64,
}

impl Count {
    fn add(&mut self, success: bool) {
        self.trials += 1.0;
        self.successes += f64::from(u8::from(success));
    }

    fn plus(self, other: Self) -> Self {
        Self {
            successes: self.successes + other.successes,
            trials: self.trials + other.trials,
        }
    }

    fn rate(self) -> Option<f64> {
        (self.trials > 0.0).then(|| self.successes / self.trials)
    }
}

impl AblationBudget {
    /// The trials needed to find a part that changes success by `effect`, whatever the success rates are.
    pub fn for_effect(sections: usize, scenarios: usize, effect: f64) -> Self {
        let (scenarios, effect) = (scenarios.max(1), effect.clamp(0.01, 1.0));
        let shortlist = sections.clamp(1, LONGEST_SHORTLIST);
        let per_scenario = |trials: f64| (trials / scenarios as f64).ceil() as usize;
        let blocks = match sections > LONGEST_SHORTLIST {
            // Half of the short list is left to parts without an effect.
            true => {
                let by_chance = shortlist as f64 / 2.0 / sections as f64;
                let errors = -normal_quantile(by_chance / 2.0) + normal_quantile(SCREENING_POWER);
                let blocks = per_scenario((errors / effect) * (errors / effect));
                (blocks + blocks % 2).max(2)
            }
            false => 0,
        };
        let errors = -normal_quantile(CLAIM_ERROR / shortlist as f64 / 2.0)
            + normal_quantile(CONFIRMING_POWER);
        // The square root of the arms that they are compared with is best (Dunnett 1955).
        let whole_arms = (sqrt(shortlist as f64).round() as usize).max(1);
        // Success rates vary most at one half.
        let variance = 0.25 * (1.0 + 1.0 / whole_arms as f64);
        Self {
            sections,
            scenarios,
            blocks,
            shortlist,
            whole_arms,
            repetitions: per_scenario(variance * (errors / effect) * (errors / effect)).max(1),
            effect,
        }
    }

    /// The finest design within a number of trials: a coarser effect takes fewer. Absent where not even the coarsest fits.
    pub fn within(sections: usize, scenarios: usize, effect: f64, most: u64) -> Option<Self> {
        let coarser = (0..400).map(|step| effect + f64::from(step) * 0.0025);
        let designs = coarser.map(|effect| Self::for_effect(sections, scenarios, effect));
        let mut fitting = designs.filter(|budget| budget.trials() <= most && budget.effect <= 1.0);
        fitting.next()
    }

    /// Trials of the screening.
    pub fn screening_trials(&self) -> u64 {
        (self.blocks * self.scenarios) as u64
    }

    /// Arms of the confirmation: everything, everything but one part of the short list, and the short list alone where there was a
    /// screening.
    pub fn arms(&self) -> usize {
        self.shortlist + self.whole_arms + usize::from(self.blocks > 0)
    }

    /// Trials of the confirmation, at most.
    pub fn confirming_trials(&self) -> u64 {
        (self.arms() * self.scenarios * self.repetitions) as u64
    }

    /// All trials, at most.
    pub fn trials(&self) -> u64 {
        self.screening_trials() + self.confirming_trials()
    }
}

/// Holds every part of a short list against the whole, on trials that the screening has not seen. `without[k]` are the tallies of the
/// arm that lacks part `k`, scenario by scenario like those of `whole`.
pub fn confirm_ablation(
    whole: &[Tally],
    without: &[Vec<Tally>],
    level: Level,
) -> Result<Vec<ConfirmedEffect>, StatsError> {
    let alpha = Level::new(level.complement()).unwrap_or(Level::ALPHA_05);
    let found: Vec<_> = without
        .iter()
        .map(|lacking| suite_difference(whole, lacking, alpha))
        .collect::<Result<_, _>>()?;
    let p_values: Vec<Option<f64>> = found.iter().map(|found| found.p_value).collect();
    let adjusted = holm_family(&p_values).p_adjusted;
    let claims = found.iter().zip(adjusted).map(|(found, p_adjusted)| {
        let is_shown = p_adjusted.is_some_and(|p| p <= CLAIM_ERROR);
        ConfirmedEffect {
            effect: found.estimate,
            interval: found.lower.zip(found.upper).map(|(low, high)| [low, high]),
            p_adjusted,
            finding: match found.estimate {
                Some(effect) if is_shown && effect > 0.0 => AblationFinding::Helps,
                Some(effect) if is_shown && effect < 0.0 => AblationFinding::Hurts,
                _ => AblationFinding::Undecided,
            },
        }
    });
    Ok(claims.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, unit};

    #[test]
    fn every_section_is_absent_in_half_of_the_blocks_of_every_scenario() {
        let subsets = BalancedSubsets::new(7, 30, 4, 12);
        for section in 0..30 {
            for scenario in 0..4 {
                let absent = (0..12).filter(|block| subsets.is_absent(section, scenario, *block));
                assert_eq!(absent.count(), 6);
            }
        }
        assert_eq!(subsets, BalancedSubsets::new(7, 30, 4, 12));
        assert_ne!(subsets, BalancedSubsets::new(8, 30, 4, 12));
        assert!(!subsets.is_absent(0, 0, 12) && !subsets.is_absent(30, 0, 0));
    }

    #[test]
    fn a_smaller_budget_is_planned_for_a_larger_effect() {
        let planned = AblationBudget::for_effect(40, 10, 0.2);
        let half = planned.trials() / 2;
        let coarse = AblationBudget::within(40, 10, 0.2, half).unwrap();
        assert!(
            coarse.trials() <= half && coarse.effect > 0.25,
            "{coarse:?}"
        );
        assert!(AblationBudget::within(40, 10, 0.2, 50).is_none());
        let few = AblationBudget::for_effect(5, 10, 0.2);
        assert_eq!((few.blocks, few.shortlist, few.arms()), (0, 5, 7));
    }

    /// An instruction file of 200 sections: three that help, one that hurts, the rest without any effect.
    struct Truth {
        effects: Vec<f64>,
        /// The ease of each scenario.
        ease: Vec<f64>,
    }

    impl Truth {
        fn draw(
            &self,
            scenario: usize,
            has: impl Fn(usize) -> bool,
            random: &mut Generator,
        ) -> bool {
            let present = self.effects.iter().enumerate();
            let present = present.filter(|(section, effect)| **effect != 0.0 && has(*section));
            let added: f64 = present.map(|(_, effect)| effect).sum();
            unit(random) < (self.ease[scenario] + added).clamp(0.0, 1.0)
        }
    }

    /// Sections that an ablation names, with what it claims.
    fn ablate(truth: &Truth, budget: &AblationBudget, seed: u64) -> Vec<(usize, AblationFinding)> {
        let mut random = Stream::for_purpose(seed, "trials").generator(0);
        let subsets = BalancedSubsets::new(seed, budget.sections, budget.scenarios, budget.blocks);
        let mut trials = Vec::new();
        for scenario in 0..budget.scenarios {
            for block in 0..budget.blocks {
                let has = |section| !subsets.is_absent(section, scenario, block);
                let success = truth.draw(scenario, has, &mut random);
                trials.push(ScreenedTrial {
                    scenario,
                    block,
                    success,
                });
            }
        }
        let screened = subsets.screen(&trials);
        let chosen: Vec<usize> = screened
            .iter()
            .take(budget.shortlist)
            .map(|effect| effect.section)
            .collect();
        let mut arm = |lacking: Option<usize>, repetitions: usize| -> Vec<Tally> {
            let tally = |scenario: usize| {
                let passed = (0..repetitions)
                    .filter(|_| truth.draw(scenario, |has| Some(has) != lacking, &mut random));
                Tally::new(passed.count() as u64, repetitions as u64).unwrap()
            };
            (0..budget.scenarios).map(tally).collect()
        };
        let whole = arm(None, budget.whole_arms * budget.repetitions);
        let without = chosen.iter();
        let without = without.map(|section| arm(Some(*section), budget.repetitions));
        let without: Vec<Vec<Tally>> = without.collect();
        let confirmed = confirm_ablation(&whole, &without, Level::CONFIDENCE_95).unwrap();
        let named = chosen.into_iter().zip(confirmed);
        named
            .filter(|(_, found)| found.finding != AblationFinding::Undecided)
            .map(|(section, found)| (section, found.finding))
            .collect()
    }

    /// Ablations out of some that name a section without effect, that find the harmful one, and helpful sections found in all of them.
    #[derive(Debug, Default)]
    struct Rates {
        ablations: u64,
        falsely: u64,
        found: u64,
        harmful: u64,
    }

    impl Rates {
        fn over(seeds: std::ops::Range<u64>) -> Self {
            let mut effects = vec![0.0; 200];
            (effects[17], effects[80], effects[143], effects[199]) = (0.2, 0.2, 0.2, -0.2);
            let truth = Truth {
                ease: vec![0.30, 0.35, 0.40, 0.45, 0.50, 0.30, 0.35, 0.40, 0.45, 0.50],
                effects,
            };
            let budget = AblationBudget::for_effect(200, truth.ease.len(), 0.2);
            let mut rates = Self::default();
            for seed in seeds {
                let named = ablate(&truth, &budget, seed);
                let is_false = |(section, _): &&(usize, _)| truth.effects[*section] == 0.0;
                let helps = |(section, finding): &&(usize, AblationFinding)| {
                    truth.effects[*section] > 0.0 && *finding == AblationFinding::Helps
                };
                rates.ablations += 1;
                rates.falsely += u64::from(named.iter().find(is_false).is_some());
                rates.found += named.iter().filter(helps).count() as u64;
                rates.harmful += u64::from(named.contains(&(199, AblationFinding::Hurts)));
            }
            rates
        }

        fn check(&self) {
            let all = self.ablations;
            assert!(self.falsely * 100 <= all * 5, "{self:?}");
            assert!(self.found * 100 >= 3 * all * 80, "{self:?}");
            assert!(self.harmful * 100 >= all * 80, "{self:?}");
        }
    }

    #[test]
    fn planted_sections_are_found_and_others_are_rarely_named() {
        Rates::over(0..300).check();
    }

    /// Seeds that were never looked at while [`CLAIM_ERROR`] and the powers above were chosen.
    #[test]
    #[ignore = "2700 ablations take minutes; docs/skills.md has what came out"]
    #[expect(clippy::print_stdout, reason = "its numbers are in the docs")]
    fn the_same_holds_for_seeds_that_nothing_was_chosen_by() {
        let mut all = Rates::default();
        for range in 0..9 {
            let first = 5_000_000 + 1000 * range;
            let rates = Rates::over(first..first + 300);
            println!("{rates:?}");
            all.ablations += rates.ablations;
            all.falsely += rates.falsely;
            all.found += rates.found;
            all.harmful += rates.harmful;
        }
        println!("all: {all:?}");
        all.check();
    }
}
