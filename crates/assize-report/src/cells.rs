//! A comparison as the cells of a table, the same in the terminal and on pages.

use crate::caution::count;
use crate::comparison::{headline, level_percent};
use crate::words::metric_name;
use crate::{Comparison, MetricSummary, Summary, amount, duration, percent};
use assize_stats::{MetricComparison, SuccessComparison, Verdict};

/// What the cells of a comparison are called.
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
    let points = |points: f64| format!("{points:+.0} points");
    vec![
        "success".to_owned(),
        found.rate_a.map_or_else(not_available, percent),
        found.rate_b.map_or_else(not_available, percent),
        found.difference_pp.map_or_else(not_available, points),
        found.ci95.map_or_else(not_available, |[low, high]| {
            format!("{low:+.0} to {high:+.0} points")
        }),
        not_available(),
        p_cell(found.p_value),
        p_cell(found.p_adjusted),
        count(found.scenarios as u64, "scenario", "scenarios"),
        word(found.verdict, found.reason),
    ]
}

fn metric_row(found: &MetricComparison, summary: &Summary) -> Vec<String> {
    let median = |mode: &str| {
        let mode = summary.modes.find(mode);
        shown(
            &found.metric,
            mode.and_then(|mode| mode.metrics.find(&found.metric)),
            |metric| metric.median,
        )
    };
    let headline = headline(found);
    let change = |value: f64| match headline.is_some_and(|shown| shown.is_ratio) {
        true => format!("{:+.1} %", -value),
        false => {
            let sign = if value < 0.0 { "-" } else { "+" };
            format!("{sign}{}", amount(&found.metric, value.abs()))
        }
    };
    // A reduction counts downwards; as a change its ends swap.
    let interval = headline
        .filter(|shown| !shown.is_degenerate())
        .map(|shown| match shown.is_ratio {
            true => [shown.interval[1], shown.interval[0]],
            false => shown.interval,
        });
    let p = found
        .paired
        .as_ref()
        .map_or(Some(found.p_value), |paired| paired.p_value);
    let effect = match found.effect_defined {
        true => format!(
            "{:.2} ({})",
            found.effect_size,
            format!("{:?}", found.effect_magnitude).to_lowercase()
        ),
        false => not_available(),
    };
    vec![
        metric_name(&found.metric),
        median(&found.mode_a),
        median(&found.mode_b),
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

/// A number of a metric; where trials ran out of time it may only be known to be longer than they were given.
pub(crate) fn shown(
    metric: &str,
    summary: Option<&MetricSummary>,
    of: impl Fn(&MetricSummary) -> Option<f64>,
) -> String {
    match summary.map(|summary| (of(summary), summary)) {
        Some((Some(value), _)) => amount(metric, value),
        Some((None, summary)) if summary.censored > 0 => format!("> {}", duration(summary.max)),
        _ => "unknown".to_owned(),
    }
}

fn word(verdict: Verdict, reason: Option<&str>) -> String {
    let word = match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "cannot tell",
        Verdict::NotComparable => "not comparable",
    };
    match reason {
        Some("no direction is declared for this metric") => format!("{word}: no direction"),
        Some(reason) => format!("{word}: {reason}"),
        None => word.to_owned(),
    }
}

fn p_cell(p: Option<f64>) -> String {
    crate::p_value(p)
        .trim_start_matches("p ")
        .trim_start_matches("= ")
        .to_owned()
}

pub(crate) fn not_available() -> String {
    "n/a".to_owned()
}
