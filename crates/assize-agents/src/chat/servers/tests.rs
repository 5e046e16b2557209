//! A real server as a program and behind a URL, well behaved and not; only the model is scripted.

use super::*;
use crate::chat::tests::{LONG, Talk, allowing, answer, try_talk};
use assize_contracts::{
    CompletionReason, Fault, PermissionConfig, SessionProvider, ToolCallRecord, TraceEvent,
};
use assize_llm::testing::{Received, Reply};
use serde_json::json;
use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/mcp/server.py");

/// A session with one server, whose model calls one tool after another and then is done.
async fn talk(server: Value, calls: &[(&str, Value)]) -> Result<Talk, ProviderError> {
    talk_with(json!({"mcp_servers": {"test": server}}), allowing(), calls).await
}

async fn talk_with(
    settings: Value,
    permissions: PermissionConfig,
    calls: &[(&str, Value)],
) -> Result<Talk, ProviderError> {
    let calls: Vec<(String, Value)> = calls
        .iter()
        .map(|(name, arguments)| (format!("test__{name}"), arguments.clone()))
        .collect();
    let script = move |_: &Received, number: usize| match calls.get(number) {
        Some((name, arguments)) => answer("", &[(name, arguments.clone())]),
        None => answer("Done.", &[]),
    };
    try_talk(settings, permissions, script).await
}

fn program(mode: &str) -> Value {
    json!({"command": ["python3", SERVER], "args": [mode], "env": {"COLOUR": "red"}})
}

/// The last message to the model.
fn last_message(talk: &Talk) -> String {
    let request = talk.endpoint.received().pop().unwrap();
    let last = request.body["messages"].as_array().unwrap().last().cloned();
    last.unwrap()["content"].as_str().unwrap().to_owned()
}

/// Calls one tool of the server and returns the result that the model received, and the call as it was recorded.
async fn call(server: Value, name: &str, arguments: Value) -> (String, ToolCallRecord) {
    let talk = talk(server, &[(name, arguments)]).await.unwrap();
    let result = talk.prompt(LONG).await.unwrap();
    let record = result.metrics.tool_calls.unwrap().remove(0);
    let said = last_message(&talk);
    talk.provider.destroy_session(&talk.handle).await.unwrap();
    (said, record)
}

async fn refused(settings: Value) -> ProviderError {
    let talk = talk_with(settings, allowing(), &[]).await;
    let error = talk.err().expect("no session is opened");
    assert_eq!(error.fault, Fault::Service);
    error
}

#[tokio::test]
async fn tools_are_offered_under_the_name_of_their_server() {
    let talk = talk(program(""), &[]).await.unwrap();
    talk.prompt(LONG).await.unwrap();
    let tools = talk.endpoint.received()[0].body["tools"].clone();
    let tools = tools.as_array().unwrap();
    let lookup = |tool: &&Value| tool["function"]["name"] == "test__lookup";
    let lookup = &tools.iter().find(lookup).unwrap()["function"];
    assert_eq!(lookup["description"], "Looks a word up in the glossary.");
    assert_eq!(lookup["parameters"]["required"], json!(["word"]));
    // Four of our own, and both pages of the server's.
    assert_eq!(tools.len(), 4 + 13);
}

