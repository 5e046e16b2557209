//! Killed, interrupted, out of space: finished trials stay, and resume does exactly the rest.

use crate::support::{Outcome, Suite, assize};
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn start(suite: &Suite, arguments: &[&str]) -> Child {
    assize(suite.path())
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn has_rows(suite: &Suite) -> bool {
    std::fs::read_dir(suite.path().join(".assize/runs")).is_ok_and(|runs| {
        runs.flatten().any(|run| {
            std::fs::metadata(run.path().join("rows.jsonl")).is_ok_and(|rows| rows.len() > 0)
        })
    })
}

#[test]
fn kill_9_at_fifty_moments_loses_nothing_and_repeats_nothing() {
    let suite = Suite::of(
        "provider: { uses: simulated, latency_ms: 5, tool_calls: 3 }\n\
         modes: { a: {}, b: {} }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n\
         analyzers: [efficiency]\n\
         execution: { repetitions: 500, warmup: false }\n",
    );
    let mut first = start(&suite, &["run", "-q"]);
    wait_until("the first row", || has_rows(&suite));
    first.kill().unwrap();
    first.wait().unwrap();
    let mut random = 88_172_645_463_325_252_u64;
    for _ in 0..49 {
        // Any old sequence of moments will do; this one is the same every time.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut child = start(&suite, &["run", "-q", "--resume", "last"]);
        std::thread::sleep(Duration::from_millis(random % 60));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = suite.rows().len();
    assert!(before < 2000, "the run was over before it could be killed");
    suite.done(&["run", "-q", "--resume", "last", "-j", "64"]);
    let rows = suite.rows();
    let cells: BTreeSet<String> = rows
        .iter()
        .map(|row| format!("{} {} {}", row["scenarioId"], row["mode"], row["iteration"]))
        .collect();
    assert_eq!((rows.len(), cells.len()), (2000, 2000));
    for name in ["traces/index.jsonl", "analysis.jsonl"] {
        let text = std::fs::read_to_string(suite.run_directory().join(name)).unwrap();
        assert_eq!(text.lines().count(), 2000, "{name}");
    }
    for position in [0, 1, 999, 1999] {
        let shown = suite.done(&["show", &format!("last/{position}"), "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["trace"]["sessionId"], shown["row"]["sessionId"]);
    }
}

fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

const SLOW: &str = "\
provider: { uses: simulated, latency_ms: { min: 1, max: 20000 } }
modes: { a: {}, b: {} }
scenarios: { paths: ['scenarios/*.yaml'] }
execution: { repetitions: 25, warmup: false, concurrency: 20 }
";

#[test]
fn the_first_interrupt_stops_in_good_order_and_says_how_to_go_on() {
    let suite = Suite::of(SLOW);
    let child = assize(suite.path())
        .args(["run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("a row", || has_rows(&suite));
    signal(&child, "INT");
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert!(
        outcome.stderr.contains("trials are open; to resume:"),
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("--resume"), "{outcome:?}");
    let rows = suite.rows().len();
    assert!(
        outcome
            .stderr
            .contains(&format!("{} of 100 trials are open", 100 - rows)),
        "{rows}: {outcome:?}"
    );
    let listed = suite.done(&["runs"]);
    assert!(
        listed.contains(&format!("{rows}/100")) && listed.contains("incomplete"),
        "{listed}"
    );
}

#[test]
fn the_second_interrupt_stops_at_once() {
    // A provider that never ends its sessions would hold a polite stop up; two signals in a row must not wait.
    let suite = Suite::of(SLOW);
    let mut child = start(&suite, &["run"]);
    wait_until("a row", || has_rows(&suite));
    let deadline = Instant::now() + Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        signal_quietly(&child, "TERM");
    }
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(130 | 5)), "{code:?}");
}

fn signal_quietly(child: &Child, name: &str) {
    let _ = std::process::Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
}

#[test]
fn a_full_disk_is_said_and_finished_trials_are_kept() {
    let suite = Suite::of(
        "provider: { uses: simulated, tool_calls: 20 }\n\
         modes: { a: {}, b: {} }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n\
         execution: { repetitions: 200, warmup: false }\n\
         output: { store_traces: false }\n",
    );
    // No file may grow beyond 64 blocks of 512 bytes (dash) or 1024 bytes (bash).
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} run",
        env!("CARGO_BIN_EXE_assize")
    );
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", &script])
        .current_dir(suite.path())
        .env("NO_COLOR", "1");
    let outcome = Outcome::from(command.output().unwrap());
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("error: cannot write") && outcome.stderr.contains("rows.jsonl"),
        "{outcome:?}"
    );

    suite.done(&["run", "-q", "--resume", "last"]);
    assert_eq!(suite.rows().len(), 800);
}

#[test]
fn a_directory_that_cannot_be_written_is_said() {
    let suite = Suite::new();
    suite.write("file", "not a directory");
    let outcome = suite.assize(&["run", "--output", "file/runs"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("error: cannot create `file/runs`"),
        "{outcome:?}"
    );
}

#[test]
fn resume_refuses_a_suite_that_has_changed_and_names_the_change() {
    let suite = Suite::new();
    suite.assize(&["run", "-n", "1"]);
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: do another thing\ntags: [small]\n",
    );
    let outcome = suite.assize(&["run", "--resume", "last"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome
            .stderr
            .contains("`scenarios.one.prompt` was \"do one thing\", is \"do another thing\""),
        "{outcome:?}"
    );
    assert!(
        outcome
            .stderr
            .contains("hint: undo the change, or start a new run"),
        "{outcome:?}"
    );
}

#[test]
fn void_trials_are_run_again_on_demand() {
    let suite = Suite::of(
        "modes: { recorded: { provider: { uses: replay, session: 'sessions/{scenario}.json' } } }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n\
         execution: { repetitions: 2, warmup: false }\n",
    );
    let session = r#"{"sessionId":"r","events":[],"turns":[],"summary":{"totalTurns":0,"totalToolCalls":0,"totalTokens":{}}}"#;
    suite.write("sessions/one.json", session);
    let stdout = suite.done(&["run"]);
    assert!(stdout.contains("2 of 2 (100 %), 2 void"), "{stdout}");
    suite.write("sessions/two.json", session);
    suite.done(&["run", "--resume", "last", "--only", "void"]);
    let rows = suite.rows();
    assert_eq!(rows.len(), 4);
    assert!(
        rows.iter()
            .all(|row| row["outcome"] == "pass" && row["replayed"] == true),
        "{rows:?}"
    );
}
