//! An ATIF document as a session.

use super::document::{Metrics, Source, Step, ToolCall, Trajectory, media, texts};
use super::{AtifError, FAMILY, NEWEST_MINOR, restore};
use crate::session::{Session, UserMessage};
use assize_contracts::{
    CostSource, EventContext, EventPlace, ModelCall, SessionTrace, Timestamp, TokenBreakdown,
    TraceEvent, Usd, UserTurn,
};
use serde_json::Value;
use std::sync::Arc;

/// A session that was read from a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    pub session: Session,
    /// Omissions and corrections, in words.
    pub notes: Vec<String>,
}

/// Reads a document. Missing values stay unknown.
pub fn read(document: Value) -> Result<Imported, AtifError> {
    let root = parse(document)?;
    let mut notes = Vec::new();
    check_version(&root, &mut notes)?;
    let agent = root.agent.as_ref();
    let mut session = Session {
        agent_name: agent.map(|agent| agent.name.clone()).unwrap_or_default(),
        agent_version: agent
            .and_then(|agent| agent.version.clone())
            .filter(|version| version != "unknown"),
        model: agent.and_then(|agent| agent.model_name.clone()),
        ..Session::default()
    };
    let embedded = embedded(&root, &mut notes);
    if let Some((trace, messages)) = restore::restore(&root, &embedded) {
        session.trace = trace;
        session.user_messages = messages;
        return Ok(Imported { session, notes });
    }
    let mut reader = Reader::new(session.model.clone());
    reader.read(&root, None);
    for (number, trajectory) in embedded.iter().enumerate() {
        let id = trajectory
            .trajectory_id
            .clone()
            .or_else(|| trajectory.session_id.clone());
        let id = id.unwrap_or_else(|| format!("subagent-{}", number + 1));
        reader.read(trajectory, Some(&id));
    }
    if root
        .continued_trajectory_ref
        .as_ref()
        .is_some_and(|next| !next.is_null())
    {
        notes.push("the session goes on in another file, which was not read".to_owned());
    }
    notes.append(&mut reader.notes.in_words());
    session.user_messages = std::mem::take(&mut reader.messages);
    session.trace = reader.into_trace(&root);
    Ok(Imported { session, notes })
}

fn parse(document: Value) -> Result<Trajectory, AtifError> {
    serde_json::from_value(document).map_err(|error| AtifError::Malformed(error.to_string()))
}

fn check_version(root: &Trajectory, notes: &mut Vec<String>) -> Result<(), AtifError> {
    let found = root.schema_version.clone().unwrap_or_default();
    let known = found
        .strip_prefix(FAMILY)
        .and_then(|version| version.split_once('.'));
    match known.and_then(|(major, minor)| Some((major, minor.parse::<u32>().ok()?))) {
        Some(("1", minor)) if minor <= NEWEST_MINOR => Ok(()),
        Some(("1", _)) => {
            notes.push(format!(
                "the version `{found}` is newer than this program; unknown parts were left out"
            ));
            Ok(())
        }
        _ => Err(AtifError::Version { found }),
    }
}

/// Embedded trajectories, also those of subagents' subagents.
fn embedded(root: &Trajectory, notes: &mut Vec<String>) -> Vec<Trajectory> {
    let mut found = Vec::new();
    let mut open: Vec<Value> = root.subagent_trajectories.clone().unwrap_or_default();
    open.reverse();
    while let Some(document) = open.pop() {
        match parse(document) {
            Ok(mut trajectory) => {
                open.extend(
                    trajectory
                        .subagent_trajectories
                        .take()
                        .into_iter()
                        .flatten()
                        .rev(),
                );
                found.push(trajectory);
            }
            Err(error) => notes.push(format!("a subagent was left out: {error}")),
        }
    }
    found
}

/// Counts of what was left out or corrected.
#[derive(Default)]
struct Notes {
    broken_steps: usize,
    copied_steps: usize,
    media: usize,
    clamped: usize,
    unclaimed_results: usize,
}

impl Notes {
    fn in_words(&self) -> Vec<String> {
        let counted = [
            (
                self.broken_steps,
                "steps could not be read and were left out",
            ),
            (
                self.copied_steps,
                "steps were copied from an earlier session and were left out",
            ),
            (self.media, "pictures or sounds were left out"),
            (
                self.clamped,
                "token counts were larger than the count that they are part of, and were cut to it",
            ),
            (
                self.unclaimed_results,
                "results name no call of their step and were left out",
            ),
        ];
        let present = counted.iter().filter(|(count, _)| *count > 0);
        present
            .map(|(count, words)| format!("{count} {words}"))
            .collect()
    }
}

struct Reader {
    events: Vec<Arc<TraceEvent>>,
    calls: Vec<ModelCall>,
    messages: Vec<UserMessage>,
    user_turns: Vec<UserTurn>,
    /// Answers of the main agent.
    answers: u64,
    model: Option<String>,
    notes: Notes,
}

