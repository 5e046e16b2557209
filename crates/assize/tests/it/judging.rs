//! Suites with a judge, run against an endpoint that answers by script.

use crate::sandbox::{Sandbox, words};
use assize_llm::testing::{Reply, ScriptedEndpoint};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../../docs/judging.md");

/// The example of the page, with its files as they stand there.
fn example(base_url: &str) -> Sandbox {
    let block = |name: &str| {
        let start = PAGE.split(&format!("```yaml {name}\n")).nth(1).unwrap();
        start.split("```").next().unwrap().to_owned()
    };
    let suite = block("assize.yaml").replace("http://127.0.0.1:4000/v1", base_url);
    Sandbox::new(&[
        ("assize.yaml", &suite),
        ("review.yaml", &block("review.yaml")),
    ])
}

fn run(sandbox: &Sandbox) -> Value {
    let mut command = sandbox.assize(&["run", "-q"]);
    let output = command.env("JUDGE_KEY", "hush-hush-hush").output().unwrap();
    let row = sandbox.rows().remove(0);
    let is_judged = row["outcome"] != "void";
    assert_eq!(output.status.success(), is_judged, "{}", words(&output));
    row
}

fn says(text: impl Into<String>) -> Reply {
    Reply::json(&json!({"model": "gpt-5",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text.into()}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}}))
}

#[test]
fn the_example_of_the_page_is_judged() {
    let endpoint = ScriptedEndpoint::start(|_, _| {
        says(
            json!({"verdicts": [
                {"id": "success", "rationale": "names line 7", "pass": true},
                {"id": "constructive", "rationale": "friendly", "pass": true},
                {"id": "efficiency", "rationale": "a detour", "score": 2},
            ]})
            .to_string(),
        )
    })
    .unwrap();
    let sandbox = example(&format!("{}/v1", endpoint.url()));
    let row = run(&sandbox);
    assert_eq!(row["outcome"], "pass", "{row}");
    let ids: Vec<&Value> = row["checkpointDetails"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| &check["id"])
        .collect();
    assert_eq!(
        ids[1..],
        ["judge:success", "judge:constructive", "judge:efficiency"]
    );
    assert_eq!(
        row["checkpointDetails"][3]["actual"]["votes"],
        json!([2, 2, 2])
    );
    assert_eq!(row["extensions"]["judge_tokens_total"], 3300);
    assert_eq!(row["extensions"]["judge_agreement"], 1);
    assert_ne!(row["tokens"]["total"], 3300);
    let received = endpoint.received();
    assert_eq!(received.len(), 3);
    assert_eq!(
        received[0].header("authorization"),
        Some("Bearer hush-hush-hush")
    );
    // The key is in no record, the judge in the manifest.
    let manifest = std::fs::read_to_string(sandbox.last_run().join("manifest.json")).unwrap();
    assert!(
        manifest.contains("JUDGE_KEY") && !manifest.contains("hush-hush"),
        "{manifest}"
    );
    assert!(
        manifest.contains("\"judge_cost_usd\": \"USD\""),
        "{manifest}"
    );
    let shown = sandbox.done(&["show", "last/0", "--output", ".assize/runs"]);
    for rationale in ["names line 7", "friendly", "a detour"] {
        assert!(
            shown.contains(&format!("rationale: {rationale}")),
            "{shown}"
        );
    }
}

