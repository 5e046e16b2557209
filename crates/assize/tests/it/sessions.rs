//! `assize sessions`, and logs of agents as sources of `analyze` and `report`.

use crate::support::assize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// A machine with logs where agents keep them.
struct Machine(TempDir);

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../assize-sessions/tests/logs")
        .join(name)
}

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (name, place) in [
            (
                "claude-code.jsonl",
                ".claude/projects/-tmp-work/9563ac81-8855-4350-9784-854bb91cebbc.jsonl",
            ),
            (
                "codex.jsonl",
                ".codex/sessions/2026/11/15/rollout-2026-11-15T19-17-55-01a1e0a5.jsonl",
            ),
            ("opencode.db", ".local/share/opencode/opencode.db"),
            ("gemini.jsonl", ".gemini/tmp/work/chats/session-1.jsonl"),
            ("qwen.jsonl", ".qwen/projects/-tmp-work/chats/a53d.jsonl"),
            (
                "cline.messages.json",
                ".cline/data/sessions/1/1.messages.json",
            ),
            ("goose.db", ".local/share/goose/sessions/sessions.db"),
            ("pi.jsonl", ".pi/agent/sessions/--tmp-work--/1.jsonl"),
            ("copilot.jsonl", ".copilot/session-state/a09f/events.jsonl"),
        ] {
            let path = machine.path(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::copy(recording(name), path).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = assize(self.0.path());
        for name in [
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "XDG_DATA_HOME",
            "XDG_CONFIG_HOME",
            "GEMINI_CLI_HOME",
            "COPILOT_HOME",
            "XDG_CACHE_HOME",
        ] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.0.path())
            .args(arguments)
            .output()
            .unwrap()
    }

    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap() + &said
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

const KEYS: [&str; 10] = [
    "day", "week", "project", "agent", "model", "subagent", "skill", "mcp", "session", "tool",
];

