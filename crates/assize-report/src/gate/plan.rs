//! Whether a gate can pass with the trials that are planned: it is tried out on the best results there could be.

use super::estimate::{self, Tries};
use super::{Bound, Gate, Subject};
use assize_stats::{GateVerdict, Relation, Statistic, Tally, absolute_gate};

/// More repetitions than this are no plan.
const MOST_REPETITIONS: u64 = 1_000_000;

/// A plan that is too small for a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// Repetitions with which it could pass. Absent when no number is enough.
    pub needed: Option<u64>,
    /// It may still pass for a mode that is clearly better than its baseline.
    pub unless_better: bool,
}

impl Gate {
    /// What is missing for the gate to pass with so many scenarios and repetitions. None when it can.
    pub fn shortfall(&self, scenarios: u64, repetitions: u64) -> Option<Shortfall> {
        if scenarios == 0 || self.can_pass(scenarios, repetitions) {
            return None;
        }
        Some(Shortfall {
            needed: self.fewest(scenarios, repetitions),
            unless_better: self.needs_baseline() && self.metric().is_none(),
        })
    }

    fn fewest(&self, scenarios: u64, repetitions: u64) -> Option<u64> {
        let can = |repetitions: u64| self.can_pass(scenarios, repetitions);
        let (mut too_few, mut enough) = (repetitions, repetitions.max(1) * 2);
        while !can(enough) {
            too_few = enough;
            enough = Some(enough * 2).filter(|&more| more <= MOST_REPETITIONS)?;
        }
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            match can(middle) {
                true => enough = middle,
                false => too_few = middle,
            }
        }
        Some(enough)
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
        // Pooled counts are all that success needs, so few scenarios can stand for many.
        let Ok(tally) = Tally::new(passed, repetitions) else {
            return false;
        };
        let best = vec![tally; scenarios as usize];
        let (estimate, limit) = match (self.bound, tries) {
            (Bound::Number(limit), None) => (estimate::success(&best), limit),
            (Bound::Number(limit), Some(tries)) => (estimate::chance(&best, tries), limit),
            (Bound::Plus(limit), None) => (estimate::success_difference(&best, &best), limit),
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
