//! One conversation: opening it, prompts with what the agent tells meanwhile, permissions, the end.

use super::connection::{Connection, Content, Message};
use crate::command::Invocation;
use crate::mcp::{self, Reach};
use crate::output::{Story, ToolEnd};
use crate::sessions::unix_ms;
use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AuthenticateRequest, CancelNotification, ContentBlock, EnvVariable, HttpHeader, Implementation,
    InitializeRequest, InitializeResponse, McpCapabilities, McpServer, McpServerHttp,
    McpServerStdio, NewSessionRequest, NewSessionResponse, PermissionOptionKind, PromptRequest,
    PromptResponse, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason,
    ToolCallContent, ToolCallStatus, ToolCallUpdateFields,
};
use assize_contracts::{
    CompletionReason, CostBreakdown, CreateSessionParams, Millis, PermissionConfig, PromptMetrics,
    PromptResult, ProviderError, SessionTrace, Timestamp, TimingBreakdown, TokenBreakdown,
    TraceEvent, Usd,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an agent may take to stop after it was asked to.
pub(super) const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct AcpSession {
    connection: Connection,
    id: SessionId,
    permissions: PermissionConfig,
    /// Instructions that have no place but before the first prompt.
    instructions: Option<String>,
    turns: u64,
    events: Vec<Arc<TraceEvent>>,
    /// What the agent says that the session cost until now.
    cost: Option<f64>,
    /// Holds the agent's home.
    _invocation: Invocation,
}

/// What a session is opened with, besides what every session has.
pub(super) struct Wishes {
    pub(super) authenticate: Option<String>,
    pub(super) mcp_servers: Vec<mcp::Server>,
}

/// What a prompt has come to until now.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) story: Story,
    pub(super) cost: Option<f64>,
}

impl AcpSession {
    /// Starts the agent and opens a session.
    pub(super) async fn open(
        invocation: Invocation,
        params: &CreateSessionParams,
        wishes: Wishes,
    ) -> Result<Self, ProviderError> {
        let running = invocation.server().start().await.map_err(|error| {
            ProviderError::service(error.explained()).with_code("program_not_started")
        })?;
        let mut session = Self {
            connection: Connection::new(running),
            id: SessionId::new(""),
            permissions: params.permissions.clone(),
            instructions: Some(params.system_instructions.clone())
                .filter(|text| !text.is_empty() && !invocation.writes_instructions()),
            turns: 0,
            events: Vec::new(),
            cost: None,
            _invocation: invocation,
        };
        let us = Implementation::new("assize", env!("CARGO_PKG_VERSION"));
        let hello = InitializeRequest::new(ProtocolVersion::V1).client_info(us);
        let hello: InitializeResponse = session.request("initialize", &hello).await?;
        if hello.protocol_version != ProtocolVersion::V1 {
            let version = json!(hello.protocol_version);
            let message = format!("the agent speaks version {version} of ACP, expected 1");
            return Err(ProviderError::service(message).with_code("acp_version"));
        }
        if let Some(method) = wishes.authenticate {
            let _: Value = session
                .request("authenticate", &AuthenticateRequest::new(method))
                .await?;
        }
        let workdir = std::path::absolute(&params.workdir);
        let workdir = workdir.unwrap_or_else(|_| params.workdir.clone());
        let servers = offered(
            wishes.mcp_servers,
            &hello.agent_capabilities.mcp_capabilities,
        )?;
        let request = NewSessionRequest::new(workdir).mcp_servers(servers);
        let opened: NewSessionResponse = session.request("session/new", &request).await?;
        session.id = opened.session_id;
        Ok(session)
    }

    /// One question before the first prompt. What the agent tells meanwhile belongs to no turn.
    async fn request<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, ProviderError> {
        let refused = |message: String| {
            let message = format!("the agent refused `{method}`: {message}");
            ProviderError::service(message).with_code("acp_refused")
        };
        let asked = self.connection.ask(method, params).await;
        loop {
            match self.connection.next().await?.content {
                Content::Answer { id, result } if id == asked => {
                    let answer = result.map_err(refused)?;
                    return serde_json::from_value(answer)
                        .map_err(|error| refused(error.to_string()));
                }
                Content::Request { id, method, .. } => self.connection.refuse(id, &method).await,
                _ => {}
            }
        }
    }

    pub(super) async fn prompt(
        &mut self,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let began = Instant::now();
        let instructions = self.instructions.take();
        let text = instructions.map_or(text.to_owned(), |before| format!("{before}\n\n{text}"));
        self.begin_turn();
        let mut turn = Turn::default();
        let asked = self
            .connection
            .ask(
                "session/prompt",
                &PromptRequest::new(self.id.clone(), vec![ContentBlock::from(text)]),
            )
            .await;
        let answer = self.follow(asked, timeout, &mut turn).await;
        self.conclude(answer, turn, began.elapsed())
    }

