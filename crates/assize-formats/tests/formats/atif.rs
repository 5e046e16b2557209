//! ATIF: valid for a strict reader, and read back as it was.

use crate::sample::{session, time, trace_of, trial};
use assize_contracts::{SessionTrace, TokenBreakdown};
use assize_formats::{Session, atif};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Keys of every object, as the reference validator knows them: others are refused.
const KEYS: &[(&str, &[&str])] = &[
    (
        "trajectory",
        &[
            "schema_version",
            "session_id",
            "trajectory_id",
            "agent",
            "steps",
            "notes",
            "final_metrics",
            "continued_trajectory_ref",
            "extra",
            "subagent_trajectories",
        ],
    ),
    (
        "agent",
        &["name", "version", "model_name", "tool_definitions", "extra"],
    ),
    (
        "step",
        &[
            "step_id",
            "timestamp",
            "source",
            "model_name",
            "reasoning_effort",
            "message",
            "reasoning_content",
            "tool_calls",
            "observation",
            "metrics",
            "is_copied_context",
            "llm_call_count",
            "extra",
        ],
    ),
    (
        "tool_call",
        &["tool_call_id", "function_name", "arguments", "extra"],
    ),
    (
        "result",
        &[
            "source_call_id",
            "content",
            "subagent_trajectory_ref",
            "extra",
        ],
    ),
    (
        "metrics",
        &[
            "prompt_tokens",
            "completion_tokens",
            "cached_tokens",
            "cost_usd",
            "prompt_token_ids",
            "completion_token_ids",
            "logprobs",
            "extra",
        ],
    ),
    (
        "final_metrics",
        &[
            "total_prompt_tokens",
            "total_completion_tokens",
            "total_cached_tokens",
            "total_cost_usd",
            "total_steps",
            "extra",
        ],
    ),
];

fn check_keys(kind: &str, object: &Value) {
    let known = KEYS.iter().find(|(name, _)| *name == kind).unwrap().1;
    for key in object.as_object().unwrap().keys() {
        assert!(known.contains(&key.as_str()), "`{key}` in {kind}");
    }
}

