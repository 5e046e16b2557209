//! One conversation: opening it, prompts with the agent's reports, permissions, the end.

use super::connection::{Connection, Content, Message};
use super::messages::{self, Hello, PermissionRequest, ToolCall, Update};
use crate::command::{Invocation, inside};
use crate::mcp;
use crate::output::{Story, ToolEnd};
use assize_contracts::{
    CompletionReason, CostBreakdown, CreateSessionParams, Millis, PermissionConfig, PromptMetrics,
    PromptResult, ProviderError, SessionTrace, TimingBreakdown, TokenBreakdown, TraceEvent, Usd,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time limit of an agent to stop after it was asked to.
pub(super) const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct AcpSession {
    connection: Connection,
    id: String,
    permissions: PermissionConfig,
    /// Instructions that have no place but before the first prompt.
    instructions: Option<String>,
    events: Vec<Arc<TraceEvent>>,
    /// The cost of the session until now, as the agent reports it.
    cost: Option<f64>,
    /// Holds the agent's home.
    invocation: Invocation,
}

/// Settings that a session is opened with, besides those of every session.
pub(super) struct Wishes {
    pub(super) authenticate: Option<String>,
    pub(super) mcp_servers: Vec<mcp::Server>,
}

/// The state of a prompt until now.
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
            id: String::new(),
            permissions: params.permissions.clone(),
            instructions: Some(params.system_instructions.clone())
                .filter(|text| !text.is_empty() && !invocation.writes_instructions()),
            events: Vec::new(),
            cost: None,
            invocation,
        };
        let hello = session
            .request("initialize", &messages::initialize())
            .await?;
        let hello = Hello::read(&hello);
        if hello.version != messages::VERSION {
            let message = format!(
                "the agent speaks version {} of ACP, expected 1",
                hello.version
            );
            return Err(ProviderError::service(message).with_code("acp_version"));
        }
        if let Some(method) = wishes.authenticate {
            let method = json!({"methodId": method});
            session.request("authenticate", &method).await?;
        }
        let workdir = std::path::absolute(&params.workdir);
        let workdir = workdir.unwrap_or_else(|_| params.workdir.clone());
        let servers = messages::mcp_servers(wishes.mcp_servers, hello.takes_urls)?;
        let request = json!({"cwd": workdir, "mcpServers": servers});
        let opened = session.request("session/new", &request).await?;
        session.id = opened["sessionId"]
            .as_str()
            .ok_or_else(|| refused("session/new", "the answer has no `sessionId`"))?
            .to_owned();
        Ok(session)
    }

    /// One request before the first prompt. Reports of the agent meanwhile belong to no turn.
    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, ProviderError> {
        let asked = self.connection.ask(method, params).await;
        loop {
            match self.connection.next().await?.content {
                Content::Answer { id, result } if id == asked => {
                    return result.map_err(|message| refused(method, &message));
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
        let before = self.invocation.container_use();
        let began = Instant::now();
        let instructions = self.instructions.take();
        let text = instructions.map_or(text.to_owned(), |before| format!("{before}\n\n{text}"));
        let mut turn = Turn::default();
        let asked = self
            .connection
            .ask("session/prompt", &messages::prompt(&self.id, &text))
            .await;
        let answer = self.follow(asked, timeout, &mut turn).await;
        let result = self.conclude(answer, turn, began.elapsed());
        let container = self.invocation.container();
        inside::conclude(result, container.as_deref(), before.unwrap_or_default()).await
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
        let over = assize_contracts::unix_ms_now();
        let stop = json!({"sessionId": self.id});
        self.connection.notify("session/cancel", &stop).await;
        let talk = self.answer_to(asked, turn);
        if tokio::time::timeout(CANCEL_PATIENCE, talk).await.is_err() {
            self.connection.kill();
        }
        turn.story.forget_ends_since(over);
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
                    turn.update(&params, at);
                }
                Content::Notification { .. } => {}
                Content::Request { id, method, params }
                    if method == "session/request_permission" =>
                {
                    let answer = permit(&self.permissions, &params, at, turn);
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
            Ok(Ended::Answered(Ok(answer))) => stopped(&answer, &mut result),
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
        match self.invocation.container() {
            Some(container) => container.end().await.map_err(|error| {
                ProviderError::service(format!("the container was not removed: {error}"))
            }),
            None => Ok(()),
        }
    }
}

fn refused(method: &str, message: &str) -> ProviderError {
    let message = format!("the agent refused `{method}`: {message}");
    ProviderError::service(message).with_code("acp_refused")
}

/// Answers by what the suite allows. Options are chosen by their kind, never by their place.
pub(super) fn permit(
    permissions: &PermissionConfig,
    params: &Value,
    at: i64,
    turn: &mut Turn,
) -> Value {
    let Some(request) = PermissionRequest::read(params) else {
        return messages::cancelled();
    };
    let call = &request.call;
    let listed = &permissions.allowed_tools;
    let mut names = [&call.name, &call.kind, &call.title].into_iter().flatten();
    let is_listed = names.any(|name| listed.contains(name));
    turn.report_tool(call, at);
    match permissions.auto_approve || is_listed {
        true => request.select(["allow_once", "allow_always"]),
        false => {
            turn.story
                .deny_tool(&call.id, "tool", &Value::Null, Some(at));
            request.select(["reject_once", "reject_always"])
        }
    }
}

/// The end of a prompt.
enum Ended {
    Answered(Result<Value, String>),
    OutOfTime,
}

/// Reads the agent's reason to stop. Its `usage` is ignored: some agents count the whole prompt in it, some the last call.
fn stopped(answer: &Value, result: &mut PromptResult) -> Option<ProviderError> {
    let failed =
        |message: &str, code: &str| Some(ProviderError::agent(message.to_owned()).with_code(code));
    match answer.get("stopReason").and_then(Value::as_str) {
        Some("end_turn") => None,
        Some("max_turn_requests") => {
            result.completion_reason = CompletionReason::ToolLimit;
            None
        }
        Some("max_tokens") => failed("the model reached its limit of tokens", "max_tokens"),
        Some("refusal") => failed("the agent refused to go on", "refusal"),
        Some("cancelled") => failed("the agent cancelled its turn itself", "cancelled"),
        _ => failed(
            &format!("the agent stopped for an unknown reason: {answer}"),
            "no_result",
        ),
    }
}

impl Turn {
    /// Adds an update. Unknown ones are ignored.
    pub(super) fn update(&mut self, params: &Value, at: i64) {
        match Update::read(params) {
            Some(Update::Text(text)) => self.story.extend_text(&text, Some(at)),
            Some(Update::Thought(text)) => self.story.think_more(&text, Some(at)),
            Some(Update::Tool(call)) => self.report_tool(&call, at),
            Some(Update::Cost(cost)) => self.cost = Some(cost),
            None => {}
        }
    }

    /// Begins a call that is new, completes what is known of it, and ends it when it is reported as ended.
    fn report_tool(&mut self, call: &ToolCall, at: i64) {
        let story = &mut self.story;
        let id = &call.id;
        if !story.knows_tool(id) {
            let name = call.name.as_deref().or(call.kind.as_deref());
            let input = json!({"title": call.title});
            story.begin_tool(id, name.unwrap_or("tool"), input, Some(at));
        }
        if let Some(input) = &call.input {
            story.set_input(id, input.clone());
        }
        let Some(success) = call
            .succeeded
            .map(|done| done && !has_exit_code(&call.output))
        else {
            return;
        };
        let end = ToolEnd {
            success: Some(success),
            error: (!success).then(|| match &call.output {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
            output: call.output.clone(),
            duration_ms: None,
        };
        story.end_tool(id, end, Some(at));
    }
}

/// Some agents complete a call whose command failed, and report its exit code.
fn has_exit_code(output: &Value) -> bool {
    let codes = ["/metadata/exit", "/exit_code", "/exitCode"];
    let code = codes.iter().find_map(|path| output.pointer(path)?.as_i64());
    code.is_some_and(|code| code != 0)
}
