use assize_contracts::*;
use serde_json::{Value, json};
use std::path::Path;

fn run(output: Option<Value>) -> RunRecord {
    let status = if output.is_some() {
        "completed"
    } else {
        "failed"
    };
    let mut record = json!({
        "id": "run", "taskId": "t", "taskType": "atomic", "status": status,
        "metrics": {"latency": 12.5}, "trace": [], "startedAt": "2026-01-01T00:00:00Z",
        "provenance": {"runnerId": "r", "runnerVersion": "1", "config": {}},
    });
    match output {
        Some(output) => record["output"] = output,
        None => record["error"] = json!({"message": "it broke", "step": "execute"}),
    }
    serde_json::from_value(record).unwrap()
}

fn task(expected: Value) -> AtomicTask {
    serde_json::from_value(json!({
        "id": "t", "name": "t", "type": "x", "input": "i", "expected": expected, "metadata": {},
        "extensions": {"checks": [{"output": {"contains": "book"}}]},
    }))
    .unwrap()
}

fn made(uses: &str, config: Value) -> Result<std::sync::Arc<dyn Evaluator>, ConfigError> {
    let plugins = crate::plugins();
    let config = config.as_object().unwrap();
    let setup = EvaluatorSetup {
        id: "e",
        config,
        directory: Path::new("."),
        plugins: &plugins,
    };
    plugins.evaluators()[uses].make(&setup)
}

fn scores(uses: &str, config: Value, output: Option<Value>, expected: Value) -> Vec<ScoreRecord> {
    let evaluator = made(uses, config).unwrap();
    pollster::block_on(evaluator.evaluate(&run(output), &task(expected))).unwrap()
}

fn check(uses: &str, config: Value, output: Value, expected: Value, metric: &str, value: Value) {
    let scores = scores(uses, config.clone(), Some(output.clone()), expected);
    let found = scores.iter().find(|score| score.metric == metric).unwrap();
    assert_eq!(
        json!(found.value),
        value,
        "{uses} {config} {output}: {found:?}"
    );
}

#[test]
fn exact_compares_the_whole_or_a_part() {
    let none = || json!({});
    check(
        "exact",
        none(),
        json!({"a": 1}),
        json!({"a": 1.0}),
        "accuracy",
        json!(1),
    );
    check(
        "exact",
        none(),
        json!({"a": 1, "b": 2}),
        json!({"a": 1}),
        "accuracy",
        json!(0),
    );
    check(
        "exact",
        json!({"path": "a"}),
        json!({"a": 1, "b": 2}),
        json!({"a": 1}),
        "accuracy",
        json!(1),
    );
}

