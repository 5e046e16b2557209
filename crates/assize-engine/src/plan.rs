//! Which trials a run consists of and in which order. Pure: the same suite and seed give the same plan.

use crate::random::{derive_seed, shuffle};
use serde::{Deserialize, Serialize};

/// In which order cells are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Cells that are compared with each other run next to each other, in an order that is balanced over the run:
    /// caches, rate limits and the time of day favour nobody.
    #[default]
    Blocked,
    /// One mode after another.
    Sequential,
    /// All cells shuffled.
    Random,
}

impl Order {
    /// The word in suites and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }
}

/// A condition that is compared with others: a mode with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// The mode's name.
    pub mode: String,
    /// The model's name.
    pub model: String,
}

/// One planned trial. Scenario and arm are places in the plan's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Place in the plan, from 0.
    pub position: u32,
    /// The scenario × repetition it belongs to; cells of a block are compared with each other.
    pub block: u32,
    /// Which scenario.
    pub scenario: u32,
    /// Which arm.
    pub arm: u32,
    /// Which repetition, from 0.
    pub iteration: u32,
}

/// All cells of a run in the order in which they are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Scenario ids.
    pub scenarios: Vec<String>,
    /// Conditions.
    pub arms: Vec<Arm>,
    /// How often each scenario is done under each arm.
    pub repetitions: u32,
    /// The order the cells are in.
    pub order: Order,
    /// What the order was drawn from.
    pub seed: u64,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// Why there is nothing to plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// One of the lists is empty.
    #[error("there is nothing to run: no {0}")]
    Empty(&'static str),
    /// More cells than can be counted.
    #[error("{0} trials are more than a run can hold (4294967295)")]
    TooLarge(u128),
}

impl Plan {
    /// Lays out every scenario under every arm, `repetitions` times.
    pub fn new(
        scenarios: Vec<String>,
        arms: Vec<Arm>,
        repetitions: u32,
        order: Order,
        seed: u64,
    ) -> Result<Self, PlanError> {
        let lists = [
            (scenarios.len(), "scenarios"),
            (arms.len(), "modes"),
            (repetitions as usize, "repetitions"),
        ];
        if let Some((_, name)) = lists.iter().find(|(length, _)| *length == 0) {
            return Err(PlanError::Empty(name));
        }
        let total: u128 = lists.iter().map(|(length, _)| *length as u128).product();
        if total > u128::from(u32::MAX) {
            return Err(PlanError::TooLarge(total));
        }
        let mut plan = Self {
            scenarios,
            arms,
            repetitions,
            order,
            seed,
            cells: Vec::new(),
        };
        plan.cells = match order {
            Order::Blocked => plan.blocked(),
            Order::Sequential => plan.sequential(),
            Order::Random => plan.random(),
        };
        for (position, cell) in plan.cells.iter_mut().enumerate() {
            cell.position = position as u32;
        }
        Ok(plan)
    }

    /// The mode and model of a cell.
    pub fn arm(&self, cell: &Cell) -> &Arm {
        &self.arms[cell.arm as usize]
    }

    /// The scenario id of a cell.
    pub fn scenario_id(&self, cell: &Cell) -> &str {
        &self.scenarios[cell.scenario as usize]
    }

