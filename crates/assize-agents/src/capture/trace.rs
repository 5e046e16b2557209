//! From what passed by to a session's trace: main and side calls, retries, turns, tools with their results.

use super::agents::agent_id;
use super::session::{Call, Ending, Recording, Returned};
use assize_contracts::{
    CallEnding, CostSource, EventPlace, Millis, ModelCall, SessionTrace, Timestamp, TokenBreakdown,
    TokenSum, TraceEvent,
};
use assize_llm::{Content, ModelAnswer, Part, Prices, RequestedTool};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The length of a tool's output that is kept to explain a failure.
const EXCERPT: usize = 500;

impl Call {
    /// The call by itself, as a trace has it. Only the other calls show whether it is beside the task, or a retry.
    pub fn model_call(&self) -> ModelCall {
        let answer = self.answer.as_ref();
        let usage = answer
            .map(|answer| answer.usage.clone())
            .unwrap_or_default();
        let named = answer.and_then(|answer| answer.model.clone());
        let model = named.or_else(|| self.model.clone());
        let first = answer.and_then(|answer| answer.first_content_at);
        ModelCall {
            id: call_id(self),
            model: model.unwrap_or_else(|| "unknown".to_owned()),
            api: Some(self.api.as_str().to_owned()),
            started_at: Some(Timestamp::from_unix_ms(self.started_ms)),
            ttft_ms: first.map(Millis::from),
            duration_ms: Some(Millis::from(self.duration)),
            tokens: usage.tokens,
            tokens_at_least: usage.at_least,
            cache_write_1h: usage.cache_write_1h,
            service_tier: usage.service_tier,
            stop_reason: answer.and_then(|answer| answer.stop_reason.clone()),
            status: self.status(),
            ending: ending(self),
            asked_for_usage: self.asked_for_usage,
            ..ModelCall::default()
        }
    }
}

impl Recording {
    /// True when no model was asked.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Only what began after the first `calls` ones.
    pub fn after(mut self, calls: usize) -> Self {
        self.calls.drain(..calls.min(self.calls.len()));
        self
    }

    /// A call beside the task: a title, a summary, a probe. They offer the model no tools, while the task does.
    pub fn is_side(&self, call: &Call) -> bool {
        call.tools == 0 && self.calls.iter().any(|other| other.tools > 0)
    }

    /// The subagent that made a call. Absent for the main agent.
    pub fn agent(&self, call: &Call) -> Option<&str> {
        self.agents.get(&call.number).map(String::as_str)
    }

    /// Names subagents by the ids of their calls, where they are not known yet. Returns whether any is new.
    pub(super) fn name_agents(&mut self, agents: &HashMap<String, String>) -> bool {
        let mut has_new = false;
        for call in &self.calls {
            let named = agents.get(&call_id(call));
            if let (Some(agent), None) = (named, self.agents.get(&call.number)) {
                self.agents.insert(call.number, agent.clone());
                has_new = true;
            }
        }
        has_new
    }

