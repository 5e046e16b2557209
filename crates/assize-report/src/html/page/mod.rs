//! The page, section by section, from the verdict down to single trials.

mod evidence;
mod labels;
mod modes;
mod overview;
mod own_metrics;
mod ranking;
mod skills;
mod table;
mod traces;
mod verdict;

use super::HtmlReport;
use super::digest::source_hash;
use super::escape::{EmbeddedJson, visible};
use crate::glossary::GLOSSARY;
use crate::{ModeSummary, Nature, Summary, duration, money, quantity, render_job_summary, wall};
use assize_contracts::Timestamp;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use std::io::{self, Write};
use table::{capital, count, section};

const STYLE: &str = include_str!("page.css");

const SCRIPT: &str = include_str!("page.js");

/// The longest text that can be pasted into a comment: services take about 64,000 characters.
const MOST_MARKDOWN: usize = 60_000;

/// The data about all trials that the script needs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Trials<'a> {
    scenarios: Vec<String>,
    modes: Vec<String>,
    /// The prompt of each scenario, and the instructions of each mode; empty where unknown.
    prompts: &'a [String],
    instructions: &'a [String],
}

/// Writes the page in pieces, because the traces are most of it. All text passes `maud`, which escapes it, and then `visible`.
pub(crate) fn write(report: &HtmlReport<'_>, out: &mut impl Write, title: &str) -> io::Result<()> {
    out.write_all(b"<!doctype html>\n<html lang=\"en\">\n")?;
    writeln!(out, "{}\n<body>", head(title).into_string())?;
    out.write_all(visible(&body(report, title).into_string()).as_bytes())?;
    write_data(report, out, title)?;
    let script = html! { script { (PreEscaped(SCRIPT)) } };
    writeln!(out, "{}\n</body>\n</html>", script.into_string())
}

/// Writes trials and traces as data: the browser parses a trace when the reader opens it.
fn write_data(report: &HtmlReport<'_>, out: &mut impl Write, title: &str) -> io::Result<()> {
    let names = |names: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        names.map(super::trials::shown).collect()
    };
    let trials = Trials {
        scenarios: names(&mut report.summary.scenarios.iter().map(|(id, _)| id)),
        modes: names(&mut report.summary.modes.iter().map(|(label, _)| label)),
        prompts: &report.prompts,
        instructions: &report.instructions,
    };
    let json = serde_json::to_string(&trials).map_err(io::Error::other)?;
    let columns = super::trials::columns(&report.trials);
    let json = format!(
        "{},\"trials\":{columns}}}",
        json.strip_suffix('}').unwrap_or(&json)
    );
    let block = data_block("data", &EmbeddedJson::new(&json));
    writeln!(out, "{}", block.into_string())?;
    let markdown = render_job_summary(report.summary, title, MOST_MARKDOWN);
    let json = serde_json::to_string(&visible(&markdown)).map_err(io::Error::other)?;
    let block = data_block("markdown", &EmbeddedJson::new(&json));
    writeln!(out, "{}", block.into_string())?;
    for trace in &report.traces {
        let block = data_block(&format!("trace-{}", trace.trial), &trace.json);
        writeln!(out, "{}", block.into_string())?;
    }
    Ok(())
}

fn data_block(id: &str, json: &EmbeddedJson) -> Markup {
    html! { script type="application/json" id=(id) { (json) } }
}

fn head(title: &str) -> Markup {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        source_hash(STYLE),
        source_hash(SCRIPT)
    );
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="referrer" content="no-referrer";
            title { (visible(title)) " · Assize" }
            style { (PreEscaped(STYLE)) }
        }
    }
}

fn body(report: &HtmlReport<'_>, title: &str) -> Markup {
    let sections = sections(report);
    html! {
        a.skip href="#verdict" { "Skip to the verdict" }
        (masthead(report, title, &sections))
        main id="report" { @for section in &sections { (section.content) } }
        main id="trial" hidden tabindex="-1" aria-live="polite" {}
        footer { "Made by Assize. One file, no network: it can be mailed and archived as it is." }
        "\n"
    }
}

/// A part of the page, and its name in the list at the top.
struct Section {
    id: &'static str,
    name: &'static str,
    content: Markup,
}

/// The sections of the page, from the verdict down to single trials.
fn sections(report: &HtmlReport<'_>) -> Vec<Section> {
    let summary = report.summary;
    let all = [
        ("verdict", "Verdict", verdict::verdict(report)),
        ("failures", "Failures", evidence::failures(summary)),
        ("glance", "At a glance", overview::glance(report)),
        ("modes", "Modes", modes::modes(report)),
        ("comparison", "Comparison", overview::comparisons(summary)),
        ("skills", "Skills", skills::skills(summary)),
        ("scenarios", "Scenarios", evidence::scenarios(report)),
        (
            "measurements",
            "Measurements",
            evidence::measurements(report),
        ),
        (
            "own-metrics",
            "Suite's metrics",
            own_metrics::own_metrics(summary),
        ),
        ("time", "Time and tokens", traces::time_and_tokens(report)),
        ("tools", "Tools", traces::tools(report)),
        ("checks", "Checks", evidence::checks(summary)),
        ("labels", "Labels", labels::labels(summary)),
        ("trials", "Trials", trials(report)),
        ("cautions", "Cautions", cautions(summary)),
        ("glossary", "Glossary", glossary()),
    ];
    let is_there = |content: &Markup| !content.0.is_empty();
    all.into_iter()
        .filter(|(.., content)| is_there(content))
        .map(|(id, name, content)| Section { id, name, content })
        .collect()
}

