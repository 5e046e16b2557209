//! The span tree of a session: the agent, its turns, and in them model calls and tool calls side by side. A subagent hangs below the
//! tool call that started it.

use super::attributes::Writer;
use super::{Attributes, Dialect, Event, Kind, Options, ResourceSpans, Span, Status};
use crate::session::{Session, Trial};
use crate::timeline::{CallSpan, Micros, NoTimes, SubagentSpan, Timeline, ToolSpan, TurnSpan};
use assize_contracts::{CallEnding, ModelCall, Outcome, TraceEvent};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The spans of a session. A second export gives the same ids.
pub fn spans(session: &Session, options: &Options) -> Result<ResourceSpans, NoTimes> {
    let timeline = Timeline::of(session)?;
    let tree = Tree {
        session,
        timeline: &timeline,
        options,
    };
    let mut spans = vec![tree.root()];
    if tree.has_turns() {
        spans.extend(timeline.turns.iter().map(|turn| tree.turn(turn)));
    }
    spans.extend(timeline.calls.iter().map(|call| tree.call(call)));
    spans.extend(timeline.tools.iter().map(|tool| tree.tool(tool)));
    spans.extend(
        timeline
            .subagents
            .iter()
            .map(|subagent| tree.subagent(subagent)),
    );
    Ok(ResourceSpans {
        resource: tree.resource(),
        spans,
    })
}

struct Tree<'a> {
    session: &'a Session,
    timeline: &'a Timeline<'a>,
    options: &'a Options,
}

/// Name, role and extent of a span.
struct Frame {
    path: String,
    parent: Option<String>,
    name: String,
    kind: Kind,
    start: Micros,
    end: Micros,
}

const ROOT: &str = "";

