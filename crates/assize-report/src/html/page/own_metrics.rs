//! Numbers and texts of the suite's own, mode by mode.

use super::table::{MOST_ROWS, Table, left_out, name_cell, number, section, text};
use crate::Summary;
use crate::own_metrics::{NUMBERS, numbers, texts};
use maud::{Markup, html};

pub(super) fn own_metrics(summary: &Summary) -> Markup {
    let (lines, values) = (numbers(summary), texts(summary));
    if lines.is_empty() && values.is_empty() {
        return Markup::default();
    }
    let mut measured = Table::new("Metrics of the suite in every mode", &NUMBERS);
    for line in lines.iter().take(MOST_ROWS) {
        let names = [text(&line.metric.title()), name_cell(line.mode, line.name)];
        let cells = line.cells();
        let cells = cells.iter().map(|cell| number(cell));
        measured.row(names.into_iter().chain(cells).collect());
    }
    let mut heading = vec!["Metric", "Value"];
    heading.extend(summary.modes.iter().map(|(name, _)| name));
    let mut told = Table::new("How often each text came, in trials", &heading);
    for (title, value, counts) in values.iter().take(MOST_ROWS) {
        let counts = counts.iter().map(|count| match count {
            Some(count) => number(&count.to_string()),
            None => number("unknown"),
        });
        told.row(
            [text(title), text(value)]
                .into_iter()
                .chain(counts)
                .collect(),
        );
    }
    let content = html! {
        @if !measured.is_empty() { (measured.markup()) }
        (left_out(lines.len(), "numbers"))
        @if !told.is_empty() { (told.markup()) }
        (left_out(values.len(), "texts"))
    };
    section("own-metrics", "Metrics of the suite", content)
}
