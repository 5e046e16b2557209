//! Readers on recordings of the real agents, and on anything at all.

use super::*;
use assize_contracts::{SessionTrace, TokenBreakdown, TraceEvent, Usd};
use proptest::prelude::*;
use serde_json::json;

const FORMS: [OutputForm; 7] = [
    OutputForm::Text,
    OutputForm::Events,
    OutputForm::ClaudeCode,
    OutputForm::QwenCode,
    OutputForm::Codex,
    OutputForm::Opencode,
    OutputForm::Gemini,
];

/// The folder of recordings and the form they are in.
const AGENTS: [(&str, OutputForm); 5] = [
    ("claude-code", OutputForm::ClaudeCode),
    ("codex", OutputForm::Codex),
    ("opencode", OutputForm::Opencode),
    ("gemini-cli", OutputForm::Gemini),
    ("qwen-code", OutputForm::QwenCode),
];

fn recording(agent: &str, case: &str) -> String {
    let path = format!(
        "{}/tests/recordings/{agent}/{case}.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn story_of(form: OutputForm, lines: &str) -> Story {
    let mut story = Story::new(form);
    for (number, line) in lines.lines().enumerate() {
        story.take(line, Some(number as i64 * 10));
    }
    story
}

fn story(agent: &str, case: &str) -> Story {
    let form = AGENTS.iter().find(|(name, _)| *name == agent).unwrap().1;
    story_of(form, &recording(agent, case))
}

/// The sums of the recordings' script: all input, cache reads, all output.
fn check_tokens(tokens: TokenBreakdown) {
    let sum = |parts: [Option<u64>; 3]| parts.into_iter().flatten().sum::<u64>();
    let prompt = sum([tokens.input, tokens.cache_read, tokens.cache_write]);
    let completion = sum([tokens.output, tokens.reasoning, None]);
    assert_eq!(
        (prompt, tokens.cache_read, completion, tokens.total),
        (24298, Some(21163), 137, Some(24435))
    );
}

#[test]
fn a_good_run_tells_the_same_story_for_every_agent() {
    for (agent, _) in AGENTS {
        let story = story(agent, "ok");
        assert_eq!(
            story.answer, "Done: out.txt now contains the word hi.",
            "{agent}"
        );
        assert_eq!(story.complaint(), None, "{agent}");
        assert!(
            story.is_done && story.fatal.is_none() && story.llm_failure.is_none(),
            "{agent}"
        );
        assert!(story.session.is_some(), "{agent}");
        check_tokens(story.tokens.unwrap());
        let calls = story.tool_calls();
        assert_eq!((calls.len(), calls[0].success), (1, Some(true)), "{agent}");
        // Only one of them measures its tools; when lines come is no measure.
        let is_measured = calls[0].duration_ms.is_some();
        assert_eq!(is_measured, agent == "opencode", "{agent}");
        let turns =
            SessionTrace::from_events(String::new(), story.events.clone(), Default::default());
        let reports_answers = ["claude-code", "opencode"].contains(&agent);
        assert_eq!(
            turns.summary.total_turns,
            reports_answers.then_some(2),
            "{agent}"
        );
        let shown = story.events.iter().find_map(|event| match &**event {
            TraceEvent::ToolCall { input, output, .. } => {
                Some((input.to_string(), output.to_string()))
            }
            _ => None,
        });
        let (input, output) = shown.unwrap();
        assert!(
            input.contains("echo hi > out.txt") && output.contains("hi"),
            "{agent}"
        );
    }
}

#[test]
fn reasoning_is_told_apart_where_the_agent_does() {
    let reasoning = |agent| story(agent, "ok").tokens.unwrap().reasoning;
    assert_eq!(reasoning("claude-code"), None);
    for agent in ["codex", "opencode", "gemini-cli"] {
        assert_eq!(reasoning(agent), Some(40), "{agent}");
    }
}

#[test]
fn codex_counts_a_session_from_its_beginning() {
    let mut story = Story::new(OutputForm::Codex);
    story.earlier = self::story("codex", "ok").tokens;
    let usage = r#"{"input_tokens":48596,"cached_input_tokens":42326,"cache_write_input_tokens":0,"output_tokens":274,"reasoning_output_tokens":80}"#;
    story.take(
        &format!(r#"{{"type":"turn.completed","usage":{usage}}}"#),
        None,
    );
    check_tokens(story.tokens.unwrap());
}

#[test]
fn costs_are_those_the_agent_tells() {
    let cost = |agent| story(agent, "ok").cost.total_usd;
    assert_eq!(cost("claude-code"), Usd::new(0.0200094));
    assert_eq!(
        cost("opencode").map(|cost| (cost.value() * 1e7).round()),
        Some(178089.0)
    );
    assert_eq!((cost("codex"), cost("gemini-cli")), (None, None));
}

#[test]
fn a_failing_llm_is_told_apart_from_a_failing_agent() {
    let failure = |agent, case| story(agent, case).llm_failure.map(|failure| failure.status);
    for (agent, case, status) in [
        ("claude-code", "llm-500", Some(500)),
        ("claude-code", "llm-429", Some(429)),
        ("claude-code", "llm-401", Some(401)),
        // Codex does not say which one.
        ("codex", "llm-500", None),
        ("codex", "llm-429", Some(429)),
        ("codex", "llm-401", Some(401)),
        ("opencode", "llm-500", Some(500)),
        ("opencode", "llm-401", Some(401)),
        ("gemini-cli", "llm-500", Some(500)),
        ("gemini-cli", "llm-401", Some(401)),
        ("gemini-cli", "stream-cut-once", None),
    ] {
        assert_eq!(failure(agent, case), Some(status), "{agent} {case}");
        let story = story(agent, case);
        assert!(!story.is_done && story.tokens.is_none(), "{agent} {case}");
    }
}

#[test]
fn a_retry_that_helped_leaves_no_failure() {
    for (agent, _) in &AGENTS[..3] {
        for case in ["llm-500-once", "stream-cut-once"] {
            let story = story(agent, case);
            assert!(story.is_done && story.llm_failure.is_none() && story.fatal.is_none());
            check_tokens(story.tokens.unwrap());
        }
    }
}

#[test]
fn a_call_that_was_not_allowed_failed() {
    let calls = story("claude-code", "permission-denied").tool_calls();
    assert_eq!((calls.len(), calls[0].success), (1, Some(false)));
    assert!(calls[0].error.as_ref().unwrap().starts_with("denied"));
}

#[test]
fn an_agent_that_was_ended_is_not_done() {
    for (agent, case) in [
        ("claude-code", "sigterm-in-tool"),
        ("codex", "sigterm-in-tool"),
        ("opencode", "sigterm-in-tool"),
        ("gemini-cli", "sigterm-in-tool-norelaunch"),
    ] {
        let story = story(agent, case);
        assert!(!story.is_done, "{agent}");
        assert!(
            story.tool_calls().iter().all(|call| call.success.is_none()),
            "{agent}"
        );
    }
}

#[test]
fn a_failed_command_is_a_failed_call() {
    let line = r#"{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"x","aggregated_output":"","exit_code":3,"status":"failed"}}"#;
    let calls = story_of(OutputForm::Codex, line).tool_calls();
    assert_eq!(
        (calls[0].success, calls[0].error.as_deref()),
        (Some(false), Some("exit code 3"))
    );
}

#[test]
fn what_a_subagent_says_is_no_answer() {
    let line = |parent: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let lines = [line("null", "mine"), line("\"toolu_1\"", "its")].join("\n");
    let story = story_of(OutputForm::ClaudeCode, &lines);
    assert_eq!((story.answer.as_str(), story.events.len()), ("mine", 2));
}

#[test]
fn a_notice_about_the_model_is_no_error() {
    let said = |message: &str| {
        let item = json!({"id": "item_0", "type": "error", "message": message});
        let line = json!({"type": "item.completed", "item": item}).to_string();
        story_of(OutputForm::Codex, &line).events.len()
    };
    assert_eq!(
        said("Model metadata for `m` not found. Defaulting to fallback metadata"),
        0
    );
    assert_eq!(said("something else went wrong"), 1);
}

#[test]
fn a_session_that_goes_on_counts_only_its_last_prompt() {
    let usage = |input: u64| json!({"m": {"inputTokens": input, "outputTokens": 1, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}});
    let line = json!({
        "type": "result", "subtype": "success", "is_error": false, "result": "done",
        "modelUsage": usage(30), "model_usage_since_last_result": usage(10),
    });
    let story = story_of(OutputForm::ClaudeCode, &line.to_string());
    assert_eq!(story.tokens.unwrap().input, Some(10));
}

#[test]
fn what_an_agent_says_after_its_time_tells_nothing_about_its_tools() {
    let mut story = Story::new(OutputForm::ClaudeCode);
    let call = json!({"type": "assistant", "message": {"id": "a", "model": "m", "content": [
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "sleep 9"}},
    ]}});
    let rejected = json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "rejected"},
    ]}});
    story.take(&call.to_string(), Some(1_000));
    story.take(&rejected.to_string(), Some(9_000));
    story.forget_ends_since(9_001);
    assert_eq!(story.tool_calls()[0].success, Some(false));
    story.forget_ends_since(9_000);
    assert_eq!(story.tool_calls()[0].success, None);
}

