//! The events of a session.

use crate::{CostSource, Millis, Timestamp, TokenBreakdown, ToolCallRecord, Usd};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;

/// The full record of one session, as `exportSession` returns it.
///
/// Events are shared between `events` and `turns`, which hold the same ones grouped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionTrace {
    /// Version of the record's form. Absent in foreign ones, and where a provider hands it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    /// The provider's id of the session.
    pub session_id: String,
    /// Everything that happened, in order.
    pub events: Vec<Arc<TraceEvent>>,
    /// The same events grouped by turn, without the boundaries.
    pub turns: Vec<Turn>,
    /// Totals over the session.
    pub summary: TraceSummary,
    /// One entry per request to a model. Token usage lives here, once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_calls: Vec<ModelCall>,
    /// The agent's final text. Absent where it is the last text among the events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// User messages, with the time the agent worked on each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_turns: Vec<UserTurn>,
    /// Skills that were looked for on the wire. Empty where nothing was captured or no skill is on trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillSighting>,
    /// The session was made up by the `simulated` provider.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// The agent's account and the wire's were joined: the events hold every tool call. Not stored.
    #[serde(skip)]
    pub is_joined: bool,
}

/// One user message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserTurn {
    /// Time of sending. A program that is started for the message starts then.
    pub started_at: Timestamp,
    /// Time until the agent ended its turn or was stopped.
    #[serde(default)]
    pub duration_ms: Option<Millis>,
}

impl SessionTrace {
    /// Groups events into turns at their boundaries and totals them.
    pub fn from_events(
        session_id: String,
        events: Vec<impl Into<Arc<TraceEvent>>>,
        tokens: TokenBreakdown,
    ) -> Self {
        let events: Vec<Arc<TraceEvent>> = events.into_iter().map(Into::into).collect();
        let turns = group_into_turns(&events);
        let summary = TraceSummary {
            total_turns: (!turns.is_empty()).then_some(turns.len() as u64),
            total_tool_calls: tool_calls(&events),
            total_tokens: tokens,
            total_duration: duration_between(
                events.iter().find_map(|event| event.timestamp()),
                events.iter().rev().find_map(|event| event.timestamp()),
            ),
        };
        Self {
            session_id,
            events,
            turns,
            summary,
            ..Self::default()
        }
    }

    /// The agent's final text; empty when there is none.
    pub fn final_text(&self) -> &str {
        self.answer.as_deref().unwrap_or_else(|| self.last_text())
    }

    /// Keeps the final text, where the events do not hold it.
    pub fn remember_final_text(&mut self, text: &str) {
        self.answer = (self.last_text() != text).then(|| text.to_owned());
    }

    fn last_text(&self) -> &str {
        let text = |event: &'_ Arc<TraceEvent>| matches!(**event, TraceEvent::TextOutput { .. });
        match self
            .events
            .iter()
            .rev()
            .find(|event| text(event))
            .map(|event| &**event)
        {
            Some(TraceEvent::TextOutput { content, .. }) => content,
            _ => "",
        }
    }

    /// Every tool call, as a provider would report it.
    pub fn tool_call_records(&self) -> Vec<ToolCallRecord> {
        let record = |event: &Arc<TraceEvent>| event.tool_call_record();
        self.events.iter().filter_map(record).collect()
    }
}

/// A turn goes from one boundary to the next. Events before the first boundary belong to no turn.
fn group_into_turns(events: &[Arc<TraceEvent>]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for group in events.chunk_by(|_, next| !matches!(**next, TraceEvent::TurnBoundary { .. })) {
        let Some((first, others)) = group.split_first() else {
            continue;
        };
        let TraceEvent::TurnBoundary {
            turn_number,
            timestamp,
        } = &**first
        else {
            continue;
        };
        if let Some(previous) = turns.last_mut() {
            previous.end_timestamp = timestamp.clone();
        }
        let last = others.iter().rev().find_map(|event| event.timestamp());
        turns.push(Turn {
            number: *turn_number,
            events: others.to_vec(),
            start_timestamp: timestamp.clone(),
            end_timestamp: last.unwrap_or(timestamp).clone(),
            duration_ms: None,
        });
    }
    for turn in &mut turns {
        turn.duration_ms = duration_between(Some(&turn.start_timestamp), Some(&turn.end_timestamp));
    }
    turns
}

