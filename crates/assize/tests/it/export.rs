//! `assize export`, and sessions of other tools in `assize analyze`.

use crate::support::Suite;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

fn suite() -> Suite {
    let suite = Suite::new();
    suite.done(&["run", "-q", "--skip-warmup"]);
    suite
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_trial_becomes_a_trajectory_that_analyze_reads_back() {
    let suite = suite();
    let document = suite.done(&["export", "atif", "last/0"]);
    let trajectory = json(&document);
    assert_eq!(trajectory["schema_version"], "ATIF-v1.7");
    assert_eq!(trajectory["steps"][0]["source"], "user");
    let shown = json(&suite.done(&["show", "last/0", "--json"]));
    suite.write("own.json", shown["trace"].to_string());
    suite.write("one.atif.json", &document);
    let findings = |file: &str| {
        let mut found = json(&suite.done(&["analyze", file, "--json"]));
        found["source"] = Value::Null;
        found
    };
    assert_eq!(findings("one.atif.json"), findings("own.json"));
    // And once more, from the file.
    let again = json(&suite.done(&["export", "atif", "one.atif.json"]));
    assert_eq!(again["steps"], trajectory["steps"]);
}

#[test]
fn all_trials_of_a_run_are_lines_or_files() {
    let suite = suite();
    let lines = suite.done(&["export", "atif", "last"]);
    assert_eq!(lines.lines().count(), 12);
    suite.done(&[
        "export",
        "atif",
        "last",
        "--out",
        "trajectories",
        "--mode",
        "plain",
        "--scenario",
        "one",
    ]);
    let files: Vec<String> = std::fs::read_dir(suite.path().join("trajectories"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files.len(), 3);
    assert!(
        files
            .iter()
            .all(|name| name.ends_with("-one-plain.atif.json")),
        "{files:?}"
    );
}

#[test]
fn a_trajectory_of_another_tool_is_analyzed_with_what_was_left_out() {
    let suite = Suite::new();
    suite.write(
        "harbor.json",
        r#"{"schema_version": "ATIF-v1.4", "session_id": "x", "agent": {"name": "a", "version": "1"}, "steps": [
            {"step_id": 1, "source": "user", "message": "Do it."},
            {"step_id": 2, "source": "agent", "message": "Old.", "is_copied_context": true},
            {"step_id": 3, "source": "agent", "message": "Done.", "metrics": {"prompt_tokens": 10, "completion_tokens": 5}}]}"#,
    );
    let outcome = suite.assize(&["analyze", "harbor.json", "--json"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(
        outcome
            .stderr
            .contains("1 steps were copied from an earlier session"),
        "{outcome:#?}"
    );
    suite.write(
        "wrong.json",
        r#"{"schema_version": "ATIF-v3.0", "steps": []}"#,
    );
    let outcome = suite.assize(&["analyze", "wrong.json"]);
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("found the version `ATIF-v3.0`"),
        "{outcome:#?}"
    );
}

#[test]
fn timelines_and_stacks_are_written_for_a_run() {
    let suite = suite();
    let chrome = json(&suite.done(&["export", "chrome", "last"]));
    let processes = chrome["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["name"] == "process_name");
    assert_eq!(processes.count(), 12);
    let speedscope = json(&suite.done(&["export", "speedscope", "last/0"]));
    assert!(!speedscope["profiles"].as_array().unwrap().is_empty());
    let folded = suite.done(&["export", "folded", "last"]);
    assert!(folded.contains("one;"), "{folded}");
    let tokens: u64 = folded
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    let rows: u64 = suite
        .rows()
        .iter()
        .map(|row| row["tokens"]["total"].as_u64().unwrap())
        .sum();
    assert_eq!(tokens, rows, "every token of the run is in one stack");
    for by in ["time", "cost"] {
        let outcome = suite.assize(&["export", "folded", "last", "--by", by]);
        assert!(
            outcome.code == Some(0) || outcome.stderr.contains("nothing to fold"),
            "{outcome:#?}"
        );
    }
    let difference = suite.done(&["export", "folded", "last", "--diff", "plain", "other"]);
    assert!(
        difference
            .lines()
            .all(|line| line.rsplitn(3, ' ').count() == 3),
        "{difference}"
    );
}

#[test]
fn a_difference_with_a_mode_of_which_nothing_is_known_is_refused() {
    let suite = Suite::of(
        "modes: { plain: { provider: { uses: simulated, latency_ms: 0 } }, \
         silent: { provider: { uses: command, command: [echo, hi] } } }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n",
    );
    suite.done(&["run", "-q", "--yes", "--skip-warmup"]);
    for sides in [["plain", "silent"], ["silent", "plain"]] {
        let arguments = ["export", "folded", "last", "--diff", sides[0], sides[1]];
        let outcome = suite.assize(&arguments);
        assert_eq!(outcome.code, Some(1), "{outcome:#?}");
        assert_eq!(outcome.stdout, "");
        assert!(
            outcome
                .stderr
                .contains("the number is unknown for every call of the mode `silent`"),
            "{outcome:#?}"
        );
        // Its time is known.
        let by_time = suite.done(&[&arguments[..], &["--by", "time"]].concat());
        assert!(!by_time.is_empty());
    }
}

#[test]
fn wrong_flags_and_names_are_refused_with_a_hint() {
    let suite = suite();
    for (arguments, message) in [
        (&["export", "atiff"][..], "unknown format `atiff`"),
        (
            &["export", "chrome", "--content"],
            "`--content` has no meaning for the format `chrome`",
        ),
        (
            &["export", "folded", "--diff", "plain", "othr"],
            "no session is of the mode `othr`",
        ),
        (
            &["export", "otlp", "--endpoint", "nowhere"],
            "`nowhere` is no address of a collector",
        ),
    ] {
        let outcome = suite.assize(arguments);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains(message), "{outcome:#?}");
        assert!(outcome.stderr.contains("hint:"), "{outcome:#?}");
    }
}

/// Answers every request with a status and gives back what came.
fn collector(status: &'static str) -> (String, std::thread::JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        let (head, mut body) = loop {
            let length = stream.read(&mut buffer).unwrap();
            received.extend(&buffer[..length]);
            if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8(received[..end].to_vec()).unwrap();
                break (head, received[end + 4..].to_vec());
            }
        };
        let length = head
            .lines()
            .find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")
                    .map(str::to_owned)
            })
            .map_or(0, |length| length.parse().unwrap());
        while body.len() < length {
            let read = stream.read(&mut buffer).unwrap();
            body.extend(&buffer[..read]);
        }
        write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        (head, body)
    });
    (address, served)
}

