//! Chooses the trials that are shown one by one when a page cannot hold all.

use crate::Summary;
use assize_contracts::Outcome;
use std::collections::BTreeMap;

/// Takes trials cell by cell, the same number for each; those that did not pass come first, because they are looked at.
#[derive(Debug)]
pub(crate) struct Choice {
    /// By scenario and mode.
    cells: BTreeMap<(usize, usize), Places>,
    is_everything: bool,
}

#[derive(Debug, Clone, Copy)]
struct Places {
    passed: u64,
    others: u64,
}

impl Choice {
    /// Among the trials of a summary.
    pub(crate) fn new(summary: &Summary, most: usize) -> Self {
        let mut cells = BTreeMap::new();
        let mut trials = 0;
        for (scenario, (_, found)) in summary.scenarios.iter().enumerate() {
            for (mode, (label, _)) in summary.modes.iter().enumerate() {
                if let Some(cell) = found.modes.find(label) {
                    trials += cell.runs;
                    cells.insert((scenario, mode), (cell.runs, cell.success.passed));
                }
            }
        }
        let each = (most as u64 / cells.len().max(1) as u64).max(1);
        let places = |(runs, passed): (u64, u64)| {
            // Failures are worth little without a success to hold them against.
            let others = (runs - passed).min(each - passed.min(each / 4));
            Places {
                others,
                passed: each - others,
            }
        };
        Self {
            cells: cells
                .into_iter()
                .map(|(cell, counts)| (cell, places(counts)))
                .collect(),
            is_everything: trials <= most as u64,
        }
    }

    /// Returns whether the next trial of this cell is shown.
    pub(crate) fn takes(&mut self, cell: (usize, usize), outcome: Outcome) -> bool {
        self.is_everything
            || self
                .place(cell, outcome)
                .is_some_and(|left| match left.checked_sub(1) {
                    Some(fewer) => {
                        *left = fewer;
                        true
                    }
                    None => false,
                })
    }

    fn place(&mut self, cell: (usize, usize), outcome: Outcome) -> Option<&mut u64> {
        let places = self.cells.get_mut(&cell)?;
        Some(match outcome {
            Outcome::Pass => &mut places.passed,
            Outcome::Fail | Outcome::Void => &mut places.others,
        })
    }
}