#[test]
fn a_judge_that_cannot_be_used_makes_the_trial_void() {
    let endpoint = ScriptedEndpoint::start(|_, _| says("no idea")).unwrap();
    let row = run(&example(&endpoint.url()));
    assert_eq!(
        (&row["outcome"], &row["errorCode"]),
        (&json!("void"), &json!("scorer_error"))
    );
    let error = row["error"].as_str().unwrap();
    assert!(
        error.starts_with("judge: the judge gave no verdict in 3 answers"),
        "{error}"
    );
    // No schema asks anything of the answer.
    assert_eq!(row["outputValid"], true);
    // What the checks found is kept, and so is what was paid.
    assert_eq!(row["checkpointDetails"][0]["passed"], true);
    assert_eq!(row["extensions"]["judge_calls"], 9);
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let refused = |suite: &str, scenario: &str| {
        let files = [("assize.yaml", suite), ("s.yaml", scenario)];
        Sandbox::new(&files).refused(&["check"])
    };
    let plain = "provider: { uses: simulated }\nmodes: { a: {} }\nscenarios: { paths: [s.yaml] }\n";
    let scenario = "id: s\nprompt: x\nrubric: { criteria: [ { id: a, description: b } ] }\n";
    let said = refused(plain, scenario);
    assert!(
        said.contains("s.yaml:3:") && said.contains("read by no scorer"),
        "{said}"
    );
    assert!(said.contains("hint: add `judge:"), "{said}");
    let said = refused(
        &format!("{plain}judge: {{ api: openai, model: m, key_env: NO_SUCH_KEY }}\n"),
        scenario,
    );
    assert!(
        said.contains("assize.yaml:4:") && said.contains("`NO_SUCH_KEY` is not set"),
        "{said}"
    );
    let said = refused(
        &format!("{plain}judge: {{ api: opnai, model: m }}\n"),
        scenario,
    );
    assert!(said.contains("expected `api`: one of"), "{said}");
    let broken =
        "id: s\nprompt: x\nrubric:\n  criteria:\n    - { id: a, description: b, scale: [1, 5] }\n";
    let said = refused(
        &format!("{plain}judge: {{ api: openai, model: m }}\n"),
        broken,
    );
    assert!(
        said.contains("s.yaml:5:") && said.contains("expected `pass`"),
        "{said}"
    );
}

#[test]
fn a_judge_that_is_gone_takes_no_score_away() {
    let verdicts = json!({"verdicts": [
        {"id": "success", "rationale": "names line 7", "pass": true},
        {"id": "constructive", "rationale": "friendly", "pass": true},
        {"id": "efficiency", "rationale": "a detour", "score": 2},
    ]});
    let endpoint = ScriptedEndpoint::start(move |_, number| match number {
        0..3 => says(verdicts.to_string()),
        _ => Reply::Body(
            401,
            json!({"error": {"message": "no such key"}}).to_string(),
        ),
    })
    .unwrap();
    let sandbox = example(&format!("{}/v1", endpoint.url()));
    assert_eq!(run(&sandbox)["outcome"], "pass");
    let mut again = sandbox.assize(&["score"]);
    let output = again.env("JUDGE_KEY", "hush-hush-hush").output().unwrap();
    let said = words(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("1 could not be scored") && said.contains("401"),
        "{said}"
    );
    assert_eq!(sandbox.rows()[0]["outcome"], "pass");
}

/// The output of a command on a terminal where this answer is typed, and its exit code.
fn on_a_terminal(sandbox: &Sandbox, arguments: &[&str], answer: &str) -> (Option<i32>, String) {
    let inner = sandbox.assize(arguments);
    let line = std::iter::once(inner.get_program()).chain(inner.get_args());
    let line: Vec<&str> = line.map(|word| word.to_str().unwrap()).collect();
    let mut terminal = Command::new("script");
    let variables = inner
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    terminal
        .args(["-qec", &shlex::try_join(line).unwrap(), "/dev/null"])
        .current_dir(inner.get_current_dir().unwrap())
        .envs(variables)
        .env("JUDGE_KEY", "hush-hush-hush")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut terminal = terminal.spawn().unwrap();
    let mut typed = terminal.stdin.take().unwrap();
    typed.write_all(format!("{answer}\n").as_bytes()).unwrap();
    // The end of the input would be typed, too.
    let output = terminal.wait_with_output().unwrap();
    drop(typed);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), shown)
}

