//! The known times of a session: turns, model calls, tool calls and errors on one clock.

use crate::session::Session;
use assize_contracts::{Millis, ModelCall, Timestamp, TraceEvent};
use std::collections::{BTreeMap, HashMap};

/// The session has no time of any event.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the session `{session}` has no times")]
pub struct NoTimes {
    /// Its id.
    pub session: String,
}

/// Times are microseconds since 1970.
pub(crate) type Micros = i64;

/// Everything with an extent in time.
pub(crate) struct Timeline<'s> {
    pub(crate) start: Micros,
    pub(crate) end: Micros,
    /// Turns of the main agent. They follow each other without overlap.
    pub(crate) turns: Vec<TurnSpan>,
    /// In the order of the trace.
    pub(crate) calls: Vec<CallSpan<'s>>,
    pub(crate) tools: Vec<ToolSpan<'s>>,
    pub(crate) errors: Vec<ErrorMark<'s>>,
    /// Subagents in the order of their first appearance.
    pub(crate) subagents: Vec<SubagentSpan<'s>>,
}

pub(crate) struct TurnSpan {
    /// From 1.
    pub(crate) number: usize,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
}

pub(crate) struct CallSpan<'s> {
    pub(crate) call: &'s ModelCall,
    pub(crate) index: usize,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
    /// Place among the turns.
    pub(crate) turn: Option<usize>,
    pub(crate) agent: Option<&'s str>,
    pub(crate) is_estimated: bool,
}

pub(crate) struct ToolSpan<'s> {
    pub(crate) name: &'s str,
    pub(crate) event: &'s TraceEvent,
    pub(crate) index: usize,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
    pub(crate) turn: Option<usize>,
    pub(crate) agent: Option<&'s str>,
    pub(crate) is_estimated: bool,
}

impl ToolSpan<'_> {
    pub(crate) fn call_id(&self) -> Option<&str> {
        self.event.place()?.call_id.as_deref()
    }
}

pub(crate) struct ErrorMark<'s> {
    pub(crate) message: &'s str,
    pub(crate) at: Micros,
    pub(crate) agent: Option<&'s str>,
}

pub(crate) struct SubagentSpan<'s> {
    pub(crate) id: &'s str,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
    /// The tool call that started it: its place among the tools.
    pub(crate) starter: Option<usize>,
}

impl<'s> Timeline<'s> {
    /// An error where nothing in the session has a time.
    pub(crate) fn of(session: &'s Session) -> Result<Self, NoTimes> {
        let start = first_time(session).ok_or_else(|| NoTimes {
            session: session.trace.session_id.clone(),
        })?;
        let mut walk = Walk::new(session, start);
        walk.events();
        walk.calls();
        Ok(walk.finish())
    }

    /// The tool call that started a subagent.
    pub(crate) fn starter_of(&self, agent: &str) -> Option<&ToolSpan<'s>> {
        let subagent = self.subagents.iter().find(|each| each.id == agent)?;
        self.tools.get(subagent.starter?)
    }
}

pub(crate) fn micros(timestamp: &Timestamp) -> Option<Micros> {
    timestamp.unix_ms()?.checked_mul(1000)
}

fn length(duration: Option<Millis>) -> Micros {
    let micros = duration.map_or(0.0, |duration| duration.value() * 1000.0);
    // Far beyond any session, and far from the end of the range.
    micros.clamp(0.0, 1e15) as Micros
}

fn first_time(session: &Session) -> Option<Micros> {
    let trace = &session.trace;
    let events = trace
        .events
        .iter()
        .filter_map(|event| micros(event.timestamp()?));
    let calls = trace
        .model_calls
        .iter()
        .filter_map(|call| micros(call.started_at.as_ref()?));
    let turns = trace
        .user_turns
        .iter()
        .filter_map(|turn| micros(&turn.started_at));
    let known = events.chain(calls).chain(turns).min();
    known.or_else(|| micros(&session.trial.as_ref()?.row.started_at))
}

struct Walk<'s> {
    session: &'s Session,
    timeline: Timeline<'s>,
    /// Turn and first time of the events of each call.
    seen: HashMap<&'s str, Seen>,
    /// Beginnings of turns.
    boundaries: Vec<Micros>,
}

#[derive(Clone, Copy)]
struct Seen {
    turn: Option<usize>,
    at: Option<Micros>,
}

impl<'s> Walk<'s> {
    fn new(session: &'s Session, start: Micros) -> Self {
        Self {
            session,
            timeline: Timeline {
                start,
                end: start,
                turns: Vec::new(),
                calls: Vec::new(),
                tools: Vec::new(),
                errors: Vec::new(),
                subagents: Vec::new(),
            },
            seen: HashMap::new(),
            boundaries: Vec::new(),
        }
    }

