//! `analysis.md`: what analyzers found, the modes side by side, and only where they differ.

use crate::escape::markdown as safe;
use crate::markdown::Table;
use crate::{Summary, duration, percent, quantity};
use assize_contracts::{AnalysisFinding, AnalysisResult};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most different words, items or rows of one finding that are listed in one mode.
const MOST_WORDS: usize = 300;

/// Of those, the ones that are shown.
const MOST_SHOWN: usize = 20;

/// Characters of a word, an item or a cell.
const LONGEST: usize = 120;

/// The findings in the sessions of each mode, while they are collected.
#[derive(Debug)]
pub struct FindingsPage<'a> {
    summary: &'a Summary,
    /// Sessions by mode.
    sessions: Vec<u64>,
    /// By analyzer and finding; then by mode.
    analyzers: BTreeMap<String, BTreeMap<String, Vec<Gathered>>>,
}

/// One finding in all sessions of one mode.
#[derive(Debug, Default)]
struct Gathered {
    /// Sessions that have it.
    sessions: u64,
    numbers: Vec<f64>,
    unit: String,
    is_ratio: bool,
    words: Tally,
    items: Tally,
    rows: BTreeMap<String, RowTally>,
}

/// The number of sessions that have a word.
type Tally = BTreeMap<String, u64>;

/// A row of a table, known by its first cell.
#[derive(Debug, Default)]
struct RowTally {
    sessions: u64,
    cells: Vec<Cell>,
}

/// A further cell of that row, under its heading.
#[derive(Debug, Default)]
struct Cell {
    heading: String,
    numbers: Vec<f64>,
    words: Tally,
}

impl<'a> FindingsPage<'a> {
    /// An empty page for a summary.
    pub fn new(summary: &'a Summary) -> Self {
        Self {
            summary,
            sessions: vec![0; summary.modes.len()],
            analyzers: BTreeMap::new(),
        }
    }

    /// Adds what analyzers found in one session of the mode in this place of the summary.
    pub fn add(&mut self, mode: usize, results: &BTreeMap<String, AnalysisResult>) {
        let modes = self.sessions.len();
        let Some(sessions) = self.sessions.get_mut(mode) else {
            return;
        };
        *sessions += 1;
        for (analyzer, result) in results {
            let findings = self.analyzers.entry(analyzer.clone()).or_default();
            for (key, finding) in &result.findings {
                let by_mode = findings
                    .entry(key.clone())
                    .or_insert_with(|| (0..modes).map(|_| Gathered::default()).collect());
                by_mode[mode].add(finding);
            }
        }
    }

    /// True when nothing was found in any session.
    pub fn is_empty(&self) -> bool {
        self.analyzers.is_empty()
    }

    /// The page under this title.
    pub fn render(&self, title: &str) -> String {
        let mut page = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut page, title);
        page
    }

    fn write(&self, page: &mut String, title: &str) -> std::fmt::Result {
        writeln!(page, "# {}: how the modes work\n", safe(title))?;
        for caution in &self.summary.cautions {
            if [crate::CautionCode::Simulated, crate::CautionCode::Replayed].contains(&caution.code)
            {
                writeln!(page, "> {}\n", safe(&caution.text))?;
            }
        }
        let sessions = self.summary.modes.iter().zip(&self.sessions);
        let sessions = sessions.map(|((label, _), count)| format!("{} {count}", safe(label)));
        writeln!(
            page,
            "Sessions with a trace: {}. Numbers are medians over them, words the most common ones. Differences here are \
             described, not judged: the verdict is in report.md.\n",
            sessions.collect::<Vec<_>>().join(", ")
        )?;
        for (analyzer, findings) in &self.analyzers {
            writeln!(page, "## {}\n", safe(analyzer))?;
            self.write_analyzer(page, findings)?;
        }
        Ok(())
    }

    fn write_analyzer(
        &self,
        page: &mut String,
        findings: &BTreeMap<String, Vec<Gathered>>,
    ) -> std::fmt::Result {
        let mut table = self.table("Finding");
        let mut same = Vec::new();
        for (key, by_mode) in findings {
            let cells: Vec<String> = by_mode.iter().map(Gathered::cell).collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            match differ(&cells) {
                true => table.row(row(key, cells)),
                false => same.push(format!("{} ({})", safe(key), safe(&cells[0]))),
            }
        }
        table.write(page)?;
        for (key, by_mode) in findings {
            for folded in [Folded::items(by_mode), Folded::rows(by_mode)] {
                if !folded.rows.is_empty() {
                    self.write_folded(page, key, folded)?;
                }
            }
        }
        if !same.is_empty() {
            writeln!(page, "The same in every mode: {}.\n", same.join("; "))?;
        }
        Ok(())
    }

    fn write_folded(&self, page: &mut String, key: &str, folded: Folded) -> std::fmt::Result {
        writeln!(page, "<details><summary>{}</summary>\n", safe(key))?;
        let mut table = self.table(&folded.heading);
        let left_out = folded.rows.len().saturating_sub(MOST_SHOWN);
        for (name, cells) in folded.rows.into_iter().take(MOST_SHOWN) {
            table.row(row(&name, cells));
        }
        table.write(page)?;
        if left_out > 0 {
            writeln!(page, "{left_out} more are not shown.\n")?;
        }
        writeln!(page, "</details>\n")
    }

    /// An empty table with a column for every mode.
    fn table(&self, first: &str) -> Table {
        let labels: Vec<String> = self
            .summary
            .modes
            .iter()
            .map(|(label, _)| safe(label))
            .collect();
        let mut heading = vec![first];
        heading.extend(labels.iter().map(String::as_str));
        Table::new("", &heading)
    }
}