fn tool_calls(events: &[Arc<TraceEvent>]) -> u64 {
    let is_tool_call = |event: &&Arc<TraceEvent>| matches!(***event, TraceEvent::ToolCall { .. });
    events.iter().filter(is_tool_call).count() as u64
}

fn duration_between(start: Option<&Timestamp>, end: Option<&Timestamp>) -> Option<Millis> {
    let (start, end) = (start?.unix_ms()?, end?.unix_ms()?);
    Some(Millis::from(end.saturating_sub(start).max(0) as u64))
}

/// A numbered group of consecutive events: what the agent did between two boundaries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Counted as the provider counts.
    pub number: u64,
    /// Its events.
    pub events: Vec<Arc<TraceEvent>>,
    /// Start time.
    pub start_timestamp: Timestamp,
    /// End time.
    pub end_timestamp: Timestamp,
    /// Duration.
    #[serde(default)]
    pub duration_ms: Option<Millis>,
}

/// Totals over a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TraceSummary {
    /// Number of turns: model answers of the main agent. Absent where the trace marks none.
    #[serde(default)]
    pub total_turns: Option<u64>,
    /// Number of tool calls.
    pub total_tool_calls: u64,
    /// Tokens of all model calls.
    pub total_tokens: TokenBreakdown,
    /// Wall time from the first to the last event; parallel tools overlap in it.
    #[serde(default)]
    pub total_duration: Option<Millis>,
}

/// One request to a model, as seen on the wire or reported by the agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelCall {
    /// Unique within the trace; events refer to it as `callRef`.
    pub id: String,
    /// The model that answered.
    pub model: String,
    /// The API spoken, e.g. `anthropic-messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// A call beside the task itself: a title, a summary.
    #[serde(default)]
    pub side: bool,
    /// The subagent that made the call. Absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Time of the request.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    /// Time to the first token.
    #[serde(default)]
    pub ttft_ms: Option<Millis>,
    /// Time to the end of the answer.
    #[serde(default)]
    pub duration_ms: Option<Millis>,
    /// Tokens of this call.
    #[serde(default)]
    pub tokens: TokenBreakdown,
    /// The known part of the tokens, where the call is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_least: Option<TokenBreakdown>,
    /// The part of the cache writes that is kept for an hour and priced higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// The class of service it was billed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// Cost of this call.
    #[serde(default)]
    pub cost_usd: Option<Usd>,
    /// Source of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// The API's own word for the reason the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// HTTP status of the final answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Number of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The end of an exchange without a whole answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<CallEnding>,
    /// The capture proxy changed the request to ask for usage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked_for_usage: bool,
}

impl ModelCall {
    /// True when the API refused the request or could not be reached: nothing was generated, and nothing is billed.
    pub fn is_refused(&self) -> bool {
        self.status.is_some_and(|status| status >= 400) || self.ending == Some(CallEnding::NoAnswer)
    }

    /// True for a call that was seen on the wire, and not only claimed by the agent.
    pub fn is_seen(&self) -> bool {
        self.api.is_some()
    }

    /// The tokens of the call that are known in any case.
    pub fn known_tokens(&self) -> TokenBreakdown {
        self.tokens_at_least.unwrap_or(self.tokens)
    }
}

/// A skill as requests to models show it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SkillSighting {
    /// The skill's name.
    pub name: String,
    /// Its description was in a request.
    pub offered: bool,
    /// The conversations whose requests contained its text, by the first such request of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<SkillLoad>,
}

