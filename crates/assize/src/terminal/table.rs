//! The closing table: one line per mode.

use super::{plain, terminal_width};
use assize_contracts::{Metric, MetricKind, RowField};
use assize_report::{
    Comparison, MetricSummary, ModeSummary, Summary, comparison_cells, comparison_heading,
    duration, metric_cell,
};
use assize_stats::Statistic;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use std::borrow::Cow;

/// One line per mode; a missing measurement is "unknown", and a value known in part has a "≥".
pub(crate) fn summary_table(summary: &Summary) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
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
            let found = mode.metrics.find(&metric.name);
            right(together(plain(&metric_cell(
                metric,
                found,
                Statistic::Median,
            ))))
        };
        let median = |field| shown(&summary.catalog.of_field(field));
        let fixed = [
            Cell::new(plain(name)),
            Cell::new(together(success(mode))),
            right(bounded(time, |time| time.median)),
            right(bounded(time, |time| time.p90)),
            median(RowField::TokensTotal),
            median(RowField::CostTotal),
            median(RowField::ToolCalls),
        ];
        let further = declared.iter().map(|metric| shown(metric));
        table.add_row(fixed.into_iter().chain(further));
    }
    fit(&mut table, terminal_width());
    table
}

/// Makes a table as wide as there is room, breaking lines between words only: a column is never narrower than its longest word.
fn fit(table: &mut Table, width: Option<usize>) {
    let Some(width) = width else { return };
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    let mut longest: Vec<usize> = Vec::new();
    let header = table.header().into_iter();
    for row in header.chain(table.row_iter()) {
        for (column, cell) in row.cell_iter().enumerate() {
            let content = cell.content();
            let words = content.split_whitespace();
            let word = words.map(console::measure_text_width).max().unwrap_or(0);
            match longest.get_mut(column) {
                Some(known) => *known = word.max(*known),
                None => longest.push(word),
            }
        }
    }
    for (column, word) in table.column_iter_mut().zip(longest) {
        let padding = 2;
        let least = Width::Fixed(u16::try_from(word + padding).unwrap_or(u16::MAX));
        column.set_constraint(ColumnConstraint::LowerBoundary(least));
    }
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

/// Every metric of a pair of modes, with all its numbers: a table, or a few lines per metric where it would not fit.
pub(crate) fn comparison_table(pair: &[&Comparison], summary: &Summary) -> String {
    let heading = comparison_heading(pair.first().copied(), summary).map(|cell| plain(&cell));
    let rows = pair.iter().map(|comparison| {
        let cells = comparison_cells(comparison, summary);
        cells.iter().map(|cell| plain(cell)).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(&heading);
    table.add_rows(&rows);
    let table = table.to_string();
    let width = table.lines().map(console::measure_text_width).max();
    match terminal_width() {
        Some(room) if width > Some(room) => {
            let blocks = rows.iter().map(|row| block(&heading, row, room));
            blocks.collect::<Vec<_>>().join("\n")
        }
        _ => table,
    }
}

/// A metric with its verdict, and under it the rest of the row.
fn block(heading: &[String], row: &[String], room: usize) -> String {
    let [metric, between @ .., verdict] = row else {
        return String::new();
    };
    let mut lines = vec![format!("  {metric}: {verdict}")];
    let names = heading.iter().skip(1);
    let parts = names.zip(between).filter(|(_, value)| *value != "n/a");
    let mut line = String::from("   ");
    for part in parts.map(|(name, value)| format!(" {name} {value} ·")) {
        let length = console::measure_text_width(&line) + console::measure_text_width(&part);
        if length > room && line.trim() != "" {
            lines.push(std::mem::replace(&mut line, String::from("   ")));
        }
        line.push_str(&part);
    }
    lines.push(line);
    let lines = lines.iter().map(|line| line.trim_end_matches([' ', '·']));
    lines.collect::<Vec<_>>().join("\n")
}

/// A number stays with its sign where a terminal breaks lines.
fn together(text: String) -> String {
    match terminal_width() {
        Some(_) => text.replace(" %", "\u{a0}%").replace("≥ ", "≥\u{a0}"),
        None => text,
    }
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Where too many trials ran out of time, the time is only known to exceed the limit.
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
    let rate = success.words().unwrap_or_else(|| "unknown".to_owned());
    match success.void {
        0 => rate,
        void => format!("{rate}, {void} void"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_broken_however_narrow_it_is() {
        let words = [
            "Time (median)",
            "with-docs",
            "29 of 40 (72 %), 3 void",
            "unknown",
            "31.7k",
        ];
        for width in [40, 60, 80, 140] {
            let mut table = Table::new();
            table.load_style(presets::UTF8_HORIZONTAL_ONLY);
            table.set_header(words);
            table.add_row(words);
            fit(&mut table, Some(width));
            let text = table.to_string();
            for word in words.iter().flat_map(|text| text.split(' ')) {
                assert!(text.contains(word), "{word} at {width}\n{text}");
            }
            let widest = text.lines().map(console::measure_text_width).max();
            assert!(widest <= Some(width.max(60)), "{width}\n{text}");
        }
    }

    #[test]
    fn a_row_becomes_lines_that_fit() {
        let heading = ["Metric", "a", "b", "p", "Verdict"].map(str::to_owned);
        let row = ["tokens", "9089", "14.1k", "n/a", "better"].map(str::to_owned);
        let shown = block(&heading, &row, 14);
        assert_eq!(shown, "  tokens: better\n    a 9089\n    b 14.1k");
        assert_eq!(
            block(&heading, &row, 80),
            "  tokens: better\n    a 9089 · b 14.1k"
        );
    }
}
