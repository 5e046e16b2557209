//! Rows of every odd kind, through the program: each gets an answer, is reported as odd, and never passes a gate for it.

use crate::support::{Outcome, Suite, assize};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// A row of Assize; `changes` are laid over it.
fn row(mode: &str, scenario: &str, iteration: u64, changes: &Value) -> Value {
    let mut row = json!({
        "schemaVersion": 1, "runId": "r", "scenarioId": scenario, "mode": mode, "model": "m", "iteration": iteration,
        "success": true, "outcome": "pass", "tokens": {"total": 100 + 7 * iteration, "active": 100 + 7 * iteration},
        "timing": {"wallMs": 1000 + 10 * iteration}, "cost": {"totalUsd": 0.1}, "costSource": "reported",
        "completionReason": "stop", "extensions": {}
    });
    for (name, value) in changes.as_object().unwrap() {
        row[name] = value.clone();
    }
    row
}

/// Two modes, three scenarios, four runs of each, all with the same changes.
fn rows(changes: &Value) -> Vec<Value> {
    let cells = ["a", "b"]
        .into_iter()
        .flat_map(|mode| (0..12).map(move |n| (mode, n / 4, n % 4)));
    cells
        .map(|(mode, scenario, n)| row(mode, &format!("s{scenario}"), n, changes))
        .collect()
}

struct Rows(TempDir);

impl Rows {
    fn new(rows: &[Value]) -> Self {
        Self::of(
            &rows
                .iter()
                .map(|row| format!("{row}\n"))
                .collect::<String>(),
        )
    }

    fn of(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("rows.jsonl"), text).unwrap();
        Self(directory)
    }

    fn assize(&self, arguments: &[&str]) -> Outcome {
        assize(self.0.path())
            .args(arguments)
            .output()
            .unwrap()
            .into()
    }

    /// Reports, compares and gates; gives the summary.
    fn check(&self, gate: &str, code: i32) -> Value {
        for arguments in [
            &["report", "rows.jsonl", "--out", "out"][..],
            &["compare", "rows.jsonl", "--verbose", "--each"],
        ] {
            let outcome = self.assize(arguments);
            assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:#?}");
            let is_raw = |c: char| c.is_control() && c != '\n' && c != '\t';
            assert!(!outcome.stdout.contains(is_raw), "{outcome:#?}");
        }
        let outcome = self.assize(&["gate", "rows.jsonl", "--gate", gate]);
        assert_eq!(outcome.code, Some(code), "{outcome:#?}");
        summary(self.0.path())
    }
}

