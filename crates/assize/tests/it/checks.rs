//! Checks that cannot be judged, and mistakes in them that are found before anything runs.

use crate::sandbox::{Sandbox, words};
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
        assert!(error.contains("it is unknown which tools"), "{error}");
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

const SUITE: &str =
    "provider: { uses: simulated }\nmodes: { a: {} }\nscenarios: { paths: [s.yaml] }\n";

fn refused(suite: &str, files: &[(&str, &str)]) -> String {
    let suite = format!("{SUITE}{suite}");
    let sandbox = Sandbox::new(&[&[("assize.yaml", suite.as_str())], files].concat());
    sandbox.refused(&["check"])
}

#[test]
fn a_mistake_in_a_schema_has_its_place_in_it() {
    let wrong = "{ \"properties\": {\n  \"a\": { \"type\": \"objct\" } } }";
    let scenario = "id: s\nprompt: x\noutput_schema: out.json\n";
    let said = refused("", &[("s.yaml", scenario), ("out.json", wrong)]);
    assert!(said.contains("out.json:2:"), "{said}");
    assert!(
        said.contains("`properties.a.type`: invalid JSON Schema"),
        "{said}"
    );
    let scenario = "id: s\nprompt: x\nchecks:\n  - output:\n      schema:\n        type: objct\n";
    let said = refused("", &[("s.yaml", scenario)]);
    assert!(said.contains("s.yaml:6:"), "{said}");
}

#[test]
fn a_schema_that_is_missing_is_one_mistake() {
    let scenario = "id: s\nprompt: x\nchecks: [ { output: { schema: none.json } } ]\n";
    let said = refused("", &[("s.yaml", scenario)]);
    assert_eq!(said.matches("s.yaml:").count(), 1, "{said}");
    assert!(said.contains("`none.json` cannot be read"), "{said}");
}

#[test]
fn a_scorer_has_no_keys_that_nobody_reads() {
    let scenario = ("s.yaml", "id: s\nprompt: x\n");
    let said = refused("scorer: { uses: checks, foo: 1 }\n", &[scenario]);
    assert!(
        said.contains("assize.yaml:4:") && said.contains("unknown key `foo`"),
        "{said}"
    );
    let both = "scorer: { uses: checks, composite: [ { uses: checks } ] }\n";
    let said = refused(both, &[scenario]);
    assert!(
        said.contains("assize.yaml:4:11: found `uses` beside `composite`"),
        "{said}"
    );
}

#[test]
fn checks_that_a_judge_alone_does_not_make_are_said() {
    let suite = format!(
        "{SUITE}scorer: {{ uses: judge, api: openai, model: m, base_url: 'http://127.0.0.1:1' }}\n"
    );
    let scenario = "id: s\nprompt: x\nchecks: [ { output: { contains: a } } ]\n\
                    rubric: { criteria: [ { id: a, description: b } ] }\n";
    let sandbox = Sandbox::new(&[("assize.yaml", &suite), ("s.yaml", scenario)]);
    let output = sandbox.assize(&["check"]).output().unwrap();
    let said = words(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("the checks of `s` are not made"), "{said}");
}
