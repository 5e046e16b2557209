//! Checks that a gate can pass with the planned trials, by trying it on the best possible results.

use super::estimate::{self, ALPHA, Tries};
use super::{Bound, Gate, Subject};
use assize_stats::{
    GateVerdict, Relation, Scope, Statistic, Tally, absolute_gate, tasks_for_margin,
};

/// More repetitions than this are no plan.
const MOST_REPETITIONS: u64 = 1_000_000;
/// More scenarios than this are no plan.
const MOST_SCENARIOS: u64 = 20_000;

/// A plan that is too small for a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// Repetitions with which it could pass. Absent when no number is enough.
    pub needed: Option<u64>,
    /// Scenarios with which it could pass, at the planned repetitions. Absent when no sensible number is enough.
    pub scenarios: Option<u64>,
    /// It may still pass for a mode that is clearly better than its baseline.
    pub unless_better: bool,
}

impl Gate {
    /// The trials that the gate lacks to pass with so many scenarios and repetitions. `None` when it can pass.
    pub fn shortfall(&self, scenarios: u64, repetitions: u64) -> Option<Shortfall> {
        if scenarios == 0 || self.can_pass(scenarios, repetitions) {
            return None;
        }
        Some(Shortfall {
            needed: fewest(repetitions, MOST_REPETITIONS, |repetitions| {
                self.can_pass(scenarios, repetitions)
            }),
            scenarios: fewest(scenarios, MOST_SCENARIOS, |scenarios| {
                self.can_pass(scenarios, repetitions)
            }),
            unless_better: self.needs_baseline() && self.metric().is_none(),
        })
    }

    /// The fewest scenarios with which a margin of success could be shown for new tasks, however many runs. None for other
    /// gates.
    pub fn tasks_for_new_tasks(&self) -> Option<u64> {
        match (&self.subject, self.bound) {
            (Subject::Success, Bound::Plus(margin)) => tasks_for_margin(margin.abs(), ALPHA),
            _ => None,
        }
    }

    /// With the best results there could be; against a baseline, when both are equally good.
    fn can_pass(&self, scenarios: u64, repetitions: u64) -> bool {
        let tries = match &self.subject {
            Subject::Metric { statistic, .. } => {
                return match statistic {
                    Some(Statistic::Min | Statistic::Max) => repetitions >= 1,
                    _ => repetitions >= 2,
                };
            }
            Subject::Success => None,
            Subject::PassAt(k) => Some(Tries::At(*k)),
            Subject::PassHat(k) => Some(Tries::Hat(*k)),
        };
        let wants_more = matches!(self.relation, Relation::AtLeast | Relation::Above);
        let passed = if wants_more { repetitions } else { 0 };
        let Ok(tally) = Tally::new(passed, repetitions) else {
            return false;
        };
        let best = vec![tally; scenarios as usize];
        let (estimate, limit) = match (self.bound, tries) {
            (Bound::Number(limit), None) => (estimate::success(&best, Scope::Suite), limit),
            (Bound::Number(limit), Some(tries)) => (estimate::chance(&best, tries), limit),
            (Bound::Plus(limit), None) => (
                estimate::success_difference(&best, &best, Scope::Suite),
                limit,
            ),
            (Bound::Plus(limit), Some(tries)) => {
                (estimate::chance_difference(&best, &best, tries), limit)
            }
            (Bound::Times(_), _) => return true,
        };
        estimate.is_some_and(|found| {
            absolute_gate(&found.number, self.relation, limit) == GateVerdict::Pass
        })
    }
}

/// The smallest number above `too_few` that is enough; none when that would be more than `most`.
fn fewest(too_few: u64, most: u64, is_enough: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut too_few, mut enough) = (too_few, too_few.max(1) * 2);
    while !is_enough(enough) {
        too_few = enough;
        enough = Some(enough * 2).filter(|&more| more <= most)?;
    }
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        match is_enough(middle) {
            true => enough = middle,
            false => too_few = middle,
        }
    }
    Some(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(gate: &str, repetitions: u64, expected: Option<Option<u64>>) {
        let gate: Gate = gate.parse().unwrap();
        let found = gate.shortfall(5, repetitions);
        assert_eq!(found.map(|found| found.needed), expected, "{}", gate.text());
    }

    #[test]
    fn the_number_of_trials_that_a_rate_takes_is_found() {
        // All of n trials passed: the one-sided Wilson bound is n / (n + 1.645²), above 0.9 from 25 trials on.
        check("success >= 0.9", 4, Some(Some(5)));
        check("success >= 0.9", 5, None);
        check("success <= 0.1", 4, Some(Some(5)));
        check("success >= 0.5", 1, None);
        check("success >= 0.9999", 5, Some(Some(5_411)));
    }

    #[test]
    fn other_gates_say_what_they_take() {
        check("tokens_total < 5", 1, Some(Some(2)));
        check("max(tokens_total) < 5", 1, None);
        check("pass_at(4) >= 0.3", 2, Some(Some(4)));
        check("success >= baseline - 10pp", 2, Some(Some(5)));
        check("success >= baseline", 50, Some(None));
        let gate: Gate = "success >= baseline".parse().unwrap();
        assert!(gate.shortfall(5, 50).unwrap().unless_better);
    }
}
