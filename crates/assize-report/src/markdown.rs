//! `report.md`: the verdict first, then what it rests on. Readable raw and on GitHub.

use crate::cells::{
    comparison_cells, comparison_heading, constant_value, metric_cell, not_available,
};
use crate::comparison::{headline, level_percent};
use crate::efficiency;
use crate::escape::markdown as safe;
use crate::glossary::GLOSSARY;
use crate::job_summary::gate_section;
use crate::own_metrics;
use crate::reason::MOST_LISTED;
use crate::skills;
use crate::summary::TYPICAL_TASKS;
use crate::wall;
use crate::words::{EXPLORATORY, closing_line, scopes_note, sentence};
use crate::{Comparison, EFFECTS_NOTE, ModeSummary, Summary, effect_sentence, percent};
use assize_contracts::RowField;
use assize_stats::{Statistic, Verdict};
use std::fmt::Write;

/// The page for a summary, under this title.
pub fn render_markdown(summary: &Summary, title: &str) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, summary, title);
    page
}

fn write_page(page: &mut String, summary: &Summary, title: &str) -> std::fmt::Result {
    writeln!(page, "# {}\n", safe(title))?;
    if let Some(line) = wall::headline(&summary.walls) {
        writeln!(page, "{}\n", safe(&line))?;
    }
    write_verdict(page, summary)?;
    page.push_str(&gate_section(summary, 2));
    write_glance(page, summary)?;
    write_comparisons(page, summary)?;
    write_skills(page, summary)?;
    write_own_metrics(page, summary)?;
    write_scenarios(page, summary)?;
    write_checks(page, summary)?;
    write_labels(page, summary)?;
    write_efficiency(page, summary)?;
    write_failures(page, summary)?;
    write_cautions(page, summary)?;
    write_prices(page, summary)?;
    write_glossary(page)
}

fn write_verdict(page: &mut String, summary: &Summary) -> std::fmt::Result {
    writeln!(page, "## Verdict\n")?;
    for caution in summary.cautions.iter().filter(|caution| caution.is_primary) {
        writeln!(page, "> {}\n", safe(&caution.text))?;
    }
    if let Some(words) = summary.nothing_worked() {
        writeln!(page, "**{words}**\n")?;
        return Ok(());
    }
    for pair in summary.pairs() {
        let decides =
            |found: &&Comparison| summary.primary.iter().any(|name| name == found.metric());
        if let Some(line) = closing_line(pair.iter().filter(decides)) {
            writeln!(
                page,
                "**{}** (against {})\n",
                safe(&line),
                safe(pair[0].mode_b())
            )?;
        }
        for comparison in pair.iter().filter(decides) {
            writeln!(page, "- {}", safe(&sentence(comparison)))?;
        }
        writeln!(page)?;
    }
    if summary.comparisons.is_empty() {
        writeln!(page, "There is nothing to compare: one mode, or none.\n")?;
    }
    write_effects(page, summary)
}

/// Writes the effects of the factors: those that decide, and pairs of factors on the same metrics.
fn write_effects(page: &mut String, summary: &Summary) -> std::fmt::Result {
    if summary.effects.is_empty() {
        return Ok(());
    }
    writeln!(page, "## Effects of the factors\n")?;
    let mut is_under_exploratory = false;
    for effect in summary.shown_effects() {
        if effect.exploratory && !is_under_exploratory {
            writeln!(page, "\n{EXPLORATORY}\n")?;
            is_under_exploratory = true;
        }
        writeln!(page, "- {}", safe(&effect_sentence(effect)))?;
    }
    writeln!(page, "\n{EFFECTS_NOTE}\n")
}