#[test]
fn the_logs_of_a_machine_are_found_and_rows_come_to_the_total_whatever_they_are_grouped_by() {
    let machine = Machine::new();
    let by_agent = machine.json(&["sessions", "--by", "agent", "--json"]);
    let agents: Vec<&str> = by_agent["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["agent"].as_str().unwrap())
        .collect();
    assert_eq!(
        agents,
        [
            "claude-code",
            "cline",
            "codex",
            "copilot",
            "gemini",
            "goose",
            "opencode",
            "pi",
            "qwen"
        ]
    );
    let total = &by_agent["total"];
    assert_eq!(total["sessions"], 9);
    assert_eq!(total["calls"], 22);
    let claude = &by_agent["rows"][0];
    assert_eq!(claude["tokens"]["input"], 201);
    assert_eq!(claude["tokens"]["cacheRead"], 21163);
    assert_eq!(claude["tokens"]["output"], 137);
    assert_eq!(claude["costSource"], "computed");
    // 201 × 3 + 21163 × 0.3 + 2934 × 3.75 + 137 × 15, in millionths of a dollar.
    assert_eq!(claude["costUsd"], 0.0200094);
    for by in KEYS {
        let account = machine.json(&["sessions", "--by", by, "--json"]);
        assert_eq!(&account["total"], total, "by {by}");
        let rows = account["rows"].as_array().unwrap();
        for field in [
            "calls",
            "toolCalls",
            "prompts",
            "errors",
            "workMs",
            "unpricedCalls",
        ] {
            let sum: u64 = rows.iter().map(|row| row[field].as_u64().unwrap()).sum();
            assert_eq!(sum, total[field].as_u64().unwrap(), "{field} by {by}");
        }
        for class in [
            "input",
            "output",
            "reasoning",
            "cacheRead",
            "cacheWrite",
            "total",
        ] {
            let known = |row: &Value| {
                row["tokens"][class]
                    .as_u64()
                    .or(row["tokensAtLeast"][class].as_u64())
                    .unwrap_or(0)
            };
            let sum: u64 = rows.iter().map(known).sum();
            assert_eq!(sum, known(total), "{class} by {by}");
        }
    }
}

#[test]
fn the_second_call_needs_no_log_and_says_the_same() {
    let machine = Machine::new();
    let first = machine.json(&["sessions", "--json"]);
    assert!(machine.path(".cache/assize/sessions.index").exists());
    assert_eq!(machine.json(&["sessions", "--json"]), first);
    assert_eq!(machine.json(&["sessions", "--json", "--no-index"]), first);
    let log = machine.path(".claude/projects/-tmp-work/9563ac81-8855-4350-9784-854bb91cebbc.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(
        &log,
        text.replace("\"output_tokens\": 41", "\"output_tokens\": 141"),
    )
    .unwrap();
    let changed = machine.json(&["sessions", "--by", "agent", "--json"]);
    assert_eq!(changed["rows"][0]["tokens"]["output"], 237);
}

#[test]
fn the_table_names_its_prices_and_what_it_cannot_know() {
    let machine = Machine::new();
    let shown = machine.done(&["sessions"]);
    for words in [
        "2026-11-15",
        "/tmp/work",
        "claude-sonnet-4-5",
        "cache read",
        "total",
        "genai-prices",
        "no price for",
        "of it as the agents report it",
    ] {
        assert!(shown.contains(words), "no `{words}` in\n{shown}");
    }
}

/// The total once had nothing in a column as soon as one agent did not report it.
#[test]
fn classes_that_only_some_agents_report_are_lower_bounds_in_the_total() {
    let machine = Machine::new();
    let shown = machine.done(&["sessions", "--by", "agent"]);
    let total = shown.lines().find(|line| line.contains("total")).unwrap();
    assert!(total.contains("≥ 2934"), "cache writes: {shown}");
    assert_eq!(total.matches('≥').count(), 3, "reasoning and cost: {shown}");
    let total = &machine.json(&["sessions", "--json"])["total"];
    assert_eq!(total["tokens"]["cacheWrite"], Value::Null);
    assert_eq!(total["tokensAtLeast"]["cacheWrite"], 2934);
    assert_eq!(total["tokensAtLeast"]["total"], total["tokens"]["total"]);
    let claude = machine.json(&["sessions", "--agent", "claude-code", "--json"]);
    assert_eq!(claude["total"]["tokensAtLeast"], Value::Null);
}

#[test]
fn filters_leave_out_what_is_not_meant() {
    let machine = Machine::new();
    let count = |arguments: &[&str]| {
        machine.json(&[&["sessions", "--json"], arguments].concat())["total"]["sessions"].clone()
    };
    assert_eq!(count(&["--agent", "codex"]), 1);
    assert_eq!(count(&["--agent", "codex", "--agent", "pi"]), 2);
    assert_eq!(
        count(&["--project", "/tmp/work", "--agent", "claude-code"]),
        1
    );
    assert_eq!(count(&["--project", "elsewhere"]), 0);
    assert_eq!(count(&["--since", "2026-11-16"]), 2);
    assert_eq!(count(&["--until", "2026-11-16"]), 7);
    let named = machine.path(".codex");
    assert_eq!(count(&[named.to_str().unwrap()]), 1);
}

#[test]
fn a_filter_that_leaves_nothing_is_named() {
    let machine = Machine::new();
    let shown = machine.done(&["sessions", "--project", "nowhere", "--until", "2020-01-01"]);
    let words = "no session matches `--project nowhere` and `--until 2020-01-01`";
    assert!(shown.contains(words), "{shown}");
}

#[test]
fn mistakes_are_answered_with_a_way_out() {
    let machine = Machine::new();
    for (arguments, words) in [
        (
            &["sessions", "--agent", "codx"][..],
            "did you mean `codex`?",
        ),
        (&["sessions", "--since", "soon"], "write `30d`"),
        (&["sessions", "nowhere"], "nowhere"),
        (&["sessions", "--by", "mood"], "possible values"),
    ] {
        let output = machine.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(said.contains(words), "no `{words}` in\n{said}");
    }
    let empty = tempfile::tempdir().unwrap();
    let output = assize(empty.path())
        .env("HOME", empty.path())
        .arg("sessions")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("hint: name a log or a directory"), "{said}");
}

#[test]
fn broken_lines_are_counted_and_shown() {
    let machine = Machine::new();
    let log = machine.path(".claude/projects/-tmp-work/9563ac81-8855-4350-9784-854bb91cebbc.jsonl");
    let mut text = std::fs::read_to_string(&log).unwrap();
    text.push_str("{\"type\":\"assistant\",\n{\"type\":\"user\",\"uuid\":7}\n{\"half");
    std::fs::write(&log, text).unwrap();
    let account = machine.json(&["sessions", "--agent", "claude-code", "--json"]);
    assert_eq!(account["flaws"]["brokenLines"], 1);
    assert_eq!(account["flaws"]["wrongTypes"], 1);
    assert_eq!(
        account["flaws"]["unfinishedLines"], 0,
        "the log is being written"
    );
    let old = std::fs::File::options().append(true).open(&log).unwrap();
    old.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600))
        .unwrap();
    let shown = machine.done(&["sessions", "--agent", "claude-code"]);
    assert!(shown.contains("3 of 14 lines could not be used"), "{shown}");
    assert!(shown.contains("1 half written"), "{shown}");
}

