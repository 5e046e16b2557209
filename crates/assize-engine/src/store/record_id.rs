//! Numbers of cells: ids of run records are made of them, so that a record without a row is known by its id alone, and sets of
//! cells hold nothing else, because the names of a million would be most of a run's memory.

use crate::random::attempt_seed;
use assize_contracts::CellKey;
use std::collections::HashSet;

/// Makes the ids of a run's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordIds {
    run_id: String,
    seed: u64,
}

impl RecordIds {
    pub(crate) fn new(run_id: &str, seed: u64) -> Self {
        Self {
            run_id: run_id.to_owned(),
            seed,
        }
    }

    /// The id of the record of a cell, given by task, mode and model.
    pub(crate) fn of(&self, cell: [&str; 3], iteration: i64) -> String {
        let number = attempt_seed(self.seed, cell, iteration, 0);
        format!("{}-{number:016x}", self.run_id)
    }

    pub(super) fn number(&self, key: &CellKey) -> u64 {
        let cell = [&*key.scenario_id, &key.mode, &key.model];
        attempt_seed(self.seed, cell, key.iteration, 0)
    }

    pub(super) fn number_in(&self, id: &str) -> Option<u64> {
        let number = id.strip_prefix(&*self.run_id)?.strip_prefix('-')?;
        u64::from_str_radix(number, 16).ok()
    }
}

/// Cells of a run. Two of a million have the same number once in 37 million runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CellSet {
    ids: RecordIds,
    numbers: HashSet<u64>,
}

impl CellSet {
    pub(crate) fn new(ids: RecordIds) -> Self {
        Self {
            ids,
            numbers: HashSet::new(),
        }
    }

    pub(super) fn of_numbers(ids: RecordIds, numbers: impl Iterator<Item = u64>) -> Self {
        Self {
            ids,
            numbers: numbers.collect(),
        }
    }

    /// Adds a cell. False when it was there.
    pub(crate) fn insert(&mut self, key: &CellKey) -> bool {
        self.numbers.insert(self.ids.number(key))
    }

    pub(crate) fn contains(&self, key: &CellKey) -> bool {
        self.numbers.contains(&self.ids.number(key))
    }

    /// True if the cell of a run record with this id is there.
    pub(crate) fn contains_record(&self, id: &str) -> bool {
        let number = self.ids.number_in(id);
        number.is_some_and(|number| self.numbers.contains(&number))
    }

    pub(crate) fn remove_all(&mut self, others: &Self) {
        self.numbers
            .retain(|number| !others.numbers.contains(number));
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}
