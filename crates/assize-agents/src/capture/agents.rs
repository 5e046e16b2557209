//! Whose call it is: the main agent's, or that of a subagent that a tool call started.
//!
//! The conversation of a subagent opens with the text that an earlier answer handed to a tool. Everything else, also a
//! conversation that was made shorter, is the main agent's.

use super::session::Call;
use assize_llm::{Content, RequestedTool};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// More of what a conversation opens with is not kept.
const MOST_KEPT: usize = 64 << 10;

/// A shorter text may be in a conversation by chance.
const SHORTEST_TASK: usize = 8;

/// Arguments under these names are what a subagent is to do.
const TASKS: [&str; 10] = [
    "prompt",
    "message",
    "task",
    "objective",
    "instructions",
    "instruction",
    "query",
    "request",
    "goal",
    "text",
];

/// A conversation, by what it opens with.
pub(super) type Thread = u64;

/// Conversations of a session, by when they began.
#[derive(Debug, Clone, Default)]
pub(super) struct Threads(HashMap<Thread, Opening>);

#[derive(Debug, Clone)]
struct Opening {
    text: String,
    first_call: u64,
}

/// Names the conversation that opens so.
pub(super) fn thread_of(opening: &str) -> Thread {
    let mut hasher = DefaultHasher::new();
    opening.hash(&mut hasher);
    hasher.finish()
}

impl Threads {
    /// Takes a call that belongs to a conversation.
    pub(super) fn take(&mut self, call: &Call, opening: &str) {
        let known = self.0.entry(call.thread).or_insert_with(|| Opening {
            text: opening[..opening.floor_char_boundary(MOST_KEPT)].to_owned(),
            first_call: call.number,
        });
        known.first_call = known.first_call.min(call.number);
    }

    /// The subagents behind calls, by the calls' numbers.
    pub(super) fn agents(&self, calls: &BTreeMap<u64, Call>) -> HashMap<u64, String> {
        let has_tools = |call: &&Call| call.tools > 0;
        let Some(main) = calls.values().find(has_tools).map(|call| call.thread) else {
            return HashMap::new();
        };
        let started = self.0.iter().filter(|(thread, _)| **thread != main);
        let agents: HashMap<Thread, String> = started
            .filter_map(|(thread, opening)| Some((*thread, self.starter(*thread, opening, calls)?)))
            .collect();
        let named = calls.values().filter(has_tools).filter_map(|call| {
            let agent = agents.get(&call.thread)?;
            Some((call.number, agent.clone()))
        });
        named.collect()
    }

    /// The tool call that started a conversation.
    fn starter(
        &self,
        thread: Thread,
        opening: &Opening,
        calls: &BTreeMap<u64, Call>,
    ) -> Option<String> {
        let earlier = calls
            .values()
            .filter(|call| call.number < opening.first_call && call.thread != thread);
        earlier.rev().find_map(|call| {
            let asked = self.0.get(&call.thread).map_or("", |opening| &opening.text);
            let is_task = |task: &str| {
                task.len() >= SHORTEST_TASK && opening.text.contains(task) && !asked.contains(task)
            };
            let mut tools = tools(call);
            tools.find_map(|(part, tool)| {
                let is_starter = tasks(&tool.arguments, false)
                    .iter()
                    .any(|task| is_task(task));
                is_starter.then(|| agent_id(call, part, tool))
            })
        })
    }
}

/// The id of the tool call, or its place where the API has no ids.
pub(super) fn agent_id(call: &Call, part: usize, tool: &RequestedTool) -> String {
    let place = || format!("call-{}.{part}", call.number);
    tool.id.clone().unwrap_or_else(place)
}

fn tools(call: &Call) -> impl Iterator<Item = (usize, &RequestedTool)> {
    let parts = call.answer.iter().flat_map(|answer| &answer.parts);
    parts
        .enumerate()
        .filter_map(|(place, part)| match &part.content {
            Content::Tool(tool) => Some((place, tool)),
            _ => None,
        })
}

/// Texts in arguments that may be what a subagent is to do.
fn tasks(arguments: &Value, is_named: bool) -> Vec<&str> {
    match arguments {
        Value::String(text) if is_named => vec![text.trim()],
        Value::Array(values) => values
            .iter()
            .flat_map(|value| tasks(value, is_named))
            .collect(),
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| tasks(value, TASKS.contains(&key.as_str())))
            .collect(),
        _ => Vec::new(),
    }
}
