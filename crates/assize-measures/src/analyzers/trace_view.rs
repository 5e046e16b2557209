//! The trace as analyzers look at it: its tool calls, which of them are the same, and what counts as a failure.

use assize_contracts::{EventPlace, SessionTrace, TokenBreakdown, TraceEvent};
use foldhash::fast::RandomState;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::Hash;

/// Keys come from agents and are hashed on every trace: quick, and seeded against chosen collisions.
pub(super) type FastMap<K, V> = HashMap<K, V, RandomState>;

#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) input: &'a Value,
    pub(super) failed: bool,
}

/// When and under whom an event happened, where the trace tells.
pub(super) fn place_of(event: &TraceEvent) -> Option<&EventPlace> {
    match event {
        TraceEvent::Reasoning { context, .. }
        | TraceEvent::ToolCall { context, .. }
        | TraceEvent::TextOutput { context, .. }
        | TraceEvent::Error { context, .. } => context.as_deref(),
        TraceEvent::TurnBoundary { .. } => None,
    }
}

/// Values by key, in order of the keys' first appearance.
pub(super) struct Grouped<K, V> {
    positions: FastMap<K, usize>,
    pub(super) groups: Vec<(K, V)>,
}

impl<K: Hash + Eq + Clone, V: Default> Grouped<K, V> {
    pub(super) fn new() -> Self {
        let positions = FastMap::default();
        let groups = Vec::new();
        Self { positions, groups }
    }

    /// Where the key's group is, which is made if it is new.
    pub(super) fn position(&mut self, key: K) -> usize {
        let next = self.groups.len();
        let position = *self.positions.entry(key.clone()).or_insert(next);
        if position == next {
            self.groups.push((key, V::default()));
        }
        position
    }

    pub(super) fn of(&mut self, key: K) -> &mut V {
        let position = self.position(key);
        &mut self.groups[position].1
    }
}

/// How often each thing occurs.
pub(super) fn tally<T: Hash + Eq + Copy>(things: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts = Grouped::new();
    for thing in things {
        *counts.of(thing) += 1;
    }
    counts.groups
}

pub(super) fn calls(trace: &SessionTrace) -> Vec<Call<'_>> {
    let mut calls = Vec::with_capacity(trace.events.len());
    calls.extend(trace.events.iter().filter_map(|event| match &**event {
        TraceEvent::ToolCall { name, input, .. } => Some(Call {
            name,
            input,
            failed: is_failure(event),
        }),
        _ => None,
    }));
    calls
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

/// For each call the position of the first one with the same tool and input, which may be its own. Inputs can be long
/// and are rarely the same, so only those that look alike are compared as a whole.
pub(super) fn first_equals(calls: &[Call<'_>]) -> Vec<usize> {
    let mut looks: Vec<(u64, usize)> = calls
        .iter()
        .enumerate()
        .map(|(position, call)| (look_of(call), position))
        .collect();
    looks.sort_unstable();
    let mut firsts: Vec<usize> = (0..calls.len()).collect();
    for alike in looks
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|alike| alike.len() > 1)
    {
        let mut seen: FastMap<(&str, &Value), usize> = FastMap::default();
        for &(_, position) in alike {
            let call = &calls[position];
            firsts[position] = *seen.entry((call.name, call.input)).or_insert(position);
        }
    }
    firsts
}

/// How many calls repeat an earlier one.
pub(super) fn duplicates(calls: &[Call<'_>]) -> usize {
    let firsts = first_equals(calls).into_iter().enumerate();
    firsts.filter(|(position, first)| position != first).count()
}

/// Equal for equal calls. Of long texts only the length and both ends are looked at.
fn look_of(call: &Call<'_>) -> u64 {
    look_of_value(call.input, look_of_text(call.name, 0))
}

fn look_of_value(value: &Value, look: u64) -> u64 {
    match value {
        Value::Null => mixed(look, 1),
        Value::Bool(value) => mixed(look, 2 + u64::from(*value)),
        Value::Number(number) => mixed(look, number.as_f64().unwrap_or(0.0).to_bits()),
        Value::String(text) => look_of_text(text, look),
        Value::Array(items) => items
            .iter()
            .fold(mixed(look, items.len() as u64), |look, item| {
                look_of_value(item, look)
            }),
        // Calls of one tool have the same keys more often than not: their values tell them apart.
        Value::Object(map) => map
            .values()
            .fold(mixed(look, map.len() as u64), |look, value| {
                look_of_value(value, look)
            }),
    }
}

fn look_of_text(text: &str, look: u64) -> u64 {
    let bytes = text.as_bytes();
    let (chunks, rest) = bytes.as_chunks::<16>();
    let head = chunks.iter().take(3);
    let look = head.fold(mixed(look, bytes.len() as u64), |look, chunk| {
        mixed_wide(look, *chunk)
    });
    match bytes.last_chunk() {
        Some(tail) => mixed_wide(look, *tail),
        None => rest
            .iter()
            .fold(look, |look, byte| mixed(look, u64::from(*byte))),
    }
}

/// A collision costs a comparison, no more, so this may be weak and quick.
fn mixed_wide(look: u64, chunk: [u8; 16]) -> u64 {
    let chunk = u128::from_le_bytes(chunk);
    let (low, high) = (chunk as u64, (chunk >> 64) as u64);
    let product = u128::from(low ^ look) * u128::from(high ^ 0x517c_c1b7_2722_0a95);
    (product as u64) ^ (product >> 64) as u64 ^ look.rotate_left(5)
}

fn mixed(look: u64, word: u64) -> u64 {
    (look.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
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
