//! What the verdict rests on: measurements, scenarios, checks, failures.

use super::Written;
use super::overview::success_words;
use super::table::{MOST_ROWS, Table, count, figure, left_out, name_cell, number, section};
use crate::html::HtmlReport;
use crate::html::charts::{Strip, strips, success_squares};
use crate::html::escape::html;
use crate::words::metric_name;
use crate::{ModeSummary, Summary, amount};
use std::collections::HashSet;
use std::fmt::Write;

pub(super) fn measurements(page: &mut String, report: &HtmlReport<'_>) -> Written {
    section(page, "measurements", "Measurements")?;
    let is_primary = |metric: &&String| report.summary.primary.contains(metric);
    let (deciding, further): (Vec<&String>, Vec<&String>) =
        report.metrics.iter().partition(is_primary);
    if report.metrics.is_empty() {
        writeln!(
            page,
            "<p class=\"empty\">Nothing was measured that varies.</p>"
        )?;
    }
    writeln!(
        page,
        "<p>Every trial is a dot, over all scenarios. The box is the middle half of the trials, the line their median.</p>\
         <div class=\"figures\">"
    )?;
    for metric in deciding {
        strip_figure(page, report, metric)?;
    }
    writeln!(page, "</div>")?;
    if !further.is_empty() {
        writeln!(
            page,
            "<details><summary>Further metrics ({})</summary><div class=\"figures\">",
            further.len()
        )?;
        for metric in further {
            strip_figure(page, report, metric)?;
        }
        writeln!(page, "</div></details>")?;
    }
    writeln!(page, "</section>")
}

fn strip_figure(page: &mut String, report: &HtmlReport<'_>, metric: &str) -> Written {
    let column = report.metrics.iter().position(|known| known == metric);
    let lanes: Vec<Strip<'_>> = report
        .summary
        .modes
        .iter()
        .enumerate()
        .filter_map(|(mode, (name, found))| {
            Some(Strip {
                mode,
                name,
                values: &report.values[mode][column?],
                median: found.metrics.find(metric)?.median,
            })
        })
        .collect();
    let title = metric_name(metric);
    let drawn = strips(metric, &title, &lanes);
    let mut notes = Vec::new();
    if drawn.is_log {
        notes.push("Logarithmic axis.".to_owned());
    }
    if drawn.undrawn > 0 {
        notes.push(format!("{} more trials are not drawn.", drawn.undrawn));
    }
    let has_bounds = lanes
        .iter()
        .flat_map(|lane| lane.values)
        .any(|measured| measured.is_bound);
    if has_bounds {
        notes.push("Open dots ran out of time: at least this much.".to_owned());
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
    figure(page, &title, &drawn.svg, &notes.join(" "))
}

pub(super) fn scenarios(page: &mut String, report: &HtmlReport<'_>) -> Written {
    let summary = report.summary;
    section(page, "scenarios", "Scenarios")?;
    writeln!(
        page,
        "<p>Every square is a repetition: <span class=\"key pass\"></span> pass, <span class=\"key fail\"></span> fail, \
         <span class=\"key void\"></span> void. A square leads to its trial.</p>"
    )?;
    let names: Vec<String> = summary.modes.iter().map(|(label, _)| html(label)).collect();
    let mut heading = vec!["Scenario"];
    heading.extend(names.iter().map(String::as_str));
    let mut table = Table::new(
        "Outcome of every repetition, by scenario and mode",
        &heading,
    );
    for (scenario, (id, found)) in summary.scenarios.iter().enumerate().take(MOST_ROWS) {
        let mut cells = vec![html(id)];
        for (mode, (label, _)) in summary.modes.iter().enumerate() {
            cells.push(match found.modes.find(label) {
                Some(cell) => scenario_cell(report, (scenario, mode), label, id, cell),
                None => "<small>not run</small>".to_owned(),
            });
        }
        table.row(cells);
    }
    table.write(page)?;
    left_out(page, summary.scenario_count(), "scenarios")?;
    writeln!(page, "</section>")
}

fn scenario_cell(
    report: &HtmlReport<'_>,
    cell: (usize, usize),
    label: &str,
    id: &str,
    found: &ModeSummary,
) -> String {
    let squares = report.squares.get(&cell).map_or(&[][..], Vec::as_slice);
    let name = format!("{id}, {label}: {}", success_words(found));
    let more = match found.runs as usize - squares.len().min(found.runs as usize) {
        0 => String::new(),
        more => format!("<small>and {more} more</small>"),
    };
    let medians =
        [("latency_wall_ms", "time"), ("tokens_total", "tokens")].map(|(metric, word)| {
            let value = found.metrics.find(metric).and_then(|found| found.median);
            value.map(|value| format!("{} {word}", amount(metric, value)))
        });
    let medians: Vec<String> = medians.into_iter().flatten().collect();
    format!(
        "{}{more}<small>{} of {} · {}</small>",
        success_squares(squares, &name),
        found.success.passed,
        found.success.trials,
        html(&medians.join(", "))
    )
}

pub(super) fn checks(page: &mut String, summary: &Summary) -> Written {
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
        return Ok(());
    }
    section(page, "checks", "Checks")?;
    let labels: Vec<String> = summary.modes.iter().map(|(label, _)| html(label)).collect();
    let mut heading = vec!["Check"];
    heading.extend(labels.iter().map(String::as_str));
    let mut table = Table::new("How often each check held", &heading);
    for name in names.iter().take(MOST_ROWS) {
        let mut cells = vec![html(name)];
        for (_, mode) in summary.modes.iter() {
            cells.push(match mode.checks.find(name) {
                Some((held, made)) if held == made => number(&format!("{held} of {made}")),
                Some((held, made)) => {
                    format!("<span class=\"worse number\">{held} of {made}</span>")
                }
                None => "<small>not made</small>".to_owned(),
            });
        }
        table.row(cells);
    }
    table.write(page)?;
    left_out(page, names.len(), "checks")?;
    writeln!(page, "</section>")
}

pub(super) fn failures(page: &mut String, summary: &Summary) -> Written {
    let mut table = Table::new(
        "Trials that did not pass, by what went wrong",
        &["Mode", "What went wrong", "Trials"],
    );
    for (place, (label, mode)) in summary.modes.iter().enumerate() {
        for (reason, trials) in mode.reasons.iter().take(MOST_ROWS) {
            table.row(vec![
                name_cell(place, label),
                html(reason),
                number(&trials.to_string()),
            ]);
        }
    }
    if table.rows.is_empty() {
        return Ok(());
    }
    section(page, "failures", "Failures and voids")?;
    table.write(page)?;
    writeln!(page, "</section>")
}