#[test]
fn spans_are_sent_as_protobuf_to_a_collector() {
    let suite = suite();
    let (address, served) = collector("200 OK");
    let header = "x-langfuse-ingestion-version: 4";
    let outcome = suite.assize(&[
        "export",
        "otlp",
        "last/0",
        "--endpoint",
        &address,
        "--header",
        header,
    ]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("spans of 1 sessions sent to"),
        "{outcome:#?}"
    );
    let (head, body) = served.join().unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    assert!(
        head.to_lowercase()
            .contains("content-type: application/x-protobuf"),
        "{head}"
    );
    assert!(head.to_lowercase().contains(header), "{head}");
    assert_eq!(body[0], 0x0a, "one field of messages");
    assert!(String::from_utf8_lossy(&body).contains("gen_ai.evaluation.result"));

    let (address, served) = collector("401 Unauthorized");
    let outcome = suite.assize(&["export", "otlp", "last/0", "--endpoint", &address]);
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("answered with status 401")
            && outcome.stderr.contains("it wants a key"),
        "{outcome:#?}"
    );
    served.join().unwrap();
}

#[test]
fn a_file_of_spans_has_one_session_per_line() {
    let suite = suite();
    suite.done(&["export", "otlp", "last", "--out", "run.otlp.jsonl"]);
    let text = std::fs::read_to_string(suite.path().join("run.otlp.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 12);
    let traces: std::collections::BTreeSet<String> = text
        .lines()
        .map(|line| {
            json(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"].to_string()
        })
        .collect();
    assert_eq!(traces.len(), 12, "every trial is a trace of its own");
}

#[test]
fn keys_are_removed_when_asked_for() {
    let suite = Suite::new();
    let key = format!("sk-ant-api03-{}", "aB3dE5gH7jK9mN1pQ3sT5vW7".repeat(3));
    let trace = format!(
        r#"{{"sessionId": "s", "turns": [], "summary": {{"totalToolCalls": 0, "totalTokens": {{}}}}, "events": [
            {{"type": "text_output", "content": "the key is {key}", "tokenCount": null}}]}}"#
    );
    suite.write("trace.json", trace);
    assert!(suite.done(&["export", "atif", "trace.json"]).contains(&key));
    let clean = suite.done(&["export", "atif", "trace.json", "--redact"]);
    assert!(
        !clean.contains(&key) && clean.contains("the key is [redacted"),
        "{clean}"
    );
}

