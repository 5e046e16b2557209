//! Runs that version 0.1 stored: every later version shows the same rows, metrics and records.

use crate::support::{Suite, assize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const RUNS: [&str; 8] = [
    "complete",
    "resumed",
    "lab",
    "lab-steps",
    "voids",
    "limits",
    "plugin",
    "cassette",
];

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs-0.1");
    fixtures.join(name)
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// A directory with the suite and the stored run.
pub(crate) fn stored(name: &str) -> Suite {
    let suite = Suite(TempDir::new().unwrap());
    copy(&fixture(name), suite.path());
    let runs = suite.path().join(".assize/runs");
    std::fs::create_dir_all(runs.parent().unwrap()).unwrap();
    std::fs::rename(suite.path().join("runs"), runs).unwrap();
    suite
}

fn read(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn lines(path: impl AsRef<Path>) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| serde_json::from_str(line).unwrap();
    text.lines().map(line).collect()
}

/// Everything that was stored is still there; later versions may say more.
fn assert_holds(found: &Value, stored: &Value, place: &str) {
    match (found, stored) {
        (Value::Object(found), Value::Object(stored)) => {
            for (key, value) in stored {
                let place = format!("{place}.{key}");
                match found.get(key) {
                    Some(found) => assert_holds(found, value, &place),
                    None => panic!("{place} is gone"),
                }
            }
        }
        (Value::Array(found), Value::Array(stored)) => {
            assert_eq!(found.len(), stored.len(), "{place}");
            for (number, (found, stored)) in found.iter().zip(stored).enumerate() {
                assert_holds(found, stored, &format!("{place}[{number}]"));
            }
        }
        (Value::Number(_), Value::Number(_)) => {
            let (found, stored) = (found.as_f64().unwrap(), stored.as_f64().unwrap());
            let near = (found - stored).abs() <= 1e-9 * stored.abs().max(1.0);
            assert!(near, "{place}: {found}, stored {stored}");
        }
        _ => assert_eq!(found, stored, "{place}"),
    }
}

#[test]
fn rows_metrics_and_records_of_0_1_are_shown_as_they_were_stored() {
    for name in RUNS {
        let suite = stored(name);
        let run = suite.run_directory();
        suite.done(&["report", "last", "--format", "all"]);
        assert_eq!(
            read(run.join("report/data/results.json")),
            Value::Array(lines(run.join("rows.jsonl"))),
            "{name}"
        );
        let expected = read(suite.path().join("expected.json"));
        let summary = read(run.join("report/data/summary.json"));
        assert_holds(&summary, &expected, name);
        let shown: Value =
            serde_json::from_str(&suite.done(&["show", "last/0", "--json"])).unwrap();
        assert_holds(&shown, &read(suite.path().join("show-0.json")), name);
    }
}

#[test]
fn every_command_that_reads_runs_reads_those_of_0_1() {
    for name in RUNS {
        let suite = stored(name);
        let rows = lines(suite.run_directory().join("rows.jsonl"));
        for trial in 0..rows.len() {
            suite.done(&["show", &format!("last/{trial}")]);
        }
        suite.done(&["compare", "last"]);
        suite.done(&["compare", "last", "--json"]);
        suite.done(&["runs"]);
        suite.done(&["runs", "show", "last"]);
        suite.done(&["history"]);
        if suite.run_directory().join("traces").exists() {
            suite.done(&["analyze", "last"]);
        }
        let gated = suite.assize(&["gate", "last"]);
        assert!(!matches!(gated.code, Some(1)), "{name}: {gated:#?}");
    }
}

#[test]
fn a_baseline_of_0_1_is_compared_with_a_run() {
    let suite = stored("complete");
    suite.done(&["baseline", "list"]);
    suite.done(&["baseline", "show", "kept"]);
    let run = suite.assize(&["run", "--yes", "-n", "2"]);
    assert!(!matches!(run.code, Some(1 | 2)), "{run:#?}");
    let gated = suite.assize(&["gate", "last", "--baseline", "kept"]);
    assert!(!matches!(gated.code, Some(1 | 2)), "{gated:#?}");
    assert!(
        gated.stdout.contains("tokens_total <= baseline"),
        "{gated:#?}"
    );
}

#[test]
fn what_changed_its_meaning_is_called_not_comparable_with_0_1() {
    let suite = stored("complete");
    suite.assize(&["run", "--yes", "-n", "2"]);
    let turns = ["--gate", "agent_turns <= baseline + 10%"];
    let gated = suite.assize(&[&["gate", "last", "--baseline", "kept"], &turns[..]].concat());
    assert_eq!(gated.code, Some(4), "{gated:#?}");
    for expected in [
        "agent_turns <= baseline + 10% · plain: not comparable",
        "Renew it: run the baseline's version again",
    ] {
        assert!(gated.stdout.contains(expected), "{gated:#?}");
    }
    let history = suite.assize(&["history", "--metric", "agent_turns"]);
    // Two modes of the old run, and the note below.
    let said = history.stdout.matches("not comparable").count();
    assert_eq!(said, 3, "{history:#?}");
}

#[test]
fn a_run_of_0_1_is_resumed() {
    let suite = stored("resumed");
    let before = lines(suite.run_directory().join("rows.jsonl"));
    // The suite lies elsewhere than when the run was begun.
    suite.done(&["run", ".", "--yes", "--resume", "last", "-n", "3"]);
    let after = lines(suite.run_directory().join("rows.jsonl"));
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), 12);
}

#[test]
fn a_cassette_of_0_1_answers_a_new_run() {
    let suite = stored("cassette");
    let python = assize(suite.path())
        .args(["run", "--yes"])
        .output()
        .unwrap();
    assert!(python.status.success(), "{python:#?}");
    let rows = suite.rows();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["replayed"], true, "{row:#}");
        assert_eq!(row["outcome"], "pass", "{row:#}");
    }
}

#[test]
fn a_reading_that_cannot_be_understood_is_an_error_with_its_place() {
    let suite = stored("complete");
    let path = suite.run_directory().join("manifest.json");
    let mut manifest = read(&path);
    manifest["provenance"]["analysis"]["of_tomorrow"] = true.into();
    std::fs::write(&path, manifest.to_string()).unwrap();
    for command in ["compare", "report", "gate"] {
        let outcome = suite.assize(&[command, "last"]);
        assert_eq!(outcome.code, Some(1), "{outcome:#?}");
        for words in ["provenance.analysis", "of_tomorrow", "hint:"] {
            assert!(outcome.stderr.contains(words), "{outcome:#?}");
        }
    }
    suite.done(&["show", "last/0"]);
}

#[test]
fn a_new_run_keeps_its_reading_apart_from_facts() {
    let suite = stored("complete");
    suite.assize(&["run", "--yes", "-n", "1"]);
    let manifest = read(suite.run_directory().join("manifest.json"));
    assert_eq!(manifest["reading"]["analysis"]["baseline"], "with-docs");
    assert_eq!(manifest["reading"]["gates"].as_array().unwrap().len(), 3);
    for part in ["analysis", "gates", "baseline", "prices"] {
        assert_eq!(manifest["provenance"][part], Value::Null, "{part}");
    }
}
