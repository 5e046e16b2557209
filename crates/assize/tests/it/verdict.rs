//! `report`, `compare`, the end of `run`, and the suite's `analysis:`.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

struct Answer {
    stdout: String,
    stderr: String,
    code: i32,
}

fn assize(directory: &Path, arguments: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_assize"))
        .args(arguments)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .env_remove("ASSIZE_OUTPUT")
        .output()
        .unwrap();
    Answer {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

fn done(directory: &Path, arguments: &[&str]) -> String {
    let answer = assize(directory, arguments);
    assert_eq!(answer.code, 0, "{arguments:?}\n{}", answer.stderr);
    answer.stdout
}

/// A directory with a suite of two simulated modes that differ for sure, and whatever else the suite should say.
fn suite(more: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mode = |name: &str, tokens: u32| {
        format!(
            "  {name}: {{ provider: {{ uses: simulated, model: m, latency_ms: {{ median: 2, spread: 0 }}, success_rate: 1, \
             tokens: {{ input: {{ median: {tokens}, spread: 0.02 }}, output: {{ median: 10, spread: 0 }} }} }} }}\n"
        )
    };
    let text = format!(
        "version: 1\nname: two\nmodes:\n{}{}scenarios: {{ paths: [\"s.yaml\"] }}\nexecution: {{ repetitions: 3 }}\n{more}",
        mode("plain", 9000),
        mode("docs", 3000)
    );
    std::fs::write(directory.path().join("assize.yaml"), text).unwrap();
    let scenario = "id: s\nname: s\ndescription: d\nprompt: p\nvars: { n: [1, 2, 3, 4, 5, 6] }\n";
    std::fs::write(directory.path().join("s.yaml"), scenario).unwrap();
    directory
}

fn row(mode: &str, iteration: u64, tokens: u64) -> Value {
    json!({
        "runId": "r", "scenarioId": "=cmd|' /c calc'!A1", "mode": mode, "model": "m", "iteration": iteration,
        "success": true, "tokens": {"total": tokens}, "timing": {"wallMs": tokens}, "cost": {"totalUsd": 0},
        "extensions": {"note": "<script>alert(1)</script>"}
    })
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn an_unfinished_run_says_so_first_and_judges_nothing_that_is_unbalanced() {
    let suite = suite("");
    done(suite.path(), &["run", "--quiet"]);
    let shown = done(suite.path(), &["compare"]);
    assert!(shown.contains('✓'), "{shown}");
    let runs = std::fs::read_dir(suite.path().join(".assize/runs")).unwrap();
    let run = runs
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.join("rows.jsonl").is_file())
        .unwrap();
    let rows = read(run.join("rows.jsonl"));
    let is_kept =
        |line: &&str| !(line.contains("\"mode\":\"docs\"") && line.contains("\"iteration\":2"));
    let fewer: Vec<&str> = rows.lines().filter(is_kept).collect();
    assert!(fewer.len() < rows.lines().count());
    std::fs::write(run.join("rows.jsonl"), fewer.join("\n") + "\n").unwrap();
    let shown = done(suite.path(), &["compare"]);
    assert!(shown.starts_with("The run is unfinished: "), "{shown}");
    assert!(!shown.contains('✓') && !shown.contains('✗'), "{shown}");
}

#[test]
fn the_metrics_that_decide_are_fixed_in_the_manifest() {
    let primary = |more: &str| -> Value {
        let suite = suite(more);
        done(suite.path(), &["run", "--quiet"]);
        let runs = std::fs::read_dir(suite.path().join(".assize/runs")).unwrap();
        let mut manifests = runs
            .filter_map(Result::ok)
            .map(|entry| entry.path().join("manifest.json"))
            .filter(|path| path.is_file());
        let manifest: Value = serde_json::from_str(&read(manifests.next().unwrap())).unwrap();
        manifest["reading"]["primary"].clone()
    };
    assert_eq!(
        primary(""),
        json!([
            ["success"],
            ["tokens_active", "tokens_total", "latency_wall_ms"]
        ])
    );
    assert_eq!(
        primary("analysis: { primary: [tokens_total] }\n"),
        json!([["tokens_total"]])
    );
}

#[test]
fn a_run_ends_with_a_verdict_and_a_report() {
    let suite = suite("");
    let shown = done(suite.path(), &["run", "--quiet"]);
    assert!(shown.contains("against plain"), "{shown}");
    assert!(shown.contains("note: Simulated"), "{shown}");
    let reported = shown.lines().find_map(|line| line.strip_prefix("report  "));
    let page = suite.path().join(reported.unwrap());
    assert!(read(&page).contains("<strong>Simulated.</strong>"));
    let text = read(page.with_file_name("report.md"));
    assert!(text.starts_with("# two\n\n## Verdict\n"));
    assert!(text.contains("## Efficiency"), "{text}");
    let analysis = read(page.with_file_name("analysis.md"));
    assert!(
        analysis.contains("Sessions with a trace: plain 18, docs 18"),
        "{analysis}"
    );
    assert!(analysis.contains("## efficiency") && analysis.contains("<details>"));
    let data = page.with_file_name("data");
    let summary: Value = serde_json::from_str(&read(data.join("summary.json"))).unwrap();
    assert_eq!(summary["modes"]["docs"]["runs"], 18);
    let rows: Vec<Value> = serde_json::from_str(&read(data.join("results.json"))).unwrap();
    assert_eq!(rows.len(), 36);
    assert_eq!(read(data.join("results.csv")).lines().count(), 37);
}

#[test]
fn modes_are_compared_in_words_and_as_json() {
    let suite = suite("");
    done(suite.path(), &["run", "--quiet"]);
    let words = done(suite.path(), &["compare", "--metric", "tokens_input"]);
    assert!(words.contains("✓ 66 % fewer input tokens"), "{words}");
    let lines = done(suite.path(), &["compare", "--json", "--baseline", "docs"]);
    for line in lines.lines() {
        let comparison: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&comparison["modeA"], &comparison["modeB"]),
            (&json!("plain"), &json!("docs"))
        );
    }
    let table = done(suite.path(), &["compare", "--verbose"]);
    assert!(table.contains("tool_calls_error_rate"), "{table}");
}

