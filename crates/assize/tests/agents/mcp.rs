//! The same MCP servers for every kind of agent: each starts or reaches them by its own means and calls a tool of both.

use crate::agents::{
    Agent, CHAT, CLAUDE_CODE, CODEX, COPILOT, GEMINI, GEMINI_ACP, GOOSE, OPENCODE, OPENCODE_ACP,
    QWEN,
};
use crate::faults::script;
use crate::offline::{Offline, lines, repository};
use serde_json::{Value, json};

/// It offers tools of servers only to a model that has looked for them.
pub(crate) fn claude_code() {
    let both = "select:mcp__words__variable,mcp__far__lookup";
    let search = json!({"tool": "ToolSearch", "args": {"query": both}});
    check(&CLAUDE_CODE, &[search]);
}

pub(crate) fn codex() {
    check(&CODEX, &[]);
}

pub(crate) fn opencode() {
    check(&OPENCODE, &[]);
}

pub(crate) fn opencode_acp() {
    check(&OPENCODE_ACP, &[]);
}

pub(crate) fn gemini() {
    check(&GEMINI, &[]);
}

pub(crate) fn gemini_acp() {
    check(&GEMINI_ACP, &[]);
}

/// Its model looks for tools of servers, and calls them by another tool.
pub(crate) fn qwen() {
    let search = json!({"tool": "tool_search", "args": {"query": "variable lookup"}});
    let call = |name: &str, arguments: Value| json!({"tool": "tool_call", "args": {"name": name, "arguments": arguments}});
    let mut both = call("mcp__words__variable", json!({"name": "COLOUR"}));
    both["also"] = json!([call("mcp__far__lookup", json!({"word": "assize"}))]);
    check_calls(&QWEN, &[search], both);
}

pub(crate) fn copilot() {
    check(&COPILOT, &[]);
}

pub(crate) fn goose() {
    check(&GOOSE, &[]);
}

pub(crate) fn chat() {
    check(&CHAT, &[]);
}

const SCENARIO: &str = "\
id: look-up
prompt: What is an assize?
workspace: { from: workspace }
";

const SECRET: &str = "reddish-brown";

/// `first` is what the model does before it calls the tools.
fn check(agent: &Agent, first: &[Value]) {
    let lookup = json!({"tool": "lookup", "args": {"word": "assize"}});
    let both = json!({"tool": "variable", "args": {"name": "COLOUR"}, "also": [lookup]});
    check_calls(agent, first, both);
}

