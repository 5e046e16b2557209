//! The other agents: recordings with known sums, and what is special about each form.

use crate::support::{Classes, Logs, all_classes, classes, outline, recording};
use assize_sessions::Session;
use serde_json::{Value, json};

fn session(name: &str) -> Session {
    let mut sessions = assize_sessions::open(&recording(name)).unwrap();
    assert_eq!(sessions.len(), 1, "{name}");
    sessions.remove(0)
}

/// The usual script: one command, then the answer.
fn check(name: &str, agent: &str, expected: Classes, tool: &str) {
    let session = session(name);
    assert_eq!(session.origin.agent, agent);
    assert_eq!(classes(&session.trace), expected, "{name}");
    assert_eq!(session.trace.model_calls.len(), 2, "{name}");
    let outline = outline(&session.trace);
    let expected = [
        "turn 0",
        "reasoning",
        "text I'll write the file first.",
        &format!("{tool} ok"),
        "turn 1",
        "text Done: out.txt now contains the word hi.",
    ];
    assert_eq!(outline, expected, "{name}");
    let prompts: Vec<&str> = session
        .prompts
        .iter()
        .map(|prompt| prompt.text.as_str())
        .collect();
    assert_eq!(
        prompts,
        ["Create a file out.txt with the word hi"],
        "{name}"
    );
    assert_eq!(session.flaws.unusable_lines(), 0, "{name}");
    assert!(
        session.trace.tool_call_records()[0].duration_ms.is_some(),
        "{name}"
    );
}

#[test]
fn recordings_have_their_known_sums() {
    check(
        "gemini.jsonl",
        "gemini",
        [Some(3135), Some(21163), None, Some(97), Some(40)],
        "run_shell_command",
    );
    check(
        "qwen.jsonl",
        "qwen",
        [Some(3135), Some(21163), None, Some(97), Some(40)],
        "run_shell_command",
    );
    check(
        "pi.jsonl",
        "pi",
        [Some(3135), Some(21163), Some(0), Some(137), None],
        "bash",
    );
    check(
        "copilot.jsonl",
        "copilot",
        [Some(3135), Some(21163), Some(0), Some(97), Some(40)],
        "bash",
    );
    check(
        "cline.messages.json",
        "cline",
        [Some(3135), Some(21163), Some(0), Some(137), None],
        "run_commands",
    );
}

#[test]
fn what_the_agents_tell_beside_is_kept() {
    let pi = session("pi.jsonl");
    assert_eq!(pi.origin.format_version.as_deref(), Some("3"));
    assert_eq!(pi.trace.model_calls[0].cost_usd.unwrap().value(), 0.0124398);
    let copilot = session("copilot.jsonl");
    assert_eq!(
        copilot.origin.git_commit.as_deref(),
        Some("fc7c2155261d32426344eb31d2105c95d4adaeec")
    );
    assert_eq!(
        copilot.trace.model_calls[1].duration_ms.unwrap().value(),
        164.0
    );
    let qwen = session("qwen.jsonl");
    assert_eq!(qwen.origin.agent_version.as_deref(), Some("0.15.10"));
    assert_eq!(
        session("cline.messages.json")
            .origin
            .agent_version
            .as_deref(),
        Some("3.0.65")
    );
}

/// Two prompts, each answered by the usual script; the LLM's books are beside the recording.
fn check_database(name: &str, agent: &str, expected: Classes, tool: &str) {
    let session = session(name);
    assert_eq!(session.origin.agent, agent);
    assert_eq!(classes(&session.trace), expected, "{name}");
    assert_eq!(session.trace.model_calls.len(), 4);
    assert_eq!(session.prompts.len(), 2);
    assert_eq!(session.origin.cwd.as_deref(), Some("/tmp/work"));
    let tools = outline(&session.trace)
        .into_iter()
        .filter(|line| *line == format!("{tool} ok"))
        .count();
    assert_eq!(tools, 2);
    assert_eq!(session.flaws.unusable_lines(), 0);
}

#[test]
fn databases_have_the_sums_of_the_books() {
    check_database(
        "opencode.db",
        "opencode",
        [Some(5620), Some(82954), Some(0), Some(1720), Some(202)],
        "bash",
    );
    check_database(
        "goose.db",
        "goose",
        [Some(6280), Some(87596), None, Some(2428), None],
        "shell",
    );
}

