//! The plan: the trials of a run in their order. Pure: the same suite and seed give the same plan.

use crate::random::{derive_seed, shuffle};
use serde::{Deserialize, Serialize};

/// In which order cells are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Cells that are compared with each other run next to each other, in an order that is balanced over the run:
    /// caches, rate limits and the time of day favour no arm.
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// The scenario's place in the plan.
    pub scenario: u32,
    /// The arm's place in the plan.
    pub arm: u32,
    /// The repetition, from 0.
    pub iteration: u32,
}

/// All cells of a run in the order in which they are started. Cells are computed on demand: a plan over
/// a million tasks is a few numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Scenario ids.
    pub scenarios: Vec<String>,
    /// The number of tasks after the scenarios. Their ids are with the tasks.
    pub tasks: u32,
    /// Conditions.
    pub arms: Vec<Arm>,
    /// Repetitions of each scenario and task under each arm.
    pub repetitions: u32,
    /// The order the cells are in.
    pub order: Order,
    /// The seed of the order.
    pub seed: u64,
    layout: Layout,
}

/// The subjects of every arm and repetition: scenarios by id, and a number of tasks after them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subjects {
    /// Scenario ids.
    pub scenarios: Vec<String>,
    /// The number of tasks.
    pub tasks: u32,
    /// The priority of each task; empty when all are alike. Scenarios have 0. Higher ones form earlier blocks.
    pub priorities: Vec<i64>,
}

/// Everything needed to work out any cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Layout {
    /// Arms in seeded order.
    labels: Vec<u32>,
    square: Vec<Vec<usize>>,
    /// Subjects by falling priority; empty when all are alike.
    ranking: Vec<u32>,
    /// The ends of priorities in the ranking.
    groups: Vec<u32>,
    /// For the random order: the cell of the sequential order at each position.
    shuffled: Vec<u32>,
}

