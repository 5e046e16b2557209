//! Short forms of events for the tests of analyzers.

use super::TraceAnalyzer;
use assize_contracts::{
    EventPlace, ModelCall, SessionTrace, Timestamp, TokenBreakdown, TraceEvent,
};
use serde_json::{Value, json};

pub(super) fn trace(events: Vec<TraceEvent>) -> SessionTrace {
    SessionTrace::from_events("session".to_owned(), events, TokenBreakdown::default())
}

pub(super) fn finding(analyzer: &TraceAnalyzer, trace: &SessionTrace, key: &str) -> Option<Value> {
    let finding = analyzer.find(trace).findings.remove(key)?;
    Some(serde_json::to_value(finding).unwrap())
}

pub(super) fn boundary(turn_number: u64) -> TraceEvent {
    TraceEvent::TurnBoundary {
        turn_number,
        timestamp: Timestamp::from_unix_ms(turn_number as i64 * 1000),
    }
}

pub(super) fn thought(content: &str) -> TraceEvent {
    TraceEvent::Reasoning {
        content: content.to_owned(),
        duration_ms: None,
        token_count: None,
        context: None,
    }
}

pub(super) fn error(message: &str) -> TraceEvent {
    TraceEvent::Error {
        message: message.to_owned(),
        recoverable: true,
        context: None,
    }
}

pub(super) fn said(content: &str) -> TraceEvent {
    TraceEvent::TextOutput {
        content: content.to_owned(),
        token_count: None,
        context: None,
    }
}

pub(super) fn call(name: &str, input: Value) -> TraceEvent {
    ended_call(name, input, Some(true), None)
}

/// A call whose agent does not report how it ended.
pub(super) fn unreported_call(name: &str, input: Value) -> TraceEvent {
    ended_call(name, input, None, None)
}

pub(super) fn failed_call(name: &str, input: Value, error: &str) -> TraceEvent {
    ended_call(name, input, Some(false), Some(error.to_owned()))
}

fn ended_call(
    name: &str,
    input: Value,
    success: Option<bool>,
    error: Option<String>,
) -> TraceEvent {
    TraceEvent::ToolCall {
        name: name.to_owned(),
        input,
        output: Value::Null,
        duration_ms: None,
        success,
        error,
        context: None,
    }
}

/// The same event at another place.
pub(super) fn placed(mut event: TraceEvent, place: EventPlace) -> TraceEvent {
    match &mut event {
        TraceEvent::Reasoning { context, .. }
        | TraceEvent::ToolCall { context, .. }
        | TraceEvent::TextOutput { context, .. }
        | TraceEvent::Error { context, .. } => *context = Some(Box::new(place)),
        TraceEvent::TurnBoundary { .. } => panic!("a boundary has no place"),
    }
    event
}

pub(super) fn model_call(id: &str, input: u64, output: u64) -> ModelCall {
    let tokens = json!({"input": input, "output": output, "total": input + output, "cacheRead": 0});
    serde_json::from_value(json!({"id": id, "model": "m", "tokens": tokens})).unwrap()
}
