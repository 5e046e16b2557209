//! The evidence of the verdict: measurements, scenarios, checks, failures.

use super::overview::success_words;
use super::table::{MOST_ROWS, Table, count, figure, left_out, name_cell, number, section, text};
use crate::html::HtmlReport;
use crate::html::charts::{Strip, strips, success_squares};
use crate::reason::MOST_LISTED;
use crate::{ModeSummary, Summary, metric_cell};
use assize_contracts::RowField;
use assize_stats::Statistic;
use maud::{Markup, html};
use std::collections::HashSet;

pub(super) fn measurements(report: &HtmlReport<'_>) -> Markup {
    let is_primary = |metric: &&String| report.summary.primary.contains(metric);
    let (deciding, further): (Vec<&String>, Vec<&String>) = report
        .metrics
        .iter()
        .map(|metric| &metric.name)
        .partition(is_primary);
    let figures = |metrics: &[&String]| {
        html! {
            div.figures { @for metric in metrics { (strip_figure(report, metric)) } }
        }
    };
    let content = html! {
        @if report.metrics.is_empty() { p.empty { "Nothing was measured that varies." } }
        p {
            "Every trial is a dot, over all scenarios. The box is the middle half of the trials, the line their median."
        }
        (figures(&deciding))
        @if !further.is_empty() {
            details {
                summary { "Further metrics (" (further.len()) ")" }
                (figures(&further))
            }
        }
    };
    section("measurements", "Measurements", content)
}

fn strip_figure(report: &HtmlReport<'_>, metric: &str) -> Markup {
    let column = report
        .metrics
        .iter()
        .position(|known| known.name == *metric);
    let lanes: Vec<Strip<'_>> = report
        .summary
        .modes
        .iter()
        .enumerate()
        .filter_map(|(mode, (name, found))| {
            let found = found.metrics.find(metric)?;
            Some(Strip {
                mode,
                name,
                values: &report.values[mode][column?],
                median: found.median,
                quartiles: found.quartiles,
            })
        })
        .collect();
    let metric = report.summary.catalog.metric(metric);
    let title = metric.title();
    let drawn = strips(&metric, &title, &lanes);
    let mut notes = Vec::new();
    if drawn.is_log {
        notes.push("Logarithmic axis.".to_owned());
    }
    if drawn.undrawn > 0 {
        notes.push(format!("{} more trials are not drawn.", drawn.undrawn));
    }
    if lanes.iter().any(|lane| lane.values.has_bounds) {
        notes.push("Open dots are lower bounds: at least this much.".to_owned());
    }
    let unknown: usize = report
        .summary
        .modes
        .iter()
        .filter(|(name, _)| !lanes.iter().any(|lane| lane.name == *name))
        .count();
    if unknown > 0 {
        notes.push(format!("Unknown in {}.", count(unknown, "mode", "modes")));
    }
    figure(&title, &drawn.svg, &notes.join(" "))
}

pub(super) fn scenarios(report: &HtmlReport<'_>) -> Markup {
    let summary = report.summary;
    let mut heading = vec!["Scenario"];
    heading.extend(summary.modes.iter().map(|(label, _)| label));
    let mut table = Table::new(
        "Outcome of every repetition, by scenario and mode",
        &heading,
    );
    for (scenario, (id, found)) in summary.scenarios.iter().enumerate().take(MOST_ROWS) {
        let mut cells = vec![html! { a href=(format!("#scenario-{scenario}")) { (id) } }];
        for (mode, (label, _)) in summary.modes.iter().enumerate() {
            cells.push(match found.modes.find(label) {
                Some(cell) => scenario_cell(report, (scenario, mode), label, id, cell),
                None => html! { small { "not run" } },
            });
        }
        table.row(cells);
    }
    let content = html! {
        p {
            "Every square is a repetition: " span.key.pass {} " pass, " span.key.fail {} " fail, " span.key.void {}
            " void. A square leads to its trial, a scenario to what was asked and the answers side by side."
        }
        (table.markup())
        (left_out(summary.scenario_count(), "scenarios"))
    };
    section("scenarios", "Scenarios", content)
}

fn scenario_cell(
    report: &HtmlReport<'_>,
    cell: (usize, usize),
    label: &str,
    id: &str,
    found: &ModeSummary,
) -> Markup {
    let squares = report.squares.get(&cell).map_or(&[][..], Vec::as_slice);
    let name = format!("{id}, {label}: {}", success_words(found));
    let more = (found.runs as usize).saturating_sub(squares.len());
    let medians = [
        (RowField::WallTime, "time"),
        (RowField::TokensTotal, "tokens"),
    ]
    .map(|(field, word)| {
        let (metric, found) = report.summary.field(found, field);
        let known = found.map(|found| metric_cell(&metric, Some(found), Statistic::Median));
        known.map(|known| format!("{known} {word}"))
    });
    let medians: Vec<String> = medians.into_iter().flatten().collect();
    html! {
        (success_squares(squares, &name))
        @if more > 0 { small { "and " (more) " more" } }
        small { (found.success.passed) " of " (found.success.trials) " · " (medians.join(", ")) }
    }
}

pub(super) fn checks(summary: &Summary) -> Markup {
    let checks = summary
        .modes
        .iter()
        .flat_map(|(_, mode)| mode.checks.iter());
    let mut seen = HashSet::new();
    let names: Vec<&str> = checks
        .map(|(name, _)| name)
        .filter(|name| seen.insert(*name))
        .collect();
    if names.is_empty() {
        return Markup::default();
    }
    let mut heading = vec!["Check"];
    heading.extend(summary.modes.iter().map(|(label, _)| label));
    let mut table = Table::new("How often each check held", &heading);
    for name in names.iter().take(MOST_ROWS) {
        let cells = summary.modes.iter().map(|(_, mode)| check_cell(mode, name));
        table.row(std::iter::once(text(name)).chain(cells).collect());
    }
    let content = html! {
        (table.markup())
        (left_out(names.len(), "checks"))
    };
    section("checks", "Checks", content)
}

fn check_cell(mode: &ModeSummary, name: &str) -> Markup {
    match mode.checks.find(name) {
        Some((held, made)) if held == made => number(&format!("{held} of {made}")),
        Some((held, made)) => html! { span.worse.number { (held) " of " (made) } },
        None => html! { small { "not made" } },
    }
}

pub(super) fn failures(summary: &Summary) -> Markup {
    let mut table = Table::new(
        "Trials that did not pass, by what went wrong",
        &[
            "Mode",
            "Trials",
            "Outcome",
            "What went wrong",
            "Look at one",
        ],
    );
    let mut left_out = 0;
    for (place, (label, mode)) in summary.modes.iter().enumerate() {
        left_out += mode.reasons.len().saturating_sub(MOST_LISTED);
        for reason in mode.reasons.iter().take(MOST_LISTED) {
            let word = reason.outcome.as_str();
            table.row(vec![
                name_cell(place, label),
                number(&reason.trials.to_string()),
                html! { span class=(format!("outcome {word}")) { (word) } },
                text(&reason.message),
                html! {
                    @if let Some(trial) = &reason.example {
                        a href=(format!("#{}", trial.anchor())) { "trial " (trial.position) }
                        " " small { code { (trial.command()) } }
                    }
                },
            ]);
        }
    }
    if table.is_empty() {
        return Markup::default();
    }
    let content = html! {
        (table.markup())
        @if left_out > 0 { p.cut { (left_out) " rarer reasons are left out." } }
    };
    section("failures", "Failures and voids", content)
}