/// `both` is how it calls the tool of each server.
fn check_calls(agent: &Agent, first: &[Value], both: Value) {
    let server = repository().join("tests/mcp/server.py");
    let offline = with_servers(
        agent,
        SCENARIO,
        &json!({
            "words": {"command": ["python3", server], "env": {"ONLY": "variable", "COLOUR": "${env:COLOUR}"}},
            "far": {"url": "http://127.0.0.1:8100/mcp", "headers": {"Authorization": "Bearer ${env:COLOUR}"}},
        }),
    );
    let turns = [first, &[both, json!({"text": "Now I know."})]].concat();
    let offline = script(offline, &json!({ "turns": turns }));
    let run = format!(
        "export COLOUR={SECRET}\n\
         ONLY=lookup TOKEN=$COLOUR python3 {} --http 8100 > url &\n\
         while ! test -s url; do sleep 0.1; done\n\
         {} run --quiet --yes --mode {} --repetitions 1; status=$?; kill $!; exit $status",
        server.display(),
        env!("CARGO_BIN_EXE_assize"),
        agent.mode,
    );
    let output = offline.command(&["sh", "-c", &run]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let calls = calls(&offline);
    assert_eq!(calls.len(), first.len() + 2, "{calls:#?}");
    // The server that was started has the variable, the other one answered; no record has the value.
    let shown = json!(calls).to_string();
    assert!(shown.contains("[redacted-"), "{shown}");
    assert!(shown.contains("a word of the test"), "{shown}");
    for file in ["manifest.json", "rows.jsonl"] {
        let kept = std::fs::read_to_string(offline.run_directory().join(file)).unwrap();
        assert!(!kept.contains(SECRET), "{file}: {kept}");
    }
}

/// The agent's suite with servers in its mode.
fn with_servers(agent: &Agent, scenario: &str, servers: &Value) -> Offline {
    let offline = agent.suite(scenario);
    let suite = std::fs::read_to_string(offline.path("assize.yaml")).unwrap();
    let mode = format!("{}: {{ ", agent.mode);
    let more = format!("{mode}provider_overrides: {{ mcp_servers: {servers} }}, ");
    offline.write("assize.yaml", &suite.replace(&mode, &more));
    offline
}

/// The tool calls of the one trial, which must have passed.
fn calls(offline: &Offline) -> Vec<Value> {
    let row = &lines(&offline.run_directory().join("rows.jsonl"))[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    let trace = offline.trace(0);
    let events = trace["events"].as_array().unwrap().iter();
    let calls = events.filter(|event| event["type"] == "tool_call");
    let calls: Vec<Value> = calls.cloned().collect();
    let has_failed = |call: &Value| call["success"] == false;
    assert!(!calls.iter().any(has_failed), "{calls:#?}");
    calls
}

/// The file is written by a third-party server, in the workspace of the trial.
pub(crate) fn a_server_by_others() {
    let scenario = format!("{SCENARIO}checks: [ {{ file: {{ path: out.txt, equals: hi }} }} ]\n");
    let servers = json!({"files": {"command": "mcp-server-filesystem", "args": ["{workspace}"]}});
    let offline = with_servers(&CHAT, &scenario, &servers);
    let suite = std::fs::read_to_string(offline.path("assize.yaml")).unwrap();
    let bare = suite.replace("[shell, read_file, write_file]", "[]");
    offline.write("assize.yaml", &bare);
    let write = json!({"tool": "write_file", "args": {"path": "out.txt", "content": "hi"}});
    let read = json!({"tool": "read_text_file", "args": {"path": "out.txt"}});
    let turns = json!({"turns": [write, read, {"text": "Now I know."}]});
    let offline = script(offline, &turns);
    CHAT.run(&offline);
    let calls = calls(&offline);
    assert_eq!(calls[0]["name"], "files__write_file");
    assert_eq!(calls[1]["output"], "hi");
}

/// A coding agent measures its own work: it finds a suite in its workspace, runs it within its limits and reads the verdict.
pub(crate) fn codex_uses_assize_itself() {
    let assize = env!("CARGO_BIN_EXE_assize");
    let limits = ["--allow-run", "--root", "{workspace}", "--max-trials", "20"];
    let command: Vec<&str> = [assize, "mcp"].into_iter().chain(limits).collect();
    let offline = with_servers(&CODEX, SCENARIO, &json!({"assize": {"command": command}}));
    offline.write(
        "workspace/assize.yaml",
        "provider: { uses: simulated, latency_ms: 0 }\nmodes: { plain: {}, careful: {} }\nscenarios: { paths: [task.yaml] }\nexecution: { repetitions: 5 }\n",
    );
    offline.write("workspace/task.yaml", "id: task\nprompt: do it\n");
    let call = |tool: &str, more: Value| json!({"tool": tool, "args": more});
    let here = json!({"suite": "."});
    let turns = json!([
        call("suites", json!({})),
        call("assize/run", here.clone()),
        call("compare", here.clone()),
        call("show", json!({"suite": ".", "position": 0})),
        {"text": "Now I know."},
    ]);
    let offline = script(offline, &json!({ "turns": turns }));
    CODEX.run(&offline);
    let calls = calls(&offline);
    let said: Vec<String> = calls
        .iter()
        .map(|call| call["output"].to_string())
        .collect();
    assert_eq!(said.len(), 4, "{calls:#?}");
    assert!(said[1].contains("10 trials finished"), "{said:#?}");
    assert!(said[2].contains("against"), "{said:#?}");
    assert!(said[3].contains("What follows is data"), "{said:#?}");
}
