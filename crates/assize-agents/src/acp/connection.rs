//! JSON-RPC with a program, one message per line.

use assize_contracts::ProviderError;
use assize_process::{Captured, LineSplitter, Running, Stream};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::{Duration, UNIX_EPOCH};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;

/// A longer message is cut, and then it is none.
const LONGEST_LINE: usize = 16 << 20;

/// How long the program may take to end after its stdin is closed.
const END_PATIENCE: Duration = Duration::from_secs(3);

const LAST_WORDS: usize = 500;

/// A program that is talked to.
pub(super) struct Connection {
    running: Running,
    stdin: Option<pipe::Sender>,
    lines: LineSplitter,
    waiting: VecDeque<Message>,
    stderr: Captured,
    started_ms: i64,
    last_id: u64,
}

/// What the program said.
pub(super) struct Message {
    /// When, in milliseconds since 1970.
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
    pub(super) fn new(mut running: Running) -> Self {
        let since_1970 = running.started_at().duration_since(UNIX_EPOCH);
        Self {
            stdin: running.take_stdin(),
            running,
            lines: LineSplitter::new(LONGEST_LINE),
            waiting: VecDeque::new(),
            stderr: Captured::default(),
            started_ms: since_1970.unwrap_or_default().as_millis() as i64,
            last_id: 0,
        }
    }

    /// Asks for something. The answer comes as a message with this id.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<u64, ProviderError> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).await?;
        Ok(id)
    }

    pub(super) async fn tell(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<(), ProviderError> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send(&message).await
    }

    pub(super) async fn answer(
        &mut self,
        id: Value,
        result: &impl Serialize,
    ) -> Result<(), ProviderError> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await
    }

    /// Says that something cannot be done here.
    pub(super) async fn refuse(&mut self, id: Value, method: &str) -> Result<(), ProviderError> {
        let error = json!({"code": -32601, "message": format!("`{method}` is not offered")});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
            .await
    }

    async fn send(&mut self, message: &Value) -> Result<(), ProviderError> {
        let line = format!("{message}\n");
        let Some(stdin) = &mut self.stdin else {
            return Err(ProviderError::service("the agent's stdin is closed"));
        };
        // A program that has ended says why on its other streams.
        let _ = stdin.write_all(line.as_bytes()).await;
        Ok(())
    }

    /// The next message. An error when the program has ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Message, ProviderError> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            match self.running.next().await {
                Ok(Some(chunk)) if chunk.stream == Stream::Stdout => {
                    for line in self.lines.push(&chunk) {
                        let at = self.started_ms + line.at.as_millis() as i64;
                        let content = serde_json::from_str(&line.text()).ok().and_then(read);
                        self.waiting
                            .extend(content.map(|content| Message { at, content }));
                    }
                }
                Ok(Some(chunk)) => self.stderr.push(chunk),
                Ok(None) => return Err(self.ended().await),
                Err(error) => {
                    let message = error.to_string();
                    return Err(ProviderError::service(message).with_code("keeper_lost"));
                }
            }
        }
    }

    async fn ended(&mut self) -> ProviderError {
        let status = self.running.wait().await.ok().and_then(|exit| exit.status);
        let status = status.map_or("no exit code".to_owned(), |status| status.to_string());
        let said = self.stderr.last_words(LAST_WORDS);
        let said = match said.is_empty() {
            true => String::new(),
            false => format!(": {said}"),
        };
        ProviderError::agent(format!("the agent ended with {status}{said}"))
            .with_code("agent_ended")
    }

    /// Ends the program: politely by closing its stdin, then by its keeper.
    pub(super) async fn close(&mut self) {
        self.stdin = None;
        let ending = self.running.wait();
        if tokio::time::timeout(END_PATIENCE, ending).await.is_err() {
            self.running.cancel();
            let _ = self.running.wait().await;
        }
    }

    /// Ends the program without asking.
    pub(super) fn kill(&self) {
        self.running.kill();
    }
}

/// What is no message is left out: programs print banners.
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
