//! The few messages of the Agent Client Protocol, version 1, that a client without files and terminals needs.
//!
//! Requests are built as JSON. Messages of agents are read field by field: a field that is new, missing or of another type
//! leaves its part out and never ends a session.

use crate::mcp::{self, Reach};
use assize_contracts::ProviderError;
use serde_json::{Value, json};

/// The version of the protocol.
pub(super) const VERSION: u64 = 1;

pub(super) fn initialize() -> Value {
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
        "clientInfo": {"name": "assize", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The answer to `initialize`.
pub(super) struct Hello {
    /// The version that the agent speaks.
    pub(super) version: Value,
    /// The agent accepts MCP servers by URL.
    pub(super) takes_urls: bool,
}

impl Hello {
    pub(super) fn read(answer: &Value) -> Self {
        let http = answer.pointer("/agentCapabilities/mcpCapabilities/http");
        Self {
            version: answer["protocolVersion"].clone(),
            takes_urls: http.and_then(Value::as_bool).unwrap_or(false),
        }
    }
}

/// MCP servers for `session/new`.
pub(super) fn mcp_servers(
    servers: Vec<mcp::Server>,
    takes_urls: bool,
) -> Result<Value, ProviderError> {
    let pairs = |map: &mut dyn Iterator<Item = (String, String)>| -> Vec<Value> {
        map.map(|(name, value)| json!({"name": name, "value": value}))
            .collect()
    };
    let offer = |mcp::Server { name, reach }: mcp::Server| match reach {
        Reach::Program { command, args, env } => Ok(json!({
            "name": name, "command": mcp::found(&command), "args": args, "env": pairs(&mut env.into_iter()),
        })),
        Reach::Url { url, headers } if takes_urls => Ok(json!({
            "type": "http", "name": name, "url": url, "headers": pairs(&mut headers.into_iter()),
        })),
        Reach::Url { .. } => {
            let message = format!("the agent takes no MCP servers by URL, and `{name}` is one");
            Err(ProviderError::service(message).with_code("mcp_unsupported"))
        }
    };
    let servers: Result<Vec<Value>, ProviderError> = servers.into_iter().map(offer).collect();
    Ok(Value::Array(servers?))
}

pub(super) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// A report of an agent during a prompt.
pub(super) enum Update {
    Text(String),
    Thought(String),
    Tool(Box<ToolCall>),
    /// The cost of the session so far, in US dollars.
    Cost(f64),
}

impl Update {
    /// Of the parameters of `session/update`. `None` for kinds that are unknown or not used here.
    pub(super) fn read(params: &Value) -> Option<Self> {
        let update = params.get("update")?;
        match update.get("sessionUpdate")?.as_str()? {
            "agent_message_chunk" => text_of(&update["content"]).map(Self::Text),
            "agent_thought_chunk" => text_of(&update["content"]).map(Self::Thought),
            "tool_call" => {
                let mut call = ToolCall::read(update)?;
                // The protocol's default, which holds for new calls only.
                call.kind.get_or_insert_with(|| "other".to_owned());
                Some(Self::Tool(Box::new(call)))
            }
            "tool_call_update" => ToolCall::read(update).map(Box::new).map(Self::Tool),
            "usage_update" => {
                let cost = &update["cost"];
                let is_dollars = cost["currency"] == "USD";
                cost["amount"]
                    .as_f64()
                    .filter(|_| is_dollars)
                    .map(Self::Cost)
            }
            _ => None,
        }
    }
}

/// The fields that a message reports about a tool call; absent where it reports nothing new.
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: Option<String>,
    /// The kind of tool: `read`, `edit`, `execute`, …
    pub(super) kind: Option<String>,
    pub(super) title: Option<String>,
    /// `None` while the call is under way.
    pub(super) succeeded: Option<bool>,
    pub(super) input: Option<Value>,
    /// The raw output, else the text that the agent shows for the call.
    pub(super) output: Value,
}

impl ToolCall {
    pub(super) fn read(call: &Value) -> Option<Self> {
        let word = |name: &str| call.get(name)?.as_str().map(str::to_owned);
        let value = |name: &str| call.get(name).filter(|value| !value.is_null()).cloned();
        Some(Self {
            id: word("toolCallId")?,
            name: word("name"),
            kind: word("kind"),
            title: word("title"),
            succeeded: match call.get("status").and_then(Value::as_str) {
                Some("completed") => Some(true),
                Some("failed") => Some(false),
                _ => None,
            },
            input: value("rawInput"),
            output: value("rawOutput").unwrap_or_else(|| shown(&call["content"])),
        })
    }
}

/// The text that an agent shows for a call.
fn shown(contents: &Value) -> Value {
    let contents = contents.as_array().into_iter().flatten();
    let texts = contents
        .filter(|content| content["type"] == "content")
        .filter_map(|content| text_of(&content["content"]));
    Value::String(texts.collect())
}

/// The text of a content block of text.
fn text_of(block: &Value) -> Option<String> {
    let is_text = block["type"] == "text";
    block["text"]
        .as_str()
        .filter(|_| is_text)
        .map(str::to_owned)
}

/// The parameters of `session/request_permission`.
pub(super) struct PermissionRequest {
    pub(super) call: ToolCall,
    options: Vec<PermissionOption>,
}

struct PermissionOption {
    id: String,
    kind: String,
}

impl PermissionRequest {
    pub(super) fn read(params: &Value) -> Option<Self> {
        let option = |option: &Value| {
            Some(PermissionOption {
                id: option["optionId"].as_str()?.to_owned(),
                kind: option["kind"].as_str()?.to_owned(),
            })
        };
        let options = params["options"].as_array().into_iter().flatten();
        Some(Self {
            call: ToolCall::read(&params["toolCall"])?,
            options: options.filter_map(option).collect(),
        })
    }

    /// The answer that selects the first option of the first kind that is offered.
    pub(super) fn select(&self, kinds: [&str; 2]) -> Value {
        let of_kind = |kind| self.options.iter().find(|option| option.kind == kind);
        kinds.into_iter().find_map(of_kind).map_or_else(
            cancelled,
            |option| json!({"outcome": {"outcome": "selected", "optionId": option.id}}),
        )
    }
}

/// The answer to a request for permission that selects nothing.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}