/// A list or a table of several modes side by side, the most frequent rows first.
struct Folded {
    heading: String,
    rows: Vec<(String, Vec<String>)>,
}

impl Folded {
    fn items(by_mode: &[Gathered]) -> Self {
        let cell = |gathered: &Gathered, name: &str| match gathered.items.get(name) {
            Some(count) => format!("{count} of {}", gathered.sessions),
            None => String::new(),
        };
        Self::new(
            "Sessions with",
            by_mode,
            |gathered| &gathered.items,
            |count| *count,
            cell,
        )
    }

    fn rows(by_mode: &[Gathered]) -> Self {
        let cell = |gathered: &Gathered, name: &str| {
            let row = gathered.rows.get(name);
            row.map_or_else(String::new, |row| row.cell(gathered.sessions))
        };
        Self::new(
            "Row",
            by_mode,
            |gathered| &gathered.rows,
            |row| row.sessions,
            cell,
        )
    }

    fn new<T>(
        heading: &str,
        by_mode: &[Gathered],
        of: impl Fn(&Gathered) -> &BTreeMap<String, T>,
        sessions: impl Fn(&T) -> u64,
        cell: impl Fn(&Gathered, &str) -> String,
    ) -> Self {
        let mut names: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, found) in by_mode.iter().flat_map(&of) {
            *names.entry(name).or_default() += sessions(found);
        }
        let mut names: Vec<(&str, u64)> = names.into_iter().collect();
        names.sort_by_key(|(_, sessions)| std::cmp::Reverse(*sessions));
        let row = |(name, _): (&str, u64)| {
            let cells = by_mode.iter().map(|gathered| cell(gathered, name));
            (name.to_owned(), cells.collect())
        };
        Self {
            heading: heading.to_owned(),
            rows: names.into_iter().map(row).collect(),
        }
    }
}

impl Gathered {
    fn add(&mut self, finding: &AnalysisFinding) {
        self.sessions += 1;
        match finding {
            AnalysisFinding::Number { value, unit } => {
                self.numbers.push(value.value());
                self.unit.clone_from(unit);
            }
            AnalysisFinding::Ratio { value, .. } => {
                self.numbers.push(value.value());
                self.is_ratio = true;
            }
            AnalysisFinding::String { value } => count(&mut self.words, value),
            AnalysisFinding::List { values } => {
                let mut once: Vec<&String> = values.iter().collect();
                once.sort_unstable();
                once.dedup();
                once.into_iter()
                    .for_each(|value| count(&mut self.items, value));
            }
            AnalysisFinding::Table { headers, rows } => self.add_table(headers, rows),
        }
    }

    fn add_table(&mut self, headers: &[String], rows: &[Vec<String>]) {
        for row in rows {
            let Some((first, rest)) = row.split_first() else {
                continue;
            };
            let name = short(first);
            if self.rows.len() >= MOST_WORDS && !self.rows.contains_key(&name) {
                continue;
            }
            let tally = self.rows.entry(name).or_default();
            tally.sessions += 1;
            for (place, cell) in rest.iter().enumerate() {
                if tally.cells.len() <= place {
                    tally.cells.push(Cell {
                        heading: headers.get(place + 1).cloned().unwrap_or_default(),
                        ..Cell::default()
                    });
                }
                tally.cells[place].add(cell);
            }
        }
    }

    /// The finding in a few words; nothing where lists and tables say it.
    fn cell(&self) -> String {
        match (median(&self.numbers), self.is_ratio) {
            (Some(value), true) => percent(value),
            (Some(value), false) if self.unit == "ms" => duration(value),
            (Some(value), false) => format!("{} {}", quantity(value), self.unit)
                .trim_end()
                .to_owned(),
            (None, _) => most_common(&self.words, self.sessions),
        }
    }
}

