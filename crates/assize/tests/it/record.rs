//! `assize record` and `assize proxy`, with an agent that knows nothing but its base URL.

use crate::llm::{AGENT, Llm};
use crate::sandbox::{Sandbox, await_true, words};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn sandbox() -> Sandbox {
    Sandbox::new(&[("agent.py", AGENT)])
}

fn record(sandbox: &Sandbox, llm: &Llm, flags: &[&str], command: &[&str]) -> Command {
    let mut recorded = sandbox.assize(&[&["record"], flags, &["--"], command].concat());
    recorded.env("ANTHROPIC_BASE_URL", &llm.url);
    recorded
}

const PYTHON: [&str; 2] = ["python3", "agent.py"];

#[test]
fn a_profile_has_every_number_and_leaves_a_trace() {
    let (sandbox, llm) = (sandbox(), Llm::new());
    let output = record(&sandbox, &llm, &["--out", "t.json"], &PYTHON)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(
        output.stdout, b"All done.\n",
        "what the command prints stays as it is"
    );
    let profile = String::from_utf8(output.stderr).unwrap();
    for line in [
        "python3 agent.py ended with exit code 0 after ",
        "calls        3, 1 of them beside the task; 2 turns, 0 retries",
        "tokens       24,583: 343 input, 21,163 cache read, 2,934 cache write, 143 output",
        "cache        87 % of the input",
        "cost         $0.021",
        "tools        Bash 1",
        "errors       none",
        "claude-sonnet-4-5 (side)",
    ] {
        assert!(profile.contains(line), "{line}\n{profile}");
    }
    let (parts, whole) = (
        time_parts(&profile),
        milliseconds_after(&profile, " after "),
    );
    assert!(
        (parts - whole).abs() <= 0.02 * whole + 3.0,
        "{parts} of {whole}\n{profile}"
    );
    let explained = sandbox.done(&["analyze", "t.json"]);
    assert!(explained.contains("tool-pattern"), "{explained}");
    let trace = sandbox.read("t.json");
    assert!(!trace.contains(concat!("sk-", "secret")), "{trace}");
}

/// The sum of the parts on the line about time.
fn time_parts(profile: &str) -> f64 {
    let line = profile
        .lines()
        .find(|line| line.trim().starts_with("time "));
    let parts = line.unwrap().split(", ");
    parts
        .map(|part| milliseconds_after(&format!(" {part}"), " "))
        .sum()
}

/// The last duration on the line after these words.
fn milliseconds_after(text: &str, words: &str) -> f64 {
    let (_, rest) = text.split_once(words).unwrap();
    let words: Vec<&str> = rest.lines().next().unwrap().split(' ').collect();
    let [.., number, unit] = &words[..] else {
        panic!("no duration in {text}");
    };
    let number: f64 = number.parse().unwrap();
    match *unit {
        "ms" => number,
        "s" => number * 1e3,
        other => panic!("{other} in {text}"),
    }
}

#[test]
fn json_is_one_object_on_stdout() {
    let (sandbox, llm) = (sandbox(), Llm::new());
    let output = record(&sandbox, &llm, &["--json"], &PYTHON)
        .env("FAIL", "7")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", words(&output));
    let profile: Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys: Vec<&String> = profile.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "command",
            "exit",
            "wallMs",
            "tokens",
            "tokensAtLeast",
            "cost",
            "costSource",
            "modelCalls",
            "toolCalls",
            "turns",
            "text",
            "trace"
        ]
    );
    assert_eq!(profile["command"], json!(PYTHON));
    assert_eq!(profile["exit"], 7);
    assert_eq!(profile["tokens"]["total"], 24583);
    assert_eq!(profile["costSource"], "computed");
    assert_eq!(profile["modelCalls"].as_array().unwrap().len(), 3);
    assert_eq!(profile["modelCalls"][0]["side"], true);
    assert_eq!(profile["toolCalls"][0]["input"], json!({"command": "ls"}));
    assert_eq!(profile["toolCalls"][0]["output"], "a.txt [redacted-1]");
    assert_eq!(
        (&profile["turns"], &profile["text"]),
        (&json!(2), &json!("All done."))
    );
    let trace: Value =
        serde_json::from_str(&sandbox.read(profile["trace"].as_str().unwrap())).unwrap();
    assert_eq!(trace["modelCalls"], profile["modelCalls"]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("All done."),
        "the command's output goes to stderr"
    );
}

#[test]
fn a_command_that_does_not_use_the_proxy_is_told_so() {
    let (sandbox, llm) = (sandbox(), Llm::new());
    let output = record(&sandbox, &llm, &[], &["sh", "-c", "cat; kill -TERM $$"]);
    let output = { output }.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", words(&output));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("nothing came through the proxy") && said.contains("hint: "),
        "{said}"
    );
}

