//! The identity of a trial within its run.

use crate::{ProfileRow, SessionAnalysisBundle};
use serde::{Deserialize, Serialize};

/// The cell that a trial belongs to: identifies a trial within a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CellKey {
    /// A scenario, or a task.
    pub scenario_id: String,
    /// The condition.
    pub mode: String,
    /// As the row names it.
    pub model: String,
    /// The repetition, from 0; −1 for the warm-up.
    pub iteration: i64,
}

impl CellKey {
    /// The cell a row belongs to.
    pub fn of(row: &ProfileRow) -> Self {
        Self {
            scenario_id: row.scenario_id.clone(),
            mode: row.mode.clone(),
            model: row.model.clone(),
            iteration: row.iteration,
        }
    }

    /// The cell that findings belong to. Those of other profilers name no repetition and count as the first.
    pub fn of_findings(bundle: &SessionAnalysisBundle) -> Self {
        Self {
            scenario_id: bundle.scenario_id.clone(),
            mode: bundle.mode.clone(),
            model: bundle.model.clone(),
            iteration: bundle.iteration.unwrap_or(0),
        }
    }
}
