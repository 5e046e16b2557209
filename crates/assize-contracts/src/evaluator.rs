//! Evaluators: scores of executions.

use crate::{AtomicTask, BoxError, RunRecord, ScenarioTask, ScoreRecord};
use async_trait::async_trait;
use std::fmt;

/// Scores executions of tasks.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an evaluator",
    note = "implement `Evaluator` with `#[assize_contracts::async_trait]` above the impl"
)]
pub trait Evaluator: Send + Sync {
    /// The name under which suites use it.
    fn id(&self) -> &str;

    /// The metrics it can give.
    fn metrics(&self) -> &[String];

    /// True for a metric that it may give, or any where it declares none. A score of another is kept, and the row says that it was
    /// not declared.
    fn declares(&self, metric: &str) -> bool {
        let metrics = self.metrics();
        metrics.is_empty() || metrics.iter().any(|known| known == metric)
    }

    /// Its version, for those who list plugins.
    fn version(&self) -> &str {
        "unversioned"
    }

    /// Called once per atomic task and once per step of a chain, with that step's record; trials concurrently.
    /// An error loses this evaluator's scores for the trial, no more, and is noted. Ids and times of scores that are
    /// empty are filled in by the engine; scores of a step are about that step, `final` or not. A score whose target names no step
    /// is refused, and the evaluator counts as broken.
    /// Partial results, such as the cost of a judge that gave no usable answer, can be kept by a [`PartialScores`].
    async fn evaluate(
        &self,
        run: &RunRecord,
        task: &AtomicTask,
    ) -> Result<Vec<ScoreRecord>, BoxError>;

    /// Called once per chain, after its steps, with the record of the whole.
    async fn evaluate_scenario(
        &self,
        run: &RunRecord,
        task: &ScenarioTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let _ = (run, task);
        Ok(Vec::new())
    }
}

/// The error of an evaluator that broke but has something to keep.
#[derive(Debug)]
pub struct PartialScores {
    /// The error.
    pub message: String,
    /// The scores that are kept.
    pub scores: Vec<ScoreRecord>,
}

impl fmt::Display for PartialScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PartialScores {}