impl Reader {
    fn new(model: Option<String>) -> Self {
        Self {
            events: Vec::new(),
            calls: Vec::new(),
            messages: Vec::new(),
            user_turns: Vec::new(),
            answers: 0,
            model,
            notes: Notes::default(),
        }
    }

    fn read(&mut self, trajectory: &Trajectory, agent: Option<&str>) {
        let own_model = trajectory
            .agent
            .as_ref()
            .and_then(|agent| agent.model_name.clone());
        for (number, step) in trajectory.steps.iter().enumerate() {
            let Ok(step) = serde_json::from_value::<Step>(step.clone()) else {
                self.notes.broken_steps += 1;
                continue;
            };
            if step.is_copied_context == Some(true) {
                self.notes.copied_steps += 1;
                continue;
            }
            self.notes.media += media(&step.message);
            match step.source {
                Source::User if agent.is_none() => self.user_step(&step),
                Source::Agent => {
                    let model = step
                        .model_name
                        .as_ref()
                        .or(own_model.as_ref())
                        .or(self.model.as_ref());
                    let model = model.cloned().unwrap_or_default();
                    self.agent_step(
                        &step,
                        &Place {
                            agent,
                            number: number + 1,
                        },
                        model,
                    );
                }
                Source::User | Source::System => {}
            }
        }
    }

    fn user_step(&mut self, step: &Step) {
        let at = step.timestamp.clone().map(Timestamp::from);
        if let Some(started_at) = at.clone() {
            self.user_turns.push(UserTurn {
                started_at,
                duration_ms: None,
            });
        }
        self.messages.push(UserMessage {
            text: texts(&step.message).join("\n\n"),
            at,
        });
    }

    fn agent_step(&mut self, step: &Step, place: &Place<'_>, model: String) {
        let at = step.timestamp.clone().map(Timestamp::from);
        let is_llm = step.llm_call_count != Some(0);
        if place.agent.is_none() && is_llm {
            if let Some(timestamp) = at.clone() {
                self.push(TraceEvent::TurnBoundary {
                    turn_number: self.answers,
                    timestamp,
                });
            }
            self.answers += 1;
        }
        let call_ref = is_llm.then(|| place.call_id());
        let context = |call_id: Option<&str>| -> EventContext {
            let place = EventPlace {
                timestamp: at.clone(),
                agent_id: place.agent.map(str::to_owned),
                parent_event_id: place.agent.map(str::to_owned),
                call_id: call_id.map(str::to_owned),
                call_ref: call_ref.clone(),
                ..EventPlace::default()
            };
            (place != EventPlace::default()).then(|| Box::new(place))
        };
        if let Some(thoughts) = step
            .reasoning_content
            .clone()
            .filter(|text| !text.is_empty())
        {
            self.push(TraceEvent::Reasoning {
                content: thoughts,
                duration_ms: None,
                token_count: None,
                context: context(None),
            });
        }
        for text in texts(&step.message) {
            self.push(TraceEvent::TextOutput {
                content: text.to_owned(),
                token_count: None,
                context: context(None),
            });
        }
        let tools = self.tool_calls(step, &context);
        self.events.extend(tools.into_iter().map(Arc::new));
        if let Some(id) = call_ref {
            let tokens = step
                .metrics
                .as_ref()
                .map(|metrics| self.tokens(metrics))
                .unwrap_or_default();
            let cost = step
                .metrics
                .as_ref()
                .and_then(|metrics| metrics.cost_usd)
                .and_then(Usd::new);
            self.calls.push(ModelCall {
                id,
                model,
                agent_id: place.agent.map(str::to_owned),
                tokens,
                cost_usd: cost,
                cost_source: cost.map(|_| CostSource::Reported),
                started_at: None,
                ..ModelCall::default()
            });
        }
    }

