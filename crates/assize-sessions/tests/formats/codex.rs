//! Codex.

use crate::support::{Logs, all_classes, classes, outline, recording};
use serde_json::{Value, json};

fn row(second: f64, kind: &str, payload: Value) -> String {
    let timestamp = format!("2026-11-02T09:00:{second:06.3}Z");
    format!(
        "{}\n",
        json!({"timestamp": timestamp, "type": kind, "payload": payload})
    )
}

fn meta(id: &str, more: Value) -> String {
    let mut payload = json!({"id": id, "timestamp": "2026-11-02T09:00:00.000Z", "cwd": "/repo", "cli_version": "0.100.0"});
    payload
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    row(0.0, "session_meta", payload)
}

fn context() -> String {
    row(
        0.1,
        "turn_context",
        json!({"model": "gpt-x", "cwd": "/repo"}),
    )
}

fn said(second: f64, text: &str) -> String {
    row(
        second,
        "response_item",
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
    )
}

fn counts(input: u64, cached: u64, output: u64, reasoning: u64) -> Value {
    json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": reasoning,
        "total_tokens": input + output})
}

fn total(second: f64, total: Value, last: Value) -> String {
    row(
        second,
        "event_msg",
        json!({"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": last}, "rate_limits": {}}),
    )
}

#[test]
fn the_recording_has_its_known_sums() {
    let sessions = assize_sessions::open(&recording("codex.jsonl")).unwrap();
    let [session] = &sessions[..] else {
        panic!("{} sessions", sessions.len())
    };
    assert_eq!(
        classes(&session.trace),
        [Some(3135), Some(21163), Some(0), Some(97), Some(40)]
    );
    assert_eq!(
        outline(&session.trace),
        [
            "turn 0",
            "reasoning",
            "text I'll write the file first.",
            "exec_command ok",
            "turn 1",
            "text Done: out.txt now contains the word hi."
        ]
    );
    assert_eq!(session.origin.agent_version.as_deref(), Some("0.166.0"));
    assert_eq!(
        session.origin.git_commit.as_deref(),
        Some("176a1ebe94d6f67a1c0caf4f471ca3ef7ed96dc9")
    );
    assert_eq!(session.model(), Some("gpt-5.1-codex"));
    let prompts: Vec<&str> = session
        .prompts
        .iter()
        .map(|prompt| prompt.text.as_str())
        .collect();
    assert_eq!(prompts, ["Create a file out.txt with the word hi"]);
    assert_eq!(session.trace.model_calls[0].ttft_ms.unwrap().value(), 718.0);
    assert_eq!(session.flaws.unusable_lines(), 0);
}

#[test]
fn a_total_that_is_repeated_counts_once() {
    let text = [
        meta("t1", json!({})),
        context(),
        said(1.0, "one"),
        total(2.0, counts(100, 40, 10, 4), counts(100, 40, 10, 4)),
        total(3.0, counts(100, 40, 10, 4), counts(100, 40, 10, 4)),
        said(4.0, "two"),
        total(5.0, counts(300, 140, 30, 9), counts(200, 100, 20, 5)),
        row(
            6.0,
            "event_msg",
            json!({"type": "token_count", "info": null, "rate_limits": {}}),
        ),
    ]
    .concat();
    let session = Logs::new(&[("rollout-a.jsonl", &text)]).session();
    assert_eq!(session.trace.model_calls.len(), 2);
    assert_eq!(
        classes(&session.trace),
        [Some(160), Some(140), None, Some(21), Some(9)]
    );
}

