//! The result that a provider returns for one prompt.

use crate::{Millis, ModelCall, TokenBreakdown, Usd};
use serde::{Deserialize, Serialize};

/// The agent's answer to one user message and what it took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptResult {
    /// The agent's text response.
    pub text: String,
    /// Measurements of this turn.
    #[serde(default)]
    pub metrics: PromptMetrics,
    /// The reason why the turn ended.
    pub completion_reason: CompletionReason,
}

/// Measurements that a provider took during a prompt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PromptMetrics {
    /// Tokens used. Unknown where one model call did not report them.
    pub tokens: TokenBreakdown,
    /// The known part of the tokens, where their total is unknown because a model call is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_at_least: Option<TokenBreakdown>,
    /// The agent's own count, where `tokens` were counted elsewhere: the counts that differ, or all of them where the
    /// total is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_tokens: Option<TokenBreakdown>,
    /// Time taken.
    pub timing: TimingBreakdown,
    /// One record per tool invocation. Absent when the provider cannot see tools.
    pub tool_calls: Option<Vec<ToolCallRecord>>,
    /// Money spent, as the agent reports it.
    pub cost: CostBreakdown,
    /// The cost of the known part of the tokens, where the cost is unknown because a model call is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_at_least_usd: Option<Usd>,
    /// The cost reported by the agent, where `cost` was computed from the same tokens and differs by more than rounding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_cost_usd: Option<Usd>,
    /// The agent reached its model by a way that the capture proxy does not see: all numbers are its own claims.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_captured: bool,
    /// The agent signed in with a subscription: its tokens are not billed one by one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub subscription: bool,
    /// The program behind the session. Absent when the provider started none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramUse>,
    /// Requests to models, where the provider saw them itself. Not part of the JSON: traces carry them.
    #[serde(skip)]
    pub model_calls: Vec<ModelCall>,
}

/// The exit and the resource use of the program behind a session, including everything it started. A value that the system
/// does not report is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ProgramUse {
    /// Its exit code. Absent when a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// CPU time.
    pub cpu_ms: Option<Millis>,
    /// The most memory in use.
    pub peak_memory_bytes: Option<u64>,
    /// Processes that the system killed because the memory of their container was used up. Absent without a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
}

impl ProgramUse {
    /// Both, one after the other: CPU time adds up, the larger peak and the later ending count.
    pub fn then(&self, next: &Self) -> Self {
        Self {
            cpu_ms: self.cpu_ms.zip(next.cpu_ms).map(|(a, b)| a + b),
            peak_memory_bytes: self
                .peak_memory_bytes
                .zip(next.peak_memory_bytes)
                .map(|(a, b)| a.max(b)),
            oom_kills: self.oom_kills.zip(next.oom_kills).map(|(a, b)| a + b),
            ..*next
        }
    }
}

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompletionReason {
    /// The agent considers itself done.
    #[default]
    Stop,
    /// Time ran out; what was measured is a lower bound.
    Timeout,
    /// The agent failed by its own account.
    Error,
    /// The agent used up the tool calls or turns it was allowed.
    ToolLimit,
}

impl CompletionReason {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::ToolLimit => "tool_limit",
        }
    }
}

/// Durations of a turn and of its parts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TimingBreakdown {
    /// Wall time from sending the prompt to the end of the answer.
    pub wall_ms: Option<Millis>,
    /// Named intervals inside it.
    pub segments: Vec<TimingSegment>,
}

/// A named interval, counted from the start of the prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TimingSegment {
    /// The name of this part; becomes the metric `latency_<label>_ms`.
    pub label: String,
    /// Start of the interval.
    pub start_ms: Millis,
    /// End of the interval.
    pub end_ms: Millis,
}

/// One tool invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRecord {
    /// The tool's name as the agent calls it.
    pub name: String,
    /// The kind of tool, for grouping.
    #[serde(default)]
    pub category: String,
    /// `false` for a non-zero exit of a command, a result that is marked as an error, and a call that was rejected or
    /// names an unknown tool. Absent when the agent reports none of it.
    #[serde(default)]
    pub success: Option<bool>,
    /// Duration. Absent when it was not timed.
    #[serde(default)]
    pub duration_ms: Option<Millis>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model call whose answer asked for it. Calls of one answer run in parallel and repeat nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_ref: Option<String>,
}

/// Money spent, by what it was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CostBreakdown {
    /// All of it.
    pub total_usd: Option<Usd>,
    /// For input tokens.
    pub input_usd: Option<Usd>,
    /// For visible output tokens.
    pub output_usd: Option<Usd>,
    /// For reasoning tokens.
    pub reasoning_usd: Option<Usd>,
}

impl CostBreakdown {
    /// Both together. An amount that one side does not know is unknown in the sum.
    pub fn plus(&self, other: &Self) -> Self {
        let add = |a: Option<Usd>, b: Option<Usd>| a.zip(b).map(|(a, b)| a + b);
        Self {
            total_usd: add(self.total_usd, other.total_usd),
            input_usd: add(self.input_usd, other.input_usd),
            output_usd: add(self.output_usd, other.output_usd),
            reasoning_usd: add(self.reasoning_usd, other.reasoning_usd),
        }
    }
}