#[test]
fn a_database_is_read_with_its_log_and_never_written() {
    let logs = Logs::new(&[]);
    let path = logs.path("opencode.db");
    std::fs::copy(recording("opencode.db"), &path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "journal_mode", "wal")
        .unwrap();
    connection
        .pragma_update(None, "wal_autocheckpoint", 0)
        .unwrap();
    connection
        .execute(
            "UPDATE message SET data = replace(data, '\"input\":1360', '\"input\":2360')",
            [],
        )
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let sessions = assize_sessions::open(&path).unwrap();
    assert_eq!(
        all_classes(&sessions)[0],
        Some(6620),
        "what is only in the log counts"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    drop(connection);
}

#[test]
fn sessions_of_opencode_with_a_parent_are_its_sub_agents() {
    let storage = |id: &str, parent: Value| {
        json!({"id": id, "projectID": "p", "directory": "/repo", "version": "1.0", "parentID": parent, "time": {"created": 1, "updated": 2}}).to_string()
    };
    let message = |id: &str, created: u64| {
        json!({"id": id, "role": "assistant", "modelID": "m", "providerID": "x", "cost": 0.5, "finish": "stop", "time": {"created": created, "completed": created + 5},
            "tokens": {"input": 10, "output": 3, "reasoning": 2, "cache": {"read": 7, "write": 1}}})
        .to_string()
    };
    let part = json!({"id": "prt_1", "type": "text", "text": "hello"}).to_string();
    let logs = Logs::new(&[
        (
            "storage/session/p/ses_a.json",
            &storage("ses_a", Value::Null),
        ),
        (
            "storage/session/p/ses_b.json",
            &storage("ses_b", json!("ses_a")),
        ),
        (
            "storage/message/ses_a/msg_1.json",
            &message("msg_1", 1_794_965_720_071),
        ),
        (
            "storage/message/ses_b/msg_2.json",
            &message("msg_2", 1_794_965_721_071),
        ),
        ("storage/part/msg_1/prt_1.json", &part),
    ]);
    let session = logs.session();
    assert_eq!(
        classes(&session.trace),
        [Some(20), Some(14), Some(2), Some(6), Some(4)]
    );
    let agents: Vec<Option<&str>> = session
        .trace
        .model_calls
        .iter()
        .map(|call| call.agent_id.as_deref())
        .collect();
    assert_eq!(agents, [None, Some("ses_b")]);
    assert_eq!(outline(&session.trace), ["turn 0", "text hello"]);
}

#[test]
fn older_sessions_of_goose_have_one_number_for_input_and_output() {
    let logs = Logs::new(&[]);
    let path = logs.path("sessions.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, working_dir TEXT, model_config_json TEXT, input_tokens INTEGER,
               accumulated_total_tokens INTEGER, accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER);
             CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
             INSERT INTO sessions VALUES ('s', '/repo', '{\"model_name\":\"m\"}', 5, 1100, 1000, 100);
             INSERT INTO messages VALUES (1, 's', 'user', '[{\"type\":\"text\",\"text\":\"Hi\"}]', 1794965752);
             INSERT INTO messages VALUES (2, 's', 'assistant', '[{\"type\":\"text\",\"text\":\"Hello\"}]', 1794965753);
             INSERT INTO messages VALUES (3, 's', 'assistant', 'not json', 1794965753);",
        )
        .unwrap();
    drop(connection);
    let session = assize_sessions::open(&path).unwrap().remove(0);
    assert_eq!(
        classes(&session.trace),
        [Some(1000), None, None, Some(100), None]
    );
    assert_eq!(session.model(), Some("m"));
    assert_eq!(session.flaws.broken_lines, 1);
}

fn gemini(records: &[Value]) -> Session {
    let head = json!({"sessionId": "s", "projectHash": "h", "startTime": "2026-11-15T19:19:50.925Z", "kind": "main"});
    let lines: Vec<String> = std::iter::once(&head)
        .chain(records)
        .map(|record| format!("{record}\n"))
        .collect();
    Logs::new(&[("session-1.jsonl", &lines.concat())]).session()
}

