//! The conversation: the model is asked, its tools are run, and asked again until it has nothing more to do.

use super::ChatSettings;
use super::tools::{ToolOutput, Workshop};
use assize_contracts::{
    CompletionReason, CreateSessionParams, EventPlace, Millis, ModelCall, PromptMetrics,
    PromptResult, ProviderError, SessionTrace, Timestamp, TimingBreakdown, TokenBreakdown,
    TokenSum, ToolCallRecord, TraceEvent, VoidCause,
};
use assize_llm::{
    ApiError, ChatAnswer, ChatClient, ChatError, ChatRequest, Content, Message, RequestedTool,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) struct ChatSession {
    client: ChatClient,
    request: ChatRequest,
    workshop: Workshop,
    max_turns: u32,
    events: Vec<Arc<TraceEvent>>,
    model_calls: Vec<ModelCall>,
    turns: u64,
}

/// The state of one prompt until now; kept also when time runs out.
#[derive(Default)]
struct Turn {
    text: String,
    tokens: Option<TokenBreakdown>,
    tool_calls: Vec<ToolCallRecord>,
    /// A request was sent and its answer has not come.
    is_waiting: bool,
}

impl Turn {
    /// The tokens of the answers. A request without its answer may have been billed.
    fn sum(&self, has_more: bool) -> TokenSum {
        let tokens = self.tokens.unwrap_or_default();
        let is_unknown = self.tokens.is_some() && tokens.total.is_none();
        let sum = TokenSum {
            tokens,
            at_least: is_unknown.then(|| tokens.known()),
        };
        match has_more {
            true => sum.and_more(),
            false => sum,
        }
    }
}

/// The API refused the request, or was not reached.
fn is_unbilled(error: &ProviderError) -> bool {
    let code = error.code.as_deref().unwrap_or_default();
    !matches!(code, "llm_timeout" | "llm_error")
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
            turns: 0,
        })
    }

    pub(super) async fn prompt(
        &mut self,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let began = Instant::now();
        self.request.messages.push(Message::User(text.to_owned()));
        let mut turn = Turn::default();
        let done = tokio::time::timeout(timeout, self.work(&mut turn)).await;
        let (reason, failure) = match done {
            Ok(Ok(reason)) => (reason, None),
            Ok(Err(error)) => (CompletionReason::Error, Some(self.explained(error))),
            Err(_) => (CompletionReason::Timeout, None),
        };
        let refused = failure.as_ref().is_some_and(is_unbilled);
        let sum = turn.sum(turn.is_waiting && !refused);
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
        match self.model_calls.is_empty() {
            true => error.with_void_cause(VoidCause::NoModelAnswer),
            false => error,
        }
    }

    async fn work(&mut self, turn: &mut Turn) -> Result<CompletionReason, ChatError> {
        for _ in 0..self.max_turns {
            self.begin_turn();
            let started_ms = assize_contracts::unix_ms_now();
            turn.is_waiting = true;
            let answer = self.client.send(&self.request).await?;
            turn.is_waiting = false;
            let asked = self.take(answer, started_ms, turn);
            if asked.is_empty() {
                return Ok(CompletionReason::Stop);
            }
            for tool in asked {
                self.run(tool, turn).await;
            }
        }
        Ok(CompletionReason::ToolLimit)
    }

    /// Records an answer and gives the tools it asks for.
    fn take(&mut self, answer: ChatAnswer, started_ms: i64, turn: &mut Turn) -> Vec<RequestedTool> {
        let id = format!("call-{}", self.model_calls.len() + 1);
        let tokens = answer.answer.usage.tokens;
        turn.tokens = Some(turn.tokens.map_or(tokens, |sum| sum.plus(&tokens)));
        turn.text = answer.answer.text();
        let mut asked = Vec::new();
        for part in &answer.answer.parts {
            let at = started_ms + part.at.unwrap_or(answer.duration).as_millis() as i64;
            let context = place(at, &id, None);
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
                Content::Tool(tool) if tool.by_server => {}
                Content::Tool(tool) => asked.push(tool.clone()),
            }
        }
        self.model_calls.push(ModelCall {
            id,
            model: answer
                .answer
                .model
                .clone()
                .unwrap_or_else(|| self.request.model.clone()),
            api: Some(answer.answer.api.as_str().to_owned()),
            started_at: Some(Timestamp::from_unix_ms(started_ms)),
            ttft_ms: answer.answer.first_content_at.map(Millis::from),
            duration_ms: Some(Millis::from(answer.duration)),
            tokens,
            cache_write_1h: answer.answer.usage.cache_write_1h,
            service_tier: answer.answer.usage.service_tier.clone(),
            stop_reason: answer.answer.stop_reason.clone(),
            status: Some(answer.answer.status),
            retries: Some(answer.retries),
            ..ModelCall::default()
        });
        self.request.messages.push(answer.message);
        asked
    }

    async fn run(&mut self, tool: RequestedTool, turn: &mut Turn) {
        let (began, started_ms) = (Instant::now(), assize_contracts::unix_ms_now());
        let ToolOutput { text, error } = self.workshop.run(&tool.name, &tool.arguments).await;
        let duration_ms = Some(Millis::from(began.elapsed()));
        let success = Some(error.is_none());
        let call_ref = format!("call-{}", self.model_calls.len());
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

    fn begin_turn(&mut self) {
        let event = TraceEvent::TurnBoundary {
            turn_number: self.turns,
            timestamp: Timestamp::now(),
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
        let calls = self.model_calls.iter().map(|call| call.tokens);
        let tokens = calls
            .reduce(|sum, next| sum.plus(&next))
            .unwrap_or_default();
        let mut trace =
            SessionTrace::from_events(session_id.to_owned(), self.events.clone(), tokens);
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

/// The failure of a model is no evidence about the set-up, unless it was sent more than it can read.
fn explained(error: ChatError) -> ProviderError {
    if let ChatError::Refused {
        status,
        kind,
        message,
        ..
    } = &error
    {
        let refusal = ApiError {
            status: *status,
            kind: kind.clone(),
            message: message.clone(),
        };
        if refusal.is_context_overflow() {
            return ProviderError::agent(error.to_string()).with_code("context_overflow");
        }
    }
    let code = match &error {
        ChatError::Refused { status, .. } => format!("llm_{status}"),
        ChatError::Unreachable { .. } => "llm_unreachable".to_owned(),
        ChatError::Timeout { .. } => "llm_timeout".to_owned(),
        ChatError::Settings { .. } => "llm_settings".to_owned(),
        ChatError::TooLarge | ChatError::Unreadable { .. } => "llm_error".to_owned(),
    };
    ProviderError::service(error.to_string()).with_code(code)
}
