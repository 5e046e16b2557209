//! Trials of tasks: what is executed, traced, scored and stored. The rules of the lab's specification (规范 1 to 3) are
//! named where they are tested.

use crate::support::*;
use assize_contracts::testing::Script;
use assize_contracts::*;
use assize_engine::store::RunDirectory;
use assize_engine::{RunTarget, TaskSet, UsedEvaluator, UsedRunner};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

type Answer = Arc<dyn Fn(&AtomicTask) -> Result<Value, BoxError> + Send + Sync>;

/// A runner that answers at once, with as bare a record as there can be.
struct Instant {
    kind: &'static str,
    answer: Answer,
}

fn bare(task: &AtomicTask, output: Value) -> RunRecord {
    serde_json::from_value(json!({
        "id": "mine", "taskId": task.id, "taskType": "atomic", "status": "completed", "output": output,
        "metrics": {"latency": 2, "tokens": 10, "cost": 0.5}, "trace": [], "startedAt": "",
        "provenance": {"runnerId": "mine", "runnerVersion": "0", "config": {}},
    }))
    .unwrap()
}

#[async_trait]
impl Runner for Instant {
    fn id(&self) -> &str {
        "instant"
    }

    fn task_type(&self) -> &str {
        self.kind
    }

    fn version(&self) -> &str {
        "1.2.3"
    }

    async fn execute(&self, task: &AtomicTask, _: &Value) -> Result<RunRecord, BoxError> {
        let answer = (self.answer)(task)?;
        if let Some(record) = answer.get("record") {
            let mut bare = json!(bare(task, Value::Null));
            let changes = record.as_object().unwrap().clone();
            bare.as_object_mut().unwrap().extend(changes);
            return Ok(serde_json::from_value(bare).unwrap());
        }
        if answer == json!("hang") {
            std::future::pending::<()>().await;
        }
        Ok(bare(task, answer))
    }
}

/// Says whether the output is what was expected, and of chains whether they are complete.
struct Same(Behaviour);

#[async_trait]
impl Evaluator for Same {
    fn id(&self) -> &str {
        "same"
    }

    fn metrics(&self) -> &[String] {
        &[]
    }

    async fn evaluate(
        &self,
        run: &RunRecord,
        task: &AtomicTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        match self.0 {
            Behaviour::Fine => {}
            Behaviour::Fails => return Err("it broke".into()),
            Behaviour::Panics => panic!("it panicked"),
        }
        let Some(expected) = &task.expected else {
            return Ok(Vec::new());
        };
        let right = Number::from(u64::from(run.output.as_ref() == Some(expected)));
        Ok(vec![ScoreRecord::new(
            run,
            "accuracy",
            right,
            ScoreTarget::Final,
        )])
    }

    async fn evaluate_scenario(
        &self,
        run: &RunRecord,
        _: &ScenarioTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let complete = run.status == RunStatus::Completed;
        Ok(vec![
            ScoreRecord::new(run, "complete", complete, ScoreTarget::Global),
            ScoreRecord::new(
                run,
                "output",
                json!(run.output).to_string(),
                ScoreTarget::Final,
            ),
        ])
    }
}

fn atomic(id: &str, more: Value) -> Value {
    let mut task =
        json!({"id": id, "name": id, "type": "a", "input": "hi", "expected": "HI", "metadata": {}});
    task.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    task
}

fn bench(
    tasks: Vec<Value>,
    answer: impl Fn(&AtomicTask) -> Result<Value, BoxError> + Send + Sync + 'static,
) -> Bench {
    let mut bench = Bench::new(vec![Script::answering("never asked")]);
    let answer: Answer = Arc::new(answer);
    let tasks: Vec<Arc<Task>> = tasks
        .into_iter()
        .map(|task| Arc::new(serde_json::from_value(task).unwrap()))
        .collect();
    bench.suite.scenarios.clear();
    bench.suite.hooks.clear();
    let runners = ["a", "b"].map(|kind| {
        let runner = Instant {
            kind,
            answer: Arc::clone(&answer),
        };
        let used = UsedRunner::new(
            format!("{kind}-runner"),
            Arc::new(runner),
            json!({"level": 1}),
        );
        (kind.to_owned(), Arc::new(used))
    });
    bench.suite.modes[0].runners = Arc::new(runners.into());
    bench.suite.evaluators = vec![UsedEvaluator {
        id: "same".into(),
        evaluator: Arc::new(Same(Behaviour::Fine)),
        types: Vec::new(),
    }];
    bench.suite.tasks = Some(TaskSet {
        source: Arc::new(tasks),
        pass: Vec::new(),
        timeout_ms: 60_000,
        allowed_retries: 0,
        record: Default::default(),
    });
    bench
}