fn write_glance(page: &mut String, summary: &Summary) -> std::fmt::Result {
    let level = level_percent(summary.confidence);
    let mut table = Table::new(
        "Results at a glance",
        &[
            "Mode",
            "Trials",
            "Success",
            &format!("{level} interval"),
            "Time (median)",
            "Time (p90)",
            "Tokens",
            "Active tokens",
            "Cost",
            "Cost per success",
            "Tool calls",
        ],
    );
    for (name, mode) in summary.modes.iter() {
        let median = |field| summary.shown_median(mode, field);
        let (time, found) = summary.field(mode, RowField::WallTime);
        table.row(vec![
            safe(name),
            mode.runs.to_string(),
            success(mode),
            mode.success.ci95.map_or_else(unknown, |[low, high]| {
                format!("{} to {}", percent(low), percent(high))
            }),
            median(RowField::WallTime),
            metric_cell(&time, found, Statistic::P90),
            median(RowField::TokensTotal),
            median(RowField::TokensActive),
            median(RowField::CostTotal),
            efficiency::cost_per_success(summary, mode),
            median(RowField::ToolCalls),
        ]);
    }
    table.write(page)?;
    let notes = summary.success_scope_note().into_iter();
    for note in notes.chain(summary.judge.as_ref().map(|judge| judge.sentence())) {
        writeln!(page, "{note}\n")?;
    }
    let level = format!("{level} interval");
    let mut table = Table::new(
        "What a typical task takes",
        &["Mode", "Metric", "Typical task", &level],
    );
    for row in summary.typical_tasks() {
        table.row(row.iter().map(|cell| safe(cell)).collect());
    }
    if !table.rows.is_empty() {
        table.write(page)?;
        writeln!(page, "{TYPICAL_TASKS}\n")?;
    }
    Ok(())
}

fn write_comparisons(page: &mut String, summary: &Summary) -> std::fmt::Result {
    for pair in summary.pairs() {
        let title = format!(
            "{} compared with {}",
            safe(pair[0].mode_a()),
            safe(pair[0].mode_b())
        );
        let (constant, varying): (Vec<_>, Vec<_>) = pair.iter().partition(|found| is_same(found));
        let (judged, other): (Vec<&Comparison>, Vec<&Comparison>) = varying
            .into_iter()
            .partition(|found| found.verdict() != Verdict::NotComparable);
        let (declared, exploratory): (Vec<&Comparison>, Vec<&Comparison>) = judged
            .into_iter()
            .partition(|found| !found.is_exploratory());
        comparison_table(&title, &declared, summary).write(page)?;
        if !exploratory.is_empty() {
            comparison_table(EXPLORATORY, &exploratory, summary).write(page)?;
        }
        let shown: Vec<&Comparison> = declared.iter().chain(&exploratory).copied().collect();
        if let Some(note) = scopes_note(&shown) {
            writeln!(page, "{}\n", safe(&note))?;
        }
        if !other.is_empty() {
            writeln!(
                page,
                "<details><summary>Metrics without a verdict</summary>\n"
            )?;
            comparison_table("", &other, summary).write(page)?;
            writeln!(page, "</details>\n")?;
        }
        if !constant.is_empty() {
            let values = constant
                .iter()
                .map(|found| safe(&constant_value(found, summary)));
            let values = values.collect::<Vec<_>>().join(", ");
            writeln!(page, "The same in every trial of both: {values}.\n")?;
        }
    }
    Ok(())
}

fn comparison_table(title: &str, comparisons: &[&Comparison], summary: &Summary) -> Table {
    let heading = comparison_heading(comparisons.first().copied(), summary);
    let heading = heading.map(|cell| safe(&cell));
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut table = Table::new(title, &heading);
    for comparison in comparisons {
        let cells = comparison_cells(comparison, summary);
        table.row(cells.iter().map(|cell| safe(cell)).collect());
    }
    table
}

/// One value, everywhere: nothing to compare and nothing to see.
fn is_same(comparison: &Comparison) -> bool {
    match comparison {
        Comparison::Success(_) => false,
        Comparison::Metric(found) => {
            let varies_inside = found.suite.as_ref().is_some_and(|suite| !suite.degenerate);
            let is_zero = |shown: crate::Headline| shown.is_degenerate() && shown.value == 0.0;
            !varies_inside && headline(found).is_some_and(is_zero)
        }
    }
}

