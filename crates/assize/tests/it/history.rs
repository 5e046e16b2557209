//! `assize history`, and `compare` scenario by scenario.

use crate::support::Suite;
use serde_json::Value;

fn with_tokens(suite: &Suite, tokens: u32) {
    suite.write(
        "assize.yaml",
        format!(
            "name: docs\nprovider: {{ uses: simulated, latency_ms: 0, success_rate: 1, tokens: {{ input: {{ median: {tokens}, spread: 0.01 }} }} }}\n\
             modes: {{ plain: {{}} }}\nscenarios: {{ paths: ['scenarios/*.yaml'] }}\nexecution: {{ repetitions: 2 }}\n"
        ),
    );
}

#[test]
fn a_change_is_found_where_it_happened_and_only_with_enough_runs() {
    let suite = Suite::new();
    let mut seed = 0;
    let mut run = |tokens: u32, times: usize| {
        with_tokens(&suite, tokens);
        for _ in 0..times {
            seed += 1;
            suite.done(&["run", "-q", "--skip-warmup", "--seed", &seed.to_string()]);
        }
    };
    run(1_000, 5);
    let shown = suite.done(&["history"]);
    assert!(shown.starts_with("docs, the last 5 runs\n"), "{shown}");
    assert!(
        shown.contains("too few runs to tell a change from chance: it takes 8"),
        "{shown}"
    );
    run(9_000, 5);
    let runs: Vec<Value> = suite
        .done(&["runs", "--json"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let changed = runs[5]["runId"].as_str().unwrap();
    let shown = suite.done(&["history", "--metric", "tokens_input"]);
    assert!(
        shown.contains(&format!("changed with {changed}: ")),
        "{shown}"
    );
    assert!(
        shown.contains(&format!("the suite itself changed before {changed}")),
        "{shown}"
    );
    assert!(shown.contains('▁') && shown.contains('█'), "{shown}");
    let json: Value =
        serde_json::from_str(&suite.done(&["history", "--metric", "tokens_input", "--json"]))
            .unwrap();
    assert_eq!(
        (&json["change"]["runId"], &json["change"]["claimed"]),
        (&changed.into(), &true.into())
    );
    assert_eq!(json["runs"].as_array().unwrap().len(), 10);
    let success: Value =
        serde_json::from_str(&suite.done(&["history", ".", "--metric", "success", "--json"]))
            .unwrap();
    assert_eq!(success["change"]["claimed"], false, "it never changed");
    let few: Value =
        serde_json::from_str(&suite.done(&["history", "-n", "3", "--metric", "success", "--json"]))
            .unwrap();
    assert_eq!(
        (few["runs"].as_array().unwrap().len(), &few["change"]),
        (3, &Value::Null)
    );
    assert_eq!(
        suite.assize(&["history", "--metric", "nothing"]).code,
        Some(2)
    );
}

#[test]
fn runs_of_a_mode_against_itself_are_no_history() {
    let suite = Suite::new();
    with_tokens(&suite, 1_000);
    suite.done(&["run", "-q"]);
    suite.done(&["run", "-q", "--aa"]);
    suite.done(&["plan", "--pilot", "--yes"]);
    let shown = suite.done(&["history"]);
    assert!(shown.starts_with("docs, 1 run\n"), "{shown}");
    assert!(!shown.contains("again"), "{shown}");
}

#[test]
fn without_runs_there_is_no_history() {
    let outcome = Suite::new().assize(&["history"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
    assert!(outcome.stderr.contains("no runs yet"), "{outcome:#?}");
}

#[test]
fn two_runs_are_compared_scenario_by_scenario() {
    let suite = Suite::new();
    let row = |mode: &str, scenario: &str, n: u64, success: bool| {
        format!(
            "{{\"runId\":\"r\",\"scenarioId\":\"{scenario}\",\"mode\":\"{mode}\",\"model\":\"m\",\"iteration\":{n},\"success\":{success}}}\n"
        )
    };
    suite.write(
        "old.jsonl",
        row("m", "up", 0, false)
            + &row("m", "down", 0, true)
            + &row("m", "same", 0, true)
            + &row("m", "gone", 0, true),
    );
    suite.write(
        "new.jsonl",
        row("m", "up", 0, true)
            + &row("m", "down", 0, false)
            + &row("m", "same", 0, true)
            + &row("m", "new", 0, true),
    );
    let shown = suite.done(&["compare", "old.jsonl", "new.jsonl"]);
    assert!(
        shown.contains("1 regressed, 1 improved, 1 new, 1 gone, 1 unchanged"),
        "{shown}"
    );
    assert!(
        shown.contains("regressed  down (1 of 1 → 0 of 1)"),
        "{shown}"
    );
    assert!(!shown.contains("same ("), "{shown}");
    assert!(
        suite
            .done(&["compare", "old.jsonl", "new.jsonl", "--each"])
            .contains("unchanged  same (1 of 1 → 1 of 1)")
    );
    let json = suite.done(&["compare", "old.jsonl", "new.jsonl", "--json", "--each"]);
    let lines: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let gone = lines
        .iter()
        .find(|line| line["scenario"] == "gone")
        .unwrap();
    assert_eq!(
        (&gone["change"], &gone["a"]),
        (&"gone".into(), &Value::Null)
    );
    assert_eq!(
        suite
            .done(&["compare", "old.jsonl", "new.jsonl", "--json"])
            .matches("\"scenario\":")
            .count(),
        0
    );
}

#[test]
fn what_history_keeps_of_a_run_is_made_again_when_its_rows_change() {
    let suite = Suite::new();
    with_tokens(&suite, 1_000);
    suite.done(&["run", "-q", "--skip-warmup", "--seed", "1"]);
    let told = || suite.done(&["history", "--json"]);
    let first = told();
    let kept = suite.run_directory().join("digest.json");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert_eq!(told(), first, "by what was kept");
    std::fs::write(&kept, text.replace("made of rows", "made of nothing")).unwrap();
    assert_eq!(told(), first, "made again");
    let rows = suite.run_directory().join("rows.jsonl");
    let mut lines: Vec<Value> = suite.rows();
    lines[0]["success"] = false.into();
    lines[0]["outcome"] = "fail".into();
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&rows, lines.join("\n") + "\n").unwrap();
    assert_ne!(told(), first);
}
