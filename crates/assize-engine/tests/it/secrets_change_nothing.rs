//! Whatever the values of the environment are, a run is the same run: its ids, counts, outcomes, and what a resume does.

use crate::support::*;
use assize_contracts::testing::{Script, ScriptedPrompt};
use assize_contracts::*;
use assize_engine::RunTarget;
use assize_engine::store::RunDirectory;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Two scenarios under two modes: an answer with a tool call, and a failure.
fn bench(secret: Option<&str>) -> Bench {
    let call = TraceEvent::ToolCall {
        name: "bash".into(),
        input: json!({"command": "run the tests", "mode": "text"}),
        output: json!("2026: all tests pass"),
        duration_ms: None,
        success: Some(true),
        error: None,
        context: None,
    };
    let text = TraceEvent::TextOutput {
        content: "the tests pass in mode plain".into(),
        token_count: Some(4),
        context: None,
    };
    let events = vec![Arc::new(call), Arc::new(text)];
    let trace = SessionTrace::from_events("session-1".into(), events, TokenBreakdown::default());
    let answer = PromptResult {
        text: "the tests pass in mode plain".into(),
        ..Default::default()
    };
    let answering = Script {
        export: Ok(trace),
        ..Script::of(ScriptedPrompt::Answer(Box::new(answer)))
    };
    let failing = Script::of(ScriptedPrompt::Fail(ProviderError::service("503: no text")));
    let mut bench = Bench::new(vec![
        answering.clone(),
        failing,
        answering.clone(),
        answering,
    ]);
    bench.suite.modes = vec![mode("plain"), mode("tests-first")];
    bench.suite.scenarios = ["fix-tests", "s"]
        .map(|id| Arc::new(BaseScenario::new(id, "run the tests")))
        .to_vec();
    if let Some(value) = secret {
        bench.suite.secrets.declare("ANY", value, true);
    }
    bench
}

/// A row without times and without text from outside.
fn kept(row: &ProfileRow) -> Value {
    json!([
        row.scenario_id,
        row.mode,
        row.model,
        row.iteration,
        row.position,
        row.block,
        row.provider,
        row.outcome,
        row.success,
        row.completion_reason,
        row.void_cause,
        row.error_code,
        row.error.is_some(),
        row.tokens,
        row.tool_calls.total,
        row.tool_calls.failed,
        row.tool_calls.by_category.values().sum::<u64>(),
        row.tool_calls.records.len(),
        row.checkpoints_total,
        row.extensions.keys().collect::<Vec<_>>(),
        row.extensions.get("answer_length"),
    ])
}

async fn rows_and_resume(secret: Option<&str>) -> Value {
    let done = bench(secret).run().await;
    let rows: Vec<Value> = done.rows().iter().map(kept).collect();
    let traces = RunDirectory::open(&done.directory())
        .unwrap()
        .traces()
        .unwrap();
    let events: Vec<usize> = done
        .rows()
        .iter()
        .filter_map(|row| traces.trace(&CellKey::of(row)).unwrap())
        .map(|trace| trace.events.len())
        .collect();
    let again = bench(secret);
    let target = RunTarget::Resume(RunDirectory::open(&done.directory()).unwrap());
    let resumed = again
        .run_with(target, Arc::new(()), CancellationToken::new())
        .await;
    let sessions = resumed.provider.params().len();
    let left: Vec<Value> = resumed.rows().iter().map(kept).collect();
    json!([rows, events, sessions, left])
}

fn any_value() -> impl Strategy<Value = String> {
    let words = [
        "test",
        "tests",
        "pass",
        "fail",
        "void",
        "mode",
        "text",
        "2026",
        "plain",
        "tests-first",
        "s",
        "fix-tests",
        "bash",
        "tool_call",
        "scripted",
        "answer_length",
        "noting",
        "true",
        "null",
        "0",
        "1",
        "-",
        "\"",
        "{",
        "session-1",
        "stop",
        "rows",
        "iteration",
        "outcome",
        "provider_error",
        "service",
    ];
    prop_oneof![
        proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        "[a-z0-9:.\\-_\"{}\\[\\],]{1,12}",
        "\\PC{1,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_the_same_whatever_its_secrets_are(value in any_value()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (plain, secret) = runtime.block_on(async {
            (rows_and_resume(None).await, rows_and_resume(Some(&value)).await)
        });
        prop_assert_eq!(&plain[2], &json!(0), "nothing is run again");
        prop_assert_eq!(plain, secret);
    }
}