    /// Calls about the task, those of subagents included.
    pub fn task_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !self.is_side(call))
    }

    /// Calls of the main agent about the task.
    pub fn main_calls(&self) -> impl Iterator<Item = &Call> {
        self.task_calls().filter(|call| self.agent(call).is_none())
    }

    /// True when a model was asked and did not refuse.
    pub fn is_billed(&self) -> bool {
        self.lost_calls > 0 || self.calls.iter().any(|call| !call.is_refused())
    }

    /// All tokens. A count that one call lacks is unknown, and the known part is kept; refused calls took none.
    pub fn tokens(&self) -> TokenSum {
        let calls: Vec<ModelCall> = self.calls.iter().map(Call::model_call).collect();
        let sum = TokenSum::of_calls(&calls);
        match self.lost_calls {
            0 => sum,
            _ => sum.and_more(),
        }
    }

    /// The last thing the model said to the user.
    pub fn final_text(&self) -> Option<String> {
        let answers: Vec<&ModelAnswer> = self
            .main_calls()
            .filter_map(|call| call.answer.as_ref())
            .filter(|answer| answer.status < 400)
            .collect();
        let text = |answer: &&ModelAnswer| {
            let text = answer.text();
            (!text.is_empty()).then_some(text)
        };
        let is_last_word = |answer: &&&ModelAnswer| answer.tools().next().is_none();
        let mut last_words = answers.iter().rev().filter(is_last_word);
        last_words
            .find_map(text)
            .or_else(|| answers.iter().rev().find_map(text))
    }

    /// The error that the task ended with: the last call about it got no answer.
    pub fn last_error(&self) -> Option<String> {
        let is_without = |call: &&Call| call.is_refused() || call.is_given_up();
        let last = || self.main_calls().last().filter(is_without);
        let failed = self.failed_call().or_else(last)?;
        Some(self.error_of(failed))
    }

    /// The error of a call.
    pub(super) fn error_of(&self, call: &Call) -> String {
        what_went_wrong(call)
    }

    /// Tokens of calls about the task.
    pub fn main_tokens(&self) -> TokenBreakdown {
        let calls: Vec<ModelCall> = self.task_calls().map(Call::model_call).collect();
        TokenSum::of_calls(&calls).tokens
    }

    /// True when the model's last answer to the main agent is whole and asks for no tool: there was nothing left to do.
    pub fn is_finished(&self) -> bool {
        let last = self.main_calls().last();
        last.is_some_and(|call| {
            let is_last_word = |answer: &ModelAnswer| {
                answer.error.is_none() && answer.tools().all(|tool| tool.by_server)
            };
            !call.is_refused() && !call.is_cut() && call.answer.as_ref().is_some_and(is_last_word)
        })
    }

    /// True when any answer came from a cassette.
    pub fn is_replayed(&self) -> bool {
        self.calls.iter().any(|call| call.replayed)
    }

    /// The session as it was seen on the wire, its calls priced where there are prices.
    pub fn trace(&self, session_id: &str, prices: Option<&Prices>) -> SessionTrace {
        let mut writer = Writer {
            recording: self,
            prices,
            events: Vec::new(),
            model_calls: Vec::new(),
            tries: HashMap::new(),
            turns: 0,
        };
        for call in &self.calls {
            writer.write(call);
        }
        writer.finish(session_id)
    }
}

/// Tries of one request that have not succeeded yet.
#[derive(Default)]
struct Tries<'a> {
    failed: u32,
    /// The last one, if there is no record of it yet.
    last: Option<&'a Call>,
    started_ms: Option<i64>,
}

struct Writer<'a> {
    recording: &'a Recording,
    prices: Option<&'a Prices>,
    events: Vec<Arc<TraceEvent>>,
    model_calls: Vec<ModelCall>,
    tries: HashMap<[u8; 32], Tries<'a>>,
    turns: u64,
}

impl<'a> Writer<'a> {
    fn write(&mut self, call: &'a Call) {
        let retries = call
            .fingerprint
            .map_or(0, |request| self.count_try(call, request));
        if call.is_refused() {
            self.note(call, what_went_wrong(call));
            return;
        }
        let id = self.add_call(call, retries);
        if !self.recording.is_side(call) {
            // A turn is an answer of the main agent's model; one that broke off or ended in an error is none.
            if self.recording.agent(call).is_none() && !call.is_cut() && call.is_answered() {
                self.begin_turn(call);
            }
            self.add_parts(call, &id);
        }
        if call.is_cut() {
            self.note(call, what_went_wrong(call));
        }
        if let Some(unread) = &call.unread {
            self.note(call, format!("an answer was passed on unread: {unread}"));
        }
    }

    /// Counts a try of a request. Returns how many failed before it.
    fn count_try(&mut self, call: &'a Call, request: [u8; 32]) -> u32 {
        let tries = self.tries.entry(request).or_default();
        let retries = tries.failed;
        if call.is_refused() {
            tries.failed += 1;
            tries.last = Some(call);
            tries.started_ms.get_or_insert(call.started_ms);
        } else if call.is_cut() {
            tries.failed += 1;
            tries.last = None;
        } else {
            self.tries.remove(&request);
        }
        retries
    }

