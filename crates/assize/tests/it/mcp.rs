//! MCP servers in suites, with the program as people run it.

use crate::sandbox::{Sandbox, await_true, words};
use assize_llm::testing::{Received, Reply, ScriptedEndpoint};
use serde_json::{Value, json};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/mcp/server.py");

/// A model that calls one tool, and then says that it is done.
fn model(tool: &str, arguments: Value) -> ScriptedEndpoint {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let calls = json!([{"index": 0, "id": "c", "type": "function", "function": function}]);
    let say = |delta: Value| {
        let chunk = json!({"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta}]});
        let end = json!({"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        Reply::Body(
            200,
            format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n"),
        )
    };
    let script = move |request: &Received, _: usize| {
        let messages = request.body["messages"].as_array().unwrap();
        match messages.last().unwrap()["role"] == "tool" {
            true => say(json!({"content": messages.last().unwrap()["content"]})),
            false => say(json!({"tool_calls": calls})),
        }
    };
    ScriptedEndpoint::start(script).unwrap()
}

#[test]
fn the_suite_of_the_documents_runs() {
    let page = include_str!("../../../../docs/agents.md");
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with("MCP servers"));
    let sandbox = Sandbox::new(&[]);
    for (file, content) in crate::walkthroughs::files(section.unwrap()) {
        sandbox.write(&file, &content);
    }
    let model = model("glossary__lookup", json!({"word": "assize"}));
    let output = sandbox
        .assize(&["run", "--yes", "--skip-warmup"])
        .env("OPENAI_BASE_URL", model.url())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let rows = sandbox.rows();
    let outcomes: Vec<_> = rows
        .iter()
        .map(|row| (&row["mode"], &row["outcome"]))
        .collect();
    assert!(
        outcomes.contains(&(&json!("with-glossary"), &json!("pass"))),
        "{rows:#?}"
    );
    assert!(
        outcomes.contains(&(&json!("plain"), &json!("fail"))),
        "{rows:#?}"
    );
}

fn suite(servers: &Value) -> Sandbox {
    let suite = json!({
        "provider": {"uses": "chat", "model": "m", "mcpServers": servers, "passEnv": ["ASSIZE_MARK"]},
        "permissions": {"autoApprove": true},
        "modes": {"plain": {}},
        "scenarios": {"paths": ["s.yaml"]},
        "execution": {"warmup": false, "repetitions": 1},
    });
    Sandbox::new(&[
        ("assize.json", &suite.to_string()),
        ("s.yaml", "id: s\nprompt: Go.\ntimeout_ms: 600000\n"),
    ])
}

#[test]
fn what_is_wrong_with_a_server_is_said_with_its_place() {
    let sandbox = suite(&json!({"docs": {"command": "a", "url": "http://x"}}));
    let said = sandbox.refused(&["check"]);
    assert!(
        said.contains("a server is reached by `command` or by `url`, not both"),
        "{said}"
    );
    let sandbox = suite(&json!({"docs": {"comand": "a"}}));
    let said = sandbox.refused(&["check"]);
    assert!(
        said.contains("unknown") && said.contains("comand"),
        "{said}"
    );
}

#[test]
fn a_server_that_does_not_start_makes_void_trials() {
    let sandbox = suite(&json!({"docs": {"command": ["python3", SERVER, "dead"]}}));
    let row = &sandbox.run(&["--no-preflight"])[0];
    assert_eq!(
        (&row["outcome"], &row["errorCode"]),
        (&json!("void"), &json!("mcp_not_ready"))
    );
    let said = row["error"].as_str().unwrap();
    assert_eq!(
        said,
        "the MCP server `docs` ended with exit code 1: cannot find the database"
    );
}

#[test]
fn a_killed_run_leaves_no_server_behind() {
    let sandbox = suite(&json!({"docs": {"command": ["python3", SERVER]}}));
    let model = model("docs__sleep", json!({}));
    let mut run = sandbox
        .assize(&["run", "--yes"])
        .env("OPENAI_BASE_URL", model.url())
        .spawn()
        .unwrap();
    await_true("the call", || {
        sandbox.living() > 1 && !model.received().is_empty()
    });
    run.kill().unwrap();
    run.wait().unwrap();
    await_true("the end of the server", || sandbox.living() == 0);
}

/// A mode's environment reaches every process that is started for it.
#[test]
fn a_server_of_chat_has_the_environment_of_its_mode() {
    let suite = json!({
        "provider": {"uses": "chat", "model": "m", "mcpServers": {"docs": {"command": ["python3", SERVER]}}},
        "permissions": {"autoApprove": true},
        "modes": {"sweet": {"environment": {"FLAVOUR": "sugar"}}, "plain": {"environment": {"FLAVOUR": "none"}}},
        "scenarios": {"paths": ["s.yaml"]},
        "execution": {"warmup": false, "repetitions": 1},
    });
    let sandbox = Sandbox::new(&[
        ("assize.json", &suite.to_string()),
        (
            "s.yaml",
            "id: s\nprompt: Go.\nchecks: [ { output: { contains: sugar } } ]\n",
        ),
    ]);
    let model = model("docs__variable", json!({"name": "FLAVOUR"}));
    let output = sandbox
        .assize(&["run", "--yes"])
        .env("OPENAI_BASE_URL", model.url())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", words(&output));
    for row in sandbox.rows() {
        let expected = if row["mode"] == "sweet" {
            "pass"
        } else {
            "fail"
        };
        assert_eq!(row["outcome"], expected, "{row:#}");
    }
}