fn shout(task: &AtomicTask) -> Result<Value, BoxError> {
    Ok(match &task.input {
        Value::String(text) => text.to_uppercase().into(),
        other => json!({"seen": other}),
    })
}

fn stored<T: serde::de::DeserializeOwned>(directory: &Path, name: &str) -> Vec<T> {
    let text = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn record(done: &Done) -> RunRecord {
    stored(&done.directory(), "runs.jsonl").remove(0)
}

fn events(record: &RunRecord) -> Vec<&str> {
    record.trace.iter().map(|event| &*event.event).collect()
}

#[tokio::test]
async fn a_task_is_executed_scored_and_stored_with_its_row() {
    let done = bench(vec![atomic("t", json!({}))], shout).run().await;
    let row = done.row();
    assert_eq!(
        (row.outcome, row.scenario_id.as_str()),
        (Some(Outcome::Pass), "t")
    );
    assert_eq!(
        (row.tokens.total, row.cost.total_usd.unwrap().value()),
        (Some(10), 0.5)
    );
    assert_eq!(row.extensions["accuracy"], json!(1));
    let run = record(&done);
    assert_eq!(row.session_id.as_ref(), Some(&run.id));
    // The record names the runner itself, the row the suite's name for it.
    assert_eq!(run.provenance.runner_id, "instant");
    assert_eq!(row.provider, "a-runner");
    assert_eq!(run.provenance.runner_version, "1.2.3");
    assert_eq!(
        run.provenance.config,
        *json!({"level": 1}).as_object().unwrap()
    );
    assert_eq!(run.provenance.config_hash.as_ref().unwrap().len(), 32);
    let scores: Vec<ScoreRecord> = stored(&done.directory(), "scores.jsonl");
    assert_eq!(
        (scores[0].run_id.as_str(), scores[0].evaluator_id.as_str()),
        (run.id.as_str(), "same")
    );
    assert!(!scores[0].id.is_empty() && scores[0].created_at.unix_ms().is_some());
}

#[test]
fn rule_1_a_module_field_outside_extensions_is_refused() {
    let outside = atomic("t", json!({"intentSpecificField": "value"}));
    let error = serde_json::from_value::<AtomicTask>(outside).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("unknown field `intentSpecificField`"),
        "{error}"
    );
    let inside = atomic("t", json!({"extensions": {"intentSpecificField": "value"}}));
    assert!(serde_json::from_value::<AtomicTask>(inside).is_ok());
}

#[tokio::test]
async fn rule_1_extensions_reach_the_runner_as_they_are() {
    let task = atomic(
        "t",
        json!({"extensions": {"field": [1]}, "expected": {"field": [1]}}),
    );
    let done = bench(vec![task], |task| Ok(json!(task.extensions)))
        .run()
        .await;
    assert_eq!(done.row().outcome, Some(Outcome::Pass));
}

#[test]
fn rule_1_holds_for_chains_and_for_their_steps() {
    let own = json!({"intentSpecificField": "value"});
    let with = |change: fn(&mut Value, Value)| {
        let mut chain = chain(good_map());
        change(&mut chain, own.clone());
        serde_json::from_value::<ScenarioTask>(chain)
    };
    let outside: [fn(&mut Value, Value); 2] = [
        |chain, own| chain["intentSpecificField"] = own,
        |chain, own| chain["steps"][1]["intentSpecificField"] = own,
    ];
    for change in outside {
        let error = with(change).unwrap_err().to_string();
        assert!(error.contains("`intentSpecificField`"), "{error}");
    }
    let inside: [fn(&mut Value, Value); 2] = [
        |chain, own| chain["extensions"] = own,
        |chain, own| chain["steps"][1]["extensions"] = own,
    ];
    for change in inside {
        assert!(with(change).is_ok());
    }
}