fn gemini_answer(id: &str, input: u64, cached: u64, total: u64) -> Value {
    json!({"id": id, "timestamp": "2026-11-15T19:19:51.633Z", "type": "gemini", "content": "x", "model": "gemini-2.5-pro",
        "tokens": {"input": input, "output": 10, "cached": cached, "thoughts": 2, "tool": 0, "total": total}})
}

#[test]
fn a_message_of_gemini_with_a_known_id_replaces_the_earlier_one() {
    let session = gemini(&[
        gemini_answer("a", 100, 40, 112),
        gemini_answer("a", 200, 40, 212),
    ]);
    assert_eq!(
        classes(&session.trace),
        [Some(160), Some(40), None, Some(10), Some(2)]
    );
}

#[test]
fn messages_that_were_taken_back_were_spent() {
    let rewind = json!({"$rewindTo": "b"});
    let session = gemini(&[
        gemini_answer("a", 100, 0, 112),
        gemini_answer("b", 50, 0, 62),
        rewind,
        gemini_answer("c", 10, 0, 22),
    ]);
    assert_eq!(classes(&session.trace)[0], Some(160));
    assert_eq!(session.trace.model_calls.len(), 3);
}

#[test]
fn cached_tokens_of_gemini_are_beside_the_input_where_the_total_says_so() {
    assert_eq!(
        classes(&gemini(&[gemini_answer("a", 100, 40, 152)]).trace)[0],
        Some(100)
    );
    assert_eq!(
        classes(&gemini(&[gemini_answer("a", 100, 40, 112)]).trace)[0],
        Some(60)
    );
}

#[test]
fn older_chats_of_gemini_are_one_document() {
    let document = json!({"sessionId": "s", "projectHash": "h", "startTime": "2026-11-15T19:19:50.925Z", "messages": [gemini_answer("a", 100, 40, 112)]});
    let session = Logs::new(&[("session-old.json", &document.to_string())]).session();
    assert_eq!(classes(&session.trace)[0], Some(60));
}

#[test]
fn our_own_traces_and_atif_come_back_as_they_are() {
    let trace = session("codex.jsonl").trace;
    let logs = Logs::new(&[("trace.json", &serde_json::to_string(&trace).unwrap())]);
    let own = logs.session();
    assert_eq!(own.trace, trace);
    assert_eq!(own.origin.agent, "assize");
    let atif = assize_formats::atif::write(&assize_formats::Session {
        trace: trace.clone(),
        ..assize_formats::Session::default()
    });
    let session = Logs::new(&[("t.json", &atif.to_string())]).session();
    assert_eq!(session.origin.agent, "atif");
    assert_eq!(classes(&session.trace), classes(&trace));
}

#[test]
fn a_directory_of_many_agents_is_read_by_content() {
    let logs = Logs::new(&[]);
    for name in [
        "claude-code.jsonl",
        "codex.jsonl",
        "gemini.jsonl",
        "qwen.jsonl",
        "pi.jsonl",
        "copilot.jsonl",
        "cline.messages.json",
        "opencode.db",
    ] {
        let text = std::fs::read(recording(name)).unwrap();
        // Names that some agents insist on; content decides all the same.
        let name = match name {
            "codex.jsonl" => "rollout-x.jsonl",
            "gemini.jsonl" => "session-x.jsonl",
            other => other,
        };
        logs.write(name, &text);
    }
    logs.write("notes.jsonl", b"{\"hello\":1}\n");
    logs.write("config.json", b"{\"a\":[1,2]}");
    let mut agents: Vec<String> = logs
        .open()
        .into_iter()
        .map(|session| session.origin.agent)
        .collect();
    agents.sort();
    assert_eq!(
        agents,
        [
            "claude-code",
            "cline",
            "codex",
            "copilot",
            "gemini",
            "opencode",
            "pi",
            "qwen"
        ]
    );
}

/// A session in opencode's older storage, with messages and the parts of each.
fn opencode_session(logs: &Logs, session: &Value, messages: &[(Value, Vec<Value>)]) {
    let id = session["id"].as_str().unwrap();
    let write = |name: String, value: &Value| logs.write(&name, value.to_string().as_bytes());
    write(format!("storage/session/p/{id}.json"), session);
    for (message, parts) in messages {
        let of_message = message["id"].as_str().unwrap();
        write(format!("storage/message/{id}/{of_message}.json"), message);
        for (number, part) in parts.iter().enumerate() {
            write(format!("storage/part/{of_message}/prt_{number}.json"), part);
        }
    }
}

