//! Hooks around runs, modes and trials.

use crate::{BaseScenario, BoxError, ProfileRow, SessionTrace};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Callbacks around the parts of a run: fixtures, exports, logs.
///
/// Only the events listed by [`events`](Self::events) are called. One call at a time unless
/// [`concurrent`](Self::concurrent) returns true, so a slow hook delays the trials. An error is recorded in the
/// row (or, outside a trial, reported once) and the run continues.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of hooks",
    note = "implement `RunHooks` with `#[assize_contracts::async_trait]` above the impl"
)]
pub trait RunHooks: Send + Sync {
    /// The hooks this set has. Listing a mode hook makes modes run one after another.
    fn events(&self) -> &[HookEvent];

    /// True if several calls may be under way at once.
    fn concurrent(&self) -> bool {
        false
    }

    /// Called once per mode when a run begins, before any hook, with the variables that processes started for the mode get.
    fn mode_resolved(&self, mode: &str, environment: &Arc<BTreeMap<String, String>>) {
        let _ = (mode, environment);
    }

    /// Before each attempt of a trial. May return a scenario to use instead; the row keeps the original id.
    async fn before_scenario(
        &self,
        context: &BeforeScenarioContext,
    ) -> Result<Option<BaseScenario>, BoxError> {
        let _ = context;
        Ok(None)
    }

    /// After each attempt of a trial, also a failed or cancelled one, with the row as it stands.
    async fn after_scenario(&self, context: &AfterScenarioContext) -> Result<(), BoxError> {
        let _ = context;
        Ok(())
    }

    /// Before the first trial of a mode.
    async fn before_mode(&self, mode: &str) -> Result<(), BoxError> {
        let _ = mode;
        Ok(())
    }

    /// After the last trial of a mode.
    async fn after_mode(&self, mode: &str) -> Result<(), BoxError> {
        let _ = mode;
        Ok(())
    }

    /// Once, before any provider starts.
    async fn before_run(&self, context: &RunContext) -> Result<(), BoxError> {
        let _ = context;
        Ok(())
    }

    /// Once, after the last row is stored, also after a cancel.
    async fn after_run(&self, context: &RunContext) -> Result<(), BoxError> {
        let _ = context;
        Ok(())
    }
}

/// The six hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum HookEvent {
    /// Before each attempt of a trial.
    BeforeScenario,
    /// After each attempt of a trial.
    AfterScenario,
    /// Before the first trial of a mode.
    BeforeMode,
    /// After the last trial of a mode.
    AfterMode,
    /// Before the run.
    BeforeRun,
    /// After the run.
    AfterRun,
}

impl HookEvent {
    /// All of them, in the order in which they come up.
    pub const ALL: [Self; 6] = [
        Self::BeforeRun,
        Self::BeforeMode,
        Self::BeforeScenario,
        Self::AfterScenario,
        Self::AfterMode,
        Self::AfterRun,
    ];

    /// The name in JSON and in error reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeScenario => "beforeScenario",
            Self::AfterScenario => "afterScenario",
            Self::BeforeMode => "beforeMode",
            Self::AfterMode => "afterMode",
            Self::BeforeRun => "beforeRun",
            Self::AfterRun => "afterRun",
        }
    }
}

/// The argument of `before_scenario`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BeforeScenarioContext {
    /// The scenario about to run.
    pub scenario: Arc<BaseScenario>,
    /// Its mode.
    pub mode: String,
    /// Its model.
    pub model: String,
    /// The repetition.
    pub iteration: i64,
}

/// The argument of `after_scenario`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AfterScenarioContext {
    /// The argument of the matching `before_scenario`.
    #[serde(flatten)]
    pub before: BeforeScenarioContext,
    /// The row as it stands.
    pub result: ProfileRow,
    /// The session's trace. Null when export is off or failed.
    #[serde(default)]
    pub trace: Option<Arc<SessionTrace>>,
}

/// The argument of the run hooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunContext {
    /// The run's id.
    pub run_id: String,
    /// All modes.
    pub modes: Vec<String>,
    /// All scenarios.
    pub scenarios: Vec<Arc<BaseScenario>>,
    /// Repetitions of each scenario under each arm.
    pub repetitions: u32,
}