/// The first request of a conversation that contained the text of a skill.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SkillLoad {
    /// The model call of that request.
    pub call_ref: String,
    /// The subagent whose conversation it is. Absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Time of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// Model answers of the main agent before it.
    pub turns_before: u64,
    /// Tokens of all model calls before it. Absent where one of them is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// The skill's share of the request's input tokens, by its share of the request's bytes: an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_tokens: Option<u64>,
}

/// The end of an exchange with a model that gave no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallEnding {
    /// The answer broke off.
    Cut,
    /// The agent hung up.
    ClientGone,
    /// The service did not answer.
    NoAnswer,
}

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", !try_from)
)]
#[serde(try_from = "WireEvent")]
pub enum TraceEvent {
    /// Internal reasoning of the agent.
    Reasoning {
        /// The thoughts.
        content: String,
        /// Duration.
        duration_ms: Option<Millis>,
        /// Tokens used.
        token_count: Option<u64>,
        /// Place of the event in the session.
        #[cfg_attr(feature = "schema", schemars(flatten))]
        context: EventContext,
    },
    /// A tool invocation with its result.
    ToolCall {
        /// The tool's name.
        name: String,
        /// Arguments.
        input: Value,
        /// Result.
        output: Value,
        /// Duration.
        duration_ms: Option<Millis>,
        /// `false` for a non-zero exit, a result marked as an error, a rejected or unknown tool. Absent when the agent
        /// reports none of it.
        success: Option<bool>,
        /// The error.
        error: Option<String>,
        /// Place of the event in the session.
        #[cfg_attr(feature = "schema", schemars(flatten))]
        context: EventContext,
    },
    /// Text shown to the user.
    TextOutput {
        /// The text.
        content: String,
        /// Tokens used.
        token_count: Option<u64>,
        /// Place of the event in the session.
        #[cfg_attr(feature = "schema", schemars(flatten))]
        context: EventContext,
    },
    /// The start of a turn.
    TurnBoundary {
        /// Counted as the provider counts.
        turn_number: u64,
        /// Start time.
        timestamp: Timestamp,
    },
    /// An error that the agent or its program reported.
    Error {
        /// The error.
        message: String,
        /// True if the session continued.
        recoverable: bool,
        /// Place of the event in the session.
        #[cfg_attr(feature = "schema", schemars(flatten))]
        context: EventContext,
    },
}

/// Place of an event: optional, boxed because most events have none of it.
pub type EventContext = Option<Box<EventPlace>>;

/// Time and agent of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct EventPlace {
    /// Start time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// The subagent that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The event that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_event_id: Option<String>,
    /// The tool call's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The model call it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_ref: Option<String>,
    /// The duration is an upper bound: only what happened before and after was seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub duration_is_bound: bool,
    /// End by the agent's account, in milliseconds since 1970. Not stored: joining two accounts needs it.
    #[serde(skip)]
    pub ended_ms: Option<i64>,
}

impl TraceEvent {
    /// Start time, where known.
    pub fn timestamp(&self) -> Option<&Timestamp> {
        match self {
            Self::TurnBoundary { timestamp, .. } => Some(timestamp),
            _ => self.place()?.timestamp.as_ref(),
        }
    }

    /// Place of the event, where known.
    pub fn place(&self) -> Option<&EventPlace> {
        match self {
            Self::TurnBoundary { .. } => None,
            Self::Reasoning { context, .. }
            | Self::ToolCall { context, .. }
            | Self::TextOutput { context, .. }
            | Self::Error { context, .. } => context.as_deref(),
        }
    }

    /// A tool call as a provider would report it; a tool is its own category.
    pub fn tool_call_record(&self) -> Option<ToolCallRecord> {
        let Self::ToolCall {
            name,
            duration_ms,
            success,
            error,
            ..
        } = self
        else {
            return None;
        };
        Some(ToolCallRecord {
            name: name.clone(),
            category: name.clone(),
            success: *success,
            duration_ms: *duration_ms,
            error: error.clone(),
            call_ref: self.place().and_then(|place| place.call_ref.clone()),
        })
    }

