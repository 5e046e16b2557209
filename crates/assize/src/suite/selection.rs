//! Narrows a suite down by flags.

use assize_contracts::Budget;
use assize_engine::Order;
use assize_engine::store::PlanRecord;
use std::path::PathBuf;

/// The part of a suite to run, and replacements of the file's settings. Empty lists choose everything.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only these modes.
    pub modes: Vec<String>,
    /// These models instead of the suite's.
    pub models: Vec<String>,
    /// Only these scenarios.
    pub scenarios: Vec<String>,
    /// Only scenarios with one of these tags.
    pub tags: Vec<String>,
    /// Only scenarios of this set.
    pub scenario_set: Option<String>,
    /// Instead of the suite's.
    pub repetitions: Option<u32>,
    /// Instead of the suite's and the scenarios'.
    pub retries: Option<u32>,
    /// No warm-up.
    pub skip_warmup: bool,
    /// Instead of the suite's.
    pub order: Option<Order>,
    /// Instead of the suite's.
    pub concurrency: Option<usize>,
    /// Instead of the suite's.
    pub seed: Option<u64>,
    /// Instead of the suite's and the scenarios', in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Instead of the suite's.
    pub results_dir: Option<PathBuf>,
    /// Stop after the first trial that does not pass.
    pub fail_fast: bool,
    /// Instead of the suite's, limit by limit.
    pub budget: Budget,
    /// One mode against itself: the first of those chosen, twice.
    pub aa: bool,
    /// The tasks of an earlier run. Absent: those that the flags above choose.
    pub tasks: Option<TaskSelection>,
}

/// The chosen tasks. Empty lists choose everything.
#[derive(Debug, Clone, Default)]
pub struct TaskSelection {
    /// Only these.
    pub ids: Vec<String>,
    /// Only those with one of these tags.
    pub tags: Vec<String>,
}

impl Selection {
    /// The chosen tasks.
    pub(super) fn of_tasks(&self) -> TaskSelection {
        self.tasks.clone().unwrap_or_else(|| TaskSelection {
            ids: self.scenarios.clone(),
            tags: self.tags.clone(),
        })
    }

    /// The part of the suite that a run was started with.
    pub fn of_run(plan: &PlanRecord) -> Self {
        let mut modes: Vec<String> = Vec::new();
        let mut models: Vec<String> = Vec::new();
        for arm in &plan.arms {
            push_new(&mut modes, &arm.mode);
            push_new(&mut models, &arm.model);
        }
        // Modes that each have their provider's own model are not a matrix; the suite knows them again.
        if modes.len() * models.len() != plan.arms.len() {
            models.clear();
        }
        Self {
            modes,
            models,
            scenarios: plan.scenarios.clone(),
            tasks: plan.tasks.as_ref().map(|tasks| TaskSelection {
                ids: tasks.ids.clone(),
                tags: tasks.tags.clone(),
            }),
            order: Some(plan.order),
            seed: Some(plan.seed),
            ..Self::default()
        }
    }
}

fn push_new(names: &mut Vec<String>, name: &String) {
    if !names.contains(name) {
        names.push(name.clone());
    }
}