fn summary(directory: &Path) -> Value {
    let text = std::fs::read(directory.join("out/data/summary.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn codes(summary: &Value) -> Vec<&str> {
    let cautions = summary["cautions"].as_array().unwrap();
    cautions
        .iter()
        .map(|caution| caution["code"].as_str().unwrap())
        .collect()
}

fn says(summary: &Value, code: &str) {
    assert!(
        codes(summary).contains(&code),
        "no {code} in {:?}",
        codes(summary)
    );
}

#[test]
fn an_empty_run() {
    let summary = Rows::new(&[]).check("success >= 0.5", 4);
    says(&summary, "no-trials");
    assert_eq!(summary["modes"], json!({}));
}

#[test]
fn one_row() {
    let summary = Rows::new(&[row("a", "s", 0, &json!({}))]).check("success >= 0.5", 4);
    assert_eq!(summary["modes"]["a"]["runs"], 1);
    assert_eq!(summary["comparisons"], json!([]));
}

#[test]
fn one_mode() {
    let summary = Rows::new(&rows(&json!({}))[..12]).check("tokens_total <= baseline", 4);
    assert_eq!(summary["comparisons"], json!([]));
}

#[test]
fn only_void_trials() {
    let summary =
        Rows::new(&rows(&json!({"outcome": "void", "success": false}))).check("success >= 0.01", 4);
    says(&summary, "void");
    assert_eq!(summary["modes"]["a"]["success"]["rate"], Value::Null);
    assert_eq!(summary["modes"]["a"]["metrics"], json!({}));
}

#[test]
fn only_trials_that_ran_out_of_time() {
    let timeout = json!({"outcome": "fail", "success": false, "censored": true, "completionReason": "timeout"});
    let summary = Rows::new(&rows(&timeout)).check("latency_wall_ms < 999999", 4);
    says(&summary, "cut-off");
    assert_eq!(
        summary["modes"]["a"]["metrics"]["latency_wall_ms"]["median"],
        Value::Null
    );
    let comparisons = summary["comparisons"].as_array().unwrap();
    let time = comparisons
        .iter()
        .find(|found| found["metric"] == "latency_wall_ms")
        .unwrap();
    assert!(
        time["warnings"]
            .as_array()
            .unwrap()
            .contains(&json!("cut-off")),
        "{time}"
    );
}

#[test]
fn constant_metrics() {
    let same = json!({"tokens": {"total": 5, "active": 5}, "timing": {"wallMs": 7}, "extensions": {"zero": 0}});
    let summary = Rows::new(&rows(&same)).check("tokens_total <= 5", 0);
    let verdicts = summary["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| &found["verdict"]);
    for verdict in verdicts {
        assert!(
            verdict == "inconclusive" || verdict == "not-comparable",
            "{verdict}"
        );
    }
    assert!(!summary.to_string().contains("NaN"));
}

#[test]
fn unknown_extensions() {
    let extensions = json!({"extensions": {"mine": 3, "text": "=1+1", "list": [1], "nested": {"x": 1}, "none": null, "yes": true}});
    let summary = Rows::new(&rows(&extensions)).check("mine <= 3", 0);
    assert_eq!(summary["modes"]["a"]["metrics"]["mine"]["count"], 12);
    assert_eq!(summary["modes"]["a"]["metrics"]["text"], Value::Null);
}

#[test]
fn mixed_models() {
    let mut both = rows(&json!({}));
    both.extend(rows(&json!({"model": "other"})));
    let summary = Rows::new(&both).check("success >= 0.5", 0);
    says(&summary, "several-models");
    assert_eq!(summary["modes"]["a (other)"]["runs"], 12);
}

#[test]
fn repeated_rows() {
    let twice = [
        rows(&json!({})),
        rows(&json!({"success": false, "outcome": "fail"})),
    ]
    .concat();
    let summary = Rows::new(&twice).check("success >= 0.5", 0);
    says(&summary, "duplicate-rows");
    assert_eq!(summary["modes"]["a"]["runs"], 12);
}

#[test]
fn a_torn_file() {
    let text: String = rows(&json!({}))
        .iter()
        .map(|row| format!("{row}\n"))
        .collect();
    let summary = Rows::of(&text[..text.len() - 40]).check("success >= 0.5", 0);
    says(&summary, "torn-row");
    assert_eq!(summary["modes"]["b"]["runs"], 11);
    let broken = Rows::of(&text.replacen("\"mode\"", "\"mod", 1));
    let outcome = broken.assize(&["gate", "rows.jsonl", "--gate", "success >= 0.5"]);
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    assert!(outcome.stderr.contains("row 1"), "{outcome:#?}");
}

#[test]
fn names_of_every_kind() {
    for name in [
        "\u{202e}gnp.exe",
        "\u{1b}[31mred\u{1b}]0;t\u{7}",
        "e\u{301}\u{301}\u{301}",
        "👩‍👩‍👧‍👦",
        "\u{0}\u{1}\u{7f}\u{85}",
        "مرحبا",
        "\u{fffe}\u{ffff}",
        "<b>&amp;\"'|`$(x)",
        "../../etc",
        "",
        " ",
        "a\nb\tc\r",
        "\u{feff}\u{200b}",
        "=1+1",
        "𝕬\u{10ffff}",
    ] {
        let extensions: serde_json::Map<String, Value> =
            [(name.to_owned(), json!(1))].into_iter().collect();
        let changes = json!({"model": name, "runId": name, "completionReason": name, "extensions": extensions});
        let named = (0..8).map(|n| row(if n % 2 == 0 { name } else { "b" }, name, n / 2, &changes));
        let rows = Rows::new(&named.collect::<Vec<_>>());
        // Four runs say nothing about chance.
        let summary = rows.check("success >= 0.5", 4);
        assert_eq!(summary["modes"].as_object().unwrap().len(), 2, "{name:?}");
        let junit = std::fs::read_to_string(rows.0.path().join("out/junit.xml")).unwrap();
        let is_illegal = |c: char| (c < ' ' && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}');
        assert!(!junit.contains(is_illegal), "{junit}");
    }
}

#[test]
fn several_runs_at_once_and_rows_of_two_suites() {
    let (one, two) = (Suite::new(), Suite::new());
    for (suite, name) in [(&one, "one"), (&two, "two")] {
        let text = std::fs::read_to_string(suite.path().join("assize.yaml")).unwrap();
        suite.write("assize.yaml", format!("name: {name}\n{text}"));
        suite.done(&["run", "-q"]);
    }
    one.done(&["run", "-q", "--seed", "7"]);
    let runs = one.done(&["runs", "--json"]);
    let id = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["runId"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let ids: Vec<String> = runs.lines().map(id).collect();
    one.done(&["report", &ids[0], &ids[1], "--out", "out"]);
    assert_eq!(
        summary(one.path())["modes"]["plain"]["runs"],
        12,
        "two runs of one suite belong together"
    );
    let other = two.run_directory();
    for path in [other.clone(), other.join("rows.jsonl")] {
        one.done(&["report", "last", path.to_str().unwrap(), "--out", "out"]);
        let summary = summary(one.path());
        says(&summary, "several-suites");
        assert_eq!(summary["modes"]["plain @ two"]["runs"], 6);
        let compared = summary["comparisons"].as_array().unwrap();
        let suite = |label: &Value| {
            label
                .as_str()
                .unwrap()
                .rsplit(' ')
                .next()
                .unwrap()
                .to_owned()
        };
        assert!(
            compared
                .iter()
                .all(|found| suite(&found["modeA"]) == suite(&found["modeB"]))
        );
    }
}
