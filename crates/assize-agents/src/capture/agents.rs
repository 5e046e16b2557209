//! Attributes each call to the main agent, or to a subagent that a tool call started.
//!
//! Some agents name the subagent in a header. Otherwise the conversation of a subagent opens with the text that an earlier
//! answer passed to a tool. Everything else, also a conversation that was made shorter, is the main agent's.

use super::session::Call;
use assize_llm::{Content, RequestedTool};
use http::HeaderMap;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
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

/// A header that only requests of subagents have, and the one that names the subagent: of Claude Code, Codex and opencode.
const SUBAGENTS: [(&str, &str); 3] = [
    ("x-claude-code-agent-id", "x-claude-code-agent-id"),
    ("x-codex-parent-thread-id", "thread-id"),
    ("x-parent-session-id", "x-session-affinity"),
];

/// The identity of a conversation: a hash of its opening, or of the subagent's name.
pub(super) type Thread = u64;

/// Conversations of a session, by when they began.
#[derive(Debug, Clone, Default)]
pub(super) struct Threads(HashMap<Thread, Opening>);

#[derive(Debug, Clone)]
struct Opening {
    text: String,
    first_call: u64,
}

/// The conversation of a subagent that names itself, else the one with this opening.
pub(super) fn thread_of(opening: &str, subagent: Option<&str>) -> Thread {
    let mut hasher = DefaultHasher::new();
    match subagent {
        Some(_) => subagent.hash(&mut hasher),
        None => opening.hash(&mut hasher),
    }
    hasher.finish()
}

/// The subagent that sends a request, if a header names it.
pub(super) fn subagent_in(headers: &HeaderMap) -> Option<String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let named = SUBAGENTS
        .iter()
        .find_map(|&(mark, name)| header(mark).and(header(name)));
    named.map(str::to_owned)
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
        let is_main = |call: &&Call| has_tools(call) && call.subagent.is_none();
        let Some(main) = calls.values().find(is_main).map(|call| call.thread) else {
            return HashMap::new();
        };
        let mut started: Vec<(Thread, &Opening)> = self
            .0
            .iter()
            .map(|(thread, opening)| (*thread, opening))
            .filter(|(thread, _)| *thread != main)
            .collect();
        started.sort_by_key(|(_, opening)| opening.first_call);
        let mut agents: HashMap<Thread, String> = HashMap::new();
        // Several subagents may have the same task.
        let mut taken = HashSet::new();
        for (thread, opening) in started {
            let own_name = calls
                .get(&opening.first_call)
                .and_then(|call| call.subagent.clone());
            let is_named = own_name.is_some();
            let starter = self.starter(thread, opening, is_named, &taken, calls);
            if let Some(agent) = starter.or(own_name) {
                taken.insert(agent.clone());
                agents.insert(thread, agent);
            }
        }
        let named = calls.values().filter(has_tools).filter_map(|call| {
            let agent = agents.get(&call.thread)?;
            Some((call.number, agent.clone()))
        });
        named.collect()
    }

    /// The tool call that started a conversation. A subagent that names itself is known to be one, so that a short or repeated task is
    /// evidence enough.
    fn starter(
        &self,
        thread: Thread,
        opening: &Opening,
        is_named: bool,
        taken: &HashSet<String>,
        calls: &BTreeMap<u64, Call>,
    ) -> Option<String> {
        let earlier = calls
            .values()
            .filter(|call| call.number < opening.first_call && call.thread != thread);
        earlier.rev().find_map(|call| {
            let asked = self.0.get(&call.thread).map_or("", |opening| &opening.text);
            let is_task = |task: &str| {
                let may_be_chance = task.len() < SHORTEST_TASK || asked.contains(task);
                !task.is_empty() && opening.text.contains(task) && (is_named || !may_be_chance)
            };
            let starts = |(part, tool): (usize, &RequestedTool)| {
                let is_starter = tasks(&tool.arguments, false)
                    .iter()
                    .any(|task| is_task(task));
                is_starter.then(|| agent_id(call, part, tool))
            };
            let mut starters = tools(call).filter_map(starts);
            starters.find(|agent| !is_named || !taken.contains(agent))
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
