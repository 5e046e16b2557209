//! Recordings of real agents, and a small agent of our own for what they do not show.

use super::messages::mcp_servers;
use super::session::{Turn, permit};
use super::*;
use crate::mcp;
use assize_contracts::{CompletionReason, Fault, PermissionConfig, TraceEvent};
use proptest::prelude::*;
use serde_json::Value;

fn allowing() -> PermissionConfig {
    PermissionConfig {
        auto_approve: true,
        ..PermissionConfig::default()
    }
}

/// The reports of a recorded agent, and the answers to its requests.
fn replayed(agent: &str, permissions: &PermissionConfig) -> (Turn, Vec<Value>) {
    let path = format!(
        "{}/tests/recordings/acp/{agent}.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut turn = Turn::default();
    let mut answers = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let at = line["t_ms"].as_f64().unwrap() as i64;
        let (from, message) = (&line["dir"], &line["msg"]);
        match message["method"].as_str() {
            Some("session/update") if from == "in" => turn.update(&message["params"], at),
            Some("session/request_permission") => {
                let answer = permit(permissions, &message["params"], at, &mut turn);
                answers.push(answer);
            }
            _ => {}
        }
    }
    (turn, answers)
}

#[test]
fn recorded_agents_tell_their_tools_and_their_answer() {
    for agent in [
        "claude-agent-acp",
        "codex-acp",
        "gemini-cli",
        "goose",
        "opencode",
        "qwen-code",
        "copilot",
    ] {
        let (turn, _) = replayed(agent, &allowing());
        let answer = &turn.story.answer;
        assert!(
            answer.ends_with("out.txt now contains the word hi."),
            "{agent}: {answer}"
        );
        let calls = turn.story.tool_calls();
        assert_eq!(calls.len(), 1, "{agent}: {calls:?}");
        assert_eq!(calls[0].success, Some(true), "{agent}");
        // When updates come is no measure of when tools ran.
        assert_eq!(calls[0].duration_ms, None, "{agent}");
    }
}

#[test]
fn pieces_of_a_text_are_one_text() {
    let (turn, _) = replayed("gemini-cli", &allowing());
    let texts = turn
        .story
        .events
        .iter()
        .filter(|event| matches!(***event, TraceEvent::TextOutput { .. }));
    assert_eq!(texts.count(), 2);
}

#[test]
fn permissions_are_chosen_by_what_they_mean() {
    let (_, answers) = replayed("gemini-cli", &allowing());
    assert_eq!(answers[0]["outcome"]["optionId"], "proceed_once");
    let (turn, answers) = replayed("opencode.permission-deny", &PermissionConfig::default());
    assert_eq!(answers[0]["outcome"]["optionId"], "reject");
    let calls = turn.story.tool_calls();
    assert_eq!(calls[0].success, Some(false));
    assert!(
        calls[0].error.as_ref().unwrap().starts_with("denied"),
        "{calls:?}"
    );
}

#[test]
fn a_listed_tool_is_allowed() {
    let permissions = PermissionConfig {
        allowed_tools: vec!["execute".to_owned()],
        ..PermissionConfig::default()
    };
    let (_, answers) = replayed("gemini-cli", &permissions);
    assert_eq!(answers[0]["outcome"]["optionId"], "proceed_once");
}

#[test]
fn servers_by_url_are_for_agents_that_take_them() {
    let server = || mcp::Server {
        name: "docs".to_owned(),
        reach: mcp::Reach::Url {
            url: "http://127.0.0.1:1/mcp".to_owned(),
            headers: [("X-Key".to_owned(), "k".to_owned())].into(),
        },
    };
    let none = mcp_servers(vec![server()], false).unwrap_err();
    assert_eq!(none.code.as_deref(), Some("mcp_unsupported"));
    let taken = mcp_servers(vec![server()], true).unwrap();
    assert_eq!(
        taken[0]["headers"],
        json!([{"name": "X-Key", "value": "k"}])
    );
}