/// Numbers and texts of the suite's own, mode by mode.
fn write_own_metrics(page: &mut String, summary: &Summary) -> std::fmt::Result {
    let mut table = Table::new("Metrics of the suite", &own_metrics::NUMBERS);
    for line in own_metrics::numbers(summary) {
        let names = [safe(&line.metric.title()), safe(line.name)];
        let cells = line.cells();
        table.row(
            names
                .into_iter()
                .chain(cells.iter().map(|cell| safe(cell)))
                .collect(),
        );
    }
    table.write(page)?;
    let modes = summary.modes.iter().map(|(name, _)| safe(name));
    let heading = ["Metric", "Value"]
        .map(str::to_owned)
        .into_iter()
        .chain(modes);
    let heading: Vec<String> = heading.collect();
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut table = Table::new("Texts of the suite, by trials", &heading);
    for (title, value, counts) in own_metrics::texts(summary) {
        let counts = counts.into_iter();
        let counts = counts.map(|count| count.map_or_else(unknown, |count| count.to_string()));
        let names = [safe(&title), safe(&value)];
        table.row(names.into_iter().chain(counts).collect());
    }
    table.write(page)
}

fn write_scenarios(page: &mut String, summary: &Summary) -> std::fmt::Result {
    let mut table = Table::new(
        "Per scenario",
        &[
            "Scenario",
            "Mode",
            "Success",
            "Time (median)",
            "Tokens",
            "Cost",
            "Tool calls",
        ],
    );
    for (scenario, modes) in summary.scenarios.iter() {
        for (name, mode) in modes.modes.iter() {
            let median = |field| summary.shown_median(mode, field);
            table.row(vec![
                safe(scenario),
                safe(name),
                success(mode),
                median(RowField::WallTime),
                median(RowField::TokensTotal),
                median(RowField::CostTotal),
                median(RowField::ToolCalls),
            ]);
        }
    }
    table.write(page)?;
    match summary.left_out_words() {
        Some(words) => writeln!(page, "{words}\n"),
        None => Ok(()),
    }
}

fn write_checks(page: &mut String, summary: &Summary) -> std::fmt::Result {
    let mut table = Table::new("Checks", &["Check", "Mode", "Held"]);
    for (name, mode) in summary.modes.iter() {
        for (check, (held, made)) in mode.checks.iter() {
            table.row(vec![safe(check), safe(name), format!("{held} of {made}")]);
        }
    }
    table.rows.sort_by(|a, b| a[0].cmp(&b[0]));
    table.write(page)
}

/// When skills were used, and whether they should have been.
fn write_skills(page: &mut String, summary: &Summary) -> std::fmt::Result {
    for (title, found) in [
        ("Use of skills", skills::uses(summary)),
        ("Does it trigger", skills::triggers(summary)),
    ] {
        let mut heading = vec!["Mode"];
        heading.extend(&found.heading);
        let mut table = Table::new(title, &heading);
        for line in &found.lines {
            let cells = line.cells.iter().map(|cell| safe(cell));
            table.row(std::iter::once(safe(&line.name)).chain(cells).collect());
        }
        table.write(page)?;
    }
    Ok(())
}

/// Labels with their figures, and the confusion matrix: expected from top to bottom, what came out from left to right.
fn write_labels(page: &mut String, summary: &Summary) -> std::fmt::Result {
    for (mode, found) in summary.modes.iter() {
        for (metric, found) in found.classification.iter() {
            let title = format!("Labels of {} ({})", safe(mode), safe(metric));
            let mut heading = vec![
                "Expected \\ came out",
                "Trials",
                "Precision",
                "Recall",
                "F1",
            ];
            let names: Vec<String> = found
                .classes
                .iter()
                .map(|class| safe(&class.label))
                .collect();
            heading.extend(names.iter().map(String::as_str));
            let mut table = Table::new(&title, &heading);
            let share = |share: Option<f64>| share.map_or_else(not_available, percent);
            for (class, counts) in found.classes.iter().zip(&found.matrix) {
                let mut cells = vec![
                    safe(&class.label),
                    class.support.to_string(),
                    share(class.precision),
                    share(class.recall),
                    percent(class.f1),
                ];
                cells.extend(counts.iter().map(u64::to_string));
                table.row(cells);
            }
            table.write(page)?;
            writeln!(
                page,
                "{} trials: accuracy {}, macro F1 {}, micro F1 {}.\n",
                found.trials,
                percent(found.accuracy),
                percent(found.macro_f1),
                percent(found.micro_f1)
            )?;
        }
    }
    Ok(())
}

