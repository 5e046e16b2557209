//! Claude Code.

use crate::support::{Logs, all_classes, classes, outline, recording};
use serde_json::{Value, json};

/// A line with what every line has.
fn line(uuid: &str, second: u32, more: Value) -> String {
    let mut line = json!({
        "uuid": uuid, "parentUuid": null, "sessionId": "s1", "isSidechain": false, "version": "2.1.0", "cwd": "/repo",
        "timestamp": format!("2026-11-02T09:00:{second:02}.000Z"),
    });
    line.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    format!("{line}\n")
}

fn answer(uuid: &str, second: u32, block: Value, output: u64) -> String {
    answer_of(uuid, second, "msg_1", "req_1", block, output)
}

fn answer_of(
    uuid: &str,
    second: u32,
    message: &str,
    request: &str,
    block: Value,
    output: u64,
) -> String {
    let stop = (output > 5).then_some("tool_use");
    line(
        uuid,
        second,
        json!({"type": "assistant", "requestId": request, "message": {
            "id": message, "model": "claude-x", "role": "assistant", "content": [block], "stop_reason": stop,
            "usage": {"input_tokens": 3, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 12000, "output_tokens": output},
        }}),
    )
}

fn prompt(uuid: &str, second: u32, text: &str) -> String {
    line(
        uuid,
        second,
        json!({"type": "user", "message": {"role": "user", "content": text}}),
    )
}

fn result(uuid: &str, second: u32, tool: &str, is_error: bool) -> String {
    let block = json!({"type": "tool_result", "tool_use_id": tool, "content": "a.rs", "is_error": is_error});
    line(
        uuid,
        second,
        json!({"type": "user", "message": {"role": "user", "content": [block]}}),
    )
}

fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "look first"})
}

fn tool(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})
}

const ONE_CALL: [Option<u64>; 5] = [Some(3), Some(12000), Some(900), Some(74), None];

/// A prompt, an answer over two lines, a result.
fn usual() -> String {
    [
        prompt("e1", 0, "List the files."),
        answer("e2", 4, thinking(), 1),
        answer("e3", 5, tool("toolu_1"), 74),
        result("e4", 6, "toolu_1", false),
    ]
    .concat()
}

#[test]
fn the_recording_has_its_known_sums() {
    let sessions = assize_sessions::open(&recording("claude-code.jsonl")).unwrap();
    let [session] = &sessions[..] else {
        panic!("{} sessions", sessions.len())
    };
    assert_eq!(
        classes(&session.trace),
        [Some(201), Some(21163), Some(2934), Some(137), None]
    );
    assert_eq!(
        outline(&session.trace),
        [
            "turn 0",
            "reasoning",
            "text I'll write the file first.",
            "Bash ok",
            "turn 1",
            "text Done: out.txt now contains the word hi."
        ]
    );
    assert_eq!(session.origin.agent, "claude-code");
    assert_eq!(session.origin.agent_version.as_deref(), Some("2.1.197"));
    assert_eq!(session.origin.cwd.as_deref(), Some("/tmp/work"));
    assert_eq!(session.origin.git_branch.as_deref(), Some("master"));
    assert_eq!(session.model(), Some("claude-sonnet-4-5"));
    assert_eq!(
        session.prompts[0].text,
        "Create a file out.txt with the word hi"
    );
    assert_eq!(session.trace.user_turns.len(), 1);
    assert_eq!(session.flaws.unusable_lines(), 0);
    assert_eq!(
        session.trace.final_text(),
        "Done: out.txt now contains the word hi."
    );
}

#[test]
fn an_answer_over_several_lines_is_one_call_with_its_largest_usage() {
    let session = Logs::new(&[("s1.jsonl", &usual())]).session();
    assert_eq!(session.trace.model_calls.len(), 1);
    assert_eq!(classes(&session.trace), ONE_CALL);
    assert_eq!(outline(&session.trace), ["turn 0", "reasoning", "Bash ok"]);
}

#[test]
fn the_whole_usage_of_the_largest_line_counts_and_the_later_one_on_a_tie() {
    let mut first: Value = serde_json::from_str(&answer("a", 1, thinking(), 10)).unwrap();
    first["message"]["usage"]["input_tokens"] = json!(500);
    let mut second: Value = serde_json::from_str(&answer("b", 2, tool("t"), 10)).unwrap();
    second["message"]["usage"]["input_tokens"] = json!(7);
    second["message"]["model"] = json!("claude-y");
    let session = Logs::new(&[("s1.jsonl", &format!("{first}\n{second}\n"))]).session();
    assert_eq!(classes(&session.trace)[0], Some(7));
    assert_eq!(session.model(), Some("claude-y"));
}