fn masthead(report: &HtmlReport<'_>, title: &str, sections: &[Section]) -> Markup {
    html! {
        header.masthead {
            div {
                p.brand { "Assize report" }
                h1 { (title) }
                p.facts { (facts(report).join(" · ")) }
                @if let Some(line) = wall::headline(&report.summary.walls) { p.facts { (line) } }
                (origin(report))
            }
            div.actions {
                button type="button" id="copy" hidden { "Copy as Markdown" }
                button type="button" id="theme" hidden { "Dark" }
            }
        }
        (natures(report.summary))
        nav aria-label="Sections" {
            ul { @for section in sections { li { a href={ "#" (section.id) } { (section.name) } } } }
        }
        "\n"
    }
}

/// The time, place and means of the trials, and their totals.
fn origin(report: &HtmlReport<'_>) -> Markup {
    let mut facts: Vec<[String; 2]> = Vec::new();
    let mut tell = |label: &str, value: String| facts.push([label.to_owned(), value]);
    if let Some((began, ended)) = report.span {
        let began_at = Timestamp::from_unix_ms(began).to_string();
        let minute = began_at.get(..16).unwrap_or(&began_at).replace('T', " ");
        tell("started", format!("{minute} UTC"));
        tell("took", duration((ended - began) as f64));
    }
    let [tokens, cost] = &report.totals;
    for (label, total, show) in [
        ("tokens", tokens, quantity as fn(f64) -> String),
        ("cost", cost, money),
    ] {
        let bound = if total.is_bound { "at least " } else { "" };
        tell(
            label,
            match total.known {
                0 => "unknown".to_owned(),
                _ => format!("{bound}{}", show(total.sum)),
            },
        );
    }
    facts.extend(report.facts.iter().cloned());
    html! {
        dl.origin {
            @for [label, value] in &facts { div { dt { (label) } dd { (value) } } }
        }
    }
}

/// The numbers of trials, scenarios and modes that the page covers.
fn facts(report: &HtmlReport<'_>) -> Vec<String> {
    let summary = report.summary;
    let mut facts = vec![
        count(summary.modes.len(), "mode", "modes"),
        count(summary.scenario_count(), "scenario", "scenarios"),
        count(report.rows as usize, "trial", "trials"),
    ];
    let runs: Vec<String> = report
        .runs
        .iter()
        .filter(|run| !run.is_empty())
        .cloned()
        .collect();
    match runs.len() {
        0 => {}
        1 => facts.push(format!("run {}", runs[0])),
        super::MOST_RUNS => facts.push("several runs".to_owned()),
        many => facts.push(format!("{many} runs: {}", runs.join(", "))),
    }
    facts
}

const NATURES: [(Nature, &str, &str); 2] = [
    (
        Nature::Simulated,
        "Simulated",
        "These numbers are made up by a stand-in, not measured on an agent",
    ),
    (
        Nature::Replayed,
        "Replayed",
        "These numbers come from recordings, not from live agents",
    ),
];

/// A simulation must not be taken for a measurement.
fn natures(summary: &Summary) -> Markup {
    html! {
        @for (nature, word, meaning) in NATURES {
            @if let Some(modes) = modes_of_nature(summary, nature) {
                p.nature { strong { (word) "." } " " (meaning) (modes) "." }
            }
        }
    }
}

/// The modes of this nature in brackets; nothing in them where it is all modes, and `None` where it is none.
fn modes_of_nature(summary: &Summary, nature: Nature) -> Option<String> {
    let is_such = |(_, mode): &(&str, &ModeSummary)| mode.nature == nature;
    let such: Vec<&str> = summary
        .modes
        .iter()
        .filter(is_such)
        .map(|(label, _)| label)
        .collect();
    match such.len() {
        0 => None,
        all if all == summary.modes.len() => Some(String::new()),
        _ => Some(format!(" ({})", such.join(", "))),
    }
}

fn trials(report: &HtmlReport<'_>) -> Markup {
    let (rows, shown, traces) = (
        report.rows as usize,
        report.trials.len(),
        report.traces.len(),
    );
    let mut notes = Vec::new();
    if shown < rows {
        notes.push(format!(
            "{shown} of {rows} trials are listed: as many of each scenario and mode, failed and void ones first. \
             `assize report --format csv` lists all."
        ));
    }
    notes.extend(report.summary.left_out_words());
    match (traces, shown) {
        (0, _) => {
            notes
                .push("No traces were stored, so trials cannot be opened step by step.".to_owned());
        }
        (traces, shown) if traces < shown => notes.push(format!(
            "{traces} of them can be opened step by step, chosen the same way."
        )),
        _ => {}
    }
    let content = html! {
        p { (notes.join(" ")) }
        noscript { p { "Scripts are off: the list of trials is not shown." } }
        div id="list" {}
    };
    section("trials", "Trials", content)
}

fn cautions(summary: &Summary) -> Markup {
    let content = html! {
        @if summary.cautions.is_empty() { p { "None." } }
        ul.cautions {
            @for caution in &summary.cautions {
                li {
                    (caution.text) " " code { (caution.code.as_str()) }
                    @if !caution.places.is_empty() { br; small { (caution.places.join("; ")) } }
                }
            }
        }
        @if !summary.prices.is_empty() {
            p.legend {
                "Costs that Assize computed are tokens times the prices of: " (summary.prices.join("; ")) "."
            }
        }
    };
    section("cautions", "Cautions", content)
}

fn glossary() -> Markup {
    let content = html! {
        dl.glossary {
            @for (word, meaning) in GLOSSARY {
                dt { (word) }
                dd { (capital(meaning)) }
            }
        }
    };
    section("glossary", "Glossary", content)
}