    fn tool_calls(
        &mut self,
        step: &Step,
        context: &dyn Fn(Option<&str>) -> EventContext,
    ) -> Vec<TraceEvent> {
        let calls = step.tool_calls.as_deref().unwrap_or_default();
        let results = step
            .observation
            .as_ref()
            .map(|seen| seen.results.as_slice())
            .unwrap_or_default();
        let claimed = |id: &str| {
            calls
                .iter()
                .any(|call| call.tool_call_id.as_deref() == Some(id))
        };
        let unclaimed = results
            .iter()
            .filter(|result| match &result.source_call_id {
                Some(id) => !claimed(id),
                None => calls.len() != 1,
            });
        self.notes.unclaimed_results += unclaimed.count();
        self.notes.media += results
            .iter()
            .map(|result| media(&result.content))
            .sum::<usize>();
        let event = |call: &ToolCall| {
            let id = call.tool_call_id.as_deref();
            let is_own = |source: Option<&str>| match source {
                Some(source) => Some(source) == id,
                None => calls.len() == 1,
            };
            let own: Vec<_> = results
                .iter()
                .filter(|result| is_own(result.source_call_id.as_deref()))
                .collect();
            let contents: Vec<&str> = own
                .iter()
                .flat_map(|result| texts(&result.content))
                .collect();
            let started: Option<String> = own
                .iter()
                .flat_map(|result| result.subagents())
                .next()
                .map(str::to_owned);
            let success = own
                .iter()
                .find_map(|result| success(&result.extra))
                .or_else(|| success(&call.extra));
            let output = match (own.is_empty(), contents.as_slice()) {
                (true, _) => Value::Null,
                (false, contents) => contents.join("\n").into(),
            };
            TraceEvent::ToolCall {
                name: call.function_name.clone(),
                input: call.arguments.clone(),
                error: (success == Some(false)).then(|| contents.join("\n")),
                output,
                duration_ms: call
                    .extra
                    .pointer("/assize/duration_ms")
                    .and_then(Value::as_u64)
                    .map(Into::into),
                success,
                // Events of a subagent name the call that started it.
                context: context(started.as_deref().or(id)),
            }
        };
        calls.iter().map(event).collect()
    }

    /// Disjoint counts. A part that is larger than its whole is cut to it.
    fn tokens(&mut self, metrics: &Metrics) -> TokenBreakdown {
        let named = |keys: &[&str]| {
            let extra = metrics.extra.as_ref()?;
            keys.iter().find_map(|key| extra.get(*key)?.as_u64())
        };
        let written = named(&[
            "cache_creation_input_tokens",
            "cache_write_input_tokens",
            "cache_write_tokens",
        ]);
        let reasoning = named(&[
            "reasoning_tokens",
            "reasoning_output_tokens",
            "thinking_tokens",
        ]);
        let mut part = |whole: u64, part: Option<u64>| {
            let clamped = part.map(|part| part.min(whole));
            self.notes.clamped += usize::from(clamped != part);
            clamped
        };
        let mut tokens = TokenBreakdown::default();
        if let Some(prompt) = metrics.prompt_tokens {
            tokens.cache_read = part(prompt, metrics.cached_tokens);
            let rest = prompt - tokens.cache_read.unwrap_or(0);
            tokens.cache_write = part(rest, written);
            tokens.input = Some(rest - tokens.cache_write.unwrap_or(0));
        }
        if let Some(completion) = metrics.completion_tokens {
            tokens.reasoning = part(completion, reasoning);
            tokens.output = Some(completion - tokens.reasoning.unwrap_or(0));
        }
        tokens.with_totals()
    }

    fn push(&mut self, event: TraceEvent) {
        self.events.push(Arc::new(event));
    }

    fn into_trace(self, root: &Trajectory) -> SessionTrace {
        let per_call = self
            .calls
            .iter()
            .map(|call| call.tokens)
            .reduce(|sum, tokens| sum.plus(&tokens));
        let has_counts = self
            .calls
            .iter()
            .any(|call| call.tokens != TokenBreakdown::default());
        let totals = match per_call {
            Some(sum) if has_counts => sum,
            _ => totals(root),
        };
        let id = root
            .session_id
            .clone()
            .or_else(|| root.trajectory_id.clone());
        let mut trace = SessionTrace::from_events(id.unwrap_or_default(), self.events, totals);
        trace.summary.total_turns = (self.answers > 0).then_some(self.answers);
        trace.model_calls = self.calls;
        trace.user_turns = self.user_turns;
        trace
    }
}

/// The place of a step.
struct Place<'a> {
    agent: Option<&'a str>,
    /// From 1.
    number: usize,
}

impl Place<'_> {
    fn call_id(&self) -> String {
        match self.agent {
            Some(agent) => format!("{agent}/step-{}", self.number),
            None => format!("step-{}", self.number),
        }
    }
}

/// Totals of a session whose steps have no counts.
fn totals(root: &Trajectory) -> TokenBreakdown {
    let Some(metrics) = &root.final_metrics else {
        return TokenBreakdown::default();
    };
    let cached = metrics.total_cached_tokens;
    TokenBreakdown {
        input: metrics
            .total_prompt_tokens
            .map(|prompt| prompt.saturating_sub(cached.unwrap_or(0))),
        cache_read: cached,
        output: metrics.total_completion_tokens,
        ..TokenBreakdown::default()
    }
    .with_totals()
}

/// The producer's own word for the success of a call, in the forms that are in use.
fn success(extra: &Value) -> Option<bool> {
    let flag = |path: &str| extra.pointer(path).and_then(Value::as_bool);
    let failed = ["/is_error", "/tool_result_is_error", "/failed"]
        .iter()
        .find_map(|path| flag(path));
    flag("/assize/success")
        .or(flag("/success"))
        .or(failed.map(|failed| !failed))
}
