//! The chain of `examples/booking` with a real agent session as its middle step.

use crate::faults::script;
use crate::good_runs::expected;
use crate::offline::{LLM, Offline, lines, repository};
use serde_json::{Value, json};

const QUESTION: &str = "请问您要去哪里？";

pub(crate) fn claude_code() {
    check("claude-code");
}

pub(crate) fn codex() {
    check("codex");
}

/// The first step's output is in the agent's prompt, what it answers reaches the third step, and every token is counted.
fn check(mode: &str) {
    let answer =
        json!({"reply": QUESTION, "conversation": [{"role": "assistant", "text": QUESTION}]});
    let turns = json!({"turns": [
        {"tool": "shell", "command": "echo hi > out.txt && cat out.txt", "say": "Let me see."},
        {"text": format!("Here it is:\n```json\n{answer}\n```\n")},
    ]});
    let offline = script(booking(), &turns);
    let said = offline.command(&[
        "env",
        "ANTHROPIC_API_KEY=none",
        "OPENAI_API_KEY=none",
        env!("CARGO_BIN_EXE_assize"),
        "run",
        "mixed.yaml",
        "--quiet",
        "--yes",
        "--mode",
        mode,
    ]);
    assert!(said.status.success(), "{said:?}");
    let directory = offline.run_directory();
    let record = &lines(&directory.join("runs.jsonl"))[0];
    assert_eq!(record["status"], "completed", "{record:#}");
    assert_eq!(record["steps"][1]["output"], answer, "{record:#}");
    assert_eq!(
        record["output"],
        json!({"stored": true, "conversation": answer["conversation"]}),
        "{record:#}"
    );
    check_events(record);
    let wire = offline.wire();
    assert!(
        wire.iter()
            .any(|exchange| exchange["request"].to_string().contains("book_flight")),
        "the intent is not in the prompt"
    );
    let expected = expected(&wire);
    let total = expected.prompt + expected.completion;
    let row = &lines(&directory.join("rows.jsonl"))[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(row["tokens"]["total"], total, "{row:#}");
    assert_eq!(record["metrics"]["tokens"], total, "{record:#}");
    assert_eq!(row["costSource"], "computed", "{row:#}");
    assert!(row["cost"]["totalUsd"].as_f64() > Some(0.0), "{row:#}");
}

fn booking() -> Offline {
    let example = repository().join("examples/booking");
    let read = |name: &str| std::fs::read_to_string(example.join(name)).unwrap();
    let more = format!(
        "permissions: {{ auto_approve: true }}\n\
         capture: {{ upstream: {{ anthropic: '{LLM}', openai: '{LLM}/v1' }} }}\n"
    );
    Offline::new(&[
        ("mixed.yaml", &(read("mixed.yaml") + &more)),
        ("tasks/booking.json", &read("tasks/booking.json")),
    ])
}

/// The session stands in the record, event by event, as part of its step.
fn check_events(record: &Value) {
    let events = record["trace"].as_array().unwrap().iter();
    let of_agent: Vec<&str> = events
        .filter(|event| event["step"] == "step-2")
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    for name in ["started", "prompt", "tool_call", "text_output", "completed"] {
        assert!(of_agent.contains(&name), "{name}: {of_agent:?}");
    }
}
