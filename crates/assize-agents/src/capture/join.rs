//! One account of a session from two: the agent's own events, and what passed by on the wire.
//!
//! Every tool call comes from an answer of a model, so the wire has all of them: rejected ones, those of subagents, the
//! one that was running when time was over. The agent adds what only it knows: its own name of the tool, how the call
//! ended, its times. Calls are joined by their ids; agents that make up ids of their own by time, input and order.

use assize_contracts::{EventPlace, Millis, Timestamp, TraceEvent};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The longest time by which an agent may report the start of a call before the wire does, in milliseconds: the clocks are read apart.
const SLACK: i64 = 20;

/// Placeholders that agents write where they do not name the tool: the kinds of ACP, and opencode's word for a tool that does not exist.
const NO_NAMES: [&str; 12] = [
    "invalid",
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
    "tool",
];

type Events = Vec<Arc<TraceEvent>>;

/// Both accounts as one, in the order of their times. Turns, thoughts and texts are those of the wire.
pub(super) fn joined(own: Events, wire: Events) -> Events {
    let pairs = pairs(&own, &wire);
    let partner: HashMap<usize, usize> = pairs.iter().map(|(own, wire)| (*wire, *own)).collect();
    let inner = inner_calls(&own, &wire, &pairs);
    let words = Words::of(&wire);
    let mut events: Events = Vec::with_capacity(wire.len() + own.len());
    for (place, event) in wire.iter().enumerate() {
        let has_inner_failure = inner.iter().any(|(own_place, program)| {
            let call = own[*own_place].tool_call_record();
            *program == place && call.is_some_and(|call| call.success == Some(false))
        });
        events.push(match partner.get(&place) {
            Some(place) => Arc::new(joined_call(&own[*place], event, has_inner_failure)),
            None => Arc::clone(event),
        });
    }
    let only_own = own.into_iter().enumerate().filter(|(place, event)| {
        let is_paired = pairs.contains_key(place) || inner.contains_key(place);
        match &**event {
            TraceEvent::TurnBoundary { .. } => false,
            TraceEvent::ToolCall { .. } => !is_paired,
            TraceEvent::Reasoning { .. } => !words.has_thoughts,
            TraceEvent::TextOutput { content, .. } => !words.has(content),
            TraceEvent::Error { .. } => true,
        }
    });
    events.extend(only_own.map(|(_, event)| event));
    in_order(events)
}

/// The subagents that the agent names for model calls, by the calls' ids.
pub(super) fn agents(own: &Events, wire: &Events) -> HashMap<String, String> {
    let named = pairs(own, wire)
        .into_iter()
        .filter_map(|(own_place, wire_place)| {
            let agent = own[own_place].place()?.agent_id.clone()?;
            Some((wire[wire_place].place()?.call_ref.clone()?, agent))
        });
    named.collect()
}

/// Events in the order of their times. One without a time stays behind the one before it.
fn in_order(mut events: Events) -> Events {
    let mut last = i64::MIN;
    events.sort_by_cached_key(|event| {
        let time = event.timestamp().and_then(Timestamp::unix_ms);
        last = time.unwrap_or(last);
        last
    });
    events
}

/// The words of models, to leave out what the agent repeats.
struct Words<'a> {
    texts: HashSet<&'a str>,
    all: String,
    has_thoughts: bool,
}

impl<'a> Words<'a> {
    fn of(wire: &'a Events) -> Self {
        let texts: Vec<&str> = wire
            .iter()
            .filter_map(|event| match &**event {
                TraceEvent::TextOutput { content, .. } => Some(content.trim()),
                _ => None,
            })
            .collect();
        let is_thought = |event: &Arc<TraceEvent>| matches!(**event, TraceEvent::Reasoning { .. });
        Self {
            all: texts.concat(),
            has_thoughts: wire.iter().any(is_thought),
            texts: texts.into_iter().collect(),
        }
    }

    fn has(&self, text: &str) -> bool {
        let text = text.trim();
        self.texts.contains(text) || self.all.contains(text)
    }
}

/// A tool call of one account, as far as it helps to find it in the other.
struct KnownCall<'a> {
    place: usize,
    id: Option<&'a str>,
    name: &'a str,
    input: &'a Value,
    start: Option<i64>,
    end: Option<i64>,
}