impl Tree<'_> {
    fn is_openinference(&self) -> bool {
        self.options.dialect == Dialect::OpenInference
    }

    /// A single turn would only repeat the root.
    fn has_turns(&self) -> bool {
        self.timeline.turns.len() > 1
    }

    fn writer(&self) -> Writer {
        Writer::new(self.options.longest_text)
    }

    fn resource(&self) -> Attributes {
        let mut resource = self.writer();
        resource
            .text("service.name", "assize")
            .text("service.version", env!("CARGO_PKG_VERSION"));
        if self.is_openinference() {
            let project = self
                .session
                .trial
                .as_ref()
                .map_or("assize", |trial| &trial.suite);
            resource.text("openinference.project.name", project);
        }
        resource.done()
    }

    fn root(&self) -> Span {
        let session = self.session;
        let mut attributes = self.writer();
        self.kind(&mut attributes, "invoke_agent", "AGENT");
        attributes
            .text("gen_ai.agent.name", session.agent())
            .text_if("gen_ai.agent.version", session.agent_version.as_deref())
            .text("gen_ai.conversation.id", &session.trace.session_id)
            .text("session.id", &session.trace.session_id)
            .flag("assize.simulated", session.trace.simulated);
        if let Some(trial) = &session.trial {
            self.trial(&mut attributes, trial);
        }
        if session.trace.model_calls.is_empty() {
            // The calls were not observed one by one. The names are no convention: viewers must not add them to anything.
            let tokens = &session.trace.summary.total_tokens;
            attributes
                .int("assize.session.total_tokens", tokens.total)
                .int("assize.session.active_tokens", tokens.active)
                .usd("assize.session.cost_usd", session.cost());
        }
        if self.options.has_content {
            self.conversation(&mut attributes);
        }
        let frame = Frame {
            path: ROOT.to_owned(),
            parent: None,
            name: format!("invoke_agent {}", session.agent()),
            kind: Kind::Internal,
            start: self.timeline.start,
            end: self.timeline.end,
        };
        let mut span = self.span(frame, attributes.done(), self.outcome());
        span.events = self.evaluations();
        span.events.extend(self.errors());
        span
    }

    fn outcome(&self) -> Status {
        let outcome = self
            .session
            .trial
            .as_ref()
            .and_then(|trial| trial.row.outcome);
        match outcome {
            // A failed check is a result about the agent, not an error of the span.
            Some(Outcome::Pass | Outcome::Fail) => Status::Ok,
            Some(Outcome::Void) => Status::Error("void".to_owned()),
            None => Status::Unset,
        }
    }

    /// The trial, and the same as an experiment of Langfuse: one per mode and model of a run.
    fn trial(&self, attributes: &mut Writer, trial: &Trial) {
        let row = &trial.row;
        let experiment = format!("{}:{}:{}", row.run_id, row.mode, row.model);
        let outcome = row.outcome.map(|outcome| json!(outcome));
        let metadata = json!({ "runId": row.run_id, "suite": trial.suite, "mode": row.mode, "model": row.model });
        let item = json!({ "repetition": row.iteration, "position": row.position });
        attributes
            .text("assize.run.id", &row.run_id)
            .text("assize.suite.name", &trial.suite)
            .text("assize.scenario.id", &row.scenario_id)
            .text("assize.mode", &row.mode)
            .text("assize.model", &row.model)
            .int("assize.repetition", u64::try_from(row.iteration).ok())
            .int("assize.position", row.position)
            .text_if("assize.outcome", outcome.as_ref().and_then(Value::as_str))
            .flag("assize.replayed", row.replayed)
            .text(
                "langfuse.trace.name",
                format!("{} · {}", row.scenario_id, row.mode),
            )
            .text("langfuse.experiment.id", &experiment)
            .text(
                "langfuse.experiment.name",
                format!("{} {} {}", trial.suite, row.mode, row.model),
            )
            .text("langfuse.experiment.metadata", metadata.to_string())
            .text("langfuse.experiment.item.id", &row.scenario_id)
            .text("langfuse.experiment.item.metadata", item.to_string())
            .text(
                "langfuse.experiment.item.root_observation_id",
                hex(&self.span_id(ROOT)),
            );
    }

    /// The verdict and every check, by the convention for evaluations.
    fn evaluations(&self) -> Vec<Event> {
        let Some(trial) = &self.session.trial else {
            return Vec::new();
        };
        let row = &trial.row;
        let outcome = match row.outcome {
            Some(Outcome::Pass) => Some(("pass", Some(1.0))),
            Some(Outcome::Fail) => Some(("fail", Some(0.0))),
            // No result about the agent: a score would be one.
            Some(Outcome::Void) => Some(("void", None)),
            None => Some(match row.success {
                true => ("pass", Some(1.0)),
                false => ("fail", Some(0.0)),
            }),
        };
        let outcome = outcome.map(|(label, score)| {
            (
                "success".to_owned(),
                score,
                label,
                trial.description.clone(),
            )
        });
        let checks =
            row.checkpoint_details
                .iter()
                .map(|check| match (&check.error, check.passed) {
                    (Some(_), _) => (check.id.clone(), None, "void", check.description.clone()),
                    (None, true) => (
                        check.id.clone(),
                        Some(1.0),
                        "pass",
                        check.description.clone(),
                    ),
                    (None, false) => (
                        check.id.clone(),
                        Some(0.0),
                        "fail",
                        check.description.clone(),
                    ),
                });
        let event = |(name, score, label, explanation): (String, Option<f64>, &str, String)| {
            let mut attributes = self.writer();
            attributes
                .text("gen_ai.evaluation.name", name)
                .double("gen_ai.evaluation.score.value", score)
                .text("gen_ai.evaluation.score.label", label)
                .text_if(
                    "gen_ai.evaluation.explanation",
                    Some(explanation).filter(|text| !text.is_empty()),
                );
            Event {
                name: "gen_ai.evaluation.result".to_owned(),
                time_ns: nanos(self.timeline.end),
                attributes: attributes.done(),
            }
        };
        outcome.into_iter().chain(checks).map(event).collect()
    }

    fn errors(&self) -> Vec<Event> {
        let event = |error: &crate::timeline::ErrorMark<'_>| {
            let mut attributes = self.writer();
            attributes.text("exception.type", "agent_error");
            if self.options.has_content {
                attributes.text("exception.message", error.message);
            }
            Event {
                name: "exception".to_owned(),
                time_ns: nanos(error.at),
                attributes: attributes.done(),
            }
        };
        self.timeline.errors.iter().map(event).collect()
    }

    fn turn(&self, turn: &TurnSpan) -> Span {
        let mut attributes = self.writer();
        attributes.int("assize.turn.number", Some(turn.number as u64));
        if self.is_openinference() {
            attributes.text("openinference.span.kind", "CHAIN");
        }
        let frame = Frame {
            path: turn_path(turn),
            parent: Some(ROOT.to_owned()),
            name: format!("turn {}", turn.number),
            kind: Kind::Internal,
            start: turn.start,
            end: turn.end,
        };
        self.span(frame, attributes.done(), Status::Unset)
    }

    fn call(&self, span: &CallSpan<'_>) -> Span {
        let call = span.call;
        let mut attributes = self.writer();
        self.kind(&mut attributes, "chat", "LLM");
        let model = Some(call.model.as_str()).filter(|model| !model.is_empty());
        attributes
            .text_if("gen_ai.provider.name", provider(call.api.as_deref()))
            .text_if("gen_ai.request.model", model)
            .text_if("gen_ai.response.model", model)
            .texts(
                "gen_ai.response.finish_reasons",
                call.stop_reason.iter().cloned().collect(),
            )
            .seconds("gen_ai.response.time_to_first_chunk", call.ttft_ms)
            .text("gen_ai.conversation.id", &self.session.trace.session_id)
            .flag("assize.side", call.side)
            .flag("assize.time.estimated", span.is_estimated)
            .int("http.response.status_code", call.status.map(u64::from))
            .int("assize.retries", call.retries.map(u64::from));
        self.usage(&mut attributes, call);
        let status = self.call_status(&mut attributes, call);
        if self.options.has_content {
            self.answer(&mut attributes, call);
        }
        let frame = Frame {
            path: format!("call/{}", span.index),
            parent: Some(self.parent_path(span.agent, span.turn)),
            name: match model {
                Some(model) => format!("chat {model}"),
                None => "chat".to_owned(),
            },
            kind: Kind::Client,
            start: span.start,
            end: span.end,
        };
        self.span(frame, attributes.done(), status)
    }

    /// Usage and cost are on model calls only: on spans around them they would be counted twice.
    fn usage(&self, attributes: &mut Writer, call: &ModelCall) {
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
        if self.is_openinference() {
            attributes
                .text("llm.model_name", &call.model)
                .int("llm.token_count.prompt", prompt)
                .int("llm.token_count.completion", completion)
                .int("llm.token_count.total", tokens.total)
                .int(
                    "llm.token_count.prompt_details.cache_read",
                    tokens.cache_read,
                )
                .int(
                    "llm.token_count.prompt_details.cache_write",
                    tokens.cache_write,
                )
                .int(
                    "llm.token_count.completion_details.reasoning",
                    tokens.reasoning,
                )
                .usd("llm.cost.total", call.cost_usd);
        } else {
            let (written, reasoning) = match self.options.dialect {
                Dialect::Latest => (
                    "gen_ai.usage.cache_write.input_tokens",
                    "gen_ai.usage.reasoning.output_tokens",
                ),
                _ => (
                    "gen_ai.usage.cache_creation.input_tokens",
                    "assize.usage.reasoning_tokens",
                ),
            };
            attributes
                .int("gen_ai.usage.input_tokens", prompt)
                .int("gen_ai.usage.output_tokens", completion)
                .int("gen_ai.usage.cache_read.input_tokens", tokens.cache_read)
                .int(written, tokens.cache_write)
                .int(reasoning, tokens.reasoning);
            let details = call
                .cost_usd
                .map(|cost| json!({ "total": cost }).to_string());
            attributes.text_if("langfuse.observation.cost_details", details);
        }
        let source = call.cost_source.map(|source| json!(source));
        attributes.usd("assize.cost_usd", call.cost_usd).text_if(
            "assize.cost_source",
            source.as_ref().and_then(Value::as_str),
        );
    }

    fn call_status(&self, attributes: &mut Writer, call: &ModelCall) -> Status {
        let kind = match (call.status, call.ending) {
            (Some(429), _) => "rate_limit",
            (Some(408 | 504), _) => "timeout",
            (Some(status), _) if status >= 400 => "_OTHER",
            (_, Some(CallEnding::Cut)) => "cut",
            (_, Some(CallEnding::ClientGone)) => "cancelled",
            (_, Some(CallEnding::NoAnswer)) => "no_answer",
            _ => return Status::Unset,
        };
        attributes.text("error.type", kind);
        Status::Error(match call.status {
            Some(status) if status >= 400 => format!("HTTP status {status}"),
            _ => kind.to_owned(),
        })
    }

    fn tool(&self, span: &ToolSpan<'_>) -> Span {
        let TraceEvent::ToolCall {
            name,
            input,
            output,
            success,
            error,
            ..
        } = span.event
        else {
            unreachable!("a tool span is made of a tool call")
        };
        let mut attributes = self.writer();
        self.kind(&mut attributes, "execute_tool", "TOOL");
        attributes
            .text("gen_ai.tool.name", name)
            .text_if("gen_ai.tool.call.id", span.call_id())
            .text("gen_ai.tool.type", "function")
            .flag("assize.time.estimated", span.is_estimated)
            .flag("assize.duration.is_bound", span.event.duration_is_bound());
        if self.is_openinference() {
            attributes.text("tool.name", name);
        }
        if self.options.has_content {
            let (arguments, result) = (as_text(input), as_text(output));
            match self.is_openinference() {
                true => attributes
                    .text_if("tool.parameters", arguments.as_deref())
                    .text_if("input.value", arguments.as_deref())
                    .text_if("output.value", result.as_deref()),
                false => attributes
                    .text_if("gen_ai.tool.call.arguments", arguments.as_deref())
                    .text_if("gen_ai.tool.call.result", result.as_deref()),
            };
        }
        let status = match success {
            Some(true) => Status::Ok,
            Some(false) => {
                attributes.text("error.type", "tool_error");
                let message = error.as_deref().filter(|_| self.options.has_content);
                Status::Error(super::attributes::cut(
                    message.unwrap_or("tool_error"),
                    self.options.longest_text,
                ))
            }
            None => Status::Unset,
        };
        let frame = Frame {
            path: tool_path(span),
            parent: Some(self.parent_path(span.agent, span.turn)),
            name: format!("execute_tool {name}"),
            kind: Kind::Internal,
            start: span.start,
            end: span.end,
        };
        self.span(frame, attributes.done(), status)
    }

    fn subagent(&self, subagent: &SubagentSpan<'_>) -> Span {
        let mut attributes = self.writer();
        self.kind(&mut attributes, "invoke_agent", "AGENT");
        attributes
            .text("gen_ai.agent.name", self.session.agent())
            .text("gen_ai.agent.id", subagent.id)
            .text("gen_ai.conversation.id", &self.session.trace.session_id);
        let starter = self.timeline.starter_of(subagent.id);
        // A file may say that a subagent started itself.
        let starter = starter.filter(|tool| !self.is_below(tool.agent, subagent.id));
        let frame = Frame {
            path: subagent_path(subagent.id),
            parent: Some(starter.map_or(ROOT.to_owned(), tool_path)),
            name: format!("invoke_agent {}", self.session.agent()),
            kind: Kind::Internal,
            start: subagent.start,
            end: subagent.end,
        };
        self.span(frame, attributes.done(), Status::Unset)
    }

    /// True if an agent is the other one, or was started below it.
    fn is_below(&self, agent: Option<&str>, other: &str) -> bool {
        let mut agent = agent;
        for _ in 0..=self.timeline.subagents.len() {
            match agent {
                Some(id) if id == other => return true,
                Some(id) => agent = self.timeline.starter_of(id).and_then(|tool| tool.agent),
                None => return false,
            }
        }
        true
    }

    fn kind(&self, attributes: &mut Writer, operation: &str, openinference: &str) {
        attributes.text("gen_ai.operation.name", operation);
        if self.is_openinference() {
            attributes.text("openinference.span.kind", openinference);
        }
    }

    /// The user's messages and the final answer.
    fn conversation(&self, attributes: &mut Writer) {
        let texts: Vec<&str> = self
            .session
            .user_messages
            .iter()
            .map(|message| message.text.as_str())
            .collect();
        let answer = self.session.trace.final_text();
        if self.is_openinference() {
            attributes
                .text_if(
                    "input.value",
                    Some(texts.join("\n\n")).filter(|text| !text.is_empty()),
                )
                .text_if("output.value", Some(answer).filter(|text| !text.is_empty()));
            return;
        }
        let message =
            |text: &&str| json!({ "role": "user", "parts": [{ "type": "text", "content": text }] });
        let messages: Vec<Value> = texts.iter().map(message).collect();
        attributes
            .text_if("gen_ai.input.messages", (!messages.is_empty()).then(|| json!(messages).to_string()))
            .text_if("gen_ai.output.messages", (!answer.is_empty()).then(|| {
                json!([{ "role": "assistant", "parts": [{ "type": "text", "content": answer }] }]).to_string()
            }));
    }

    /// Everything that came with one answer.
    fn answer(&self, attributes: &mut Writer, call: &ModelCall) {
        let is_own = |event: &&std::sync::Arc<TraceEvent>| {
            let named = event.place().and_then(|place| place.call_ref.as_deref());
            named == Some(call.id.as_str())
        };
        let events: Vec<&TraceEvent> = self
            .session
            .trace
            .events
            .iter()
            .filter(is_own)
            .map(|event| &**event)
            .collect();
        let part = |event: &&TraceEvent| match event {
            TraceEvent::Reasoning { content, .. } => {
                Some(json!({ "type": "reasoning", "content": content }))
            }
            TraceEvent::TextOutput { content, .. } => {
                Some(json!({ "type": "text", "content": content }))
            }
            TraceEvent::ToolCall { name, input, .. } => {
                let id = event.place().and_then(|place| place.call_id.as_deref());
                Some(json!({ "type": "tool_call", "id": id, "name": name, "arguments": input }))
            }
            _ => None,
        };
        let parts: Vec<Value> = events.iter().filter_map(part).collect();
        if parts.is_empty() {
            return;
        }
        let message =
            json!([{ "role": "assistant", "parts": parts, "finish_reason": call.stop_reason }])
                .to_string();
        match self.is_openinference() {
            true => attributes.text("output.value", message),
            false => attributes.text("gen_ai.output.messages", message),
        };
    }

    fn parent_path(&self, agent: Option<&str>, turn: Option<usize>) -> String {
        match (agent, turn.and_then(|turn| self.timeline.turns.get(turn))) {
            (Some(agent), _) => subagent_path(agent),
            (None, Some(turn)) if self.has_turns() => turn_path(turn),
            _ => ROOT.to_owned(),
        }
    }

    fn span(&self, frame: Frame, attributes: Attributes, status: Status) -> Span {
        Span {
            trace_id: self.trace_id(),
            span_id: self.span_id(&frame.path),
            parent: frame.parent.map(|path| self.span_id(&path)),
            name: frame.name,
            kind: frame.kind,
            start_ns: nanos(frame.start),
            end_ns: nanos(frame.end),
            attributes,
            events: Vec::new(),
            status,
        }
    }

    /// Providers may give the same id to sessions of different trials.
    fn identity(&self) -> String {
        let session = &self.session.trace.session_id;
        match &self.session.trial {
            Some(trial) => {
                let row = &trial.row;
                let cell = format!(
                    "{}/{}/{}/{}",
                    row.scenario_id, row.mode, row.model, row.iteration
                );
                format!("{}/{cell}/{session}", row.run_id)
            }
            None => session.clone(),
        }
    }

    fn trace_id(&self) -> [u8; 16] {
        first_bytes(&self.identity())
    }

    fn span_id(&self, path: &str) -> [u8; 8] {
        first_bytes(&format!("{}/{path}", self.identity()))
    }
}

fn turn_path(turn: &TurnSpan) -> String {
    format!("turn/{}", turn.number)
}

fn tool_path(tool: &ToolSpan<'_>) -> String {
    format!("event/{}", tool.index)
}

fn subagent_path(id: &str) -> String {
    format!("agent/{id}")
}

fn first_bytes<const N: usize>(text: &str) -> [u8; N] {
    let hash = Sha256::digest(text.as_bytes());
    let mut bytes = [0; N];
    bytes
        .iter_mut()
        .zip(hash)
        .for_each(|(byte, hashed)| *byte = hashed);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn nanos(at: Micros) -> u64 {
    u64::try_from(at).unwrap_or(0).saturating_mul(1000)
}

/// The API's vendor, in the words of the conventions.
fn provider(api: Option<&str>) -> Option<&'static str> {
    let api = api?;
    let known = [
        ("anthropic", "anthropic"),
        ("openai", "openai"),
        ("gemini", "gcp.gemini"),
        ("google", "gcp.gemini"),
    ];
    known
        .iter()
        .find(|(part, _)| api.contains(part))
        .map(|(_, name)| *name)
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