    fn add_call(&mut self, call: &Call, retries: u32) -> String {
        let seen = call.model_call();
        let cost = self.prices.and_then(|prices| prices.of_call(&seen));
        let cost_usd = cost.and_then(|cost| cost.breakdown.total_usd);
        let id = seen.id.clone();
        self.model_calls.push(ModelCall {
            side: self.recording.is_side(call),
            agent_id: self.recording.agent(call).map(str::to_owned),
            cost_usd,
            cost_source: cost_usd.map(|_| CostSource::Computed),
            retries: Some(retries),
            ..seen
        });
        id
    }

    fn begin_turn(&mut self, call: &Call) {
        self.events.push(Arc::new(TraceEvent::TurnBoundary {
            turn_number: self.turns,
            timestamp: Timestamp::from_unix_ms(call.started_ms),
        }));
        self.turns += 1;
    }

    fn add_parts(&mut self, call: &Call, id: &str) {
        let parts = call.answer.iter().flat_map(|answer| &answer.parts);
        for (index, part) in parts.enumerate() {
            let at = part.at.unwrap_or(call.duration);
            let context = || Some(Box::new(self.place(call, at, id)));
            let event = match &part.content {
                Content::Reasoning(text) => TraceEvent::Reasoning {
                    content: text.clone(),
                    duration_ms: None,
                    token_count: None,
                    context: context(),
                },
                Content::Text(text) => TraceEvent::TextOutput {
                    content: text.clone(),
                    token_count: None,
                    context: context(),
                },
                Content::Tool(tool) => match self.tool_call(call, index, part, tool) {
                    Some(event) => event,
                    None => continue,
                },
            };
            self.events.push(Arc::new(event));
        }
    }

    /// Upper bound: a tool starts after the model asked for it and has ended when its result is sent back.
    /// Absent when the answer broke off and the tool was never run.
    fn tool_call(
        &self,
        call: &Call,
        index: usize,
        part: &Part,
        tool: &RequestedTool,
    ) -> Option<TraceEvent> {
        let returned = self.recording.returned.get(&(call.number, index));
        if returned.is_none() && call.is_cut() {
            return None;
        }
        let id = call_id(call);
        let first_byte = || call.answer.as_ref()?.first_byte_at;
        let asked = part.ended.or(part.at).or_else(first_byte);
        let mut context = self.place(call, asked.unwrap_or_default(), &id);
        let asked_ms = context.timestamp.as_ref().and_then(Timestamp::unix_ms);
        // Times are cut to whole milliseconds.
        let took = |returned: &Returned| {
            let took = returned
                .received_ms
                .saturating_sub(asked_ms?)
                .saturating_add(1);
            Some(Millis::from(took.max(0) as u64))
        };
        context.duration_is_bound = returned.is_some();
        let agent = agent_id(call, index, tool);
        let is_starter = self.recording.agents.values().any(|named| *named == agent);
        context.call_id = tool.id.clone().or_else(|| is_starter.then_some(agent));
        let result = returned.map(|returned| &returned.result);
        let is_unknown = call.unknown_tools.contains(&index);
        let has_failed = match is_unknown {
            true => Some(true),
            false => result.and_then(|result| result.is_error),
        };
        let output = result.map_or(Value::Null, |result| result.output.clone());
        Some(TraceEvent::ToolCall {
            name: tool.name.clone(),
            input: tool.arguments.clone(),
            duration_ms: returned.and_then(took),
            success: has_failed.map(|failed| !failed),
            error: (has_failed == Some(true)).then(|| match is_unknown {
                true => format!("there is no tool `{}`", tool.name),
                false => excerpt(&output),
            }),
            output,
            context: Some(Box::new(context)),
        })
    }

    fn place(&self, call: &Call, at: Duration, id: &str) -> EventPlace {
        let agent = self.recording.agent(call).map(str::to_owned);
        EventPlace {
            timestamp: Some(Timestamp::from_unix_ms(
                call.started_ms + at.as_millis() as i64,
            )),
            parent_event_id: agent.clone(),
            agent_id: agent,
            call_ref: Some(id.to_owned()),
            ..EventPlace::default()
        }
    }