#[test]
fn json_subset_aligns_field_by_field() {
    let expected = json!({"intent": "book", "slots": {"to": "Beijing", "when": "tomorrow"}});
    let output =
        json!({"intent": "book", "slots": {"to": "Shanghai", "when": "tomorrow"}, "more": 1});
    let scores = scores("json-subset", json!({}), Some(output), expected);
    assert!((json!(scores[0].value).as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-12);
    let evidence = scores[0].evidence.as_ref().unwrap();
    assert_eq!(
        evidence.alignment.as_ref().unwrap()["slots.to"],
        json!({"expected": "Beijing", "actual": "Shanghai", "matches": false})
    );
    assert_eq!(
        evidence.snippets.as_ref().unwrap()[0],
        "slots.to: expected \"Beijing\", found \"Shanghai\""
    );
}

#[test]
fn json_subset_leaves_out_what_it_is_told_to() {
    let config = json!({"ignore": ["confidence"], "tolerance": 0.1});
    check(
        "json-subset",
        config,
        json!({"n": 1.05}),
        json!({"n": 1, "confidence": 0.9}),
        "accuracy",
        json!(1),
    );
    check(
        "json-subset",
        json!({}),
        json!([1, 2, 3]),
        json!([1, 2]),
        "accuracy",
        json!(2.0 / 3.0),
    );
}

#[test]
fn numbers_may_be_off_by_a_tolerance() {
    check(
        "numeric",
        json!({"relative": 0.1}),
        json!(109),
        json!(100),
        "accuracy",
        json!(1),
    );
    check(
        "numeric",
        json!({"absolute": 5}),
        json!(109),
        json!(100),
        "accuracy",
        json!(0),
    );
    check(
        "numeric",
        json!({}),
        json!(109),
        json!(100),
        "absolute_error",
        json!(9),
    );
    assert!(made("numeric", json!({"absolute": -1})).is_err());
}

#[test]
fn a_threshold_is_a_number_or_the_expected_one() {
    let output = || json!({"confidence": 0.93});
    let metric = "confidence_ok";
    check(
        "threshold",
        json!({"path": "confidence", "at_least": 0.9}),
        output(),
        json!(null),
        metric,
        json!(true),
    );
    check(
        "threshold",
        json!({"path": "confidence", "at_least": "expected"}),
        output(),
        json!({"confidence": 0.95}),
        metric,
        json!(false),
    );
    check(
        "threshold",
        json!({"path": "confidence", "at_most": 0.9}),
        output(),
        json!(null),
        metric,
        json!(false),
    );
    assert!(made("threshold", json!({"path": "confidence"})).is_err());
}

#[test]
fn texts_match_after_normalization_or_by_a_limit() {
    check(
        "text",
        json!({}),
        json!("Hello   World"),
        json!("hello world"),
        "text_match",
        json!(true),
    );
    check(
        "text",
        json!({}),
        json!("hello there world"),
        json!("hello world"),
        "text_match",
        json!(false),
    );
    check(
        "text",
        json!({"min_token_f1": 0.75}),
        json!("hello there world"),
        json!("hello world"),
        "text_match",
        json!(true),
    );
    check(
        "text",
        json!({}),
        json!("abc"),
        json!("abd"),
        "edit_similarity",
        json!(1.0 - 1.0 / 3.0),
    );
}

#[test]
fn schemas_say_what_is_wrong() {
    let config = json!({"schema": {"type": "object", "required": ["intent"]}});
    check(
        "schema",
        config.clone(),
        json!({"intent": 1}),
        json!(null),
        "schema_valid",
        json!(true),
    );
    let scores = scores("schema", config, Some(json!({})), json!(null));
    let explanation = scores[0]
        .evidence
        .as_ref()
        .unwrap()
        .explanation
        .as_ref()
        .unwrap();
    assert!(explanation.contains("intent"), "{explanation}");
}

#[test]
fn what_nobody_measured_has_no_score_and_no_limit_holds_for_it() {
    assert!(scores("tokens", json!({}), Some(json!(1)), json!(null)).is_empty());
    let limited = made("cost", json!({"max": 1})).unwrap();
    let error =
        pollster::block_on(limited.evaluate(&run(Some(json!(1))), &task(json!(null)))).unwrap_err();
    assert_eq!(error.to_string(), "the cost of this execution is not known");
    check(
        "latency",
        json!({"max": 10}),
        json!(1),
        json!(null),
        "latency_ok",
        json!(false),
    );
    check(
        "latency",
        json!({}),
        json!(1),
        json!(null),
        "latency",
        json!(12.5),
    );
}

#[test]
fn labels_are_kept_with_what_was_expected() {
    let found = scores(
        "classification",
        json!({"path": "intent"}),
        Some(json!({"intent": "book"})),
        json!({"intent": "cancel"}),
    );
    assert_eq!(json!(found[0].value), json!("book"));
    assert_eq!(
        json!(found[0].evidence.as_ref().unwrap().alignment),
        json!({"expected": "cancel", "actual": "book"})
    );
    let failed = scores(
        "classification",
        json!({"path": "intent"}),
        None,
        json!({"intent": "cancel"}),
    );
    assert_eq!(json!(failed[0].value), json!("(none)"));
}

#[test]
fn a_failed_execution_scores_nothing_right() {
    let failed = scores("exact", json!({}), None, json!(1));
    assert_eq!(json!(failed[0].value), json!(0));
    let explanation = failed[0]
        .evidence
        .as_ref()
        .unwrap()
        .explanation
        .as_ref()
        .unwrap();
    assert_eq!(explanation, "there is no output: it broke");
}

#[test]
fn any_scorer_is_an_evaluator() {
    let plugins = crate::plugins();
    let settings = JsonMap::from_iter([("uses".to_owned(), json!("checks"))]);
    let scorer = crate::make_scorer(&plugins, &settings).unwrap();
    let evaluator = crate::ScorerEvaluator::shared("e", scorer, JsonMap::new());
    let scores =
        pollster::block_on(evaluator.evaluate(&run(Some(json!("book it"))), &task(json!(null))))
            .unwrap();
    assert_eq!(
        (scores[0].metric.as_str(), json!(scores[0].value)),
        ("success", json!(true))
    );
}

#[test]
fn unknown_settings_are_refused() {
    let error = made("exact", json!({"pth": "a"})).err().unwrap();
    assert!(error.message.contains("unknown field `pth`"), "{error:?}");
}
