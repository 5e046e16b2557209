//! A comparison as the cells of a table, the same in the terminal and on pages.

use crate::caution::count;
use crate::comparison::{headline, level_percent};
use crate::words::{signed, verdict_word};
use crate::{Comparison, MetricResult, MetricSummary, Summary, amount, percent};
use assize_contracts::Metric;
use assize_stats::{MetricComparison, Scope, Statistic, SuccessComparison, Verdict};

/// The column headings of a table of comparisons.
pub fn comparison_heading(first: Option<&Comparison>, summary: &Summary) -> [String; 10] {
    let mode = |of: fn(&Comparison) -> &str| first.map_or("", of).to_owned();
    [
        "Metric".to_owned(),
        mode(Comparison::mode_a),
        mode(Comparison::mode_b),
        "Difference".to_owned(),
        format!("{} interval", level_percent(summary.confidence)),
        "Effect".to_owned(),
        "p".to_owned(),
        "Adjusted p".to_owned(),
        "n".to_owned(),
        "Verdict".to_owned(),
    ]
}

/// One line of a table. A number that the data do not carry is `n/a`.
pub fn comparison_cells(comparison: &Comparison, summary: &Summary) -> Vec<String> {
    match comparison {
        Comparison::Success(found) => success_row(found),
        Comparison::Metric(found) => metric_row(found, summary),
    }
}

fn success_row(found: &SuccessComparison) -> Vec<String> {
    let points = |points: f64| format!("{} points", signed(points));
    vec![
        "success".to_owned(),
        found.rate_a.map_or_else(not_available, percent),
        found.rate_b.map_or_else(not_available, percent),
        found.difference_pp.map_or_else(not_available, points),
        found.ci95.map_or_else(not_available, |[low, high]| {
            format!("{} to {} points", signed(low), signed(high))
        }),
        not_available(),
        p_cell(found.p_value),
        p_cell(found.p_adjusted),
        count(found.scenarios as u64, "scenario", "scenarios"),
        word(found.verdict, found.reason),
    ]
}

fn metric_row(found: &MetricResult, summary: &Summary) -> Vec<String> {
    if let Some(cells) = special_row(found, summary) {
        return cells;
    }
    let headline = headline(found);
    let change = |value: f64| match headline.is_some_and(|shown| shown.is_ratio) {
        true => format!("{:+.1} %", -value),
        false => {
            let sign = if value < 0.0 { "-" } else { "+" };
            format!("{sign}{}", amount(&found.definition, value.abs()))
        }
    };
    // A reduction counts downwards; as a change its ends swap.
    let interval = headline
        .filter(|shown| !shown.is_degenerate())
        .map(|shown| match shown.is_ratio {
            true => [shown.interval[1], shown.interval[0]],
            false => shown.interval,
        });
    let p = decisive_p(found);
    let effect = match found.effect_defined {
        true => format!(
            "{:.2} ({})",
            found.effect_size,
            format!("{:?}", found.effect_magnitude).to_lowercase()
        ),
        false => not_available(),
    };
    vec![
        found.definition.title(),
        median(&found.mode_a, found, summary),
        median(&found.mode_b, found, summary),
        headline.map_or_else(not_available, |shown| change(shown.value)),
        interval.map_or_else(not_available, |[low, high]| {
            format!("{} to {}", change(low), change(high))
        }),
        effect,
        p_cell(p),
        p_cell(found.p_adjusted),
        format!("{} / {}", found.n.a, found.n.b),
        word(found.verdict, found.reason),
    ]
}

/// `output tokens (tokens_output) 250`: a metric that never varied, with its value.
pub(crate) fn constant_value(comparison: &Comparison, summary: &Summary) -> String {
    let title = comparison.definition().title();
    match comparison {
        Comparison::Success(_) => title,
        Comparison::Metric(found) => {
            format!("{title} {}", median(&found.mode_a, found, summary))
        }
    }
}

fn median(mode: &str, found: &MetricResult, summary: &Summary) -> String {
    let mode = summary.modes.find(mode);
    let metric = mode.and_then(|mode| mode.metrics.find(&found.metric));
    metric_cell(&found.definition, metric, Statistic::Median)
}

/// The p-value of the number that is shown.
pub(crate) fn decisive_p(found: &MetricComparison) -> Option<f64> {
    match (&found.limited, &found.count, found.scope) {
        (Some(limited), ..) => limited.comparison.p_value,
        (_, Some(count), _) => count.p_value,
        (_, _, Scope::Population) => found.paired.as_ref()?.p_value,
        (_, _, Scope::Suite) => found.suite.as_ref()?.p_value,
    }
}

/// The line of a metric with cut-off runs, or of rare counts.
fn special_row(found: &MetricResult, summary: &Summary) -> Option<Vec<String>> {
    let (values, difference, interval) = if let Some(limited) = &found.limited {
        let share = |score: f64| format!("{:.0} %", 50.0 * (1.0 + score));
        let limited = &limited.comparison;
        let ends = limited.lower.zip(limited.upper);
        (
            [
                median(&found.mode_a, found, summary),
                median(&found.mode_b, found, summary),
            ],
            limited
                .score
                .map(|score| format!("more in {} of pairs", share(score))),
            ends.map(|(low, high)| format!("{} to {}", share(low), share(high))),
        )
    } else {
        let count = found.count.as_ref()?;
        let per_run = |rate: Option<f64>| {
            rate.map_or_else(not_available, |rate| format!("{rate:.2} per run"))
        };
        let ends = count.lower.zip(count.upper);
        (
            [per_run(count.rate_a), per_run(count.rate_b)],
            count.estimate.map(|difference| format!("{difference:+.2}")),
            ends.map(|(low, high)| format!("{low:+.2} to {high:+.2}")),
        )
    };
    let [a, b] = values;
    Some(vec![
        found.definition.title(),
        a,
        b,
        difference.unwrap_or_else(not_available),
        interval.unwrap_or_else(not_available),
        not_available(),
        p_cell(decisive_p(found)),
        p_cell(found.p_adjusted),
        format!("{} / {}", found.n.a, found.n.b),
        word(found.verdict, found.reason),
    ])
}

/// A number of a metric; where trials ran out of time, or are known in part, it may only be known to be longer or more than that.
pub fn metric_cell(
    metric: &Metric,
    summary: Option<&MetricSummary>,
    statistic: Statistic,
) -> String {
    let Some(summary) = summary else {
        return "unknown".to_owned();
    };
    match (summary.statistic(statistic), summary.least(statistic)) {
        (Some(value), _) => amount(metric, value),
        (None, Some(least)) => format!("≥ {}", amount(metric, least)),
        (None, None) if summary.censored > 0 => format!("> {}", amount(metric, summary.max)),
        (None, None) => "unknown".to_owned(),
    }
}

fn word(verdict: Verdict, reason: Option<&str>) -> String {
    let word = verdict_word(verdict);
    match reason {
        Some("no direction is declared for this metric") => format!("{word}: no direction"),
        Some(reason) => format!("{word}: {reason}"),
        None => word.to_owned(),
    }
}

fn p_cell(p: Option<f64>) -> String {
    crate::p_value(p).trim_start_matches("p ").to_owned()
}

pub(crate) fn not_available() -> String {
    "n/a".to_owned()
}
