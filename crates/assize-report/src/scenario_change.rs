//! Scenario by scenario: what passes more often than before, less often, the same, or is new or gone.

use crate::{ModeSummary, Summary};
use serde::Serialize;

/// One scenario under two modes, as counted. A single difference may be chance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioChange<'a> {
    /// The scenario, or task.
    pub scenario: &'a str,
    /// The candidate.
    pub mode_a: &'a str,
    /// The mode it is compared with.
    pub mode_b: &'a str,
    /// The kind of change.
    pub change: ChangeKind,
    /// Its trials under A. Absent when it was not run.
    pub a: Option<PassCount>,
    /// Its trials under B. Absent when it was not run.
    pub b: Option<PassCount>,
}

/// The change of a scenario between two modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Passes less often.
    Regressed,
    /// Passes more often.
    Improved,
    /// Run by A only.
    New,
    /// Run by B only.
    Gone,
    /// No trial could be judged on one side.
    Unknown,
    /// Passes as often.
    Unchanged,
}

impl ChangeKind {
    /// All kinds, the ones to look at first.
    pub const ALL: [Self; 6] = [
        Self::Regressed,
        Self::Improved,
        Self::New,
        Self::Gone,
        Self::Unknown,
        Self::Unchanged,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Regressed => "regressed",
            Self::Improved => "improved",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Judged trials and those that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PassCount {
    /// Passed ones.
    pub passed: u64,
    /// Judged ones.
    pub trials: u64,
}

/// The passes of every scenario, by mode.
#[derive(Debug)]
pub(crate) struct ScenarioCounts {
    pub(crate) scenarios: crate::arm::Ids,
    /// In the order of modes, then of scenarios; absent where a mode did not run one.
    pub(crate) modes: Vec<Vec<Option<PassCount>>>,
}

/// Every scenario of the two modes, in the summary's order. Where not all are listed one by one, the summary must have counted
/// them (`Analysis::counts_scenarios`).
pub fn scenario_changes<'a>(
    summary: &'a Summary,
    mode_a: &'a str,
    mode_b: &'a str,
) -> Vec<ScenarioChange<'a>> {
    let change = |scenario, a, b| {
        Some(ScenarioChange {
            scenario,
            mode_a,
            mode_b,
            change: kind(a, b)?,
            a,
            b,
        })
    };
    let Some(counts) = &summary.counts else {
        let count = |mode: &ModeSummary| PassCount {
            passed: mode.success.passed,
            trials: mode.success.trials,
        };
        let changes = summary.scenarios.iter().filter_map(|(scenario, modes)| {
            let (a, b) = (modes.modes.find(mode_a), modes.modes.find(mode_b));
            change(scenario, a.map(count), b.map(count))
        });
        return changes.collect();
    };
    let counts_of = |label: &str| {
        let place = summary.modes.iter().position(|(known, _)| known == label);
        place.map_or(&[][..], |place| &counts.modes[place])
    };
    let (a, b) = (counts_of(mode_a), counts_of(mode_b));
    let at = |counts: &[Option<PassCount>], place: usize| counts.get(place).copied().flatten();
    let scenarios = counts.scenarios.iter().enumerate();
    scenarios
        .filter_map(|(place, scenario)| change(scenario, at(a, place), at(b, place)))
        .collect()
}

fn kind(a: Option<PassCount>, b: Option<PassCount>) -> Option<ChangeKind> {
    Some(match (a, b) {
        (None, None) => return None,
        (Some(_), None) => ChangeKind::New,
        (None, Some(_)) => ChangeKind::Gone,
        (Some(a), Some(b)) if a.trials == 0 || b.trials == 0 => ChangeKind::Unknown,
        (Some(a), Some(b)) => {
            // As fractions, so that equal rates are equal whatever the number of trials.
            let [left, right] = [(a.passed, b.trials), (b.passed, a.trials)]
                .map(|(x, y)| u128::from(x) * u128::from(y));
            match left.cmp(&right) {
                std::cmp::Ordering::Less => ChangeKind::Regressed,
                std::cmp::Ordering::Equal => ChangeKind::Unchanged,
                std::cmp::Ordering::Greater => ChangeKind::Improved,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: Option<(u64, u64)>, b: Option<(u64, u64)>, expected: Option<ChangeKind>) {
        let count = |(passed, trials)| PassCount { passed, trials };
        assert_eq!(kind(a.map(count), b.map(count)), expected);
    }

    #[test]
    fn rates_are_compared_whatever_the_number_of_trials() {
        check(Some((1, 3)), Some((2, 6)), Some(ChangeKind::Unchanged));
        check(Some((2, 3)), Some((3, 5)), Some(ChangeKind::Improved));
        check(Some((0, 1)), Some((1, 1)), Some(ChangeKind::Regressed));
        check(Some((0, 0)), Some((1, 1)), Some(ChangeKind::Unknown));
        check(Some((1, 1)), None, Some(ChangeKind::New));
        check(None, Some((1, 1)), Some(ChangeKind::Gone));
        check(None, None, None);
    }
}
