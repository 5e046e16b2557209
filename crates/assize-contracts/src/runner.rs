//! Runners: the execution of a capability on trial.

use crate::{
    AtomicTask, BoxError, Concurrency, JsonMap, Nature, PermissionConfig, RunRecord, SessionSandbox,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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

    /// The model it uses when the suite names none, for the arms of the plan.
    fn model(&self) -> Option<&str> {
        None
    }

    /// True if executions can cost real money: `run` then asks before it starts.
    fn may_cost(&self) -> bool {
        true
    }

    /// The nature of its records: live, replayed or simulated. Shown everywhere.
    fn nature(&self) -> Nature {
        Nature::Live
    }

    /// The time past the timeout in which it winds down and hands over what it has. After that the call is dropped.
    fn timeout_grace(&self) -> Duration {
        Duration::ZERO
    }

    /// The most executions it can have at once, over all modes.
    fn concurrency(&self) -> Concurrency {
        Concurrency::ANY
    }

    /// A hash of what the configuration only names: files, tables. Part of every record's `configHash`.
    fn content_hash(&self) -> Option<String> {
        None
    }

    /// Called once per task trial, and once per step of a chain; trials concurrently. A capability that gives no usable
    /// answer is a record with status `failed`; an error means that the runner itself broke, and the trial is void.
    ///
    /// The engine sets the record's id, provenance and whatever of its trace is missing.
    async fn execute(&self, task: &AtomicTask, config: &Value) -> Result<RunRecord, BoxError>;

    /// The same for runners that want to know more of the trial than the task. This is what the engine calls.
    async fn execute_in(
        &self,
        task: &AtomicTask,
        config: &Value,
        setting: &RunSetting,
    ) -> Result<RunRecord, BoxError> {
        let _ = setting;
        self.execute(task, config).await
    }

    /// Called once after the last execution, also after a cancel.
    async fn shutdown(&self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// The trial that an execution belongs to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunSetting {
    /// The mode.
    pub mode: String,
    /// The model that the suite asks for. Empty when it names none and the runner's own counts.
    pub model: String,
    /// The repetition; −1 for the warm-up.
    pub iteration: i64,
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// The step of a chain that is executed.
    pub step: Option<String>,
    /// The same for the same cell and attempt in every run with the same seed.
    pub seed: u64,
    /// The time limit. The engine drops the call when it is over.
    pub timeout: Duration,
    /// The mode's variables, for every process that is started.
    pub environment: Arc<BTreeMap<String, String>>,
    /// The suite's directory.
    pub workdir: PathBuf,
    /// Permissions of agents: what they may do without asking.
    pub permissions: PermissionConfig,
    /// The mode's system instructions.
    pub system_instructions: String,
    /// The mode's settings for a session provider.
    pub provider_overrides: Arc<JsonMap>,
    /// The wall around what is on trial. Plugin programs do not get it.
    #[serde(skip)]
    pub sandbox: SessionSandbox,
}
