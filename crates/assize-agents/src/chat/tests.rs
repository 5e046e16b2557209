//! A scripted model with real tools in a real workspace.

use super::*;
use assize_contracts::{CallEnding, CompletionReason, Fault, PermissionConfig, VoidCause};
use assize_llm::testing::{Received, Reply, ScriptedEndpoint};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

/// A streamed answer: calls of tools, or a text.
pub(super) fn answer(text: &str, calls: &[(&str, Value)]) -> Reply {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            json!({"index": index, "id": format!("c{index}"), "type": "function", "function": function})
        })
        .collect();
    let reason = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let chunks = [
        json!({"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": text, "tool_calls": calls}}]}),
        json!({"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"id": "x", "model": "m", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}),
    ];
    let lines = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
    Reply::Body(200, format!("{lines}data: [DONE]\n\n"))
}

pub(super) struct Talk {
    pub(super) provider: ChatProvider,
    pub(super) handle: SessionHandle,
    pub(super) endpoint: ScriptedEndpoint,
    pub(super) workspace: TempDir,
}

async fn talk(
    more: Value,
    permissions: PermissionConfig,
    script: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static,
) -> Talk {
    try_talk(more, permissions, script).await.unwrap()
}

pub(super) async fn try_talk(
    more: Value,
    permissions: PermissionConfig,
    script: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static,
) -> Result<Talk, ProviderError> {
    let endpoint = ScriptedEndpoint::start(script).unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let mut settings = more.as_object().unwrap().clone();
    settings.insert("base_url".to_owned(), json!(endpoint.url()));
    let params = CreateSessionParams {
        system_instructions: "Be brief.".to_owned(),
        model: "m".to_owned(),
        workdir: workspace.path().to_owned(),
        provider_overrides: Arc::new(settings),
        permissions,
        ..CreateSessionParams::default()
    };
    let provider = ChatProvider::default();
    let handle = provider.create_session(&params).await?;
    Ok(Talk {
        provider,
        handle,
        endpoint,
        workspace,
    })
}

pub(super) fn allowing() -> PermissionConfig {
    PermissionConfig {
        auto_approve: true,
        ..PermissionConfig::default()
    }
}

impl Talk {
    pub(super) async fn prompt(&self, timeout: Duration) -> Result<PromptResult, ProviderError> {
        self.provider.prompt(&self.handle, "Go.", timeout).await
    }
}

pub(super) const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn tools_work_in_the_workspace_until_the_model_is_done() {
    let script = |_: &Received, number| match number {
        0 => answer(
            "",
            &[
                ("shell", json!({"command": "echo hi > out.txt; exit 3"})),
                ("write_file", json!({"path": "a/b.txt", "content": "x"})),
            ],
        ),
        1 => answer(
            "",
            &[
                ("read_file", json!({"path": "out.txt"})),
                ("list_files", json!({"path": "a"})),
            ],
        ),
        _ => answer("Done.", &[]),
    };
    let talk = talk(json!({}), allowing(), script).await;
    let result = talk.prompt(LONG).await.unwrap();
    assert_eq!(
        (result.text.as_str(), result.completion_reason),
        ("Done.", CompletionReason::Stop)
    );
    assert_eq!(result.metrics.tokens.total, Some(330));
    let calls = result.metrics.tool_calls.unwrap();
    let successes: Vec<_> = calls.iter().map(|call| call.success.unwrap()).collect();
    assert_eq!(successes, [false, true, true, true]);
    assert!(
        calls[0].error.as_ref().unwrap().contains("exit code 3"),
        "{calls:?}"
    );
    assert_eq!(
        std::fs::read_to_string(talk.workspace.path().join("a/b.txt")).unwrap(),
        "x"
    );
    let last = talk.endpoint.received().pop().unwrap().body["messages"].to_string();
    assert!(
        last.contains("hi\\n") && last.contains("b.txt") && last.contains("Be brief."),
        "{last}"
    );
    let trace = talk.provider.export_session(&talk.handle).await.unwrap();
    assert_eq!(
        (trace.model_calls.len(), trace.summary.total_tool_calls),
        (3, 4)
    );
}