fn opencode_head(id: &str, created: u64) -> Value {
    json!({"id": id, "projectID": "p", "directory": "/repo", "version": "1.0", "time": {"created": created}})
}

fn opencode_answer(id: &str, created: u64, input: u64) -> Value {
    json!({"id": id, "role": "assistant", "modelID": "m", "providerID": "x", "finish": "stop", "time": {"created": created, "completed": created + 5},
        "tokens": {"input": input, "output": 3, "reasoning": 2, "cache": {"read": 7, "write": 1}}})
}

#[test]
fn a_fork_of_opencode_does_not_count_what_it_copied() {
    const AT: u64 = 1_794_965_720_000;
    let logs = Logs::new(&[]);
    let first = opencode_answer("msg_1", AT + 10, 10);
    opencode_session(&logs, &opencode_head("ses_a", AT), &[(first, vec![])]);
    // The copy has an id of its own and is older than the session that it is in.
    let copy = opencode_answer("msg_2", AT + 10, 10);
    let own = opencode_answer("msg_3", AT + 600, 40);
    let fork = opencode_head("ses_b", AT + 500);
    opencode_session(&logs, &fork, &[(copy, vec![]), (own, vec![])]);
    // Nobody's copy, although it is the same: it is not older than its session.
    let same = opencode_answer("msg_4", AT + 10, 10);
    opencode_session(&logs, &opencode_head("ses_c", AT), &[(same, vec![])]);
    assert_eq!(all_classes(&logs.open())[0], Some(60));
    // Without the original, the copy is all there is.
    std::fs::remove_dir_all(logs.path("storage/message/ses_a")).unwrap();
    std::fs::remove_dir_all(logs.path("storage/message/ses_c")).unwrap();
    assert_eq!(all_classes(&logs.open())[0], Some(50));
}

#[test]
fn a_message_of_opencode_with_several_requests_has_the_sum_of_them() {
    let step = |input: u64| json!({"type": "step-finish", "tokens": {"input": input, "output": 3, "reasoning": 2, "cache": {"read": 7, "write": 1}}});
    let logs = Logs::new(&[]);
    let answer = opencode_answer("msg_1", 1_794_965_720_000, 20);
    let parts = vec![step(10), step(20)];
    opencode_session(&logs, &opencode_head("ses_a", 1), &[(answer, parts)]);
    assert_eq!(
        classes(&logs.session().trace),
        [Some(30), Some(14), Some(2), Some(6), Some(4)]
    );
}

#[test]
fn a_resumed_chat_of_gemini_keeps_the_counts_of_its_messages() {
    let without_counts = json!({"id": "a", "timestamp": "2026-11-15T20:00:00.000Z", "type": "gemini", "content": "x"});
    let session = gemini(&[
        gemini_answer("a", 100, 0, 112),
        gemini_answer("b", 50, 0, 62),
        // `b` is left out, as after a compression.
        json!({"$set": {"messages": [without_counts]}}),
        gemini_answer("c", 10, 0, 22),
    ]);
    assert_eq!(classes(&session.trace)[0], Some(160));
    assert_eq!(session.trace.model_calls.len(), 3);
}

/// Its calls were once counted in both.
#[test]
fn a_chat_of_gemini_that_was_loaded_from_a_file_does_not_count_what_it_copied() {
    let id = |number: u64| format!("48366890-77ce-43d8-9475-{number:012}");
    let asked = json!({"id": id(0), "timestamp": "2026-11-15T19:19:51.000Z", "type": "user", "content": [{"text": "Do it."}]});
    let answered = gemini_answer(&id(1), 100, 40, 112);
    let tool = json!([{"id": "t1", "name": "read_file", "args": {}, "status": "success"}]);
    let mut with_tool = answered.clone();
    with_tool["toolCalls"] = tool;
    let chat = |session: &str, more: &[Value]| {
        let head = json!({"sessionId": session, "projectHash": "h", "kind": "main"});
        let records = [head, asked.clone(), with_tool.clone()];
        let records = records.iter().chain(more);
        records
            .map(|record| format!("{record}\n"))
            .collect::<String>()
    };
    let mut again = gemini_answer(&id(2), 50, 0, 62);
    again["timestamp"] = json!("2026-11-15T20:00:00.000Z");
    let logs = Logs::new(&[("chats/session-1.jsonl", &chat("a", &[]))]);
    logs.write("chats/session-2.jsonl", chat("b", &[again]).as_bytes());
    let sessions = logs.open();
    let calls: Vec<usize> = sessions
        .iter()
        .map(|session| session.trace.model_calls.len())
        .collect();
    assert_eq!(calls, [1, 1]);
    let count = |of: fn(&Session) -> usize| sessions.iter().map(of).sum::<usize>();
    assert_eq!(count(|session| session.prompts.len()), 1);
    assert_eq!(count(|session| session.trace.tool_call_records().len()), 1);
}

