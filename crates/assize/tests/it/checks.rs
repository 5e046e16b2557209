//! Checks that cannot be judged, and mistakes in them that are found before anything runs.

use crate::sandbox::Sandbox;
use serde_json::Value;

fn sandbox(scenario: &str) -> Sandbox {
    let once = "execution: { repetitions: 1 }";
    Sandbox::of("echo done", once, scenario)
}

#[test]
fn tools_of_a_program_that_only_prints_its_answer_are_unknown() {
    for check in [
        "tool: { called: Bash }",
        "tool: { called: Bash, at_most: 0 }",
        "not: { tool: { called: Bash } }",
        "limit: { tool_calls: 0 }",
    ] {
        let sandbox = sandbox(&format!("checks: [ {{ {check} }} ]"));
        let row = sandbox.run(&[]).remove(0);
        assert_eq!(row["outcome"], "void", "{check}: {row:#}");
        assert_eq!(row["toolCalls"]["total"], Value::Null);
        let detail = &row["checkpointDetails"][0];
        assert_eq!(detail["passed"], false);
        let error = detail["error"].as_str().unwrap();
        assert!(error.contains("nobody saw which tools"), "{error}");
        let shown = sandbox.done(&["show", "last/0"]);
        assert!(shown.contains("could not be judged: "), "{shown}");
    }
}

#[test]
fn a_negated_command_that_said_nothing_is_not_judged() {
    for run in ["sleep 60", "no-such-program-anywhere"] {
        let command = format!("command: {{ run: {run}, timeout_ms: 200 }}");
        let scenario = format!("workspace: {{}}\nchecks: [ {{ not: {{ {command} }} }} ]");
        let row = sandbox(&scenario).run(&[]).remove(0);
        assert_eq!(row["outcome"], "void", "{run}: {row:#}");
    }
}

#[test]
fn checks_of_files_without_a_workspace_are_refused_with_their_place() {
    let said =
        sandbox("checks:\n  - output: { contains: a }\n  - file: { path: a }").refused(&["check"]);
    assert!(said.contains("s.yaml:5:"), "{said}");
    assert!(said.contains("a `file` check needs a workspace"), "{said}");
    assert!(said.contains("hint: add `workspace:"), "{said}");
}