    fn blocked(&self) -> Vec<Cell> {
        let mut labels: Vec<u32> = (0..self.arms.len() as u32).collect();
        shuffle(&mut labels, derive_seed(self.seed, &["plan", "arms"]));
        let square = balanced_square(labels.len());
        self.blocks()
            .flat_map(|(iteration, scenario)| {
                // Moving on by one row per scenario and per repetition balances both ways.
                let row = &square[(scenario as usize + iteration as usize) % square.len()];
                row.iter()
                    .map(|&arm| self.cell(scenario, labels[arm], iteration))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    fn sequential(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for arm in 0..self.arms.len() as u32 {
            for scenario in 0..self.scenarios.len() as u32 {
                let repetitions = 0..self.repetitions;
                cells.extend(repetitions.map(|iteration| self.cell(scenario, arm, iteration)));
            }
        }
        cells
    }

    fn random(&self) -> Vec<Cell> {
        let mut cells = self.sequential();
        shuffle(&mut cells, derive_seed(self.seed, &["plan", "cells"]));
        cells
    }

    fn blocks(&self) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        let scenarios = self.scenarios.len() as u32;
        (0..self.repetitions)
            .flat_map(move |iteration| (0..scenarios).map(move |scenario| (iteration, scenario)))
    }

    fn cell(&self, scenario: u32, arm: u32, iteration: u32) -> Cell {
        let block = iteration * self.scenarios.len() as u32 + scenario;
        Cell {
            position: 0,
            block,
            scenario,
            arm,
            iteration,
        }
    }
}

/// Rows of orders such that over all rows every arm stands in every place, and follows every other, equally often
/// (Williams 1949). An odd number of arms needs the mirrored rows too.
fn balanced_square(arms: usize) -> Vec<Vec<usize>> {
    let zigzag = (0..arms).map(|i| {
        if i % 2 == 1 {
            i.div_ceil(2)
        } else {
            (arms - i / 2) % arms
        }
    });
    let first: Vec<usize> = zigzag.collect();
    let rows = (0..arms).map(|shift| first.iter().map(|arm| (arm + shift) % arms).collect());
    let mut square: Vec<Vec<usize>> = rows.collect();
    if arms % 2 == 1 && arms > 1 {
        let mirrored: Vec<Vec<usize>> = square
            .iter()
            .map(|row| row.iter().rev().copied().collect())
            .collect();
        square.extend(mirrored);
    }
    square
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn plan(scenarios: usize, arms: usize, repetitions: u32, order: Order) -> Plan {
        let names = (0..scenarios).map(|i| format!("s{i}")).collect();
        let arm = |i| Arm {
            mode: format!("m{i}"),
            model: "x".into(),
        };
        Plan::new(names, (0..arms).map(arm).collect(), repetitions, order, 7).unwrap()
    }

    #[test]
    fn every_cell_is_planned_exactly_once_in_every_order() {
        for order in [Order::Blocked, Order::Sequential, Order::Random] {
            let plan = plan(3, 4, 5, order);
            let cells: BTreeSet<_> = plan
                .cells
                .iter()
                .map(|c| (c.scenario, c.arm, c.iteration))
                .collect();
            assert_eq!(cells.len(), 60, "{order:?}");
            assert!(
                plan.cells
                    .iter()
                    .enumerate()
                    .all(|(i, c)| c.position as usize == i)
            );
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_seed_another() {
        let with_seed = |seed| {
            let base = plan(4, 3, 6, Order::Random);
            Plan::new(base.scenarios, base.arms, 6, Order::Random, seed)
                .unwrap()
                .cells
        };
        assert_eq!(with_seed(1), with_seed(1));
        assert_ne!(with_seed(1), with_seed(2));
    }

    #[test]
    fn blocks_stand_together_and_hold_each_arm_once() {
        let plan = plan(3, 4, 5, Order::Blocked);
        for (block, cells) in plan.cells.chunks(4).enumerate() {
            assert!(cells.iter().all(|cell| cell.block as usize == block));
            let arms: BTreeSet<_> = cells.iter().map(|cell| cell.arm).collect();
            assert_eq!(arms.len(), 4);
        }
    }

    #[test]
    fn every_arm_stands_in_every_place_equally_often() {
        for arms in 2..6 {
            let rows = if arms % 2 == 0 { arms } else { 2 * arms };
            let plan = plan(1, arms, rows as u32, Order::Blocked);
            let mut counts: BTreeMap<(usize, u32), usize> = BTreeMap::new();
            for cells in plan.cells.chunks(arms) {
                for (place, cell) in cells.iter().enumerate() {
                    *counts.entry((place, cell.arm)).or_default() += 1;
                }
            }
            assert_eq!(counts.len(), arms * arms);
            assert!(
                counts.values().all(|count| *count == rows / arms),
                "{arms} arms: {counts:?}"
            );
        }
    }

    #[test]
    fn more_repetitions_leave_earlier_cells_where_they_are() {
        let short = plan(3, 2, 2, Order::Blocked).cells;
        let long = plan(3, 2, 5, Order::Blocked).cells;
        assert_eq!(short[..], long[..short.len()]);
    }

    #[test]
    fn an_empty_matrix_is_an_error_that_names_what_is_missing() {
        let error = Plan::new(vec![], vec![], 1, Order::Blocked, 0).unwrap_err();
        assert_eq!(error.to_string(), "there is nothing to run: no scenarios");
    }
}
