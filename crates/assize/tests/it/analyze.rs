//! `assize analyze` on files, directories and runs.

use crate::support::{Suite, assize};
use serde_json::Value;
use std::path::Path;

fn replayed() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/replay/sessions")
}

#[test]
fn recorded_sessions_are_explained() {
    let suite = Suite::new();
    let outcome = assize(suite.path())
        .arg("analyze")
        .arg(replayed())
        .output()
        .unwrap();
    let stdout = String::from_utf8(outcome.stdout).unwrap();
    assert!(outcome.status.success(), "{stdout}");
    for words in [
        "claude-code.json",
        "qwen-code.json",
        "tool-pattern",
        "1 tool calls",
        "efficiency",
    ] {
        assert!(stdout.contains(words), "no `{words}` in\n{stdout}");
    }
}

#[test]
fn json_lines_are_bundles_with_their_source_in_order() {
    let suite = Suite::new();
    let outcome = assize(suite.path())
        .args(["analyze", "--json", "--analyzer", "loops"])
        .arg(replayed())
        .output()
        .unwrap();
    let stdout = String::from_utf8(outcome.stdout).unwrap();
    let bundles: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(bundles.len(), 6);
    let sources: Vec<&str> = bundles
        .iter()
        .map(|bundle| bundle["source"].as_str().unwrap())
        .collect();
    assert!(sources.is_sorted(), "{sources:?}");
    assert_eq!(bundles[0]["sessionId"], "claude-code-ok");
    assert!(bundles[0]["results"]["loops"]["summary"].is_string());
}

#[test]
fn a_run_is_explained_again_and_the_findings_kept() {
    let suite = Suite::new();
    suite.done(&["run", "-q"]);
    assert!(!suite.run_directory().join("analysis.jsonl").exists());
    suite.done(&["analyze", "last"]);
    let kept = std::fs::read_to_string(suite.run_directory().join("analysis.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 12);

    // Another analyzer adds to what is known.
    suite.done(&["analyze", "last", "--analyzer", "loops"]);
    let kept = std::fs::read_to_string(suite.run_directory().join("analysis.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 12);
    for line in kept.lines() {
        let bundle: Value = serde_json::from_str(line).unwrap();
        let analyzers: Vec<&String> = bundle["results"].as_object().unwrap().keys().collect();
        assert_eq!(analyzers.len(), 6, "{analyzers:?}");
    }
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_explained() {
    let suite = Suite::new();
    suite.write("sessions/a.json", "{}");
    suite.write(
        "sessions/b.json",
        std::fs::read(replayed().join("codex.json")).unwrap(),
    );
    let outcome = suite.assize(&["analyze", "sessions"]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("a.json: not a session trace"),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("b.json"), "{outcome:?}");
    let wrong = suite.assize(&["analyze", "sessions", "--analyzer", "loop"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("did you mean `loops`?"), "{wrong:?}");
}

#[test]
fn times_seen_from_outside_are_said_to_be_bounds() {
    let suite = Suite::new();
    let outcome = assize(suite.path())
        .args(["analyze", "--analyzer", "time"])
        .arg(replayed().join("codex.json"))
        .output()
        .unwrap();
    let stdout = String::from_utf8(outcome.stdout).unwrap();
    let bounded = |line: &&str| line.contains("tool ") && line.ends_with("at most");
    assert!(stdout.lines().any(|line| bounded(&line)), "{stdout}");
}

#[test]
fn many_sessions_end_in_an_overview() {
    let suite = Suite::new();
    let explained = suite.done(&["analyze", replayed().to_str().unwrap()]);
    assert!(explained.contains("6 sessions"), "{explained}");
    let turns = explained.lines().find(|line| line.contains("total_turns"));
    let cells: Vec<&str> = turns.unwrap().split_whitespace().collect();
    assert_eq!(cells[1..6], ["total_turns", "6", "2", "2", "2"]);
}
