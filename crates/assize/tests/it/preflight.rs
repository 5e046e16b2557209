//! Missing parts stop a run before anything is spent, with a sentence that names the way out.

use crate::sandbox::{Sandbox, words};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

fn suite(provider: &str, more: &str, scenario: &str) -> Sandbox {
    let suite = format!(
        "provider: {provider}\npermissions: {{ auto_approve: true }}\nmodes: {{ plain: {{}}, other: {{}} }}\n\
         scenarios: {{ paths: [s.yaml] }}\nexecution: {{ repetitions: 4, warmup: false, concurrency: 1 }}\n{more}\n"
    );
    let scenario = format!("id: s\nprompt: hello\n{scenario}\n");
    Sandbox::new(&[("assize.yaml", &suite), ("s.yaml", &scenario)])
}

/// Without any key that the machine may have.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let arguments = [&["run", "--yes"], arguments].concat();
    let mut command = sandbox.assize(&arguments);
    for name in [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
    ] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

/// Says these things, and runs nothing.
#[track_caller]
fn check(sandbox: &Sandbox, expected: &[&str]) {
    let output = run(sandbox, &[]);
    let said = words(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for expected in expected {
        assert!(said.contains(expected), "no {expected:?} in:\n{said}");
    }
    assert!(
        !sandbox.path(".assize/runs").exists(),
        "something was run:\n{said}"
    );
}

fn program(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.write(name, text);
    std::fs::set_permissions(sandbox.path(name), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn an_agent_that_is_not_installed_stops_the_run() {
    check(
        &suite("{ uses: claude-code, program: no-such-claude }", "", ""),
        &[
            "modes `plain`, `other`: the program `no-such-claude` of `claude-code` is in no directory of PATH",
            "npm install -g @anthropic-ai/claude-code",
            "nothing was run or spent",
        ],
    );
    check(
        &suite("{ uses: command, command: [no-such-program] }", "", ""),
        &["`no-such-program`"],
    );
    check(
        &suite("{ uses: command, command: [./gone.sh] }", "", ""),
        &["`./gone.sh`", "is no file"],
    );
}

#[test]
fn a_missing_key_stops_the_run() {
    for (agent, key) in [
        ("claude-code", "ANTHROPIC_API_KEY"),
        ("codex", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ] {
        let sandbox = suite(&format!("{{ uses: {agent}, program: ./agent.sh }}"), "", "");
        program(&sandbox, "agent.sh", "#!/bin/sh\necho 1.2.3\n");
        check(
            &sandbox,
            &[
                &format!("`{agent}` has no key"),
                &format!("`{key}`"),
                "export",
            ],
        );
    }
}

#[test]
fn the_key_that_wins_is_named() {
    let sandbox = suite(
        "{ uses: claude-code, program: ./agent.sh }",
        "capture: { proxy: off }",
        "",
    );
    program(
        &sandbox,
        "agent.sh",
        "#!/bin/sh\necho 'Not logged in' >&2\nexit 1\n",
    );
    let output = sandbox
        .assize(&["run", "--yes"])
        .env("ANTHROPIC_API_KEY", "not-a-key-0123456789")
        .env("CLAUDE_CODE_OAUTH_TOKEN", "not-a-token-0123456789")
        .env_remove("ANTHROPIC_AUTH_TOKEN")
        .output()
        .unwrap();
    let said = words(&output);
    assert!(
        said.contains(
            "signs in with `ANTHROPIC_API_KEY`, which goes before `CLAUDE_CODE_OAUTH_TOKEN`"
        ),
        "{said}"
    );
    // The agent did not even ask: both modes are stopped, and the reason is its own.
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("Not logged in"), "{said}");
    assert_eq!(sandbox.rows().len(), 6);
}

#[test]
fn a_set_up_that_fails_stops_the_run() {
    check(
        &suite(
            "{ uses: command, command: [echo, hi] }",
            "",
            "workspace: { setup: ['echo no such package >&2; false'] }",
        ),
        &[
            "the workspace of scenario `s` cannot be set up",
            "no such package",
            "--no-preflight",
        ],
    );
}

#[test]
fn a_set_up_that_works_serves_the_first_trial() {
    let sandbox = suite("{ uses: command, command: [cat, made] }", "", "");
    let log = sandbox.path("log");
    let setup = format!(
        "workspace: {{ setup: ['echo x >> {}; echo made > made'] }}",
        log.display()
    );
    sandbox.write(
        "s.yaml",
        &format!("id: s\nprompt: hello\n{setup}\nchecks: [ {{ output: {{ contains: made }} }} ]\n"),
    );
    let output = run(&sandbox, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    // Eight trials, eight set-ups: the one that was tried is not made again.
    assert_eq!(sandbox.read("log").lines().count(), 8);
    assert!(sandbox.rows().iter().all(|row| row["outcome"] == "pass"));
}

#[test]
fn a_judge_that_cannot_be_reached_stops_the_run() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let rubric =
        "rubric: { instructions: Judge it., criteria: [ { id: good, description: Is it good? } ] }";
    let judge = format!("judge: {{ api: openai, model: m, base_url: 'http://{closed}/v1' }}");
    check(
        &suite("{ uses: command, command: [echo, hi] }", &judge, rubric),
        &["the judge cannot be reached", "base_url"],
    );
    check(
        &suite(
            "{ uses: command, command: [echo, hi] }",
            "judge: { api: anthropic, model: m }",
            rubric,
        ),
        &[
            "the judge has no key: `ANTHROPIC_API_KEY` is not set",
            "key_env",
        ],
    );
}

#[test]
fn an_mcp_server_that_does_not_start_stops_the_run() {
    let provider = "{ uses: chat, api: openai, model: m, base_url: 'http://127.0.0.1:9/v1', mcp_servers: { docs: { command: [sh, -c, 'echo no database >&2; exit 1'] } } }";
    check(
        &suite(provider, "", ""),
        &["the MCP server `docs`", "no database"],
    );
}

#[test]
fn what_keeps_a_run_from_starting_is_told_without_secrets() {
    let server = "{ uses: chat, api: openai, model: m, base_url: 'http://127.0.0.1:9/v1', mcp_servers: { docs: { command: [sh, -c, 'echo \"no login as $DOCS_TOKEN\" >&2; exit 1'], env: { DOCS_TOKEN: hunter22hunter } } } }";
    let echo = "{ uses: command, command: [echo, hi] }";
    let set_up = "workspace: { setup: ['echo \"no login as $DOCS_TOKEN\" >&2; false'], environment: { DOCS_TOKEN: hunter22hunter } }";
    for sandbox in [suite(server, "", ""), suite(echo, "", set_up)] {
        check(&sandbox, &["no login as [redacted-1]"]);
        let said = words(&run(&sandbox, &["-vv"]));
        assert!(!said.contains("hunter22"), "{said}");
    }
}

#[test]
fn without_preflight_the_trials_show_what_is_missing() {
    let sandbox = suite("{ uses: command, command: [no-such-program] }", "", "");
    let output = run(&sandbox, &["--no-preflight"]);
    let said = words(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    let rows = sandbox.rows();
    assert_eq!(rows.len(), 6, "three of each mode:\n{said}");
    assert!(
        rows.iter().all(|row| row["voidCause"] == "agent_start"),
        "{said}"
    );
    assert!(
        said.contains("no-such-program") && said.contains("nothing was judged"),
        "{said}"
    );
}

/// A user who is signed in with Claude Code, and an agent that shows what it was given.
fn signed_in(mode: &str, expires_ms: i64) -> Sandbox {
    let sandbox = suite(
        "{ uses: claude-code, program: ./agent.sh, login: user }",
        "sandbox: none\ncapture: { proxy: off }",
        "",
    );
    let suite = sandbox.read("assize.yaml").replace("plain: {}", mode);
    sandbox.write("assize.yaml", &suite);
    let login = serde_json::json!({ "claudeAiOauth": {
        "accessToken": "made-up-access-0123456789",
        "refreshToken": "made-up-refresh-0123456789",
        "expiresAt": expires_ms,
        "scopes": ["user:inference", "user:profile"],
    }});
    sandbox.write("user/.claude/.credentials.json", &login.to_string());
    let agent = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 1.2.3\ncp \"$CLAUDE_CONFIG_DIR/.credentials.json\" {0}/seen.json\n\
         env > {0}/seen.txt\ncat \"$CLAUDE_CONFIG_DIR/.credentials.json\" >&2\nexit 1\n",
        sandbox.path("").display()
    );
    program(&sandbox, "agent.sh", &agent);
    sandbox
}

fn in_minutes(minutes: i64) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_millis() as i64 + minutes * 60_000
}

fn run_as_user(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox
        .assize(arguments)
        .env("HOME", sandbox.path("user"))
        .env("ANTHROPIC_API_KEY", "made-up-key-0123456789")
        .env_remove("ANTHROPIC_AUTH_TOKEN")
        .env_remove("CLAUDE_CODE_OAUTH_TOKEN")
        .env_remove("CLAUDE_CONFIG_DIR")
        .output()
        .unwrap()
}

#[test]
fn a_stored_login_is_used_without_what_could_renew_it() {
    let sandbox = signed_in("plain: {}", in_minutes(30));
    let stored = sandbox.read("user/.claude/.credentials.json");
    let said = words(&run_as_user(&sandbox, &["run", "--yes"]));
    assert!(
        said.contains(".credentials.json, which goes before `ANTHROPIC_API_KEY`"),
        "{said}"
    );
    assert!(said.contains("trials after that are void"), "{said}");
    let seen: serde_json::Value = serde_json::from_str(&sandbox.read("seen.json")).unwrap();
    let login = &seen["claudeAiOauth"];
    assert_eq!(login["accessToken"], "made-up-access-0123456789");
    assert_eq!(login["refreshToken"], serde_json::Value::Null);
    assert_eq!(login["scopes"], serde_json::json!(["user:inference"]));
    assert!(!sandbox.read("seen.txt").contains("made-up-key"));
    assert_eq!(sandbox.read("user/.claude/.credentials.json"), stored);
    let rows = std::fs::read_to_string(sandbox.last_run().join("rows.jsonl")).unwrap();
    assert!(rows.contains("[redacted-"), "{rows}");
    for secret in ["made-up-access", "made-up-refresh", "made-up-key"] {
        assert!(!rows.contains(secret), "{rows}");
        assert!(!said.contains(secret), "{said}");
    }
    let manifest = std::fs::read(sandbox.last_run().join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let signed = &manifest["provenance"]["agents"]["claude-code"]["signIn"]["plain"];
    assert_eq!(signed["kind"], "subscription", "{manifest:#}");
    assert_eq!(signed["notUsed"][0], "ANTHROPIC_API_KEY");
}

#[test]
fn a_login_that_cannot_be_used_stops_the_run() {
    let check = |sandbox: &Sandbox, expected: &[&str]| {
        let output = run_as_user(sandbox, &["run", "--yes"]);
        let said = words(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for expected in expected {
            assert!(said.contains(expected), "no {expected:?} in:\n{said}");
        }
        assert!(!sandbox.path(".assize/runs").exists());
    };
    let ended = signed_in("plain: {}", in_minutes(-5));
    check(&ended, &["expired at 20", "start `claude` once"]);
    let doctor = words(&run_as_user(&ended, &["doctor", "--quick", "assize.yaml"]));
    assert!(doctor.contains("expired at 20"), "{doctor}");
    let missing = signed_in("plain: {}", in_minutes(30));
    std::fs::remove_dir_all(missing.path("user")).unwrap();
    check(&missing, &["no login is stored", "claude setup-token"]);
    let both = signed_in(
        "plain: { environment: { ANTHROPIC_API_KEY: made-up-key-of-the-mode } }",
        in_minutes(30),
    );
    check(
        &both,
        &["asks for `login: user`, and its `environment` sets `ANTHROPIC_API_KEY`"],
    );
}

#[test]
fn only_agents_that_store_a_login_can_use_one() {
    let sandbox = suite("{ uses: gemini, login: user }", "", "");
    let said = words(&sandbox.assize(&["check"]).output().unwrap());
    assert!(
        said.contains("`gemini` stores no login that could be copied"),
        "{said}"
    );
}

#[test]
fn doctor_tells_of_agents_that_nobody_tested() {
    let sandbox = suite("{ uses: codex, program: ./agent.sh }", "", "");
    program(&sandbox, "agent.sh", "#!/bin/sh\necho codex-cli 9.10.0\n");
    let doctor = |arguments: &[&str]| words(&sandbox.assize(arguments).output().unwrap());
    let said = doctor(&["doctor", "--quick", "assize.yaml"]);
    assert!(said.contains("9.10.0 is newer than"), "{said}");
    program(&sandbox, "agent.sh", "#!/bin/sh\necho codex-cli 0.9.0\n");
    let said = doctor(&["doctor", "--quick", "assize.yaml"]);
    assert!(!said.contains("is newer than"), "{said}");
}