#[test]
fn nobody_is_judged_on_a_terminal_without_consent() {
    let verdicts = json!({"verdicts": [
        {"id": "success", "rationale": "names line 7", "pass": true},
        {"id": "constructive", "rationale": "friendly", "pass": true},
        {"id": "efficiency", "rationale": "a detour", "score": 2},
    ]});
    let endpoint = ScriptedEndpoint::start(move |_, _| says(verdicts.to_string())).unwrap();
    let sandbox = example(&format!("{}/v1", endpoint.url()));

    let (code, shown) = on_a_terminal(&sandbox, &["run", "-q"], "n");
    assert!(
        shown.contains("1 trials with the judge may cost money"),
        "{shown}"
    );
    assert_eq!((code, endpoint.received().len()), (Some(5), 0), "{shown}");

    let (code, shown) = on_a_terminal(&sandbox, &["run", "-q"], "y");
    assert_eq!((code, endpoint.received().len()), (Some(0), 3), "{shown}");

    let (code, shown) = on_a_terminal(&sandbox, &["score"], "n");
    assert!(
        shown.contains("1 trials are judged again, which may cost money"),
        "{shown}"
    );
    assert!(shown.contains("nothing was changed"), "{shown}");
    assert_eq!((code, endpoint.received().len()), (Some(5), 3), "{shown}");
}

const WITHOUT_RUBRIC: &str = "\
provider: { uses: simulated, latency_ms: 0, answer: Done. }
modes: { plain: {}, other: {} }
scenarios: { paths: ['s/*.yaml'] }
execution: { repetitions: 2, warmup: false }
analysis: { resamples: 200 }
";

