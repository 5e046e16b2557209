//! A scripted LLM on the loopback, with or without TLS, and an agent in a few lines of Python that asks it.

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Asks for a title, then to do the task, sends the tool's result, and prints the model's last word. `$FAIL` is how it ends.
pub(crate) const AGENT: &str = r#"
import json, os, sys, urllib.request
key = "sk-" + "secret-0123456789"
def ask(messages, **more):
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages, **more}).encode()
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, {"x-api-key": key})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["content"]
task = {"role": "user", "content": "Do it"}
tools = [{"name": "Bash", "input_schema": {}}]
ask([{"role": "user", "content": "A title?"}])
said = ask([task], tools=tools)
result = {"type": "tool_result", "tool_use_id": said[1]["id"], "content": "a.txt " + key}
said = ask([task, {"role": "assistant", "content": said}, {"role": "user", "content": [result]}], tools=tools)
print(said[0]["text"])
sys.exit(int(os.environ.get("FAIL", "0")))
"#;

pub(crate) struct Llm {
    /// Its base URL.
    pub(crate) url: String,
    /// The certificate that makes it trustworthy, as text.
    pub(crate) certificate: Option<String>,
    asked: Arc<AtomicUsize>,
}

impl Llm {
    pub(crate) fn new() -> Self {
        Self::serve(None)
    }

    /// Every request fails with this status.
    pub(crate) fn failing(status: u16) -> Self {
        Self::listen(None, "http", move |_| {
            (status, json!({"error": {"message": "not today"}}))
        })
    }

    pub(crate) fn with_tls() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let certificate = CertificateDer::from(made.cert.der().to_vec());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let mut llm = Self::serve(Some(Arc::new(config)));
        llm.certificate = Some(made.cert.pem());
        llm
    }

    /// The number of requests it answered.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn serve(tls: Option<Arc<ServerConfig>>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        Self::listen(tls, scheme, |request| (200, answer(request)))
    }

    fn listen(
        tls: Option<Arc<ServerConfig>>,
        scheme: &str,
        answer: impl Fn(&Value) -> (u16, Value) + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tls, count, answer) = (tls.clone(), Arc::clone(&count), answer.clone());
                std::thread::spawn(move || match tls {
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        talk(StreamOwned::new(connection, stream), &count, answer);
                    }
                    None => talk::<TcpStream>(stream, &count, answer),
                });
            }
        });
        Self {
            url,
            certificate: None,
            asked,
        }
    }
}

/// Answers requests until the other side hangs up.
fn talk<S: Read + Write>(
    mut stream: S,
    count: &AtomicUsize,
    answer: impl Fn(&Value) -> (u16, Value),
) {
    while let Some(request) = read_request(&mut stream) {
        count.fetch_add(1, Ordering::SeqCst);
        let (status, body) = answer(&request);
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() || stream.flush().is_err() {
            return;
        }
    }
}

fn read_request(stream: &mut impl Read) -> Option<Value> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Some(serde_json::from_str(body).unwrap_or_default());
            }
        }
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => bytes.extend_from_slice(&buffer[..read]),
            _ => return None,
        }
    }
}

/// A title, a tool call or the last word, with the tokens of the scripted LLM in `tests/fake-llm`.
fn answer(request: &Value) -> Value {
    let said = |content: Value, stop: &str, usage: [u64; 4]| {
        json!({
            "id": "m", "type": "message", "role": "assistant", "model": request["model"], "content": content, "stop_reason": stop,
            "usage": {"input_tokens": usage[0], "cache_read_input_tokens": usage[1], "cache_creation_input_tokens": usage[2], "output_tokens": usage[3]},
        })
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    if request["tools"].is_null() {
        return said(text("A title"), "end_turn", [142, 0, 0, 6]);
    }
    if request["messages"].to_string().contains("tool_result") {
        return said(text("All done."), "end_turn", [187, 11947, 203, 41]);
    }
    let call = json!([
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
    ]);
    said(call, "tool_use", [14, 9216, 2731, 96])
}