#[test]
fn lines_that_a_resumed_session_copies_count_once() {
    let copied = usual().replace("\"s1\"", "\"s2\"");
    let more = answer_of(
        "e9",
        30,
        "msg_2",
        "req_2",
        json!({"type": "text", "text": "more"}),
        10,
    )
    .replace("\"s1\"", "\"s2\"");
    let resumed = format!(
        "{copied}{}{more}",
        prompt("e8", 29, "Go on.").replace("\"s1\"", "\"s2\"")
    );
    let logs = Logs::new(&[("s1.jsonl", &usual()), ("s2.jsonl", &resumed)]);
    let sessions = logs.open();
    assert_eq!(
        all_classes(&sessions),
        [Some(6), Some(24000), Some(1800), Some(84), None]
    );
    let prompts: Vec<usize> = sessions
        .iter()
        .map(|session| session.prompts.len())
        .collect();
    assert_eq!(prompts, [1, 1]);
    let calls: Vec<usize> = sessions
        .iter()
        .map(|session| session.trace.model_calls.len())
        .collect();
    assert_eq!(calls, [1, 1]);
    assert_eq!(outline(&sessions[1].trace), ["turn 0", "text more"]);
}

#[test]
fn a_copy_with_the_final_count_completes_the_call_of_the_first_session() {
    let unfinished = [
        prompt("e1", 0, "List the files."),
        answer("e2", 4, thinking(), 1),
    ]
    .concat();
    let logs = Logs::new(&[
        ("s1.jsonl", &unfinished),
        ("s2.jsonl", &usual().replace("\"s1\"", "\"s2\"")),
    ]);
    assert_eq!(all_classes(&logs.open()), ONE_CALL);
}

#[test]
fn a_side_chain_that_repeats_an_answer_of_the_main_agent_counts_nothing() {
    let replayed = answer_of("e7", 8, "msg_1", "req_9", tool("toolu_1"), 74)
        .replace("\"isSidechain\":false", "\"isSidechain\":true");
    let session = Logs::new(&[("s1.jsonl", &format!("{}{replayed}", usual()))]).session();
    assert_eq!(classes(&session.trace), ONE_CALL);
    assert_eq!(session.trace.model_calls[0].agent_id, None);
}

#[test]
fn files_of_sub_agents_belong_to_their_session() {
    let main = usual().replace("\"name\":\"Bash\"", "\"name\":\"Task\"");
    let ended = main.replace("\"a.rs\"", "\"done\"");
    let side = answer_of("f1", 5, "msg_5", "req_5", tool("toolu_9"), 20).replace(
        "\"isSidechain\":false",
        "\"isSidechain\":true,\"agentId\":\"a77\"",
    );
    let logs = Logs::new(&[
        ("p/s1.jsonl", &ended),
        ("p/s1/subagents/agent-a77.jsonl", &side),
        (
            "p/s1/subagents/agent-a77.meta.json",
            r#"{"agentType":"Explore","toolUseId":"toolu_1"}"#,
        ),
    ]);
    let session = assize_sessions::open(&logs.path("p/s1.jsonl"))
        .unwrap()
        .remove(0);
    let agents: Vec<Option<&str>> = session
        .trace
        .model_calls
        .iter()
        .map(|call| call.agent_id.as_deref())
        .collect();
    assert_eq!(agents, [None, Some("a77")]);
    let note = &session.subagents[0];
    assert_eq!(
        (
            note.id.as_str(),
            note.kind.as_deref(),
            note.started_by.as_deref()
        ),
        ("a77", Some("Explore"), Some("toolu_1"))
    );
    assert_eq!(session.trace.summary.total_turns, Some(1));
    assert_eq!(
        outline(&session.trace),
        ["turn 0", "reasoning", "Task ok", "Bash failed"]
    );
}