/// The reason why there is nothing to plan.
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
        let subjects = Subjects {
            scenarios,
            ..Subjects::default()
        };
        Self::of(subjects, arms, repetitions, order, seed)
    }

    /// The same with tasks after the scenarios.
    pub fn of(
        subjects: Subjects,
        arms: Vec<Arm>,
        repetitions: u32,
        order: Order,
        seed: u64,
    ) -> Result<Self, PlanError> {
        let count = subjects.scenarios.len() as u64 + u64::from(subjects.tasks);
        let lists = [
            (count, "scenarios"),
            (arms.len() as u64, "modes"),
            (u64::from(repetitions), "repetitions"),
        ];
        if let Some((_, name)) = lists.iter().find(|(length, _)| *length == 0) {
            return Err(PlanError::Empty(name));
        }
        let total: u128 = lists
            .iter()
            .map(|(length, _)| u128::from(*length))
            .product();
        if total > u128::from(u32::MAX) {
            return Err(PlanError::TooLarge(total));
        }
        let (ranking, groups) = rank(&subjects);
        let mut plan = Self {
            scenarios: subjects.scenarios,
            tasks: subjects.tasks,
            arms,
            repetitions,
            order,
            seed,
            layout: Layout {
                ranking,
                groups,
                ..Layout::default()
            },
        };
        match order {
            Order::Blocked => plan.draw_arms(),
            Order::Sequential => {}
            Order::Random => plan.shuffle_cells(),
        }
        Ok(plan)
    }

    /// The number of cells.
    pub fn len(&self) -> u32 {
        self.subjects() * self.arms.len() as u32 * self.repetitions
    }

    /// Always false: a plan has at least one cell.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cell at a place.
    pub fn cell(&self, position: u32) -> Cell {
        let mut cell = match self.order {
            Order::Blocked => self.blocked(position),
            Order::Sequential => self.sequential(position, &self.layout.ranking),
            Order::Random => self.sequential(self.layout.shuffled[position as usize], &[]),
        };
        cell.position = position;
        cell
    }

    /// All cells in order.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..self.len()).map(|position| self.cell(position))
    }

    /// The mode and model of a cell.
    pub fn arm(&self, cell: &Cell) -> &Arm {
        &self.arms[cell.arm as usize]
    }

    /// The number of the task that a cell is about, if it is about one.
    pub fn task(&self, cell: &Cell) -> Option<u32> {
        cell.scenario.checked_sub(self.scenarios.len() as u32)
    }

    /// The number of scenarios and tasks.
    pub(crate) fn subjects(&self) -> u32 {
        self.scenarios.len() as u32 + self.tasks
    }

    fn draw_arms(&mut self) {
        let mut labels: Vec<u32> = (0..self.arms.len() as u32).collect();
        shuffle(&mut labels, derive_seed(self.seed, &["plan", "arms"]));
        self.layout.square = balanced_square(labels.len());
        self.layout.labels = labels;
    }

    fn shuffle_cells(&mut self) {
        let mut order: Vec<u32> = (0..self.len()).collect();
        shuffle(&mut order, derive_seed(self.seed, &["plan", "cells"]));
        if !self.layout.ranking.is_empty() {
            let mut rank = vec![0; self.subjects() as usize];
            for (group, subject) in self.ranked() {
                rank[subject as usize] = group;
            }
            order.sort_by_key(|place| rank[self.sequential(*place, &[]).scenario as usize]);
        }
        self.layout.shuffled = order;
    }

    /// Subjects by falling priority, with the number of their group.
    fn ranked(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let Layout {
            groups, ranking, ..
        } = &self.layout;
        let places = ranking.iter().enumerate();
        places.map(|(place, subject)| {
            let group = groups.partition_point(|end| *end as usize <= place);
            (group as u32, *subject)
        })
    }

    /// Priority by priority, repetition by repetition, subject by subject: each of these is a block of all arms.
    fn blocked(&self, position: u32) -> Cell {
        let arms = self.arms.len() as u32;
        let (block, place) = (position / arms, position % arms);
        let groups = &self.layout.groups;
        let group = groups.partition_point(|end| end * self.repetitions <= block);
        let first = group.checked_sub(1).map_or(0, |before| groups[before]);
        let size = groups.get(group).copied().unwrap_or(self.subjects()) - first;
        let block = block - first * self.repetitions;
        let (iteration, number) = (block / size, first + block % size);
        let subject = ranked(&self.layout.ranking, number);
        // Moving on by one row per subject and per repetition balances both ways.
        let square = &self.layout.square;
        let row = &square[(subject as usize + iteration as usize) % square.len()];
        let arm = self.layout.labels[row[place as usize]];
        self.make(subject, arm, iteration)
    }

    fn sequential(&self, position: u32, ranking: &[u32]) -> Cell {
        let (iteration, rest) = (position % self.repetitions, position / self.repetitions);
        let (number, arm) = (rest % self.subjects(), rest / self.subjects());
        self.make(ranked(ranking, number), arm, iteration)
    }

    /// The block of a subject's repetition.
    pub(crate) fn block(&self, subject: u32, iteration: u32) -> u32 {
        iteration * self.subjects() + subject
    }

    fn make(&self, scenario: u32, arm: u32, iteration: u32) -> Cell {
        Cell {
            position: 0,
            block: self.block(scenario, iteration),
            scenario,
            arm,
            iteration,
        }
    }
}

fn ranked(ranking: &[u32], number: u32) -> u32 {
    ranking.get(number as usize).copied().unwrap_or(number)
}

