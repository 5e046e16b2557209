//! Sections made from traces: time, tokens, tools.

use super::table::{chip, count, figure, joined, name_cell, section};
use crate::html::charts::{Growth, Part, part_colour, split_bar, token_growth, tool_flow};
use crate::html::tools::{ToolOrder, shared_order};
use crate::html::{HtmlReport, TimePart};
use crate::{ModeSummary, Summary, duration};
use assize_contracts::{MetricKind, RowField};
use maud::{Markup, html};

pub(super) fn time_and_tokens(report: &HtmlReport<'_>) -> Markup {
    let splits = time_splits(report);
    let growth = growth(report);
    if splits.is_empty() && growth.is_empty() {
        return Markup::default();
    }
    let content = html! {
        @if !splits.is_empty() { (time_figure(report, &splits)) }
        @if !growth.is_empty() { (growth_figure(report, &growth)) }
    };
    section("time", "Time and tokens", content)
}

fn growth_figure(report: &HtmlReport<'_>, growth: &[Growth<'_>]) -> Markup {
    let names: Vec<Markup> = growth
        .iter()
        .map(|line| name_cell(line.mode, line.name))
        .collect();
    html! {
        figure.wide {
            figcaption { "Growth of the input, call by call" }
            (token_growth(growth))
            p.legend {
                (joined(&names, " "))
                ". Median input of each model call, cached or not, over "
                (count(report.traces.len(), "shown trace", "shown traces"))
                "; side calls are left out."
            }
        }
    }
}

/// The analyzer's name for time that no part accounts for.
const REST: &str = "unattributed";

/// The mean time of a mode's traces, part by part; from the measured intervals where no trace has any.
fn time_splits(report: &HtmlReport<'_>) -> Vec<(usize, Vec<Part>)> {
    let mut names: Vec<String> = Vec::new();
    let mut splits = Vec::new();
    for (mode, (_, found)) in report.summary.modes.iter().enumerate() {
        let split = &report.splits[mode];
        let parts: Vec<TimePart> = match split.traces {
            0 => measured_parts(report.summary, found),
            _ if split.parts.iter().all(|part| part.name == REST) => {
                measured_parts(report.summary, found)
            }
            traces => {
                let mean = |part: &TimePart| TimePart {
                    ms: part.ms / traces as f64,
                    ..part.clone()
                };
                split.parts.iter().map(mean).collect()
            }
        };
        for part in &parts {
            if !names.contains(&part.name) {
                names.push(part.name.clone());
            }
        }
        if !parts.is_empty() {
            splits.push((mode, parts));
        }
    }
    let shade = |name: &str| match name {
        REST => "rest".to_owned(),
        _ => {
            let place = names.iter().position(|known| known == name).unwrap_or(0);
            part_colour(place)
        }
    };
    let shaded = |part: TimePart| Part {
        shade: shade(&part.name),
        name: part.name,
        ms: part.ms,
        bound: part.bound,
    };
    // A bar that is all rest says nothing.
    let tells = names.iter().any(|name| name != REST);
    splits
        .into_iter()
        .filter(|_| tells)
        .map(|(mode, parts)| (mode, parts.into_iter().map(shaded).collect()))
        .collect()
}

/// The measured parts of the wall time, if they fit into it.
fn measured_parts(summary: &Summary, mode: &ModeSummary) -> Vec<TimePart> {
    let wall = summary.field(mode, RowField::WallTime).1;
    let whole = wall.and_then(|wall| wall.mean);
    let exactly = |name: &str, ms: f64| TimePart {
        name: name.to_owned(),
        ms,
        bound: String::new(),
    };
    let part =
        |(name, metric): (&str, &crate::MetricSummary)| match &summary.catalog.metric(name).kind {
            MetricKind::TimeSegment(label) => Some(exactly(label, metric.mean?)),
            _ => None,
        };
    let mut parts: Vec<TimePart> = mode.metrics.iter().filter_map(part).collect();
    let sum: f64 = parts.iter().map(|part| part.ms).sum();
    match whole {
        Some(whole) if !parts.is_empty() && sum <= whole * 1.001 => {
            parts.push(exactly(REST, (whole - sum).max(0.0)));
            parts
        }
        _ => Vec::new(),
    }
}

