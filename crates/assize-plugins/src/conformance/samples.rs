//! Inputs as a run would give them: a scenario, a session with every kind of event, a task and its record.

use assize_contracts::{
    AtomicTask, BaseScenario, CreateSessionParams, PermissionConfig, ProfileRow, PromptResult,
    ProviderConfig, RunContext, RunRecord, ScenarioTask, ScorerContext, SessionTrace,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the samples have the right shape")
}

pub(super) fn scenario() -> BaseScenario {
    let mut scenario = BaseScenario::new("sample", "Say hello.");
    scenario.name = "A sample".to_owned();
    scenario.timeout_ms = 10_000;
    scenario
        .extensions
        .insert("expected".to_owned(), json!("hello"));
    scenario
}

pub(super) fn config() -> ProviderConfig {
    ProviderConfig {
        port: 49_152,
        model: "sample-model".to_owned(),
        mode: "plain".to_owned(),
        permissions: PermissionConfig::default(),
        environment: Default::default(),
        workdir: ".".into(),
        provider_overrides: Default::default(),
    }
}

pub(super) fn session(iteration: i64) -> CreateSessionParams {
    CreateSessionParams {
        scenario_id: "sample".to_owned(),
        iteration,
        mode: "plain".to_owned(),
        model: "sample-model".to_owned(),
        workdir: ".".into(),
        ..CreateSessionParams::default()
    }
}

pub(super) fn result() -> PromptResult {
    read(json!({
        "text": "hello there",
        "metrics": {
            "tokens": {
                "input": 50, "output": 25, "reasoning": 10, "cacheRead": 0, "cacheWrite": 0, "total": 85, "active": 85,
            },
            "timing": { "wallMs": 500, "segments": [{ "label": "agent", "startMs": 0, "endMs": 500 }] },
            "toolCalls": [
                { "name": "Read", "category": "file", "success": true, "durationMs": 12 },
                { "name": "Bash", "category": "shell", "success": false, "durationMs": null, "error": "exit 1" },
            ],
            "cost": { "totalUsd": 0.001, "inputUsd": 0.0005, "outputUsd": 0.0003, "reasoningUsd": 0.0002 },
        },
        "completionReason": "stop",
    }))
}

/// The result of a provider that knows nothing but the text.
pub(super) fn bare_result() -> PromptResult {
    PromptResult {
        text: "hello".to_owned(),
        ..PromptResult::default()
    }
}

pub(super) fn trace() -> SessionTrace {
    let events: Vec<assize_contracts::TraceEvent> = read(json!([
        { "type": "turn_boundary", "turnNumber": 1, "timestamp": "2026-01-01T00:00:00.000Z" },
        { "type": "reasoning", "content": "Let me look.", "durationMs": 120, "tokenCount": 10 },
        { "type": "tool_call", "name": "Read", "input": { "path": "a.txt" }, "output": "hello", "durationMs": 12, "success": true },
        { "type": "tool_call", "name": "Bash", "input": { "command": "false" }, "output": null, "durationMs": null,
          "success": false, "error": "exit 1" },
        { "type": "error", "message": "the tool failed", "recoverable": true },
        { "type": "text_output", "content": "hello there", "tokenCount": 25, "timestamp": "2026-01-01T00:00:00.500Z" },
    ]));
    SessionTrace::from_events("sample-session".to_owned(), events, result().metrics.tokens)
}

pub(super) fn scorer_context(trace: Option<SessionTrace>) -> ScorerContext {
    ScorerContext {
        agent_output: "hello there".to_owned(),
        trace: trace.map(Arc::new),
        mode: "plain".to_owned(),
        model: "sample-model".to_owned(),
        metadata: scenario().extensions,
        result: Some(Arc::new(result())),
        ..ScorerContext::default()
    }
}

pub(super) fn row() -> ProfileRow {
    read(json!({
        "runId": "sample-run", "scenarioId": "sample", "mode": "plain", "model": "sample-model", "iteration": 0,
        "startedAt": "2026-01-01T00:00:00.000Z", "completedAt": "2026-01-01T00:00:01.000Z",
        "tokens": result().metrics.tokens, "timing": result().metrics.timing,
        "toolCalls": { "total": 2, "byCategory": { "file": 1, "shell": 1 }, "failed": 1, "retried": 0, "errorRate": 0.5, "records": [] },
        "cost": result().metrics.cost, "success": true, "checkpointsPassed": 1, "checkpointsTotal": 1, "checkpointDetails": [],
        "outputValid": true, "provider": "sample", "sessionId": "sample-session", "agentTurns": 1, "completionReason": "stop",
        "extensions": { "tokens_total": 85 },
    }))
}

pub(super) fn run_context() -> RunContext {
    RunContext {
        run_id: "sample-run".to_owned(),
        modes: vec!["plain".to_owned()],
        scenarios: vec![Arc::new(scenario())],
        repetitions: 1,
    }
}

pub(super) fn task(kind: &str) -> AtomicTask {
    read(json!({
        "id": "sample-task", "name": "A sample", "type": kind, "input": { "text": "hello there" },
        "expected": "hello", "metadata": { "timeout": 10_000 },
    }))
}

pub(super) fn chain() -> ScenarioTask {
    read(json!({
        "id": "sample-chain", "name": "A sample", "description": "one step", "steps": [task("sample")],
        "input_map": {}, "metadata": {},
    }))
}

pub(super) fn record(kind: &str) -> RunRecord {
    read(json!({
        "id": "sample-record", "taskId": "sample-task", "taskType": kind, "status": "completed", "output": "hello",
        "metrics": { "latency": 12 },
        "trace": [
            { "timestamp": "2026-01-01T00:00:00.000Z", "level": "info", "event": "started" },
            { "timestamp": "2026-01-01T00:00:00.012Z", "level": "info", "event": "completed" },
        ],
        "startedAt": "2026-01-01T00:00:00.000Z", "completedAt": "2026-01-01T00:00:00.012Z",
        "provenance": { "runnerId": "sample", "runnerVersion": "1", "config": {} },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_can_be_made() {
        trace();
        row();
        chain();
        record("atomic");
        record("scenario");
        scorer_context(None);
        bare_result();
    }
}
