//! The success rate of trials, and the chances of several tries.

use crate::arm::{Cell, Tallies};
use crate::percent;
use assize_stats::{Level, PassKSuite, Scope, Tally, pass_k_suite, success_rate, suite_rate};
use serde::Serialize;

/// With so few tasks, numbers apply to exactly these.
const FEW_TASKS: usize = 4;

/// Success of a mode. Void trials are in `void` and in nothing else but the bounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessSummary {
    /// Trials that reached the goal: a count, not the rate.
    pub passed: u64,
    /// Trials that could be judged.
    pub trials: u64,
    /// Trials that could not.
    pub void: u64,
    /// Void trials whose cause cannot depend on the mode.
    pub void_unrelated: u64,
    /// The plain mean of the rates of the scenarios.
    pub rate: Option<f64>,
    /// Interval of the rate, in the scope named by `scope`. Absent for too few trials.
    pub ci95: Option<[f64; 2]>,
    /// The tasks that the interval applies to: new tasks like these, or exactly these where they are few.
    pub scope: Scope,
    /// The rate if all void trials that may depend on the mode had failed, and if all had passed.
    pub void_bounds: Option<[f64; 2]>,
}

impl SuccessSummary {
    /// `18 of 20 (90 %)`. Tasks with unequal numbers of runs count equally in the rate, so that it may not be the share
    /// of the runs; the words
    /// then say so. None where nothing was judged.
    pub fn words(&self) -> Option<String> {
        let rate = self.rate?;
        let share = self.passed as f64 / self.trials as f64;
        let of_what = match (share - rate).abs() > 0.005 {
            true => ", mean of tasks",
            false => "",
        };
        let (passed, trials) = (self.passed, self.trials);
        Some(format!("{passed} of {trials} ({}{of_what})", percent(rate)))
    }
}

/// The chances of `k` tries.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chances {
    /// The number of tries.
    pub k: u64,
    /// Chances that one of them, or all of them, reach the goal.
    #[serde(flatten)]
    pub chances: PassKSuite,
}

pub(crate) fn summarize(cells: &[Cell<'_>], level: Level) -> SuccessSummary {
    let sum = |of: fn(&Tallies) -> u64| cells.iter().map(|cell| of(cell)).sum::<u64>();
    let passed = sum(|cell| u64::from(cell.passed));
    let tallies = tallies(cells);
    let scope = match tallies.len() {
        ..=FEW_TASKS => Scope::Suite,
        _ => Scope::Population,
    };
    let alpha = Level::new(level.complement()).unwrap_or(Level::ALPHA_05);
    let (rate, lower, upper) = match scope {
        Scope::Suite => {
            let rate = suite_rate(&tallies, alpha);
            (rate.estimate, rate.lower, rate.upper)
        }
        Scope::Population => {
            let rate = success_rate(&tallies, alpha);
            (rate.estimate, rate.lower, rate.upper)
        }
    };
    SuccessSummary {
        passed,
        trials: sum(Tallies::judged),
        void: sum(|cell| u64::from(cell.void)),
        void_unrelated: sum(|cell| u64::from(cell.void_unrelated)),
        rate,
        ci95: lower.zip(upper).map(|(lower, upper)| [lower, upper]),
        scope,
        void_bounds: void_bounds(cells),
    }
}

/// The plain means of the rates with the void trials that may depend on the mode read as failed, and as passed.
fn void_bounds(cells: &[Cell<'_>]) -> Option<[f64; 2]> {
    let rate = |passed: fn(&Tallies) -> u64| {
        let shares = cells.iter().filter_map(|cell| {
            let trials = cell.judged() + cell.related_voids();
            (trials > 0).then(|| passed(cell) as f64 / trials as f64)
        });
        let shares: Vec<f64> = shares.collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    };
    let failed = rate(|cell| u64::from(cell.passed))?;
    Some([
        failed,
        rate(|cell| u64::from(cell.passed) + cell.related_voids())?,
    ])
}

/// For a few numbers of tries up to that of the scenario tried least often.
pub(crate) fn chances(cells: &[Cell<'_>], level: Level) -> Vec<Chances> {
    let tallies = tallies(cells);
    let fewest = tallies
        .iter()
        .map(|tally| tally.trials())
        .min()
        .unwrap_or(0);
    let mut tries: Vec<u64> = [2, 3, 5, 10, fewest]
        .into_iter()
        .filter(|k| (2..=fewest).contains(k))
        .collect();
    tries.sort_unstable();
    tries.dedup();
    let chances = |k| Chances {
        k,
        chances: pass_k_suite(&tallies, k, level),
    };
    tries.into_iter().map(chances).collect()
}

fn tallies(cells: &[Cell<'_>]) -> Vec<Tally> {
    let judged = cells.iter().filter(|cell| cell.judged() > 0);
    judged
        .filter_map(|cell| Tally::new(cell.passed.into(), cell.judged()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_not_the_share_of_the_runs_says_so() {
        let words = |passed, rate| {
            let success = SuccessSummary {
                passed,
                trials: 9,
                void: 0,
                void_unrelated: 0,
                rate,
                ci95: None,
                scope: Scope::Suite,
                void_bounds: None,
            };
            success.words()
        };
        let of_tasks = "5 of 9 (50 %, mean of tasks)";
        assert_eq!(words(5, Some(0.5)).unwrap(), of_tasks);
        assert_eq!(words(9, Some(1.0)).unwrap(), "9 of 9 (100 %)");
        assert_eq!(words(0, None), None);
    }
}
