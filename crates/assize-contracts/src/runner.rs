//! How a capability on trial is executed.

use crate::{AtomicTask, BoxError, RunRecord};
use async_trait::async_trait;
use serde_json::Value;

/// Executes atomic tasks of one type.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a runner",
    note = "implement `Runner` with `#[assize_contracts::async_trait]` above the impl"
)]
pub trait Runner: Send + Sync {
    /// The name under which suites use it.
    fn id(&self) -> &str;

    /// The task type it serves, e.g. `intent`.
    fn task_type(&self) -> &str;

    /// Its version; part of every record's provenance.
    fn version(&self) -> &str;

    /// Called once per task trial, and once per step of a chain; trials concurrently. A capability that gives no usable
    /// answer is a record with status `failed`; an error means that the runner itself broke, and the trial is void.
    async fn execute(&self, task: &AtomicTask, config: &Value) -> Result<RunRecord, BoxError>;
}
