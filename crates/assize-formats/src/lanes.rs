//! A timeline as lanes: in each of them slices follow or contain each other, as viewers demand.

use crate::timeline::{Micros, Timeline};
use serde_json::{Value, json};

pub(crate) struct Lane {
    pub(crate) name: String,
    /// By start; a slice comes before those that it contains.
    pub(crate) slices: Vec<Slice>,
    /// The moments of errors.
    pub(crate) errors: Vec<(Micros, String)>,
}

#[derive(Clone)]
pub(crate) struct Slice {
    pub(crate) name: String,
    /// `turn`, `llm` or `tool`.
    pub(crate) category: &'static str,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
    pub(crate) facts: Value,
}

/// The lanes of a session, the main agent's first.
pub(crate) fn lanes(timeline: &Timeline<'_>) -> Vec<Lane> {
    let agents = std::iter::once(None).chain(timeline.subagents.iter().map(|each| Some(each.id)));
    let mut lanes = Vec::new();
    for agent in agents {
        let name = match agent {
            None => "agent".to_owned(),
            Some(id) => match timeline.starter_of(id) {
                Some(tool) => format!("subagent {id} ({})", tool.name),
                None => format!("subagent {id}"),
            },
        };
        let prefix = agent.map_or(String::new(), |id| format!("{id}: "));
        lanes.extend(agent_lanes(timeline, agent, name, &prefix));
    }
    lanes
}

fn agent_lanes(
    timeline: &Timeline<'_>,
    agent: Option<&str>,
    name: String,
    prefix: &str,
) -> Vec<Lane> {
    let calls = timeline.calls.iter().filter(|call| call.agent == agent);
    let (main, side): (Vec<_>, Vec<_>) = calls.partition(|call| !call.call.side);
    let slice = |call: &&crate::timeline::CallSpan<'_>| Slice {
        name: format!("chat {}", call.call.model),
        category: "llm",
        start: call.start,
        end: call.end,
        facts: facts_of_call(call.call),
    };
    // Calls of one agent that overlap cannot share a lane.
    let mut packed = pack(main.iter().map(slice).collect()).into_iter();
    let mut own = packed.next().unwrap_or_default();
    if agent.is_none() {
        own.extend(timeline.turns.iter().map(|turn| Slice {
            name: format!("turn {}", turn.number),
            category: "turn",
            start: turn.start,
            end: turn.end,
            facts: json!({}),
        }));
    }
    let tools = timeline
        .tools
        .iter()
        .filter(|tool| tool.agent == agent)
        .map(|tool| Slice {
            name: tool.name.to_owned(),
            category: "tool",
            start: tool.start,
            end: tool.end,
            facts: facts_of_tool(tool.event),
        });
    let errors = timeline.errors.iter().filter(|error| error.agent == agent);
    let mut lanes = vec![Lane {
        name,
        slices: nested(own),
        errors: errors
            .map(|error| (error.at, error.message.to_owned()))
            .collect(),
    }];
    let more = packed.chain(pack(side.iter().map(slice).collect()));
    lanes.extend(numbered(&format!("{prefix}model calls beside"), more));
    lanes.extend(numbered(
        &format!("{prefix}tools"),
        pack(tools.collect()).into_iter(),
    ));
    lanes
}

fn numbered(name: &str, packed: impl Iterator<Item = Vec<Slice>>) -> Vec<Lane> {
    let lane = |(number, slices): (usize, Vec<Slice>)| Lane {
        name: match number {
            0 => name.to_owned(),
            number => format!("{name} {}", number + 1),
        },
        slices,
        errors: Vec::new(),
    };
    packed.enumerate().map(lane).collect()
}

/// Each slice goes to the first lane that is free when it begins.
fn pack(mut slices: Vec<Slice>) -> Vec<Vec<Slice>> {
    slices.sort_by_key(|slice| (slice.start, slice.end));
    let mut lanes: Vec<Vec<Slice>> = Vec::new();
    for slice in slices {
        let is_free =
            |lane: &&mut Vec<Slice>| lane.last().is_none_or(|last| last.end <= slice.start);
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(slice),
            None => lanes.push(vec![slice]),
        }
    }
    lanes
}

/// Cuts what outlives the slice around it.
fn nested(mut slices: Vec<Slice>) -> Vec<Slice> {
    let is_turn = |slice: &Slice| slice.category == "turn";
    slices.sort_by_key(|slice| (slice.start, !is_turn(slice), -slice.end));
    let mut open: Vec<Micros> = Vec::new();
    for slice in &mut slices {
        open.retain(|end| *end > slice.start);
        if let Some(end) = open.last() {
            slice.end = slice.end.min(*end);
        }
        if slice.end > slice.start {
            open.push(slice.end);
        }
    }
    slices
}

/// Counts as they are added up elsewhere: everything included. Unknown ones are left out.
fn facts_of_call(call: &assize_contracts::ModelCall) -> Value {
    let tokens = &call.tokens;
    let cached = [tokens.cache_read, tokens.cache_write]
        .into_iter()
        .flatten();
    let prompt = tokens
        .input
        .map(|input| cached.fold(input, u64::saturating_add));
    let completion = tokens
        .output
        .map(|output| output.saturating_add(tokens.reasoning.unwrap_or(0)));
    let facts = json!({
        "prompt": prompt, "completion": completion, "cacheRead": tokens.cache_read, "cacheWrite": tokens.cache_write,
        "reasoning": tokens.reasoning, "costUsd": call.cost_usd, "stopReason": call.stop_reason, "status": call.status,
        "retries": call.retries, "ttftMs": call.ttft_ms,
    });
    known(facts)
}

fn facts_of_tool(event: &assize_contracts::TraceEvent) -> Value {
    let assize_contracts::TraceEvent::ToolCall { success, .. } = event else {
        return json!({});
    };
    let id = event.place().and_then(|place| place.call_id.as_deref());
    let is_bound = event.duration_is_bound().then_some(true);
    known(json!({ "success": success, "callId": id, "durationIsBound": is_bound }))
}

fn known(facts: Value) -> Value {
    let Value::Object(mut facts) = facts else {
        return facts;
    };
    facts.retain(|_, value| !value.is_null());
    facts.into()
}