/// The rules of version 1.7 that the reference validator checks.
fn validate(document: &Value) {
    check_keys("trajectory", document);
    check_keys("agent", &document["agent"]);
    assert!(document["agent"]["name"].is_string() && document["agent"]["version"].is_string());
    check_keys("final_metrics", &document["final_metrics"]);
    let steps = document["steps"].as_array().unwrap();
    assert!(!steps.is_empty());
    for (number, step) in steps.iter().enumerate() {
        check_keys("step", step);
        assert_eq!(step["step_id"], number + 1);
        assert!(step["message"].is_string() || step["message"].is_array());
        if step["source"] != "agent" {
            for key in ["model_name", "reasoning_content", "tool_calls", "metrics"] {
                assert!(step.get(key).is_none(), "{key} of {}", step["source"]);
            }
        }
        if let Some(metrics) = step.get("metrics") {
            check_keys("metrics", metrics);
        }
        let calls = step["tool_calls"].as_array().cloned().unwrap_or_default();
        let ids: BTreeSet<&str> = calls
            .iter()
            .map(|call| call["tool_call_id"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), calls.len(), "ids of calls are unique in a step");
        for call in &calls {
            check_keys("tool_call", call);
            assert!(call["arguments"].is_object());
        }
        for result in step["observation"]["results"]
            .as_array()
            .into_iter()
            .flatten()
        {
            check_keys("result", result);
            assert!(ids.contains(result["source_call_id"].as_str().unwrap()));
        }
    }
    let embedded = document["subagent_trajectories"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let ids: BTreeSet<&str> = embedded
        .iter()
        .map(|each| each["trajectory_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), embedded.len());
    embedded.iter().for_each(validate);
}

fn read_back(session: &Session) -> Session {
    let text = atif::write(session).to_string();
    let imported = atif::read(serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(imported.notes, [""; 0]);
    imported.session
}

#[test]
fn a_session_is_written_as_the_validator_wants_it_and_read_back_as_it_was() {
    for session in [session(), trial()] {
        let document = atif::write(&session);
        validate(&document);
        let mut expected = session.clone();
        expected.trial = None;
        assert_eq!(read_back(&session), expected);
    }
}

#[test]
fn what_the_format_has_a_place_for_stands_there() {
    let document = atif::write(&trial());
    assert_eq!(document["schema_version"], "ATIF-v1.7");
    let steps = document["steps"].as_array().unwrap();
    let sources: Vec<&str> = steps
        .iter()
        .map(|step| step["source"].as_str().unwrap())
        .collect();
    // The prompt, the first answer, the side call, the error, the last answer.
    assert_eq!(sources, ["user", "agent", "agent", "system", "agent"]);
    let first = &steps[1];
    assert_eq!(first["reasoning_content"], "look first\n\nthen\n\nwrite");
    assert_eq!(
        first["message"],
        json!([{ "type": "text", "text": "I look." }, { "type": "text", "text": "I ask." }])
    );
    assert_eq!(first["metrics"]["prompt_tokens"], 12903);
    assert_eq!(first["metrics"]["completion_tokens"], 84);
    assert_eq!(first["metrics"]["cached_tokens"], 12000);
    assert_eq!(
        first["metrics"]["extra"],
        json!({ "cache_creation_input_tokens": 900, "reasoning_tokens": 10 })
    );
    assert_eq!(
        first["tool_calls"][1]["arguments"],
        json!({ "value": "count; lines\nnow" })
    );
    assert_eq!(
        first["observation"]["results"][1]["subagent_trajectory_ref"],
        json!([{ "trajectory_id": "t2" }])
    );
    // A call that was cut has no counts, and the totals are unknown with it.
    assert_eq!(steps[4]["metrics"], json!({}));
    let totals = &document["final_metrics"];
    assert!(
        totals.get("total_prompt_tokens").is_none() && totals.get("total_cost_usd").is_none(),
        "{totals}"
    );
    let embedded = &document["subagent_trajectories"][0];
    assert_eq!(embedded["trajectory_id"], "t2");
    assert_eq!(embedded["final_metrics"]["total_prompt_tokens"], 1020);
    assert_eq!(document["extra"]["assize"]["trial"]["outcome"], "fail");
}

#[test]
fn the_money_of_subagents_is_in_the_total() {
    let mut session = session();
    session.trace.model_calls.pop();
    let totals = &atif::write(&session)["final_metrics"];
    assert_eq!(totals["total_cost_usd"], 0.0111);
    assert_eq!(totals["total_prompt_tokens"], 12903 + 950);
}

#[test]
fn an_empty_session_is_a_valid_trajectory() {
    let session = Session::default();
    validate(&atif::write(&session));
    assert_eq!(read_back(&session).trace, SessionTrace::default());
}

/// The example of another producer.
fn foreign(version: &str) -> Value {
    json!({
        "schema_version": version, "session_id": "s1", "agent": { "name": "claude-code", "version": "2.1.0", "model_name": "claude-x" },
        "steps": [
            { "step_id": 1, "source": "user", "timestamp": "2026-11-02T09:00:00Z", "message": "List the files." },
            { "step_id": 2, "source": "agent", "timestamp": "2026-11-02T09:00:04Z", "message": "", "reasoning_content": "look first",
              "tool_calls": [{ "tool_call_id": "toolu_1", "function_name": "Bash", "arguments": { "command": "ls" } }],
              "observation": { "results": [{ "source_call_id": "toolu_1", "content": "a.rs" }] },
              "metrics": { "prompt_tokens": 12903, "completion_tokens": 74, "cached_tokens": 12000, "cost_usd": 0.009,
                           "extra": { "cache_creation_input_tokens": 900 } } },
        ],
        "final_metrics": { "total_prompt_tokens": 99, "total_steps": 2 },
    })
}

#[test]
fn every_version_of_the_format_is_read() {
    for minor in 0..=7 {
        let imported = atif::read(foreign(&format!("ATIF-v1.{minor}"))).unwrap();
        assert_eq!(imported.notes, [""; 0]);
        let trace = &imported.session.trace;
        let tokens = trace.summary.total_tokens;
        assert_eq!(
            (
                tokens.input,
                tokens.cache_read,
                tokens.cache_write,
                tokens.output
            ),
            (Some(3), Some(12000), Some(900), Some(74))
        );
        assert_eq!(tokens.reasoning, None);
        assert_eq!(tokens.total, Some(12977));
        assert_eq!(
            (trace.summary.total_turns, trace.summary.total_tool_calls),
            (Some(1), 1)
        );
        assert_eq!(trace.model_calls[0].cost_usd.unwrap().value(), 0.009);
        assert_eq!(imported.session.user_messages[0].text, "List the files.");
        // Its success and its duration are unknown.
        let record = &trace.tool_call_records()[0];
        assert_eq!((record.success, record.duration_ms), (None, None));
    }
    let newer = atif::read(foreign("ATIF-v1.42")).unwrap();
    assert!(newer.notes[0].contains("newer"), "{:?}", newer.notes);
    for version in ["ATIF-v2.0", "ATIF-v1", "other"] {
        let error = atif::read(foreign(version)).unwrap_err().to_string();
        assert!(error.contains(version), "{error}");
    }
}

#[test]
fn copied_steps_count_for_nothing_and_parts_are_read_as_text() {
    let mut document = foreign("ATIF-v1.7");
    let mut copied = document["steps"][1].clone();
    copied["is_copied_context"] = true.into();
    document["steps"].as_array_mut().unwrap().insert(0, copied);
    let parts = json!([{ "type": "text", "text": "a.rs" }, { "type": "image", "source": { "path": "x.png" } }]);
    document["steps"][2]["observation"]["results"][0]["content"] = parts;
    document["steps"][2]["metrics"]["cached_tokens"] = 99_999.into();
    document["steps"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "source": 7 }));
    let imported = atif::read(document).unwrap();
    let words = imported.notes.join("; ");
    for expected in [
        "1 steps could not be read",
        "1 steps were copied",
        "1 pictures",
        "token counts were larger",
    ] {
        assert!(words.contains(expected), "{words}");
    }
    let trace = imported.session.trace;
    assert_eq!(trace.summary.total_tool_calls, 1);
    assert_eq!(trace.summary.total_tokens.total, Some(12977));
}

#[test]
fn embedded_subagents_are_attributed_and_counted_once() {
    let mut document = foreign("ATIF-v1.7");
    let mut inner = foreign("ATIF-v1.7");
    inner["trajectory_id"] = "sub-1".into();
    document["subagent_trajectories"] = json!([inner]);
    document["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"] =
        json!([{ "trajectory_id": "sub-1" }]);
    let trace = atif::read(document).unwrap().session.trace;
    assert_eq!(trace.model_calls.len(), 2);
    assert_eq!(trace.model_calls[1].agent_id.as_deref(), Some("sub-1"));
    assert_eq!(trace.summary.total_tokens.total, Some(2 * 12977));
    // The turns are those of the main agent.
    assert_eq!(trace.summary.total_turns, Some(1));
    let starter = trace
        .events
        .iter()
        .find_map(|event| event.place()?.call_id.clone());
    assert_eq!(starter.as_deref(), Some("sub-1"));
}

#[test]
fn totals_are_taken_where_steps_have_no_counts() {
    let mut document = foreign("ATIF-v1.2");
    document["steps"][1]
        .as_object_mut()
        .unwrap()
        .remove("metrics");
    document["final_metrics"] = json!({ "total_prompt_tokens": 100, "total_cached_tokens": 60, "total_completion_tokens": 7 });
    let tokens = atif::read(document)
        .unwrap()
        .session
        .trace
        .summary
        .total_tokens;
    assert_eq!(
        (tokens.input, tokens.cache_read, tokens.output, tokens.total),
        (Some(40), Some(60), Some(7), Some(107))
    );
}

#[test]
fn a_document_that_somebody_changed_is_read_like_any_other() {
    let mut document = atif::write(&session());
    document["steps"][1]["tool_calls"] = json!([]);
    document["steps"][1]["observation"] = json!({ "results": [] });
    let imported = atif::read(document).unwrap();
    assert_eq!(imported.session.trace.model_calls.len(), 4);
    assert_eq!(
        imported.session.trace.summary.total_tokens,
        TokenBreakdown::default()
    );
}

#[test]
fn hostile_documents_are_errors_or_sessions_and_never_a_panic() {
    for document in [
        json!(null),
        json!({ "schema_version": "ATIF-v1.7" }),
        json!({ "schema_version": "ATIF-v1.7", "steps": {} }),
        json!({ "schema_version": "ATIF-v1.7", "steps": [null, 1, {}, { "source": "agent", "metrics": { "prompt_tokens": -1 } }] }),
        json!({ "schema_version": "ATIF-v1.7", "steps": [], "subagent_trajectories": [1, {}, { "steps": [] }] }),
        json!({ "schema_version": "ATIF-v1.7", "steps": [{ "source": "agent", "metrics": { "prompt_tokens": u64::MAX, "cached_tokens": u64::MAX, "completion_tokens": u64::MAX } }] }),
        json!({ "schema_version": "ATIF-v1.7", "session_id": "s", "steps": [], "extra": { "assize": { "trace": { "summary": 3 } } } }),
    ] {
        if let Ok(imported) = atif::read(document) {
            let _ = atif::write(&imported.session);
        }
    }
}

fn event() -> impl Strategy<Value = Value> {
    let text = "[a-c \\n{}\"é]{0,8}";
    let place = (
        proptest::option::of(0i64..5000),
        proptest::option::of("[ab]"),
        proptest::option::of("m[0-3]"),
        proptest::option::of("t[0-2]"),
    );
    let output = prop_oneof![
        Just(Value::Null),
        text.prop_map(Value::from),
        Just(json!({ "a": [1] })),
        Just(json!(7))
    ];
    let input = prop_oneof![
        Just(json!({ "x": 1 })),
        text.prop_map(Value::from),
        Just(Value::Null)
    ];
    (0..5, text, place, (input, output), proptest::option::of(any::<bool>())).prop_map(
        |(kind, text, (at, agent, call, id), (input, output), success)| {
            let mut event = match kind {
                0 => json!({ "type": "reasoning", "content": text, "durationMs": null, "tokenCount": 3 }),
                1 => json!({ "type": "text_output", "content": text, "tokenCount": null }),
                2 => return json!({ "type": "turn_boundary", "turnNumber": 1, "timestamp": time(at.unwrap_or(0)) }),
                3 => json!({ "type": "error", "message": text, "recoverable": true }),
                _ => {
                    let mut tool = json!({ "type": "tool_call", "name": "T", "input": input, "output": output, "durationMs": 5, "success": success });
                    if success == Some(false) {
                        tool["error"] = text.into();
                    }
                    tool
                }
            };
            for (key, value) in [("timestamp", at.map(time)), ("agentId", agent), ("callRef", call), ("callId", id)] {
                if let Some(value) = value {
                    event[key] = value.into();
                }
            }
            event
        },
    )
}

fn call() -> impl Strategy<Value = Value> {
    (0..4u8, proptest::option::of(0i64..5000), any::<bool>(), proptest::option::of("[ab]"), proptest::option::of(0u64..100)).prop_map(
        |(id, at, side, agent, input)| {
            let mut call = json!({ "id": format!("m{id}"), "model": "x", "side": side, "startedAt": at.map(time),
                "ttftMs": null, "durationMs": 4, "tokens": { "input": input, "output": 2 }, "costUsd": 0.5 });
            if let Some(agent) = agent {
                call["agentId"] = agent.into();
            }
            call
        },
    )
}

proptest! {
    #[test]
    fn any_trace_is_valid_and_comes_back(
        events in proptest::collection::vec(event(), 0..12),
        mut calls in proptest::collection::vec(call(), 0..4),
    ) {
        // Ids of calls are unique within a trace.
        calls.sort_by_key(|call| call["id"].to_string());
        calls.dedup_by_key(|call| call["id"].clone());
        let session = Session { trace: trace_of(events.into(), calls.into()), ..Session::default() };
        validate(&atif::write(&session));
        prop_assert_eq!(read_back(&session).trace, session.trace);
    }
}