/// Bytes of a log that was lost when a machine lost its power.
const LOST: [u8; 512] = [0; 512];

#[test]
fn a_file_without_a_session_says_what_is_wrong_with_it() {
    let machine = Machine(tempfile::tempdir().unwrap());
    let mut long = b"{\"type\":\"assistant\",\"x\":\"".to_vec();
    long.resize(33 << 20, b'a');
    for (name, text, words) in [
        (
            "long.jsonl",
            &long[..],
            "it is one line of more than 32 MB without an end",
        ),
        ("empty.jsonl", b"", "it is empty"),
        ("lost.jsonl", &LOST, "it is not JSON"),
        ("half.jsonl", b"{\"type\":\"user\",\"uu", "it breaks off"),
        ("other.jsonl", b"{\"a\":1}\n", "no agent that is known here"),
    ] {
        std::fs::write(machine.path(name), text).unwrap();
        for arguments in [
            &["sessions", name][..],
            &["sessions", name, "--json"],
            &["analyze", name],
            &["export", "atif", name],
            &["init", "suite", "--from-session", name],
        ] {
            let output = machine.run(arguments);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success(), "{arguments:?}");
            let is_named = said.contains(words) && said.contains(name);
            assert!(is_named, "no `{words}` of {arguments:?} in\n{said}");
        }
    }
    let output = machine.run(&["sessions", "."]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("there is no session log in `.`") && said.contains("long.jsonl"),
        "{said}"
    );
    let output = machine.run(&["report", ".", "--out", "r"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no session log in `.`"), "{said}");
}

/// It was once waited for, or read in part.
#[cfg(unix)]
#[test]
fn a_pipe_is_no_log() {
    let machine = Machine::new();
    let made = std::process::Command::new("mkfifo")
        .arg(machine.path("pipe.jsonl"))
        .status();
    assert!(made.unwrap().success());
    for command in ["sessions", "analyze"] {
        let output = machine.run(&[command, "pipe.jsonl"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains("it is no regular file"),
            "{said}"
        );
    }
}

#[test]
fn a_file_that_is_missing_is_not_taken_for_a_run() {
    let machine = Machine(tempfile::tempdir().unwrap());
    for arguments in [
        &["analyze", "nowhere.jsonl"][..],
        &["report", "nowhere.jsonl"],
        &["export", "atif", "nowhere.jsonl"],
    ] {
        let output = machine.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("there is no file `nowhere.jsonl`"), "{said}");
    }
}

#[test]
fn a_damaged_log_beside_others_is_named_and_other_files_are_not() {
    let machine = Machine::new();
    let projects = ".claude/projects/-tmp-work";
    std::fs::write(machine.path(projects).join("lost.jsonl"), LOST).unwrap();
    std::fs::write(machine.path(projects).join("other.jsonl"), "{\"a\":1}\n").unwrap();
    std::fs::write(machine.path(projects).join("empty.jsonl"), "").unwrap();
    let account = machine.json(&["sessions", "--json"]);
    assert_eq!(account["total"]["sessions"], 9);
    let unreadable = account["unreadable"].as_array().unwrap();
    assert_eq!(unreadable.len(), 1, "{unreadable:?}");
    let message = unreadable[0]["error"].as_str().unwrap();
    assert!(
        message.contains("lost.jsonl") && message.ends_with("it is not JSON"),
        "{message}"
    );
    let shown = machine.done(&["analyze", projects]);
    assert!(shown.contains("lost.jsonl"), "{shown}");
}

/// Each of them was once an error.
#[test]
fn documents_beside_logs_are_no_unreadable_sessions() {
    let machine = Machine::new();
    std::fs::write(machine.path(".claude/settings.json"), "{}").unwrap();
    let shown = machine.done(&["analyze", ".claude"]);
    assert!(
        shown.contains("JSON files beside the logs that are no sessions: 1"),
        "{shown}"
    );
}

#[test]
fn analyze_explains_logs_with_all_analyzers() {
    let machine = Machine::new();
    let claude = machine.path(".claude");
    let shown = machine.done(&["analyze", claude.to_str().unwrap(), "--timeline"]);
    for words in [
        "tokens",
        "waste",
        "0 reads repeated",
        "1 tool calls",
        "timeline",
        "turn 0",
    ] {
        assert!(shown.contains(words), "no `{words}` in\n{shown}");
    }
    let lines = machine.done(&["analyze", machine.0.path().to_str().unwrap(), "--json"]);
    let bundles: Vec<Value> = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert_eq!(bundles.len(), 9, "{lines}");
    assert!(
        bundles
            .iter()
            .all(|bundle| bundle["results"].as_object().unwrap().len() == 10)
    );
}

#[test]
fn secrets_are_removed_when_asked() {
    let machine = Machine::new();
    let log = machine.path(".claude/projects/-tmp-work/9563ac81-8855-4350-9784-854bb91cebbc.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let secret = "sk-ant-api03-0123456789abcdefghij";
    std::fs::write(
        &log,
        text.replace("echo hi > out.txt", &format!("echo {secret} > out.txt")),
    )
    .unwrap();
    let path = log.to_str().unwrap();
    assert!(
        machine
            .done(&["analyze", path, "--timeline"])
            .contains(secret)
    );
    let redacted = machine.done(&["analyze", path, "--timeline", "--redact"]);
    assert!(
        !redacted.contains(secret) && redacted.contains("[redacted]"),
        "{redacted}"
    );
    machine.done(&["report", path, "--redact", "--out", "clean"]);
    let page = std::fs::read_to_string(machine.path("clean/report.html")).unwrap();
    assert!(!page.contains(secret));
}

#[test]
fn secrets_that_only_their_name_shows_are_removed_from_everything_that_is_written() {
    let machine = Machine::new();
    let log = machine.path(".claude/projects/-tmp-work/9563ac81-8855-4350-9784-854bb91cebbc.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let asked = "Create a file out.txt";
    assert!(text.contains(asked));
    let secret = "hunter2hunter2";
    let text = text.replace(
        asked,
        &format!("With password={secret} {}", "create a file"),
    );
    std::fs::write(&log, text).unwrap();
    let path = log.to_str().unwrap();
    assert!(machine.done(&["export", "atif", path]).contains(secret));
    for arguments in [
        &["export", "atif", path, "--redact"][..],
        &["export", "otlp", path, "--redact", "--content"],
    ] {
        let written = machine.done(arguments);
        assert!(!written.contains(secret), "{arguments:?}: {written}");
    }
    machine.done(&["init", "suite", "--from-session", path]);
    let scenarios = std::fs::read_dir(machine.path("suite/scenarios")).unwrap();
    let scenario = scenarios.flatten().next().unwrap().path();
    let scenario = std::fs::read_to_string(scenario).unwrap();
    assert!(
        !scenario.contains(secret) && scenario.contains("password=[redacted]"),
        "{scenario}"
    );
}

#[test]
fn a_report_over_logs_compares_groups_and_says_that_they_were_not_randomised() {
    let machine = Machine::new();
    let all = machine.0.path().to_str().unwrap().to_owned();
    let shown = machine.done(&["report", &all, "--by", "agent", "--out", "by-agent"]);
    assert!(shown.contains("not randomised"), "{shown}");
    let summary: Value =
        serde_json::from_slice(&std::fs::read(machine.path("by-agent/data/summary.json")).unwrap())
            .unwrap();
    assert_eq!(summary["cautions"][0]["code"], "not-randomised");
    let modes = summary["modes"].as_object().unwrap();
    for mode in modes.values() {
        assert_eq!(
            mode["success"]["rate"],
            Value::Null,
            "nobody judged it: {mode:#}"
        );
        assert_eq!(mode["success"]["passed"], 0);
        assert_eq!(mode["costPerSuccess"], Value::Null);
    }
    let comparisons = summary["comparisons"].as_array().unwrap();
    assert!(
        comparisons.iter().all(|pair| pair["metric"] != "success"),
        "{comparisons:#?}"
    );
    let words = std::fs::read_to_string(machine.path("by-agent/report.md")).unwrap();
    assert!(words.contains("not randomised") && words.contains("success is unknown"));
    assert!(
        !words.contains("100 %") && !shown.contains("100 %"),
        "{words}"
    );
    let page = std::fs::read_to_string(machine.path("by-agent/report.html")).unwrap();
    assert!(page.contains("claude-code") && page.contains("not randomised"));
    assert!(
        page.contains("I'll write the file first."),
        "the page has the traces"
    );
    for by in ["week", "model", "project"] {
        machine.done(&["report", &all, "--by", by, "--out", by]);
        assert!(machine.path(by).join("report.md").exists());
    }
}
