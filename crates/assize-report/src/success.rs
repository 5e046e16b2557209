//! How often trials reached their goal, and what several tries are worth.

use crate::arm::Cell;
use assize_stats::{Level, PassKSuite, Tally, cluster_proportion_ci, pass_k_suite};
use serde::Serialize;

/// Success of a mode. Void trials are in `void` and in nothing else but the bounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessSummary {
    /// Trials that reached the goal.
    pub passed: u64,
    /// Trials that could be judged.
    pub trials: u64,
    /// Trials that could not.
    pub void: u64,
    /// Passed divided by judged trials.
    pub rate: Option<f64>,
    /// Interval of the rate; over scenarios where there are several.
    pub ci95: Option<[f64; 2]>,
    /// The rate if all void trials had failed, and if all had passed.
    pub void_bounds: Option<[f64; 2]>,
}

/// What `k` tries are worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chances {
    /// The number of tries.
    pub k: u64,
    /// Chances that one of them, or all of them, reach the goal.
    #[serde(flatten)]
    pub chances: PassKSuite,
}

pub(crate) fn summarize(cells: &[&Cell], level: Level) -> SuccessSummary {
    let sum = |of: fn(&Cell) -> u64| cells.iter().map(|cell| of(cell)).sum::<u64>();
    let (passed, failed, void) = (
        sum(|cell| cell.passed),
        sum(|cell| cell.failed),
        sum(|cell| cell.void),
    );
    let (trials, runs) = (passed + failed, passed + failed + void);
    let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
    let interval = cluster_proportion_ci(&tallies(cells), level);
    SuccessSummary {
        passed,
        trials,
        void,
        rate: share(passed, trials),
        ci95: interval.map(|interval| [interval.lower, interval.upper]),
        void_bounds: share(passed, runs)
            .zip(share(passed + void, runs))
            .map(|(low, high)| [low, high]),
    }
}

/// For a few numbers of tries up to that of the scenario tried least often.
pub(crate) fn chances(cells: &[&Cell], level: Level) -> Vec<Chances> {
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

fn tallies(cells: &[&Cell]) -> Vec<Tally> {
    let judged = cells.iter().filter(|cell| cell.passed + cell.failed > 0);
    judged
        .filter_map(|cell| Tally::new(cell.passed, cell.passed + cell.failed).ok())
        .collect()
}