#[test]
fn the_address_can_stand_in_the_command() {
    let (sandbox, llm) = (sandbox(), Llm::new());
    let script = "ANTHROPIC_BASE_URL=$0 exec python3 agent.py";
    let output = record(
        &sandbox,
        &llm,
        &["--json"],
        &["sh", "-c", script, "{anthropic_url}"],
    )
    .output()
    .unwrap();
    let profile: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(profile["tokens"]["total"], 24583, "{profile}");
}

#[test]
fn an_upstream_with_tls_is_trusted_by_its_certificate_only() {
    let (sandbox, llm) = (sandbox(), Llm::with_tls());
    sandbox.write("ca.pem", llm.certificate.as_ref().unwrap());
    let json = |command: &mut Command| -> Value {
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let mut trusted = record(&sandbox, &llm, &["--json"], &PYTHON);
    let profile = json(trusted.env("SSL_CERT_FILE", sandbox.path("ca.pem")));
    assert_eq!(profile["tokens"]["total"], 24583, "{profile}");

    let profile = json(&mut record(&sandbox, &llm, &["--json"], &PYTHON));
    assert_eq!(profile["modelCalls"][0]["ending"], "no_answer", "{profile}");
    let trace = sandbox.read(profile["trace"].as_str().unwrap());
    assert!(trace.contains("certificate"), "{trace}");
    assert_eq!(llm.asked(), 3);
}

#[test]
fn a_cassette_answers_instead_of_the_api() {
    let (sandbox, llm) = (sandbox(), Llm::new());
    let live = record(
        &sandbox,
        &llm,
        &["--cassette", "c.jsonl", "--json"],
        &PYTHON,
    )
    .output()
    .unwrap();
    assert!(live.status.success(), "{}", words(&live));
    assert!(!sandbox.read("c.jsonl").contains(concat!("sk-", "secret")));
    let gone = Llm::new();
    let replayed = record(&sandbox, &gone, &["--replay", "c.jsonl", "--json"], &PYTHON)
        .output()
        .unwrap();
    assert!(replayed.status.success(), "{}", words(&replayed));
    let [live, replayed] =
        [live, replayed].map(|output| serde_json::from_slice::<Value>(&output.stdout).unwrap());
    for key in ["tokens", "cost", "turns", "text"] {
        assert_eq!(live[key], replayed[key], "{key}");
    }
    assert_eq!(gone.asked(), 0);
}

#[test]
fn wrong_flags_are_refused() {
    let sandbox = sandbox();
    for (flags, expected) in [
        (["--upstream", "openai"], "expected an API and its base URL"),
        (["--upstream", "opnai=http://x"], "did you mean `openai`"),
        (
            ["--upstream", "openai=x"],
            "found `x` as the base URL of openai",
        ),
    ] {
        let said = sandbox.refused(&[&["record"], &flags[..], &["--", "true"]].concat());
        assert!(said.contains(expected), "{said}");
    }
    let output = sandbox
        .assize(&["record", "--", "no-such-program"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
}

#[test]
fn the_proxy_alone_tells_each_call_and_sums_up() {
    let (sandbox, llm) = (sandbox(), Llm::new());
    let mut proxy = sandbox.assize(&["proxy", "--json", "--out", "t.json"]);
    let mut proxy = proxy
        .env("ANTHROPIC_BASE_URL", &llm.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(proxy.stderr.take().unwrap()).lines();
    let url = said.by_ref().find_map(|line| {
        let line = line.unwrap();
        line.trim()
            .strip_prefix("export ANTHROPIC_BASE_URL=")
            .map(str::to_owned)
    });
    let mut agent = Command::new("python3");
    agent
        .arg(sandbox.path("agent.py"))
        .env("ANTHROPIC_BASE_URL", url.unwrap());
    assert!(agent.output().unwrap().status.success());
    let mut lines = BufReader::new(proxy.stdout.take().unwrap()).lines();
    let calls: Vec<Value> = lines
        .by_ref()
        .take(3)
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    assert_eq!(
        (&calls[1]["status"], &calls[1]["tokens"]["output"]),
        (&json!(200), &json!(96))
    );
    kill(Pid::from_raw(proxy.id() as i32), Signal::SIGINT).unwrap();
    assert!(proxy.wait().unwrap().success());
    let rest: Vec<String> = said.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line.contains("24,583")), "{rest:#?}");
    assert!(sandbox.read("t.json").contains("modelCalls"));
}

#[test]
fn ctrl_c_ends_the_command_and_still_shows_what_passed() {
    let (sandbox, llm) = (sandbox(), Llm::new());
    let script = "python3 agent.py; touch ready; exec sleep 1000";
    let mut recording = record(&sandbox, &llm, &["--json"], &["sh", "-c", script]);
    let recording = recording
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_true("the agent", || sandbox.path("ready").exists());
    kill(Pid::from_raw(recording.id() as i32), Signal::SIGINT).unwrap();
    let output = recording.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let profile: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&profile["exit"], &profile["tokens"]["total"]),
        (&json!(130), &json!(24583))
    );
}
