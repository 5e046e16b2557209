//! `assize try`: the closing lines, what is exported, what is saved.

use crate::sandbox::Sandbox;
use serde_json::Value;

/// Far enough apart for a machine that is busy with something else.
const SLOW: &str = "sh -c 'sleep 0.5; echo done'";
const FAST: &str = "sh -c 'sleep 0.01; echo done'";

fn sandbox() -> Sandbox {
    Sandbox::new(&[("project/f", "one")])
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn the_answer_is_which_is_faster_and_by_how_much() {
    let sandbox = sandbox();
    let said = sandbox.done(&[
        "try", "-m", SLOW, "-m", FAST, "--prompt", "hi", "--check", "true", "-n", "6",
    ]);
    has(
        &said,
        &[
            "6 of 6 (100 %)",
            &format!("against {SLOW}"),
            &format!("✓ {FAST}: "),
            " % less time on exactly this task (",
            "report/report.html",
        ],
    );
    assert_eq!(sandbox.rows().len(), 12);
    has(&sandbox.done(&["show", "last/0"]), &["pass  prompt", SLOW]);
    assert!(sandbox.left_workspaces().is_empty());
}

#[test]
fn checks_judge_every_run_in_a_copy_of_the_workspace() {
    let sandbox = sandbox();
    let said = sandbox.done(&[
        "try",
        "-m",
        "cp f {prompt}",
        "-m",
        "true",
        "--prompt",
        "out",
        "--workspace",
        "project",
        "--check",
        "cmp f out",
        "-n",
        "10",
        "--warmup",
        "1",
    ]);
    has(
        &said,
        &[
            "10 of 10 (100 %)",
            "0 of 10 (0 %)",
            "✗ true: success lower on exactly this task: 0 % against 100 %",
        ],
    );
    assert!(!sandbox.path("project/out").exists());
}

#[test]
fn exports_have_the_form_that_people_know() {
    let sandbox = sandbox();
    let arguments = [
        "try",
        "-m",
        "cat",
        "-m",
        "cat",
        "--prompt",
        "x|y",
        "-n",
        "3",
        "--json",
        "--export-json",
        "out.json",
        "--export-markdown",
        "out.md",
    ];
    let printed: Value = serde_json::from_str(&sandbox.done(&arguments)).unwrap();
    assert!(!printed["sentences"].as_array().unwrap().is_empty());
    let exported: Value = serde_json::from_str(&sandbox.read("out.json")).unwrap();
    let result = &exported["results"][1];
    assert_eq!(
        (
            result["command"].as_str(),
            result["times"].as_array().unwrap().len()
        ),
        (Some("cat (2)"), 3)
    );
    for key in ["mean", "stddev", "median", "min", "max"] {
        assert!(
            result[key].as_f64().unwrap() < 30.0,
            "{key} is not in seconds: {result}"
        );
    }
    has(
        &sandbox.read("out.md"),
        &["| Command | Mean [ms] |", "| `cat (2)` |", " | 3/3 |"],
    );
}

#[test]
fn what_is_saved_runs_as_a_suite() {
    let sandbox = sandbox();
    sandbox.write("agent.sh", "#!/bin/sh\ncat f; cat");
    std::process::Command::new("chmod")
        .args(["+x", "agent.sh"])
        .current_dir(sandbox.path(""))
        .status()
        .unwrap();
    let arguments = [
        "try",
        "-m",
        "./agent.sh",
        "-m",
        "echo \"a: 'b'\" {prompt}",
        "--prompt",
        "say \"hi\": {x}",
        "--workspace",
        "project",
        "--check",
        "test -f f",
        "-n",
        "2",
        "--save",
        "saved",
    ];
    sandbox.done(&arguments);
    sandbox.done(&["check", "saved"]);
    let table = sandbox.done(&["run", "saved", "-q", "--output", ".assize/runs"]);
    has(&table, &["./agent.sh", "2 of 2 (100 %)"]);
    assert_eq!(sandbox.rows().len(), 4);
    let texts: Vec<String> = (0..4)
        .map(|position| sandbox.trace(position)["events"][0]["content"].to_string())
        .collect();
    assert!(
        texts.contains(&r#""onesay \"hi\": {x}""#.to_owned()),
        "{texts:?}"
    );
    assert!(
        texts.contains(&r#""a: 'b' say \"hi\": {x}""#.to_owned()),
        "{texts:?}"
    );
    has(
        &sandbox.refused(&arguments),
        &["`saved` already has a suite"],
    );
}

#[test]
fn a_program_that_cannot_run_is_said_and_claims_nothing() {
    let sandbox = sandbox();
    let arguments = [
        "try",
        "-m",
        "no-such-program",
        "-m",
        "true",
        "--prompt",
        "x",
        "-n",
        "2",
    ];
    has(
        &sandbox.refused(&arguments),
        &[
            "the program `no-such-program`",
            "is in no directory of PATH",
            "hint: ",
        ],
    );
}

#[test]
fn wrong_command_lines_are_explained() {
    let sandbox = sandbox();
    has(
        &sandbox.refused(&["try", "-m", "a", "--prompt", "x"]),
        &["one command cannot be compared", "hint: "],
    );
    has(
        &sandbox.refused(&["try", "-m", "a 'b", "-m", "c", "--prompt", "x"]),
        &["a quote that is never closed"],
    );
    has(
        &sandbox.refused(&[
            "try",
            "-m",
            "a",
            "-m",
            "b",
            "--prompt",
            "x",
            "--workspace",
            "none",
        ]),
        &["there is no directory"],
    );
}
