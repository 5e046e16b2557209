//! One good run of every agent that is reached by a recipe and the wire alone.

use crate::agents::{Agent, SCENARIO};
use crate::faults::script;
use crate::good_runs::{check_run, expected, tokens};
use crate::offline::Offline;
use serde_json::{Value, json};

const fn agent(name: &'static str, provider: &'static str) -> Agent {
    Agent {
        name,
        model: "fake-model",
        provider,
    }
}

fn suite(agent: &Agent) -> Offline {
    // Some of them say their last word on stdout, some do not.
    let scenario = SCENARIO.lines().filter(|line| !line.contains("output:"));
    let scenario: Vec<&str> = scenario.collect();
    agent.suite(&format!("{}\n", scenario.join("\n")), "")
}

pub(crate) fn qwen() {
    check_run(&suite(&agent("qwen", "{ uses: qwen }")));
}

pub(crate) fn goose() {
    check_run(&suite(&agent("goose", "{ uses: goose }")));
}

pub(crate) fn pi() {
    check_run(&suite(&agent("pi", "{ uses: pi }")));
}

pub(crate) fn cline() {
    check_tokens(&suite(&agent("cline", "{ uses: cline }")));
}

pub(crate) fn copilot() {
    check_run(&suite(&agent("copilot", "{ uses: copilot }")));
}

/// It has no tools: it edits by text.
pub(crate) fn aider() {
    let edit = "out.txt\n```\n<<<<<<< SEARCH\n=======\nhi\n>>>>>>> REPLACE\n```\n";
    let turns = json!({"turns": [{"text": edit}]});
    let offline = script(
        suite(&agent(
            "aider",
            "{ uses: aider, args: [--edit-format, diff] }",
        )),
        &turns,
    );
    let row = &offline.run()[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_ne!(row["tokens"]["total"], Value::Null, "{row:#}");
}

/// It ends by a command of its own, whose result it tells nobody.
pub(crate) fn mini_swe_agent() {
    let turns = json!({"turns": [
        {"tool": "shell", "command": "echo hi > out.txt"},
        {"tool": "shell", "command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
    ]});
    let offline = script(suite(&agent("mini", "{ uses: mini-swe-agent }")), &turns);
    check_tokens(&offline);
}

fn check_tokens(offline: &Offline) {
    let row = &offline.run()[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(tokens(row), expected(&offline.wire()), "{row:#}");
}
