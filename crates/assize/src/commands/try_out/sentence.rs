//! One clear sentence per metric and pair of commands: which is better and by how much, or that nobody can tell.

use super::measured::{CommandRuns, Measured};
use anyhow::Result;
use assize_stats::{
    CompareOptions, Direction, Group, Metric, MetricComparison, Statistic, SuccessCell,
    SuccessComparison, SuiteSummary, Verdict, compare_groups,
};

const SCENARIO: Option<&str> = Some("prompt");

/// Every command against the first.
pub(super) fn sentences(measured: &Measured) -> Result<Vec<String>> {
    let commands = &measured.commands;
    let success: Vec<SuccessCell<'_>> = commands.iter().map(cell).collect();
    let metrics = [
        metric("time", commands, |command| &command.wall_ms),
        metric("tokens", commands, |command| &command.tokens),
        metric("cost", commands, |command| &command.cost_usd),
    ];
    // What nobody measured needs no sentence.
    let metrics: Vec<Metric<'_>> = metrics
        .into_iter()
        .filter(|metric| metric.groups.iter().any(|group| !group.values.is_empty()))
        .collect();
    let options = CompareOptions {
        baseline: commands.first().map(|command| command.name.as_str()),
        success_is_primary: true,
        ..CompareOptions::default()
    };
    let comparisons = compare_groups(&metrics, &success, &options)?;
    let counted = |name: &str| {
        let command = commands.iter().find(|command| command.name == name);
        command.map_or_else(String::new, |command| {
            format!("{} of {}", command.passed, command.passed + command.failed)
        })
    };
    let mut sentences: Vec<String> = comparisons.metrics.iter().map(of_metric).collect();
    sentences.extend(comparisons.success.iter().map(|comparison| {
        of_success(
            comparison,
            &counted(&comparison.mode_a),
            &counted(&comparison.mode_b),
        )
    }));
    Ok(sentences)
}

fn cell(command: &CommandRuns) -> SuccessCell<'_> {
    SuccessCell {
        mode: &command.name,
        scenario: SCENARIO,
        passed: command.passed,
        failed: command.failed,
        void: command.void,
    }
}

fn metric<'a>(
    name: &'static str,
    commands: &'a [CommandRuns],
    values: impl Fn(&'a CommandRuns) -> &'a Vec<f64>,
) -> Metric<'a> {
    let group = |command: &'a CommandRuns| Group {
        mode: &command.name,
        scenario: SCENARIO,
        values: values(command),
    };
    Metric {
        name,
        direction: Some(Direction::Lower),
        statistic: Statistic::Mean,
        is_primary: true,
        groups: commands.iter().map(group).collect(),
    }
}

/// How many times B is A, with its interval.
#[derive(Clone, Copy)]
struct Factor {
    value: f64,
    low: f64,
    high: f64,
}

impl Factor {
    /// `None` where there is no ratio, or an end of it is beyond all bounds.
    fn of(suite: &SuiteSummary) -> Option<Self> {
        let times = |reduction: f64| 1.0 / (1.0 - reduction / 100.0);
        let factor = Self {
            value: times(suite.reduction_pct?),
            low: times(suite.ci95[0]),
            high: times(suite.ci95[1]),
        };
        [factor.value, factor.low, factor.high]
            .into_iter()
            .all(|number| number.is_finite() && number > 0.0)
            .then_some(factor)
    }

    fn inverted(self) -> Self {
        Self {
            value: 1.0 / self.value,
            low: 1.0 / self.high,
            high: 1.0 / self.low,
        }
    }
}

fn of_metric(comparison: &MetricComparison) -> String {
    let MetricComparison {
        mode_a,
        mode_b,
        metric,
        ..
    } = comparison;
    let question = match metric.as_str() {
        "time" => "which is faster",
        "tokens" => "which uses fewer tokens",
        _ => "which costs less",
    };
    let factor = comparison.suite.as_ref().and_then(Factor::of);
    match (comparison.verdict, factor) {
        (Verdict::Better, Some(factor)) => claim(metric, mode_a, mode_b, factor),
        (Verdict::Worse, Some(factor)) => claim(metric, mode_b, mode_a, factor.inverted()),
        (_, Some(factor)) => format!(
            "cannot tell {question}: `{mode_a}` may be anything from {} to {} times as {} as `{mode_b}`",
            times(factor.low),
            times(factor.high),
            word(metric)
        ),
        (_, None) => format!(
            "cannot tell {question}: {}",
            comparison.reason.unwrap_or("too few runs")
        ),
    }
}

