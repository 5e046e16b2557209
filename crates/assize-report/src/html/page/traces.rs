//! What traces tell: time, tokens, tools.

use super::Written;
use super::table::{count, figure, section};
use crate::html::charts::{Growth, Part, colour, split_bar, token_growth, tool_flow};
use crate::html::escape::html;
use crate::html::{HtmlReport, TimePart};
use crate::{ModeSummary, duration};
use std::fmt::Write;

pub(super) fn time_and_tokens(page: &mut String, report: &HtmlReport<'_>) -> Written {
    let splits = time_splits(report);
    let growth = growth(report);
    if splits.is_empty() && growth.is_empty() {
        return Ok(());
    }
    section(page, "time", "Time and tokens")?;
    if !splits.is_empty() {
        time_figure(page, report, &splits)?;
    }
    if !growth.is_empty() {
        let names: Vec<String> = growth
            .iter()
            .map(|line| {
                format!(
                    "<span class=\"chip {}\"></span>{}",
                    colour(line.mode),
                    html(line.name)
                )
            })
            .collect();
        writeln!(
            page,
            "<figure class=\"wide\"><figcaption>Growth of the input, call by call</figcaption>{}<p class=\"legend\">{}. Median \
             input of each model call, cached or not, over {}; side calls are left out.</p></figure>",
            token_growth(&growth),
            names.join(" "),
            count(report.traces.len(), "shown trace", "shown traces")
        )?;
    }
    writeln!(page, "</section>")
}

/// What no part of the time accounts for, in the analyzer's word.
const REST: &str = "unattributed";

/// The mean time of a mode's traces, part by part; from the measured intervals where no trace tells.
fn time_splits(report: &HtmlReport<'_>) -> Vec<(usize, Vec<Part>)> {
    let mut names: Vec<String> = Vec::new();
    let mut splits = Vec::new();
    for (mode, (_, found)) in report.summary.modes.iter().enumerate() {
        let split = &report.splits[mode];
        let parts: Vec<TimePart> = match split.traces {
            0 => measured_parts(found),
            _ if split.parts.iter().all(|part| part.name == REST) => measured_parts(found),
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
            colour(place)
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

/// `latency_<label>_ms` metrics other than the whole, if they fit into it.
fn measured_parts(mode: &ModeSummary) -> Vec<TimePart> {
    let whole = mode
        .metrics
        .find("latency_wall_ms")
        .and_then(|wall| wall.mean);
    let exactly = |name: &str, ms: f64| TimePart {
        name: name.to_owned(),
        ms,
        bound: String::new(),
    };
    let part = |(name, metric): (&str, &crate::MetricSummary)| {
        let label = name.strip_prefix("latency_")?.strip_suffix("_ms")?;
        (label != "wall").then_some(exactly(label, metric.mean?))
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

fn time_figure(
    page: &mut String,
    report: &HtmlReport<'_>,
    splits: &[(usize, Vec<Part>)],
) -> Written {
    let sum = |parts: &[Part]| parts.iter().map(|part| part.ms).sum::<f64>();
    let longest = splits
        .iter()
        .map(|(_, parts)| sum(parts))
        .fold(0.0, f64::max);
    writeln!(
        page,
        "<figure class=\"wide\"><figcaption>Where the time went</figcaption><dl class=\"bars\">"
    )?;
    for (mode, parts) in splits {
        let label = &report.summary.modes.0[*mode].0;
        let told: Vec<String> = parts.iter().map(Part::to_string).collect();
        writeln!(
            page,
            "<dt>{} <small>{}</small></dt><dd>{}</dd>",
            html(label),
            duration(sum(parts)),
            split_bar(parts, longest, &format!("{label}: {}", told.join(", ")))
        )?;
    }
    writeln!(page, "</dl><p class=\"legend\">")?;
    let mut told: Vec<&str> = Vec::new();
    let parts = || splits.iter().flat_map(|(_, parts)| parts);
    for part in parts().filter(|part| part.ms > 0.0) {
        if !told.contains(&&*part.name) {
            told.push(&part.name);
            write!(
                page,
                "<span class=\"chip {}\"></span>{} ",
                part.shade,
                html(&part.name)
            )?;
        }
    }
    write!(page, "<br>Mean of a trial.")?;
    let at_most = |name: &&str| parts().any(|part| part.name == **name && part.bound == "at most");
    let bounded: Vec<&str> = told.into_iter().filter(at_most).collect();
    if !bounded.is_empty() {
        let names = html(&bounded.join(", "));
        write!(page, " Timed from outside, so at most this long: {names}.")?;
    }
    writeln!(page, "</p></figure>")
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

pub(super) fn tools(page: &mut String, report: &HtmlReport<'_>) -> Written {
    let used = |mode: &usize| report.flows[*mode].trials > 0;
    let modes: Vec<usize> = (0..report.flows.len()).filter(used).collect();
    if modes.is_empty() {
        return Ok(());
    }
    section(page, "tools", "Tools")?;
    writeln!(
        page,
        "<p>Tools from early to late in a trial. An arc leads to the tool that was called next: on the right to a later one, on the left \
         back to an earlier one. Its width is how often.</p><div class=\"figures\">"
    )?;
    for mode in modes {
        let label = &report.summary.modes.0[mode].0;
        let flow = &report.flows[mode];
        let note = format!(
            "From {}.",
            count(
                flow.trials as usize,
                "trial with tool calls",
                "trials with tool calls"
            )
        );
        figure(page, label, &tool_flow(flow, mode, label), &note)?;
    }
    writeln!(page, "</div></section>")
}
