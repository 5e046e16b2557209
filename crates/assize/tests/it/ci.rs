//! The files of a CI job: reports, the job's page, and the action's own script.

use crate::support::{SUITE, Suite, assize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn suite(gates: &str) -> Suite {
    let text = SUITE.replace("latency_ms: 0", "latency_ms: 0, success_rate: 1");
    Suite::of(&format!("name: docs\n{text}gates: {gates}\n"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_run_leaves_junit_and_gates_in_its_report() {
    let suite = suite("[ 'success >= 0.6' ]");
    suite.done(&["run", "-q"]);
    let report = suite.run_directory().join("report");
    let junit = read(report.join("junit.xml"));
    assert!(
        junit.contains("<testsuite name=\"docs.plain\" tests=\"2\" failures=\"0\""),
        "{junit}"
    );
    assert!(
        junit.contains("<testcase name=\"success &gt;= 0.6 [plain]\" classname=\"docs.gates\""),
        "{junit}"
    );
    let page = read(report.join("report.md"));
    assert!(
        page.contains("## Gates") && page.contains("✅ pass"),
        "{page}"
    );
    assert!(!report.join("data/benchmark-smaller.json").exists());
}

#[test]
fn junit_and_points_for_charts_are_written_when_asked_for() {
    let suite = suite("[]");
    suite.done(&["run", "-q"]);
    suite.done(&[
        "report",
        "--format",
        "junit",
        "--format",
        "benchmark",
        "--out",
        "ci",
    ]);
    let out = suite.path().join("ci");
    assert!(out.join("junit.xml").exists() && !out.join("report.md").exists());
    for file in ["benchmark-smaller.json", "benchmark-bigger.json"] {
        let points: Vec<Value> = serde_json::from_str(&read(out.join("data").join(file))).unwrap();
        assert!(points.iter().any(|point| {
            point["name"]
                .as_str()
                .unwrap()
                .starts_with("docs/plain/one ")
        }));
    }
}

#[test]
fn the_page_of_a_job_is_appended_to_and_never_too_long() {
    let suite = suite("[ 'success >= 0.6' ]");
    let page = suite.write("page.md", "before\n");
    let run = |arguments: &[&str]| {
        let mut command = assize(suite.path());
        let output = command
            .args(arguments)
            .env("GITHUB_STEP_SUMMARY", &page)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run(&["run", "-q"]);
    let text = read(&page);
    assert!(
        text.starts_with("before\n## docs\n") && text.contains("✅ pass"),
        "{text}"
    );
    run(&["gate"]);
    assert_eq!(read(&page).matches("### Gates").count(), 2);
    std::fs::write(&page, "x".repeat((1 << 20) - 50)).unwrap();
    run(&["gate"]);
    assert!(read(&page).len() <= 1 << 20);
    let nowhere = suite.path().join("no/such/page.md");
    let mut command = assize(suite.path());
    let output = command
        .arg("gate")
        .env("GITHUB_STEP_SUMMARY", nowhere)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "a page that cannot be written costs no run: {output:?}"
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("job summary could not be written"));
}

/// The script of the action's step, as GitHub would run it.
fn action(suite: &Suite, inputs: &[(&str, &str)]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let action: Value = serde_saphyr::from_str(&read(root.join("action.yml"))).unwrap();
    let steps = action["runs"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["id"] == "run").unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_assize"));
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-e", "-o", "pipefail", "-c", step["run"].as_str().unwrap()])
        .current_dir(suite.path())
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .env("GITHUB_OUTPUT", suite.path().join("outputs"))
        .env_remove("GITHUB_STEP_SUMMARY");
    for (variable, expression) in step["env"].as_object().unwrap() {
        let name = expression
            .as_str()
            .unwrap()
            .trim_start_matches("${{ inputs.")
            .trim_end_matches(" }}");
        let default = action["inputs"][name]["default"].as_str().unwrap();
        let given = inputs.iter().find(|(input, _)| *input == name);
        command.env(variable, given.map_or(default, |(_, value)| value));
    }
    command.output().unwrap()
}

#[test]
fn the_action_runs_the_suite_and_tells_what_came_of_it() {
    let good = suite("[ 'success >= 0.6' ]");
    let output = action(&good, &[("arguments", "--repetitions\n4\n--quiet")]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let outputs = read(good.path().join("outputs"));
    let report = outputs
        .lines()
        .find_map(|line| line.strip_prefix("report="))
        .unwrap();
    assert!(outputs.contains("exit-code=0\n"), "{outputs}");
    assert!(
        good.path().join(report).join("junit.xml").exists(),
        "{outputs}"
    );
    assert_eq!(good.rows().len(), 16);
    good.done(&["baseline", "set", "main"]);
    let output = action(&good, &[("baseline", "main"), ("suite", "assize.yaml")]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let open = suite("[ 'success >= 0.9' ]");
    assert_eq!(action(&open, &[]).status.code(), Some(4));
    assert_eq!(
        action(&open, &[("allow-inconclusive", "true")])
            .status
            .code(),
        Some(0)
    );
    let bad = suite("[ 'tokens_total < 2' ]");
    assert_eq!(
        action(&bad, &[("allow-inconclusive", "true")])
            .status
            .code(),
        Some(3)
    );
    let hostile = action(
        &good,
        &[
            ("suite", "$(touch pwned); `touch pwned`"),
            ("arguments", "; touch pwned"),
        ],
    );
    assert_eq!(hostile.status.code(), Some(2), "{hostile:?}");
    assert!(!good.path().join("pwned").exists());
}
