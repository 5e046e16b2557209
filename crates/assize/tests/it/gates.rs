//! `assize gate`, `assize baseline`, `gates:` in suites, and what they mean for exit codes.

use crate::support::{Outcome, SUITE, Suite};
use serde_json::Value;

/// A suite whose two modes always succeed, with gates.
fn suite(gates: &str) -> Suite {
    let text = SUITE.replace("latency_ms: 0", "latency_ms: 0, success_rate: 1");
    Suite::of(&format!("{text}gates: {gates}\n"))
}

fn problem(gates: &str, expected: &[&str]) {
    let outcome = suite(gates).assize(&["check"]);
    assert_eq!(outcome.code, Some(2), "{gates}\n{outcome:#?}");
    for words in expected {
        assert!(
            outcome.stderr.contains(words),
            "no `{words}` in\n{}",
            outcome.stderr
        );
    }
}

fn lines(outcome: &Outcome) -> Vec<Value> {
    let lines = outcome.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn wrong_gates_are_placed_with_the_nearest_name() {
    problem(
        "\n  - success >= 0.5\n  - p59(tokens_total) < 5",
        &[
            "assize.yaml:7:5: gate `p59(tokens_total) < 5`, character 1: unknown function `p59`",
            "hint: did you mean `p95`?",
        ],
    );
    problem(
        "[ 'tokens_totl < 5', 'success >= 90' ]",
        &[
            "character 1: unknown metric `tokens_totl`",
            "did you mean `tokens_total`?",
            "a rate lies between 0 and 1",
            "write 0.9 for 90 %",
        ],
    );
    problem(
        "[ { gate: 'success >= 0.5', modes: [plian] } ]",
        &["unknown mode `plian`", "did you mean `plain`?"],
    );
    problem("[ 5 ]", &["expected a gate such as \"success >= 0.9\""]);
}

#[test]
fn check_says_how_many_trials_a_gate_takes() {
    let outcome = suite("[ 'success >= 0.9', 'success >= baseline - 5pp' ]").assize(&["check"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    for words in [
        "gate `success >= 0.9` cannot pass with 3 × 2 trials per mode, whatever they show: it takes 13 repetitions",
        "can pass with 3 × 2 trials per mode only for a mode that is clearly better than its baseline: it takes 26 repetitions",
    ] {
        assert!(
            outcome.stderr.contains(words),
            "no `{words}` in\n{}",
            outcome.stderr
        );
    }
    let one_mode = SUITE.replace("other: {}", "");
    let suite = Suite::of(&format!(
        "{one_mode}gates: [ 'tokens_total <= baseline' ]\n"
    ));
    let outcome = suite.assize(&["check"]);
    assert!(
        outcome
            .stderr
            .contains("name an earlier run with `--baseline`"),
        "{outcome:#?}"
    );
}

#[test]
fn a_run_ends_with_its_gates_and_their_exit_code() {
    for (gates, code, words) in [
        (
            "[ 'success >= 0.6', 'tokens_total > 1' ]",
            0,
            "✓ success >= 0.6 · plain: 100 % (",
        ),
        (
            "[ 'success >= 0.6', 'tokens_total < 2' ]",
            3,
            "✗ tokens_total < 2 · other: ",
        ),
        (
            "[ 'success >= 0.6', 'success >= 0.9' ]",
            4,
            "? success >= 0.9 · plain: 100 % (",
        ),
    ] {
        let suite = suite(gates);
        let outcome = suite.assize(&["run", "--quiet"]);
        assert_eq!(outcome.code, Some(code), "{outcome:#?}");
        assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
        let again = suite.assize(&["gate"]);
        assert_eq!(again.code, Some(code), "{again:#?}");
        assert!(again.stdout.contains(words), "{}", again.stdout);
        let summary = suite.run_directory().join("report/data/summary.json");
        let summary: Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
        assert_eq!(summary["gates"].as_array().unwrap().len(), 4);
    }
}

#[test]
fn gates_of_the_command_line_replace_those_of_the_suite() {
    let suite = suite("[ 'tokens_total < 2' ]");
    assert_eq!(suite.assize(&["run", "-q"]).code, Some(3));
    let outcome = suite.assize(&[
        "gate",
        "last",
        "--gate",
        "success > 0.6",
        "--mode",
        "other",
        "--json",
    ]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let results = lines(&outcome);
    assert_eq!(results.len(), 1);
    assert_eq!(
        (&results[0]["mode"], &results[0]["verdict"]),
        (&"other".into(), &"pass".into())
    );
    let wrong = suite.assize(&["gate", "--gate", "tokens_totle < 5"]);
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
    assert!(
        wrong.stderr.contains("did you mean `tokens_total`?"),
        "{wrong:#?}"
    );
    let nobody = suite.assize(&["gate", "--gate", "success > 0.6", "--mode", "nobody"]);
    assert_eq!(nobody.code, Some(4), "{nobody:#?}");
}

#[test]
fn a_baseline_mode_that_was_not_run_is_missing() {
    let suite = suite("[ 'tokens_total <= baseline + 900%' ]");
    let text = std::fs::read_to_string(suite.path().join("assize.yaml")).unwrap();
    suite.write(
        "assize.yaml",
        text.replace("other: {}", "other: {}, third: {}"),
    );
    assert_eq!(suite.assize(&["run", "-q"]).code, Some(0));
    let outcome = suite.assize(&["run", "-q", "--mode", "other", "--mode", "third"]);
    assert_eq!(outcome.code, Some(4), "{outcome:#?}");
    assert!(
        outcome
            .stdout
            .contains("the baseline has no simulated trial of mode plain"),
        "{outcome:#?}"
    );
}

#[test]
fn without_gates_or_trials_nothing_passes() {
    let suite = Suite::new();
    suite.done(&["run", "-q"]);
    let outcome = suite.assize(&["gate"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("hint: give one with `--gate"),
        "{outcome:#?}"
    );
    suite.write("empty.jsonl", "");
    let empty = suite.assize(&["gate", "empty.jsonl", "--gate", "success >= 0.1"]);
    assert_eq!(empty.code, Some(4), "{empty:#?}");
    let missing = suite.assize(&["gate", "nothing.jsonl", "--gate", "success >= 0.1"]);
    assert_eq!(missing.code, Some(1), "{missing:#?}");
}

#[test]
fn recorded_gates_that_cannot_be_understood_are_an_error() {
    let suite = suite("[ 'success >= 0.6' ]");
    suite.done(&["run", "-q"]);
    let manifest = suite.run_directory().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("success >= 0.6", "success ~ 0.6")).unwrap();
    let outcome = suite.assize(&["gate"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    assert!(outcome.stderr.contains("success ~ 0.6"), "{outcome:#?}");
}

#[test]
fn a_mode_is_compared_with_a_named_run_a_baseline_or_a_file() {
    let suite = suite("[ 'success >= baseline - 50pp', 'tokens_total <= baseline + 300%' ]");
    suite.done(&["run", "-q"]);
    suite.done(&["baseline", "set", "main"]);
    let rows = std::fs::read(suite.run_directory().join("rows.jsonl")).unwrap();
    suite.write("rows.json", rows);
    suite.done(&["run", "-q", "--seed", "7", "--baseline", "main"]);
    let first = suite.done(&["runs", "--json"]);
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    for baseline in ["main", first["runId"].as_str().unwrap(), "rows.json"] {
        let shown = suite.done(&["gate", "last", "--baseline", baseline]);
        let lines: Vec<&str> = shown.lines().filter(|line| line.contains('✓')).collect();
        assert_eq!(lines.len(), 4, "both modes against themselves: {shown}");
    }
    assert!(suite.done(&["gate"]).contains("against plain"));
    suite.done(&["baseline", "set", "itself"]);
    for itself in ["last", "itself"] {
        let outcome = suite.assize(&["gate", "last", "--baseline", itself]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(
            outcome.stderr.contains("the baseline is the run itself"),
            "{outcome:#?}"
        );
    }
    let missing = suite.assize(&["run", "--baseline", "nobody"]);
    assert_eq!(missing.code, Some(1), "{missing:#?}");
    assert!(
        missing
            .stderr
            .contains("there is no baseline or run `nobody`"),
        "{missing:#?}"
    );
    assert_eq!(
        suite.done(&["runs", "--json"]).lines().count(),
        2,
        "nothing was spent"
    );
}

#[test]
fn baselines_are_set_listed_shown_and_removed_and_outlive_their_run() {
    let suite = Suite::new();
    suite.done(&["run", "-q"]);
    let id = suite
        .run_directory()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    suite.done(&["baseline", "set", "main"]);
    suite.done(&["baseline", "set", "v1.2_x-y", "last"]);
    suite.done(&["run", "-q", "--seed", "9"]);
    suite.done(&["baseline", "set", "main"]);
    suite.done(&["runs", "rm", &id]);
    let listed = suite.done(&["baseline", "list"]);
    assert!(listed.contains(&format!("v1.2_x-y  run {id}")), "{listed}");
    assert!(!listed.contains(&format!("main  run {id}")), "{listed}");
    assert!(
        suite
            .done(&["baseline", "show", "v1.2_x-y"])
            .contains("plain")
    );
    let json: Value =
        serde_json::from_str(&suite.done(&["baseline", "show", "main", "--json"])).unwrap();
    assert_eq!(json["name"], "main");
    suite.done(&[
        "gate",
        "--gate",
        "success >= baseline - 99pp",
        "--baseline",
        "v1.2_x-y",
    ]);
    suite.done(&["baseline", "rm", "main", "v1.2_x-y"]);
    assert_eq!(suite.done(&["baseline", "list", "--json"]), "");
    for arguments in [
        &["baseline", "show", "main"][..],
        &["baseline", "set", "../../etc"],
        &["baseline", "set", ".hidden"],
    ] {
        assert_eq!(suite.assize(arguments).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn events_end_with_gates_cautions_and_the_end() {
    let suite = suite("[ 'success >= 0.6' ]");
    let outcome = suite.assize(&["run", "--json"]);
    let events = lines(&outcome);
    let names: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.last(), Some(&"run_finished"));
    assert_eq!(names.iter().filter(|name| **name == "gate").count(), 2);
    let simulated = |event: &&Value| event["event"] == "caution" && event["code"] == "simulated";
    assert!(events.iter().find(simulated).unwrap()["text"].is_string());
}
