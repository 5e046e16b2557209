//! The record of one trial: what is stored, compared and reported.

use crate::{
    CompletionReason, CostBreakdown, JsonMap, Millis, Number, ScorerCheckResult, Timestamp,
    TimingBreakdown, TokenBreakdown, ToolCallRecord, Usd, VoidCause,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One finished trial. A line of `rows.jsonl`, and the commit of everything else stored about it.
///
/// The fields down to `errorCode` are shared with other profilers; the optional ones below are Assize's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProfileRow {
    /// The run the trial belongs to.
    pub run_id: String,
    /// The scenario or task.
    pub scenario_id: String,
    /// The condition under which it ran.
    pub mode: String,
    /// The model it ran with.
    pub model: String,
    /// The repetition, from 0. A warm-up is −1 and never in `rows.jsonl`.
    pub iteration: i64,
    /// Start time of the trial.
    pub started_at: Timestamp,
    /// End time of the trial.
    pub completed_at: Timestamp,
    /// Tokens used by the last attempt.
    pub tokens: TokenBreakdown,
    /// Time taken by the last attempt.
    pub timing: TimingBreakdown,
    /// Tools called by the last attempt.
    pub tool_calls: ToolCallSummary,
    /// Money spent by the last attempt: the reading that `costSource` names.
    pub cost: CostBreakdown,
    /// True if the goal was reached.
    pub success: bool,
    /// Checks that hold.
    pub checkpoints_passed: u64,
    /// Checks made.
    pub checkpoints_total: u64,
    /// Each check.
    pub checkpoint_details: Vec<ScorerCheckResult>,
    /// True if the answer has the form the scenario asks for; independent of `success`.
    pub output_valid: bool,
    /// The provider's id.
    pub provider: String,
    /// The provider's id of the session. Absent when none was created.
    pub session_id: Option<String>,
    /// Turns the agent took: model answers of the main agent. Absent when they were not seen.
    pub agent_turns: Option<u64>,
    /// The reason why the session ended. Absent when it never began.
    pub completion_reason: Option<CompletionReason>,
    /// Metrics of the collectors, by name.
    pub extensions: JsonMap,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Error code for machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,

    /// Version of the record's form. Absent in foreign ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    /// The outcome: pass, fail or void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The cause of the void. Absent for other outcomes, and in rows of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void_cause: Option<VoidCause>,
    /// The known part of the tokens, where their total is unknown because a model call is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_least: Option<TokenBreakdown>,
    /// The cost of the known part of the tokens, where the cost is unknown because a model call is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_at_least_usd: Option<Usd>,
    /// User messages that were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_turns: Option<u64>,
    /// Attempts before the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Parts of the trial that broke without deciding it: hooks, collectors, analyzers, the export.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hook_errors: Vec<PluginError>,
    /// Place in the plan, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The group of cells that are compared with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Source of `cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// All readings of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_readings: Option<CostReadings>,
    /// Time ran out: time, tokens and cost are lower bounds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub censored: bool,
    /// The agent reached its model by a way that the capture proxy does not see: all numbers are its own claims.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_captured: bool,
    /// The agent signed in with a subscription: the cost is what its tokens would cost, not what was billed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subscription: bool,
    /// Answers came from a recording.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Made up by the `simulated` provider.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

impl ProfileRow {
    /// True if the trial is void for a reason that the mode may have caused. A void without a known cause counts.
    pub fn is_void_by_mode(&self) -> bool {
        self.outcome == Some(Outcome::Void)
            && self.void_cause.is_none_or(VoidCause::may_depend_on_mode)
    }
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All required checks hold.
    Pass,
    /// The agent did not reach the goal.
    Fail,
    /// No result about the agent: a service, a plugin or the scorer failed.
    Void,
}

impl Outcome {
    /// The word in JSON, tables and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Void => "void",
        }
    }
}

/// The tools called during a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCallSummary {
    /// All calls. Absent when the provider cannot see tools, as are the other numbers.
    pub total: Option<u64>,
    /// Calls by category.
    pub by_category: BTreeMap<String, u64>,
    /// Failed calls: a non-zero exit of a command, a result marked as an error, a rejected or unknown tool. Absent
    /// when the outcome of one of the calls is unknown.
    pub failed: Option<u64>,
    /// Calls that repeat a failed call of the same tool, asked for by a later answer. Absent when `failed` is.
    pub retried: Option<u64>,
    /// Failed divided by total; 0 without calls. Absent when `failed` is.
    pub error_rate: Option<Number>,
    /// Each call.
    pub records: Vec<ToolCallRecord>,
}

/// An attempt that was tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The outcome of the attempt.
    pub outcome: Outcome,
    /// Its session. Absent when none was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Tokens it used.
    pub tokens: TokenBreakdown,
    /// Money it cost.
    pub cost_usd: Option<Usd>,
    /// The known part of the tokens, where their total is unknown because a model call is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_least: Option<TokenBreakdown>,
    /// The cost of that part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_at_least_usd: Option<Usd>,
    /// Duration.
    pub wall_ms: Option<Millis>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Error code for machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

/// An error of a plugin, or of another part of the trial that is not needed for its result: that part is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HookError"))]
#[serde(rename_all = "camelCase")]
pub struct PluginError {
    /// The part that failed: a hook (`beforeScenario`), `collector:<id>`, `analyzer:<name>`, `exportSession`, `destroySession`.
    pub hook: String,
    /// Its message.
    pub message: String,
}

/// The source of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// Tokens times a price table.
    Computed,
    /// The agent's own figure.
    Reported,
    /// The cost is unknown.
    Unknown,
}

/// The same cost read in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CostReadings {
    /// The agent's own figure.
    pub reported_usd: Option<Usd>,
    /// Tokens times prices, cache prices applied.
    pub computed_usd: Option<Usd>,
    /// Tokens times prices, every input token priced as uncached.
    pub cache_neutral_usd: Option<Usd>,
}
