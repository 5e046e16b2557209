//! The MCP servers of a session: started or reached, asked for their tools, called, ended.

mod for_models;
mod program;
mod remote;
#[cfg(test)]
mod tests;

use super::tools::{LARGEST_TEXT, ToolOutput};
use crate::mcp::{self, Reach};
use assize_contracts::{ProviderError, with_causes};
use assize_llm::ToolSpec;
use assize_process::Command;
use for_models::{name_for_models, parameters, returned, within};
use futures_util::future::{join_all, try_join_all};
use program::{ServerNotes, ServerProgram};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, ProtocolVersion, ServerJsonRpcMessage, ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::DynamicTransportError;
use serde_json::Value;
use std::time::Duration;

/// The least of what the APIs take in one request.
const MOST_TOOLS: usize = 128;

/// The length kept of a server's error message.
const LONGEST_REASON: usize = 500;

/// The time in which the servers must end, before they are left to their keepers.
const END_PATIENCE: Duration = Duration::from_secs(15);

pub(super) struct Servers {
    connected: Vec<Connected>,
    tools: Vec<Offered>,
    /// For an answer.
    patience: Duration,
}

type Client = RunningService<RoleClient, ClientConfig>;

struct Connected {
    name: String,
    client: Client,
    notes: ServerNotes,
}

/// A tool of a server under the name that the model knows.
struct Offered {
    spec: ToolSpec,
    /// Its place among the connected.
    server: usize,
    /// The server's name for it.
    name: String,
}

impl Servers {
    /// Reaches all servers and asks for their tools. `command` prepares a program of the session.
    pub(super) async fn open(
        servers: Vec<mcp::Server>,
        command: impl Fn(&str) -> Command,
        patience: Duration,
    ) -> Result<Self, ProviderError> {
        let opening = servers
            .into_iter()
            .map(|server| Connected::open(server, &command, patience));
        let opened = try_join_all(opening).await?;
        let (connected, tools): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        Ok(Self {
            tools: offer(
                connected
                    .iter()
                    .map(|server| server.name.as_str())
                    .zip(tools),
            )
            .map_err(|message| ProviderError::service(message).with_code("mcp_tools"))?,
            connected,
            patience,
        })
    }

    /// Reaches all servers, asks for their tools and ends them.
    pub(super) async fn try_out(
        servers: Vec<mcp::Server>,
        command: impl Fn(&str) -> Command,
        patience: Duration,
    ) -> Result<(), ProviderError> {
        let opening = servers
            .into_iter()
            .map(|server| Connected::open(server, &command, patience));
        let opened = try_join_all(opening).await?;
        let (connected, _): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let (tools, patience) = (Vec::new(), patience);
        Self {
            connected,
            tools,
            patience,
        }
        .close()
        .await;
        Ok(())
    }

    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec.clone()).collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.spec.name == name)
    }

    pub(super) async fn call(&self, name: &str, arguments: &Value) -> ToolOutput {
        let Some(tool) = self.tools.iter().find(|tool| tool.spec.name == name) else {
            return ToolOutput::failed(format!("there is no tool `{name}`"));
        };
        let request = CallToolRequestParams::new(tool.name.clone());
        let request = match arguments {
            Value::Object(arguments) => request.with_arguments(arguments.clone()),
            Value::Null => request,
            _ => return ToolOutput::failed("the arguments are no JSON object"),
        };
        let server = &self.connected[tool.server];
        let answer = tokio::time::timeout(self.patience, server.client.call_tool(request));
        match answer.await {
            Ok(Ok(result)) => returned(result),
            Ok(Err(error)) => ToolOutput::failed(server.explained(error)),
            Err(_) => {
                let (name, patience) = (&server.name, self.patience);
                ToolOutput::failed(format!(
                    "the MCP server `{name}` gave no answer within {patience:?}"
                ))
            }
        }
    }

    pub(super) async fn close(self) {
        let closing = self.connected.into_iter().map(|mut server| async move {
            let _ = server.client.close_with_timeout(END_PATIENCE).await;
        });
        join_all(closing).await;
    }
}