#[test]
fn a_total_that_goes_back_counts_its_last_call() {
    let text = [
        meta("t1", json!({})),
        context(),
        said(1.0, "one"),
        total(2.0, counts(100, 40, 10, 4), counts(100, 40, 10, 4)),
        said(4.0, "two"),
        total(5.0, counts(50, 0, 5, 0), counts(50, 0, 5, 0)),
        total(6.0, json!({"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0, "total_tokens": 258400}), counts(0, 0, 0, 0)),
        said(7.0, "three"),
        total(8.0, counts(60, 0, 6, 0), counts(60, 0, 6, 0)),
    ]
    .concat();
    let session = Logs::new(&[("rollout-a.jsonl", &text)]).session();
    assert_eq!(classes(&session.trace)[0], Some(60 + 50 + 60));
    assert_eq!(session.trace.model_calls.len(), 3);
}

/// A parent with one call of 100 and a child that begins with a replay of it.
fn family(child: &str) -> Logs {
    let parent = [
        meta("parent", json!({})),
        context(),
        said(1.0, "parent"),
        total(2.0, counts(100, 0, 10, 0), counts(100, 0, 10, 0)),
    ]
    .concat();
    Logs::new(&[
        ("2026/11/02/rollout-p.jsonl", &parent),
        ("2026/11/02/rollout-c.jsonl", child),
    ])
}

#[test]
fn the_replay_at_the_beginning_of_a_child_is_only_its_base() {
    let child = [
        meta(
            "child",
            json!({"parent_thread_id": "parent", "timestamp": "2026-11-02T09:00:10.000Z"}),
        ),
        meta("parent", json!({})),
        said(10.2, "parent"),
        total(10.3, counts(100, 0, 10, 0), counts(100, 0, 10, 0)),
        context(),
        said(14.0, "child"),
        total(15.0, counts(170, 0, 17, 0), counts(70, 0, 7, 0)),
    ]
    .concat();
    let sessions = family(&child).open();
    assert_eq!(sessions.len(), 1, "the child belongs to its parent");
    assert_eq!(all_classes(&sessions)[0], Some(170));
    let agents: Vec<Option<&str>> = sessions[0]
        .trace
        .model_calls
        .iter()
        .map(|call| call.agent_id.as_deref())
        .collect();
    assert_eq!(agents, [None, Some("child")]);
    assert_eq!(sessions[0].trace.summary.total_turns, Some(1));
}

fn with_ordinal(text: String, ordinal: u64) -> String {
    let mut row: Value = serde_json::from_str(&text).unwrap();
    row["ordinal"] = json!(ordinal);
    format!("{row}\n")
}

/// Fast models answer within the second that a replay may take.
#[test]
fn a_child_without_history_counts_from_its_first_row() {
    let created = "2026-11-02T09:00:10.000Z";
    let spawned = [
        with_ordinal(
            meta(
                "child",
                json!({"parent_thread_id": "parent", "timestamp": created}),
            ),
            0,
        ),
        with_ordinal(said(10.2, "child"), 1),
        with_ordinal(total(10.3, counts(30, 0, 3, 0), counts(30, 0, 3, 0)), 2),
    ]
    .concat();
    assert_eq!(all_classes(&family(&spawned).open())[0], Some(130));
    // Newer forks begin behind the rows of their origin, which they do not repeat.
    let forked = [
        with_ordinal(
            meta(
                "fork",
                json!({"forked_from_id": "parent", "timestamp": created}),
            ),
            69,
        ),
        with_ordinal(said(10.2, "fork"), 70),
        with_ordinal(total(10.3, counts(130, 0, 13, 0), counts(30, 0, 3, 0)), 71),
    ]
    .concat();
    assert_eq!(all_classes(&family(&forked).open())[0], Some(130));
}

#[test]
fn ordinals_tell_where_the_replay_of_a_child_ends() {
    let child = [
        with_ordinal(
            meta(
                "child",
                json!({"parent_thread_id": "parent", "subagent_history_start_ordinal": 3}),
            ),
            0,
        ),
        with_ordinal(said(20.0, "parent"), 1),
        with_ordinal(total(21.0, counts(100, 0, 10, 0), counts(100, 0, 10, 0)), 2),
        with_ordinal(said(22.0, "child"), 3),
        with_ordinal(total(23.0, counts(130, 0, 13, 0), counts(30, 0, 3, 0)), 4),
    ]
    .concat();
    assert_eq!(all_classes(&family(&child).open())[0], Some(130));
}

#[test]
fn a_total_before_anything_was_said_in_a_child_is_inherited() {
    let child = [
        meta(
            "child",
            json!({"forked_from_id": "parent", "timestamp": "2026-11-02T09:00:10.000Z"}),
        ),
        total(14.0, counts(100, 0, 10, 0), counts(100, 0, 10, 0)),
        said(15.0, "child"),
        total(16.0, counts(140, 0, 14, 0), counts(40, 0, 4, 0)),
    ]
    .concat();
    let sessions = family(&child).open();
    assert_eq!(all_classes(&sessions)[0], Some(140));
    let forks: Vec<Option<&str>> = sessions
        .iter()
        .map(|session| session.origin.continued_from.as_deref())
        .collect();
    assert_eq!(forks, [None, Some("parent")]);
}

#[test]
fn parents_in_a_circle_end_the_way_up() {
    let thread = |id: &str, parent: &str| {
        let text = [
            meta(id, json!({"parent_thread_id": parent})),
            said(5.0, id),
            total(6.0, counts(10, 0, 1, 0), counts(10, 0, 1, 0)),
        ]
        .concat();
        (format!("rollout-{id}.jsonl"), text)
    };
    let files = [
        thread("a", "b"),
        thread("b", "c"),
        thread("c", "a"),
        thread("d", "d"),
        thread("e", "gone"),
    ];
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let sessions = Logs::new(&files).open();
    assert_eq!(all_classes(&sessions)[0], Some(50));
    assert_eq!(sessions.len(), 3);
}

#[test]
fn compressed_and_archived_copies_are_the_same_session() {
    let text = [
        meta("t1", json!({})),
        context(),
        said(1.0, "one"),
        total(2.0, counts(100, 40, 10, 4), counts(100, 40, 10, 4)),
    ]
    .concat();
    let logs = Logs::new(&[("sessions/rollout-a.jsonl", &text)]);
    logs.write(
        "archived_sessions/rollout-a.jsonl.zst",
        &zstd::encode_all(text.as_bytes(), 3).unwrap(),
    );
    let session = logs.session();
    assert_eq!(session.trace.model_calls.len(), 1);
    assert_eq!(classes(&session.trace)[0], Some(60));
}

#[test]
fn texts_that_old_files_repeat_as_events_are_taken_once() {
    let text = [
        meta("t1", json!({})),
        context(),
        row(0.5, "response_item", json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>…"}]})),
        row(0.6, "response_item", json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it."}]})),
        row(0.6, "event_msg", json!({"type": "user_message", "message": "Do it."})),
        row(1.0, "event_msg", json!({"type": "agent_reasoning", "text": "hm"})),
        row(1.0, "response_item", json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"})),
        row(1.1, "event_msg", json!({"type": "agent_message", "message": "Done."})),
        said(1.1, "Done."),
        total(2.0, counts(100, 40, 10, 4), counts(100, 40, 10, 4)),
    ]
    .concat();
    let session = Logs::new(&[("rollout-a.jsonl", &text)]).session();
    assert_eq!(
        outline(&session.trace),
        ["turn 0", "reasoning", "text Done."]
    );
    assert_eq!(session.prompts.len(), 1);
}

#[test]
fn success_of_a_tool_is_its_exit_code_and_else_unknown() {
    let call = |id: &str| {
        row(
            1.0,
            "response_item",
            json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": id}),
        )
    };
    let output = |id: &str, output: Value| {
        row(
            2.5,
            "response_item",
            json!({"type": "function_call_output", "call_id": id, "output": output}),
        )
    };
    let text = [
        meta("t1", json!({})),
        call("a"),
        call("b"),
        call("c"),
        call("d"),
        output(
            "a",
            json!("{\"output\":\"x\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"),
        ),
        output(
            "b",
            json!("{\"output\":\"no\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}"),
        ),
        output("c", json!("Plan updated")),
        output(
            "d",
            json!("Exit code: 1\nWall time: 0 seconds\nOutput:\nExit code: 0"),
        ),
        total(3.0, counts(100, 40, 10, 4), counts(100, 40, 10, 4)),
    ]
    .concat();
    let session = Logs::new(&[("rollout-a.jsonl", &text)]).session();
    assert_eq!(
        outline(&session.trace),
        [
            "turn 0",
            "shell ok",
            "shell failed",
            "shell unknown",
            "shell failed"
        ]
    );
    assert_eq!(
        session.trace.tool_call_records()[0]
            .duration_ms
            .unwrap()
            .value(),
        1500.0
    );
}

#[test]
fn threads_whose_first_row_is_damaged_are_told_apart_by_their_files() {
    let thread = |input: u64| {
        [
            "{\"timestamp\": \"2026-11-02T09:0\n".to_owned(),
            context(),
            said(1.0, "one"),
            total(2.0, counts(input, 0, 10, 0), counts(input, 0, 10, 0)),
        ]
        .concat()
    };
    let child = [
        "{\"timestamp\": \"2026-11-02T09:0\n".to_owned(),
        meta("01a1e0b3-1c9a-711f-8de6-aa31de40b5b1", json!({})),
        said(0.2, "one"),
        total(0.3, counts(100, 0, 10, 0), counts(100, 0, 10, 0)),
        said(5.0, "two"),
        total(6.0, counts(107, 0, 11, 0), counts(7, 0, 1, 0)),
    ]
    .concat();
    let name = |last: &str| {
        format!("rollout-2026-11-02T09-00-00-01a1e0b3-1c9a-711f-8de6-aa31de40b5b{last}.jsonl")
    };
    let logs = Logs::new(&[
        (&name("1"), &thread(100)),
        (&name("2"), &thread(200)),
        (&name("3"), &child),
    ]);
    let sessions = logs.open();
    assert_eq!(sessions.len(), 3);
    assert_eq!(all_classes(&sessions)[0], Some(307));
    let broken: u64 = sessions
        .iter()
        .map(|session| session.flaws.broken_lines)
        .sum();
    assert_eq!(broken, 3);
}

#[test]
fn only_the_first_total_of_a_child_is_inherited() {
    let child = [
        meta(
            "child",
            json!({"parent_thread_id": "parent", "timestamp": "2026-11-02T09:00:10.000Z"}),
        ),
        total(14.0, counts(100, 0, 10, 0), counts(100, 0, 10, 0)),
        total(16.0, counts(140, 0, 14, 0), counts(40, 0, 4, 0)),
    ]
    .concat();
    let sessions = family(&child).open();
    assert_eq!(all_classes(&sessions)[0], Some(140));
}