#[test]
fn a_sub_agent_of_cline_belongs_to_the_session_that_started_it() {
    let document = |id: &str, agent: &str, parent: Value| {
        json!({"version": 1, "agent": agent, "sessionId": id, "origin": {"parentThreadId": parent}, "messages": [
            {"id": "msg_1", "role": "assistant", "content": [], "ts": 1_794_977_014_097_u64, "modelInfo": {"id": "m"},
             "metrics": {"inputTokens": 100, "outputTokens": 10, "cacheReadTokens": 40, "cacheWriteTokens": 0}}]})
        .to_string()
    };
    let logs = Logs::new(&[
        ("s/s.messages.json", &document("s", "lead", Value::Null)),
        (
            "s/a.messages.json",
            &document("s__a", "subagent", json!("s")),
        ),
    ]);
    let session = logs.session();
    assert_eq!(classes(&session.trace)[0], Some(120));
    let kinds: Vec<Option<&str>> = session
        .subagents
        .iter()
        .map(|agent| agent.kind.as_deref())
        .collect();
    assert_eq!(kinds, [Some("subagent")]);
}

/// The first writes of goose are in the write-ahead log alone; not even the tables are in the file.
/// As version 3.0.65 writes them after `/fork` and `/compact`.
#[test]
fn a_fork_of_cline_does_not_count_what_it_copied_and_a_compaction_is_seen() {
    let message = |id: &str, ts: u64| {
        json!({"id": id, "role": "assistant", "content": [], "ts": ts, "modelInfo": {"id": "m"},
            "metrics": {"inputTokens": 100, "outputTokens": 10, "cacheReadTokens": 40, "cacheWriteTokens": 0}})
    };
    let asked = json!({"id": "u1", "role": "user", "content": [{"type": "text", "text": "Go on."}], "ts": 1_795_031_581_000_u64});
    let document = |id: &str, messages: &[Value]| {
        json!({"version": 1, "agent": "lead", "sessionId": id, "origin": {"source": "cli"}, "messages": messages})
            .to_string()
    };
    let first = message("msg_a", 1_795_031_582_000);
    let in_fork = |id: &str, fork: &str, ts: u64| {
        document(fork, &[asked.clone(), first.clone(), message(id, ts)])
    };
    let fork_of = |original: &str, at: &str| {
        json!({"cwd": "/repo", "metadata": {"fork": {"forkedFromSessionId": original, "forkedAt": at}}})
            .to_string()
    };
    let compaction = json!({"version": 1, "conversation_id": "a", "messages": [
        {"role": "user", "content": [], "metadata": {"kind": "compaction_summary", "generatedAt": 1_795_031_583_000_u64}}]});
    let logs = Logs::new(&[
        (
            "a/a.messages.json",
            &document("a", &[asked.clone(), first.clone()]),
        ),
        ("a/a.compaction.json", &compaction.to_string()),
        (
            "b/b.messages.json",
            &in_fork("msg_b", "b", 1_795_031_612_000),
        ),
        ("b/b.json", &fork_of("a", "2026-11-18T19:53:30.000Z")),
        (
            "c/c.messages.json",
            &in_fork("msg_c", "c", 1_795_031_712_000),
        ),
        ("c/c.json", &fork_of("b", "2026-11-18T19:55:00.000Z")),
    ]);
    let sessions = logs.open();
    assert_eq!(sessions.len(), 3);
    assert_eq!(all_classes(&sessions)[0], Some(180), "three calls");
    let prompts: usize = sessions.iter().map(|session| session.prompts.len()).sum();
    assert_eq!(prompts, 1);
    assert_eq!(sessions[0].compactions.len(), 1);
    assert_eq!(sessions[1].origin.continued_from.as_deref(), Some("a"));
    std::fs::remove_dir_all(logs.path("a")).unwrap();
    let without_original = logs.open();
    assert_eq!(all_classes(&without_original)[0], Some(180), "copies once");
}