#[tokio::test]
async fn nothing_outside_the_workspace_is_read_or_written() {
    let paths = ["/etc/passwd", "../x", "link/x", "a/../../x"];
    let script = move |_: &Received, number: usize| match paths.get(number) {
        Some(path) => answer(
            "",
            &[
                ("read_file", json!({"path": path})),
                ("write_file", json!({"path": path, "content": "x"})),
            ],
        ),
        None => answer("Done.", &[]),
    };
    let talk = talk(json!({}), allowing(), script).await;
    std::os::unix::fs::symlink("/etc", talk.workspace.path().join("link")).unwrap();
    let calls = talk.prompt(LONG).await.unwrap().metrics.tool_calls.unwrap();
    assert_eq!(calls.len(), 8);
    let outside =
        |error: &Option<String>| error.as_deref() == Some("the path leads out of the workspace");
    assert!(calls.iter().all(|call| outside(&call.error)), "{calls:?}");
}

#[tokio::test]
async fn a_tool_that_is_not_allowed_is_denied() {
    let permissions = PermissionConfig {
        allowed_tools: vec!["list_files".to_owned()],
        ..PermissionConfig::default()
    };
    let script = |_: &Received, number| match number {
        0 => answer(
            "",
            &[
                ("shell", json!({"command": "touch x"})),
                ("list_files", json!({"path": "."})),
            ],
        ),
        _ => answer("Done.", &[]),
    };
    let talk = talk(json!({}), permissions, script).await;
    let calls = talk.prompt(LONG).await.unwrap().metrics.tool_calls.unwrap();
    assert!(calls[0].error.as_ref().unwrap().starts_with("denied"));
    assert_eq!(calls[1].success, Some(true));
    assert!(!talk.workspace.path().join("x").exists());
}

#[tokio::test]
async fn a_model_that_never_ends_reaches_its_limit() {
    let script = |_: &Received, _| answer("", &[("list_files", json!({"path": "."}))]);
    let talk = talk(json!({"max_turns": 3}), allowing(), script).await;
    let result = talk.prompt(LONG).await.unwrap();
    assert_eq!(result.completion_reason, CompletionReason::ToolLimit);
    assert_eq!(result.metrics.tool_calls.unwrap().len(), 3);
}

#[tokio::test]
async fn time_runs_out_for_a_tool_too() {
    let script = |_: &Received, _| answer("", &[("shell", json!({"command": "sleep 600"}))]);
    let talk = talk(json!({}), allowing(), script).await;
    let result = talk.prompt(Duration::from_secs(2)).await.unwrap();
    assert_eq!(result.completion_reason, CompletionReason::Timeout);
    assert_eq!(result.metrics.tokens.total, Some(110));
    let calls = result.metrics.tool_calls.unwrap();
    assert_eq!(calls.len(), 1, "the tool was running");
    assert_eq!(calls[0].success, None);
    let trace = talk.provider.export_session(&talk.handle).await.unwrap();
    assert_eq!(trace.summary.total_tool_calls, 1);
}

/// The beginning of a streamed answer.
fn beginning() -> String {
    let chunk = json!({"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Half a"}}]});
    format!("data: {chunk}\n\n")
}

async fn turns(talk: &Talk) -> Option<u64> {
    let trace = talk.provider.export_session(&talk.handle).await.unwrap();
    trace.summary.total_turns
}

#[tokio::test]
async fn an_answer_that_broke_off_leaves_a_lower_bound() {
    let script = |_: &Received, number| match number {
        0 => Reply::Cut(beginning()),
        _ => answer("Done.", &[]),
    };
    let talk = talk(json!({}), allowing(), script).await;
    let result = talk.prompt(LONG).await.unwrap();
    let at_least = result.metrics.tokens_at_least.unwrap();
    assert_eq!(result.metrics.tokens.total, None);
    assert_eq!(at_least.total, Some(110));
    assert_eq!(turns(&talk).await, Some(1));
    let trace = talk.provider.export_session(&talk.handle).await.unwrap();
    assert_eq!(trace.model_calls.len(), 2);
    assert_eq!(trace.model_calls[0].ending, Some(CallEnding::Cut));
}

