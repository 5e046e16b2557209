//! The trace as analyzers look at it: its tool calls, which of them are the same, and what counts as a failure.

use assize_contracts::{SessionTrace, TokenBreakdown, TraceEvent};
use foldhash::fast::RandomState;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Keys come from agents and are hashed on every trace: quick, and seeded against chosen collisions.
pub(super) type FastMap<K, V> = HashMap<K, V, RandomState>;
pub(super) type FastSet<K> = HashSet<K, RandomState>;

#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) input: &'a Value,
    pub(super) failed: bool,
}

pub(super) fn calls(trace: &SessionTrace) -> impl Iterator<Item = Call<'_>> {
    trace.events.iter().filter_map(|event| match &**event {
        TraceEvent::ToolCall { name, input, .. } => Some(Call {
            name,
            input,
            failed: is_failure(event),
        }),
        _ => None,
    })
}

/// An error, or a tool that reported failure. One that said nothing gets the benefit of the doubt.
pub(super) fn is_failure(event: &TraceEvent) -> bool {
    match event {
        TraceEvent::Error { .. } => true,
        TraceEvent::ToolCall { success, .. } => *success == Some(false),
        _ => false,
    }
}

/// Something that brings a session forward: a tool that did not fail, or text for the user.
pub(super) fn is_progress(event: &TraceEvent) -> bool {
    match event {
        TraceEvent::ToolCall { .. } => !is_failure(event),
        TraceEvent::TextOutput { .. } => true,
        _ => false,
    }
}

/// Calls that repeat an earlier one with the same tool and input.
pub(super) fn duplicates(trace: &SessionTrace) -> usize {
    let mut total = 0;
    let distinct: FastSet<(&str, &Value)> = calls(trace)
        .inspect(|_| total += 1)
        .map(|call| (call.name, call.input))
        .collect();
    total - distinct.len()
}

/// Calls whose input differs from the previous one of the same tool.
pub(super) fn backtracking(trace: &SessionTrace) -> usize {
    let mut last: FastMap<&str, &Value> = FastMap::default();
    calls(trace)
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