#[test]
fn a_database_whose_tables_are_only_in_its_log_is_recognized() {
    let logs = Logs::new(&[]);
    let path = logs.path("sessions.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "journal_mode", "wal")
        .unwrap();
    connection
        .pragma_update(None, "wal_autocheckpoint", 0)
        .unwrap();
    let usage =
        |input: u64| format!("{{\"usage\":{{\"inputTokens\":{input},\"outputTokens\":5}}}}");
    connection
        .execute_batch(&format!(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, working_dir TEXT, accumulated_total_tokens INTEGER);
             CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
             CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY, session_id TEXT, created_timestamp INTEGER, model TEXT, input_tokens INTEGER, output_tokens INTEGER,
               is_compaction INTEGER);
             INSERT INTO sessions VALUES ('s', '/repo', 9999);
             INSERT INTO messages VALUES (1, 'm1', 's', 'assistant', '[]', 1794965752, '{}');
             INSERT INTO messages VALUES (2, 'm2', 's', 'assistant', '[]', 1794965753, '{}');
             INSERT INTO usage_ledger VALUES (1, 's', 1794965752, 'm', 100, 5, 0);
             INSERT INTO usage_ledger VALUES (2, 's', 1794965753, 'm', 1000, 5, 1);
             INSERT INTO usage_ledger VALUES (3, 's', 1794965753, 'm', 200, 5, 0);",
            usage(100),
            usage(200)
        ))
        .unwrap();
    let session = assize_sessions::open(&path).unwrap().remove(0);
    // The summary of a compaction is in the ledger only.
    assert_eq!(classes(&session.trace)[0], Some(1300));
    assert_eq!(session.trace.model_calls.len(), 3);
    drop(connection);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_nothing_is_read_twice() {
    let text = std::fs::read(recording("claude-code.jsonl")).unwrap();
    let goose = std::fs::read(recording("goose.db")).unwrap();
    let logs = Logs::new(&[]);
    logs.write("elsewhere/one.jsonl", &text);
    logs.write("elsewhere/sessions.db", &goose);
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(logs.path(target), logs.path(name)).unwrap();
    };
    logs.write("place/.keep", b"");
    link("elsewhere", "place/linked");
    link("elsewhere", "place/again");
    link("place", "place/circle");
    let sessions = assize_sessions::open(&logs.path("place")).unwrap();
    assert_eq!(sessions.len(), 2);
    // Below the directory of both, the files are found with and without the links.
    assert_eq!(logs.open().len(), 2);
}

#[test]
fn the_index_sees_a_message_that_changed_beside_its_session() {
    const AT: u64 = 1_794_965_720_000;
    let logs = Logs::new(&[]);
    let index = logs.path("cache/index");
    let input = || {
        let mut index = assize_sessions::Index::open(&index);
        let paths = assize_sessions::find_below(&logs.path("storage"));
        let library = assize_sessions::Library::read(paths, &mut index, &|_| ());
        index.save().unwrap();
        let mut sum = 0;
        assize_sessions::Uses::of(&library).each(|_, occurrence| {
            if let assize_sessions::Occurrence::Call(call) = occurrence {
                sum += call.tokens.input.unwrap();
            }
        });
        sum
    };
    let session = opencode_head("ses_a", AT);
    opencode_session(
        &logs,
        &session,
        &[(opencode_answer("msg_1", AT, 10), vec![])],
    );
    assert_eq!([input(), input()], [10, 10]);
    let grown = opencode_answer("msg_1", AT, 12_345).to_string();
    logs.write("storage/message/ses_a/msg_1.json", grown.as_bytes());
    assert_eq!(input(), 12_345);
}