    fn note(&mut self, call: &Call, message: String) {
        let timestamp = call.started_ms + call.duration.as_millis() as i64;
        self.events.push(Arc::new(TraceEvent::Error {
            message,
            recoverable: true,
            context: Some(Box::new(EventPlace {
                timestamp: Some(Timestamp::from_unix_ms(timestamp)),
                ..EventPlace::default()
            })),
        }));
    }

    fn finish(mut self, session_id: &str) -> SessionTrace {
        self.add_failed_calls();
        self.mark_last_error_as_final();
        let recording = self.recording;
        let mut trace = SessionTrace::from_events(
            session_id.to_owned(),
            self.events,
            recording.tokens().tokens,
        );
        trace.summary.total_turns = Some(self.turns);
        trace.summary.total_duration = wall(&recording.calls);
        trace.model_calls = self.model_calls;
        trace.skills = recording.sightings();
        trace
    }

    /// Requests that never got an answer, one call each.
    fn add_failed_calls(&mut self) {
        let mut failed: Vec<(&Call, u32, Option<i64>)> = self
            .tries
            .values()
            .filter_map(|tries| Some((tries.last?, tries.failed, tries.started_ms)))
            .collect();
        failed.sort_by_key(|(call, ..)| call.number);
        for (call, tries, started_ms) in failed {
            self.add_call(call, tries - 1);
            if let Some(added) = self.model_calls.last_mut() {
                added.started_at = started_ms.map(Timestamp::from_unix_ms);
            }
        }
        let started = |call: &ModelCall| call.started_at.as_ref().and_then(Timestamp::unix_ms);
        self.model_calls.sort_by_key(started);
    }

    fn mark_last_error_as_final(&mut self) {
        let is_over = self.recording.last_error().is_some();
        if let Some(last) = self.events.last_mut().filter(|_| is_over)
            && let TraceEvent::Error { recoverable, .. } = Arc::make_mut(last)
        {
            *recoverable = false;
        }
    }
}

fn ending(call: &Call) -> Option<CallEnding> {
    match call.ending {
        Ending::NoAnswer(_) => Some(CallEnding::NoAnswer),
        Ending::ClientGone => Some(CallEnding::ClientGone),
        Ending::Cut(_) => Some(CallEnding::Cut),
        Ending::Complete => call.is_cut().then_some(CallEnding::Cut),
    }
}

/// From the first request to the end of the last answer.
fn wall(calls: &[Call]) -> Option<Millis> {
    let start = calls.iter().map(|call| call.started_ms).min()?;
    let end = |call: &Call| Duration::from_millis((call.started_ms - start) as u64) + call.duration;
    Some(Millis::from(calls.iter().map(end).max()?))
}

fn call_id(call: &Call) -> String {
    format!("call-{}", call.number)
}

fn what_went_wrong(call: &Call) -> String {
    let error = call
        .answer
        .as_ref()
        .and_then(|answer| answer.error.as_ref());
    match (&call.ending, call.status(), error) {
        (Ending::NoAnswer(message), ..) => message.clone(),
        (_, Some(status), Some(error)) if status >= 400 => {
            format!("the model's API answered {status}: {}", error.message)
        }
        (_, Some(status), None) if status >= 400 => format!("the model's API answered {status}"),
        (Ending::ClientGone, None, _) => "the agent hung up before the model answered".to_owned(),
        (Ending::ClientGone, ..) => "the agent hung up in the middle of an answer".to_owned(),
        (Ending::Cut(message), ..) => format!("the answer was cut: {message}"),
        (_, _, Some(error)) => format!("the answer ended in an error: {}", error.message),
        _ if call.answer.as_ref().is_some_and(|answer| !answer.streamed) => {
            "what came back is no answer of a model's API; is the base URL right?".to_owned()
        }
        _ => "the answer has no end".to_owned(),
    }
}

fn excerpt(output: &Value) -> String {
    let text = match output {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars().take(EXCERPT).collect()
}
