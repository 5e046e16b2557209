//! The scorer as a whole: what passes, what fails, what is void, and what is refused before a run.

use super::*;
use assize_contracts::PromptResult;
use serde_json::json;

pub(super) fn scenario(checks: Value) -> BaseScenario {
    let mut scenario = BaseScenario::new("s", "do it");
    scenario.checks = checks.as_array().unwrap().clone();
    scenario
}

pub(super) fn answering(text: &str) -> ScorerContext {
    ScorerContext {
        agent_output: text.to_owned(),
        result: Some(Arc::new(PromptResult {
            text: text.to_owned(),
            ..PromptResult::default()
        })),
        ..ScorerContext::default()
    }
}

pub(super) fn score_of(scenario: &BaseScenario, context: &ScorerContext) -> ScorerResult {
    pollster::block_on(ChecksScorer::new().evaluate(scenario, context)).unwrap()
}

pub(super) fn error_in(checks: Value) -> ConfigError {
    ChecksScorer::new()
        .check_scenario(&scenario(checks))
        .unwrap_err()
}

fn check(checks: Value, output: &str, expected: bool) {
    let result = score_of(&scenario(checks), &answering(output));
    assert_eq!(result.error, None);
    assert_eq!(result.success, expected, "{:#?}", result.details);
}