/// A real session of version 1.5, with prices in the settings of its model.
#[test]
fn newer_versions_of_pi_count_reasoning_apart_and_measure_their_tools() {
    let session = session("pi-1.5.jsonl");
    // As the books of the scripted LLM have it: 1330 + 1360 + 1390 + 1420, and so on.
    let expected = [Some(5500), Some(82110), Some(0), Some(1640), Some(190)];
    assert_eq!(classes(&session.trace), expected);
    let costs = session.trace.model_calls.iter();
    let cost: f64 = costs.map(|call| call.cost_usd.unwrap().value()).sum();
    assert!((cost - 0.035_438_75).abs() < 1e-9, "{cost}");
    let tools = session.trace.tool_call_records();
    assert_eq!(tools[0].duration_ms.unwrap().value(), 27.0);
}

#[test]
fn sub_agents_of_gemini_are_in_a_directory_of_their_session() {
    let head = |id: &str, kind: &str| json!({"sessionId": id, "projectHash": "p", "startTime": "2026-11-02T09:00:00.000Z", "kind": kind});
    let mut call = gemini_answer("a", 100, 40, 112);
    call["toolCalls"] = json!([{"id": "t", "name": "invoke_agent", "args": {"agent_name": "generalist"}, "status": "success",
        "timestamp": "2026-11-02T09:00:09.000Z", "agentId": "child"}]);
    let lines = |records: &[Value]| {
        records
            .iter()
            .map(|record| format!("{record}\n"))
            .collect::<String>()
    };
    let logs = Logs::new(&[
        (
            "chats/session-2026-11-02T09-00-parent12.jsonl",
            &lines(&[head("parent12-and-more", "main"), call]),
        ),
        (
            "chats/parent12-and-more/child.jsonl",
            &lines(&[head("child", "subagent"), gemini_answer("b", 30, 0, 42)]),
        ),
    ]);
    let session = logs.session();
    assert_eq!(classes(&session.trace)[0], Some(90));
    let child = &session.subagents[0];
    assert_eq!(
        (child.kind.as_deref(), child.started_by.as_deref()),
        (Some("generalist"), Some("t"))
    );
    // The log alone brings its sub-agents along.
    let alone = logs.path("chats/session-2026-11-02T09-00-parent12.jsonl");
    let alone = assize_sessions::open(&alone).unwrap().remove(0);
    assert_eq!(classes(&alone.trace)[0], Some(90));
}

