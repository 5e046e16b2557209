//! Tasks, runners and evaluators, as people write and run them.

use crate::support::{Suite, assize};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A suite of tasks about intents, executed by a table.
pub(crate) const INTENT: &str = "\
modes: { table: {} }
tasks: { paths: [tasks.jsonl] }
runners:
  - id: table
    uses: rules
    type: intent
    config: { rules: [ { when: { contains: book }, output: { intent: book, confidence: 0.95 } } ], default: { intent: other, confidence: 0.2 } }
evaluators:
  - { id: intent, uses: json-subset }
execution: { repetitions: 2, warmup: false }
";

const TASKS: &str = r#"{"id":"a","input":"book it","expected":{"intent":"book"},"metadata":{"tags":["easy"]}}
{"id":"b","input":"hello","expected":{"intent":"greet"}}
"#;

fn lab(suite: &str) -> Suite {
    let made = Suite(TempDir::new().unwrap());
    made.write("assize.yaml", suite);
    made.write("tasks.jsonl", TASKS);
    made
}

fn lines(suite: &Suite, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(suite.run_directory().join(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The errors of `assize check` about a suite.
fn complaint(suite: &Suite) -> String {
    let outcome = suite.assize(&["check"]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    outcome.stderr
}

#[test]
fn the_booking_scenario_runs_as_printed_and_its_records_fit_their_schemas() {
    let output = TempDir::new().unwrap();
    let results = output.path().to_str().unwrap();
    let run = |arguments: &[&str]| {
        let done = assize(&examples()).args(arguments).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    run(&["run", "booking", "-q", "--output", results]);
    let directory = std::fs::read_dir(output.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let read = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(directory.join(name)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    for (schema, file) in [
        ("run-record", "runs.jsonl"),
        ("score-record", "scores.jsonl"),
        ("row", "rows.jsonl"),
    ] {
        let schema = serde_json::from_str(&run(&["schema", schema])).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let records = read(file);
        assert!(records.len() >= 3, "{file}");
        for record in records {
            let errors: Vec<String> = validator
                .iter_errors(&record)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{file}: {errors:?}");
        }
    }
    let record = &read("runs.jsonl")[0];
    assert_eq!(record["status"], "completed", "{record:#}");
    assert_eq!(
        record["steps"][1]["output"]["conversation"][0]["intent"],
        "book_flight"
    );
    assert_eq!(
        record["output"]["conversation"][1]["text"],
        "请问您要去哪里？"
    );
    assert!(
        read("rows.jsonl")
            .iter()
            .all(|row| row["outcome"] == "pass")
    );
    let targets: Vec<String> = read("scores.jsonl")
        .iter()
        .map(|score| score["target"].as_str().unwrap().to_owned())
        .collect();
    for target in ["step:step-1", "step:step-3", "final", "global"] {
        assert!(
            targets.iter().any(|known| known == target),
            "{target}: {targets:?}"
        );
    }
}

#[test]
fn tasks_are_run_scored_and_reported_like_scenarios() {
    let suite = lab(INTENT);
    assert!(
        suite
            .done(&["check"])
            .contains("2 tasks in 1 mode × 2 repetitions = 4 trials")
    );
    let shown = suite.done(&["run"]);
    assert!(shown.contains("scores"), "{shown}");
    let rows = suite.rows();
    assert_eq!(rows.len(), 4);
    let passed = |id: &str| {
        rows.iter()
            .filter(|row| row["scenarioId"] == id)
            .all(|row| row["success"] == true)
    };
    assert!(passed("a") && !passed("b"));
    let report = std::fs::read_to_string(suite.run_directory().join("report/report.md")).unwrap();
    assert!(report.contains("accuracy"), "{report}");
    suite.done(&["report"]);
    suite.done(&["compare", "last"]);
    let shown = suite.done(&["show", "last/0"]);
    assert!(shown.contains("accuracy"), "{shown}");
    let scores = lines(&suite, "scores.jsonl");
    let matches = |score: &Value| score["evidence"]["alignment"]["intent"]["matches"] == true;
    assert_eq!(scores.iter().filter(|score| matches(score)).count(), 2);
}

#[test]
fn modes_choose_among_runners() {
    let two = INTENT.replace("modes: { table: {} }", "modes: { table: { runners: { intent: table } }, other: { runners: { intent: stubborn } } }").replace(
        "evaluators:",
        "  - { id: stubborn, uses: rules, type: intent, config: { rules: [ { output: { intent: greet } } ] } }\nevaluators:",
    );
    let suite = lab(&two);
    suite.done(&["run", "-q", "-n", "1"]);
    let success = |mode: &str| -> Vec<bool> {
        let rows = suite.rows().into_iter().filter(|row| row["mode"] == mode);
        let mut rows: Vec<Value> = rows.collect();
        rows.sort_by_key(|row| row["scenarioId"].to_string());
        rows.iter().map(|row| row["success"] == true).collect()
    };
    assert_eq!(
        (success("table"), success("other")),
        (vec![true, false], vec![false, true])
    );
    let undecided = two.replace("other: { runners: { intent: stubborn } }", "other: {}");
    let complaint = complaint(&lab(&undecided));
    assert!(
        complaint.contains(
            "`table`, `stubborn` serve the type `intent`, and the mode `other` does not choose"
        ),
        "{complaint}"
    );
}

#[test]
fn check_finds_what_cannot_work() {
    let check = |suite: &str, tasks: &str, expected: &str| {
        let made = lab(suite);
        made.write("tasks.jsonl", tasks);
        let found = complaint(&made);
        assert!(found.contains(expected), "{found}\nexpected {expected}");
    };
    check(
        INTENT,
        r#"{"id":"a","type":"intend","input":1}"#,
        "no runner serves the type `intend` (did you mean `intent`?)",
    );
    check(
        INTENT,
        r#"{"id":"a","input":1,"pass":["accuracy"]}"#,
        "expected a condition over scores",
    );
    check(
        &INTENT.replace("uses: rules", "uses: rule"),
        TASKS,
        "unknown runner `rule`",
    );
    check(
        &INTENT.replace("uses: json-subset", "uses: jsonsubset"),
        TASKS,
        "did you mean `json-subset`?",
    );
    check(
        &INTENT.replace("uses: json-subset", "uses: exact, config: { pth: x }"),
        TASKS,
        "unknown key `pth`",
    );
    check(
        &INTENT.replace(
            "type: intent",
            "type: intent\n    input_schema: { type: string }",
        ),
        r#"{"id":"a","input":{}}"#,
        "does not fit the input schema of `table`",
    );
    let chain = |input_map: &str| {
        format!(
            r#"{{"id":"c","steps":[{{"id":"one","type":"intent","input":"x"}},{{"id":"two","type":"intent","input":"x"}}],"input_map":{input_map}}}"#
        )
    };
    check(INTENT, &chain(r#"{"three":[]}"#), "unknown step `three`");
    check(
        INTENT,
        &chain(r#"{"one":[{"from":"step:two.output","to":"input"}]}"#),
        "cannot get data from a later step",
    );
    check(
        INTENT,
        &chain(r#"{"two":[{"from":"step:one.output","to":"input.deep"}]}"#),
        "cannot be put into text",
    );
    let closed = INTENT.replace("type: intent", "type: intent\n    output_schema: { type: object, properties: { intent: { type: string } }, additionalProperties: false }");
    check(
        &closed,
        &chain(r#"{"two":[{"from":"step:one.output.intention","to":"input"}]}"#),
        "there is no `intention`",
    );
    let typed = closed.replace(
        "type: intent\n",
        "type: intent\n    input_schema: { type: number }\n",
    );
    check(
        &typed,
        &chain(r#"{"two":[{"from":"step:one.output.intent","to":"input"}]}"#),
        "gives string, but `input` of `intent` takes number",
    );
}

#[test]
fn rule_1_a_field_of_a_module_belongs_into_extensions() {
    let step = |field: &str| {
        format!(
            r#"{{"id":"c","steps":[{{"id":"one","type":"intent","input":"x"{field}}}],"input_map":{{}}}}"#
        )
    };
    for task in [
        r#"{"id":"a","input":"x","intentSpecificField":"value"}"#.to_owned(),
        step(r#","intentSpecificField":"value""#),
    ] {
        let suite = lab(INTENT);
        suite.write("tasks.jsonl", &task);
        let said = complaint(&suite);
        assert!(
            said.contains("unknown field `intentSpecificField`"),
            "{said}"
        );
        assert!(said.contains("belong into `extensions`"), "{said}");
        let inside = task.replace(
            r#""intentSpecificField":"value""#,
            r#""extensions":{"intentSpecificField":"value"}"#,
        );
        suite.write("tasks.jsonl", inside);
        suite.done(&["check"]);
    }
}

/// The most memory that `assize check` had, in kB.
fn peak_of_check(suite: &Suite) -> u64 {
    let mut child = assize(suite.path())
        .arg("check")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let found = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(found.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[test]
fn tasks_of_a_file_never_sit_in_memory() {
    let text = "x".repeat(8000);
    let peak = |tasks: u32| {
        let suite = lab(INTENT);
        let path = suite.path().join("tasks.jsonl");
        let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
        for number in 0..tasks {
            let task = format!(r#"{{"id":"t{number}","input":"{text}"}}"#);
            writeln!(file, "{task}").unwrap();
        }
        file.flush().unwrap();
        peak_of_check(&suite)
    };
    // 64 MB of tasks; where they lie is all that is kept of them.
    let (few, many) = (peak(10), peak(8000));
    assert!(many < few + 16_000, "{few} kB, then {many} kB");
}

#[test]
fn tags_samples_and_ids_choose_tasks() {
    let suite = lab(INTENT);
    suite.done(&["run", "-q", "-n", "1", "--tag", "easy"]);
    assert_eq!(suite.rows()[0]["scenarioId"], "a");
    suite.done(&["run", "-q", "-n", "1", "--scenario", "b"]);
    assert_eq!(suite.rows()[0]["scenarioId"], "b");
    let sampled = lab(&INTENT.replace(
        "paths: [tasks.jsonl]",
        "paths: [tasks.jsonl], sample: { n: 1, seed: 3 }",
    ));
    sampled.done(&["run", "-q", "-n", "1"]);
    assert_eq!(sampled.rows().len(), 1);
    let manifest: Value = serde_json::from_slice(
        &std::fs::read(sampled.run_directory().join("manifest.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(manifest["plan"]["tasks"]["count"], 1);
    assert_eq!(
        manifest["plan"]["tasks"]["hash"].as_str().unwrap().len(),
        32
    );
}

#[test]
fn a_run_of_chosen_tasks_is_resumed_with_the_same_ones_and_never_with_others() {
    let suite = lab(INTENT);
    suite.done(&["run", "-q", "-n", "1", "--tag", "easy"]);
    suite.done(&["run", "-q", "--resume", "last", "-n", "3"]);
    let rows = suite.rows();
    assert!(
        rows.len() == 3 && rows.iter().all(|row| row["scenarioId"] == "a"),
        "{rows:?}"
    );
    suite.write("tasks.jsonl", TASKS.replace("book it", "book that"));
    let outcome = suite.assize(&["run", "-q", "--resume", "last", "-n", "4"]);
    assert!(
        outcome.stderr.contains("the tasks have another content"),
        "{outcome:?}"
    );
}

#[test]
fn kill_9_loses_no_task_and_repeats_none() {
    let suite = lab(&INTENT
        .replace("repetitions: 2", "repetitions: 3000")
        .replace("execution: {", "execution: { concurrency: 4,"));
    let mut random = 88_172_645_463_325_252_u64;
    for number in 0..12 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let arguments: &[&str] = if number == 0 {
            &["run", "-q"]
        } else {
            &["run", "-q", "--resume", "last"]
        };
        let mut child = assize(suite.path())
            .args(arguments)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let started = std::time::Instant::now();
        while number == 0
            && !suite.path().join(".assize/runs").exists()
            && started.elapsed().as_secs() < 30
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(random % 80));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    suite.done(&["run", "-q", "--resume", "last"]);
    let rows = suite.rows();
    let unique = |values: Vec<String>| {
        values
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
    };
    let sessions = unique(
        rows.iter()
            .map(|row| row["sessionId"].to_string())
            .collect(),
    );
    assert_eq!((rows.len(), sessions.len()), (6000, 6000));
    let runs = lines(&suite, "runs.jsonl");
    assert_eq!(runs.len(), 6000);
    assert_eq!(
        unique(runs.iter().map(|run| run["id"].to_string()).collect()),
        sessions
    );
    let scores = lines(&suite, "scores.jsonl");
    assert_eq!(scores.len(), 6000);
    assert_eq!(
        unique(
            scores
                .iter()
                .map(|score| score["runId"].to_string())
                .collect()
        ),
        sessions
    );
}

#[test]
fn the_examples_of_three_capabilities_run_offline_by_their_tables() {
    for (name, tasks) in [("intent", 7), ("dialogue", 3), ("memory", 2)] {
        let output = TempDir::new().unwrap();
        let run = |arguments: &[&str]| {
            let done = assize(&examples()).args(arguments).output().unwrap();
            assert!(done.status.success(), "{name} {arguments:?}: {done:?}");
        };
        run(&["check", name]);
        run(&[
            "run",
            name,
            "-q",
            "--mode",
            "table",
            "-n",
            "1",
            "--output",
            output.path().to_str().unwrap(),
        ]);
        let directory = std::fs::read_dir(output.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let text = std::fs::read_to_string(directory.join("rows.jsonl")).unwrap();
        let rows: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(rows.len(), tasks, "{name}");
        // By design the table of intents does not understand indirect requests.
        let is_hard = |row: &&Value| row["scenarioId"] == "indirect-en";
        assert!(
            rows.iter()
                .filter(|row| !is_hard(row))
                .all(|row| row["success"] == true),
            "{name}: {text}"
        );
        assert!(
            rows.iter()
                .filter(is_hard)
                .all(|row| row["success"] == false),
            "{name}"
        );
    }
}

#[test]
fn a_chain_may_have_an_agent_session_as_a_step() {
    let output = TempDir::new().unwrap();
    let done = assize(&examples())
        .args([
            "run",
            "booking/mixed.yaml",
            "--mode",
            "stand-in",
            "-q",
            "--output",
            output.path().to_str().unwrap(),
        ])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let directory = std::fs::read_dir(output.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let record: Value = serde_json::from_str(
        std::fs::read_to_string(directory.join("runs.jsonl"))
            .unwrap()
            .trim(),
    )
    .unwrap();
    assert_eq!(record["status"], "completed", "{record:#}");
    assert_eq!(
        record["output"]["conversation"][0]["text"],
        "请问您要去哪里？"
    );
    let events: Vec<&str> = record["trace"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["step"] == "step-2")
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert!(
        events.contains(&"prompt") && events.contains(&"text_output"),
        "{events:?}"
    );
    assert_eq!(
        record["metrics"].get("tokens"),
        None,
        "an unknown part makes the sum unknown"
    );
}

#[test]
fn any_scorer_judges_tasks_with_criteria_of_the_suite() {
    let suite = lab(&INTENT.replace(
        "uses: json-subset",
        "uses: checks, config: { checks: [ { output: { contains: book } } ] }",
    ));
    suite.done(&["run", "-q", "-n", "1"]);
    let mut rows = suite.rows();
    rows.sort_by_key(|row| row["scenarioId"].to_string());
    let passed: Vec<bool> = rows.iter().map(|row| row["success"] == true).collect();
    assert_eq!(passed, [true, false]);
}

#[test]
fn unknown_keys_of_metadata_are_errors_that_name_what_was_probably_meant() {
    let chain = |metadata: &str| {
        format!(
            r#"{{"id":"c","steps":[{{"id":"one","type":"intent","input":"x"}}],"input_map":{{}},"metadata":{metadata}}}"#
        )
    };
    let step = r#"{"id":"c","steps":[{"id":"one","type":"intent","input":"x","metadata":{"timout":5}}],"input_map":{}}"#;
    for task in [
        r#"{"id":"a","input":"x","metadata":{"timout":5000}}"#.to_owned(),
        chain(r#"{"timout":5000}"#),
        step.to_owned(),
    ] {
        let suite = lab(INTENT);
        suite.write("tasks.jsonl", &task);
        let said = complaint(&suite);
        assert!(said.contains("unknown field `timout`"), "{said}");
        assert!(said.contains("metadata"), "{said}");
        assert!(said.contains("did you mean `timeout`?"), "{said}");
    }
    let suite = lab(INTENT);
    suite.write("tasks.jsonl", chain(r#"{"timeout":"5 s"}"#));
    let said = complaint(&suite);
    assert!(
        said.contains("found \"5 s\", expected milliseconds"),
        "{said}"
    );
    // Of an atomic task no other key is known; a chain may have labels of its author's own.
    suite.write(
        "tasks.jsonl",
        r#"{"id":"a","input":"x","metadata":{"author":"me"}}"#,
    );
    assert!(complaint(&suite).contains("unknown field `author`"));
    suite.write("tasks.jsonl", chain(r#"{"author":"me","priority":2}"#));
    suite.done(&["check"]);
}

#[test]
fn a_mismatch_is_shown_as_failed_with_what_was_expected() {
    let suite = lab(INTENT);
    suite.done(&["run", "-q"]);
    let position = suite
        .rows()
        .iter()
        .find(|row| row["scenarioId"] == "b")
        .unwrap()["position"]
        .clone();
    let shown = suite.done(&["show", &format!("last/{position}")]);
    assert!(!shown.contains("could not be judged"), "{shown}");
    assert!(shown.contains("✗ accuracy"), "{shown}");
    assert!(shown.contains("expected: 1"), "{shown}");
    // A condition over scores says the same.
    suite.write(
        "assize.yaml",
        INTENT.replace(
            "paths: [tasks.jsonl]",
            "paths: [tasks.jsonl], pass: ['accuracy >= 0.9']",
        ),
    );
    suite.done(&["run", "-q"]);
    let shown = suite.done(&["show", &format!("last/{position}")]);
    assert!(shown.contains("✗ accuracy >= 0.9"), "{shown}");
    assert!(shown.contains("found: accuracy is 0"), "{shown}");
}
