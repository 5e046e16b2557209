//! The conversation: the model is asked, its tools are run, and asked again until it has nothing more to do.

use super::ChatSettings;
use super::tools::{ToolOutput, Workshop};
use crate::capture::{is_long, no_answer};
use assize_contracts::{
    CallEnding, CompletionReason, CreateSessionParams, EventPlace, Millis, ModelCall,
    PromptMetrics, PromptResult, ProviderError, SessionTrace, Timestamp, TimingBreakdown, TokenSum,
    ToolCallRecord, TraceEvent, VoidCause, unix_ms_now,
};
use assize_llm::{
    ChatAnswer, ChatClient, ChatError, ChatRequest, Content, LostCall, Message, ModelAnswer,
    RequestedTool, Tries,
};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) struct ChatSession {
    client: ChatClient,
    request: ChatRequest,
    workshop: Workshop,
    max_turns: u32,
    events: Vec<Arc<TraceEvent>>,
    /// Calls that were answered or may have been billed.
    model_calls: Vec<ModelCall>,
    /// Tries without a whole answer that are not among the model calls yet.
    tries: Tries,
    /// A model answered, or began to.
    has_content: bool,
    turns: u64,
    /// The time limit of the session: that of its first prompt.
    limit: Option<Duration>,
}

/// The state of one prompt until now; kept also when time runs out.
#[derive(Default)]
struct Turn {
    text: String,
    tool_calls: Vec<ToolCallRecord>,
    /// Tools of the last answer that have not ended. The first one may be running.
    open_tools: VecDeque<OpenTool>,
}

struct OpenTool {
    tool: RequestedTool,
    /// The time of the answer that asked for it, or of its start.
    since_ms: i64,
}

impl ChatSession {
    pub(super) async fn open(
        settings: ChatSettings,
        client: ChatClient,
        params: &CreateSessionParams,
        suite: &Path,
    ) -> Result<Self, ProviderError> {
        let workshop = Workshop::open(&settings, params, suite).await?;
        let request = ChatRequest {
            model: params.model.clone(),
            system: Some(params.system_instructions.clone()).filter(|text| !text.is_empty()),
            tools: workshop.specs(),
            max_output_tokens: settings.max_output_tokens,
            stream: true,
            ..ChatRequest::default()
        };
        Ok(Self {
            client,
            request,
            workshop,
            max_turns: settings.max_turns,
            events: Vec::new(),
            model_calls: Vec::new(),
            tries: Tries::default(),
            has_content: false,
            turns: 0,
            limit: None,
        })
    }

    pub(super) async fn prompt(
        &mut self,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let began = Instant::now();
        let limit = *self.limit.get_or_insert(timeout);
        let calls_before = self.model_calls.len();
        self.request.messages.push(Message::User(text.to_owned()));
        let mut turn = Turn::default();
        let done = tokio::time::timeout(timeout, self.work(&mut turn)).await;
        let unanswered = self.unanswered(limit);
        self.take_lost();
        let (reason, failure) = match done {
            Ok(Ok(reason)) => (reason, None),
            Ok(Err(error)) => (CompletionReason::Error, Some(self.explained(error))),
            Err(_) => (CompletionReason::Timeout, unanswered),
        };
        self.leave_open_tools(&mut turn);
        let sum = TokenSum::of_calls(&self.model_calls[calls_before..]);
        let result = PromptResult {
            text: turn.text,
            metrics: PromptMetrics {
                tokens: sum.tokens,
                tokens_at_least: sum.at_least,
                timing: TimingBreakdown {
                    wall_ms: Some(Millis::from(began.elapsed())),
                    segments: Vec::new(),
                },
                tool_calls: Some(turn.tool_calls),
                ..PromptMetrics::default()
            },
            completion_reason: reason,
        };
        match failure {
            Some(error) => Err(error.with_partial(result)),
            None => Ok(result),
        }
    }

    fn explained(&self, error: ChatError) -> ProviderError {
        let error = explained(error);
        match self.has_content {
            true => error,
            false => error.with_void_cause(VoidCause::NoModelAnswer),
        }
    }

    /// The failure of the service that time ran out for: a long silence, or tries that failed. None: it is the agent's timeout.
    fn unanswered(&mut self, limit: Duration) -> Option<ProviderError> {
        let failure = self.tries.failure.take();
        let under_way = self.tries.lost.last();
        match under_way.filter(|call| call.ending == CallEnding::ClientGone) {
            Some(call) if call.answer.is_some() => None,
            Some(call) if is_long(call.duration, limit) => Some(no_answer(call.duration)),
            _ => failure.map(|failure| self.explained(failure)),
        }
    }