#[test]
fn null_usage_is_unknown_and_synthetic_messages_have_none() {
    let unknown =
        answer("e2", 4, thinking(), 10).replace(r#""output_tokens":10"#, r#""output_tokens":null"#);
    let synthetic = answer_of(
        "e5",
        6,
        "msg_s",
        "",
        json!({"type": "text", "text": "API Error: 500"}),
        0,
    )
    .replace("claude-x", "<synthetic>")
    .replace("\"uuid\"", "\"isApiErrorMessage\":true,\"uuid\"");
    let session = Logs::new(&[(
        "s1.jsonl",
        &format!("{}{unknown}{synthetic}", prompt("e1", 0, "Hi")),
    )])
    .session();
    assert_eq!(session.trace.model_calls.len(), 1);
    assert_eq!(
        classes(&session.trace),
        [Some(3), Some(12000), Some(900), None, None]
    );
    assert_eq!(
        outline(&session.trace).last().unwrap(),
        "error API Error: 500"
    );
    assert_eq!(session.flaws.wrong_types, 0);
}

#[test]
fn broken_lines_and_wrong_types_are_counted_and_a_half_last_line_is_told_apart() {
    let odd = answer_of("e9", 8, "msg_3", "req_3", thinking(), 10)
        .replace(r#""input_tokens":3"#, r#""input_tokens":"3""#);
    let text = format!(
        "{}{{\"type\":\nnull\n7\n{odd}{}",
        usual(),
        r#"{"type":"assistant","mess"#
    );
    let session = Logs::new(&[("s1.jsonl", &text)]).session();
    let flaws = session.flaws;
    assert_eq!(
        (
            flaws.lines,
            flaws.broken_lines,
            flaws.wrong_types,
            flaws.unfinished_lines
        ),
        (9, 1, 3, 1)
    );
    assert_eq!(classes(&session.trace)[0], None);
    assert_eq!(classes(&session.trace)[3], Some(84));
}

#[test]
fn a_count_that_was_never_finished_is_doubtful() {
    let session = Logs::new(&[("s1.jsonl", &answer("e2", 4, thinking(), 1))]).session();
    assert_eq!(session.flaws.doubtful_calls, 1);
}

#[test]
fn turns_of_the_user_leave_out_what_the_agent_wrote_in_his_name() {
    let meta = line(
        "m1",
        7,
        json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": "Caveat: …"}}),
    );
    let summary = line(
        "m2",
        8,
        json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": "So far …"}}),
    );
    let boundary = line(
        "m3",
        7,
        json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}),
    );
    let snapshot = "{\"type\":\"file-history-snapshot\",\"messageId\":\"x\",\"snapshot\":{}}\n";
    let text = format!(
        "{}{meta}{boundary}{summary}{snapshot}{}",
        usual(),
        prompt("m4", 9, "Go on.")
    );
    let session = Logs::new(&[("s1.jsonl", &text)]).session();
    let texts: Vec<&str> = session
        .prompts
        .iter()
        .map(|prompt| prompt.text.as_str())
        .collect();
    assert_eq!(texts, ["List the files.", "Go on."]);
    assert_eq!(session.compactions, [3]);
}

#[test]
fn a_tool_without_a_result_failed_and_its_time_is_a_bound() {
    let text = format!(
        "{}{}",
        usual(),
        answer_of("e7", 9, "msg_2", "req_2", tool("toolu_2"), 10)
    );
    let session = Logs::new(&[("s1.jsonl", &text)]).session();
    let tools = session.trace.tool_call_records();
    assert_eq!(tools[0].duration_ms.unwrap().value(), 1000.0);
    assert_eq!(tools[1].success, Some(false));
    assert_eq!(tools[1].duration_ms, None);
}

#[test]
fn a_line_without_usage_leaves_what_another_line_of_the_answer_had() {
    let mut first: Value = serde_json::from_str(&answer("e2", 4, thinking(), 74)).unwrap();
    first["message"]["usage"]["output_tokens"] = Value::Null;
    let mut second = first.clone();
    second["uuid"] = json!("e3");
    second["message"]["usage"] = Value::Null;
    let text = format!("{}{first}\n{second}\n", prompt("e1", 0, "Go on."));
    let session = Logs::new(&[("s1.jsonl", &text)]).session();
    assert_eq!(
        classes(&session.trace),
        [Some(3), Some(12000), Some(900), None, None]
    );
}

#[test]
fn cache_writes_that_are_only_told_by_their_class_are_added_up() {
    let mut line: Value = serde_json::from_str(&answer("e2", 4, thinking(), 74)).unwrap();
    let usage = line["message"]["usage"].as_object_mut().unwrap();
    usage.remove("cache_creation_input_tokens");
    usage.insert(
        "cache_creation".to_owned(),
        json!({"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 30}),
    );
    let session = Logs::new(&[("s1.jsonl", &format!("{line}\n"))]).session();
    let call = &session.trace.model_calls[0];
    assert_eq!(
        (call.tokens.cache_write, call.cache_write_1h),
        (Some(130), Some(30))
    );
}
