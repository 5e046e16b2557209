//! Files that were made to break readers, and files that are broken: bounded, counted, never a panic.

use crate::support::{Logs, all_classes, recording};
use assize_sessions::{Index, Library, Uses, find_below, fuzzing};
use proptest::prelude::*;
use std::path::Path;

fn recordings() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension != "db"));
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

#[test]
fn a_line_that_is_too_long_is_counted_and_the_rest_is_read() {
    let mut text = std::fs::read(recording("claude-code.jsonl")).unwrap();
    let length = 40 << 20;
    text.extend_from_slice(b"{\"type\":\"user\",\"message\":{\"content\":\"");
    text.resize(text.len() + length, b'x');
    text.extend_from_slice(b"\"}}\n");
    let last = br#"{"type":"user","uuid":"u-last","sessionId":"9563ac81-8855-4350-9784-854bb91cebbc","timestamp":"2026-11-15T20:00:00.000Z","message":{"role":"user","content":"after"}}"#;
    text.extend_from_slice(last);
    text.push(b'\n');
    let logs = Logs::new(&[]);
    logs.write("s.jsonl", &text);
    let session = logs.session();
    assert_eq!(session.flaws.too_long, 1);
    assert_eq!(session.prompts.last().unwrap().text, "after");
}

#[test]
fn a_log_is_recognized_behind_a_first_line_of_any_length() {
    let mut text = b"{\"type\":\"user\",\"message\":{\"content\":\"".to_vec();
    text.resize(text.len() + (40 << 20), b'x');
    text.extend_from_slice(b"\"}}\n");
    text.extend_from_slice(&std::fs::read(recording("claude-code.jsonl")).unwrap());
    let logs = Logs::new(&[]);
    logs.write("s.jsonl", &text);
    let session = logs.session();
    assert_eq!(session.flaws.too_long, 1);
    let alone = assize_sessions::open(&recording("claude-code.jsonl")).unwrap();
    assert_eq!(all_classes(&[session]), all_classes(&alone));
}

#[test]
fn a_damaged_first_line_is_counted_and_the_rest_is_read() {
    for (name, path) in [
        ("pi.jsonl", "pi.jsonl"),
        ("copilot.jsonl", "a/events.jsonl"),
        ("gemini.jsonl", "session-a.jsonl"),
        ("qwen.jsonl", "qwen.jsonl"),
        ("claude-code.jsonl", "claude.jsonl"),
        ("codex.jsonl", "rollout-a.jsonl"),
    ] {
        let whole = std::fs::read_to_string(recording(name)).unwrap();
        let (first, rest) = whole.split_once('\n').unwrap();
        let text = format!("{}\n{rest}", &first[..first.len() / 2]);
        let session = Logs::new(&[(path, &text)]).session();
        assert_eq!(session.flaws.broken_lines, 1, "{name}");
        let expected = assize_sessions::open(&recording(name)).unwrap();
        assert_eq!(all_classes(&[session]), all_classes(&expected), "{name}");
    }
}

/// Programs can give a file its old size and time.
#[test]
fn a_log_with_other_content_of_the_same_size_and_time_is_read_again() {
    let text = std::fs::read_to_string(recording("claude-code.jsonl")).unwrap();
    let logs = Logs::new(&[("cache/keep", ""), ("s.jsonl", &text)]);
    let (log, index) = (logs.path("s.jsonl"), logs.path("cache/sessions.index"));
    let read = || {
        let mut opened = Index::open(&index);
        let library = Library::read(vec![log.clone()], &mut opened, &|_| ());
        opened.save().unwrap();
        let mut output = 0;
        Uses::of(&library).each(|_, occurrence| {
            if let assize_sessions::Occurrence::Call(call) = occurrence {
                output += call.tokens.output.unwrap_or(0);
            }
        });
        output
    };
    let before = read();
    let modified = std::fs::metadata(&log).unwrap().modified().unwrap();
    let changed = text.replace("\"output_tokens\": 96", "\"output_tokens\": 97");
    assert!(changed.len() == text.len() && changed != text);
    // The clock of some file systems stands still for some milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(30));
    std::fs::write(&log, changed).unwrap();
    let file = std::fs::File::options().write(true).open(&log).unwrap();
    file.set_modified(modified).unwrap();
    drop(file);
    assert_ne!(read(), before);
}