fn known_calls(events: &Events) -> Vec<KnownCall<'_>> {
    let calls = events.iter().enumerate().filter_map(|(place, event)| {
        let TraceEvent::ToolCall {
            name,
            input,
            duration_ms,
            ..
        } = &**event
        else {
            return None;
        };
        let start = event.timestamp().and_then(Timestamp::unix_ms);
        let took = duration_ms.map(|ms| ms.value().ceil() as i64);
        Some(KnownCall {
            place,
            id: event.place().and_then(|place| place.call_id.as_deref()),
            name,
            input,
            start,
            end: start
                .zip(took)
                .map(|(start, took)| start.saturating_add(took)),
        })
    });
    calls.collect()
}

/// Pairs each call of the agent with the same call on the wire, by their places.
fn pairs(own: &Events, wire: &Events) -> HashMap<usize, usize> {
    let (own, mut open) = (known_calls(own), known_calls(wire));
    let mut pairs = HashMap::new();
    let mut others = Vec::new();
    let by_id: HashMap<&str, usize> = open
        .iter()
        .filter_map(|call| Some((call.id?, call.place)))
        .collect();
    for call in own {
        match call.id.and_then(|id| by_id.get(id)) {
            Some(place) => drop(pairs.insert(call.place, *place)),
            None => others.push(call),
        }
    }
    let taken: HashSet<usize> = pairs.values().copied().collect();
    open.retain(|call| !taken.contains(&call.place));
    let programs = programs(wire);
    for call in others {
        // The first of those that are equally alike.
        let alike = |(position, other): (usize, &KnownCall<'_>)| {
            Some((likeness(&call, other)?, std::cmp::Reverse(position)))
        };
        let shares_text = |program| likeness(&call, program) >= Some(SHARED_TEXT);
        let best = open.iter().enumerate().filter_map(alike).max();
        let Some((likeness, std::cmp::Reverse(position))) = best else {
            continue;
        };
        // A further command of a program belongs to that program, not to whichever call is still open.
        if likeness >= SHARED_TEXT || !programs.iter().any(shares_text) {
            pairs.insert(call.place, open.remove(position).place);
        }
    }
    pairs
}

/// The calls whose input is the text of a program.
fn programs(wire: &Events) -> Vec<KnownCall<'_>> {
    let mut calls = known_calls(wire);
    calls.retain(|call| call.input.is_string());
    calls
}

/// Further calls of the agent within one on the wire: newer models of Codex write programs that run several commands. For
/// the model that is one call.
fn inner_calls(
    own: &Events,
    wire: &Events,
    pairs: &HashMap<usize, usize>,
) -> HashMap<usize, usize> {
    let programs = programs(wire);
    let open = known_calls(own)
        .into_iter()
        .filter(|call| !pairs.contains_key(&call.place));
    let inner = open.filter_map(|call| {
        let alike = programs
            .iter()
            .filter_map(|program| Some((likeness(&call, program)?, program.place)));
        Some((call.place, alike.max_by_key(|(likeness, _)| *likeness)?.1))
    });
    inner.collect()
}

/// The least likeness of calls whose inputs share a text.
const SHARED_TEXT: u8 = 2;

/// The likeness of a call of the agent to one on the wire. `None` where it cannot be the same.
fn likeness(own: &KnownCall<'_>, wire: &KnownCall<'_>) -> Option<u8> {
    let is_before = |one: Option<i64>, other: Option<i64>| {
        one.zip(other)
            .is_some_and(|(one, other)| one + SLACK < other)
    };
    if is_before(own.start, wire.start) || is_before(wire.end, own.start) {
        return None;
    }
    let is_same_name = own.name == wire.name;
    match share_text(own.input, wire.input) {
        true => Some(SHARED_TEXT + u8::from(is_same_name)),
        false => Some(u8::from(is_same_name)),
    }
}