/// Lines of recordings with something cut out, doubled or put in.
fn damaged() -> impl Strategy<Value = (OutputForm, String)> {
    let cases = ["ok", "llm-500"];
    (
        0..AGENTS.len(),
        0..cases.len(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        "\\PC{0,20}",
    )
        .prop_map(move |(agent, case, from, to, put_in)| {
            let (name, form) = AGENTS[agent];
            let text = recording(name, cases[case]);
            let chars: Vec<char> = text.chars().collect();
            let (a, b) = (from.index(chars.len()), to.index(chars.len()));
            let kept: String = chars[..a.min(b)].iter().collect();
            let rest: String = chars[a.max(b)..].iter().collect();
            (form, format!("{kept}{put_in}{rest}"))
        })
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = "type|subtype|message|content|item|id|part|state|time|start|end|usage|stats|models|tool_use_id|tool_id|callID|status|exit_code|error|result|is_error|tokens|timestamp|sessionID";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "assistant|user|result|tool_use|tool_result|text|thinking|item.completed|item.started|turn.completed|turn.failed|step_finish|error|message|command_execution|success|x".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_recordings_are_read_as_far_as_they_go((form, lines) in damaged()) {
        story_of(form, &lines);
    }

    #[test]
    fn no_event_is_too_strange(events in prop::collection::vec(any_json(), 1..6)) {
        for form in FORMS {
            let lines: Vec<String> = events.iter().map(Value::to_string).collect();
            story_of(form, &lines.join("\n"));
        }
    }
}