#[test]
fn a_database_that_is_none_is_an_error_and_not_a_panic() {
    let logs = Logs::new(&[]);
    let mut text = b"SQLite format 3\0".to_vec();
    text.extend_from_slice(&b"`part` accumulated_total_tokens ".repeat(200));
    logs.write("opencode.db", &text);
    assert!(assize_sessions::open(&logs.path("opencode.db")).is_err());
    assert_eq!(logs.open().len(), 0);
}

#[test]
fn deep_nesting_and_wrong_types_everywhere_are_survived() {
    let deep = format!(
        "{{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"a\",\"message\":{}{}}}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let wrong = r#"{"type":7,"uuid":[],"sessionId":{},"timestamp":true,"message":"x","usage":[1]}"#;
    let text = format!(
        "{}{deep}{wrong}\n",
        std::fs::read_to_string(recording("claude-code.jsonl")).unwrap()
    );
    let session = Logs::new(&[("s.jsonl", &text)]).session();
    assert_eq!(
        (session.flaws.broken_lines, session.flaws.wrong_types),
        (1, 1)
    );
}

#[test]
fn the_index_gives_what_reading_gives_and_survives_damage() {
    let logs = Logs::new(&[]);
    for name in ["claude-code.jsonl", "codex.jsonl", "opencode.db"] {
        let name_there = if name == "codex.jsonl" {
            "rollout-a.jsonl"
        } else {
            name
        };
        logs.write(name_there, &std::fs::read(recording(name)).unwrap());
    }
    let index = logs.path("cache/sessions.index");
    let sums = |library: &Library| {
        let mut sums = Vec::new();
        Uses::of(library)
            .each(|context, occurrence| sums.push(format!("{context:?} {occurrence:?}")));
        sums
    };
    let read = || {
        let mut opened = Index::open(&index);
        let library = Library::read(
            find_below(logs.path("claude-code.jsonl").parent().unwrap()),
            &mut opened,
            &|_| (),
        );
        opened.save().unwrap();
        sums(&library)
    };
    let first = read();
    assert!(!first.is_empty());
    let size = std::fs::metadata(&index).unwrap().len();
    assert_eq!(read(), first, "from the index");
    for damage in [0, 5, size / 2, size - 1] {
        let mut bytes = std::fs::read(&index).unwrap();
        bytes[damage as usize] ^= 0x5a;
        std::fs::write(&index, &bytes[..bytes.len() - (damage % 3) as usize]).unwrap();
        let again = read();
        assert_eq!(again.len(), first.len(), "after damage at {damage}");
    }
    std::fs::remove_file(&index).unwrap();
    assert_eq!(read(), first);
    let line = std::fs::read_to_string(recording("claude-code.jsonl"))
        .unwrap()
        .lines()
        .nth(9)
        .unwrap()
        .replace("\"msg_", "\"msg_new")
        .replace("\"uuid\": \"", "\"uuid\": \"n");
    let mut text = std::fs::read_to_string(logs.path("claude-code.jsonl")).unwrap();
    text.push_str(&line);
    text.push('\n');
    logs.write("claude-code.jsonl", text.as_bytes());
    assert_ne!(read(), first, "a log that grew is read again");
    assert!(all_classes(&logs.open())[3].is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzzing::logs(&bytes);
    }

    #[test]
    fn recordings_with_changed_bytes_have_an_answer(which in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>()) {
        let recordings = recordings();
        let mut bytes = which.get(&recordings).clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        fuzzing::logs(&bytes);
    }

    #[test]
    fn lines_in_any_order_and_number_have_an_answer(which in any::<prop::sample::Index>(), order in prop::collection::vec(any::<prop::sample::Index>(), 0..30)) {
        let recordings = recordings();
        let bytes = which.get(&recordings);
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let mut text = Vec::new();
        for place in order {
            text.extend_from_slice(lines[place.index(lines.len())]);
            text.push(b'\n');
        }
        fuzzing::logs(&text);
    }
}
