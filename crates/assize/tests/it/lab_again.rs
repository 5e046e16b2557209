//! Stored executions of tasks: shown, and scored again without running anything.

use crate::sandbox::{Sandbox, words};
use serde_json::Value;
use std::path::Path;

const SUITE: &str = "\
modes: { m: {} }
tasks: { paths: [tasks.jsonl] }
runners:
  - { id: shout, uses: command, type: shout, config: { command: [sh, work.sh] } }
evaluators:
  - { id: right, uses: exact, config: { path: word } }
  - { id: spent, uses: tokens }
execution: { repetitions: 1, warmup: false }
";

/// Leaves a mark of having been run.
const WORK: &str = r#"echo ran >> ran; task=$(cat)
case "$task" in *'"give up"'*) exit 3;; *'"ada"'*) echo '{"word":"ADA"}';; *) echo '{"word":"HI"}';; esac"#;

const TASKS: &str = r#"{"id":"hi","type":"shout","input":"hi","expected":{"word":"hi"}}
{"id":"fails","type":"shout","input":"give up","expected":{"word":"hi"}}
{"id":"chain","input":{"who":"ada"},"steps":[{"id":"one","type":"shout","input":"hi","expected":{"word":"HI"}},{"id":"two","type":"shout","input":{"name":null},"expected":{"word":"ada"}}],"input_map":{"two":[{"from":"input:who","to":"input.name"}]}}
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new(&[
        ("assize.yaml", SUITE),
        ("tasks.jsonl", TASKS),
        ("work.sh", WORK),
    ]);
    sandbox.done(&["run", "-q"]);
    sandbox
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn outcome(sandbox: &Sandbox, id: &str) -> String {
    let rows = sandbox.rows();
    let row = rows.iter().find(|row| row["scenarioId"] == id).unwrap();
    format!(
        "{} {}",
        row["outcome"].as_str().unwrap(),
        row["errorCode"].as_str().unwrap_or("")
    )
}

fn change_tasks(sandbox: &Sandbox, from: &str, to: &str) {
    let tasks = sandbox.read("tasks.jsonl");
    assert!(tasks.contains(from), "{tasks}");
    sandbox.write("tasks.jsonl", &tasks.replace(from, to));
}

#[test]
fn stored_outputs_are_scored_by_changed_evaluators_and_expectations() {
    let sandbox = sandbox();
    let run = sandbox.last_run();
    assert_eq!(outcome(&sandbox, "hi"), "fail ");
    assert_eq!(outcome(&sandbox, "chain"), "fail ");
    assert_eq!(outcome(&sandbox, "fails"), "fail task_failed");
    let (ran, runs) = (sandbox.read("ran"), lines(&run.join("runs.jsonl")));
    let old_scores = lines(&run.join("scores.jsonl"));

    // It was too strict: what is expected, and how it is compared, are others now.
    change_tasks(&sandbox, r#"{"word":"ada"}"#, r#"{"word":"ADA"}"#);
    sandbox.write(
        "assize.yaml",
        &SUITE.replace(
            "uses: exact, config: { path: word }",
            "uses: text, config: { path: word }",
        ),
    );
    let said = words(&sandbox.assize(&["score", "--dry-run"]).output().unwrap());
    assert!(said.contains("3 trials scored again"), "{said}");
    assert_eq!(
        lines(&run.join("scores.jsonl")),
        old_scores,
        "nothing was changed"
    );

    sandbox.done(&["score", "last"]);
    assert_eq!(outcome(&sandbox, "hi"), "pass ");
    assert_eq!(outcome(&sandbox, "chain"), "pass ");
    assert_eq!(outcome(&sandbox, "fails"), "fail task_failed");
    assert_eq!(sandbox.read("ran"), ran, "nothing was run");
    assert_eq!(lines(&run.join("runs.jsonl")), runs);
    let scores = lines(&run.join("scores.jsonl"));
    let metrics = |target: &str| -> Vec<&str> {
        let of_target = scores.iter().filter(|score| score["target"] == target);
        of_target
            .map(|score| score["metric"].as_str().unwrap())
            .collect()
    };
    assert!(metrics("step:two").contains(&"text_match"), "{scores:#?}");
    assert!(!scores.iter().any(|score| score["metric"] == "accuracy"));
    let records: Vec<&Value> = runs.iter().map(|run| &run["id"]).collect();
    assert!(
        scores
            .iter()
            .all(|score| records.contains(&&score["runId"]))
    );
    assert_eq!(lines(&run.join("superseded-scores.jsonl")), old_scores);
    // Resuming the run needs no more than that.
    sandbox.done(&["run", "-q", "--resume", "last", "-n", "2"]);
    assert_eq!(sandbox.rows().len(), 6);
}

#[test]
fn what_cannot_be_scored_again_is_said_with_the_reason() {
    let sandbox = sandbox();
    change_tasks(&sandbox, r#""input":"give up""#, r#""input":"give in""#);
    let kept = sandbox.read("tasks.jsonl");
    let without_first: Vec<&str> = kept.lines().skip(1).collect();
    sandbox.write("tasks.jsonl", &(without_first.join("\n") + "\n"));
    let before = lines(&sandbox.last_run().join("scores.jsonl"));
    let said = words(&sandbox.assize(&["score", "last"]).output().unwrap());
    assert!(
        said.contains("1 could not be scored and are void now: its input is another than the capability was given"),
        "{said}"
    );
    assert!(
        said.contains("1 are as before: the suite has no such scenario or task any more"),
        "{said}"
    );
    assert_eq!(outcome(&sandbox, "fails"), "void not_scored_again");
    assert_eq!(outcome(&sandbox, "hi"), "fail ");
    let of_hi = |scores: &[Value]| -> Vec<Value> {
        let rows = sandbox.rows();
        let hi = rows.iter().find(|row| row["scenarioId"] == "hi").unwrap();
        let of_hi = scores
            .iter()
            .filter(|score| score["runId"] == hi["sessionId"]);
        of_hi.cloned().collect()
    };
    let after = lines(&sandbox.last_run().join("scores.jsonl"));
    assert!(!of_hi(&after).is_empty());
    assert_eq!(of_hi(&after), of_hi(&before));
}

#[test]
fn a_trial_of_a_chain_is_shown_with_steps_scores_and_evidence() {
    let sandbox = sandbox();
    let rows = sandbox.rows();
    let position = |id: &str| {
        let row = rows.iter().find(|row| row["scenarioId"] == id).unwrap();
        format!("last/{}", row["position"])
    };
    let shown = sandbox.done(&["show", &position("chain")]);
    for part in [
        "fail  chain · m",
        "✓ one (",
        "→ {\"word\":\"HI\"}",
        "output {\"word\":\"ADA\"}",
        "two.accuracy = 0 (right)",
        "expected: ada",
        "input_mapped {\"from\":\"input:who\",\"to\":\"input.name\"}",
    ] {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
    let shown = sandbox.done(&["show", &position("fails")]);
    assert!(
        shown.contains("failed run: the program ended with exit code 3"),
        "{shown}"
    );
    let json: Value =
        serde_json::from_str(&sandbox.done(&["show", &position("chain"), "--json"])).unwrap();
    assert_eq!(json["run"]["steps"][1]["stepId"], "two");
    assert_eq!(json["scores"][0]["evaluatorId"], "right");
}
