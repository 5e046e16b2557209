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
    /// Whether that is one capability or a chain.
    pub task_type: TaskKind,
    /// How it ended. Stored records are completed or failed.
    pub status: RunStatus,
    /// What the capability gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What went wrong and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// What it took.
    pub metrics: RunMetrics,
    /// What happened: at least started, and completed or failed.
    pub trace: Vec<TaskEvent>,
    /// How each step of a chain went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepSummary>>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// What it takes to do it again.
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

/// How far an execution has come.
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

/// What went wrong in an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunError {
    /// What it was.
    pub message: String,
    /// The step or phase in which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Where in the runner's code, when it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// What an execution took.
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
    /// How that is known, where the runner says.
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
    /// When it happened.
    pub timestamp: Timestamp,
    /// How much it matters.
    pub level: TaskEventLevel,
    /// The step it happened in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What happened, e.g. `started`.
    pub event: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// How much an event matters.
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

/// How one step of a chain went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StepSummary {
    /// The step's id.
    pub step_id: String,
    /// The step's name.
    pub step_name: String,
    /// How it ended.
    pub status: StepStatus,
    /// Wall time in milliseconds.
    pub latency: Millis,
    /// Tokens used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money spent, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a step ended.
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

/// What it takes to do an execution again.
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
