//! A session with everything that a trace can hold: two turns, parallel tools, a subagent, a side call, errors.

use assize_contracts::{ProfileRow, SessionTrace};
use assize_formats::{Session, Trial, UserMessage};
use serde_json::{Value, json};

pub(crate) fn time(milliseconds: i64) -> String {
    assize_contracts::Timestamp::from_unix_ms(1_793_610_000_000 + milliseconds)
        .as_str()
        .to_owned()
}

/// A trace from its JSON, with turns and summary.
pub(crate) fn trace_of(events: Value, calls: Value) -> SessionTrace {
    let events: Vec<assize_contracts::TraceEvent> = serde_json::from_value(events).unwrap();
    let calls: Vec<assize_contracts::ModelCall> = serde_json::from_value(calls).unwrap();
    let tokens = calls
        .iter()
        .map(|call| call.tokens)
        .reduce(|sum, next| sum.plus(&next))
        .unwrap_or_default();
    let mut trace = SessionTrace::from_events("s1".to_owned(), events, tokens);
    trace.model_calls = calls;
    trace
}

fn tokens(input: u64, cache_read: u64, output: u64) -> Value {
    json!({ "input": input, "output": output, "reasoning": 10, "cacheRead": cache_read, "cacheWrite": 900,
        "total": input + output + 10 + cache_read + 900, "active": input + output + 10 + 900 })
}

pub(crate) fn session() -> Session {
    let events = json!([
        { "type": "turn_boundary", "turnNumber": 0, "timestamp": time(0) },
        { "type": "reasoning", "content": "look first", "durationMs": 300, "tokenCount": 10, "timestamp": time(400), "callRef": "m1" },
        { "type": "reasoning", "content": "then\n\nwrite", "durationMs": null, "tokenCount": null, "timestamp": time(500), "callRef": "m1" },
        { "type": "text_output", "content": "I look.", "tokenCount": null, "timestamp": time(600), "callRef": "m1" },
        { "type": "text_output", "content": "I ask.", "tokenCount": null, "timestamp": time(700), "callRef": "m1" },
        { "type": "tool_call", "name": "Bash", "input": { "command": "ls" }, "output": "a.rs", "durationMs": 400, "success": true,
          "timestamp": time(1000), "callId": "t1", "callRef": "m1" },
        { "type": "tool_call", "name": "Task", "input": "count; lines\nnow", "output": { "lines": 3 }, "durationMs": 2000, "success": true,
          "timestamp": time(1000), "callId": "t2", "callRef": "m1", "durationIsBound": true },
        { "type": "text_output", "content": "Three.", "tokenCount": null, "timestamp": time(2500), "agentId": "t2", "parentEventId": "t2", "callRef": "m2" },
        { "type": "tool_call", "name": "Read", "input": { "path": "a.rs" }, "output": null, "durationMs": 100, "success": false,
          "error": "no such file", "timestamp": time(2600), "agentId": "t2", "parentEventId": "t2", "callId": "t3", "callRef": "m2" },
        { "type": "error", "message": "429 from the API", "recoverable": true, "timestamp": time(3100) },
        { "type": "turn_boundary", "turnNumber": 1, "timestamp": time(3000) },
        { "type": "text_output", "content": "Done.", "tokenCount": 2, "timestamp": time(3900), "callRef": "m3" },
        { "type": "tool_call", "name": "Bash", "input": { "command": "true" }, "output": null, "durationMs": null, "success": null,
          "callRef": "m3" },
    ]);
    let calls = json!([
        { "id": "m1", "model": "claude-x", "api": "anthropic-messages", "side": false, "startedAt": time(0), "ttftMs": 350, "durationMs": 900,
          "tokens": tokens(3, 12000, 74), "costUsd": 0.009, "costSource": "computed", "stopReason": "tool_use", "status": 200 },
        { "id": "title", "model": "small-x", "api": "anthropic-messages", "side": true, "startedAt": time(100), "ttftMs": null, "durationMs": 500,
          "tokens": tokens(50, 0, 5), "costUsd": 0.0001, "costSource": "computed", "stopReason": "end_turn", "status": 200 },
        { "id": "m2", "model": "claude-x", "api": "anthropic-messages", "side": false, "agentId": "t2", "startedAt": time(1100), "ttftMs": null,
          "durationMs": 1400, "tokens": tokens(20, 100, 8), "costUsd": 0.002, "costSource": "computed", "status": 200 },
        { "id": "m3", "model": "claude-x", "api": "anthropic-messages", "side": false, "startedAt": time(3000), "ttftMs": null, "durationMs": 900,
          "tokens": { "input": null, "output": null, "reasoning": null, "cacheRead": null, "cacheWrite": null, "total": null, "active": null },
          "costUsd": null, "status": 200, "ending": "cut" },
    ]);
    let mut trace = trace_of(events, calls);
    trace.schema_version = Some(3);
    trace.answer = Some("Done. Really.".to_owned());
    trace.user_turns =
        serde_json::from_value(json!([{ "startedAt": time(0), "durationMs": 4000 }])).unwrap();
    Session {
        trace,
        agent_name: "claude-code".to_owned(),
        agent_version: Some("2.1.0".to_owned()),
        model: Some("claude-x".to_owned()),
        user_messages: vec![UserMessage {
            text: "List the files.".to_owned(),
            at: Some(time(0).into()),
        }],
        trial: None,
    }
}

/// The same session as the trial of a run.
pub(crate) fn trial() -> Session {
    let row: ProfileRow = serde_json::from_value(json!({
        "runId": "20261102-090000-abcd", "scenarioId": "list-files", "mode": "plain", "model": "claude-x", "iteration": 2,
        "startedAt": time(-100), "completedAt": time(4100), "tokens": {}, "timing": {}, "cost": {}, "success": false,
        "toolCalls": { "total": 4, "byCategory": {}, "failed": null, "retried": null, "errorRate": null, "records": [] },
        "checkpointsPassed": 1, "checkpointsTotal": 2, "outputValid": true, "provider": "claude-code", "sessionId": "s1",
        "checkpointDetails": [
            { "id": "exit", "description": "`ls` exits with 0", "passed": true },
            { "id": "hidden", "description": "the hidden tests pass", "passed": false, "actual": "agent's words" },
        ],
        "agentTurns": 2, "completionReason": "stop", "extensions": {}, "outcome": "fail", "position": 7,
    }))
    .unwrap();
    Session {
        trial: Some(Trial {
            row,
            suite: "files".to_owned(),
            description: "Files are listed.".to_owned(),
        }),
        ..session()
    }
}