/// Subjects by falling priority, and where each priority ends. Nothing when all are alike.
fn rank(subjects: &Subjects) -> (Vec<u32>, Vec<u32>) {
    let scenarios = subjects.scenarios.len();
    let priority = |subject: u32| {
        let task = (subject as usize).checked_sub(scenarios);
        let known = task.and_then(|task| subjects.priorities.get(task));
        known.copied().unwrap_or(0)
    };
    let count = scenarios as u32 + subjects.tasks;
    if (1..count).all(|subject| priority(subject) == priority(0)) {
        return (Vec::new(), Vec::new());
    }
    let mut ranking: Vec<u32> = (0..count).collect();
    ranking.sort_by_key(|subject| std::cmp::Reverse(priority(*subject)));
    let groups = ranking.chunk_by(|a, b| priority(*a) == priority(*b));
    let ends = groups.scan(0, |end, group| {
        *end += group.len() as u32;
        Some(*end)
    });
    let ends = ends.collect();
    (ranking, ends)
}

/// Rows of orders in which every arm is equally often in every position, and equally often after every other
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
                .cells()
                .map(|c| (c.scenario, c.arm, c.iteration))
                .collect();
            assert_eq!(cells.len(), 60, "{order:?}");
            assert!(
                plan.cells()
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
                .cells()
                .collect::<Vec<_>>()
        };
        assert_eq!(with_seed(1), with_seed(1));
        assert_ne!(with_seed(1), with_seed(2));
    }

    #[test]
    fn blocks_stand_together_and_hold_each_arm_once() {
        let plan = plan(3, 4, 5, Order::Blocked);
        let cells: Vec<Cell> = plan.cells().collect();
        for (block, cells) in cells.chunks(4).enumerate() {
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
            let cells: Vec<Cell> = plan.cells().collect();
            for cells in cells.chunks(arms) {
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
        let cells = |repetitions| -> Vec<Cell> {
            plan(3, 2, repetitions, Order::Blocked).cells().collect()
        };
        let (short, long) = (cells(2), cells(5));
        assert_eq!(short[..], long[..short.len()]);
    }

    #[test]
    fn an_empty_matrix_is_an_error_that_names_what_is_missing() {
        let error = Plan::new(vec![], vec![], 1, Order::Blocked, 0).unwrap_err();
        assert_eq!(error.to_string(), "there is nothing to run: no scenarios");
    }

    #[test]
    fn tasks_of_higher_priority_form_earlier_blocks_in_the_planned_order() {
        for order in [Order::Blocked, Order::Random, Order::Sequential] {
            let subjects = Subjects {
                scenarios: vec!["s".into()],
                tasks: 4,
                priorities: vec![5, -1, 5, 0],
            };
            let arm = |i| Arm {
                mode: format!("m{i}"),
                model: "x".into(),
            };
            let plan = Plan::of(subjects, (0..2).map(arm).collect(), 3, order, 7).unwrap();
            let cells: Vec<Cell> = plan.cells().collect();
            let all: BTreeSet<_> = cells
                .iter()
                .map(|cell| (cell.scenario, cell.arm, cell.iteration))
                .collect();
            assert_eq!(all.len(), 30, "{order:?}");
            let rank = |cell: &Cell| [1, 0, 2, 0, 1][cell.scenario as usize];
            // One mode after another stays one mode after another.
            let runs = if order == Order::Sequential { 15 } else { 30 };
            for cells in cells.chunks(runs) {
                assert!(cells.is_sorted_by_key(rank), "{order:?}: {cells:?}");
            }
            if order == Order::Blocked {
                let first: Vec<u32> = cells.iter().map(|cell| cell.scenario).take(8).collect();
                assert_eq!(first, [1, 1, 3, 3, 1, 1, 3, 3]);
            }
        }
    }

    #[test]
    fn a_plan_of_a_million_tasks_is_a_few_numbers() {
        let subjects = Subjects {
            tasks: 1_000_000,
            ..Subjects::default()
        };
        let arm = Arm {
            mode: "m".into(),
            model: "x".into(),
        };
        let plan = Plan::of(subjects, vec![arm], 3, Order::Blocked, 7).unwrap();
        let last = plan.cell(plan.len() - 1);
        assert_eq!((last.scenario, last.iteration), (999_999, 2));
        assert_eq!(plan.task(&last), Some(999_999));
    }
}
