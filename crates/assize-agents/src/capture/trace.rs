//! From what passed by to a session's trace: main and side calls, retries, turns, tools with their results.

use super::session::{Call, Ending, Recording, Returned};
use assize_contracts::{
    CallEnding, CostSource, EventPlace, Millis, ModelCall, SessionTrace, Timestamp, TokenBreakdown,
    TraceEvent, Usd,
};
use assize_llm::{Content, ModelAnswer, Prices, Purchase, RequestedTool};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How much of a tool's output says what went wrong.
const EXCERPT: usize = 500;

impl Call {
    /// What it cost. Absent when it took nothing, or nobody knows.
    pub fn cost(&self, prices: &Prices) -> Option<Usd> {
        let answer = self.answer.as_ref()?;
        let cost = prices.of_request(&Purchase {
            model: answer.model.as_deref().or(self.model.as_deref())?,
            api: Some(self.api),
            tokens: answer.usage.tokens,
            cache_write_1h: answer.usage.cache_write_1h,
            service_tier: answer.usage.service_tier.as_deref(),
        });
        cost?.breakdown.total_usd
    }

    /// The call by itself, as a trace has it. Whether it is beside the task, and a retry, only the others can tell.
    pub fn model_call(&self) -> ModelCall {
        let answer = self.answer.as_ref();
        let named = answer.and_then(|answer| answer.model.clone());
        let model = named.or_else(|| self.model.clone());
        let first = answer.and_then(|answer| answer.first_content_at);
        ModelCall {
            id: format!("call-{}", self.number),
            model: model.unwrap_or_else(|| "unknown".to_owned()),
            api: Some(self.api.as_str().to_owned()),
            started_at: Some(Timestamp::from_unix_ms(self.started_ms)),
            ttft_ms: first.map(Millis::from),
            duration_ms: Some(Millis::from(self.duration)),
            tokens: answer.map(|answer| answer.usage.tokens).unwrap_or_default(),
            stop_reason: answer.and_then(|answer| answer.stop_reason.clone()),
            status: self.status(),
            ending: ending(self),
            asked_for_usage: self.asked_for_usage,
            ..ModelCall::default()
        }
    }
}

impl Recording {
    /// Whether no model was asked.
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

