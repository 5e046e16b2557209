//! The record of one task execution. The trace is mandatory.

use crate::{CostSource, JsonMap, Millis, Timestamp, Usd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One execution of a task by a runner. A line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// Version of the record's form. Absent in foreign ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    /// Unique; score records refer to it.
    pub id: String,
    /// The task executed.
    pub task_id: String,
    /// One capability, or a chain.
    pub task_type: TaskKind,
    /// Status. Stored records are completed or failed.
    pub status: RunStatus,
    /// Output of the capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The error and its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Time, tokens and cost.
    pub metrics: RunMetrics,
    /// Events: at least started, and completed or failed.
    pub trace: Vec<TaskEvent>,
    /// The steps of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepSummary>>,
    /// Start time.
    pub started_at: Timestamp,
    /// End time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Everything needed to repeat the execution.
    pub provenance: Provenance,
}

/// The two kinds of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// A single capability.
    Atomic,
    /// A chain of capabilities.
    Scenario,
}

/// The status of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Not begun; never stored.
    Pending,
    /// Under way; never stored.
    Running,
    /// Ended with an output.
    Completed,
    /// Ended without.
    Failed,
}

/// The error of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunError {
    /// The error.
    pub message: String,
    /// The step or phase in which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Stack trace of the runner, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// Time, tokens and cost of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunMetrics {
    /// Wall time in milliseconds.
    pub latency: Millis,
    /// Tokens used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money spent, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// Source of the cost, if the runner gave it.
    #[serde(
        rename = "costSource",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub cost_source: Option<CostSource>,
}

/// An event in a task's trace. Log-like, other than a session's `TraceEvent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskEvent {
    /// Time of the event.
    pub timestamp: Timestamp,
    /// Severity.
    pub level: TaskEventLevel,
    /// The step it happened in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Name of the event, e.g. `started`.
    pub event: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl TaskEvent {
    /// An event outside of any step.
    pub fn new(
        timestamp: Timestamp,
        level: TaskEventLevel,
        event: impl Into<String>,
        data: Option<Value>,
    ) -> Self {
        Self {
            timestamp,
            level,
            step: None,
            event: event.into(),
            data,
        }
    }
}

/// Severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskEventLevel {
    /// A milestone.
    Info,
    /// A detail.
    Debug,
    /// Worth a look.
    Warn,
    /// A failure.
    Error,
}

/// One step of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StepSummary {
    /// The step's id.
    pub step_id: String,
    /// The step's name.
    pub step_name: String,
    /// Its end.
    pub status: StepStatus,
    /// Wall time in milliseconds.
    pub latency: Millis,
    /// Tokens used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money spent, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// With an output.
    Completed,
    /// Without.
    Failed,
    /// Never begun, because an earlier step failed.
    Skipped,
}

/// Everything needed to repeat an execution.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The runner used; `scenario` for a chain.
    pub runner_id: String,
    /// Its version.
    pub runner_version: String,
    /// Its configuration.
    pub config: JsonMap,
    /// Stable hash of the resolved configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_hash: Option<String>,
    /// Stable hash of everything that could change the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_fingerprint: Option<String>,
    /// Stable hash of what the capability was given: type, input and context of the task, and for a chain its data flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<String>,
}