#[test]
fn the_output_is_checked_in_every_way() {
    let answer = "It was an off-by-one.\n```json\n{\"answer\": 42, \"tags\": [\"a\", \"b\"]}\n```";
    for (output, expected) in [
        (json!({"contains": "off-by-one"}), true),
        (json!({"contains": "deadlock"}), false),
        (json!({"equals": "42"}), false),
        (json!({"matches": "(?i)^it was"}), true),
        (json!({"matches": "^off"}), false),
        (json!({"json": true}), true),
        (json!({"json": {"tags": ["a", "b"], "answer": 42.0}}), true),
        (json!({"json": {"answer": 42}}), false),
        (json!({"schema": {"required": ["answer"]}}), true),
        (json!({"schema": {"required": ["question"]}}), false),
        (json!({"path": {"$.answer": 42}}), true),
        (
            json!({"path": {"$.tags[*]": "b", "$.answer": {"matches": "^4"}}}),
            true,
        ),
        (json!({"path": {"$.tags[*]": "c"}}), false),
        (
            json!({"contains": "off-by-one", "matches": "deadlock"}),
            false,
        ),
    ] {
        check(json!([{"output": output}]), answer, expected);
        check(json!([{"not": {"output": output}}]), answer, !expected);
    }
    check(json!([{"output": {"equals": 42}}]), "42\n", true);
    let path = json!({r#"$[?match(@, "a[1-3]")]"#: {"matches": "2"}, "$.x": {"y": 1}});
    check(
        json!([{"output": {"path": path}}]),
        r#"{"a": "a2", "x": {"y": 1}}"#,
        true,
    );
}

#[test]
fn each_check_tells_what_it_wanted_and_what_it_found() {
    let checks = json!([
        {"output": {"contains": "yes"}},
        {"not": {"output": {"contains": "I cannot"}}, "id": "no-refusal"},
        {"output": {"schema": {"type": "object"}}, "description": "gives an object", "required": false},
        {"output": {"contains": "no"}},
    ]);
    let result = score_of(&scenario(checks), &answering("yes"));
    let details = serde_json::to_value(&result.details).unwrap();
    assert_eq!(
        details,
        json!([
            {"id": "output-contains-1", "description": "the output contains `yes`", "passed": true,
             "actual": "yes", "expected": "yes"},
            {"id": "no-refusal", "description": "not: the output contains `I cannot`", "passed": true,
             "actual": "yes", "expected": "I cannot"},
            {"id": "output-schema-1", "description": "gives an object", "passed": false,
             "actual": "yes", "expected": {"type": "object"}},
            {"id": "output-contains-2", "description": "the output contains `no`", "passed": false,
             "actual": "yes", "expected": "no"},
        ])
    );
}

#[test]
fn a_check_that_is_not_required_does_not_decide_and_weights_count() {
    let checks = json!([
        {"output": {"contains": "yes"}, "weight": 3},
        {"output": {"contains": "no"}, "weight": 2, "required": false},
    ]);
    let result = score_of(&scenario(checks), &answering("yes"));
    assert_eq!((result.success, result.passed, result.total), (true, 3, 5));
}

#[test]
fn without_checks_the_ending_decides() {
    for (reason, expected) in [
        (CompletionReason::Stop, true),
        (CompletionReason::ToolLimit, false),
    ] {
        let mut context = answering("done");
        context.result = Some(Arc::new(PromptResult {
            completion_reason: reason,
            ..PromptResult::default()
        }));
        let result = score_of(&scenario(json!([])), &context);
        assert_eq!((result.success, result.total), (expected, 0));
    }
}

#[test]
fn the_output_schema_decides_validity_alone() {
    let mut scenario = scenario(json!([]));
    scenario.output_schema = Some(json!({"type": "object"}));
    let validity = |output| {
        let result = score_of(&scenario, &answering(output));
        (result.success, result.output_valid)
    };
    assert_eq!(validity("```json\n{}\n```"), (true, true));
    assert_eq!(validity("[]"), (true, false));
    assert_eq!(validity("none"), (true, false));
}

#[test]
fn a_replaced_scenario_is_scored_by_its_own_checks() {
    let scorer = ChecksScorer::new();
    let success = |checks| {
        let scenario = scenario(checks);
        let result = pollster::block_on(scorer.evaluate(&scenario, &answering("a")));
        result.unwrap().success
    };
    assert!(success(json!([{"output": {"contains": "a"}}])));
    assert!(!success(json!([{"output": {"contains": "b"}}])));
}

#[test]
fn checks_of_a_workspace_that_is_not_there_are_refused() {
    for (check, kind) in [
        (json!({"file": {"path": "a"}}), "file"),
        (json!({"not": {"command": {"run": "true"}}}), "command"),
        (
            json!({"changed": {"only": []}, "required": false}),
            "changed",
        ),
    ] {
        let mut scenario = scenario(json!([{"output": {"contains": "a"}}, check]));
        let error = ChecksScorer::new().check_scenario(&scenario).unwrap_err();
        assert_eq!(error.path, ["checks", "1"]);
        assert!(error.message.starts_with(&format!("a `{kind}` check")));
        assert!(error.hint.unwrap().contains("workspace: {}"));
        scenario.workspace = Some(Default::default());
        assert_eq!(ChecksScorer::new().check_scenario(&scenario), Ok(()));
    }
}

#[test]
fn every_form_of_every_check_has_an_example_that_is_run() {
    let page = include_str!("../../../../docs/scenarios.md");
    for (kind, keys) in [
        ("output", &text::TEXT_KEYS[..]),
        ("file", &file::KEYS[..]),
        ("command", &command::KEYS[..]),
        ("tool", &tool::KEYS[..]),
        ("limit", &limit::KEYS[..]),
        ("changed", &["only"][..]),
    ] {
        for key in keys {
            let (kind, key) = (format!("{kind}: {{"), format!("{key}:"));
            let is_example = |line: &str| {
                let line = line.trim_start();
                line.starts_with("- ") && line.contains(&kind) && line.contains(&key)
            };
            assert!(page.lines().any(is_example), "{kind} {key}");
        }
    }
}

#[test]
fn mistakes_are_found_before_a_run_with_their_place() {
    let check = |checks: Value, path: &str, message: &str| {
        let error = error_in(checks);
        assert_eq!(error.path.join("."), path);
        assert!(error.message.starts_with(message), "{error}");
    };
    let good = json!({"output": {"contains": "a"}});
    check(
        json!([good, {"output": {"matches": "("}}]),
        "checks.1.output.matches",
        "invalid regular expression",
    );
    check(
        json!([{"output": {"path": {"$[": 1}}}]),
        "checks.0.output.path.$[",
        "invalid JSONPath",
    );
    check(
        json!([{"output": {"schema": {"properties": {"a/b": {"type": "objct"}}}}}]),
        "checks.0.output.schema.properties.a/b.type",
        "invalid JSON Schema",
    );
    check(
        json!([{"output": {"schema": {"properties": {"a": {"pattern": "["}}}}}]),
        "checks.0.output.schema.properties.a.pattern",
        "invalid JSON Schema",
    );
    for path in [
        r#"$[?match(@.a, "[")]"#,
        r#"$..b[?@.c == 1 && (@.d || !search(@.e, "("))]"#,
        r#"$[?count(@.a[?search(@, "[")]) > 1]"#,
    ] {
        check(
            json!([{"output": {"path": {path: 1}}}]),
            &format!("checks.0.output.path.{path}"),
            "invalid regular expression",
        );
    }
    let with = |with: Value| json!([{"tool": {"called": "a", "with": with}}]);
    check(
        with(json!({"a": {"match": "x"}})),
        "checks.0.tool.with.a.match",
        "found `match`, did you mean `matches`?",
    );
    check(
        with(json!({"a": {"contains": "x", "matches": "y"}})),
        "checks.0.tool.with.a.contains",
        "found `contains` among other keys",
    );
    check(
        json!([{"output": {}}]),
        "checks.0.output",
        "expected one of `contains`",
    );
    check(
        json!([{"output": {"contains": []}}]),
        "checks.0.output.contains",
        "expected a text, found a list",
    );
    check(
        json!([{"outptu": {}}]),
        "checks.0.outptu",
        "unknown key `outptu`",
    );
    check(
        json!([{"not": {"not": {"id": "x"}}}]),
        "checks.0.not.not.id",
        "unknown key `id`",
    );
    check(json!([{}]), "checks.0", "expected one of");
    check(json!([3]), "checks.0", "expected an object, found `3`");
    check(
        json!([{"output": {"json": 1}, "weight": 0}]),
        "checks.0.weight",
        "expected a weight",
    );
    check(
        json!([{"id": "a", "output": {"json": 1}}, {"id": "a", "output": {"json": 2}}]),
        "checks.1.id",
        "a second check has the id `a`",
    );
}
