//! `assize run`, from the first table to the exit code.

use crate::support::{Suite, assize};
use serde_json::Value;
use std::path::Path;

#[test]
fn the_quickstart_ends_with_a_table_that_a_person_understands() {
    let results = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = assize(&root)
        .args(["run", "examples/quickstart", "--output"])
        .arg(results.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}");
    for words in [
        "Mode",
        "Success",
        "Time (median)",
        "Tokens",
        "Cost",
        "plain",
        "with-docs",
        "unknown",
        "Simulated: these numbers are made up",
        "against plain",
        "report.html",
    ] {
        assert!(stdout.contains(words), "no `{words}` in\n{stdout}");
    }
    assert!(!stdout.contains('\u{1b}'), "no escape codes in a pipe");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let way = "assize init --agent claude-code";
    assert!(
        stderr.trim_end().ends_with(way),
        "it ends with the way to a real agent:\n{stderr}"
    );
    let run = std::fs::read_dir(results.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let rows = std::fs::read_to_string(run.join("rows.jsonl")).unwrap();
    assert!(rows.lines().count() >= 10);
    assert!(rows.lines().all(|row| row.contains("\"simulated\":true")));
}

#[test]
fn a_dry_run_prints_the_plan_and_runs_nothing() {
    let suite = Suite::new();
    let plan = suite.done(&["run", "--dry-run", "--json"]);
    let cells: Vec<Value> = plan
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(cells.len(), 12);
    for (position, cell) in cells.iter().enumerate() {
        let keys: Vec<&String> = cell.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "position",
                "block",
                "scenarioId",
                "mode",
                "model",
                "iteration"
            ]
        );
        assert_eq!(cell["position"], position);
    }
    assert_eq!(
        plan,
        suite.done(&["run", "--dry-run", "--json"]),
        "the same seed gives the same plan"
    );
    assert_ne!(
        suite.done(&[
            "run",
            "--dry-run",
            "--json",
            "--order",
            "random",
            "--seed",
            "1"
        ]),
        suite.done(&[
            "run",
            "--dry-run",
            "--json",
            "--order",
            "random",
            "--seed",
            "2"
        ]),
    );
    assert!(!suite.path().join(".assize").exists());
}

#[test]
fn json_lines_tell_the_whole_run() {
    let suite = Suite::new();
    let stdout = suite.done(&["run", "--json"]);
    let events: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!(
        (
            count("run_started"),
            count("trial_finished"),
            count("run_finished")
        ),
        (1, 12, 1)
    );
    assert_eq!(count("cell_started"), 13, "twelve trials and the warm-up");
    let finished = events
        .iter()
        .find(|event| event["event"] == "trial_finished")
        .unwrap();
    assert_eq!(finished["outcome"], "pass");
    assert_eq!(events.last().unwrap()["done"], 12);
}

#[test]
fn the_same_suite_and_seed_give_the_same_rows_but_for_ids_and_times() {
    let suite = Suite::of(
        "provider: { uses: simulated, latency_ms: 0, success_rate: 0.6, cost_usd: { median: 0.1, spread: 0.5 } }\n\
         modes: { plain: {}, other: {} }\n\
         scenarios: { paths: ['scenarios/*.yaml'] }\n\
         execution: { repetitions: 10 }\n",
    );
    let rows = |arguments: &[&str]| {
        suite.done(arguments);
        let mut rows = suite.rows();
        for row in &mut rows {
            let row = row.as_object_mut().unwrap();
            for name in ["runId", "startedAt", "completedAt", "timing"] {
                row.remove(name).unwrap();
            }
            row["extensions"]
                .as_object_mut()
                .unwrap()
                .retain(|name, _| !name.starts_with("latency"));
        }
        rows.sort_by_key(|row| row["position"].as_u64());
        rows
    };
    let first = rows(&["run"]);
    assert_eq!(first, rows(&["run", "-j", "1"]));
    assert_ne!(first, rows(&["run", "--seed", "7"]));
}

