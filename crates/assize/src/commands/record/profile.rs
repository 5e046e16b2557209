//! What a recorded command comes to, in numbers.

use assize_agents::capture::Recording;
use assize_contracts::{CostSource, SessionTrace, TraceEvent, Usd};
use assize_llm::Prices;
use assize_process::{Exit, Status};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Everything there is to say about a command.
pub(crate) struct Profile {
    pub(super) command: Vec<String>,
    pub(super) exit: Exit,
    pub(super) recording: Recording,
    pub(super) trace: SessionTrace,
    /// Where the trace is kept.
    pub(super) path: PathBuf,
    /// Which prices the cost was found with.
    pub(super) prices: String,
}

impl Profile {
    pub(super) fn new(
        command: Vec<String>,
        exit: Exit,
        recording: Recording,
        path: PathBuf,
        prices: &Prices,
    ) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let trace = recording.trace(&name, Some(prices));
        Self {
            command,
            exit,
            trace,
            recording,
            path,
            prices: prices.version(),
        }
    }

    /// As shells count: a signal's number is added to 128.
    pub(super) fn exit_code(&self) -> u8 {
        let code = match self.exit.status {
            Some(Status::Exited(code)) => code,
            Some(Status::Signalled(signal)) => 128 + signal,
            // It could not even be killed.
            None => 1,
        };
        u8::try_from(code).unwrap_or(1)
    }

    pub(super) fn json(&self) -> Value {
        let is_tool_call =
            |event: &&std::sync::Arc<TraceEvent>| matches!(***event, TraceEvent::ToolCall { .. });
        let tool_calls: Vec<_> = self.trace.events.iter().filter(is_tool_call).collect();
        let cost = cost(&self.trace);
        json!({
            "command": self.command,
            "exit": self.exit_code(),
            "wallMs": assize_contracts::Millis::from(self.exit.wall),
            "tokens": self.trace.summary.total_tokens,
            "cost": cost,
            "costSource": match cost {
                Some(_) => CostSource::Computed,
                None => CostSource::Unknown,
            },
            "modelCalls": self.trace.model_calls,
            "toolCalls": tool_calls,
            "turns": self.trace.summary.total_turns,
            "text": self.recording.final_text(),
            "trace": self.path,
        })
    }
}

/// What all calls cost. Unknown if one of those that were answered is.
pub(super) fn cost(trace: &SessionTrace) -> Option<Usd> {
    let is_answered = |status: Option<u16>| status.is_some_and(|status| status < 400);
    let answered = trace
        .model_calls
        .iter()
        .filter(|call| is_answered(call.status));
    let costs = answered.map(|call| call.cost_usd);
    costs.reduce(|sum, next| Some(sum? + next?)).flatten()
}