impl RowTally {
    fn cell(&self, sessions: u64) -> String {
        let cells = self.cells.iter().map(|cell| {
            let value = match median(&cell.numbers) {
                Some(value) => quantity(value),
                None => most_common(&cell.words, self.sessions),
            };
            format!("{} {value}", cell.heading)
        });
        let cells: Vec<String> = cells.filter(|cell| !cell.ends_with(' ')).collect();
        let often = match self.sessions == sessions {
            true => String::new(),
            false => format!(" (in {} of {sessions})", self.sessions),
        };
        format!("{}{often}", cells.join(", "))
    }
}

impl Cell {
    fn add(&mut self, text: &str) {
        match text.trim_end_matches('%').trim().parse::<f64>() {
            Ok(number) if number.is_finite() => self.numbers.push(number),
            _ if text.is_empty() => {}
            _ => count(&mut self.words, text),
        }
    }
}

fn count(tally: &mut Tally, word: &str) {
    let word = short(word);
    if tally.len() < MOST_WORDS || tally.contains_key(&word) {
        *tally.entry(word).or_default() += 1;
    }
}

fn most_common(words: &Tally, sessions: u64) -> String {
    let mut words: Vec<(&String, &u64)> = words.iter().collect();
    words.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown = words
        .iter()
        .take(3)
        .map(|(word, count)| match **count == sessions {
            true => (*word).clone(),
            false => format!("{word} ({count} of {sessions})"),
        });
    shown.collect::<Vec<_>>().join(", ")
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len().checked_sub(1)?;
    Some(sorted[middle / 2] / 2.0 + sorted[middle.div_ceil(2)] / 2.0)
}

fn differ(cells: &[String]) -> bool {
    cells.len() == 1 || cells.windows(2).any(|pair| pair[0] != pair[1])
}

fn row(name: &str, cells: Vec<String>) -> Vec<String> {
    let shown = |cell: &String| match cell.is_empty() {
        true => "–".to_owned(),
        false => safe(cell),
    };
    std::iter::once(safe(name))
        .chain(cells.iter().map(shown))
        .collect()
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Analysis, Row, SummaryBuilder};
    use serde_json::json;

    fn summary() -> Summary {
        let mut builder = SummaryBuilder::default();
        for mode in ["plain", "docs"] {
            let row = json!({"scenarioId": "s", "mode": mode, "iteration": 0, "success": true})
                .to_string();
            builder.add(&Row::parse(row.as_bytes()).unwrap(), None);
        }
        builder.finish(&Analysis::default()).unwrap()
    }

    fn results(calls: u64, plan: &str, tool: &str) -> BTreeMap<String, AnalysisResult> {
        let findings = json!({
            "calls": {"type": "number", "value": calls, "unit": "calls"},
            "share": {"type": "ratio", "value": 0.5, "label": "a / b"},
            "plan": {"type": "string", "value": plan},
            "used": {"type": "list", "values": [tool, tool, "read"]},
            "by_tool": {"type": "table", "headers": ["tool", "calls", "how"], "rows": [[tool, calls.to_string(), "<b>|x|"]]},
        });
        serde_json::from_value(json!({
            "steps": {"analyzer": "steps", "findings": findings, "summary": ""}
        }))
        .unwrap()
    }

    #[test]
    fn modes_stand_side_by_side_and_what_is_the_same_is_said_once() {
        let summary = summary();
        let mut page = FindingsPage::new(&summary);
        assert!(page.is_empty());
        for (mode, calls, plan, tool) in [
            (0, 2, "top-down", "bash"),
            (0, 4, "top-down", "bash"),
            (1, 7, "search", "edit"),
        ] {
            page.add(mode, &results(calls, plan, tool));
        }
        let text = page.render("t");
        let cells = |name: &str| -> Vec<&str> {
            let line = text
                .lines()
                .find(|line| line.starts_with(&format!("| {name} ")))
                .unwrap();
            line.trim_matches('|').split('|').map(str::trim).collect()
        };
        assert_eq!(cells("calls"), ["calls", "3 calls", "7 calls"]);
        assert_eq!(cells("plan"), ["plan", "top-down", "search"]);
        assert!(cells("edit")[2].starts_with("calls 7, how"), "{text}");
        assert_eq!(cells("read"), ["read", "2 of 2", "1 of 1"]);
        assert!(text.contains("<details><summary>used</summary>"));
        assert!(
            text.contains("The same in every mode: share (50 %)."),
            "{text}"
        );
        assert!(!text.contains("<b>"), "{text}");
    }
}