#[tokio::test]
async fn servers_of_the_newest_revision_alone_are_understood() {
    let (said, _) = call(program("modern"), "structured", json!({})).await;
    assert_eq!(said, r#"{"answer":42}"#);
    let error = refused(json!({"mcp_servers": {"test": program("unwilling")}})).await;
    let expected = "the MCP server `test` refused: `initialize` is not for you";
    assert_eq!(error.message, expected);
}

#[tokio::test]
async fn a_result_goes_to_the_model_and_into_the_trace() {
    let calls = [("lookup", json!({"word": "assize"}))];
    let talk = talk(program(""), &calls).await.unwrap();
    let result = talk.prompt(LONG).await.unwrap();
    let workspace = talk.workspace.path().canonicalize().unwrap();
    let expected = format!("assize: a word of the test, in {}", workspace.display());
    assert_eq!(last_message(&talk), expected);
    let record = result.metrics.tool_calls.unwrap().remove(0);
    assert_eq!(
        (record.name.as_str(), record.success),
        ("test__lookup", Some(true))
    );
    let trace = talk.provider.export_session(&talk.handle).await.unwrap();
    let calls: Vec<_> = trace
        .events
        .iter()
        .filter_map(|event| match &**event {
            TraceEvent::ToolCall {
                input,
                output,
                duration_ms,
                ..
            } => Some((input.clone(), output.clone(), duration_ms.is_some())),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [(json!({"word": "assize"}), json!(expected), true)]);
}

#[tokio::test]
async fn a_server_has_its_variables_and_not_the_key() {
    let (said, _) = call(program(""), "variable", json!({"name": "COLOUR"})).await;
    assert_eq!(said, "red");
    let (said, _) = call(program(""), "variable", json!({"name": "OPENAI_API_KEY"})).await;
    assert_eq!(said, "not set");
}

#[tokio::test]
async fn every_kind_of_result_becomes_text() {
    let (said, _) = call(program(""), "structured", json!({})).await;
    assert_eq!(said, r#"{"answer":42}"#);
    let (said, _) = call(program(""), "picture", json!({})).await;
    assert_eq!(said, "see\n[image/png, 300 bytes, not shown]");
    let (said, record) = call(program(""), "fail", json!({})).await;
    assert_eq!(said, "the tool reports an error\nthere is no such thing");
    assert_eq!(record.success, Some(false));
    let (said, _) = call(program(""), "ask", json!({})).await;
    assert!(said.starts_with("was answered"), "{said}");
}

#[tokio::test]
async fn what_a_server_does_wrong_is_an_error_of_the_tool() {
    for (name, arguments, expected) in [
        (
            "refuse",
            json!({}),
            "the MCP server `test` refused: `refuse` is not for you",
        ),
        (
            "strange",
            json!({}),
            "the MCP server `test` failed: its answer is not what was asked for",
        ),
        (
            "die",
            json!({}),
            "the MCP server `test` ended with exit code 7: ready\nout of memory",
        ),
        (
            "long",
            json!({"bytes": 20 << 20}),
            "the MCP server `test` sent a message of more than 16 megabytes",
        ),
        (
            "lookup",
            json!("a text"),
            "the arguments are no JSON object",
        ),
        ("missing", json!({}), "there is no tool `test__missing`"),
    ] {
        let (said, record) = call(program(""), name, arguments).await;
        assert_eq!(said.trim_end(), expected);
        assert_eq!(record.error.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_server_that_is_gone_stays_gone() {
    let calls = [("die", json!({})), ("lookup", json!({"word": "x"}))];
    let talk = talk(program(""), &calls).await.unwrap();
    talk.prompt(LONG).await.unwrap();
    assert!(
        last_message(&talk).contains("ended with exit code 7"),
        "{}",
        last_message(&talk)
    );
}

#[tokio::test]
async fn a_long_result_is_cut_and_a_flood_of_notes_is_skipped() {
    let (said, _) = call(program(""), "long", json!({"bytes": 100_000})).await;
    assert!(
        said.len() < 66_000 && said.ends_with("[34464 bytes cut]"),
        "{}",
        said.len()
    );
    let (said, _) = call(program(""), "notify", json!({"times": 20_000})).await;
    assert_eq!(said, "told");
}

#[tokio::test]
async fn a_tool_that_hangs_is_given_up() {
    let settings = json!({"mcp_servers": {"test": program("")}, "mcp_timeout_ms": 10_000});
    let calls = [("sleep", json!({}))];
    let talk = talk_with(settings, allowing(), &calls).await.unwrap();
    talk.prompt(LONG).await.unwrap();
    assert_eq!(
        last_message(&talk).trim_end(),
        "the MCP server `test` gave no answer within 10s"
    );
}

#[tokio::test]
async fn the_time_of_a_trial_ends_for_a_tool_too() {
    let talk = talk(program(""), &[("sleep", json!({}))]).await.unwrap();
    let began = Instant::now();
    let result = talk.prompt(Duration::from_secs(2)).await.unwrap();
    assert_eq!(result.completion_reason, CompletionReason::Timeout);
    talk.provider.destroy_session(&talk.handle).await.unwrap();
    assert!(began.elapsed() < LONG);
}

#[tokio::test]
async fn nothing_that_a_server_started_outlives_its_session() {
    let talk = talk(program(""), &[("child", json!({}))]).await.unwrap();
    talk.prompt(LONG).await.unwrap();
    let child = format!("/proc/{}", last_message(&talk));
    assert!(Path::new(&child).exists());
    talk.provider.destroy_session(&talk.handle).await.unwrap();
    assert!(!Path::new(&child).exists());
}

#[tokio::test]
async fn a_server_that_cannot_be_used_opens_no_session() {
    let patient = |server: Value| json!({"mcp_servers": {"test": server}});
    let brief = |mode: &str| {
        let mut settings = patient(program(mode));
        settings["mcp_timeout_ms"] = json!(8000);
        settings
    };
    let cases = [
        (
            patient(json!({"command": "no-such-server"})),
            "cannot be started: ",
        ),
        (
            patient(program("dead")),
            "ended with exit code 1: cannot find the database",
        ),
        (brief("silent"), "was not ready within 8s: ready"),
        (brief("junk"), "was not ready within 8s: "),
        (brief("endless"), "was not ready within 8s"),
        (
            patient(program("many")),
            "offers 500 tools or more, models take 128",
        ),
        (patient(program("none")), "offers no tools"),
        (
            patient(program("twins")),
            "offers `a.b` and `a/b`, which models would both know as `test__a_b`",
        ),
        (
            patient(json!({"url": "http://127.0.0.1:9/mcp"})),
            "cannot be reached: ",
        ),
    ];
    join_all(cases.map(|(settings, expected)| async move {
        let message = refused(settings).await.message;
        let said = message.strip_prefix("the MCP server `test` ");
        assert!(
            said.is_some_and(|said| said.starts_with(expected)),
            "{message}"
        );
    }))
    .await;
}

#[tokio::test]
async fn permissions_are_for_tools_of_servers_too() {
    let permissions = PermissionConfig {
        allowed_tools: vec!["test__structured".to_owned()],
        ..PermissionConfig::default()
    };
    let calls = [("fail", json!({})), ("structured", json!({}))];
    let settings = json!({"mcp_servers": {"test": program("")}});
    let talk = talk_with(settings, permissions, &calls).await.unwrap();
    let calls = talk.prompt(LONG).await.unwrap().metrics.tool_calls.unwrap();
    assert!(calls[0].error.as_ref().unwrap().starts_with("denied"));
    assert_eq!(calls[1].success, Some(true));
}

/// The server behind a URL. Ends with the test.
struct Remote {
    process: std::process::Child,
    url: String,
}

impl Remote {
    fn start(token: &str) -> Self {
        let mut process = std::process::Command::new("python3")
            .args([SERVER, "--http"])
            .env("TOKEN", token)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let stdout = process.stdout.take().unwrap();
        std::io::BufReader::new(stdout).read_line(&mut url).unwrap();
        Self {
            process,
            url: url.trim().to_owned(),
        }
    }

    fn with_token(&self, token: &str) -> Value {
        json!({"url": self.url, "headers": {"Authorization": format!("Bearer {token}")}})
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_server_is_reached_by_its_url() {
    let remote = Remote::start("hush");
    let (said, _) = call(remote.with_token("hush"), "structured", json!({})).await;
    assert_eq!(said, r#"{"answer":42}"#);
    let (said, _) = call(remote.with_token("hush"), "notify", json!({"times": 3})).await;
    assert_eq!(said, "told");
    let error = refused(json!({"mcp_servers": {"test": remote.with_token("wrong")}})).await;
    let expected = "the MCP server `test` cannot be reached: it answered HTTP 401 Unauthorized: `who are you?`";
    assert_eq!(error.message, expected);
}

#[tokio::test]
async fn a_flood_from_a_url_is_an_error_of_the_tool() {
    let remote = Remote::start("hush");
    let calls = [
        ("long", json!({"bytes": 20 << 20})),
        ("structured", json!({})),
    ];
    let talk = talk(remote.with_token("hush"), &calls).await.unwrap();
    let calls = talk.prompt(LONG).await.unwrap().metrics.tool_calls.unwrap();
    let expected = "the MCP server `test` failed: its answer is larger than 16 megabytes";
    assert_eq!(calls[0].error.as_deref(), Some(expected));
    assert_eq!(calls[1].error, None);
}

#[tokio::test]
async fn a_url_that_hangs_is_given_up() {
    let remote = Remote::start("hush");
    let settings =
        json!({"mcp_servers": {"test": remote.with_token("hush")}, "mcp_timeout_ms": 10_000});
    let calls = [("sleep", json!({}))];
    let talk = talk_with(settings, allowing(), &calls).await.unwrap();
    talk.prompt(LONG).await.unwrap();
    assert_eq!(
        last_message(&talk).trim_end(),
        "the MCP server `test` gave no answer within 10s"
    );
    let began = Instant::now();
    talk.provider.destroy_session(&talk.handle).await.unwrap();
    assert!(began.elapsed() < LONG);
}

#[tokio::test]
async fn what_is_no_server_behind_a_url_is_said() {
    let endpoint = assize_llm::testing::ScriptedEndpoint::start(|_: &Received, _| {
        Reply::Body(200, "<html>welcome</html>".to_owned())
    });
    let url = endpoint.unwrap().url();
    let error = refused(json!({"mcp_servers": {"test": {"url": url}}})).await;
    assert!(
        error.message.contains("no message of MCP"),
        "{}",
        error.message
    );
}