proptest! {
    #[test]
    fn strange_updates_tell_nothing(kind in "[a-z_]{0,20}", id in ".{0,8}", status in "completed|failed|gone|pending", number in any::<i64>()) {
        let mut turn = Turn::default();
        for update in [
            json!({"sessionUpdate": kind, "content": number}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "kind": kind}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": kind}}),
            json!(number),
        ] {
            turn.update(&json!({"sessionId": id, "update": update}), number);
        }
    }
}

/// An agent in shell: answers in the order it is asked, `$1` decides what a prompt comes to.
const AGENT: &str = r#"
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'"$1"'}}'; }
echo "a banner that is no message"
read -r line; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r line; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
id=3
while read -r line; do
  case "$line" in *session/cancel*) say '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"cancelled"}}'; continue;; esac
  case "$1" in
    talk) update '{"sessionUpdate":"new_kind","x":1}'
          say '{"jsonrpc":"2.0","id":"f1","method":"fs/read_text_file","params":{}}'; read -r refused
          update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"prompt '$id'"}}'
          say '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn"}}';;
    hang) update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"so far"}}'; continue;;
    error) say '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"no model"}}';;
    die) echo "out of memory" >&2; exit 7;;
  esac
  id=$((id + 1))
done
"#;

struct Opened {
    provider: AcpProvider,
    handle: SessionHandle,
    _workspace: tempfile::TempDir,
}

async fn open(behaviour: &str) -> Opened {
    let workspace = tempfile::tempdir().unwrap();
    let command = json!({"command": ["sh", "-c", AGENT, "sh", behaviour]});
    let params = CreateSessionParams {
        workdir: workspace.path().to_owned(),
        provider_overrides: Arc::new(command.as_object().unwrap().clone()),
        system_instructions: "Be brief.".to_owned(),
        ..CreateSessionParams::default()
    };
    let provider = AcpProvider::default();
    let handle = provider.create_session(&params).await.unwrap();
    Opened {
        provider,
        handle,
        _workspace: workspace,
    }
}

impl Opened {
    async fn prompt(&self, timeout: Duration) -> Result<PromptResult, ProviderError> {
        self.provider.prompt(&self.handle, "hello", timeout).await
    }
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn several_prompts_go_to_one_program() {
    let opened = open("talk").await;
    assert_eq!(opened.prompt(LONG).await.unwrap().text, "prompt 3");
    assert_eq!(opened.prompt(LONG).await.unwrap().text, "prompt 4");
    let trace = opened
        .provider
        .export_session(&opened.handle)
        .await
        .unwrap();
    assert_eq!(trace.summary.total_turns, None, "nobody saw the answers");
    opened
        .provider
        .destroy_session(&opened.handle)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_agent_is_asked_to_stop_when_time_is_over() {
    let opened = open("hang").await;
    let result = opened.prompt(Duration::from_millis(500)).await.unwrap();
    assert_eq!(result.completion_reason, CompletionReason::Timeout);
    assert_eq!(result.text, "so far");
}

#[tokio::test]
async fn an_error_and_a_death_are_the_agents_fault() {
    let error = open("error").await.prompt(LONG).await.unwrap_err();
    assert_eq!(
        (error.fault, error.message.as_str()),
        (Fault::Agent, "no model")
    );
    let error = open("die").await.prompt(LONG).await.unwrap_err();
    assert_eq!(error.fault, Fault::Agent);
    assert_eq!(
        error.message,
        "the agent ended with exit code 7: out of memory"
    );
}

#[test]
fn what_cannot_work_is_named_before_a_run() {
    let refused = |settings: Value| {
        let settings = settings.as_object().unwrap().clone();
        AcpProvider::default()
            .check_overrides(&settings)
            .unwrap_err()
    };
    assert_eq!(refused(json!({})).path, ["command"]);
    assert_eq!(refused(json!({"agent": "aider"})).path, ["agent"]);
    assert!(
        refused(json!({"agent": "gemini", "comand": 1}))
            .message
            .contains("unknown field `comand`")
    );
}
