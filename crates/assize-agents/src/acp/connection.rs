//! JSON-RPC with a program, one message per line.

use crate::line_program::{LineProgram, Silence};
use assize_contracts::ProviderError;
use assize_process::Running;
use serde::Serialize;
use serde_json::{Value, json};

/// A program that is talked to.
pub(super) struct Connection {
    program: LineProgram,
    last_id: u64,
}

/// A message of the program.
pub(super) struct Message {
    /// Its arrival, in milliseconds since 1970.
    pub(super) at: i64,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// It wants an answer.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Answer {
        id: u64,
        result: Result<Value, String>,
    },
}

impl Connection {
    pub(super) fn new(running: Running) -> Self {
        Self {
            program: LineProgram::new(running),
            last_id: 0,
        }
    }

    /// Asks for something. The answer comes as a message with this id.
    pub(super) async fn ask(&mut self, method: &str, params: &impl Serialize) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.program.write_line(message).await;
        id
    }

    pub(super) async fn notify(&mut self, method: &str, params: &impl Serialize) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.program.write_line(message).await;
    }

    pub(super) async fn answer(&mut self, id: Value, result: &impl Serialize) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.program.write_line(message).await;
    }

    /// Says that something cannot be done here.
    pub(super) async fn refuse(&mut self, id: Value, method: &str) {
        let error = json!({"code": -32601, "message": format!("`{method}` is not offered")});
        let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
        self.program.write_line(message).await;
    }

    /// The next message. An error when the program has ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Message, ProviderError> {
        loop {
            let line = self.program.next().await.map_err(|silence| match silence {
                Silence::Ended(how) => {
                    ProviderError::agent(format!("the agent {how}")).with_code("agent_ended")
                }
                Silence::KeeperLost(how) => ProviderError::service(how).with_code("keeper_lost"),
            })?;
            let content = serde_json::from_str(&line.text()).ok().and_then(read);
            if let Some(content) = content {
                let at = self.program.at(&line);
                return Ok(Message { at, content });
            }
        }
    }

    /// Ends the program: politely by closing its stdin, then by its keeper.
    pub(super) async fn close(&mut self) {
        self.program.close().await;
    }

    /// Ends the program without asking.
    pub(super) fn kill(&self) {
        self.program.kill();
    }
}

/// `None` for anything that is no message: programs print banners.
fn read(mut message: Value) -> Option<Content> {
    let params = message.get_mut("params").map(Value::take);
    let params = params.unwrap_or_default();
    let method = message.get("method").and_then(Value::as_str);
    match (method.map(str::to_owned), message.get("id").cloned()) {
        (Some(method), Some(id)) => Some(Content::Request { id, method, params }),
        (Some(method), None) => Some(Content::Notification { method, params }),
        (None, Some(id)) => {
            let result = match message.get("error") {
                Some(error) => Err(explained(error)),
                None => Ok(message
                    .get_mut("result")
                    .map(Value::take)
                    .unwrap_or_default()),
            };
            Some(Content::Answer {
                id: id.as_u64()?,
                result,
            })
        }
        (None, None) => None,
    }
}

fn explained(error: &Value) -> String {
    let message = error["message"]
        .as_str()
        .unwrap_or("an error without a message");
    match &error["data"] {
        Value::Null => message.to_owned(),
        data => format!("{message}: {data}"),
    }
}