impl Connected {
    async fn open(
        server: mcp::Server,
        command: impl Fn(&str) -> Command,
        patience: Duration,
    ) -> Result<(Self, Vec<Tool>), ProviderError> {
        let mcp::Server { name, reach } = server;
        let notes = ServerNotes::default();
        let not_ready = |why: String| {
            let message = format!("the MCP server `{name}` {why}");
            ProviderError::service(message).with_code("mcp_not_ready")
        };
        let opening = async {
            let client = connect(reach, command, &notes).await?;
            let connected = Self {
                name: name.clone(),
                client,
                notes: notes.clone(),
            };
            let tools = connected.list().await?;
            Ok((connected, tools))
        };
        match tokio::time::timeout(patience, opening).await {
            Ok(opened) => opened.map_err(not_ready),
            Err(_) => {
                let words = notes.last_words().map(|words| format!(": {words}"));
                Err(not_ready(format!(
                    "was not ready within {patience:?}{}",
                    words.unwrap_or_default()
                )))
            }
        }
    }

    /// All its tools, or a few more than there may be.
    async fn list(&self) -> Result<Vec<Tool>, String> {
        let mut tools = Vec::new();
        let mut page = PaginatedRequestParams::default();
        loop {
            let listed = self.client.list_tools(Some(page)).await;
            let listed = listed.map_err(|error| {
                let why = self.notes.ended().unwrap_or_else(|| in_words(error));
                format!("did not list its tools: {why}")
            })?;
            tools.extend(listed.tools);
            match listed.next_cursor {
                Some(cursor) if tools.len() <= MOST_TOOLS => {
                    page = PaginatedRequestParams::default().with_cursor(Some(cursor));
                }
                _ => return Ok(tools),
            }
        }
    }

    fn explained(&self, error: ServiceError) -> String {
        let name = &self.name;
        match (error, self.notes.ended()) {
            (ServiceError::McpError(error), _) => {
                format!(
                    "the MCP server `{name}` refused: {}",
                    brief(error.message.into())
                )
            }
            (_, Some(how)) => format!("the MCP server `{name}` {how}"),
            (error, None) => {
                let is_closed = matches!(error, ServiceError::TransportClosed);
                let known = is_closed.then(|| self.notes.last_words()).flatten();
                let why = known.unwrap_or_else(|| in_words(error));
                format!("the MCP server `{name}` failed: {why}")
            }
        }
    }
}

/// By the greeting of all revisions but the newest, which servers that know only that one refuse.
async fn connect(
    reach: Reach,
    command: impl Fn(&str) -> Command,
    notes: &ServerNotes,
) -> Result<Client, String> {
    let newest = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::LATEST],
    };
    let refused = match greet(&reach, &command, notes, ClientLifecycleMode::Initialize).await? {
        Ok(client) => return Ok(client),
        Err(refused @ ClientInitializeError::JsonRpcError(_)) => refused,
        Err(error) => return Err(not_greeted(error, notes)),
    };
    let greeted = greet(&reach, &command, notes, newest).await?;
    greeted.map_err(|_| not_greeted(refused, notes))
}

async fn greet(
    reach: &Reach,
    command: impl Fn(&str) -> Command,
    notes: &ServerNotes,
    lifecycle: ClientLifecycleMode,
) -> Result<Result<Client, ClientInitializeError>, String> {
    let us = Implementation::new("assize", env!("CARGO_PKG_VERSION"));
    let us = ClientConfig::new(ClientCapabilities::default(), us);
    Ok(match reach {
        Reach::Program {
            command: program,
            args,
            env,
        } => {
            let command = command(program).args(args);
            let command = env
                .iter()
                .fold(command, |command, (name, value)| command.env(name, value));
            let program = ServerProgram::start(command, notes.clone()).await?;
            serve_client_with_lifecycle(us, program, lifecycle).await
        }
        Reach::Url { url, headers } => {
            let remote = remote::transport(url, headers, notes)?;
            serve_client_with_lifecycle(us, remote, lifecycle).await
        }
    })
}

