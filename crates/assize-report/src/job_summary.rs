//! The page of a CI job: gates, verdict and table, cut to the length that the service allows.

use crate::escape::markdown as safe;
use crate::words::{closing_line, sentence};
use crate::{Summary, gate_bounds_note, gates_note};
use assize_contracts::RowField;

/// Said where something was left out.
const CUT: &str = "\n*Cut here: the whole report is in the `report` directory of the run.*\n";

/// Markdown of at most `limit` bytes. Details go first when it is too long.
pub fn render_job_summary(summary: &Summary, title: &str, limit: usize) -> String {
    let mut blocks = vec![format!("## {}\n\n", safe(title)), gate_section(summary, 3)];
    blocks.extend(verdicts(summary));
    blocks.push(modes(summary));
    blocks.push(cautions(summary));
    blocks.extend(scenarios(summary));
    let room = limit.saturating_sub(CUT.len());
    let mut text = String::new();
    let mut is_cut = false;
    for block in blocks {
        // A block is taken whole or not at all, so that no table or tag stays open.
        match text.len() + block.len() <= room {
            true => text.push_str(&block),
            false => is_cut = true,
        }
    }
    if is_cut && CUT.len() <= limit {
        text.push_str(CUT);
    }
    text
}

/// The gates as a table under a heading of this level. Empty without gates.
pub(crate) fn gate_section(summary: &Summary, level: usize) -> String {
    if summary.gates.is_empty() {
        return String::new();
    }
    let rows = summary.gates.iter().map(|gate| {
        let mark = match gate.verdict {
            assize_stats::GateVerdict::Pass => "✅",
            assize_stats::GateVerdict::Fail => "❌",
            assize_stats::GateVerdict::Inconclusive => "❔",
        };
        [
            format!("{mark} {}", gate.word()),
            safe(&gate.gate),
            safe(gate.mode.as_deref().unwrap_or("n/a")),
            safe(&gate.finding()),
        ]
    });
    let table = table(["Verdict", "Gate", "Mode", "Found"], rows);
    let several = gates_note(&summary.gates).map(|note| format!("{note}. "));
    format!(
        "{} Gates\n\n{table}\n{}{}\n\n",
        "#".repeat(level),
        several.unwrap_or_default(),
        gate_bounds_note(&summary.gates).unwrap_or_default()
    )
}

fn verdicts(summary: &Summary) -> Vec<String> {
    let pair = |pair: Vec<&crate::Comparison>| {
        let line = closing_line(pair.iter().copied())?;
        let against = pair.first()?.mode_b();
        let mut text = format!("**{}** (against {})\n\n", safe(&line), safe(against));
        for comparison in &pair {
            text.push_str(&format!("- {}\n", safe(&sentence(comparison))));
        }
        Some(text + "\n")
    };
    summary.decisive_pairs().filter_map(pair).collect()
}

fn modes(summary: &Summary) -> String {
    let rows = summary.modes.iter().map(|(label, mode)| {
        let median = |field| summary.shown_median(mode, field);
        let success = &mode.success;
        [
            safe(label),
            success.words().unwrap_or_else(|| "unknown".to_owned()),
            success.void.to_string(),
            median(RowField::WallTime),
            median(RowField::TokensTotal),
            median(RowField::CostTotal),
        ]
    });
    table(["Mode", "Success", "Void", "Time", "Tokens", "Cost"], rows) + "\n"
}

fn cautions(summary: &Summary) -> String {
    let primary = summary.cautions.iter().filter(|caution| caution.is_primary);
    let lines = primary.map(|caution| format!("> {}\n>\n", safe(&caution.text)));
    lines.collect::<String>() + "\n"
}

/// In pieces, so that as many scenarios are shown as there is room for.
fn scenarios(summary: &Summary) -> Vec<String> {
    const TOGETHER: usize = 50;
    let scenarios = &summary.scenarios.0;
    let piece = |piece: &[(String, crate::ScenarioSummary)]| {
        let rows = piece.iter().flat_map(|(scenario, modes)| {
            modes.modes.iter().map(move |(label, mode)| {
                let success = &mode.success;
                let trials = format!("{} of {}", success.passed, success.trials);
                [
                    safe(scenario),
                    safe(label),
                    trials,
                    success.void.to_string(),
                ]
            })
        });
        let table = table(["Scenario", "Mode", "Passed", "Void"], rows);
        format!("<details><summary>Scenarios</summary>\n\n{table}\n</details>\n\n")
    };
    scenarios.chunks(TOGETHER).map(piece).collect()
}

fn table<const N: usize>(heading: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&heading.map(str::to_owned));
    text.push_str(&line(&heading.map(|_| "---".to_owned())));
    rows.for_each(|cells| text.push_str(&line(&cells)));
    text
}