#[test]
fn rule_2_a_record_without_a_trace_is_no_record() {
    let task = serde_json::from_value(atomic("t", json!({}))).unwrap();
    let mut record = json!(bare(&task, Value::Null));
    record.as_object_mut().unwrap().shift_remove("trace");
    let error = serde_json::from_value::<RunRecord>(record).unwrap_err();
    assert!(
        error.to_string().contains("missing field `trace`"),
        "{error}"
    );
}

/// Every way in which an execution can fail, by the input that makes it.
fn failing(task: &AtomicTask) -> Result<Value, BoxError> {
    match task.input.as_str() {
        Some("error") => Err("it broke".into()),
        Some("panic") => panic!("it panicked"),
        Some("hang") => Ok(json!("hang")),
        Some("unfinished") => Ok(json!({"record": {"status": "running"}})),
        Some("no reason") => Ok(json!({"record": {"status": "failed"}})),
        _ => shout(task),
    }
}

#[tokio::test(start_paused = true)]
async fn rules_2_and_3_hold_however_an_execution_fails() {
    for input in [
        "error",
        "panic",
        "hang",
        "unfinished",
        "no reason",
        "nobody",
    ] {
        let kind = if input == "nobody" { "nobody" } else { "a" };
        let changes = json!({"type": kind, "input": input, "metadata": {"timeout": 50}});
        let alone = atomic("t", changes.clone());
        let mut chain = chain(json!({}));
        chain["steps"][1] = atomic("two", changes);
        for (task, step) in [(alone, "execute"), (chain, "two")] {
            let run = record(&bench(vec![task], failing).run().await);
            let error = run.error.as_ref().unwrap();
            assert_eq!(error.step.as_deref(), Some(step), "{input}: {error:?}");
            assert!(!error.message.is_empty());
            let (first, last) = (&run.trace[0], run.trace.last().unwrap());
            assert_eq!((&*first.event, &*last.event), ("started", "failed"));
            assert_eq!(last.level, TaskEventLevel::Error);
            assert_eq!(last.data.as_ref().unwrap()["error"], *error.message);
            assert_eq!(
                (run.status, &run.output),
                (RunStatus::Failed, &None),
                "{input}"
            );
        }
    }
}

#[tokio::test]
async fn rule_2_a_runner_that_keeps_no_trace_gets_one() {
    let done = bench(vec![atomic("t", json!({}))], shout).run().await;
    let run = record(&done);
    assert_eq!(events(&run), ["started", "completed"]);
    assert!(
        run.trace
            .iter()
            .all(|event| event.timestamp.unix_ms().is_some())
    );
}

#[tokio::test]
async fn rule_2_a_failure_ends_the_trace_with_its_error() {
    let failed = |_: &AtomicTask| {
        Ok(
            json!({"record": {"status": "failed", "error": {"message": "Validation failed"}, "output": null}}),
        )
    };
    let done = bench(vec![atomic("t", json!({}))], failed).run().await;
    let run = record(&done);
    assert_eq!(events(&run), ["started", "failed"]);
    let last = run.trace.last().unwrap();
    assert_eq!(
        (last.level, &last.data.as_ref().unwrap()["error"]),
        (TaskEventLevel::Error, &json!("Validation failed"))
    );
}

#[tokio::test]
async fn rule_2_a_complete_trace_stays_as_it_is() {
    let trace = json!([
        {"timestamp": "2024-01-01T10:00:00Z", "level": "info", "event": "started"},
        {"timestamp": "2024-01-01T10:00:01Z", "level": "debug", "event": "llm_call", "data": {"model": "m"}},
        {"timestamp": "2024-01-01T10:00:02Z", "level": "info", "event": "completed"},
    ]);
    let given = trace.clone();
    let done = bench(vec![atomic("t", json!({}))], move |_| {
        Ok(json!({"record": {"output": "HI", "trace": given}}))
    })
    .run()
    .await;
    assert_eq!(json!(record(&done).trace), trace);
}