    async fn work(&mut self, turn: &mut Turn) -> Result<CompletionReason, ChatError> {
        for _ in 0..self.max_turns {
            let asking = self.client.send_noting(&self.request, &mut self.tries);
            let answer = asking.await?;
            self.take_lost();
            self.take(answer, turn);
            if turn.open_tools.is_empty() {
                return Ok(CompletionReason::Stop);
            }
            while let Some(open) = turn.open_tools.front_mut() {
                open.since_ms = unix_ms_now();
                let tool = open.tool.clone();
                self.run(tool, turn).await;
            }
        }
        Ok(CompletionReason::ToolLimit)
    }

    /// Records an answer. A turn is an answer that came to its end.
    fn take(&mut self, answer: ChatAnswer, turn: &mut Turn) {
        let ended_ms = unix_ms_now();
        let started_ms = ended_ms - answer.duration.as_millis() as i64;
        self.begin_turn(started_ms);
        turn.text = answer.answer.text();
        let call = ModelCall {
            retries: Some(answer.retries),
            ..self.call(Some(&answer.answer), started_ms, answer.duration)
        };
        self.add_parts(&answer.answer, &call, started_ms, answer.duration);
        self.model_calls.push(call);
        let tools = answer.answer.tools().filter(|tool| !tool.by_server);
        turn.open_tools = tools
            .cloned()
            .map(|tool| OpenTool {
                tool,
                since_ms: ended_ms,
            })
            .collect();
        self.request.messages.push(answer.message);
    }

    /// Records the calls without a whole answer.
    fn take_lost(&mut self) {
        for lost in std::mem::take(&mut self.tries.lost) {
            let answer = lost.answer.as_ref();
            let call = ModelCall {
                ending: Some(lost.ending),
                ..self.call(answer, lost.started_ms, lost.duration)
            };
            if let Some(answer) = answer {
                self.add_parts(answer, &call, lost.started_ms, lost.duration);
            }
            self.model_calls.push(call);
            let ended_ms = lost.started_ms + lost.duration.as_millis() as i64;
            let context = EventPlace {
                timestamp: Some(Timestamp::from_unix_ms(ended_ms)),
                ..EventPlace::default()
            };
            self.push(TraceEvent::Error {
                message: words_about(&lost),
                recoverable: true,
                context: Some(Box::new(context)),
            });
        }
    }

    fn call(&self, answer: Option<&ModelAnswer>, started_ms: i64, duration: Duration) -> ModelCall {
        let usage = answer
            .map(|answer| answer.usage.clone())
            .unwrap_or_default();
        let model = answer.and_then(|answer| answer.model.clone());
        let first = answer.and_then(|answer| answer.first_content_at);
        ModelCall {
            id: format!("call-{}", self.model_calls.len() + 1),
            model: model.unwrap_or_else(|| self.request.model.clone()),
            api: Some(self.client.endpoint().api.as_str().to_owned()),
            started_at: Some(Timestamp::from_unix_ms(started_ms)),
            ttft_ms: first.map(Millis::from),
            duration_ms: Some(Millis::from(duration)),
            tokens: usage.tokens,
            tokens_at_least: usage.at_least,
            cache_write_1h: usage.cache_write_1h,
            service_tier: usage.service_tier,
            stop_reason: answer.and_then(|answer| answer.stop_reason.clone()),
            status: answer.map(|answer| answer.status),
            ..ModelCall::default()
        }
    }

    /// Records thoughts and texts. Tools are recorded when they have ended.
    fn add_parts(
        &mut self,
        answer: &ModelAnswer,
        call: &ModelCall,
        started_ms: i64,
        duration: Duration,
    ) {
        self.has_content |= !answer.parts.is_empty() || answer.complete;
        for part in &answer.parts {
            let at = started_ms + part.at.unwrap_or(duration).as_millis() as i64;
            let context = place(at, &call.id, None);
            match &part.content {
                Content::Reasoning(text) => self.push(TraceEvent::Reasoning {
                    content: text.clone(),
                    duration_ms: None,
                    token_count: None,
                    context,
                }),
                Content::Text(text) => self.push(TraceEvent::TextOutput {
                    content: text.clone(),
                    token_count: None,
                    context,
                }),
                Content::Tool(_) => {}
            }
        }
    }

