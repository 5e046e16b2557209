//! Ids of run records: they follow from the cell, so that a record without a row is known by its id alone.

use super::reader::CellKey;
use crate::random::attempt_seed;

/// Makes the ids of a run's records.
#[derive(Debug, Clone)]
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

    pub(crate) fn of_key(&self, key: &CellKey) -> String {
        self.of([&key.scenario_id, &key.mode, &key.model], key.iteration)
    }
}