#[tokio::test]
async fn rule_3_an_error_names_its_step() {
    let failed = |error: Value| {
        move |_: &AtomicTask| Ok(json!({"record": {"status": "failed", "error": error}}))
    };
    let bare = bench(
        vec![atomic("t", json!({}))],
        failed(json!({"message": "Validation failed"})),
    )
    .run()
    .await;
    assert_eq!(
        record(&bare).error.unwrap().step.as_deref(),
        Some("execute")
    );
    let named = json!({"message": "Validation failed", "step": "validate-input"});
    let named = bench(vec![atomic("t", json!({}))], failed(named))
        .run()
        .await;
    assert_eq!(
        record(&named).error.unwrap().step.as_deref(),
        Some("validate-input")
    );
    assert_eq!(
        named.row().error.as_deref(),
        Some("validate-input: Validation failed")
    );
}

fn chain(input_map: Value) -> Value {
    json!({
        "id": "chain", "name": "chain", "description": "", "metadata": {}, "input": {"who": "Ada"},
        "steps": [
            atomic("one", json!({})),
            atomic("two", json!({"type": "b", "input": {"got": null}, "expected": null})),
            atomic("three", json!({"input": {}, "expected": {"seen": {"all": {"seen": {"got": "HI"}}, "who": "Ada"}}})),
        ],
        "input_map": input_map,
    })
}

fn good_map() -> Value {
    json!({
        "two": [{"from": "step:one.output", "to": "input.got"}],
        "three": [{"from": "step:previous", "to": "input.all"}, {"from": "input:who", "to": "input.who"}],
    })
}

#[tokio::test]
async fn a_chain_carries_data_from_step_to_step() {
    let done = bench(vec![chain(good_map())], shout).run().await;
    let run = record(&done);
    assert_eq!(run.status, RunStatus::Completed, "{run:#?}");
    assert_eq!(
        run.output,
        Some(json!({"seen": {"all": {"seen": {"got": "HI"}}, "who": "Ada"}}))
    );
    assert_eq!(
        (run.metrics.latency.value(), run.metrics.tokens),
        (6.0, Some(30))
    );
    let statuses: Vec<StepStatus> = run.steps.iter().flatten().map(|step| step.status).collect();
    assert_eq!(statuses, [StepStatus::Completed; 3]);
    assert_eq!(
        (run.task_type, run.provenance.runner_id.as_str()),
        (TaskKind::Scenario, "scenario")
    );
    assert_eq!(
        run.provenance.config["steps"]["two"]["runnerId"],
        json!("instant")
    );
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Pass), "{row:#?}");
    assert_eq!(
        (&row.extensions["one.accuracy"], &row.extensions["complete"]),
        (&json!(1), &json!(1))
    );
    let scores: Vec<ScoreRecord> = stored(&done.directory(), "scores.jsonl");
    let targets: Vec<String> = scores
        .iter()
        .map(|score| json!(score.target).as_str().unwrap().to_owned())
        .collect();
    assert_eq!(targets, ["step:one", "step:three", "global", "final"]);
    assert!(scores.iter().all(|score| score.run_id == run.id));
}

#[tokio::test]
async fn rule_2_every_event_of_a_step_carries_the_step() {
    let done = bench(vec![chain(good_map())], shout).run().await;
    let trace = record(&done).trace;
    let of = |step: Option<&str>| -> Vec<String> {
        let events = trace.iter().filter(|event| event.step.as_deref() == step);
        events.map(|event| event.event.clone()).collect()
    };
    assert_eq!(of(None), ["started", "completed"]);
    assert_eq!(of(Some("one")), ["started", "completed"]);
    assert_eq!(
        of(Some("three")),
        ["input_mapped", "input_mapped", "started", "completed"]
    );
}