    /// True where the duration is only an upper bound.
    pub fn duration_is_bound(&self) -> bool {
        self.place().is_some_and(|place| place.duration_is_bound)
    }
}

// Written by hand: the derived forms of a tagged enum buffer every event, which is too slow for traces that run to
// gigabytes.
impl Serialize for TraceEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Reasoning {
                content,
                duration_ms,
                token_count,
                context,
            } => {
                map.serialize_entry("type", "reasoning")?;
                map.serialize_entry("content", content)?;
                map.serialize_entry("durationMs", duration_ms)?;
                map.serialize_entry("tokenCount", token_count)?;
                serialize_context(&mut map, context)?;
            }
            Self::ToolCall {
                name,
                input,
                output,
                duration_ms,
                success,
                error,
                context,
            } => {
                map.serialize_entry("type", "tool_call")?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("input", input)?;
                map.serialize_entry("output", output)?;
                map.serialize_entry("durationMs", duration_ms)?;
                map.serialize_entry("success", success)?;
                if let Some(error) = error {
                    map.serialize_entry("error", error)?;
                }
                serialize_context(&mut map, context)?;
            }
            Self::TextOutput {
                content,
                token_count,
                context,
            } => {
                map.serialize_entry("type", "text_output")?;
                map.serialize_entry("content", content)?;
                map.serialize_entry("tokenCount", token_count)?;
                serialize_context(&mut map, context)?;
            }
            Self::TurnBoundary {
                turn_number,
                timestamp,
            } => {
                map.serialize_entry("type", "turn_boundary")?;
                map.serialize_entry("turnNumber", turn_number)?;
                map.serialize_entry("timestamp", timestamp)?;
            }
            Self::Error {
                message,
                recoverable,
                context,
            } => {
                map.serialize_entry("type", "error")?;
                map.serialize_entry("message", message)?;
                map.serialize_entry("recoverable", recoverable)?;
                serialize_context(&mut map, context)?;
            }
        }
        map.end()
    }
}

fn serialize_context<M: SerializeMap>(map: &mut M, context: &EventContext) -> Result<(), M::Error> {
    let Some(place) = context else { return Ok(()) };
    if let Some(timestamp) = &place.timestamp {
        map.serialize_entry("timestamp", timestamp)?;
    }
    let named = [
        ("agentId", &place.agent_id),
        ("parentEventId", &place.parent_event_id),
        ("callId", &place.call_id),
        ("callRef", &place.call_ref),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            map.serialize_entry(name, value)?;
        }
    }
    if place.duration_is_bound {
        map.serialize_entry("durationIsBound", &true)?;
    }
    Ok(())
}

/// Every field any event may have, so that reading needs no look-ahead for `type`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent {
    r#type: EventType,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    duration_ms: Option<Millis>,
    #[serde(default)]
    token_count: Option<u64>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    success: Option<bool>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    turn_number: Option<u64>,
    #[serde(default)]
    timestamp: Option<Timestamp>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    recoverable: Option<bool>,
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    parent_event_id: Option<String>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    call_ref: Option<String>,
    #[serde(default)]
    duration_is_bound: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum EventType {
    Reasoning,
    ToolCall,
    TextOutput,
    TurnBoundary,
    Error,
}

impl TryFrom<WireEvent> for TraceEvent {
    type Error = String;

