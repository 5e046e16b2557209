//! Whatever comes in, measures neither panic nor make numbers up.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use assize_contracts::{
    AnalysisFinding, AnalysisResult, BaseScenario, EventPlace, Millis, ModelCall, PromptResult,
    Scorer, ScorerContext, SessionTrace, Timestamp, TokenBreakdown, TraceEvent, WorkspaceSpec,
};
use assize_measures::ChecksScorer;
use assize_measures::analyzers::{ALL, FIVE};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEYS: &[&str] = &[
    "output",
    "file",
    "command",
    "tool",
    "limit",
    "changed",
    "not",
    "id",
    "weight",
    "required",
    "contains",
    "equals",
    "matches",
    "json",
    "schema",
    "path",
    "exists",
    "absent",
    "run",
    "files",
    "called",
    "with",
    "at_most",
    "atLeast",
    "order",
    "only",
    "turns",
    "costUsd",
    "type",
    "pattern",
    "$ref",
    "$.a[?(@.b>1)]",
    "$..*",
    "x",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "(a|b)*",
    "((a{99}){99}){99}",
    "[",
    "$",
    "$..",
    "$[?@.a=='",
    "**/*",
    "{",
    "../x",
    "/etc",
    "#",
    "object",
    "\u{1F914}",
    "cd x && git push",
    "```json\n{\"a\": [1]}\n```",
    "\"",
    "sh -c 'sh -c ls'",
    "bash",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(TEXTS).prop_map(str::to_owned),
        "\\PC{0,12}"
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        let key = prop::sample::select(KEYS).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        (0_i64..100_000).prop_map(Timestamp::from_unix_ms),
        any::<i64>().prop_map(Timestamp::from_unix_ms),
        text().prop_map(Timestamp::from),
    ]
}

fn millis() -> impl Strategy<Value = Option<Millis>> {
    prop_oneof![
        Just(None),
        (-100.0..50_000.0).prop_map(Millis::new),
        any::<f64>().prop_map(Millis::new)
    ]
}

fn place() -> impl Strategy<Value = Option<Box<EventPlace>>> {
    let reference = || prop::option::of("[ab]");
    prop::option::of((prop::option::of(timestamp()), reference(), reference())).prop_map(|place| {
        let (timestamp, agent_id, call_ref) = place?;
        Some(Box::new(EventPlace {
            timestamp,
            agent_id,
            call_ref,
            ..EventPlace::default()
        }))
    })
}

fn event() -> impl Strategy<Value = TraceEvent> {
    let tool = prop_oneof![Just("bash".to_owned()), "[ab]"];
    let call = (
        tool,
        json_value(),
        json_value(),
        millis(),
        any::<Option<bool>>(),
        place(),
    );
    prop_oneof![
        (any::<u64>(), timestamp()).prop_map(|(turn_number, timestamp)| {
            TraceEvent::TurnBoundary {
                turn_number,
                timestamp,
            }
        }),
        (text(), millis(), place()).prop_map(|(content, duration_ms, context)| {
            TraceEvent::Reasoning {
                content,
                duration_ms,
                token_count: None,
                context,
            }
        }),
        (text(), place()).prop_map(|(content, context)| {
            TraceEvent::TextOutput {
                content,
                token_count: None,
                context,
            }
        }),
        (text(), place()).prop_map(|(message, context)| {
            TraceEvent::Error {
                message,
                recoverable: true,
                context,
            }
        }),
        call.prop_map(|(name, input, output, duration_ms, success, context)| {
            let error = input.as_str().map(str::to_owned);
            TraceEvent::ToolCall {
                name,
                input,
                output,
                duration_ms,
                success,
                error,
                context,
            }
        }),
    ]
}

fn tokens() -> impl Strategy<Value = TokenBreakdown> {
    any::<[Option<u64>; 5]>().prop_map(|[input, output, reasoning, cache_read, cache_write]| {
        let tokens = TokenBreakdown {
            input,
            output,
            reasoning,
            cache_read,
            cache_write,
            ..TokenBreakdown::default()
        };
        tokens.with_totals()
    })
}

fn model_call() -> impl Strategy<Value = ModelCall> {
    (
        prop::option::of(timestamp()),
        millis(),
        millis(),
        tokens(),
        "[abc]",
    )
        .prop_map(|(started_at, ttft_ms, duration_ms, tokens, id)| ModelCall {
            started_at,
            ttft_ms,
            duration_ms,
            tokens,
            ..serde_json::from_value(json!({"id": id, "model": "m"})).unwrap()
        })
}