fn time_figure(report: &HtmlReport<'_>, splits: &[(usize, Vec<Part>)]) -> Markup {
    let sum = |parts: &[Part]| parts.iter().map(|part| part.ms).sum::<f64>();
    let longest = splits
        .iter()
        .map(|(_, parts)| sum(parts))
        .fold(0.0, f64::max);
    let label = |mode: usize| &*report.summary.modes.0[mode].0;
    let bar = |mode: usize, parts: &[Part]| {
        let words: Vec<String> = parts.iter().map(Part::to_string).collect();
        split_bar(
            parts,
            longest,
            &format!("{}: {}", label(mode), words.join(", ")),
        )
    };
    html! {
        figure.wide {
            figcaption { "Where the time went" }
            dl.bars {
                @for (mode, parts) in splits {
                    dt { (label(*mode)) " " small { (duration(sum(parts))) } }
                    dd { (bar(*mode, parts)) }
                }
            }
            (time_legend(splits))
        }
    }
}

/// The colours of the parts, and those that are upper bounds.
fn time_legend(splits: &[(usize, Vec<Part>)]) -> Markup {
    let parts = || splits.iter().flat_map(|(_, parts)| parts);
    let mut named: Vec<&Part> = Vec::new();
    for part in parts().filter(|part| part.ms > 0.0) {
        if !named.iter().any(|known| known.name == part.name) {
            named.push(part);
        }
    }
    let is_bound = |name: &str| parts().any(|part| part.name == name && part.bound == "at most");
    let bounded: Vec<&str> = named
        .iter()
        .map(|part| &*part.name)
        .filter(|name| is_bound(name))
        .collect();
    html! {
        p.legend {
            @for part in &named { (chip(&part.shade, &part.name)) " " }
            br;
            "Mean of a trial."
            @if !bounded.is_empty() {
                " Timed from outside, so at most this long: " (bounded.join(", ")) "."
            }
        }
    }
}

fn growth<'a>(report: &'a HtmlReport<'_>) -> Vec<Growth<'a>> {
    let median = |values: &Vec<f64>| {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    };
    let line = |(mode, (name, _)): (usize, (&'a str, &ModeSummary))| {
        let inputs: Vec<f64> = report.growth[mode].iter().map_while(median).collect();
        (inputs.len() > 1).then_some(Growth { mode, name, inputs })
    };
    report
        .summary
        .modes
        .iter()
        .enumerate()
        .filter_map(line)
        .collect()
}

pub(super) fn tools(report: &HtmlReport<'_>) -> Markup {
    let used = |mode: &usize| report.flows[*mode].trials > 0;
    let modes: Vec<usize> = (0..report.flows.len()).filter(used).collect();
    if modes.is_empty() {
        return Markup::default();
    }
    let order = shared_order(&report.flows);
    let content = html! {
        p {
            "Tools from early to late in a trial, in the same order for every mode. An arc leads to the tool that was called next: on the right to a later one, on the \
             left back to an earlier one. Its width is how often."
        }
        div.figures { @for mode in modes { (tool_figure(report, mode, &order)) } }
    };
    section("tools", "Tools", content)
}

fn tool_figure(report: &HtmlReport<'_>, mode: usize, order: &ToolOrder) -> Markup {
    let label = &report.summary.modes.0[mode].0;
    let flow = &report.flows[mode];
    let trials = count(
        flow.trials as usize,
        "trial with tool calls",
        "trials with tool calls",
    );
    figure(
        label,
        &tool_flow(flow, order, mode, label),
        &format!("From {trials}."),
    )
}