    fn try_from(mut wire: WireEvent) -> Result<Self, String> {
        let missing = |kind: &str, field: &str| format!("a `{kind}` event needs `{field}`");
        let event = match wire.r#type {
            EventType::Reasoning => Self::Reasoning {
                content: wire
                    .content
                    .take()
                    .ok_or_else(|| missing("reasoning", "content"))?,
                duration_ms: wire.duration_ms,
                token_count: wire.token_count,
                context: wire.into_context(),
            },
            EventType::ToolCall => Self::ToolCall {
                name: wire
                    .name
                    .take()
                    .ok_or_else(|| missing("tool_call", "name"))?,
                input: wire.input.take(),
                output: wire.output.take(),
                duration_ms: wire.duration_ms,
                success: wire.success,
                error: wire.error.take(),
                context: wire.into_context(),
            },
            EventType::TextOutput => Self::TextOutput {
                content: wire
                    .content
                    .take()
                    .ok_or_else(|| missing("text_output", "content"))?,
                token_count: wire.token_count,
                context: wire.into_context(),
            },
            EventType::TurnBoundary => Self::TurnBoundary {
                turn_number: wire
                    .turn_number
                    .ok_or_else(|| missing("turn_boundary", "turnNumber"))?,
                timestamp: wire
                    .timestamp
                    .ok_or_else(|| missing("turn_boundary", "timestamp"))?,
            },
            EventType::Error => Self::Error {
                message: wire
                    .message
                    .take()
                    .ok_or_else(|| missing("error", "message"))?,
                recoverable: wire
                    .recoverable
                    .ok_or_else(|| missing("error", "recoverable"))?,
                context: wire.into_context(),
            },
        };
        Ok(event)
    }
}

impl WireEvent {
    fn into_context(self) -> EventContext {
        let place = EventPlace {
            timestamp: self.timestamp,
            agent_id: self.agent_id,
            parent_event_id: self.parent_event_id,
            call_id: self.call_id,
            call_ref: self.call_ref,
            duration_is_bound: self.duration_is_bound,
            ended_ms: None,
        };
        (place != EventPlace::default()).then(|| Box::new(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(event: Value) {
        let parsed: TraceEvent = serde_json::from_value(event.clone()).unwrap();
        assert_eq!(serde_json::to_value(&parsed).unwrap(), event);
    }

    #[test]
    fn every_kind_of_event_comes_back_as_it_was() {
        check(json!({"type": "reasoning", "content": "hm", "durationMs": 0, "tokenCount": 10}));
        check(
            json!({"type": "tool_call", "name": "bash", "input": {"command": "ls"}, "output": "a",
            "durationMs": null, "success": false, "error": "exit 1", "callId": "c1",
            "timestamp": "2026-03-03T17:03:45.126Z", "agentId": "sub"}),
        );
        check(
            json!({"type": "text_output", "content": "done", "tokenCount": null, "callRef": "m1"}),
        );
        check(
            json!({"type": "turn_boundary", "turnNumber": 0, "timestamp": "2026-03-03T17:03:45.126Z"}),
        );
        check(json!({"type": "error", "message": "429", "recoverable": true}));
    }

    #[test]
    fn an_event_without_what_it_needs_says_what_is_missing() {
        let error = serde_json::from_value::<TraceEvent>(json!({"type": "tool_call"})).unwrap_err();
        assert_eq!(error.to_string(), "a `tool_call` event needs `name`");
    }

    #[test]
    fn turns_hold_what_lies_between_boundaries() {
        let boundary = |n, second: u8| TraceEvent::TurnBoundary {
            turn_number: n,
            timestamp: Timestamp::from(format!("2026-01-01T00:00:0{second}.000Z")),
        };
        let text = || TraceEvent::TextOutput {
            content: "hi".into(),
            token_count: None,
            context: None,
        };
        let trace = SessionTrace::from_events(
            "s".into(),
            [boundary(0, 0), text(), text(), boundary(1, 3), text()]
                .map(Arc::new)
                .to_vec(),
            TokenBreakdown::default(),
        );
        let sizes: Vec<usize> = trace.turns.iter().map(|turn| turn.events.len()).collect();
        assert_eq!(sizes, [2, 1]);
        assert_eq!(trace.turns[0].duration_ms, Some(Millis::from(3000)));
        assert_eq!(trace.summary.total_duration, Some(Millis::from(3000)));
    }
}
