//! A long conversation, directly and through the proxy, all in this process.

use crate::measure::own_cpu;
use assize_agents::capture::{Proxy, Service, SessionOptions, Upstreams};
use serde_json::json;
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A whole answer, so that nothing looks as if it had to be tried again.
const ANSWER: &str = r#"{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":1}}"#;

/// Processor time per request, direct and through the proxy.
pub(crate) fn requests(rounds: u32) -> [f64; 2] {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        tokio::spawn(serve(listener));
        let given = BTreeMap::from([(Service::Anthropic, format!("http://{host}"))]);
        let proxy = Proxy::start(0, None).await.unwrap();
        let upstreams = Upstreams::resolve(&given, |_| None).unwrap();
        let session = proxy.open(upstreams, SessionOptions::default());
        let url = session.root_url(Service::Anthropic);
        let (proxied, prefix) = url["http://".len()..].split_once('/').unwrap();
        let body = conversation();
        let direct = [host.as_str(), "/v1/messages"];
        let through = [proxied, &format!("/{prefix}/v1/messages")];
        let mut best = [f64::MAX; 2];
        for _ in 0..4 {
            for (place, [host, path]) in [direct, through].into_iter().enumerate() {
                let before = own_cpu();
                ask(host, path, &body, rounds).await;
                session.settle().await;
                best[place] = best[place].min((own_cpu() - before) / f64::from(rounds));
            }
        }
        best
    })
}

/// Two megabytes: many tool calls with their results, as an agent sends them each time.
fn conversation() -> Vec<u8> {
    let output =
        "test result: ok. 41 passed; 0 failed; 0 ignored; finished in 0.21s\n\t\"quoted\"\n"
            .repeat(60);
    let mut messages = vec![json!({"role": "user", "content": "mend the tests"})];
    for number in 0..380 {
        let id = format!("toolu_{number}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "bash", "input": {"command": "cargo test"}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": output}]}));
    }
    let tools = json!([{"name": "bash", "input_schema": {"type": "object"}}]);
    let body = json!({"model": "m", "max_tokens": 100, "tools": tools, "messages": messages});
    serde_json::to_vec(&body).unwrap()
}

async fn ask(host: &str, path: &str, body: &[u8], rounds: u32) {
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut answer = vec![0; 4096];
    for _ in 0..rounds {
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut known = 0;
        while !answer[..known].ends_with(ANSWER.as_bytes()) {
            match stream.read(&mut answer[known..]).await.unwrap() {
                0 => panic!("no answer"),
                length => known += length,
            }
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
}

/// Answers every request when it has been read to its end.
async fn serve(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut buffer = vec![0; 1 << 16];
            let mut head = Vec::new();
            loop {
                head.clear();
                let begun = loop {
                    match stream.read(&mut buffer).await {
                        Ok(length @ 1..) => head.extend_from_slice(&buffer[..length]),
                        _ => return,
                    }
                    if let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                        break end + 4;
                    }
                };
                let text = String::from_utf8_lossy(&head[..begun]).to_ascii_lowercase();
                let length = text.split("content-length: ").nth(1).unwrap();
                let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
                let mut left = length - (head.len() - begun);
                while left > 0 {
                    match stream.read(&mut buffer).await {
                        Ok(read @ 1..) => left -= read,
                        _ => return,
                    }
                }
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
                    ANSWER.len()
                );
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}