#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_is_a_failure_of_the_service() {
    let failed = format!(
        "{}data: {}\n\n",
        beginning(),
        json!({"error": {"message": "broken", "code": 500}})
    );
    let script = move |_: &Received, number| match number {
        0 => answer("", &[("list_files", json!({"path": "."}))]),
        _ => Reply::Body(200, failed.clone()),
    };
    let talk = talk(json!({}), allowing(), script).await;
    let error = talk.prompt(LONG).await.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("llm_error"));
    assert_eq!(error.message, "the answer ended in an error: broken");
    let partial = error.partial.unwrap();
    assert_eq!(partial.metrics.tokens.total, None);
    assert_eq!(turns(&talk).await, Some(1));
}

#[tokio::test]
async fn silence_until_the_end_is_no_verdict_and_half_an_answer_is_the_agents_timeout() {
    let silent = talk(json!({}), allowing(), |_: &Received, _| Reply::Silence).await;
    let error = silent.prompt(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("llm_no_answer"));
    assert_eq!(error.void_cause, Some(VoidCause::LlmNoAnswer));
    assert_eq!(error.partial.unwrap().metrics.tokens.total, None);

    let busy = |_: &Received, _| Reply::Later(503, "{}".to_owned(), 5_000);
    let busy = talk(json!({}), allowing(), busy).await;
    let error = busy.prompt(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("llm_503"));
    assert_eq!(error.void_cause, Some(VoidCause::NoModelAnswer));

    let script = |_: &Received, _| Reply::Stall(beginning());
    let stalled = talk(json!({}), allowing(), script).await;
    let result = stalled.prompt(Duration::from_secs(1)).await.unwrap();
    assert_eq!(result.completion_reason, CompletionReason::Timeout);
    assert_eq!(result.metrics.tokens.total, None);
    assert_eq!(turns(&stalled).await, Some(0));
}

#[tokio::test]
async fn a_failing_model_teaches_nothing() {
    let script =
        |_: &Received, _| Reply::Body(401, json!({"error": {"message": "who?"}}).to_string());
    let error = talk(json!({}), allowing(), script)
        .await
        .prompt(LONG)
        .await
        .unwrap_err();
    assert_eq!(
        (error.fault, error.code.as_deref()),
        (Fault::Service, Some("llm_401"))
    );
}

#[tokio::test]
async fn a_second_prompt_goes_on() {
    let talk = talk(json!({}), allowing(), |_: &Received, _| answer("Yes.", &[])).await;
    talk.prompt(LONG).await.unwrap();
    talk.prompt(LONG).await.unwrap();
    let messages = &talk.endpoint.received()[1].body["messages"];
    assert_eq!(messages.as_array().unwrap().len(), 4);
}

#[test]
fn what_cannot_work_is_named_before_a_run() {
    for (settings, place) in [
        (json!({"max_turns": 0}), "max_turns"),
        (json!({"base_url": "nowhere"}), "base_url"),
        (json!({"tools": ["hammer"]}), "tools"),
        (json!({"api": "mistral"}), "api"),
        (json!({"mcp_timeout_ms": 0}), "mcp_timeout_ms"),
        (
            json!({"mcpServers": {"docs": {"command": ""}}}),
            "mcp_servers",
        ),
    ] {
        let error = ChatSettings::checked(settings.as_object().unwrap()).unwrap_err();
        assert_eq!(error.path[0], place);
    }
}

#[cfg(not(feature = "mcp"))]
#[test]
fn a_build_without_servers_says_how_to_get_them() {
    let settings = json!({"mcp_servers": {"docs": {"command": "docs-server"}}});
    let error = ChatSettings::checked(settings.as_object().unwrap()).unwrap_err();
    assert_eq!(error.path, ["mcp_servers"]);
    assert!(error.hint.unwrap().contains("--features mcp"));
}
