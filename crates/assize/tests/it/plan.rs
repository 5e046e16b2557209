//! `assize plan`: from the last run, from a pilot, without anything; for people and as JSON.

use crate::support::Suite;
use serde_json::Value;

const SUITE: &str = "\
name: planned
provider: { uses: simulated, model: m, latency_ms: 0, scenario_spread: 0.4 }
modes:
  plain: { provider_overrides: { tokens: { input: { median: 9000, spread: 0.4 }, output: { median: 900, spread: 0.4 } }, cost_usd: { median: 0.02, spread: 0.2 } } }
  other: { provider_overrides: { tokens: { input: { median: 8000, spread: 0.4 }, output: { median: 900, spread: 0.4 } }, cost_usd: { median: 0.02, spread: 0.2 } } }
scenarios: { paths: ['many.yaml'] }
execution: { repetitions: 3 }
analysis: { equivalence_margin: 10% }
";

fn suite() -> Suite {
    let suite = Suite::of(SUITE);
    suite.write(
        "many.yaml",
        "id: s\nprompt: do it\nvars: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\n",
    );
    suite
}

fn json(suite: &Suite, arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["plan", "--json"]
        .iter()
        .chain(arguments)
        .copied()
        .collect();
    serde_json::from_str(&suite.done(&all)).unwrap()
}

#[test]
fn without_any_run_the_plan_says_so_and_what_success_can_show_at_best() {
    let suite = suite();
    let outcome = suite.assize(&["plan"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(outcome.stderr.contains("plan --pilot"), "{outcome:#?}");
    for part in [
        "trials   48 = 8 scenarios × 2 modes × 3 repetitions",
        "cost     unknown",
        "success: no run is known; at best differences above",
        "needs at least 29 tasks, however many runs",
    ] {
        assert!(outcome.stdout.contains(part), "{part}\n{}", outcome.stdout);
    }
}

#[test]
fn the_last_run_tells_cost_ranges_and_what_a_difference_takes() {
    let suite = suite();
    suite.done(&["run", "--quiet"]);
    let plan = json(
        &suite,
        &[
            "--detect",
            "15%",
            "--detect",
            "success=10pp",
            "--budget",
            "20usd",
        ],
    );
    assert_eq!(plan["trials"], 48);
    assert_eq!(plan["questions"], 2);
    assert!((plan["alpha"].as_f64().unwrap() - 0.025).abs() < 1e-9);
    let usd = plan["usd"]["value"].as_f64().unwrap();
    assert!((0.6..1.5).contains(&usd), "{plan}");
    assert!(plan["usd"]["low"].as_f64().unwrap() < usd);
    assert!(plan["tokens"]["value"].as_f64().unwrap() > 100_000.0);
    assert!(plan["minutes"]["value"].is_number());
    let metrics = plan["metrics"].as_array().unwrap();
    let names: Vec<&str> = metrics
        .iter()
        .map(|metric| metric["metric"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["success", "tokens_active"]);
    // `15%` is asked of every metric, `10pp` of success only.
    assert_eq!(metrics[0]["targets"].as_array().unwrap().len(), 2);
    assert_eq!(metrics[1]["targets"].as_array().unwrap().len(), 1);
    for metric in metrics {
        let seen = &metric["detectable"];
        assert!(seen["low"].as_f64() <= seen["value"].as_f64());
        assert!(seen["value"].as_f64() <= seen["high"].as_f64());
        let split = &metric["split"];
        assert_eq!(split["budget"]["usd"], 20.0);
        // Scenarios cost nothing to make here, so one repetition of many is best.
        assert_eq!(split["repetitions"], 1, "{metric}");
        assert!(split["repetitionsOnly"]["repetitions"].as_u64().unwrap() > 20);
    }
    let text = suite.done(&["plan", "--detect", "15%", "--budget", "20usd"]);
    for part in [
        "best split of $20.00",
        "of the error comes from differences between scenarios",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_pilot_runs_a_few_blocks_and_is_planned_from() {
    let suite = suite();
    let plan = json(&suite, &["--pilot", "8", "--yes"]);
    assert_eq!(
        suite.rows().len(),
        4 * 2 * 2,
        "four scenarios, twice, in two modes"
    );
    assert_eq!(plan["scenarios"], 8);
    assert!(plan["from"].is_string());
    assert!(plan["usd"]["value"].is_number());
}

#[test]
fn more_power_and_stricter_levels_ask_for_more() {
    let suite = suite();
    suite.done(&["run", "--quiet"]);
    let scenarios = |arguments: &[&str]| {
        let plan = json(&suite, arguments);
        plan["metrics"][1]["targets"][0]["scenarios"]
            .as_u64()
            .unwrap()
    };
    let usual = scenarios(&["--detect", "10%"]);
    assert!(scenarios(&["--detect", "10%", "--power", "0.95"]) > usual);
    assert!(scenarios(&["--detect", "20%"]) < usual);
}

#[test]
fn a_difference_that_cannot_be_understood_is_a_usage_error() {
    let suite = suite();
    for (arguments, part) in [
        (["--detect", "much"], "such as `15%`"),
        (["--budget", "lots"], "such as `20usd`"),
        (["--power", "2"], "between 0 and 1"),
        (
            ["--detect", "latency=5%"],
            "not among the metrics to decide by",
        ),
    ] {
        let outcome = suite.assize(&["plan", arguments[0], arguments[1]]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains(part), "{outcome:#?}");
    }
}

#[test]
fn rows_of_elsewhere_are_planned_from_by_the_metrics_of_the_suite() {
    let suite = suite();
    suite.done(&["run", "--quiet"]);
    let rows = suite.run_directory().join("rows.jsonl");
    std::fs::copy(rows, suite.path().join("pilot.jsonl")).unwrap();
    let path = suite.path().join("assize.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace(
        "analysis: { equivalence_margin: 10% }",
        "analysis: { primary: [tokens_active] }",
    );
    std::fs::write(&path, text).unwrap();
    let plan = json(&suite, &["--from", "pilot.jsonl", "--detect", "15%"]);
    let metrics: Vec<&Value> = plan["metrics"].as_array().unwrap().iter().collect();
    assert_eq!(metrics.len(), 1, "{plan}");
    assert_eq!(metrics[0]["metric"], "tokens_active");
    assert_eq!(plan["questions"], 1);
}

#[test]
fn a_budget_that_cannot_be_split_is_said_and_other_metrics_get_no_design() {
    let free = SUITE.replace(", cost_usd: { median: 0.02, spread: 0.2 }", "");
    let suite = Suite::of(&free);
    suite.write(
        "many.yaml",
        "id: s\nprompt: do it\nvars: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\n",
    );
    let without = suite.done(&["plan", "--budget", "20usd"]);
    assert!(
        without.contains("how to split $20.00 is not known before a run"),
        "{without}"
    );
    suite.done(&["run", "--quiet"]);
    let text = suite.done(&["plan", "--budget", "20usd"]);
    let wanted = "it is unknown what these trials cost, so $20.00 cannot be split";
    assert!(text.contains(wanted), "{text}");
    let text = suite.done(&["plan", "--detect", "success=10pp"]);
    assert_eq!(text.matches("cheapest design").count(), 1, "{text}");
}
