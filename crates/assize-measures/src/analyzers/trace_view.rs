//! The trace as analyzers look at it: its tool calls, and what counts as failure and as progress.

use super::grouped::FastMap;
use assize_contracts::{SessionTrace, TokenBreakdown, TraceEvent};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) input: &'a Value,
    /// Absent if the call did not report how it ended.
    success: Option<bool>,
    /// The model call whose answer asked for it.
    pub(super) call_ref: Option<&'a str>,
}

impl Call<'_> {
    pub(super) fn has_failed(&self, unreported: Unreported) -> bool {
        !self.success.unwrap_or(unreported.worked())
    }
}

/// The reading of tool calls that did not report how they ended.
#[derive(Clone, Copy)]
pub(super) enum Unreported {
    Worked,
    Failed,
}

impl Unreported {
    fn worked(self) -> bool {
        matches!(self, Self::Worked)
    }
}

/// A measurement that does not depend on tool calls that did not report how they ended. Absent if it does: no failure was
/// reported, which is not the same as no failure.
pub(super) fn known<T: PartialEq>(
    trace: &SessionTrace,
    measure: impl Fn(Unreported) -> T,
) -> Option<T> {
    let value = measure(Unreported::Worked);
    let is_known = unreported_calls(trace) == 0 || measure(Unreported::Failed) == value;
    is_known.then_some(value)
}

/// The number of tool calls that did not report how they ended.
pub(super) fn unreported_calls(trace: &SessionTrace) -> usize {
    let events = trace.events.iter();
    events.filter(|event| is_unreported(event)).count()
}

pub(super) fn is_unreported(event: &TraceEvent) -> bool {
    matches!(event, TraceEvent::ToolCall { success: None, .. })
}

pub(super) fn calls(trace: &SessionTrace) -> Vec<Call<'_>> {
    // Counted first: most events are no calls, and small allocations are much the cheaper ones.
    let is_call = |event: &&Arc<TraceEvent>| matches!(***event, TraceEvent::ToolCall { .. });
    let mut calls = Vec::with_capacity(trace.events.iter().filter(is_call).count());
    calls.extend(trace.events.iter().filter_map(|event| match &**event {
        TraceEvent::ToolCall {
            name,
            input,
            success,
            ..
        } => Some(Call {
            name,
            input,
            success: *success,
            call_ref: event.place().and_then(|place| place.call_ref.as_deref()),
        }),
        _ => None,
    }));
    calls
}

/// An error, or a tool that failed.
pub(super) fn is_failure(event: &TraceEvent, unreported: Unreported) -> bool {
    match event {
        TraceEvent::Error { .. } => true,
        TraceEvent::ToolCall { success, .. } => !success.unwrap_or(unreported.worked()),
        _ => false,
    }
}

/// Something that brings a session forward: a tool that did not fail, or text for the user.
pub(super) fn is_progress(event: &TraceEvent, unreported: Unreported) -> bool {
    match event {
        TraceEvent::ToolCall { .. } => !is_failure(event, unreported),
        TraceEvent::TextOutput { .. } => true,
        _ => false,
    }
}

/// Calls whose input differs from the previous one of the same tool.
pub(super) fn backtracking(calls: &[Call<'_>]) -> usize {
    let mut last: FastMap<&str, &Value> = FastMap::default();
    calls
        .iter()
        .filter(|call| {
            let before = last.insert(call.name, call.input);
            before.is_some_and(|before| before != call.input)
        })
        .count()
}

/// Reasoning tokens per token. Absent when one of the two was not counted.
pub(super) fn reasoning_density(tokens: &TokenBreakdown) -> Option<f64> {
    let (reasoning, total) = (tokens.reasoning? as f64, tokens.total? as f64);
    Some(if total == 0.0 { 0.0 } else { reasoning / total })
}
