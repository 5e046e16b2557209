//! Resume trusts the disk: it does exactly the rest, whatever happened before.

use crate::support::*;
use assize_contracts::testing::{Script, ScriptedPrompt};
use assize_contracts::*;
use assize_engine::store::{CellKey, RunDirectory, StoreError};
use assize_engine::{EngineError, RunTarget};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn suite(repetitions: u32) -> Bench {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.modes = vec![mode("a"), mode("b")];
    bench.suite.hooks.clear();
    bench.suite.execution.repetitions = repetitions;
    bench
}

async fn resumed(bench: Bench, directory: &Path) -> Done {
    let target = RunTarget::Resume(RunDirectory::open(directory).unwrap());
    bench
        .run_with(target, Arc::new(()), CancellationToken::new())
        .await
}

fn cells(rows: &[ProfileRow]) -> BTreeSet<(String, i64)> {
    let cells: BTreeSet<_> = rows
        .iter()
        .map(|row| (row.mode.clone(), row.iteration))
        .collect();
    assert_eq!(cells.len(), rows.len(), "a cell is given twice");
    cells
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_row_cut_in_the_middle_of_a_character_is_repaired_and_run_again() {
    let first = suite(4).run().await;
    let rows = first.directory().join("rows.jsonl");
    let text = std::fs::read(&rows).unwrap();
    let last_line = text[..text.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    let mut torn = text[..last_line].to_vec();
    torn.extend("{\"runId\":\"ä".as_bytes());
    torn.pop();
    std::fs::write(&rows, torn).unwrap();

    let done = resumed(suite(4), &first.directory()).await;
    assert_eq!(
        done.provider.params().len(),
        1,
        "only the missing cell runs"
    );
    assert_eq!(cells(&done.rows()).len(), 8);
}

#[tokio::test]
async fn records_without_a_row_are_dropped() {
    let first = suite(4).run().await;
    let directory = first.directory();
    let rows = lines(&directory.join("rows.jsonl"));
    std::fs::write(
        directory.join("rows.jsonl"),
        format!("{}\n", rows[..6].join("\n")),
    )
    .unwrap();

    let done = resumed(suite(4), &directory).await;
    assert_eq!(done.provider.params().len(), 2);
    assert_eq!(lines(&directory.join("analysis.jsonl")).len(), 8);
    assert_eq!(lines(&directory.join("traces/index.jsonl")).len(), 8);
    let run = RunDirectory::open(&directory).unwrap();
    let traces = run.traces().unwrap();
    for row in run.rows().unwrap().map(Result::unwrap) {
        let key = CellKey::of(&row);
        let trace = traces.trace(&key).unwrap().unwrap();
        assert_eq!(
            Some(trace.session_id),
            row.session_id,
            "each row finds its own trace"
        );
    }
}

#[tokio::test]
async fn a_complete_run_has_nothing_to_resume() {
    let first = suite(2).run().await;
    let done = resumed(suite(2), &first.directory()).await;
    assert!(done.provider.calls().is_empty());
    assert_eq!(done.result.unwrap().open, 0);
}

#[tokio::test]
async fn a_run_can_be_made_longer() {
    let first = suite(2).run().await;
    let done = resumed(suite(5), &first.directory()).await;
    assert_eq!(done.provider.params().len(), 6);
    assert_eq!(cells(&done.rows()).len(), 10);
}

#[tokio::test]
async fn a_change_that_makes_trials_incomparable_is_named() {
    let mut bench = suite(2);
    bench.suite.description =
        serde_json::from_str(r#"{"scenarios": {"s": {"prompt": "hello"}}}"#).unwrap();
    let first = bench.run().await;
    let mut changed = suite(2);
    changed.suite.description =
        serde_json::from_str(r#"{"scenarios": {"s": {"prompt": "hallo"}}}"#).unwrap();
    let error = resumed(changed, &first.directory())
        .await
        .result
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(r#"`scenarios.s.prompt` was "hello", is "hallo""#),
        "{text}"
    );
}

#[tokio::test]
async fn another_value_of_an_environment_variable_is_noticed_without_being_stored() {
    let with = |value: &str| {
        let bench = suite(1);
        bench.suite.secrets.add("TOKEN", value);
        bench
    };
    let first = with("hunter22").run().await;
    let error = resumed(with("hunter33"), &first.directory())
        .await
        .result
        .unwrap_err()
        .to_string();
    assert!(error.contains("`TOKEN` has another value"), "{error}");
    assert!(!error.contains("hunter"));
}

#[tokio::test]
async fn void_trials_can_be_run_again() {
    let scripts = vec![
        Script::answering("hi"),
        Script::of(ScriptedPrompt::Fail(ProviderError::service("503"))),
        Script::answering("hi"),
    ];
    let mut first = Bench::new(scripts);
    first.suite.modes = vec![mode("a"), mode("b")];
    first.suite.hooks.clear();
    first.suite.execution.repetitions = 2;
    let first = first.run().await;
    let void = first
        .rows()
        .iter()
        .filter(|row| row.outcome == Some(Outcome::Void))
        .count();
    assert_eq!(void, 1);

    let again = suite(2);
    let target = RunTarget::ResumeVoid(RunDirectory::open(&first.directory()).unwrap());
    let done = again
        .run_with(target, Arc::new(()), CancellationToken::new())
        .await;
    assert_eq!(done.provider.params().len(), 1);
    let rows = done.rows();
    assert_eq!(cells(&rows).len(), 4);
    assert!(rows.iter().all(|row| row.outcome == Some(Outcome::Pass)));
    assert_eq!(lines(&done.directory().join("superseded.jsonl")).len(), 1);
    assert_eq!(lines(&done.directory().join("analysis.jsonl")).len(), 4);
}

#[tokio::test]
async fn a_second_process_is_kept_out() {
    let first = suite(1).run().await;
    let lock = OpenOptions::new()
        .append(true)
        .open(first.directory().join("lock"))
        .unwrap();
    lock.lock().unwrap();
    let error = resumed(suite(1), &first.directory())
        .await
        .result
        .unwrap_err();
    assert!(
        matches!(error, EngineError::Store(StoreError::Locked { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn foreign_and_newer_directories_are_refused() {
    let first = suite(1).run().await;
    let manifest = first.directory().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(
        &manifest,
        text.replacen("\"schemaVersion\": 2", "\"schemaVersion\": 99", 1),
    )
    .unwrap();
    assert!(matches!(
        RunDirectory::open(&first.directory()),
        Err(StoreError::Newer { found: 99, .. })
    ));
    std::fs::write(&manifest, "{}").unwrap();
    assert!(matches!(
        RunDirectory::open(&first.directory()),
        Err(StoreError::Foreign { .. })
    ));
    let error = RunDirectory::open(first.results.path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("is not a run of Assize: it has no `manifest.json`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_line_that_is_no_row_is_named_by_its_place() {
    let first = suite(2).run().await;
    let rows = first.directory().join("rows.jsonl");
    let mut file = OpenOptions::new().append(true).open(&rows).unwrap();
    file.write_all(b"{\"nonsense\": true}\n").unwrap();
    let error = resumed(suite(2), &first.directory())
        .await
        .result
        .unwrap_err()
        .to_string();
    assert!(error.contains("rows.jsonl:5: not a row"), "{error}");
}

#[tokio::test]
async fn the_same_suite_has_the_same_fingerprint() {
    let fingerprint = |done: &Done| {
        RunDirectory::open(&done.directory())
            .unwrap()
            .manifest()
            .fingerprint
            .clone()
    };
    let describe = |text: &str| {
        let mut bench = suite(1);
        bench.suite.description = serde_json::from_str(text).unwrap();
        bench
    };
    let one = describe(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#).run().await;
    let two = describe(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#).run().await;
    let three = describe(r#"{"b": {"d": 3, "c": 2}, "a": 2}"#).run().await;
    assert_eq!(
        fingerprint(&one),
        fingerprint(&two),
        "the order of keys means nothing"
    );
    assert_ne!(fingerprint(&one), fingerprint(&three));
}

#[tokio::test]
async fn units_are_kept_in_the_manifest() {
    let done = suite(1).run().await;
    let run = RunDirectory::open(&done.directory()).unwrap();
    assert_eq!(run.manifest().metric_units["answer_length"], "bytes");
}
