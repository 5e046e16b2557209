//! `assize score`: stored trials judged by other checks, without any agent.

use crate::sandbox::{Sandbox, words};
use serde_json::{Value, json};

const SUITE: &str = "sandbox: none\nexecution: { repetitions: 2, warmup: false }";

/// An agent that leaves a trace of having been run, says something and changes its workspace.
const AGENT: &str =
    "echo ran >> $ASSIZE_MARK/ran; echo new > made.txt; rm -f old.txt; echo the answer is 42";

fn sandbox(scenario: &str, suite: &str) -> Sandbox {
    let argv = serde_json::to_string(&["sh", "-c", AGENT]).unwrap();
    let suite = format!(
        "modes: {{ shell: {{ provider: {{ uses: command, command: {argv}, pass_env: [ASSIZE_MARK] }} }} }}\n\
         scenarios: {{ paths: [s.yaml] }}\n{suite}\n"
    );
    let scenario = format!("id: s\nprompt: hello\nworkspace: {{ from: fixture }}\n{scenario}\n");
    Sandbox::new(&[
        ("assize.yaml", &suite),
        ("s.yaml", &scenario),
        ("fixture/old.txt", "old"),
    ])
}

fn rewrite(sandbox: &Sandbox, checks: &str) {
    sandbox.write(
        "s.yaml",
        &format!("id: s\nprompt: hello\nworkspace: {{ from: fixture }}\n{checks}\n"),
    );
}

fn outcomes(sandbox: &Sandbox) -> Vec<Value> {
    sandbox
        .rows()
        .iter()
        .map(|row| row["outcome"].clone())
        .collect()
}