    async fn run(&mut self, tool: RequestedTool, turn: &mut Turn) {
        let (began, started_ms) = (Instant::now(), unix_ms_now());
        let ToolOutput { text, error } = self.workshop.run(&tool.name, &tool.arguments).await;
        let duration_ms = Some(Millis::from(began.elapsed()));
        let success = Some(error.is_none());
        let call_ref = format!("call-{}", self.model_calls.len());
        turn.open_tools.pop_front();
        turn.tool_calls.push(ToolCallRecord {
            name: tool.name.clone(),
            category: tool.name.clone(),
            success,
            duration_ms,
            error: error.clone(),
            call_ref: Some(call_ref.clone()),
        });
        self.push(TraceEvent::ToolCall {
            name: tool.name.clone(),
            input: tool.arguments,
            output: text.clone().into(),
            duration_ms,
            success,
            error: error.clone(),
            context: place(started_ms, &call_ref, tool.id.clone()),
        });
        self.request.messages.push(Message::ToolResult {
            id: tool.id,
            name: tool.name,
            is_error: error.is_some(),
            output: match error {
                Some(error) => format!("{error}\n{text}"),
                None => text,
            },
        });
    }

    /// Records the tools that had not ended when time was over: whether they failed is unknown.
    fn leave_open_tools(&mut self, turn: &mut Turn) {
        let call_ref = format!("call-{}", self.model_calls.len());
        for OpenTool { tool, since_ms } in turn.open_tools.drain(..) {
            turn.tool_calls.push(ToolCallRecord {
                name: tool.name.clone(),
                category: tool.name.clone(),
                success: None,
                duration_ms: None,
                error: None,
                call_ref: Some(call_ref.clone()),
            });
            self.push(TraceEvent::ToolCall {
                name: tool.name,
                input: tool.arguments,
                output: serde_json::Value::Null,
                duration_ms: None,
                success: None,
                error: None,
                context: place(since_ms, &call_ref, tool.id),
            });
        }
    }

    fn begin_turn(&mut self, started_ms: i64) {
        let event = TraceEvent::TurnBoundary {
            turn_number: self.turns,
            timestamp: Timestamp::from_unix_ms(started_ms),
        };
        self.push(event);
        self.turns += 1;
    }

    fn push(&mut self, event: TraceEvent) {
        self.events.push(Arc::new(event));
    }

    pub(super) async fn close(self) {
        self.workshop.close().await;
    }

    pub(super) fn trace(&self, session_id: &str) -> SessionTrace {
        let tokens = TokenSum::of_calls(&self.model_calls).tokens;
        let mut trace =
            SessionTrace::from_events(session_id.to_owned(), self.events.clone(), tokens);
        trace.summary.total_turns = Some(self.turns);
        trace.model_calls = self.model_calls.clone();
        trace
    }
}

fn place(at: i64, call: &str, call_id: Option<String>) -> Option<Box<EventPlace>> {
    Some(Box::new(EventPlace {
        timestamp: Some(Timestamp::from_unix_ms(at)),
        call_ref: Some(call.to_owned()),
        call_id,
        ..EventPlace::default()
    }))
}

fn words_about(lost: &LostCall) -> String {
    let error = lost
        .answer
        .as_ref()
        .and_then(|answer| answer.error.as_ref());
    match (lost.ending, &lost.answer, error) {
        (.., Some(error)) => format!("the answer ended in an error: {}", error.message),
        (CallEnding::ClientGone, None, _) => "time was over before the model answered".to_owned(),
        (CallEnding::ClientGone, ..) => "time was over in the middle of an answer".to_owned(),
        _ => "the answer broke off".to_owned(),
    }
}

/// The failure of a model is no evidence about the set-up, unless it was sent more than it can read.
fn explained(error: ChatError) -> ProviderError {
    if error.is_context_overflow() {
        return ProviderError::agent(error.to_string()).with_code("context_overflow");
    }
    let code = match &error {
        ChatError::Refused { status, .. } if *status < 400 => "llm_error".to_owned(),
        ChatError::Refused { status, .. } => format!("llm_{status}"),
        ChatError::Unreachable { .. } => "llm_unreachable".to_owned(),
        ChatError::Timeout { .. } => "llm_timeout".to_owned(),
        ChatError::Settings { .. } => "llm_settings".to_owned(),
        ChatError::Cut { .. } | ChatError::TooLarge | ChatError::Unreadable { .. } => {
            "llm_error".to_owned()
        }
    };
    ProviderError::service(error.to_string()).with_code(code)
}