#[tokio::test]
async fn rule_3_a_wrong_path_fails_its_step_and_names_both_ends() {
    let map = json!({"two": [{"from": "step:one.output.intent", "to": "input.got"}]});
    let done = bench(vec![chain(map), atomic("other", json!({}))], shout)
        .run()
        .await;
    let run = record(&done);
    let error = run.error.as_ref().unwrap();
    assert_eq!(error.step.as_deref(), Some("two"));
    for part in [
        "`step:one.output.intent`",
        "`input.got`",
        "the output of `one`",
        "\"HI\"",
    ] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    let statuses: Vec<StepStatus> = run.steps.iter().flatten().map(|step| step.status).collect();
    assert_eq!(
        statuses,
        [
            StepStatus::Completed,
            StepStatus::Failed,
            StepStatus::Skipped
        ]
    );
    assert_eq!(events(&run).last(), Some(&"failed"));
    assert_eq!(run.metrics.tokens, Some(10), "what was used until then");
    let outcomes: Vec<_> = done.rows().iter().map(|row| row.outcome.unwrap()).collect();
    assert_eq!(
        outcomes,
        [Outcome::Fail, Outcome::Pass],
        "nothing else is lost"
    );
}

#[tokio::test]
async fn a_runner_that_crashes_makes_its_trial_void_and_no_other() {
    for crash in ["error", "panic"] {
        let answer = move |task: &AtomicTask| match (task.id.as_str(), crash) {
            ("bad", "error") => Err("the runner broke".into()),
            ("bad", _) => panic!("the runner broke"),
            _ => shout(task),
        };
        let done = bench(
            vec![atomic("bad", json!({})), atomic("good", json!({}))],
            answer,
        )
        .run()
        .await;
        let rows = done.rows();
        assert_eq!(rows[0].outcome, Some(Outcome::Void));
        assert_eq!(rows[0].error_code.as_deref(), Some("runner_error"));
        assert_eq!(rows[1].outcome, Some(Outcome::Pass));
        let run = record(&done);
        assert!(run.error.unwrap().message.contains("the runner broke"));
        assert_eq!(run.trace.last().unwrap().event, "failed");
    }
}

#[tokio::test]
async fn a_record_that_is_not_over_is_none() {
    let done = bench(vec![atomic("t", json!({}))], |_| {
        Ok(json!({"record": {"status": "running"}}))
    })
    .run()
    .await;
    assert_eq!(done.row().outcome, Some(Outcome::Void));
    assert_eq!(
        record(&done).status,
        RunStatus::Failed,
        "pending and running are never stored"
    );
}

#[tokio::test]
async fn an_evaluator_that_breaks_loses_its_own_scores_only() {
    for behaviour in [Behaviour::Fails, Behaviour::Panics] {
        let mut bench = bench(vec![atomic("t", json!({}))], shout);
        bench.suite.evaluators.push(UsedEvaluator {
            id: "broken".into(),
            evaluator: Arc::new(Same(behaviour)),
            types: Vec::new(),
        });
        let done = bench.run().await;
        let row = done.row();
        assert_eq!(row.extensions["accuracy"], json!(1));
        assert_eq!(row.hook_errors[0].hook, "evaluator:broken");
        // It might have said no.
        assert_eq!(
            (row.outcome, row.error_code.as_deref()),
            (Some(Outcome::Void), Some("evaluator_error"))
        );
    }
}

#[tokio::test]
async fn an_evaluator_that_breaks_does_not_save_a_task_that_fails_anyway() {
    let mut bench = bench(vec![atomic("t", json!({"expected": "no"}))], shout);
    bench.suite.evaluators.push(UsedEvaluator {
        id: "broken".into(),
        evaluator: Arc::new(Same(Behaviour::Fails)),
        types: Vec::new(),
    });
    assert_eq!(bench.run().await.row().outcome, Some(Outcome::Fail));
}