fn claim(metric: &str, better: &str, worse: &str, Factor { value, low, high }: Factor) -> String {
    format!(
        "`{better}` is {} times as {} as `{worse}` (95 % interval {} to {})",
        times(value),
        word(metric),
        times(low),
        times(high)
    )
}

fn word(metric: &str) -> &'static str {
    match metric {
        "time" => "fast",
        "tokens" => "sparing with tokens",
        _ => "cheap",
    }
}

fn times(factor: f64) -> String {
    if factor < 100.0 {
        format!("{factor:.2}")
    } else {
        format!("{factor:.0}")
    }
}

fn of_success(comparison: &SuccessComparison, count_a: &str, count_b: &str) -> String {
    let SuccessComparison { mode_a, mode_b, .. } = comparison;
    let counts = format!("`{mode_a}` {count_a}, `{mode_b}` {count_b}");
    let (Some(points), Some([low, high])) = (comparison.difference_pp, comparison.ci95) else {
        return format!("cannot tell which succeeds more often: {counts}");
    };
    let is_certain = |rate: Option<f64>| rate == Some(0.0) || rate == Some(1.0);
    match comparison.verdict {
        _ if points == 0.0 && is_certain(comparison.rate_a) => format!(
            "both succeed equally often: {counts} (the rates may still differ by up to {:.0} points)",
            high.max(-low)
        ),
        Verdict::Better => format!(
            "`{mode_a}` succeeds {points:.0} points more often than `{mode_b}` (95 % interval {low:.0} to {high:.0}): {counts}"
        ),
        Verdict::Worse => format!(
            "`{mode_b}` succeeds {:.0} points more often than `{mode_a}` (95 % interval {:.0} to {:.0}): {counts}",
            -points, -high, -low
        ),
        _ => format!(
            "cannot tell which succeeds more often: {counts} (the difference may be {low:+.0} to {high:+.0} points)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(name: &str, wall_ms: &[f64], passed: u64) -> CommandRuns {
        CommandRuns {
            name: name.to_owned(),
            passed,
            failed: wall_ms.len() as u64 - passed,
            wall_ms: wall_ms.to_vec(),
            ..CommandRuns::default()
        }
    }

    fn said(a: CommandRuns, b: CommandRuns) -> Vec<String> {
        sentences(&Measured {
            commands: vec![a, b],
        })
        .unwrap()
    }

    #[test]
    fn the_faster_one_is_named_first_wherever_it_stands() {
        let slow = [200.0, 204.0, 202.0, 206.0, 201.0, 203.0];
        let fast = [100.0, 102.0, 101.0, 103.0, 100.5, 101.5];
        let expected = "`fast` is 2.00 times as fast as `slow` (95 % interval 1.97 to 2.03)";
        assert_eq!(
            said(runs("slow", &slow, 6), runs("fast", &fast, 6))[0],
            expected
        );
        assert_eq!(
            said(runs("fast", &fast, 6), runs("slow", &slow, 6))[0],
            expected
        );
    }

    #[test]
    fn noise_is_not_turned_into_a_claim() {
        let (one, two) = ([100.0, 140.0, 90.0, 120.0], [110.0, 95.0, 130.0, 105.0]);
        let said = said(runs("one", &one, 4), runs("two", &two, 4));
        assert!(
            said[0].starts_with("cannot tell which is faster: `two` may be anything from"),
            "{said:?}"
        );
        assert!(
            said[1].starts_with(
                "both succeed equally often: `two` 4 of 4, `one` 4 of 4 (the rates may"
            ),
            "{said:?}"
        );
    }

    #[test]
    fn one_run_each_tells_nothing() {
        let said = said(runs("one", &[100.0], 1), runs("two", &[50.0], 0));
        assert_eq!(said[0], "cannot tell which is faster: too few runs");
    }

    #[test]
    fn a_clear_difference_in_success_is_said() {
        let times = [
            100.0, 101.0, 102.0, 99.0, 98.0, 100.0, 101.0, 102.0, 99.0, 98.0,
        ];
        let said = said(runs("bad", &times, 0), runs("good", &times, 10));
        assert!(
            said[1].starts_with("`good` succeeds 100 points more often than `bad`"),
            "{said:?}"
        );
    }
}
