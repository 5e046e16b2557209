//! Scorers: the judgement of success.

use crate::{
    BaseScenario, BoxError, ContainerHandle, CustomMetric, JsonMap, PromptResult, SessionSandbox,
    SessionTrace,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Decides whether a trial reached its goal.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scorer",
    note = "implement `Scorer` with `#[assize_contracts::async_trait]` above the impl"
)]
pub trait Scorer: Send + Sync {
    /// The name under which suites use it.
    fn id(&self) -> &str;

    /// Checks the checks of a scenario. Called by `check` and before a run.
    /// An error stops the run before it starts.
    fn check_scenario(&self, scenario: &BaseScenario) -> Result<(), crate::ConfigError> {
        let _ = scenario;
        Ok(())
    }

    /// Called once per attempt in which the provider answered, also with `tool_limit`, `error` or `timeout`, after all collectors
    /// and analyzers. Trials are scored concurrently. An error, or an `error` in the result, means "could not be judged": the
    /// trial is void, unless it has failed already.
    async fn evaluate(
        &self,
        scenario: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError>;
}

/// The view of a trial that a scorer gets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ScorerContext {
    /// The agent's final text.
    pub agent_output: String,
    /// The session's trace. Absent when export is off or failed.
    pub trace: Option<Arc<SessionTrace>>,
    /// The mode.
    pub mode: String,
    /// The model.
    pub model: String,
    /// The repetition.
    pub iteration: i64,
    /// The scenario's `extensions`.
    pub metadata: JsonMap,
    /// All turns merged into one result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<PromptResult>>,
    /// The directory the agent worked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// Changes the agent made there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<WorkspaceChange>,
    /// The mode's variables, for every process that is started. They may be secret, so they are in no JSON.
    #[serde(skip)]
    pub environment: Arc<BTreeMap<String, String>>,
    /// The wall around the agent.
    #[serde(skip)]
    pub sandbox: SessionSandbox,
    /// The container in which the agent worked, while it is still there.
    #[serde(skip)]
    pub container: Option<ContainerHandle>,
}

/// One file the agent touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceChange {
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// `added`, `modified` or `deleted`.
    pub kind: String,
}

/// The judgement of a scorer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScorerResult {
    /// True if the goal was reached.
    pub success: bool,
    /// Checks that hold.
    pub passed: u64,
    /// Checks made.
    pub total: u64,
    /// Each check.
    pub details: Vec<ScorerCheckResult>,
    /// True if the answer has the form the scenario asks for; independent of `success`.
    pub output_valid: bool,
    /// The reason why the trial could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Metrics of the judging, apart from those of the agent. They become part of the row's `extensions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<CustomMetric>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScorerCheckResult {
    /// Unique in the scenario.
    pub id: String,
    /// The check in words.
    #[serde(default)]
    pub description: String,
    /// True if it holds.
    pub passed: bool,
    /// The value found.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub actual: Option<Value>,
    /// The value expected.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub expected: Option<Value>,
    /// The reason why it could not be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A field that is there, even as `null`, is something that was found.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