#[tokio::test]
async fn evaluators_score_the_types_they_are_for() {
    let mut bench = bench(vec![atomic("t", json!({}))], shout);
    bench.suite.evaluators[0].types = vec!["other".into()];
    assert!(bench.run().await.row().extensions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_fails_and_is_censored() {
    let task = atomic("t", json!({"metadata": {"timeout": 50}}));
    let done = bench(vec![task], |_| Ok(json!("hang"))).run().await;
    let row = done.row();
    assert_eq!((row.outcome, row.censored), (Some(Outcome::Fail), true));
    assert_eq!(
        row.error.as_deref(),
        Some("execute: no answer within 50 ms")
    );
    assert_eq!(row.tokens.total, None, "what was used nobody knows");
}

#[tokio::test]
async fn conditions_of_the_task_come_before_those_of_the_suite() {
    let own = atomic("own", json!({"expected": "no", "pass": ["accuracy == 0"]}));
    let mut bench = bench(vec![own, atomic("suite", json!({}))], shout);
    bench.suite.tasks.as_mut().unwrap().pass = vec!["accuracy >= 2".parse().unwrap()];
    let rows = bench.run().await.rows();
    assert_eq!(rows[0].outcome, Some(Outcome::Pass));
    assert_eq!(rows[1].outcome, Some(Outcome::Fail));
    assert_eq!(rows[1].checkpoint_details[0].id, "accuracy >= 2");
}

#[tokio::test]
async fn void_attempts_are_tried_again() {
    let calls = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let mut bench = bench(vec![atomic("t", json!({}))], move |task| {
        match counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Err("once".into()),
            _ => shout(task),
        }
    });
    bench.suite.tasks.as_mut().unwrap().allowed_retries = 1;
    let row = bench.run().await.row();
    assert_eq!((row.outcome, row.attempts.len()), (Some(Outcome::Pass), 1));
}

#[tokio::test]
async fn records_and_scores_without_a_row_are_dropped_on_resume() {
    let tasks = || {
        (0..6)
            .map(|number| atomic(&format!("t{number}"), json!({})))
            .collect()
    };
    let done = bench(tasks(), shout).run().await;
    let directory = done.directory();
    let rows = std::fs::read_to_string(directory.join("rows.jsonl")).unwrap();
    let kept: Vec<&str> = rows.lines().take(4).collect();
    std::fs::write(
        directory.join("rows.jsonl"),
        format!("{}\n", kept.join("\n")),
    )
    .unwrap();
    let torn = std::fs::read(directory.join("scores.jsonl")).unwrap();
    std::fs::write(directory.join("scores.jsonl"), &torn[..torn.len() - 10]).unwrap();

    let target = RunTarget::Resume(RunDirectory::open(&directory).unwrap());
    let again = bench(tasks(), shout)
        .run_with(target, Arc::new(()), CancellationToken::new())
        .await;
    assert_eq!(again.result.as_ref().unwrap().open, 0);
    assert_eq!(again.rows().len(), 6);
    let ids = |name: &str, key: &str| -> std::collections::BTreeSet<String> {
        let records: Vec<Value> = stored(&directory, name);
        assert_eq!(records.len(), 6, "{name}");
        records
            .iter()
            .map(|record| record[key].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids("runs.jsonl", "id").len(), 6);
    assert_eq!(ids("runs.jsonl", "id"), ids("scores.jsonl", "runId"));
}

#[tokio::test]
async fn tasks_stand_beside_scenarios_in_one_run() {
    let mut bench = bench(vec![atomic("t", json!({}))], shout);
    bench.suite.scenarios = vec![Arc::new(BaseScenario::new("s", "hello"))];
    let mut rows = bench.run().await.rows();
    rows.sort_by(|a, b| a.scenario_id.cmp(&b.scenario_id));
    let providers: Vec<&str> = rows.iter().map(|row| &*row.provider).collect();
    assert_eq!(providers, ["scripted", "a-runner"]);
}

#[tokio::test]
async fn equal_executions_have_equal_fingerprints() {
    let fingerprint = |task: Value| async move {
        record(&bench(vec![task], shout).run().await)
            .provenance
            .run_fingerprint
            .unwrap()
    };
    let first = fingerprint(atomic("t", json!({}))).await;
    assert_eq!(first, fingerprint(atomic("t", json!({}))).await);
    assert_ne!(
        first,
        fingerprint(atomic("t", json!({"input": "other"}))).await
    );
}
