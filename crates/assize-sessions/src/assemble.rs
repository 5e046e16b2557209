//! The parts of a session, each from a file of its own, put together to one trace.

use crate::dedupe::Ownership;
use crate::digest::Digest;
use crate::draft::{AgentPlace, Call, Draft, Item, Subagent, Tool, What};
use crate::hidden::HiddenCalls;
use crate::session::{Flaws, Prompt, Session, SubagentNote};
use assize_contracts::{
    CostSource, EventContext, EventPlace, Millis, ModelCall, SCHEMA_VERSION, SessionTrace,
    Timestamp, TokenSum, TraceEvent, UserTurn,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A draft, and its place among the digests that say what counts.
pub(crate) struct Part {
    pub(crate) draft: Draft,
    pub(crate) place: u32,
}

/// Puts the parts of one session together. `digests` are those of all sessions, as `ownership` knows them.
pub(crate) fn assemble(
    id: &str,
    parts: Vec<Part>,
    hidden: &[&HiddenCalls],
    digests: &[&Digest],
    ownership: &Ownership,
) -> Option<Session> {
    if let [Part { draft, .. }] = &parts[..]
        && let Some(trace) = &draft.whole
    {
        return Some(Session {
            trace: (**trace).clone(),
            origin: draft.origin.clone(),
            prompts: Vec::new(),
            subagents: draft.agents.iter().cloned().map(note_of).collect(),
            compactions: Vec::new(),
            flaws: draft.flaws,
        });
    }
    let mut whole = Whole::default();
    for part in parts {
        whole.add(id, part, digests, ownership);
    }
    for calls in hidden {
        whole.add_hidden(calls);
    }
    whole.finish(id)
}

/// The time a tool took, and true where it is only an upper bound.
pub(crate) fn tool_duration(tool: &Tool, at: Option<i64>) -> Option<(f64, bool)> {
    match (tool.duration_ms, at, tool.ended) {
        (Some(measured), ..) => Some((measured, false)),
        // It includes the time that a permission was waited for.
        (None, Some(begin), Some(end)) => Some((end.saturating_sub(begin).max(0) as f64, true)),
        _ => None,
    }
}

#[derive(Default)]
struct Whole {
    origin: Option<crate::session::Origin>,
    agents: Vec<Subagent>,
    calls: Vec<ModelCall>,
    /// The agent of a call, and the time of its answer's first line.
    call_agents: Vec<(Option<String>, Option<i64>)>,
    items: Vec<Placed>,
    flaws: Flaws,
}

/// An event with its place in the order of all.
struct Placed {
    at: i64,
    item: Item,
    agent: Option<String>,
    name: String,
    /// Into `Whole::calls`.
    call: Option<usize>,
}

impl Whole {
    fn add(&mut self, id: &str, part: Part, digests: &[&Digest], ownership: &Ownership) {
        let Part { draft, place } = part;
        let Draft {
            id: own_id,
            origin,
            names,
            agents,
            calls,
            items,
            flaws,
            ..
        } = draft;
        self.flaws = self.flaws.plus(&flaws);
        let is_child = own_id != id;
        let agent_id = |agent: AgentPlace| match agent {
            0 if is_child => Some(own_id.clone()),
            0 => None,
            place => agents.get(place as usize - 1).map(|agent| agent.id.clone()),
        };
        let mut places = vec![None; calls.len()];
        for (number, call) in (0_u32..).zip(&calls) {
            let Some(spot) = ownership.usage_of(place, number) else {
                continue;
            };
            places[number as usize] = Some(self.calls.len());
            let mut made = model_call(
                call,
                names.text(call.model),
                agent_id(call.agent),
                self.calls.len(),
            );
            if (spot.part, spot.call) != (place, number)
                && let Some(digest) = digests.get(spot.part as usize)
                && let Some(better) = digest.calls.get(spot.call as usize)
            {
                made.tokens = better.counts.tokens();
                made.cache_write_1h = better.cache_write_1h;
                made.model = digest.name(better.model).to_owned();
            }
            self.call_agents.push((made.agent_id.clone(), call.first));
            self.calls.push(made);
        }
        let mut last = i64::MIN;
        for item in items {
            let call = call_of(&item.what);
            let call = match call {
                Some(place) => match places.get(place as usize).copied().flatten() {
                    Some(place) => Some(place),
                    // A text of an answer that is another session's.
                    None if !matches!(item.what, What::Tool(_)) => continue,
                    None => None,
                },
                None => None,
            };
            if !ownership.has_item(place, item.identity) {
                continue;
            }
            last = item.at.unwrap_or(last).max(last);
            let name = match &item.what {
                What::Tool(tool) => names.text(tool.name).to_owned(),
                _ => String::new(),
            };
            self.items.push(Placed {
                at: last,
                agent: agent_id(item.agent),
                name,
                call,
                item,
            });
        }
        self.note_agents(is_child.then_some(own_id.as_str()), agents);
        self.note_origin(origin, is_child);
    }

    /// Calls that only the agent's own sums show.
    fn add_hidden(&mut self, hidden: &HiddenCalls) {
        let at = hidden.at;
        self.call_agents.push((None, Some(at)));
        self.calls.push(ModelCall {
            id: format!("call-{}", self.calls.len() + 1),
            model: hidden.model.clone(),
            side: true,
            started_at: Some(Timestamp::from_unix_ms(at)),
            tokens: hidden.counts.tokens(),
            ..ModelCall::default()
        });
    }

    fn note_agents(&mut self, child: Option<&str>, agents: Vec<Subagent>) {
        let child = child.map(|id| Subagent {
            id: id.to_owned(),
            ..Subagent::default()
        });
        for agent in child.into_iter().chain(agents) {
            match self.agents.iter_mut().find(|known| known.id == agent.id) {
                Some(known) => {
                    known.kind = known.kind.take().or(agent.kind);
                    known.started_by = known.started_by.take().or(agent.started_by);
                }
                None => self.agents.push(agent),
            }
        }
    }

    fn note_origin(&mut self, origin: crate::session::Origin, is_child: bool) {
        match &mut self.origin {
            Some(known) => {
                known.files.extend(origin.files.clone());
                if known.cwd.is_none() {
                    known.cwd = origin.cwd;
                }
            }
            None if is_child => {
                self.origin = Some(crate::session::Origin {
                    continued_from: None,
                    ..origin
                });
            }
            None => self.origin = Some(origin),
        }
    }

    fn finish(mut self, id: &str) -> Option<Session> {
        if self.items.is_empty() && self.calls.is_empty() {
            return None;
        }
        // Stable: events of one moment stay as their file has them.
        self.items.sort_by_key(|placed| placed.at);
        self.estimate_request_times();
        let mut story = Story {
            calls: &self.calls,
            events: Vec::with_capacity(self.items.len()),
            turns: 0,
            boundary_of: vec![false; self.calls.len()],
            prompts: Vec::new(),
            compactions: Vec::new(),
            last_text: String::new(),
        };
        for placed in std::mem::take(&mut self.items) {
            story.add(placed);
        }
        let Story {
            events,
            prompts,
            compactions,
            last_text,
            ..
        } = story;
        let tokens = TokenSum::of_calls(&self.calls).tokens;
        let user_turns = user_turns(&prompts, &events);
        let mut trace = SessionTrace::from_events(id.to_owned(), events, tokens);
        trace.schema_version = Some(SCHEMA_VERSION);
        trace.model_calls = self.calls;
        trace.user_turns = user_turns;
        trace.remember_final_text(&last_text);
        Some(Session {
            trace,
            origin: self.origin.unwrap_or_default(),
            prompts,
            subagents: self.agents.into_iter().map(note_of).collect(),
            compactions,
            flaws: self.flaws,
        })
    }

    /// Logs have the time of an answer, not of its request. A request follows the message or the result before it, so that one's time is
    /// taken where the log has none.
    fn estimate_request_times(&mut self) {
        let mut waiting: BTreeMap<Option<String>, i64> = BTreeMap::new();
        let mut seen = vec![false; self.calls.len()];
        for placed in &self.items {
            if let Some(place) = placed.call
                && !std::mem::replace(&mut seen[place], true)
            {
                let call = &mut self.calls[place];
                if let Some(since) = waiting
                    .get(&placed.agent)
                    .filter(|_| call.started_at.is_none())
                {
                    call.started_at = Some(Timestamp::from_unix_ms(*since));
                    if let (None, Some(end)) = (call.duration_ms, self.call_agents[place].1) {
                        call.duration_ms =
                            Some(Millis::from(end.saturating_sub(*since).max(0) as u64));
                    }
                }
            }
            let moment = match &placed.item.what {
                What::Prompt(_) => placed.item.at,
                What::Tool(tool) => tool.ended,
                _ => None,
            };
            if let Some(moment) = moment {
                let known = waiting.entry(placed.agent.clone()).or_insert(moment);
                *known = moment.max(*known);
            }
        }
    }
}

fn call_of(what: &What) -> Option<u32> {
    match what {
        What::Reasoning(_, call) | What::Text(_, call) => *call,
        What::Tool(tool) => tool.call,
        _ => None,
    }
}

fn note_of(agent: Subagent) -> SubagentNote {
    SubagentNote {
        id: agent.id,
        kind: agent.kind,
        started_by: agent.started_by,
    }
}

fn model_call(call: &Call, model: &str, agent_id: Option<String>, number: usize) -> ModelCall {
    let started = call.started.map(Timestamp::from_unix_ms);
    ModelCall {
        id: call
            .id
            .clone()
            .unwrap_or_else(|| format!("call-{}", number + 1)),
        model: model.to_owned(),
        api: call.api.map(str::to_owned),
        side: call.is_side,
        agent_id,
        started_at: started,
        ttft_ms: call.ttft_ms.and_then(Millis::new),
        duration_ms: call.duration_ms.and_then(Millis::new),
        tokens: call.tokens,
        cache_write_1h: call.cache_write_1h,
        service_tier: call.service_tier.clone(),
        cost_usd: call.reported_cost,
        cost_source: call.reported_cost.map(|_| CostSource::Reported),
        stop_reason: call.stop_reason.clone(),
        status: call.status,
        ..ModelCall::default()
    }
}

struct Story<'a> {
    calls: &'a [ModelCall],
    events: Vec<Arc<TraceEvent>>,
    turns: u64,
    boundary_of: Vec<bool>,
    prompts: Vec<Prompt>,
    compactions: Vec<usize>,
    last_text: String,
}

