//! One good run of every agent that is reached by a recipe and the wire alone.

use crate::agents::{AIDER, Agent, CLINE, COPILOT, GOOSE, MINI_SWE_AGENT, PI, QWEN, SCENARIO};
use crate::faults::script;
use crate::good_runs::{check_reach, check_run, check_tokens};
use crate::offline::Offline;
use serde_json::{Value, json};

fn suite(agent: &Agent) -> Offline {
    // Some of them say their last word on stdout, some do not.
    let scenario = SCENARIO.lines().filter(|line| !line.contains("output:"));
    let scenario: Vec<&str> = scenario.collect();
    agent.suite(&format!("{}\n", scenario.join("\n")))
}

pub(crate) fn qwen() {
    check_run(&QWEN, &suite(&QWEN));
}

pub(crate) fn goose() {
    check_run(&GOOSE, &suite(&GOOSE));
}

pub(crate) fn pi() {
    check_run(&PI, &suite(&PI));
}

pub(crate) fn cline() {
    check(&CLINE, &suite(&CLINE));
}

pub(crate) fn copilot() {
    check_run(&COPILOT, &suite(&COPILOT));
}

/// It has no tools: it edits by text.
pub(crate) fn aider() {
    let edit = "out.txt\n```\n<<<<<<< SEARCH\n=======\nhi\n>>>>>>> REPLACE\n```\n";
    let turns = json!({"turns": [{"text": edit}]});
    let offline = script(suite(&AIDER), &turns);
    let row = &AIDER.run(&offline)[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_ne!(row["tokens"]["total"], Value::Null, "{row:#}");
    check_reach(row, &offline);
}

/// It ends by a command of its own, whose result it does not report.
pub(crate) fn mini_swe_agent() {
    let turns = json!({"turns": [
        {"tool": "shell", "command": "echo hi > out.txt"},
        {"tool": "shell", "command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
    ]});
    check(&MINI_SWE_AGENT, &script(suite(&MINI_SWE_AGENT), &turns));
}

fn check(agent: &Agent, offline: &Offline) {
    let row = &agent.run(offline)[0];
    check_tokens(row, offline);
    check_reach(row, offline);
}