    /// Follows a prompt to its end, which is an answer, or the end of time.
    async fn follow(
        &mut self,
        asked: u64,
        timeout: Duration,
        turn: &mut Turn,
    ) -> Result<Ended, ProviderError> {
        let talk = self.answer_to(asked, turn);
        if let Ok(answer) = tokio::time::timeout(timeout, talk).await {
            return answer.map(Ended::Answered);
        }
        let stop = CancelNotification::new(self.id.clone());
        self.connection.tell("session/cancel", &stop).await;
        let talk = self.answer_to(asked, turn);
        if tokio::time::timeout(CANCEL_PATIENCE, talk).await.is_err() {
            self.connection.kill();
        }
        Ok(Ended::OutOfTime)
    }

    async fn answer_to(
        &mut self,
        asked: u64,
        turn: &mut Turn,
    ) -> Result<Result<Value, String>, ProviderError> {
        loop {
            let Message { at, content } = self.connection.next().await?;
            match content {
                Content::Answer { id, result } if id == asked => return Ok(result),
                Content::Answer { .. } => {}
                Content::Notification { method, params } if method == "session/update" => {
                    turn.update(params, at);
                }
                Content::Notification { .. } => {}
                Content::Request { id, method, params }
                    if method == "session/request_permission" =>
                {
                    let answer = permit(&self.permissions, params, at, turn);
                    self.connection.answer(id, &answer).await;
                }
                Content::Request { id, method, .. } => self.connection.refuse(id, &method).await,
            }
        }
    }

    fn conclude(
        &mut self,
        answer: Result<Ended, ProviderError>,
        turn: Turn,
        wall: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let Turn { story, cost } = turn;
        let spent = cost.map(|cost| cost - self.cost.unwrap_or(0.0));
        self.cost = cost.or(self.cost);
        let mut result = PromptResult {
            text: story.answer.clone(),
            metrics: PromptMetrics {
                timing: TimingBreakdown {
                    wall_ms: Some(Millis::from(wall)),
                    segments: Vec::new(),
                },
                tool_calls: Some(story.tool_calls()),
                cost: CostBreakdown {
                    total_usd: spent.filter(|cost| *cost > 0.0).and_then(Usd::new),
                    ..CostBreakdown::default()
                },
                ..PromptMetrics::default()
            },
            completion_reason: CompletionReason::Stop,
        };
        self.events.extend(story.events);
        let failure = match answer {
            Err(error) => Some(error),
            Ok(Ended::OutOfTime) => {
                result.completion_reason = CompletionReason::Timeout;
                None
            }
            Ok(Ended::Answered(Err(message))) => {
                Some(ProviderError::agent(message).with_code("agent_error"))
            }
            Ok(Ended::Answered(Ok(answer))) => stopped(answer, &mut result),
        };
        match failure {
            Some(error) => {
                result.completion_reason = CompletionReason::Error;
                self.note(&error.message);
                Err(error.with_partial(result))
            }
            None => Ok(result),
        }
    }

    fn begin_turn(&mut self) {
        self.events.push(Arc::new(TraceEvent::TurnBoundary {
            turn_number: self.turns,
            timestamp: Timestamp::from_unix_ms(unix_ms()),
        }));
        self.turns += 1;
    }

    fn note(&mut self, message: &str) {
        self.events.push(Arc::new(TraceEvent::Error {
            message: message.to_owned(),
            recoverable: false,
            context: None,
        }));
    }

    pub(super) fn trace(&self, session_id: &str) -> SessionTrace {
        let tokens = TokenBreakdown::default();
        SessionTrace::from_events(session_id.to_owned(), self.events.clone(), tokens)
    }

    pub(super) async fn close(mut self) -> Result<(), ProviderError> {
        self.connection.close().await;
        Ok(())
    }
}

/// MCP servers as the protocol names them.
pub(super) fn offered(
    servers: Vec<mcp::Server>,
    known: &McpCapabilities,
) -> Result<Vec<McpServer>, ProviderError> {
    let offer = |mcp::Server { name, reach }: mcp::Server| match reach {
        Reach::Program { command, args, env } => {
            let env = env.into_iter();
            let env = env.map(|(name, value)| EnvVariable::new(name, value));
            let server = McpServerStdio::new(name, mcp::found(&command)).args(args);
            Ok(McpServer::Stdio(server.env(env.collect())))
        }
        Reach::Url { url, headers } if known.http => {
            let headers = headers.into_iter();
            let headers = headers.map(|(name, value)| HttpHeader::new(name, value));
            let server = McpServerHttp::new(name, url).headers(headers.collect());
            Ok(McpServer::Http(server))
        }
        Reach::Url { .. } => {
            let message = format!("the agent takes no MCP servers by URL, and `{name}` is one");
            Err(ProviderError::service(message).with_code("mcp_unsupported"))
        }
    };
    servers.into_iter().map(offer).collect()
}