#[test]
fn changed_checks_give_new_outcomes_without_running_anything() {
    let sandbox = sandbox("checks: [ { output: { contains: '41' } } ]", SUITE);
    sandbox.run(&[]);
    assert_eq!(outcomes(&sandbox), ["fail", "fail"]);
    let ran = sandbox.read("ran");
    rewrite(
        &sandbox,
        "checks:\n  - output: { contains: '42' }\n  - file: { path: made.txt, contains: new }\n  \
         - file: { path: old.txt, absent: true }\n  - changed: { only: ['*.txt'] }\n  \
         - command: { run: 'test -f made.txt' }",
    );
    let said = words(&sandbox.assize(&["score", "--dry-run"]).output().unwrap());
    assert!(
        said.contains("2 trials scored again, 2 outcomes are new"),
        "{said}"
    );
    assert_eq!(outcomes(&sandbox), ["fail", "fail"], "nothing was changed");

    let told = sandbox.done(&["score", "last", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        told["changed"],
        json!([{"from": "fail", "to": "pass", "trials": 2}])
    );
    assert_eq!(outcomes(&sandbox), ["pass", "pass"]);
    assert_eq!(sandbox.rows()[0]["checkpointsTotal"], 5);
    assert_eq!(sandbox.read("ran"), ran, "no agent was run");

    // Everything that reads the run reads the new scores; the old rows are kept apart.
    let run = sandbox.last_run();
    let read = |name: &str| std::fs::read_to_string(run.join(name)).unwrap();
    assert_eq!(read("superseded.jsonl").lines().count(), 2);
    assert!(read("report/report.md").contains("100 %"));
    assert!(sandbox.done(&["runs", "show", "last"]).contains("2 of 2"));
    let manifest: Value = serde_json::from_str(&read("manifest.json")).unwrap();
    assert_eq!(manifest["provenance"]["scoredAgain"][0]["scored"], 2);
    assert!(manifest["suite"].to_string().contains("made.txt"));
    assert!(!run.join("rows.scoring").exists());
    // The run resumes with the new checks.
    sandbox.done(&["run", "-q", "--resume", "last", "-n", "3"]);
    assert_eq!(outcomes(&sandbox), ["pass", "pass", "pass"]);
}

#[test]
fn what_cannot_be_scored_is_void_and_said() {
    let sandbox = sandbox("checks: [ { output: { contains: '42' } } ]", SUITE);
    sandbox.run(&[]);
    let mut archives: Vec<_> = std::fs::read_dir(sandbox.last_run().join("workspaces"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    archives.sort();
    std::fs::remove_file(&archives[0]).unwrap();
    rewrite(
        &sandbox,
        "checks: [ { file: { path: made.txt, exists: true } } ]",
    );
    let output = sandbox.assize(&["score"]).output().unwrap();
    assert!(output.status.success());
    let said = words(&output);
    let expected = "1 could not be scored and are void now: what the agent changed in its workspace was not kept";
    assert!(said.contains(expected), "{said}");
    let mut found = outcomes(&sandbox);
    found.sort_by_key(Value::to_string);
    assert_eq!(found, ["pass", "void"]);
    let rows = sandbox.rows();
    let void = rows.iter().find(|row| row["outcome"] == "void").unwrap();
    assert_eq!(void["errorCode"], "not_scored_again");
}

#[test]
fn a_run_of_which_nothing_can_be_scored_stays_as_it_is() {
    let check = |suite: &str, scenario: &str, expected: &str| {
        let sandbox = sandbox("checks: [ { output: { contains: '42' } } ]", suite);
        sandbox.run(&[]);
        let before = std::fs::read(sandbox.last_run().join("rows.jsonl")).unwrap();
        sandbox.write("s.yaml", scenario);
        let output = sandbox.assize(&["score"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = words(&output);
        assert!(
            said.contains(expected) && said.contains("the run is as it was"),
            "{said}"
        );
        assert_eq!(
            std::fs::read(sandbox.last_run().join("rows.jsonl")).unwrap(),
            before
        );
    };
    let same = "id: s\nprompt: hello\nworkspace: { from: fixture }\n";
    check(
        &format!("{SUITE}\noutput: {{ store_traces: false }}"),
        same,
        "its trace was not kept",
    );
    check(
        &format!("{SUITE}\noutput: {{ keep_workspace: none }}"),
        &format!("{same}checks: [ {{ file: {{ path: made.txt, exists: true }} }} ]"),
        "was not kept",
    );
    check(
        SUITE,
        &format!("{same}checks: [ {{ limit: {{ cost_usd: 1 }} }} ]"),
        "2 could not be scored:",
    );
    check(
        SUITE,
        "id: s\nprompt: another\nworkspace: { from: fixture }\n",
        "its `prompt` is another",
    );
    check(
        SUITE,
        "id: t\nprompt: hello\n",
        "the suite has no such scenario any more",
    );
}

#[test]
fn checks_of_the_answer_need_no_workspace() {
    let suite = format!("{SUITE}\noutput: {{ keep_workspace: none }}");
    let sandbox = sandbox("checks: [ { output: { contains: '43' } } ]", &suite);
    sandbox.run(&[]);
    rewrite(&sandbox, "checks: [ { output: { contains: '42' } } ]");
    let said = words(&sandbox.assize(&["score"]).output().unwrap());
    assert!(said.contains("2 trials scored again"), "{said}");
}

#[test]
fn an_edited_fixture_is_noticed() {
    let sandbox = sandbox(
        "checks: [ { file: { path: made.txt, exists: true } } ]",
        SUITE,
    );
    sandbox.run(&[]);
    sandbox.write("fixture/more.txt", "new");
    let output = sandbox.assize(&["score"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = words(&output);
    let expected = "its workspace `fixture` holds something else now than the agent was given";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn whole_workspaces_are_brought_back_without_what_was_deleted() {
    let sandbox = sandbox(
        "checks: [ { output: { contains: '42' } } ]",
        &format!("{SUITE}\noutput: {{ keep_workspace: all }}"),
    );
    sandbox.run(&[]);
    rewrite(
        &sandbox,
        "checks:\n  - file: { path: old.txt, absent: true }\n  - changed: { only: ['made.txt', 'old.txt'] }",
    );
    sandbox.done(&["score"]);
    assert_eq!(outcomes(&sandbox), ["pass", "pass"]);
}

#[test]
fn sessions_that_did_not_end_well_keep_their_outcome() {
    let sandbox = Sandbox::of("exit 3", SUITE, "");
    sandbox.run(&[]);
    sandbox.write(
        "s.yaml",
        "id: s\nprompt: hello\nchecks: [ { output: { contains: x } } ]\n",
    );
    let said = words(&sandbox.assize(&["score"]).output().unwrap());
    assert!(
        said.contains("2 are as before: the session did not end well"),
        "{said}"
    );
    assert_eq!(outcomes(&sandbox), ["fail", "fail"]);
}