fn write_efficiency(page: &mut String, summary: &Summary) -> std::fmt::Result {
    let mut table = Table::new("Efficiency", &efficiency::HEADING);
    for (name, mode) in summary.modes.iter() {
        let cells = efficiency::cells(summary, mode);
        table.row(std::iter::once(safe(name)).chain(cells).collect());
    }
    table.write(page)?;
    write_tries(page, summary)
}

fn write_tries(page: &mut String, summary: &Summary) -> std::fmt::Result {
    let mut table = Table::new(
        "Several tries",
        &["Mode", "k", "pass@k", "pass^k", "Scenarios"],
    );
    for (name, mode) in summary.modes.iter() {
        for chances in &mode.pass_k {
            let share = |share: Option<f64>| share.map_or_else(not_available, percent);
            let found = &chances.chances;
            table.row(vec![
                safe(name),
                chances.k.to_string(),
                share(found.pass_at_k),
                share(found.pass_hat_k),
                found.scenarios_used.to_string(),
            ]);
        }
    }
    table.write(page)
}

/// Writes the reasons why trials did not pass, with the command that shows one. The link leads to it in the page beside this file.
fn write_failures(page: &mut String, summary: &Summary) -> std::fmt::Result {
    let mut table = Table::new(
        "Failures and voids",
        &[
            "Mode",
            "Trials",
            "Outcome",
            "What went wrong",
            "Look at one",
        ],
    );
    for (name, mode) in summary.modes.iter() {
        for reason in mode.reasons.iter().take(MOST_LISTED) {
            let look = reason
                .example
                .as_ref()
                .filter(|trial| is_plain(&trial.run_id));
            let look = look.map(|trial| {
                let (command, anchor) = (trial.command(), trial.anchor());
                format!("[`{command}`](report.html#{anchor})")
            });
            table.row(vec![
                safe(name),
                reason.trials.to_string(),
                reason.outcome.as_str().to_owned(),
                safe(&reason.message),
                look.unwrap_or_default(),
            ]);
        }
    }
    table.write(page)
}

/// Ids of our own runs need no escapes; others are not linked.
fn is_plain(run_id: &str) -> bool {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    run_id.chars().all(is_safe)
}

fn write_cautions(page: &mut String, summary: &Summary) -> std::fmt::Result {
    if summary.cautions.is_empty() {
        return Ok(());
    }
    writeln!(page, "## Cautions\n")?;
    for caution in &summary.cautions {
        write!(page, "- {} (`{}`)", safe(&caution.text), caution.code)?;
        if !caution.places.is_empty() {
            write!(page, ": {}", safe(&caution.places.join("; ")))?;
        }
        writeln!(page)?;
    }
    writeln!(page)
}

fn write_prices(page: &mut String, summary: &Summary) -> std::fmt::Result {
    if summary.prices.is_empty() {
        return Ok(());
    }
    let tables = summary.prices.join("; ");
    writeln!(
        page,
        "Costs that Assize computed are tokens times the prices of: {}.\n",
        safe(&tables)
    )
}

fn write_glossary(page: &mut String) -> std::fmt::Result {
    writeln!(page, "## Glossary\n")?;
    for (word, meaning) in GLOSSARY {
        writeln!(page, "- **{word}**: {meaning}")?;
    }
    Ok(())
}

/// A table under a heading; left out when it has no rows.
pub(crate) struct Table {
    title: String,
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: &str, heading: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            heading: heading.iter().map(|&cell| cell.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Cells are padded, so that the raw text is a table as well.
    pub(crate) fn write(&self, page: &mut String) -> std::fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let lines = || std::iter::once(&self.heading).chain(&self.rows);
        let width = |column: usize| {
            lines()
                .map(|cells| cells[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heading.len()).map(width).collect();
        if !self.title.is_empty() {
            writeln!(page, "## {}\n", self.title)?;
        }
        for (place, cells) in lines().enumerate() {
            for (cell, &width) in cells.iter().zip(&widths) {
                write!(page, "| {cell:<width$} ")?;
            }
            writeln!(page, "|")?;
            if place == 0 {
                let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                writeln!(page, "| {} |", rules.join(" | "))?;
            }
        }
        writeln!(page)
    }
}

fn success(mode: &ModeSummary) -> String {
    let success = &mode.success;
    let rate = success.words().unwrap_or_else(unknown);
    match success.void {
        0 => rate,
        void => format!("{rate}, {void} void"),
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}