/// "Task success (pass/fail with rationale), trajectory efficiency (1-5 scale: did the agent take an optimal path?)"
#[test]
fn a_judge_without_a_rubric_judges_success_and_trajectory_efficiency() {
    let endpoint = ScriptedEndpoint::start(|request, number| {
        let asked = request.body["messages"][1]["content"].as_str().unwrap();
        assert!(asked.contains("`success` (pass or fail)"), "{asked}");
        assert!(asked.contains("`trajectory_efficiency` (score from 1 to 5)"), "{asked}");
        says(
            json!({"verdicts": [
                {"id": "success", "rationale": "it is done", "pass": asked.contains("Do a")},
                {"id": "trajectory_efficiency", "rationale": "few detours", "score": 2 + number % 4},
            ]})
            .to_string(),
        )
    })
    .unwrap();
    let url = endpoint.url();
    let suite =
        format!("{WITHOUT_RUBRIC}judge: {{ api: openai, base_url: '{url}/v1', model: m }}\n");
    let mut files: Vec<(String, String)> = ["a", "b", "c"]
        .iter()
        .map(|id| {
            (
                format!("s/{id}.yaml"),
                format!("id: {id}\nprompt: Do {id}.\n"),
            )
        })
        .collect();
    files.push(("assize.yaml".to_owned(), suite));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let sandbox = Sandbox::new(&files);
    let output = sandbox.assize(&["run", "--yes"]).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    for row in sandbox.rows() {
        let expected = if row["scenarioId"] == "a" {
            "pass"
        } else {
            "fail"
        };
        assert_eq!(row["outcome"], expected, "{row:#}");
        let ids: Vec<&Value> = row["checkpointDetails"]
            .as_array()
            .unwrap()
            .iter()
            .map(|check| &check["id"])
            .collect();
        assert_eq!(ids, ["judge:success", "judge:trajectory_efficiency"]);
        let score = &row["extensions"]["judge_trajectory_efficiency"];
        assert_eq!(
            score, &row["checkpointDetails"][1]["actual"]["verdict"],
            "{row:#}"
        );
    }
    // The scale is a metric on which the modes are compared, and more of it is better.
    sandbox.done(&[
        "report",
        "last",
        "--format",
        "all",
        "--output",
        ".assize/runs",
    ]);
    let summary = std::fs::read(sandbox.last_run().join("report/data/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let compared = summary["comparisons"].as_array().unwrap().iter();
    let mut compared = compared.filter(|found| found["metric"] == "judge_trajectory_efficiency");
    let found = compared.next().unwrap();
    assert_ne!(found["verdict"], "not_comparable", "{found:#}");
    let metrics = summary["metrics"].as_array().unwrap().iter();
    let mut metrics = metrics.filter(|metric| metric["name"] == "judge_trajectory_efficiency");
    assert_eq!(metrics.next().unwrap()["better"], "higher");
    let shown = sandbox.done(&["show", "last/0", "--output", ".assize/runs"]);
    assert!(
        shown.contains("trajectory efficiency from 1 to 5"),
        "{shown}"
    );
}

#[test]
fn a_scenario_may_keep_the_judge_away() {
    let endpoint = ScriptedEndpoint::start(|_, _| says("nobody asks")).unwrap();
    let url = endpoint.url();
    let sandbox = Sandbox::new(&[
        (
            "assize.yaml",
            &format!("{WITHOUT_RUBRIC}judge: {{ api: openai, base_url: '{url}', model: m }}\n"),
        ),
        (
            "s/a.yaml",
            "id: a\nprompt: Do it.\nrubric: false\nchecks: [ { output: { contains: Done } } ]\n",
        ),
    ]);
    let output = sandbox.assize(&["run", "--yes"]).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(endpoint.received().len(), 0);
    assert_eq!(sandbox.rows()[0]["checkpointsTotal"], 1);
}

#[test]
fn a_run_in_which_nothing_was_checked_says_so() {
    let sandbox = Sandbox::new(&[
        ("assize.yaml", WITHOUT_RUBRIC),
        ("s/a.yaml", "id: unchecked\nprompt: Do it.\n"),
        (
            "s/b.yaml",
            "id: checked\nprompt: Do it.\nchecks: [ { output: { contains: Done } } ]\n",
        ),
    ]);
    let output = sandbox.assize(&["run", "--yes"]).output().unwrap();
    let said = words(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Nothing was checked in 1 scenario"), "{said}");
    sandbox.done(&[
        "report",
        "last",
        "--format",
        "all",
        "--output",
        ".assize/runs",
    ]);
    let summary = std::fs::read(sandbox.last_run().join("report/data/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let cautions = summary["cautions"].as_array().unwrap().iter();
    let mut unchecked = cautions.filter(|caution| caution["code"] == "nothing-checked");
    assert_eq!(unchecked.next().unwrap()["where"], json!(["unchecked"]));
    // A trial passes all the same.
    assert!(sandbox.rows().iter().all(|row| row["outcome"] == "pass"));
}

/// A judge in a list of scorers has its own key from the environment, and never that of the suite's judge for another service.
#[test]
fn a_judge_among_several_scorers_has_a_key_of_its_own() {
    let endpoint = ScriptedEndpoint::start(|request, _| {
        let sent = format!("{:?}", request.headers);
        assert!(sent.contains("key-of-openai"), "{sent}");
        assert!(!sent.contains("key-of-the-suite"), "{sent}");
        let verdicts = json!({"verdicts": [
            {"id": "success", "rationale": "it is done", "pass": true},
            {"id": "trajectory_efficiency", "rationale": "few detours", "score": 4},
        ]});
        says(verdicts.to_string())
    })
    .unwrap();
    let url = endpoint.url();
    for judge in [
        "",
        "judge: { api: anthropic, model: m, key_env: JUDGE_KEY }\n",
    ] {
        let suite = format!(
            "{WITHOUT_RUBRIC}{judge}scorer: {{ composite: [ {{ uses: checks }}, {{ uses: judge, api: openai, base_url: '{url}/v1', model: m }} ] }}\n"
        );
        let sandbox = Sandbox::new(&[
            ("assize.yaml", &suite),
            ("s/a.yaml", "id: a\nprompt: Do a.\n"),
        ]);
        let output = sandbox
            .assize(&["run", "--yes", "--no-preflight"])
            .env("OPENAI_API_KEY", "key-of-openai")
            .env("JUDGE_KEY", "key-of-the-suite")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", words(&output));
        for row in sandbox.rows() {
            assert_eq!(row["outcome"], "pass", "{row:#}");
        }
    }
}
