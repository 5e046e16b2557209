//! Records that others wrote are read and come back as the same JSON.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use assize_contracts::{
    AtomicTask, PromptResult, ScenarioTask, ScoreRecord, SessionHandle, SessionTrace, Task,
    TaskEvent,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn check<T: DeserializeOwned + Serialize>(original: &Value) {
    let record: T = serde_json::from_value(original.clone())
        .unwrap_or_else(|error| panic!("{error}\nin {original:#}"));
    assert_eq!(&serde_json::to_value(&record).unwrap(), original);
}

// The examples printed in the specification, dates as `JSON.stringify` writes them.

#[test]
fn the_intent_task() {
    let task = json!({
        "id": "task-001", "name": "识别订票意图", "type": "intent", "input": "我想订一张明天去北京的机票",
        "expected": {"intent": "book_flight", "confidence": 0.9},
        "metadata": {"tags": ["intent", "booking"], "priority": 1, "timeout": 5000}
    });
    check::<AtomicTask>(&task);
    check::<Task>(&task);
}

#[test]
fn the_booking_scenario() {
    let task = json!({
        "id": "scenario-001", "name": "多轮对话订票流程", "description": "测试意图识别 → 对话管理 → 记忆存储的完整链路",
        "steps": [
            {"id": "step-1", "name": "recognize_intent", "type": "intent", "input": "我想订机票",
             "expected": {"intent": "book_flight"}, "metadata": {}},
            {"id": "step-2", "name": "manage_dialogue", "type": "dialogue",
             "input": {"intent": null, "message": "请问您要去哪里？"}, "metadata": {}},
            {"id": "step-3", "name": "store_memory", "type": "memory", "input": {"conversation": null}, "metadata": {}}
        ],
        "input_map": {
            "step-2": [{"from": "step:step-1.output.intent", "to": "input.intent"}],
            "step-3": [{"from": "step:step-2.output.conversation", "to": "input.conversation"}]
        },
        "metadata": {}
    });
    check::<ScenarioTask>(&task);
    check::<Task>(&task);
}

#[test]
fn the_task_trace() {
    check::<Vec<TaskEvent>>(&json!([
        {"timestamp": "2024-01-01T10:00:00.000Z", "level": "info", "event": "started"},
        {"timestamp": "2024-01-01T10:00:01.000Z", "level": "debug", "event": "llm_call",
         "data": {"model": "gpt-4", "prompt": "..."}},
        {"timestamp": "2024-01-01T10:00:02Z", "level": "info", "event": "completed",
         "data": {"output": {"intent": "book_flight"}}}
    ]));
}

#[test]
fn the_scores() {
    check::<Vec<ScoreRecord>>(&json!([
        {"id": "score-001", "runId": "run-123", "metric": "accuracy", "value": 0.95, "target": "final",
         "evidence": {"explanation": "输出意图与期望意图匹配",
                      "snippets": ["expected: book_flight", "actual: book_flight"]},
         "evaluatorId": "intent.metrics", "createdAt": "2024-01-01T10:00:02.000Z"},
        {"id": "score-002", "runId": "run-123", "metric": "latency", "value": 234, "target": "global",
         "evaluatorId": "intent.metrics", "createdAt": "2024-01-01T10:00:02.000Z"}
    ]));
}

#[test]
fn what_the_stub_provider_returns() {
    let tokens = json!({"input": 50, "output": 25, "reasoning": 10, "cacheRead": 0, "cacheWrite": 0,
                        "total": 85, "active": 85});
    check::<SessionHandle>(
        &json!({"sessionId": "stub-a-0", "provider": "stub-provider",
                                   "createdAt": "2024-01-01T10:00:00.000Z"}),
    );
    check::<PromptResult>(&json!({
        "text": "Stub response.",
        "metrics": {
            "tokens": tokens, "timing": {"wallMs": 500, "segments": []}, "toolCalls": [],
            "cost": {"totalUsd": 0.001, "inputUsd": 0.0005, "outputUsd": 0.0003, "reasoningUsd": 0.0002}
        },
        "completionReason": "stop"
    }));
    check::<SessionTrace>(&json!({
        "sessionId": "stub-a-0", "events": [], "turns": [],
        "summary": {"totalTurns": 1, "totalToolCalls": 0, "totalTokens": tokens, "totalDuration": 500}
    }));
}

#[test]
fn a_field_of_a_modules_own_belongs_into_extensions() {
    let task = |extra: Value| {
        let mut task =
            json!({"id": "t", "name": "n", "type": "intent", "input": "x", "metadata": {}});
        task.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        serde_json::from_value::<AtomicTask>(task)
    };
    let error = task(json!({"intentSpecificField": "value"}))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("unknown field `intentSpecificField`"),
        "{error}"
    );
    assert!(task(json!({"extensions": {"intentSpecificField": "value"}})).is_ok());
}
