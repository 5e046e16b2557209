//! `-v`, `ASSIZE_LOG` and `output.log_level`: the log beside a run.

use crate::support::{SUITE, Suite, assize};
use serde_json::Value;
use std::path::PathBuf;

const PROGRAM: &str = "\
provider: { uses: command, command: [sh, -c, 'exit 0', '${env:ASSIZE_TEST_TOKEN}'] }
modes: { plain: {} }
scenarios: { paths: ['scenarios/*.yaml'] }
execution: { repetitions: 1, warmup: false }
";

/// The log of the only run, if there is one.
fn log(suite: &Suite) -> Option<Vec<Value>> {
    let runs = std::fs::read_dir(suite.path().join(".assize/runs")).unwrap();
    let runs: Vec<PathBuf> = runs.map(|entry| entry.unwrap().path()).collect();
    let mut logs = runs.iter().map(|run| run.join("log.jsonl"));
    let text = std::fs::read_to_string(logs.find(|log| log.exists())?).unwrap();
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

fn has_message(log: &[Value], message: &str) -> bool {
    log.iter().any(|line| line["message"] == message)
}

#[test]
fn nothing_is_logged_unless_it_is_asked_for() {
    let suite = Suite::new();
    suite.done(&["run", "-q"]);
    assert_eq!(log(&suite), None);
}

#[test]
fn a_verbose_run_logs_its_programs_and_no_secret() {
    let suite = Suite::of(PROGRAM);
    let output = assize(suite.path())
        .args(["run", "-q", "-v"])
        .env("ASSIZE_TEST_TOKEN", "hidden-token-4711")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = log(&suite).unwrap();
    assert!(has_message(&log, "started a program"), "{log:?}");
    assert!(has_message(&log, "the program ended"), "{log:?}");
    assert!(!has_message(&log, "commit trials"), "{log:?}");
    assert!(
        log[0]["at"].is_string() && log[0]["level"] == "info",
        "{log:?}"
    );
    assert!(!format!("{log:?}").contains("hidden-token-4711"));
}

#[test]
fn the_flag_counts_before_the_variable_and_the_variable_before_the_suite() {
    let suite = Suite::of(&format!("{SUITE}output: {{ log_level: debug }}\n"));
    let run = |level: &str, flags: &[&str]| {
        let _ = std::fs::remove_dir_all(suite.path().join(".assize"));
        let output = assize(suite.path())
            .args(["run", "-q"])
            .args(flags)
            .env("ASSIZE_LOG", level)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        log(&suite)
    };
    assert!(has_message(&run("", &[]).unwrap(), "commit trials"));
    assert_eq!(run("off", &[]), None);
    assert!(has_message(&run("off", &["-vv"]).unwrap(), "commit trials"));
}