/// True when a text in one input is part of one in the other. Agents wrap and quote commands.
fn share_text(one: &Value, other: &Value) -> bool {
    let (one, other) = (texts(one), texts(other));
    one.iter().any(|a| {
        other
            .iter()
            .any(|b| a.contains(b.as_str()) || b.contains(a.as_str()))
    })
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => {
            let is_quote = |letter: &char| ['\'', '"', '\\'].contains(letter);
            let plain: String = text.chars().filter(|letter| !is_quote(letter)).collect();
            // The shell around a command is the agent's.
            let plain = match plain.split_once(" -lc ") {
                Some((shell, command)) if !shell.contains(' ') => command.to_owned(),
                _ => plain,
            };
            (plain.len() > 2).then_some(plain).into_iter().collect()
        }
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(map) => map.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// One call of the two accounts of it.
fn joined_call(own: &TraceEvent, wire: &TraceEvent, has_inner_failure: bool) -> TraceEvent {
    let (
        TraceEvent::ToolCall {
            name: own_name,
            input: own_input,
            output: own_output,
            success: own_success,
            error: own_error,
            ..
        },
        TraceEvent::ToolCall {
            name,
            input,
            output,
            success,
            error,
            ..
        },
    ) = (own, wire)
    else {
        return wire.clone();
    };
    let has_failed = *own_success == Some(false) || *success == Some(false) || has_inner_failure;
    let (context, duration_ms) = joined_place(own, wire);
    let better = |own: &Value, seen: &Value| match says_nothing(own) {
        true => seen.clone(),
        false => own.clone(),
    };
    TraceEvent::ToolCall {
        name: match NO_NAMES.contains(&own_name.as_str()) {
            true => name.clone(),
            false => own_name.clone(),
        },
        input: better(own_input, input),
        output: better(own_output, output),
        duration_ms,
        success: match has_failed {
            true => Some(false),
            false => own_success.or(*success),
        },
        error: own_error.clone().or_else(|| error.clone()),
        context: Some(Box::new(context)),
    }
}

/// The start and duration of a call: as the agent measured them, else at most from the end of the answer that asks for
/// it until the agent or the wire shows its result.
fn joined_place(own: &TraceEvent, wire: &TraceEvent) -> (EventPlace, Option<Millis>) {
    let duration = |event: &TraceEvent| match event {
        TraceEvent::ToolCall { duration_ms, .. } => *duration_ms,
        _ => None,
    };
    let own_place = own.place().cloned().unwrap_or_default();
    let seen = wire.place().cloned().unwrap_or_default();
    let is_measured = duration(own).is_some() && !own_place.duration_is_bound;
    let start = seen.timestamp.as_ref().and_then(Timestamp::unix_ms);
    let until_reported = own_place.ended_ms.zip(start).map(|(end, start)| {
        // Times are cut to whole milliseconds.
        Millis::from(end.saturating_sub(start).saturating_add(1).max(0) as u64)
    });
    let bound = match (until_reported, duration(wire)) {
        (Some(own), Some(wire)) if own.value() < wire.value() => Some(own),
        (own, wire) => wire.or(own),
    };
    let place = EventPlace {
        agent_id: seen.agent_id.clone().or(own_place.agent_id.clone()),
        parent_event_id: seen
            .parent_event_id
            .clone()
            .or(own_place.parent_event_id.clone()),
        call_id: seen.call_id.clone().or(own_place.call_id.clone()),
        call_ref: seen.call_ref.clone(),
        ..EventPlace::default()
    };
    match is_measured {
        true => {
            let timestamp = own_place.timestamp.or(seen.timestamp);
            (EventPlace { timestamp, ..place }, duration(own))
        }
        false => {
            let place = EventPlace {
                timestamp: seen.timestamp.or(own_place.timestamp),
                duration_is_bound: bound.is_some(),
                ..place
            };
            (place, bound)
        }
    }
}

/// Nothing, or only a title where the input should be.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(map) => map.keys().all(|key| key == "title"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn events(events: Value) -> Events {
        serde_json::from_value(events).unwrap()
    }

    fn at(second: u32) -> String {
        format!("2026-01-01T00:00:{second:02}.000Z")
    }

    fn shown(events: &Events) -> Value {
        let shown = |event: &Arc<TraceEvent>| {
            let mut event = serde_json::to_value(&**event).unwrap();
            event
                .as_object_mut()
                .unwrap()
                .retain(|_, value| !value.is_null());
            event
        };
        events.iter().map(shown).collect()
    }

    #[test]
    fn calls_are_joined_by_id_and_each_side_adds_what_it_knows() {
        let own = events(json!([
            {"type": "turn_boundary", "turnNumber": 0, "timestamp": at(0)},
            {"type": "text_output", "content": "Looking."},
            {"type": "tool_call", "name": "execute", "input": {"title": "ls"}, "output": "", "success": true, "callId": "a"},
            {"type": "text_output", "content": "Only the agent says so."},
        ]));
        let wire = events(json!([
            {"type": "turn_boundary", "turnNumber": 0, "timestamp": at(1)},
            {"type": "text_output", "content": "Looking.", "callRef": "call-1", "timestamp": at(1)},
            {"type": "tool_call", "name": "shell", "input": {"command": "ls"}, "output": "a.rs", "durationMs": 2000,
             "durationIsBound": true, "callId": "a", "callRef": "call-1", "timestamp": at(2)},
            {"type": "tool_call", "name": "nonsense", "input": {}, "output": "no such tool", "success": false,
             "error": "no such tool", "callId": "b", "callRef": "call-1", "timestamp": at(2)},
        ]));
        let expected = json!([
            {"type": "text_output", "content": "Only the agent says so."},
            {"type": "turn_boundary", "turnNumber": 0, "timestamp": at(1)},
            {"type": "text_output", "content": "Looking.", "callRef": "call-1", "timestamp": at(1)},
            {"type": "tool_call", "name": "shell", "input": {"command": "ls"}, "output": "a.rs", "durationMs": 2000,
             "durationIsBound": true, "success": true, "callId": "a", "callRef": "call-1", "timestamp": at(2)},
            {"type": "tool_call", "name": "nonsense", "input": {}, "output": "no such tool", "success": false,
             "error": "no such tool", "callId": "b", "callRef": "call-1", "timestamp": at(2)},
        ]);
        let joined = joined(own, wire);
        let mut found: Vec<Value> = shown(&joined).as_array().unwrap().clone();
        // A text without a time follows the event before it, which is the last event of the wire.
        found.rotate_right(1);
        assert_eq!(Value::Array(found), expected);
    }

    #[test]
    fn calls_without_common_ids_are_joined_by_input_then_order() {
        let own = events(json!([
            {"type": "tool_call", "name": "command_execution", "input": {"command": "bash -lc 'echo \"two\"'"}, "output": "two",
             "success": false, "callId": "item_1", "timestamp": at(3)},
            {"type": "tool_call", "name": "command_execution", "input": {"command": "bash -lc 'echo one'"}, "output": "one",
             "success": true, "callId": "item_2", "timestamp": at(3)},
        ]));
        let wire = events(json!([
            {"type": "tool_call", "name": "exec_command", "input": {"cmd": "echo one"}, "output": null, "callId": "x", "callRef": "call-1", "timestamp": at(2)},
            {"type": "tool_call", "name": "exec_command", "input": {"cmd": "echo \"two\""}, "output": null, "callId": "y", "callRef": "call-1", "timestamp": at(2)},
            {"type": "tool_call", "name": "exec_command", "input": {"cmd": "echo later"}, "output": null, "callId": "z", "callRef": "call-2", "timestamp": at(9)},
        ]));
        let joined = joined(own, wire);
        let found: Vec<(Value, Value)> = shown(&joined)
            .as_array()
            .unwrap()
            .iter()
            .map(|call| (call["callId"].clone(), call["success"].clone()))
            .collect();
        let expected = [
            (json!("x"), json!(true)),
            (json!("y"), json!(false)),
            (json!("z"), Value::Null),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn commands_of_one_program_are_one_call_which_fails_with_any_of_them() {
        let command = |id: &str, command: &str, success: bool, second| {
            json!({"type": "tool_call", "name": "command_execution", "input": {"command": format!("/bin/bash -lc '{command}'")},
                "output": command, "success": success, "callId": id, "timestamp": at(second)})
        };
        let own = events(json!([
            command("item_0", "echo one", true, 5),
            command("item_1", "echo two", false, 5),
        ]));
        let program = |id: &str, text: &str, second| {
            json!({"type": "tool_call", "name": "exec", "input": text, "output": "out", "durationMs": 1000, "durationIsBound": true,
                "success": true, "callId": id, "callRef": "call-1", "timestamp": at(second)})
        };
        let both = "await tools.exec_command({\"cmd\": \"echo one\"}); await tools.exec_command({cmd: 'echo two'})";
        let wire = events(json!([program("x", "text(1)", 4), program("y", both, 5),]));
        let joined = joined(own, wire);
        let found: Vec<(Value, Value, Value)> = shown(&joined)
            .as_array()
            .unwrap()
            .iter()
            .map(|call| {
                (
                    call["callId"].clone(),
                    call["name"].clone(),
                    call["success"].clone(),
                )
            })
            .collect();
        let expected = [
            (json!("x"), json!("exec"), json!(true)),
            (json!("y"), json!("command_execution"), json!(false)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_call_that_only_the_agent_tells_is_kept() {
        let own = events(
            json!([{"type": "tool_call", "name": "bash", "input": "ls", "output": "", "timestamp": at(1)}]),
        );
        assert_eq!(joined(own, Vec::new()).len(), 1);
    }
}