fn not_greeted(error: ClientInitializeError, notes: &ServerNotes) -> String {
    match (notes.ended(), error) {
        (Some(how), _) => how,
        (None, ClientInitializeError::TransportError { error, .. }) => {
            format!("cannot be reached: {}", on_the_way(&error))
        }
        (None, ClientInitializeError::JsonRpcError(error)) => {
            format!("refused: {}", brief(error.message.into()))
        }
        (None, error) => format!("did not say hello: {}", brief(error.to_string())),
    }
}

/// Names for all tools that every API takes and that no two of them share.
fn offer<'a>(servers: impl Iterator<Item = (&'a str, Vec<Tool>)>) -> Result<Vec<Offered>, String> {
    let mut offered: Vec<Offered> = Vec::new();
    for (place, (server, tools)) in servers.enumerate() {
        if tools.is_empty() {
            return Err(format!("the MCP server `{server}` offers no tools"));
        }
        if tools.len() > MOST_TOOLS {
            let count = tools.len();
            return Err(format!(
                "the MCP server `{server}` offers {count} tools or more, models take {MOST_TOOLS}"
            ));
        }
        for tool in tools {
            let name = name_for_models(server, &tool.name);
            if let Some(other) = offered.iter().find(|other| other.spec.name == name) {
                return Err(format!(
                    "the MCP server `{server}` offers `{}` and `{}`, which models would both know as `{name}`",
                    other.name, tool.name
                ));
            }
            if offered.len() == MOST_TOOLS {
                return Err(format!(
                    "the MCP servers together offer more than the {MOST_TOOLS} tools that models take"
                ));
            }
            offered.push(Offered {
                spec: ToolSpec {
                    name,
                    description: within(
                        LARGEST_TEXT as usize,
                        tool.description.unwrap_or_default().into(),
                    ),
                    parameters: parameters(&tool.input_schema),
                },
                server: place,
                name: tool.name.into(),
            });
        }
    }
    Ok(offered)
}

/// For fuzzing: takes every line for a message of a server, and so the data of every event, and uses what they hold.
pub(crate) fn hear(bytes: &[u8]) {
    bytes.split(|byte| *byte == b'\n').for_each(use_message);
    remote::each_event(bytes, |event| {
        use_message(event.data.unwrap_or_default().as_bytes());
    });
}

fn use_message(message: &[u8]) {
    match serde_json::from_slice(message) {
        Ok(ServerJsonRpcMessage::Response(answer)) => match answer.result {
            ServerResult::ListToolsResult(list) => {
                for tool in offer([("server", list.tools)].into_iter()).unwrap_or_default() {
                    assert!(tool.spec.name.starts_with("server__"));
                    assert!(tool.spec.parameters.is_object());
                }
            }
            ServerResult::CallToolResult(result) => {
                assert!(returned(result).text.len() <= LARGEST_TEXT as usize + LONGEST_CUT_NOTE);
            }
            _ => {}
        },
        Ok(ServerJsonRpcMessage::Error(refusal)) => {
            assert!(brief(refusal.error.message.into()).len() <= LONGEST_REASON + LONGEST_CUT_NOTE);
        }
        _ => {}
    }
}

/// The note that a text was cut takes no more.
const LONGEST_CUT_NOTE: usize = 40;

fn in_words(error: ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => brief(error.message.into()),
        ServiceError::TransportSend(error) => on_the_way(&error),
        ServiceError::UnexpectedResponse => "its answer is not what was asked for".to_owned(),
        error => brief(error.to_string()),
    }
}

fn on_the_way(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<remote::RemoteError>() {
        Some(remote::RemoteError::Client(error)) => brief(error.to_string()),
        _ => brief(with_causes(&*error.error)),
    }
}

fn brief(text: String) -> String {
    within(LONGEST_REASON, text)
}
