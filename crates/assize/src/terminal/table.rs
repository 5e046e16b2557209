//! The closing table: one line per mode.

use super::plain;
use assize_report::{
    Comparison, MetricSummary, ModeSummary, Summary, comparison_cells, comparison_heading,
    duration, money, percent, quantity,
};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// One line per mode; what nobody measured is "unknown".
pub(crate) fn summary_table(summary: &Summary) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if console::Term::stdout().features().is_attended() {
        table.set_width(console::Term::stdout().size().1.max(60));
    }
    table.set_header([
        "Mode",
        "Success",
        "Time (median)",
        "Time (p90)",
        "Tokens",
        "Cost",
        "Tool calls",
    ]);
    for (name, mode) in summary.modes.iter() {
        let time = mode.metrics.find("latency_wall_ms");
        let median = |metric: &str| mode.metrics.find(metric).and_then(|metric| metric.median);
        table.add_row([
            Cell::new(plain(name)),
            Cell::new(success(mode)),
            right(bounded(time, |time| time.median)),
            right(bounded(time, |time| time.p90)),
            right(known(median("tokens_total"), quantity)),
            right(known(median("cost_total_usd"), money)),
            right(known(median("tool_calls_total"), quantity)),
        ]);
    }
    table
}

/// Every metric of a pair of modes, with all its numbers.
pub(crate) fn comparison_table(pair: &[Comparison], summary: &Summary) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    let heading = comparison_heading(pair.first(), summary);
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