/// docs/exporting.md lists the same losses as the program.
#[test]
fn the_document_lists_what_every_format_loses() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exporting.md");
    let document = std::fs::read_to_string(path).unwrap();
    let suite = Suite::new();
    for line in suite.done(&["export", "--json"]).lines() {
        let format = json(line);
        let name = format["name"].as_str().unwrap();
        assert!(document.contains(&format!("## {name}\n")), "{name}");
        for loss in format["losses"].as_array().unwrap() {
            let loss = loss.as_str().unwrap();
            assert!(document.contains(&format!("- {loss}\n")), "{loss}");
        }
    }
}

/// Two sessions of an agent, one of which has no times at all.
#[cfg(feature = "sessions")]
fn write_logs(suite: &Suite) {
    let line = |session: &str, at: Option<&str>| {
        let usage = serde_json::json!({"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 20, "output_tokens": 7});
        let line = serde_json::json!({"type": "assistant", "uuid": format!("u-{session}"), "sessionId": session, "timestamp": at, "requestId": session, "isSidechain": false,
            "message": {"id": format!("m-{session}"), "model": "claude-sonnet-4-5", "role": "assistant", "stop_reason": "end_turn", "usage": usage,
                "content": [{"type": "text", "text": "Done."}]}});
        format!("{line}\n")
    };
    suite.write(
        "logs/p/one.jsonl",
        line("one", Some("2026-11-02T09:00:00.000Z")),
    );
    suite.write(
        "logs/p/two.jsonl",
        line("two", Some("2026-11-02T10:00:00.000Z")),
    );
    suite.write("logs/p/three.jsonl", line("three", None));
}

#[cfg(feature = "sessions")]
#[test]
fn all_logs_of_a_directory_are_exported_and_those_without_times_are_named() {
    let suite = Suite::new();
    write_logs(&suite);
    let lines = suite.done(&["export", "atif", "logs"]);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let chrome = json(&suite.done(&["export", "chrome", "logs"]));
    let events = chrome["traceEvents"].as_array().unwrap();
    let named = |event: &&Value| event["name"] == "process_name";
    assert_eq!(events.iter().filter(named).count(), 2);
    let scope = json(&suite.done(&["export", "speedscope", "logs"]));
    assert_eq!(scope["profiles"].as_array().unwrap().len(), 2);
    assert!(!scope["shared"]["frames"].as_array().unwrap().is_empty());
    assert_eq!(
        suite.done(&["export", "folded", "logs"]).lines().count(),
        9,
        "input, cache read and output of each"
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_is_written_to_and_not_replaced() {
    let suite = suite();
    let pipe = suite.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    suite.done(&["export", "chrome", "last", "--out", "pipe"]);
    assert!(json(&reader.join().unwrap())["traceEvents"].is_array());
    assert!(!std::fs::metadata(&pipe).unwrap().is_file());
    // A file that was there stays when an export fails.
    suite.write("kept.json", "kept");
    suite.write("empty.json", r#"{"sessionId":"s","events":[]}"#);
    let _ = suite.assize(&["export", "chrome", "empty.json", "--out", "kept.json"]);
    let text = std::fs::read_to_string(suite.path().join("kept.json")).unwrap();
    assert_eq!(text, "kept");
}