    /// Calls about the task.
    pub fn main_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !self.is_side(call))
    }

    /// All tokens. A count that one answered call does not tell is unknown; refused calls have none.
    pub fn tokens(&self) -> TokenBreakdown {
        let answers = self.calls.iter().filter(|call| !call.is_refused());
        let tokens = answers.filter_map(|call| Some(call.answer.as_ref()?.usage.tokens));
        let sum = tokens
            .reduce(|sum, next| sum.plus(&next))
            .unwrap_or_default();
        match self.lost_calls {
            0 => sum,
            _ => TokenBreakdown::default(),
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
            (!text.is_empty()).then(|| self.without_keys(&text))
        };
        let is_last_word = |answer: &&&ModelAnswer| answer.tools().next().is_none();
        let mut last_words = answers.iter().rev().filter(is_last_word);
        last_words
            .find_map(text)
            .or_else(|| answers.iter().rev().find_map(text))
    }

    /// The error that the task ended with: the last call about it got no answer.
    pub fn last_error(&self) -> Option<String> {
        let last = || self.main_calls().last().filter(|call| call.is_refused());
        let failed = self.failed_call().or_else(last)?;
        Some(self.without_keys(&what_went_wrong(failed)))
    }

    /// The last call about the task, if it was refused or cut. One that the agent gave up before any answer tells
    /// nothing: it may have been ended itself.
    pub fn failed_call(&self) -> Option<&Call> {
        let is_given_up =
            |call: &&Call| call.ending == Ending::ClientGone && call.status().is_none();
        let last = self.main_calls().filter(|call| !is_given_up(call)).last()?;
        let is_cut = matches!(last.ending, Ending::Cut(_));
        (last.is_refused() || is_cut).then_some(last)
    }

    /// Tokens of calls about the task.
    pub fn main_tokens(&self) -> TokenBreakdown {
        let answered = self.main_calls().filter(|call| !call.is_refused());
        let tokens = answered.filter_map(|call| Some(call.answer.as_ref()?.usage.tokens));
        tokens
            .reduce(|sum, next| sum.plus(&next))
            .unwrap_or_default()
    }

    /// Whether any answer came from a cassette.
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

    fn without_keys(&self, text: &str) -> String {
        let is_in = |key: &&String| text.contains(key.as_str());
        let found = self.keys.iter().filter(is_in);
        found.fold(text.to_owned(), |text, key| text.replace(key, "{key}"))
    }

    fn value_without_keys(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.without_keys(text)),
            Value::Array(items) => {
                let items = items.iter();
                items.map(|item| self.value_without_keys(item)).collect()
            }
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (self.without_keys(key), self.value_without_keys(value)))
                .collect(),
            other => other.clone(),
        }
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
        let tries = self.tries.entry(call.fingerprint).or_default();
        let retries = tries.failed;
        if call.is_refused() {
            tries.failed += 1;
            tries.last = Some(call);
            tries.started_ms.get_or_insert(call.started_ms);
        } else if call.is_cut() {
            tries.failed += 1;
            tries.last = None;
        } else {
            self.tries.remove(&call.fingerprint);
        }
        if call.is_refused() {
            self.note(call, what_went_wrong(call));
            return;
        }
        let id = self.add_call(call, retries);
        if !self.recording.is_side(call) {
            self.begin_turn(call);
            self.add_parts(call, &id);
        }
        if call.is_cut() {
            self.note(call, what_went_wrong(call));
        }
        if let Some(unread) = &call.unread {
            self.note(call, format!("an answer was passed on unread: {unread}"));
        }
    }

    fn add_call(&mut self, call: &Call, retries: u32) -> String {
        let id = format!("call-{}", self.model_calls.len() + 1);
        let cost_usd = self.prices.and_then(|prices| call.cost(prices));
        self.model_calls.push(ModelCall {
            id: id.clone(),
            side: self.recording.is_side(call),
            cost_usd,
            cost_source: cost_usd.map(|_| CostSource::Computed),
            retries: Some(retries),
            ..call.model_call()
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
            let event = match &part.content {
                Content::Reasoning(text) => TraceEvent::Reasoning {
                    content: self.recording.without_keys(text),
                    duration_ms: None,
                    token_count: None,
                    context: Some(Box::new(place(call, at, id, None))),
                },
                Content::Text(text) => TraceEvent::TextOutput {
                    content: self.recording.without_keys(text),
                    token_count: None,
                    context: Some(Box::new(place(call, at, id, None))),
                },
                Content::Tool(tool) => {
                    let returned = self.recording.returned.get(&(call.number, index));
                    self.tool_call(call, id, tool, returned)
                }
            };
            self.events.push(Arc::new(event));
        }
    }

    /// A tool cannot begin before the answer has ended, and has ended when the model is told: an upper bound.
    fn tool_call(
        &self,
        call: &Call,
        id: &str,
        tool: &RequestedTool,
        returned: Option<&Returned>,
    ) -> TraceEvent {
        let ended_ms = call.started_ms + call.duration.as_millis() as i64;
        let took = |returned: &Returned| {
            Millis::from(returned.told_ms.saturating_sub(ended_ms).max(0) as u64)
        };
        let context = EventPlace {
            duration_is_bound: returned.is_some(),
            ..place(call, call.duration, id, tool.id.clone())
        };
        let result = returned.map(|returned| &returned.result);
        let has_failed = result.and_then(|result| result.is_error);
        let output = result.map_or(Value::Null, |result| {
            self.recording.value_without_keys(&result.output)
        });
        TraceEvent::ToolCall {
            name: tool.name.clone(),
            input: self.recording.value_without_keys(&tool.arguments),
            duration_ms: returned.map(took),
            success: has_failed.map(|failed| !failed),
            error: (has_failed == Some(true)).then(|| excerpt(&output)),
            output,
            context: Some(Box::new(context)),
        }
    }

    fn note(&mut self, call: &Call, message: String) {
        let timestamp = call.started_ms + call.duration.as_millis() as i64;
        self.events.push(Arc::new(TraceEvent::Error {
            message: self.recording.without_keys(&message),
            recoverable: true,
            context: Some(Box::new(EventPlace {
                timestamp: Some(Timestamp::from_unix_ms(timestamp)),
                ..EventPlace::default()
            })),
        }));
    }

    fn finish(mut self, session_id: &str) -> SessionTrace {
        self.add_failed_calls();
        self.say_whether_it_went_on();
        let recording = self.recording;
        let mut trace =
            SessionTrace::from_events(session_id.to_owned(), self.events, recording.tokens());
        trace.summary.total_duration = wall(&recording.calls);
        trace.model_calls = self.model_calls;
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

    fn say_whether_it_went_on(&mut self) {
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

fn place(call: &Call, at: Duration, id: &str, call_id: Option<String>) -> EventPlace {
    EventPlace {
        timestamp: Some(Timestamp::from_unix_ms(
            call.started_ms + at.as_millis() as i64,
        )),
        call_id,
        call_ref: Some(id.to_owned()),
        ..EventPlace::default()
    }
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
