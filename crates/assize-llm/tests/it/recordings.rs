//! The recorded traffic of eleven agents, read back exact to the token.
//!
//! The scripted model's numbers: turn 0 reads 9216 tokens from the cache, writes 2731 (only Anthropic reports them; elsewhere
//! they are plain input), has 14 tokens of other input, and answers with 96 tokens, 32 of them reasoning. Turn 1: 11947,
//! 203, 187, 41 and 8. A side request: 0, 0, 142, 6 and 0.

use assize_contracts::TokenBreakdown;
use assize_llm::{AnswerReader, Api, Content, ModelAnswer, ModelRequest};
use serde_json::{Value, json};
use std::time::Duration;

struct Call {
    request: ModelRequest,
    answer: ModelAnswer,
}

/// Every model call of a recording, fed as it came.
fn calls(recording: &str) -> Vec<Call> {
    let path = format!(
        "{}/tests/fixtures/{recording}.wire.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("no {path}"));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter_map(|exchange: Value| call(&exchange))
        .collect()
}

fn call(exchange: &Value) -> Option<Call> {
    let path = exchange["path"].as_str()?;
    let api = Api::of(exchange["method"].as_str()?, path)?;
    let request = exchange["request"].to_string();
    let mut reader = AnswerReader::new(api, exchange["status"].as_u64()? as u16);
    for event in exchange["events"].as_array().into_iter().flatten() {
        reader.feed(event[1].as_str()?.as_bytes(), millis(&event[0]));
    }
    if exchange["response"].is_object() {
        let body = exchange["response"].to_string();
        reader.feed(body.as_bytes(), millis(&exchange["t_first_ms"]));
    }
    assize_llm::fuzzing::outlined(api, path, request.as_bytes());
    Some(Call {
        request: ModelRequest::decode(api, path, request.as_bytes()),
        answer: reader.finish(),
    })
}

fn millis(value: &Value) -> Duration {
    Duration::from_micros((value.as_f64().unwrap() * 1000.0) as u64)
}

fn anthropic(input: u64, output: u64, cache_read: u64, cache_write: u64) -> TokenBreakdown {
    TokenBreakdown {
        input: Some(input),
        output: Some(output),
        cache_read: Some(cache_read),
        cache_write: Some(cache_write),
        ..TokenBreakdown::default()
    }
    .with_totals()
}

fn split(input: u64, output: u64, reasoning: u64, cache_read: u64) -> TokenBreakdown {
    TokenBreakdown {
        input: Some(input),
        output: Some(output),
        reasoning: Some(reasoning),
        cache_read: Some(cache_read),
        ..TokenBreakdown::default()
    }
    .with_totals()
}

fn turn(number: usize) -> TokenBreakdown {
    [split(2745, 64, 32, 9216), split(390, 33, 8, 11947)][number]
}

fn side() -> TokenBreakdown {
    split(142, 6, 0, 0)
}

fn check(recording: &str, api: Api, expected: &[TokenBreakdown]) -> Vec<Call> {
    let calls = calls(recording);
    let tokens: Vec<_> = calls.iter().map(|call| call.answer.usage.tokens).collect();
    assert_eq!(tokens, expected, "{recording}");
    for call in &calls {
        assert_eq!(call.answer.api, api, "{recording}");
        assert_eq!(call.answer.flaws, Default::default(), "{recording}");
    }
    calls
}

#[test]
fn anthropic_messages_of_claude_code() {
    let turns = [
        anthropic(14, 96, 9216, 2731),
        anthropic(187, 41, 11947, 203),
    ];
    let calls = check("claude-code.ok", Api::AnthropicMessages, &turns);
    check_first_turn(&calls[0], "Bash", Some("tool_use"));
    check_last_turn(&calls[1], Some("end_turn"));
    let answer = &calls[0].answer;
    assert_eq!(answer.first_byte_at, Some(Duration::from_micros(143_800)));
    assert_eq!(
        answer.first_content_at,
        Some(Duration::from_micros(170_100))
    );
    assert_eq!(answer.usage.cache_write_1h, Some(0));
    assert_eq!(answer.usage.service_tier.as_deref(), Some("standard"));
    let result = &calls[1].request.tool_results[0];
    assert_eq!(result.id, answer.tools().next().unwrap().id);
    assert_eq!(
        (&result.output, result.is_error),
        (&json!("hi"), Some(false))
    );
}

#[test]
fn a_call_that_failed_has_no_tokens_and_says_why() {
    for (recording, api, kind) in [
        (
            "claude-code.llm-500-once",
            Api::AnthropicMessages,
            "api_error",
        ),
        ("codex.llm-500-once", Api::OpenAiResponses, "server_error"),
        ("gemini-cli.llm-500-once", Api::Gemini, "INTERNAL"),
    ] {
        let calls = calls(recording);
        assert_eq!(calls.len(), 3, "{recording}");
        let failed = &calls[0].answer;
        assert_eq!(failed.api, api);
        assert_eq!(failed.usage.tokens, TokenBreakdown::default());
        let error = failed.error.as_ref().unwrap();
        assert_eq!(error.status, 500);
        assert_eq!(error.kind.as_deref(), Some(kind));
        assert_eq!(error.message, "fake 500");
        assert!(calls[1..].iter().all(|call| call.answer.error.is_none()));
    }
}

#[test]
fn a_stream_that_was_cut_has_an_unknown_output() {
    let calls = calls("claude-code.stream-cut-once");
    let cut = &calls[0].answer;
    assert!(cut.streamed && !cut.complete);
    assert_eq!(cut.usage.tokens.input, Some(14));
    assert_eq!(
        (cut.usage.tokens.output, cut.usage.tokens.total),
        (None, None)
    );
    // The turn was asked for again, plainly.
    let plain = &calls[1].answer;
    assert!(!plain.streamed && plain.complete);
    assert_eq!(plain.usage.tokens, anthropic(14, 96, 9216, 2731));
    assert_eq!(plain.first_content_at, None);
    check_first_turn(&calls[1], "Bash", Some("tool_use"));
}

#[test]
fn responses_of_codex() {
    let calls = check("codex.ok", Api::OpenAiResponses, &[turn(0), turn(1)]);
    check_first_turn(&calls[0], "exec_command", Some("completed"));
    check_last_turn(&calls[1], Some("completed"));
    let answer = &calls[0].answer;
    assert_eq!(answer.model.as_deref(), Some("gpt-5.1-codex"));
    assert_eq!(
        answer.first_content_at,
        Some(Duration::from_micros(181_600))
    );
    assert_eq!(answer.parts[2].at, Some(Duration::from_micros(375_300)));
    let result = &calls[1].request.tool_results[0];
    assert_eq!(result.id, answer.tools().next().unwrap().id);
    assert!(result.output.as_str().unwrap().ends_with("Output:\nhi\n"));
    check(
        "acp-codex",
        Api::OpenAiResponses,
        &[turn(0), turn(1), side()],
    );
}

#[test]
fn gemini_of_its_own_agent() {
    let calls = check("gemini-cli.ok", Api::Gemini, &[turn(0), turn(1)]);
    check_first_turn(&calls[0], "run_shell_command", Some("STOP"));
    check_last_turn(&calls[1], Some("STOP"));
    assert_eq!(calls[0].answer.tools().next().unwrap().id, None);
    assert_eq!(calls[0].request.model.as_deref(), Some("gemini-2.5-pro"));
    let result = &calls[1].request.tool_results[0];
    assert_eq!(result.name.as_deref(), Some("run_shell_command"));
    assert_eq!(result.is_error, Some(false));
    assert!(result.output.as_str().unwrap().contains("Output: hi"));
}

#[test]
fn chat_completions_of_seven_agents() {
    let two = [turn(0), turn(1)];
    let titled = [side(), turn(0), turn(1)];
    for (recording, tool, tokens) in [
        ("cline.ok", "run_commands", &two[..]),
        ("copilot.ok", "bash", &two),
        ("goose.ok", "shell", &titled),
        ("opencode.ok", "bash", &titled),
        ("pi.ok", "bash", &two),
        ("qwen-code.ok", "run_shell_command", &two),
        ("mini-swe-agent.ok", "bash", &two),
    ] {
        let calls = check(recording, Api::OpenAiChat, tokens);
        let [first, last] = calls.last_chunk().unwrap();
        check_first_turn(first, tool, Some("tool_calls"));
        let result = &last.request.tool_results[0];
        assert_eq!(
            result.id,
            first.answer.tools().next().unwrap().id,
            "{recording}"
        );
        assert!(last.answer.text().starts_with("Done"), "{recording}");
        for side in &calls[..calls.len() - 2] {
            assert_eq!(side.request.tools, 0, "{recording}");
        }
    }
}

#[test]
fn a_call_without_usage_on_the_wire_is_unknown() {
    let calls = calls("aider.ok");
    let (main, commit) = (&calls[0], &calls[1]);
    assert_eq!(main.answer.usage.tokens, TokenBreakdown::default());
    assert!(main.answer.complete && main.answer.text().contains("<<<<<<< SEARCH"));
    assert_eq!(commit.answer.usage.tokens, turn(0));
}

fn check_first_turn(call: &Call, tool: &str, stop_reason: Option<&str>) {
    let Call { request, answer } = call;
    assert!(request.tools > 0);
    let asked = "Create a file out.txt with the word hi";
    assert!(request.user_texts.iter().any(|text| text.contains(asked)));
    assert_eq!(answer.stop_reason.as_deref(), stop_reason);
    assert_eq!(answer.text(), "I'll write the file first.");
    let called = answer.tools().next().unwrap();
    assert_eq!(called.name, tool);
    let arguments = called.arguments.to_string();
    assert!(
        arguments.contains("echo hi > out.txt && cat out.txt"),
        "{arguments}"
    );
    assert!(answer.complete);
    // A plain chat answer has no reasoning.
    if answer.streamed {
        let reasoning = "The user wants a file called out.txt. A shell command is enough.";
        assert_eq!(
            answer.parts[0].content,
            Content::Reasoning(reasoning.into())
        );
        assert!(matches!(answer.parts[1].content, Content::Text(_)));
        assert!(matches!(answer.parts[2].content, Content::Tool(_)));
    }
}

fn check_last_turn(call: &Call, stop_reason: Option<&str>) {
    assert_eq!(call.answer.stop_reason.as_deref(), stop_reason);
    assert!(call.answer.text().starts_with("Done"));
    assert_eq!(call.answer.tools().count(), 0);
    assert_eq!(call.answer.model, call.request.model);
}
