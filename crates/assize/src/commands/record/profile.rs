//! The results of a recorded command, in numbers.

use assize_agents::capture::{CapturedSession, Recording};
use assize_contracts::{CostSource, Millis, SessionTrace, Timestamp, TraceEvent, Usd, UserTurn};
use assize_engine::store::clean_trace;
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
    /// The last thing the model said, without secrets.
    pub(super) text: Option<String>,
    /// The file of the trace.
    pub(super) path: PathBuf,
    /// The version of the prices behind the cost.
    pub(super) prices: String,
}

impl Profile {
    pub(super) fn new(
        command: Vec<String>,
        (started, exit): (Timestamp, Exit),
        session: &CapturedSession,
        path: PathBuf,
        prices: &Prices,
    ) -> Self {
        let recording = session.recording();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut trace = recording.trace(&name, Some(prices));
        clean_trace(&mut trace, session.redactor());
        trace.user_turns = vec![UserTurn {
            started_at: started,
            duration_ms: Some(Millis::from(exit.wall)),
        }];
        Self {
            command,
            exit,
            trace,
            text: recording
                .final_text()
                .map(|text| session.redactor().text(&text).into_owned()),
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
            "wallMs": Millis::from(self.exit.wall),
            "tokens": self.trace.summary.total_tokens,
            "tokensAtLeast": self.recording.tokens().at_least,
            "cost": cost,
            "costSource": match cost {
                Some(_) => CostSource::Computed,
                None => CostSource::Unknown,
            },
            "modelCalls": self.trace.model_calls,
            "toolCalls": tool_calls,
            "turns": self.trace.summary.total_turns,
            "text": self.text,
            "trace": self.path,
        })
    }
}

/// The cost of all calls. Unknown if that of a call that may be billed is.
pub(super) fn cost(trace: &SessionTrace) -> Option<Usd> {
    let billed = trace.model_calls.iter().filter(|call| !call.is_refused());
    let costs = billed.map(|call| call.cost_usd);
    costs.reduce(|sum, next| Some(sum? + next?)).flatten()
}
