//! `assize record` with real agents: four wire formats, every token of the script.

use crate::good_runs::{Tokens, expected, tokens};
use crate::offline::{LLM, Offline};
use serde_json::Value;

const PROMPT: &str = "Create a file out.txt with the word hi";

pub(crate) fn claude_code() {
    let command = [
        "claude",
        "-p",
        PROMPT,
        "--model",
        "claude-sonnet-4-5",
        "--allowedTools",
        "Bash",
    ];
    let variables = [
        ("ANTHROPIC_BASE_URL", LLM),
        ("ANTHROPIC_API_KEY", "none"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    check(
        &Offline::new(&[]),
        &variables,
        &command,
        "anthropic-messages",
    );
}

pub(crate) fn codex() {
    let offline = Offline::new(&[("home/codex/.keep", "")]);
    let home = offline.path("home/codex");
    let base = format!("{LLM}/v1");
    let command = [
        "codex",
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "-m",
        "gpt-5.1-codex",
        "-c",
        "model_provider=p",
        "-c",
        "model_providers.p.name=p",
        "-c",
        "model_providers.p.base_url={openai_url}",
        "-c",
        "model_providers.p.env_key=OPENAI_API_KEY",
        "-c",
        "model_providers.p.wire_api=responses",
        "-c",
        "check_for_update_on_startup=false",
        "-c",
        "analytics.enabled=false",
        PROMPT,
    ];
    let variables = [
        ("OPENAI_BASE_URL", base.as_str()),
        ("OPENAI_API_KEY", "none"),
        ("CODEX_HOME", home.to_str().unwrap()),
    ];
    check(&offline, &variables, &command, "openai-responses");
}

pub(crate) fn gemini() {
    let settings = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"enableAutoUpdate":false}}"#;
    let offline = Offline::new(&[("home/.gemini/settings.json", settings)]);
    let command = ["gemini", "-p", PROMPT, "--yolo", "-m", "gemini-2.5-pro"];
    let variables = [
        ("GOOGLE_GEMINI_BASE_URL", LLM),
        ("GEMINI_API_KEY", "none"),
        ("GEMINI_TELEMETRY_ENABLED", "false"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ];
    check(&offline, &variables, &command, "gemini");
}

pub(crate) fn opencode() {
    let config = r#"{
      "autoupdate": false, "share": "disabled", "model": "p/fake-model", "small_model": "p/fake-model",
      "provider": { "p": {
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": "{env:OPENAI_BASE_URL}", "apiKey": "none" },
        "models": { "fake-model": {} }
      } }
    }"#;
    let offline = Offline::new(&[("home/opencode.json", config)]);
    let file = offline.path("home/opencode.json");
    let base = format!("{LLM}/v1");
    let command = ["opencode", "run", "--auto", PROMPT];
    let variables = [
        ("OPENAI_BASE_URL", base.as_str()),
        ("OPENCODE_CONFIG", file.to_str().unwrap()),
        ("OPENCODE_PERMISSION", r#"{"*":"allow"}"#),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ];
    check(&offline, &variables, &command, "openai-chat");
}

/// Records the command and holds the profile against the script and the LLM's own log.
fn check(offline: &Offline, variables: &[(&str, &str)], command: &[&str], api: &str) {
    let variables: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut argv = vec!["env"];
    argv.extend(variables.iter().map(String::as_str));
    argv.extend([env!("CARGO_BIN_EXE_assize"), "record", "--json", "--"]);
    argv.extend(command);
    let output = offline.command(&argv);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let profile: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(profile["exit"], 0);
    assert_eq!(tokens(&profile), expected(&offline.wire()), "{profile:#}");
    assert_ne!(tokens(&profile), Tokens::default());
    let calls = profile["modelCalls"].as_array().unwrap();
    assert!(
        calls
            .iter()
            .all(|call| call["api"] == api && call["status"] == 200),
        "{profile:#}"
    );
    let main: Vec<&Value> = calls.iter().filter(|call| call["side"] == false).collect();
    assert_eq!(
        (main.len(), &profile["turns"]),
        (2, &Value::from(2)),
        "{profile:#}"
    );
    assert!(
        main.iter().all(|call| call["ttftMs"].is_number()),
        "{profile:#}"
    );
    let tools = profile["toolCalls"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "{profile:#}");
    assert!(
        tools[0]["input"].to_string().contains("echo hi > out.txt"),
        "{profile:#}"
    );
    assert!(tools[0]["output"].to_string().contains("hi"), "{profile:#}");
    assert_eq!(profile["text"], "Done: out.txt now contains the word hi.");
    assert_eq!(
        std::fs::read_to_string(offline.path("out.txt")).unwrap(),
        "hi\n"
    );
}
