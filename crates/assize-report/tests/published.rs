//! Published sessions of another profiler give that data's medians and rates, and no more than they carry.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/shared/harness.rs"]
mod harness;

use assize_report::{Analysis, Comparison, Summary, SummaryBuilder, sentence};
use assize_stats::Verdict;
use harness::{Test, beside};
use std::process::ExitCode;

const PUBLISHED: &str = "fixtures/published";

fn main() -> ExitCode {
    let tests: &[Test] = &[
        (
            "medians_are_those_of_the_data",
            medians_are_those_of_the_data,
        ),
        (
            "fifteen_of_fifteen_passed_and_the_interval_says_how_little_that_is",
            fifteen_of_fifteen_passed_and_the_interval_says_how_little_that_is,
        ),
        ("a_cost_of_zero_is_unknown", a_cost_of_zero_is_unknown),
        (
            "fewer_tokens_at_the_median_are_no_verdict_and_less_time_is_exploratory",
            fewer_tokens_at_the_median_are_no_verdict_and_less_time_is_exploratory,
        ),
    ];
    harness::run(PUBLISHED, tests)
}

fn summary() -> Summary {
    let rows = beside(PUBLISHED).join("rows.jsonl");
    let text = std::fs::read(rows).unwrap();
    let mut builder = SummaryBuilder::default();
    builder.read(text.as_slice(), None).unwrap();
    builder.finish(&Analysis::default()).unwrap()
}

fn check(mode: &str, metric: &str, expected: f64) {
    let summary = summary();
    let mode = summary.modes.find(mode).unwrap();
    let metric = mode.metrics.find(metric).unwrap();
    assert_eq!((metric.count, metric.median), (5, Some(expected)));
}

fn medians_are_those_of_the_data() {
    check("baseline", "latency_wall_ms", 80271.0);
    check("mcp", "latency_wall_ms", 34747.0);
    check("ghx", "latency_wall_ms", 30483.0);
    check("baseline", "tokens_active", 26673.0);
    check("mcp", "tokens_active", 28336.0);
    check("ghx", "tokens_active", 21667.0);
    check("baseline", "tool_calls_total", 10.0);
    check("mcp", "tool_calls_total", 5.0);
    check("ghx", "ghx.bash_commands", 2.0);
}

fn fifteen_of_fifteen_passed_and_the_interval_says_how_little_that_is() {
    for (_, mode) in summary().modes.iter() {
        let success = &mode.success;
        assert_eq!((success.passed, success.trials, success.void), (5, 5, 0));
        assert_eq!(success.rate, Some(1.0));
        assert!(success.ci95.unwrap()[0] < 0.6);
    }
}

fn a_cost_of_zero_is_unknown() {
    let summary = summary();
    for (_, mode) in summary.modes.iter() {
        assert!(mode.metrics.find("cost_total_usd").is_none());
        assert!(mode.cost_per_success.is_none());
    }
    let caution = |code: &str| {
        summary
            .cautions
            .iter()
            .find(|caution| caution.code.as_str() == code)
    };
    assert!(
        caution("unknown-cost")
            .unwrap()
            .text
            .starts_with("15 trials")
    );
    assert!(caution("single-scenario").is_some());
}

fn fewer_tokens_at_the_median_are_no_verdict_and_less_time_is_exploratory() {
    let summary = summary();
    let find = |mode: &str, metric: &str| -> &Comparison {
        let mut all = summary.comparisons.iter();
        all.find(|found| found.mode_a() == mode && found.metric() == metric)
            .unwrap()
    };
    let tokens = find("ghx", "tokens_active");
    assert_eq!(
        tokens.verdict(),
        Verdict::Inconclusive,
        "{}",
        sentence(tokens)
    );
    let time = find("ghx", "latency_wall_ms");
    assert_eq!(time.verdict(), Verdict::Lower, "{}", sentence(time));
    assert_eq!(find("mcp", "success").verdict(), Verdict::Inconclusive);
}
