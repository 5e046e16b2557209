//! Sessions of a suite behind the capture proxy.

use crate::llm::{AGENT, Llm};
use crate::sandbox::Sandbox;
use serde_json::{Value, json};

/// Trials of an agent that reports nothing, four at once.
fn sandbox(capture: &str) -> Sandbox {
    let suite = format!(
        "provider: {{ uses: command, command: [python3, '{{suite}}/agent.py'] }}\n\
         modes: {{ plain: {{}}, other: {{}} }}\n\
         scenarios: {{ paths: [s.yaml] }}\n\
         execution: {{ repetitions: 4, concurrency: 4 }}\n{capture}\n"
    );
    let scenario = "id: s\nprompt: Do it\nchecks:\n  - output: { contains: done }\n  - tool: { called: Bash }\n";
    Sandbox::new(&[
        ("assize.yaml", &suite),
        ("s.yaml", scenario),
        ("agent.py", AGENT),
    ])
}

fn upstream(llm: &Llm) -> String {
    format!("capture: {{ upstream: {{ anthropic: '{}' }} }}", llm.url)
}

#[test]
fn an_agent_that_reports_nothing_gets_its_numbers_from_the_wire() {
    let llm = Llm::new();
    let sandbox = sandbox(&upstream(&llm));
    let rows = sandbox.run(&[]);
    assert_eq!((rows.len(), llm.asked()), (8, 24));
    for row in &rows {
        assert_eq!(row["outcome"], "pass", "{row:#}");
        assert_eq!(
            row["tokens"]["total"], 24583,
            "each trial has its own calls"
        );
        assert_eq!(row["toolCalls"]["total"], 1);
        assert_eq!(row["agentTurns"], 2);
        assert_eq!(row["costSource"], "computed");
        assert_eq!(row["replayed"], Value::Null);
        assert!(
            row["extensions"]["latency_model_ms"].as_f64().unwrap() > 0.0,
            "{row:#}"
        );
    }
    let trace = sandbox.trace(0);
    assert_eq!(trace["modelCalls"].as_array().unwrap().len(), 3);
    assert!(!trace.to_string().contains(concat!("sk-", "secret")));
}

#[test]
fn a_failing_api_teaches_nothing_whatever_the_agent_says() {
    let llm = Llm::failing(529);
    let sandbox = sandbox(&upstream(&llm));
    sandbox.write(
        "agent.py",
        &AGENT.replace(
            "ask([{\"role\"",
            "sys.excepthook = lambda *e: os._exit(0)\nask([{\"role\"",
        ),
    );
    let rows = sandbox.run(&["-n", "1"]);
    for row in &rows {
        assert_eq!(
            (&row["outcome"], &row["errorCode"]),
            (&json!("void"), &json!("llm_529")),
            "{row:#}"
        );
        assert!(
            row["error"].as_str().unwrap().contains("not today"),
            "{row:#}"
        );
    }
}

#[test]
fn what_must_be_captured_and_is_not_teaches_nothing() {
    let sandbox = sandbox("capture: { proxy: on }");
    sandbox.write("agent.py", "print('done')");
    let rows = sandbox.run(&["-n", "1"]);
    assert_eq!(rows[0]["errorCode"], "nothing_captured", "{:#}", rows[0]);
    let sandbox = self::sandbox("capture: { proxy: off }");
    sandbox.write(
        "agent.py",
        "import os; print('done', os.environ.get('ANTHROPIC_BASE_URL'))",
    );
    let rows = sandbox.run(&["-n", "1"]);
    // Its tools were not observed: the check of them cannot be judged.
    assert_eq!(rows[0]["outcome"], "void", "{:#}", rows[0]);
    assert_eq!(rows[0]["errorCode"], "scorer_error", "{:#}", rows[0]);
    assert!(sandbox.trace(0).to_string().contains("done None"));
}

#[test]
fn a_cassette_makes_trials_that_are_marked_and_kept_apart() {
    let llm = Llm::new();
    let cassette = |mode: &str| {
        let upstream = upstream(&llm);
        let upstream = upstream.trim_end_matches(" }");
        format!("{upstream} }}, cassette: {{ file: c.jsonl, mode: {mode} }} }}")
    };
    let sandbox = sandbox(&cassette("record"));
    sandbox.run(&[]);
    let live = sandbox.last_run();
    let asked = llm.asked();
    let suite = sandbox
        .read("assize.yaml")
        .replace("mode: record", "mode: replay");
    sandbox.write("assize.yaml", &suite);
    let rows = sandbox.run(&[]);
    assert_eq!(llm.asked(), asked, "nobody was asked");
    for row in &rows {
        assert_eq!(
            (&row["outcome"], &row["replayed"]),
            (&json!("pass"), &json!(true)),
            "{row:#}"
        );
        assert_eq!(row["tokens"]["total"], 24583);
    }
    let compared = sandbox.done(&["compare", "last"]);
    assert!(
        compared.contains("Replayed: these numbers come from recordings"),
        "{compared}"
    );
    let both = ["compare", live.to_str().unwrap(), "last"];
    let said = sandbox.done(&both);
    assert!(said.contains("kept apart and never compared"), "{said}");
    let said = sandbox.done(&[&both[..], &["--mixed"]].concat());
    assert!(
        said.contains("compared with each other, as asked"),
        "{said}"
    );
    assert!(said.contains("[replayed]"), "{said}");
}

#[test]
fn what_cannot_be_captured_is_said_before_a_run() {
    for (capture, expected) in [
        ("capture: { proxy: maybe }", "maybe"),
        (
            "capture: { upstream: { anthropic: here } }",
            "found `here` as the base URL of anthropic",
        ),
        ("capture: { upstream: { opnai: x } }", "opnai"),
        (
            "capture: { cassette: { file: c.jsonl } }",
            "cannot play the cassette",
        ),
        (
            "capture: { cassette: { file: c.jsonl, mode: rewind } }",
            "rewind",
        ),
    ] {
        let said = sandbox(capture).refused(&["check"]);
        assert!(
            said.contains(expected) && said.contains("assize.yaml:"),
            "{said}"
        );
    }
}
