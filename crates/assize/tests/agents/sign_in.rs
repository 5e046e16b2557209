//! Agents that sign in with a subscription instead of a key. No account was at hand: tokens are made up, and the scripted
//! LLM takes them all. The tests look at what the agents send, what they are given, and what is kept.

use crate::agents::{Agent, CLAUDE_CODE, CODEX, SCENARIO};
use crate::offline::{LLM, Offline, repository};
use serde_json::{Value, json};
use std::path::Path;

const ACCESS: &str = "sk-ant-oat01-made-up-access-0123456789";
const REFRESH: &str = "sk-ant-ort01-made-up-refresh-0123456789";

/// In an hour, in milliseconds since 1970.
fn soon() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_millis() + 3_600_000
}

/// The agent's suite, by the login of the user. A key is there as well, and must not be taken.
fn suite(agent: &Agent, upstream: &str) -> Offline {
    let offline = agent.suite(SCENARIO).with_llm(&["--show-keys"]);
    let suite = std::fs::read_to_string(offline.path("assize.yaml")).unwrap();
    let suite = suite.replacen("model:", "login: user, model:", 1);
    let capture = format!("capture: {{ upstream: {{ {upstream} }} }}");
    offline.write("assize.yaml", &format!("{suite}{capture}\n"));
    offline
}

/// A pass whose requests carry the token; nothing of the login is left anywhere, and the user's own is as it was.
fn check(agent: &Agent, offline: &Offline, stored: (&str, &str), secrets: &[&str]) -> Value {
    let (file, content) = stored;
    let row = agent.run(offline).remove(0);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(row["subscription"], true, "{row:#}");
    for call in offline.wire() {
        let sent = call["headers"]["authorization"]
            .as_str()
            .unwrap_or_default();
        assert_eq!(sent, format!("Bearer {}", secrets[0]), "{call:#}");
        assert_eq!(call["headers"]["x-api-key"], Value::Null);
    }
    assert_eq!(offline.read(file), content, "the user's own login");
    let runs = offline.path(".assize");
    for secret in secrets {
        assert_eq!(holding(&runs, secret), None);
        assert_eq!(holding(&offline.path("tmp"), secret), None);
    }
    let report = offline.run_directory().join("report");
    let said = holding(&report, "signed in with a subscription");
    assert!(said.is_some(), "the report does not tell how it signed in");
    row
}

/// A file below a directory that holds a text.
fn holding(directory: &Path, text: &str) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).find_map(|path| {
        if path.is_dir() {
            return holding(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let has = bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        has.then_some(path)
    })
}

pub(crate) fn claude_code() {
    let offline = suite(&CLAUDE_CODE, &format!("anthropic: '{LLM}'"));
    let login = json!({ "claudeAiOauth": {
        "accessToken": ACCESS, "refreshToken": REFRESH, "expiresAt": soon() as u64,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
    }});
    let file = "home/.claude/.credentials.json";
    let content = login.to_string();
    offline.write(file, &content);
    check(&CLAUDE_CODE, &offline, (file, &content), &[ACCESS, REFRESH]);
    assert_eq!(offline.names(), "", "hosts that were looked for");
}

pub(crate) fn claude_code_by_a_variable() {
    let offline = suite(&CLAUDE_CODE, &format!("anthropic: '{LLM}'"));
    let offline = offline.and_environment("CLAUDE_CODE_OAUTH_TOKEN", ACCESS);
    check(
        &CLAUDE_CODE,
        &offline,
        ("home/.claude/.credentials.json", ""),
        &[ACCESS],
    );
}

/// Codex asks other services of the account's host as well; see docs/agents.md.
pub(crate) fn codex() {
    let offline = suite(&CODEX, &format!("openai: '{LLM}/backend-api/codex'"));
    let script = repository().join("tests/agents/login.py");
    let made = std::process::Command::new("python3").arg(script).output();
    let content = String::from_utf8(made.unwrap().stdout).unwrap();
    let login: Value = serde_json::from_str(&content).unwrap();
    let token = |name: &str| login["tokens"][name].as_str().unwrap().to_owned();
    let file = "home/.codex/auth.json";
    offline.write(file, &content);
    let secrets = ["access_token", "refresh_token", "id_token"].map(token);
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    check(&CODEX, &offline, (file, &content), &secrets);
    let names: std::collections::BTreeSet<String> =
        offline.names().split(' ').map(str::to_owned).collect();
    assert!(names.iter().all(|name| name == "chatgpt.com"), "{names:?}");
}