#[test]
fn sub_agents_and_summaries_of_qwen_count_once() {
    let line = |number: u64, parent: u64, session: &str, of: Value| {
        let mut line = json!({"uuid": format!("{session}-{number}"), "parentUuid": format!("{session}-{parent}"), "sessionId": "s",
            "timestamp": format!("2026-11-02T09:00:{number:02}.000Z"), "cwd": "/repo"});
        line.as_object_mut()
            .unwrap()
            .extend(of.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let request = |input: u64, of: Value| {
        let mut event = json!({"event.name": "qwen-code.api_response", "model": "m", "duration_ms": 7, "input_token_count": input,
            "output_token_count": 5, "cached_content_token_count": 0, "thoughts_token_count": 0, "total_token_count": input + 5});
        event
            .as_object_mut()
            .unwrap()
            .extend(of.as_object().unwrap().clone());
        json!({"type": "system", "subtype": "ui_telemetry", "systemPayload": {"uiEvent": event}})
    };
    let usage = |input: u64| {
        json!({"promptTokenCount": input, "candidatesTokenCount": 5, "thoughtsTokenCount": 0, "cachedContentTokenCount": 0,
        "totalTokenCount": input + 5})
    };
    let answer = |usage: Value, parts: Value| json!({"type": "assistant", "model": "m", "message": {"role": "model", "parts": parts}, "usageMetadata": usage});
    let side = |mut of: Value| {
        let mark = json!({"isSidechain": true, "agentId": "helper-call_1", "agentName": "helper"});
        of.as_object_mut()
            .unwrap()
            .extend(mark.as_object().unwrap().clone());
        of.as_object_mut().unwrap().remove("model");
        of
    };
    let chat = [
        line(1, 0, "c", request(100, json!({}))),
        line(
            2,
            1,
            "c",
            answer(usage(100), json!([{"text": "I delegate."}])),
        ),
        line(
            3,
            2,
            "c",
            request(1000, json!({"subagent_id": "helper-call_1"})),
        ),
        // A summary, which no answer shows.
        line(4, 3, "c", request(10, json!({}))),
        line(
            5,
            4,
            "c",
            json!({"type": "system", "subtype": "chat_compression", "systemPayload": {}}),
        ),
    ]
    .concat();
    let tool = json!([{"functionCall": {"id": "t", "name": "run_shell_command", "args": {}}}]);
    let mut without_usage = side(answer(Value::Null, tool));
    without_usage
        .as_object_mut()
        .unwrap()
        .remove("usageMetadata");
    let helper = [
        line(1, 0, "h", side(answer(usage(1000), json!([])))),
        line(2, 1, "h", without_usage),
    ]
    .concat();
    let logs = Logs::new(&[
        ("project/chats/s.jsonl", &chat),
        ("project/subagents/s/agent-helper-call_1.jsonl", &helper),
    ]);
    let session = logs.session();
    assert_eq!(session.trace.model_calls.len(), 3);
    assert_eq!(classes(&session.trace)[0], Some(1110));
    assert!(
        session
            .trace
            .model_calls
            .iter()
            .all(|call| call.model == "m")
    );
    assert_eq!(session.subagents[0].kind.as_deref(), Some("helper"));
    assert_eq!(session.compactions.len(), 1);
}

/// A reader copies the database while its agent writes on: it must see some moment of it, never a mixture.
#[test]
fn a_database_that_is_being_written_is_read_as_it_was_at_one_moment() {
    let logs = Logs::new(&[]);
    let path = logs.path("sessions.db");
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "journal_mode", "wal")
        .unwrap();
    // Small, so that pages move from the log into the file all the time.
    connection
        .pragma_update(None, "wal_autocheckpoint", 4)
        .unwrap();
    connection
        .execute_batch(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, working_dir TEXT, accumulated_total_tokens INTEGER);
             CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
             INSERT INTO sessions VALUES ('s', '/repo', NULL);",
        )
        .unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Two answers at a time, so that half of a transaction would show.
            let mut number = 0;
            while !is_over.load(order) && number < 20_000 {
                let transaction = connection.transaction().unwrap();
                for _ in 0..2 {
                    number += 1;
                    let values = (number, format!("m{number}"), "x".repeat(300));
                    transaction
                        .execute(
                            "INSERT INTO messages VALUES (?1, ?2, 's', 'assistant', json_array(json_object('type', 'text', 'text', ?3)), 1794965752,
                             '{\"usage\":{\"inputTokens\":7,\"outputTokens\":5}}')",
                            values,
                        )
                        .unwrap();
                }
                transaction.commit().unwrap();
                // Bursts, as agents write.
                if number % 20 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            }
        });
        let mut last = 0;
        for _ in 0..30 {
            let sessions = assize_sessions::open(&path).unwrap();
            let calls = sessions
                .first()
                .map_or(0, |session| session.trace.model_calls.len());
            assert_eq!(calls % 2, 0, "half of a transaction");
            assert!(calls >= last, "{calls} after {last}");
            if let Some(session) = sessions.first() {
                assert_eq!(classes(&session.trace)[0], Some(7 * calls as u64));
            }
            last = calls;
        }
        is_over.store(true, order);
        assert!(last > 0);
    });
}

/// They were once taken for a database, which could not be read.
#[test]
fn lines_with_the_words_of_a_session_of_opencode_are_none() {
    let session = json!({"id": "ses_1", "directory": "/w", "projectID": "p", "time": {}});
    let exchange = json!({"method": "GET", "path": "/session", "response": session});
    let logs = Logs::new(&[("exchanges.jsonl", &format!("{exchange}\n{exchange}\n"))]);
    let error = assize_sessions::open(&logs.path("exchanges.jsonl")).unwrap_err();
    assert!(
        matches!(error, assize_sessions::ReadError::Unknown { .. }),
        "{error}"
    );
}

#[test]
fn compressed_logs_of_any_agent_are_found_below_a_directory() {
    let logs = Logs::new(&[]);
    let names = ["claude-code.jsonl", "codex.jsonl", "pi.jsonl", "qwen.jsonl"];
    for name in names {
        let text = std::fs::read(recording(name)).unwrap();
        let packed = zstd::encode_all(&text[..], 3).unwrap();
        logs.write(&format!("{name}.zst"), &packed);
    }
    assert_eq!(logs.open().len(), names.len());
}
