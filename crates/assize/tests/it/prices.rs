//! The cost of sessions: computed from tokens and prices, with the agent's own figure beside it.

use crate::sandbox::{Sandbox, words};
use serde_json::{Value, json};

/// An agent that reports its tokens, and perhaps a cost of its own.
fn agent(cost: &str) -> String {
    let usage = r#"{"type":"usage","input":1000,"output":80,"reasoning":20,"cache_read":9000,"cache_write":0COST}"#;
    format!("echo '{}'", usage.replace("COST", cost))
}

fn sandbox(script: &str, more: &str) -> Sandbox {
    let argv = serde_json::to_string(&["sh", "-c", script]).unwrap();
    let suite = format!(
        "modes: {{ shell: {{ provider: {{ uses: command, command: {argv}, output: events }} }} }}\n\
         scenarios: {{ paths: [s.yaml] }}\nexecution: {{ repetitions: 1 }}\n{more}\n"
    );
    Sandbox::new(&[("assize.yaml", &suite), ("s.yaml", "id: s\nprompt: x\n")])
}

fn row_of(script: &str, more: &str) -> Value {
    sandbox(script, more).run(&[]).remove(0)
}

#[test]
fn tokens_of_a_known_model_are_priced_and_the_agents_figure_is_kept() {
    // $3 in, $0.30 from the cache, $15 out, each per million.
    let row = row_of(&agent(r#","cost_usd":0.5"#), "models: [claude-sonnet-4-5]");
    assert_eq!(row["costSource"], "computed");
    assert_eq!(row["cost"]["totalUsd"], 0.0072);
    assert_eq!(row["cost"]["reasoningUsd"], 0.0003);
    let readings = json!({"reportedUsd": 0.5, "computedUsd": 0.0072, "cacheNeutralUsd": 0.0315});
    assert_eq!(row["costReadings"], readings);
    assert_eq!(row["extensions"]["cost_total_usd"], 0.0072);
}

#[test]
fn an_unknown_model_costs_what_the_agent_says_or_nobody_knows() {
    let row = row_of(&agent(r#","cost_usd":0.5"#), "models: [house-model]");
    assert_eq!(
        (&row["costSource"], &row["cost"]["totalUsd"]),
        (&json!("reported"), &json!(0.5))
    );
    let row = row_of(&agent(""), "models: [house-model]");
    assert_eq!(
        (&row["costSource"], &row["cost"]["totalUsd"]),
        (&json!("unknown"), &Value::Null)
    );
}

#[test]
fn a_file_goes_before_the_table_and_every_report_names_both() {
    let sandbox = sandbox(
        &agent(""),
        "models: [house-model]\nprices: { file: prices.json }",
    );
    sandbox.write(
        "prices.json",
        r#"{"house-model": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "cache_read_input_token_cost": 1e-7}}"#,
    );
    let row = sandbox.run(&[]).remove(0);
    assert_eq!(
        (&row["costSource"], &row["cost"]["totalUsd"]),
        (&json!("computed"), &json!(0.0021))
    );
    let run = sandbox.last_run();
    let read = |name: &str| std::fs::read_to_string(run.join(name)).unwrap();
    for name in [
        "manifest.json",
        "report/report.md",
        "report/data/summary.json",
    ] {
        let text = read(name);
        assert!(
            text.contains("prices.json (") && text.contains("genai-prices "),
            "{name}: {text}"
        );
    }
}

#[test]
fn a_file_that_holds_no_prices_is_refused_with_its_place() {
    let check = |more: &str, expected: &str| {
        let sandbox = sandbox(&agent(""), more);
        sandbox.write("other.json", r#"{"a": 1}"#);
        let output = sandbox.assize(&["check"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = words(&output);
        assert!(
            said.contains("assize.yaml:4:") && said.contains(expected),
            "{said}"
        );
    };
    check(
        "prices: { file: missing.json }",
        "cannot read the prices in",
    );
    check("prices: { file: other.json }", "holds no prices: expected");
    check("prices: { files: x }", "did you mean `file`?");
}