#[test]
fn flags_narrow_a_suite_down() {
    let suite = Suite::new();
    let cells = |arguments: &[&str]| {
        let all: Vec<&str> = ["run", "--dry-run", "--json"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        suite.done(&all).lines().count()
    };
    assert_eq!(cells(&["--mode", "plain"]), 6);
    assert_eq!(cells(&["--scenario", "one", "-n", "1"]), 2);
    assert_eq!(cells(&["--tag", "small"]), 6);
    assert_eq!(cells(&["--model", "a", "--model", "b"]), 24);
    let wrong = suite.assize(&["run", "--mode", "plian"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("unknown mode `plian`")
            && wrong.stderr.contains("did you mean `plain`?"),
        "{wrong:?}"
    );
}

#[test]
fn flags_beat_the_environment_and_the_environment_beats_the_file() {
    let suite = Suite::new();
    let count = |flags: &[&str]| {
        let output = assize(suite.path())
            .args(["run", "--dry-run", "--json"])
            .args(flags)
            .env("ASSIZE_REPETITIONS", "2")
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    assert_eq!((count(&[]), count(&["-n", "1"])), (8, 4));
}

#[test]
fn vars_make_a_scenario_of_every_combination() {
    let suite = Suite::new();
    suite.write(
        "scenarios/three.yaml",
        "id: three\nprompt: write {lang} for {os}\nvars: { lang: [python, rust], os: [linux, mac] }\n",
    );
    suite.done(&["run", "--scenario", "three", "-n", "1", "--mode", "plain"]);
    let mut ids: Vec<String> = suite
        .rows()
        .iter()
        .map(|row| row["scenarioId"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    assert_eq!(
        ids,
        [
            "three[lang=python,os=linux]",
            "three[lang=python,os=mac]",
            "three[lang=rust,os=linux]",
            "three[lang=rust,os=mac]"
        ]
    );
}

#[test]
fn suites_may_be_toml_or_json() {
    let suite = Suite::new();
    suite.write(
        "suite.toml",
        "scenarios.paths = ['scenarios/*.yaml']\n[modes.zebra.provider]\nuses = 'simulated'\n[modes.ant.provider]\nuses = 'simulated'\n",
    );
    suite.write(
        "suite.json",
        r#"{"scenarios": {"paths": ["scenarios/*.yaml"]}, "execution": {"timeoutDefaultMs": 5},
            "modes": {"zebra": {"provider": {"uses": "simulated"}}, "ant": {"provider": {"uses": "simulated"}}}}"#,
    );
    for file in ["suite.toml", "suite.json"] {
        let plan = suite.done(&["run", file, "--dry-run", "--json", "--order", "sequential"]);
        assert!(
            plan.lines().next().unwrap().contains("zebra"),
            "{file} keeps the order of modes: {plan}"
        );
    }
}

#[test]
fn a_trial_that_runs_out_of_time_keeps_what_it_used() {
    let suite = Suite::of(
        "modes: { slow: { provider: { uses: simulated, latency_ms: 60000 } } }\n\
         scenarios: { paths: ['scenarios/one.yaml'] }\n\
         execution: { repetitions: 1, warmup: false }\n",
    );
    let stdout = suite.done(&["run", "--timeout", "200"]);
    assert!(
        stdout.contains("> 2") && stdout.contains("1 trial was cut off by the limit"),
        "{stdout}"
    );
    let row = &suite.rows()[0];
    assert_eq!(row["outcome"], "fail");
    assert_eq!(row["censored"], true);
    assert_eq!(row["completionReason"], "timeout");
    assert!(row["tokens"]["total"].as_u64().is_some());
}

#[test]
fn agents_that_fail_are_a_result_and_no_error() {
    let suite = Suite::of(
        "modes: { bad: { provider: { uses: simulated, success_rate: 0 } } }\n\
         scenarios: { paths: ['scenarios/one.yaml'] }\n",
    );
    let stdout = suite.done(&["run"]);
    assert!(stdout.contains("0 of 5 (0 %)"), "{stdout}");
    let stopped = suite.assize(&["run", "--fail-fast", "-j", "1"]);
    assert_eq!(stopped.code, Some(5));
    assert!(
        stopped.stderr.contains("4 of 5 trials are open"),
        "{stopped:?}"
    );
}

#[test]
fn values_of_the_environment_are_used_and_never_stored() {
    let suite = Suite::of(
        "provider: { uses: simulated, answer: 'I used ${env:PLANTED_TOKEN} for it' }\n\
         modes: { plain: { environment: { TOKEN: '${env:PLANTED_TOKEN}' } } }\n\
         scenarios: { paths: ['scenarios/one.yaml'] }\n",
    );
    let run = |token: Option<&str>| {
        let mut command = assize(suite.path());
        command.args(["run", "--json"]);
        match token {
            Some(token) => command.env("PLANTED_TOKEN", token),
            None => command.env_remove("PLANTED_TOKEN"),
        };
        crate::support::Outcome::from(command.output().unwrap())
    };
    let missing = run(None);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("assize.yaml:1:")
            && missing.stderr.contains("`PLANTED_TOKEN` is not set"),
        "{missing:?}"
    );

    let done = run(Some("swordfish-4711"));
    assert_eq!(done.code, Some(0));
    assert!(!done.stdout.contains("swordfish"), "not even on stdout");
    let grep = std::process::Command::new("grep")
        .args(["-r", "swordfish"])
        .arg(suite.run_directory())
        .output()
        .unwrap();
    assert!(grep.stdout.is_empty());
    let shown = assize(suite.path())
        .args(["show", "0", "--json"])
        .env("PLANTED_TOKEN", "x")
        .output()
        .unwrap();
    assert!(
        String::from_utf8(shown.stdout)
            .unwrap()
            .contains("I used [redacted-1] for it")
    );
}

#[test]
fn several_scorers_judge_together() {
    let suite = Suite::of(
        "provider: { uses: simulated, answer: 'it is 42' }\n\
         modes: { plain: {} }\n\
         scenarios: { paths: ['scenarios/one.yaml'] }\n\
         scorer: { composite: [ { uses: checks }, { uses: checks } ] }\n\
         execution: { repetitions: 1 }\n",
    );
    suite.write(
        "scenarios/one.yaml",
        "id: one\nprompt: x\nchecks: [ { output: { contains: '42' } } ]\n",
    );
    suite.done(&["run", "-q"]);
    let row = &suite.rows()[0];
    assert_eq!(row["checkpointsTotal"], 2);
    assert_eq!(
        row["checkpointDetails"][0]["id"],
        "checks:output-contains-1"
    );
}