/// What the suite allows. Options are chosen by what they mean, never by their place.
pub(super) fn permit(
    permissions: &PermissionConfig,
    params: Value,
    at: i64,
    turn: &mut Turn,
) -> RequestPermissionResponse {
    let cancelled = || RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled);
    let Ok(request) = serde_json::from_value::<RequestPermissionRequest>(params) else {
        return cancelled();
    };
    let id = request.tool_call.tool_call_id.to_string();
    let fields = request.tool_call.fields;
    let named = [fields.name.clone(), kind_of(&fields), fields.title.clone()];
    let listed = &permissions.allowed_tools;
    let is_listed = named.iter().flatten().any(|name| listed.contains(name));
    turn.tell_tool(&id, &fields, at);
    let kinds = match permissions.auto_approve || is_listed {
        true => [
            PermissionOptionKind::AllowOnce,
            PermissionOptionKind::AllowAlways,
        ],
        false => {
            turn.story.deny_tool(&id, "tool", &Value::Null, Some(at));
            [
                PermissionOptionKind::RejectOnce,
                PermissionOptionKind::RejectAlways,
            ]
        }
    };
    let mut wanted = kinds.iter();
    let option = wanted.find_map(|kind| request.options.iter().find(|option| option.kind == *kind));
    option.map_or_else(cancelled, |option| {
        let selected = SelectedPermissionOutcome::new(option.option_id.clone());
        RequestPermissionResponse::new(RequestPermissionOutcome::Selected(selected))
    })
}

/// How a prompt ended.
enum Ended {
    Answered(Result<Value, String>),
    OutOfTime,
}

/// What the agent's reason to stop means. Its `usage` is left alone: some tell the whole prompt in it, some the last call.
fn stopped(answer: Value, result: &mut PromptResult) -> Option<ProviderError> {
    let reason = serde_json::from_value::<PromptResponse>(answer.clone());
    let failed =
        |message: &str, code: &str| Some(ProviderError::agent(message.to_owned()).with_code(code));
    match reason.map(|response| response.stop_reason) {
        Ok(StopReason::EndTurn) => None,
        Ok(StopReason::MaxTurnRequests) => {
            result.completion_reason = CompletionReason::ToolLimit;
            None
        }
        Ok(StopReason::MaxTokens) => failed("the model reached its limit of tokens", "max_tokens"),
        Ok(StopReason::Refusal) => failed("the agent refused to go on", "refusal"),
        Ok(StopReason::Cancelled) => failed("the agent cancelled its turn itself", "cancelled"),
        _ => failed(
            &format!("the agent stopped for an unknown reason: {answer}"),
            "no_result",
        ),
    }
}

impl Turn {
    /// Takes an update. One that nobody knows tells nothing.
    pub(super) fn update(&mut self, params: Value, at: i64) {
        let Ok(SessionNotification { update, .. }) = serde_json::from_value(params) else {
            return;
        };
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                if let ContentBlock::Text(text) = chunk.content {
                    self.story.say_more(&text.text, Some(at));
                }
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                if let ContentBlock::Text(text) = chunk.content {
                    self.story.think_more(&text.text, Some(at));
                }
            }
            SessionUpdate::ToolCall(call) => {
                let id = call.tool_call_id.to_string();
                let fields = ToolCallUpdateFields::new()
                    .kind(call.kind)
                    .status(call.status)
                    .title(call.title)
                    .name(call.name)
                    .content(call.content)
                    .raw_input(call.raw_input)
                    .raw_output(call.raw_output);
                self.tell_tool(&id, &fields, at);
            }
            SessionUpdate::ToolCallUpdate(call) => {
                let id = call.tool_call_id.to_string();
                self.tell_tool(&id, &call.fields, at);
            }
            SessionUpdate::UsageUpdate(usage) => {
                let cost = usage.cost.filter(|cost| cost.currency == "USD");
                self.cost = cost.map(|cost| cost.amount).or(self.cost);
            }
            _ => {}
        }
    }

    /// Begins a call that is new, completes what is known of it, and ends it when it says so.
    fn tell_tool(&mut self, id: &str, fields: &ToolCallUpdateFields, at: i64) {
        let story = &mut self.story;
        if !story.knows_tool(id) {
            let name = fields.name.clone().or_else(|| kind_of(fields));
            let name = name.unwrap_or_else(|| "tool".to_owned());
            story.begin_tool(id, &name, json!({"title": fields.title}), Some(at));
        }
        if let Some(input) = &fields.raw_input {
            story.set_input(id, input.clone());
        }
        let success = match fields.status {
            Some(ToolCallStatus::Completed) => true,
            Some(ToolCallStatus::Failed) => false,
            _ => return,
        };
        let output = fields.raw_output.clone().unwrap_or_else(|| shown(fields));
        let end = ToolEnd {
            success: Some(success),
            error: (!success).then(|| match &output {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
            output,
            duration_ms: None,
        };
        story.end_tool(id, end, Some(at));
    }
}

fn kind_of(fields: &ToolCallUpdateFields) -> Option<String> {
    json!(fields.kind?).as_str().map(str::to_owned)
}

/// The text that the agent shows for a call.
fn shown(fields: &ToolCallUpdateFields) -> Value {
    let contents = fields.content.iter().flatten();
    let texts = contents.filter_map(|content| match content {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        },
        _ => None,
    });
    Value::String(texts.collect())
}
