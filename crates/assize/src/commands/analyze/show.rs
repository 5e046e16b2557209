//! Findings as people read them: session by session, then what they have in common.

use crate::terminal::{one_line, plain, print};
use assize_contracts::{AnalysisFinding, SessionAnalysisBundle};
use assize_report::quantity;
use assize_stats::Sample;
use comfy_table::{Cell, CellAlignment, Table, presets};
use console::style;
use std::collections::BTreeMap;

/// Rows beyond this are in `--json`.
const MOST_ROWS: usize = 8;

/// A line's length.
pub(super) const LONGEST: usize = 110;

pub(super) fn print_session(name: &str, bundle: &SessionAnalysisBundle) {
    print(style(plain(name)).bold().to_string());
    for (analyzer, result) in &bundle.results {
        let summary = one_line(&result.summary, LONGEST);
        print(format!("  {:<13} {summary}", plain(analyzer)));
        for (key, finding) in &result.findings {
            for line in lines(&plain(key), finding) {
                print(style(format!("    {line}")).dim().to_string());
            }
        }
    }
}

/// Lists and tables say something the summary does not.
fn lines(key: &str, finding: &AnalysisFinding) -> Vec<String> {
    match finding {
        AnalysisFinding::List { values } if !values.is_empty() => {
            let steps = one_line(&steps(values), LONGEST);
            vec![format!("{key}: {steps}")]
        }
        AnalysisFinding::Table { headers, rows } if !rows.is_empty() => {
            let mut lines = vec![format!("{key}:")];
            let table = table(headers, &rows[..rows.len().min(MOST_ROWS)]);
            lines.extend(table.lines().map(|line| format!("  {}", line.trim_end())));
            if rows.len() > MOST_ROWS {
                lines.push(format!("   and {} more", rows.len() - MOST_ROWS));
            }
            lines
        }
        _ => Vec::new(),
    }
}

/// Shows a step that is repeated in a row once.
fn steps(values: &[String]) -> String {
    let step = |same: &[String]| match same {
        [once] => once.clone(),
        [again, ..] => format!("{again} ×{}", same.len()),
        [] => String::new(),
    };
    let steps = values.chunk_by(|a, b| a == b).map(step);
    steps.collect::<Vec<_>>().join(" → ")
}

/// Columns below their titles; numbers are aligned on the right.
fn table(headers: &[String], rows: &[Vec<String>]) -> String {
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let cell = |text: &String| {
        let cell = Cell::new(one_line(text, LONGEST / 2));
        match is_number(text) {
            true => cell.set_alignment(CellAlignment::Right),
            false => cell,
        }
    };
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(headers.iter().map(|title| plain(title)));
    for row in rows {
        table.add_row(row.iter().map(cell));
    }
    table.to_string()
}

/// The numbers of all sessions, finding by finding.
#[derive(Default)]
pub(super) struct Overview {
    sessions: usize,
    numbers: BTreeMap<String, Numbers>,
}

#[derive(Default)]
struct Numbers {
    values: Vec<f64>,
    are_shares: bool,
}

impl Overview {
    pub(super) fn add(&mut self, bundle: &SessionAnalysisBundle) {
        self.sessions += 1;
        for (key, finding) in bundle.results.values().flat_map(|result| &result.findings) {
            let (value, is_share) = match finding {
                AnalysisFinding::Number { value, .. } => (value, false),
                AnalysisFinding::Ratio { value, .. } => (value, true),
                _ => continue,
            };
            let numbers = self.numbers.entry(key.clone()).or_default();
            numbers.values.push(value.value());
            numbers.are_shares = is_share;
        }
    }

    /// Prints typical values and ranges, where there is more than one session.
    pub(super) fn print(&self) {
        if self.sessions < 2 {
            return;
        }
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        let title = format!("{} sessions", self.sessions);
        table.set_header([&title, "known in", "median", "smallest", "largest"]);
        for (key, numbers) in &self.numbers {
            let Some(sample) = Sample::new(&numbers.values) else {
                continue;
            };
            let number = |value: f64| match numbers.are_shares {
                true => format!("{:.1} %", value * 100.0),
                false => quantity(value),
            };
            let shown = [sample.median(), sample.min(), sample.max()].map(number);
            let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
            let mut row = vec![Cell::new(plain(key)), right(sample.count().to_string())];
            row.extend(shown.map(right));
            table.add_row(row);
        }
        print(table.to_string());
    }
}