impl Story<'_> {
    fn add(&mut self, placed: Placed) {
        let is_main = placed.agent.is_none();
        self.mark_turn(&placed);
        let context = |call_id: Option<String>, is_bound: bool| -> EventContext {
            let call = placed.call.and_then(|place| self.calls.get(place));
            let place = EventPlace {
                timestamp: placed.item.at.map(Timestamp::from_unix_ms),
                agent_id: placed.agent.clone(),
                call_id,
                call_ref: call.map(|call| call.id.clone()),
                duration_is_bound: is_bound,
                ..EventPlace::default()
            };
            (place != EventPlace::default()).then(|| Box::new(place))
        };
        let at_ms = placed.item.at;
        let event = match placed.item.what {
            What::Prompt(text) => {
                if is_main {
                    self.prompts.push(Prompt { text, at_ms });
                }
                return;
            }
            What::Compaction => {
                self.compactions.push(self.events.len());
                return;
            }
            What::Reasoning(content, _) => TraceEvent::Reasoning {
                content,
                duration_ms: None,
                token_count: None,
                context: context(None, false),
            },
            What::Text(content, _) => {
                if is_main {
                    self.last_text.clone_from(&content);
                }
                TraceEvent::TextOutput {
                    content,
                    token_count: None,
                    context: context(None, false),
                }
            }
            What::Error {
                message,
                is_recoverable,
            } => TraceEvent::Error {
                message,
                recoverable: is_recoverable,
                context: context(None, false),
            },
            What::Tool(tool) => {
                let duration = tool_duration(&tool, placed.item.at);
                let context = context(
                    tool.call_id.clone(),
                    duration.is_some_and(|(_, bound)| bound),
                );
                let Tool {
                    input,
                    output,
                    success,
                    error,
                    has_result,
                    ..
                } = *tool;
                let unanswered = || "the log has no result of this call".to_owned();
                TraceEvent::ToolCall {
                    name: placed.name,
                    input,
                    output,
                    duration_ms: duration.and_then(|(ms, _)| Millis::new(ms)),
                    success: if has_result {
                        success
                    } else {
                        success.or(Some(false))
                    },
                    error: error.or_else(|| (!has_result && success.is_none()).then(unanswered)),
                    context,
                }
            }
        };
        self.events.push(Arc::new(event));
    }

    /// A turn is an answer of the main agent's model.
    fn mark_turn(&mut self, placed: &Placed) {
        let Some(place) = placed.call.filter(|_| placed.agent.is_none()) else {
            return;
        };
        if std::mem::replace(&mut self.boundary_of[place], true) {
            return;
        }
        if let Some(at) = placed.item.at {
            let boundary = TraceEvent::TurnBoundary {
                turn_number: self.turns,
                timestamp: Timestamp::from_unix_ms(at),
            };
            self.events.push(Arc::new(boundary));
            self.turns += 1;
        }
    }
}

/// The agent works on a message until the last event before the next one.
fn user_turns(prompts: &[Prompt], events: &[Arc<TraceEvent>]) -> Vec<UserTurn> {
    let times: Vec<i64> = events
        .iter()
        .filter_map(|event| event.timestamp()?.unix_ms())
        .collect();
    let starts: Vec<i64> = prompts.iter().filter_map(|prompt| prompt.at_ms).collect();
    let turn = |(number, start): (usize, &i64)| {
        let next = starts.get(number + 1).copied().unwrap_or(i64::MAX);
        let from = times.partition_point(|time| time < start);
        let to = times.partition_point(|time| *time < next);
        let end = times.get(from..to).and_then(|within| within.last());
        UserTurn {
            started_at: Timestamp::from_unix_ms(*start),
            duration_ms: end.map(|end| Millis::from(end.saturating_sub(*start).max(0) as u64)),
        }
    };
    starts.iter().enumerate().map(turn).collect()
}