#[test]
fn two_runs_are_compared_mode_by_mode() {
    let suite = suite("");
    done(suite.path(), &["run", "--quiet"]);
    done(
        suite.path(),
        &["run", "--quiet", "--mode", "plain", "--seed", "7"],
    );
    let runs = done(suite.path(), &["runs", "--json"]);
    let first: Value = serde_json::from_str(runs.lines().next().unwrap()).unwrap();
    let shown = done(
        suite.path(),
        &[
            "compare",
            first["runId"].as_str().unwrap(),
            "last",
            "--metric",
            "tokens_input",
        ],
    );
    assert!(shown.contains("cannot tell for input tokens"), "{shown}");
}

#[test]
fn mistakes_are_named() {
    let suite = suite("");
    done(suite.path(), &["run", "--quiet"]);
    let answer = assize(suite.path(), &["compare", "--baseline", "nobody"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("unknown baseline `nobody`"),
        "{}",
        answer.stderr
    );
    let answer = assize(suite.path(), &["compare", "--metric", "tokens"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("no trial measured `tokens`"),
        "{}",
        answer.stderr
    );
    let answer = assize(suite.path(), &["report", "nothing.jsonl"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
}

#[test]
fn one_mode_is_nothing_to_compare() {
    let directory = tempfile::tempdir().unwrap();
    let rows = format!("{}\n{}\n", row("a", 0, 1), row("a", 1, 2));
    std::fs::write(directory.path().join("rows.jsonl"), rows).unwrap();
    let arguments = ["compare", "rows.jsonl", "--metric", "tokens_total"];
    let shown = done(directory.path(), &arguments);
    assert!(shown.contains("nothing to compare"), "{shown}");
}

#[test]
fn rows_from_elsewhere_are_reported_and_cannot_act() {
    let directory = tempfile::tempdir().unwrap();
    let rows: Vec<Value> = (0..4)
        .flat_map(|n| [row("<b>a", n, 100 + n), row("b", n, 200 + n)])
        .collect();
    std::fs::write(
        directory.path().join("results.json"),
        json!(rows).to_string(),
    )
    .unwrap();
    let shown = done(
        directory.path(),
        &["report", "results.json", "--out", "out"],
    );
    assert!(shown.contains("cost is unknown"), "{shown}");
    let page = read(directory.path().join("out/report.md"));
    assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
    let page = read(directory.path().join("out/report.html"));
    let scripts = page.matches("<script").count();
    assert!(scripts == 3 && !page.contains("<b>"), "{scripts} scripts");
    let table = read(directory.path().join("out/data/results.csv"));
    assert!(
        !table.contains(",=cmd") && table.contains("'=cmd"),
        "{table}"
    );
    let rows_as_written = read(directory.path().join("out/data/results.json"));
    assert_eq!(
        serde_json::from_str::<Value>(&rows_as_written).unwrap(),
        json!(rows)
    );
}

#[test]
fn only_the_asked_for_formats_are_written() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("rows.jsonl"),
        row("a", 0, 1).to_string(),
    )
    .unwrap();
    done(
        directory.path(),
        &["report", "rows.jsonl", "--format", "csv"],
    );
    assert!(directory.path().join("report/data/results.csv").exists());
    assert!(!directory.path().join("report/report.md").exists());
    assert!(!directory.path().join("report/report.html").exists());
}

#[test]
fn a_broken_row_is_an_error_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("{}\n{{\"mode\": 1}}\n{}\n", row("a", 0, 1), row("a", 1, 1));
    std::fs::write(directory.path().join("rows.jsonl"), text).unwrap();
    let answer = assize(directory.path(), &["report", "rows.jsonl"]);
    assert_eq!(answer.code, 1);
    assert!(
        answer.stderr.contains("in `rows.jsonl`: row 2: "),
        "{}",
        answer.stderr
    );
}

#[test]
fn the_suite_says_how_it_is_read() {
    let suite =
        suite("analysis: { baseline: docs, primary: [tokens_input], equivalence_margin: 5% }\n");
    let shown = done(suite.path(), &["run", "--quiet"]);
    assert!(shown.contains("against docs"), "{shown}");
    assert!(
        shown.contains("✗ plain: 200 % higher tokens_input") || shown.contains("✗ plain: 19"),
        "{shown}"
    );
    assert!(!shown.contains("success:"), "{shown}");
}

#[test]
fn another_analysis_does_not_keep_a_run_from_being_resumed() {
    let suite = suite("");
    done(suite.path(), &["run", "--quiet"]);
    let path = suite.path().join("assize.yaml");
    std::fs::write(&path, read(&path) + "analysis: { baseline: docs }\n").unwrap();
    let shown = done(suite.path(), &["run", "--quiet", "--resume", "last"]);
    assert!(shown.contains("against docs"), "{shown}");
    assert!(done(suite.path(), &["compare"]).contains("plain against docs"));
}

#[test]
fn an_analysis_without_meaning_is_refused() {
    for (analysis, expected) in [
        ("{ baseline: nobody }", "unknown mode `nobody`"),
        ("{ confidence: 95 }", "level 95 is not between 0 and 1"),
        ("{ equivalence_margin: wide }", "expected a share"),
        ("{ statistics: mean }", "statistic"),
    ] {
        let suite = suite(&format!("analysis: {analysis}\n"));
        let answer = assize(suite.path(), &["check"]);
        assert_eq!(answer.code, 2, "{analysis}");
        assert!(answer.stderr.contains(expected), "{}", answer.stderr);
    }
}
