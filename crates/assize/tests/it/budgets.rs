//! Budgets: whole blocks, exit 5, resumable; refused where they cannot be kept.

use crate::support::Suite;
use serde_json::Value;
use std::collections::BTreeMap;

const SUITE: &str = "\
name: paid
provider: { uses: simulated, model: m, latency_ms: 0, cost_usd: { median: 0.1, spread: 0.8 } }
modes: { plain: {}, other: {}, third: {} }
scenarios: { paths: ['many.yaml'] }
execution: { repetitions: 10, concurrency: 8, warmup: false }
";

fn suite(text: &str) -> Suite {
    let suite = Suite::of(text);
    suite.write(
        "many.yaml",
        "id: s\nprompt: do it\nvars: { n: [1, 2, 3, 4, 5, 6] }\n",
    );
    suite
}

fn spent(rows: &[Value]) -> f64 {
    rows.iter()
        .map(|row| row["cost"]["totalUsd"].as_f64().unwrap())
        .sum()
}

/// The cost of each block, all of which must have all three modes.
fn blocks(rows: &[Value]) -> Vec<f64> {
    let mut blocks: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for row in rows {
        let block = row["block"].as_u64().unwrap();
        let cost = row["cost"]["totalUsd"].as_f64().unwrap();
        blocks.entry(block).or_default().push(cost);
    }
    assert!(
        blocks.values().all(|cells| cells.len() == 3),
        "a block is cut"
    );
    blocks
        .into_values()
        .map(|cells| cells.iter().sum())
        .collect()
}

#[test]
fn a_run_stops_at_whole_blocks_and_goes_on_with_a_larger_budget() {
    let suite = suite(SUITE);
    let outcome = suite.assize(&["run", "--max-cost", "4"]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("the budget is used up"),
        "{outcome:#?}"
    );
    assert!(outcome.stderr.contains("--resume"), "{outcome:#?}");
    let first = suite.rows();
    let costs = blocks(&first);
    let dearest = costs.iter().copied().fold(0.0, f64::max);
    assert!(spent(&first) <= 4.0 + dearest, "{} of 4", spent(&first));
    assert!(
        spent(&first) >= 4.0 - 3.0 * dearest,
        "{} of 4 is too careful",
        spent(&first)
    );
    // Resumed without a budget, the run keeps to the one it has, and says which one would do.
    let outcome = suite.assize(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(suite.rows().len(), first.len());
    assert!(outcome.stderr.contains(" --max-cost "), "{outcome:#?}");
    let outcome = suite.assize(&["run", "--resume", "last", "--max-cost", "8", "--quiet"]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    let second = suite.rows();
    assert!(second.len() > first.len());
    blocks(&second);
    assert!(spent(&second) <= 8.0 + dearest * 1.5);
    suite.done(&["run", "--resume", "last", "--max-cost", "1000", "--quiet"]);
    assert_eq!(suite.rows().len(), 180);
}

#[test]
fn the_suite_declares_a_budget_of_tokens_too() {
    let text = SUITE.replace(
        "warmup: false }",
        "warmup: false, budget: { tokens: 400000 } }",
    );
    let suite = suite(&text);
    let outcome = suite.assize(&["run", "--quiet"]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    let rows = suite.rows();
    let total = |row: &Value| row["tokens"]["total"].as_u64().unwrap();
    let tokens: u64 = rows.iter().map(total).sum();
    assert!(tokens < 500_000, "{tokens}");
    blocks(&rows);
    // Nobody knows the cost, so that it is not told as nothing.
    assert!(
        outcome.stderr.contains("of 400.0k tokens spent"),
        "{outcome:#?}"
    );
    assert!(!outcome.stderr.contains("$0.00"), "{outcome:#?}");
}

#[test]
fn a_budget_of_nothing_starts_no_block_and_no_warm_up() {
    let suite = suite(&SUITE.replace("warmup: false", "warmup: true"));
    for limit in ["--max-time", "--max-cost"] {
        let outcome = suite.assize(&["run", "--quiet", limit, "0"]);
        assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    }
    let runs = std::fs::read_dir(suite.path().join(".assize/runs")).unwrap();
    for run in runs
        .filter_map(Result::ok)
        .filter(|run| run.path().is_dir())
    {
        let warmup = std::fs::read_to_string(run.path().join("warmup.jsonl"));
        assert_eq!(warmup.unwrap_or_default(), "");
    }
}

#[test]
fn dollars_that_nobody_will_know_are_refused_before_the_run() {
    let text = SUITE.replace(", cost_usd: { median: 0.1, spread: 0.8 }", "");
    let suite = suite(&text);
    let outcome = suite.assize(&["run", "--max-cost", "4"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("cost of mode `plain` is not known"),
        "{outcome:#?}"
    );
    assert!(outcome.stderr.contains("--max-tokens"), "{outcome:#?}");
    assert!(!suite.path().join(".assize").exists(), "nothing was run");
}

#[test]
fn other_orders_keep_whole_blocks_as_well() {
    for order in ["sequential", "random"] {
        let suite = suite(SUITE);
        let outcome = suite.assize(&["run", "--quiet", "--max-cost", "3", "--order", order]);
        assert_eq!(outcome.code, Some(5), "{outcome:#?}");
        blocks(&suite.rows());
    }
}

#[test]
fn the_budget_holds_after_a_kill() {
    let text = SUITE.replace("latency_ms: 0", "latency_ms: 15");
    let suite = suite(&text);
    let mut killed = crate::support::assize(suite.path());
    let mut child = killed
        .args(["run", "--quiet", "--max-cost", "6", "-j", "2"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let rows = || {
        let directory = suite.path().join(".assize/runs");
        let run = std::fs::read_dir(directory).ok()?.next()?.ok()?.path();
        Some(
            std::fs::read_to_string(run.join("rows.jsonl"))
                .ok()?
                .lines()
                .count(),
        )
    };
    while rows().unwrap_or(0) < 20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let outcome = suite.assize(&["run", "--resume", "last", "--quiet", "--max-cost", "6"]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    let rows = suite.rows();
    let costs = blocks(&rows);
    let dearest = costs.iter().copied().fold(0.0, f64::max);
    assert!(spent(&rows) <= 6.0 + 2.0 * dearest, "{}", spent(&rows));
}
