//! The output for people, as files under `tests/snapshots` that a reviewer sees change.
//!
//! Times are taken out of the rows before anything is shown, so that the numbers of a snapshot are the same on every machine.
//! `make snapshots` writes the files anew.

use crate::support::{Suite, assize};
use insta::Settings;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// Text that differs between machines and runs, and its replacement.
const VARIES: [(&str, &str); 7] = [
    (r"\d{8}-\d{6}-[0-9a-f]{4}", "[run]"),
    (
        r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2})?(\.\d+)?Z?",
        "[date]",
    ),
    (r"\d{4}-\d{2}-\d{2}", "[date]"),
    (
        r"(?i)(assize |version |genai-prices )\d+\.\d+\.\d+",
        "$1[version]",
    ),
    (r"\[env: ([A-Z_]+)=[^\]]*\]", "[env: $1]"),
    (r"fingerprint [0-9a-f]{32}", "fingerprint [fingerprint]"),
    (r"[ \t]+\n", "\n"),
];

const TIMES: [(&str, &str); 2] = [
    (r" *\b\d+(\.\d+)? (ms|s)\b", " [time]"),
    // The evaluator of time in the example `booking`.
    (r"latency = \d+(\.\d+)?", "latency = [time]"),
];

/// Compares with the stored text.
fn check(name: &str, text: &str) {
    check_without(&VARIES, name, text);
}

/// The same for text in which measured times stand.
fn check_timed(name: &str, text: &str) {
    check_without(&[&VARIES[..], &TIMES].concat(), name, text);
}

fn check_without(filters: &[(&str, &str)], name: &str, text: &str) {
    let mut settings = Settings::new();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (pattern, kind) in filters {
        settings.add_filter(pattern, *kind);
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// An example of the repository, run and with the times of its rows replaced.
fn example(name: &str, arguments: &[&str]) -> Suite {
    let suite = Suite(TempDir::new().unwrap());
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    crate::stored_runs::copy(&from.join(name), suite.path());
    let run: Vec<&str> = ["run", "--yes", "--seed", "1"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    suite.done(&run);
    freeze(&suite);
    suite
}

/// Orders rows as they were planned, and gives every trial a time that follows from its place.
fn freeze(suite: &Suite) {
    let run = suite.run_directory();
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
    let is_time = |name: &str| {
        let metrics = manifest["metrics"].as_array().unwrap();
        let found = metrics.iter().find(|metric| metric["name"] == name);
        found.is_some_and(|metric| metric["unit"] == "ms") || name.ends_with("latency")
    };
    let mut rows = suite.rows();
    rows.sort_by_key(|row| row["position"].as_u64());
    for row in &mut rows {
        let place = row["position"].as_u64().unwrap();
        let ms = json!(1000 + 10 * place);
        row["timing"] = json!({"wallMs": ms});
        for (name, value) in row["extensions"].as_object_mut().into_iter().flatten() {
            if is_time(name) {
                *value = ms.clone();
            }
        }
    }
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(run.join("rows.jsonl"), rows).unwrap();
}

/// The table, the verdicts, a trial and report.md of an example.
fn check_example(name: &str, arguments: &[&str]) {
    let suite = example(name, arguments);
    check(
        &format!("{name}-table"),
        &suite.done(&["runs", "show", "last"]),
    );
    check(
        &format!("{name}-verdicts"),
        &suite.done(&["compare", "last", "--verbose"]),
    );
    check_timed(&format!("{name}-show"), &suite.done(&["show", "last/0"]));
    suite.done(&["report", "last", "--format", "md"]);
    let report = suite.run_directory().join("report/report.md");
    check_timed(
        &format!("{name}-report.md"),
        &std::fs::read_to_string(report).unwrap(),
    );
}

#[test]
fn the_quickstart_reads_as_it_did() {
    check_example("quickstart", &[]);
}

#[test]
fn replayed_sessions_read_as_they_did() {
    check_example("replay", &[]);
}

#[test]
fn the_examples_of_the_lab_read_as_they_did() {
    check_example("booking", &[]);
    for name in ["dialogue", "intent", "memory"] {
        check_example(name, &["--mode", "table"]);
    }
}

#[test]
fn gates_of_a_stored_run_read_as_they_did() {
    let suite = crate::stored_runs::stored("complete");
    let outcome = suite.assize(&["gate", "last"]);
    check("gate", &format!("{}\n{}", outcome.stdout, outcome.stderr));
    check("history", &suite.done(&["history"]));
}

/// The help of a command and of those below it.
fn check_help(path: &[&str]) {
    let directory = TempDir::new().unwrap();
    let output = assize(directory.path())
        .args(path)
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let name = ["help"].iter().chain(path).copied().collect::<Vec<_>>();
    check(&name.join("-"), &help);
    for command in subcommands(&help) {
        check_help(&[path, &[&command]].concat());
    }
}

/// The names in the lists of commands. Lines that are indented more go on with a description.
fn subcommands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| {
            *name != "help" && name.starts_with(|first: char| first.is_ascii_lowercase())
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_help_of_every_command_reads_as_it_did() {
    check_help(&[]);
}

/// The error for a wrong suite or command line.
fn check_error(name: &str, suite: &str, arguments: &[&str]) {
    let suite = Suite::of(suite);
    let outcome = suite.assize(arguments);
    assert_ne!(outcome.code, Some(0), "{outcome:#?}");
    let code = outcome.code.unwrap();
    let path = suite.path().to_str().unwrap();
    let text = outcome.stderr.replace(path, "[directory]");
    check(&format!("error-{name}"), &format!("{text}exit code {code}"));
}

#[test]
fn typical_errors_read_as_they_did() {
    let with = |lines: &str| crate::support::SUITE.to_owned() + lines;
    let run = ["run", "--yes"];
    for (name, suite, arguments) in [
        ("unknown-key", with("executoin: {}\n"), &run[..]),
        (
            "wrong-type",
            with("analysis: { resamples: many }\n"),
            &run[..],
        ),
        (
            "unknown-metric",
            with("gates: ['tokens_totl <= 5']\n"),
            &["check"],
        ),
        ("wrong-gate", with("gates: ['success = 0.9']\n"), &["check"]),
        ("no-yaml", "modes: [a\n".to_owned(), &["check"]),
        ("unknown-command", with(""), &["rnu"]),
        ("unknown-option", with(""), &["run", "--repetitons", "3"]),
        ("no-run", with(""), &["show", "last/0"]),
        ("no-suite", with(""), &["run", "elsewhere.yaml"]),
        (
            "unknown-mode",
            with(""),
            &["run", "--yes", "--mode", "othr"],
        ),
    ] {
        check_error(name, &suite, arguments);
    }
}