prop_compose! {
    fn trace()(
        events in prop::collection::vec(event(), 0..24),
        model_calls in prop::collection::vec(model_call(), 0..5),
        tokens in tokens(),
        total_duration in millis(),
    ) -> SessionTrace {
        let mut trace = SessionTrace::from_events("t".to_owned(), events, tokens);
        trace.model_calls = model_calls;
        trace.summary.total_duration = total_duration;
        trace
    }
}

proptest! {
    #[test]
    fn checks_of_any_form_are_refused_or_made(
        checks in prop::collection::vec(json_value(), 0..3),
        output in text(),
        trace in prop::option::of(trace()),
    ) {
        let mut scenario = BaseScenario::new("s", "p");
        scenario.checks = checks;
        scenario.workspace = Some(WorkspaceSpec::default());
        let scorer = ChecksScorer::new();
        let context = ScorerContext {
            agent_output: output,
            trace: trace.map(Arc::new),
            result: Some(Arc::new(PromptResult::default())),
            ..ScorerContext::default()
        };
        let is_valid = scorer.check_scenario(&scenario).is_ok();
        let result = pollster::block_on(scorer.evaluate(&scenario, &context));
        prop_assert_eq!(result.is_ok(), is_valid);
    }

    #[test]
    fn any_trace_is_analyzed(trace in trace()) {
        for analyzer in ALL {
            let result = analyzer.find(&trace);
            let text = serde_json::to_string(&result.findings).unwrap();
            for nonsense in ["NaN", "\"inf\"", "inf%", "inf s"] {
                prop_assert!(!text.contains(nonsense), "{}", text);
                prop_assert!(!result.summary.contains(nonsense), "{}", result.summary);
            }
            prop_assert_eq!(parts_of_time(&result), whole_time(&result));
        }
    }
}

fn parts_of_time(result: &AnalysisResult) -> Option<f64> {
    let Some(AnalysisFinding::Table { rows, .. }) = result.findings.get("time_split") else {
        return None;
    };
    Some(rows.iter().map(|row| row[1].parse::<f64>().unwrap()).sum())
}

fn whole_time(result: &AnalysisResult) -> Option<f64> {
    match result.findings.get("time_wall") {
        Some(AnalysisFinding::Number { value, .. }) => Some(value.value()),
        _ => None,
    }
}

fn call(input: Value) -> TraceEvent {
    TraceEvent::ToolCall {
        name: "bash".to_owned(),
        input,
        output: Value::Null,
        duration_ms: Millis::new(1e6),
        success: Some(false),
        error: Some("no".to_owned()),
        context: Some(Box::new(EventPlace {
            timestamp: Some(Timestamp::from_unix_ms(7)),
            ..EventPlace::default()
        })),
    }
}

fn analyze_within(limit: Duration, events: Vec<TraceEvent>) {
    let trace = SessionTrace::from_events("t".to_owned(), events, TokenBreakdown::default());
    for analyzer in ALL {
        let start = Instant::now();
        let result = analyzer.find(&trace);
        let taken = start.elapsed();
        assert!(taken < limit, "{} took {taken:?}", result.analyzer);
    }
}

#[test]
fn a_hundred_thousand_events_take_no_quadratic_time() {
    let limit = Duration::from_secs(20);
    // Inputs that look alike and are not, all running at once.
    let alike = |n: usize| call(json!(format!("{}{n:06}{}", "a".repeat(70), "b".repeat(70))));
    analyze_within(limit, (0..100_000).map(alike).collect());
    analyze_within(
        limit,
        (0..100_000).map(|_| call(json!("git push"))).collect(),
    );
}

#[test]
fn an_input_of_ten_megabytes_is_no_hurdle() {
    let long = "x ".repeat(5_000_000);
    let inputs = [
        json!(long),
        json!({"command": long}),
        json!({"command": format!("'{long}")}),
    ];
    analyze_within(Duration::from_secs(10), inputs.map(call).into());
}

#[test]
fn an_empty_trace_is_analyzed() {
    for analyzer in FIVE {
        assert!(!analyzer.find(&SessionTrace::default()).summary.is_empty());
    }
}
