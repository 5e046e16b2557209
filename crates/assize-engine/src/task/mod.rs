//! Trials of tasks: a capability is executed by a runner, alone or in a chain of steps, and scored by evaluators.
//!
//! Read `trial` first; `execute` runs one task or one chain, `flow` carries data between steps, `evaluate` asks the
//! evaluators, `condition` decides whether the task passed, `row` makes the row. `check` finds beforehand what cannot work;
//! `again` scores stored executions anew.

mod again;
mod check;
mod condition;
mod evaluate;
mod execute;
mod flow;
mod row;
mod trial;

pub(crate) use again::{Judges, ScoredAgain, score_again};
pub use check::{DeclaredSchemas, check_flow};
pub use condition::Condition;
pub(crate) use trial::TaskSlot;

use crate::store::TaskPlan;
use assize_contracts::{BoxError, Evaluator, Runner, Task};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// The tasks of a suite.
#[derive(Clone)]
pub struct TaskSet {
    /// The source of the tasks.
    pub source: Arc<dyn TaskSource>,
    /// The condition under which a task without one of its own passes. Empty: completed, and every boolean score true, and every score
    /// named `accuracy` equal to 1.
    pub pass: Vec<Condition>,
    /// The time limit of a task without one of its own.
    pub timeout_ms: u64,
    /// Retries of a void attempt.
    pub allowed_retries: u32,
    /// The part that the manifest keeps.
    pub record: TaskPlan,
}

/// Tasks by number. A million of them need not sit in memory: each is read when its trial begins.
pub trait TaskSource: Send + Sync {
    /// The number of them.
    fn len(&self) -> u32;

    /// True if there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them. Called from many threads at once.
    fn load(&self, number: u32) -> Result<Arc<Task>, BoxError>;

    /// The priority of each, empty when all are alike.
    fn priorities(&self) -> &[i64] {
        &[]
    }
}

impl TaskSource for Vec<Arc<Task>> {
    fn len(&self) -> u32 {
        self.as_slice().len() as u32
    }

    fn load(&self, number: u32) -> Result<Arc<Task>, BoxError> {
        let task = self.get(number as usize);
        task.cloned().ok_or_else(|| "there is no such task".into())
    }
}

/// A runner as the suite declares it.
pub struct UsedRunner {
    /// The suite's name for it.
    pub id: String,
    pub runner: Arc<dyn Runner>,
    /// Its configuration, an object.
    pub config: Value,
    /// Stable hash of that, and of what it only names.
    pub config_hash: String,
}

impl UsedRunner {
    /// A runner with its configuration.
    pub fn new(id: impl Into<String>, runner: Arc<dyn Runner>, config: Value) -> Self {
        Self {
            config_hash: config_hash(&config, runner.content_hash().as_deref()),
            id: id.into(),
            runner,
            config,
        }
    }
}

impl fmt::Debug for UsedRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsedRunner")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// An evaluator as the suite declares it.
#[derive(Clone)]
pub struct UsedEvaluator {
    /// The suite's name for it.
    pub id: String,
    pub evaluator: Arc<dyn Evaluator>,
    /// The task types it scores; `scenario` are whole chains. Empty: everything.
    pub types: Vec<String>,
}

impl UsedEvaluator {
    fn scores(&self, task_type: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|known| known == task_type)
    }
}

/// The same for equal configurations, however their keys are ordered.
pub fn config_hash(config: &Value, content: Option<&str>) -> String {
    let text = serde_json::to_vec(&(crate::store::sorted(config), content));
    blake3::hash(&text.unwrap_or_default()).to_hex()[..32].to_owned()
}