    fn events(&mut self) {
        let mut cursor = self.timeline.start;
        for (index, event) in self.session.trace.events.iter().enumerate() {
            let event = &**event;
            let known = event.timestamp().and_then(micros);
            let at = known.unwrap_or(cursor);
            let agent = event.place().and_then(|place| place.agent_id.as_deref());
            let turn = self
                .boundaries
                .len()
                .checked_sub(1)
                .filter(|_| agent.is_none());
            let mut end = at;
            match event {
                TraceEvent::TurnBoundary { .. } => self.boundaries.push(at),
                TraceEvent::ToolCall {
                    name, duration_ms, ..
                } => {
                    end = at.saturating_add(length(*duration_ms));
                    self.timeline.tools.push(ToolSpan {
                        name,
                        event,
                        index,
                        start: at,
                        end,
                        turn,
                        agent,
                        is_estimated: known.is_none(),
                    });
                }
                TraceEvent::Error { message, .. } => {
                    self.timeline.errors.push(ErrorMark { message, at, agent });
                }
                TraceEvent::Reasoning { .. } | TraceEvent::TextOutput { .. } => {}
            }
            if let Some(call) = event.place().and_then(|place| place.call_ref.as_deref()) {
                self.seen.entry(call).or_insert(Seen { turn, at: known });
            }
            if let Some(agent) = agent {
                self.extend_subagent(agent, at, end);
            }
            self.timeline.end = self.timeline.end.max(end);
            cursor = cursor.max(end);
        }
    }

    fn calls(&mut self) {
        for (index, call) in self.session.trace.model_calls.iter().enumerate() {
            let seen = self.seen.get(call.id.as_str()).copied();
            let took = length(call.duration_ms);
            let asked = call.started_at.as_ref().and_then(micros);
            // The content of an answer is seen when it has arrived.
            let answered = || Some(seen?.at?.saturating_sub(took));
            let known = asked.or_else(answered);
            let start = known
                .unwrap_or(self.timeline.start)
                .max(self.timeline.start);
            let end = start.saturating_add(took);
            let agent = call.agent_id.as_deref();
            let by_time = || {
                self.boundaries
                    .iter()
                    .rposition(|boundary| *boundary <= start)
            };
            let turn = match (agent, seen) {
                (Some(_), _) => None,
                (None, Some(seen)) => seen.turn.or_else(by_time),
                (None, None) => by_time(),
            };
            if let Some(agent) = agent {
                self.extend_subagent(agent, start, end);
            }
            self.timeline.end = self.timeline.end.max(end);
            self.timeline.calls.push(CallSpan {
                call,
                index,
                start,
                end,
                turn,
                agent,
                is_estimated: known.is_none(),
            });
        }
    }

    fn extend_subagent(&mut self, id: &'s str, start: Micros, end: Micros) {
        let subagents = &mut self.timeline.subagents;
        match subagents.iter_mut().find(|each| each.id == id) {
            Some(known) => {
                known.start = known.start.min(start);
                known.end = known.end.max(end);
            }
            None => subagents.push(SubagentSpan {
                id,
                start,
                end,
                starter: None,
            }),
        }
    }

    fn finish(mut self) -> Timeline<'s> {
        let trace = &self.session.trace;
        let last_turn = trace.user_turns.iter().filter_map(|turn| {
            let end = micros(&turn.started_at)?.saturating_add(length(turn.duration_ms));
            turn.duration_ms.map(|_| end)
        });
        self.timeline.end = last_turn.fold(self.timeline.end, Micros::max);
        let starters: BTreeMap<&str, usize> = self
            .timeline
            .tools
            .iter()
            .enumerate()
            .filter_map(|(place, tool)| Some((tool.event.place()?.call_id.as_deref()?, place)))
            .collect();
        for subagent in &mut self.timeline.subagents {
            subagent.starter = starters.get(subagent.id).copied();
        }
        self.timeline.turns = self.turns();
        self.timeline
    }

    /// A turn begins with its first model call and ends where the next one begins.
    fn turns(&self) -> Vec<TurnSpan> {
        let mut starts = self.boundaries.clone();
        for call in &self.timeline.calls {
            if let Some(turn) = call.turn.filter(|_| !call.call.side) {
                let previous = turn
                    .checked_sub(1)
                    .map_or(Micros::MIN, |turn| self.boundaries[turn]);
                starts[turn] = starts[turn].min(call.start.max(previous));
            }
        }
        // Logs may have their turns out of order.
        for turn in 1..starts.len() {
            starts[turn] = starts[turn].max(starts[turn - 1]);
        }
        let ends = starts.iter().skip(1).copied().chain([self.timeline.end]);
        let span = |(place, (start, end)): (usize, (&Micros, Micros))| TurnSpan {
            number: place + 1,
            start: *start,
            end: end.max(*start),
        };
        starts.iter().zip(ends).enumerate().map(span).collect()
    }
}
