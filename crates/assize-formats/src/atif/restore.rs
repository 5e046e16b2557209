//! Reads back what Assize keeps under `extra.assize`: the same trace as was written.

use super::document::{Source, Step, Trajectory, texts};
use super::write::SEPARATOR;
use crate::session::UserMessage;
use assize_contracts::{
    ModelCall, SessionTrace, Timestamp, TokenBreakdown, TraceEvent, TraceSummary, UserTurn,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Facts about the whole session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Facts {
    schema_version: Option<u32>,
    summary: TraceSummary,
    answer: Option<String>,
    #[serde(default)]
    user_turns: Vec<UserTurn>,
    #[serde(default)]
    simulated: bool,
}

/// Events and calls by their place in the trace.
#[derive(Default)]
struct Parts {
    events: BTreeMap<u64, TraceEvent>,
    calls: BTreeMap<u64, ModelCall>,
    messages: Vec<UserMessage>,
}

/// None for documents of others, and where the document was changed so that its parts do not fit.
pub(super) fn restore(
    root: &Trajectory,
    embedded: &[Trajectory],
) -> Option<(SessionTrace, Vec<UserMessage>)> {
    let own = root.extra.get("assize")?;
    let facts = Facts::deserialize(own.get("trace")?).ok()?;
    let mut parts = Parts::default();
    for entry in own
        .get("events")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        parts.add_event(entry, entry.clone())?;
    }
    for step in std::iter::once(root)
        .chain(embedded)
        .flat_map(|each| &each.steps)
    {
        parts.add_step(&serde_json::from_value(step.clone()).ok()?)?;
    }
    let events: Vec<Arc<TraceEvent>> = parts.events.into_values().map(Arc::new).collect();
    let id = root.session_id.clone()?;
    let mut trace = SessionTrace::from_events(id, events, TokenBreakdown::default());
    trace.schema_version = facts.schema_version;
    trace.summary = facts.summary;
    trace.answer = facts.answer;
    trace.user_turns = facts.user_turns;
    trace.simulated = facts.simulated;
    trace.model_calls = parts.calls.into_values().collect();
    Some((trace, parts.messages))
}

impl Parts {
    /// None where the parts of a step do not fit its entries.
    fn add_step(&mut self, step: &Step) -> Option<()> {
        if step.source == Source::User {
            self.messages.push(UserMessage {
                text: texts(&step.message).join("\n\n"),
                at: step.timestamp.clone().map(Timestamp::from),
            });
            return Some(());
        }
        let Some(own) = step.extra.get("assize") else {
            // The step of a session in which nothing happened.
            return (step.source == Source::System).then_some(());
        };
        if let Some(call) = own.get("modelCall") {
            let index = own.get("modelCallIndex")?.as_u64()?;
            self.calls.insert(index, ModelCall::deserialize(call).ok()?);
        }
        let mut texts = match &step.message {
            // An empty text is an event, too.
            Value::String(text) => vec![text.as_str()],
            parts => texts(parts),
        }
        .into_iter();
        let mut thoughts = step.reasoning_content.as_deref().unwrap_or_default();
        let mut calls = step.tool_calls.iter().flatten();
        for entry in own.get("events").and_then(Value::as_array)? {
            let mut event = entry.clone();
            match entry.get("type")?.as_str()? {
                "reasoning" => {
                    let length = usize::try_from(entry.get("length")?.as_u64()?).ok()?;
                    let end = thoughts
                        .char_indices()
                        .nth(length)
                        .map_or(thoughts.len(), |(at, _)| at);
                    event["content"] = thoughts.get(..end)?.into();
                    let rest = thoughts.get(end..)?;
                    thoughts = rest.strip_prefix(SEPARATOR).unwrap_or(rest);
                }
                "text_output" => event["content"] = texts.next()?.into(),
                "error" => event["message"] = texts.next()?.into(),
                "tool_call" => {
                    let call = calls.next()?;
                    event["name"] = call.function_name.clone().into();
                    event["input"] = match entry.get("isWrapped") {
                        Some(_) => call.arguments.get("value")?.clone(),
                        None => call.arguments.clone(),
                    };
                    event["output"] = output(step, call.tool_call_id.as_deref()?, entry)?;
                }
                _ => {}
            }
            self.add_event(entry, event)?;
        }
        Some(())
    }

    fn add_event(&mut self, entry: &Value, event: Value) -> Option<()> {
        let index = entry.get("index")?.as_u64()?;
        let event = serde_json::from_value(event).ok()?;
        self.events.insert(index, event).is_none().then_some(())
    }
}

fn output(step: &Step, id: &str, entry: &Value) -> Option<Value> {
    let mut results = step.observation.iter().flat_map(|seen| &seen.results);
    let result = results.find(|result| result.source_call_id.as_deref() == Some(id));
    let content = result.and_then(|result| result.content.as_str());
    let has = |key: &str| entry.get(key).is_some();
    match content {
        // An error may take the place of an output.
        _ if has("outputIsNull") => Some(Value::Null),
        Some(text) if has("outputIsJson") => serde_json::from_str(text).ok(),
        content => Some(content?.into()),
    }
}
