//! The closing table: one line per mode.

use super::plain;
use assize_contracts::{Metric, MetricKind, RowField};
use assize_report::{
    Comparison, MetricSummary, ModeSummary, Summary, amount, comparison_cells, comparison_heading,
    duration, percent,
};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use std::borrow::Cow;

/// One line per mode; what nobody measured is "unknown".
pub(crate) fn summary_table(summary: &Summary) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if console::Term::stdout().features().is_attended() {
        table.set_width(console::Term::stdout().size().1.max(60));
    }
    let declared = declared_metrics(summary);
    let fixed = [
        "Mode",
        "Success",
        "Time (median)",
        "Time (p90)",
        "Tokens",
        "Cost",
        "Tool calls",
    ];
    let fixed = fixed.map(str::to_owned).into_iter();
    table.set_header(fixed.chain(declared.iter().map(|metric| plain(metric.label()))));
    for (name, mode) in summary.modes.iter() {
        let time = summary.field(mode, RowField::WallTime).1;
        let shown = |metric: &Metric| {
            let median = mode.metrics.find(&metric.name);
            let median = median.and_then(|found| found.median);
            right(known(median, |median| plain(&amount(metric, median))))
        };
        let median = |field| shown(&summary.catalog.of_field(field));
        let fixed = [
            Cell::new(plain(name)),
            Cell::new(success(mode)),
            right(bounded(time, |time| time.median)),
            right(bounded(time, |time| time.p90)),
            median(RowField::TokensTotal),
            median(RowField::CostTotal),
            median(RowField::ToolCalls),
        ];
        let further = declared.iter().map(|metric| shown(metric));
        table.add_row(fixed.into_iter().chain(further));
    }
    table
}

/// Metrics that the suite decides by and that have no column of their own.
fn declared_metrics(summary: &Summary) -> Vec<Cow<'_, Metric>> {
    let is_further = |metric: &Cow<'_, Metric>| {
        let is_measured = summary.catalog.contains(&metric.name);
        is_measured && metric.field().is_none() && metric.kind != MetricKind::Success
    };
    let declared = summary.primary.iter();
    let declared = declared.map(|name| summary.catalog.metric(name));
    declared.filter(is_further).collect()
}

/// Every metric of a pair of modes, with all its numbers.
pub(crate) fn comparison_table(pair: &[&Comparison], summary: &Summary) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    let heading = comparison_heading(pair.first().copied(), summary);
    table.set_header(heading.iter().map(|cell| plain(cell)));
    for comparison in pair {
        let cells = comparison_cells(comparison, summary);
        table.add_row(cells.iter().map(|cell| plain(cell)));
    }
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn known(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "unknown".to_owned(), show)
}

/// Where too many trials ran out of time, all that is known is that it takes longer than they were given.
fn bounded(time: Option<&MetricSummary>, of: fn(&MetricSummary) -> Option<f64>) -> String {
    match time.map(|time| (of(time), time.max)) {
        Some((Some(value), _)) => duration(value),
        Some((None, longest)) => format!("> {}", duration(longest)),
        None => "unknown".to_owned(),
    }
}

/// `18 of 20 (90 %)`, and how many of the trials taught nothing when some did.
fn success(mode: &ModeSummary) -> String {
    let success = &mode.success;
    let rate = match success.rate {
        None => "unknown".to_owned(),
        Some(rate) => format!(
            "{} of {} ({})",
            success.passed,
            success.trials,
            percent(rate)
        ),
    };
    match success.void {
        0 => rate,
        void => format!("{rate}, {void} void"),
    }
}
