//! The page, section by section, from the verdict down to single trials.

mod evidence;
mod labels;
mod overview;
mod table;
mod traces;
mod verdict;

use super::HtmlReport;
use super::digest::source_hash;
use super::escape::{html, script_json};
use crate::glossary::GLOSSARY;
use crate::{ModeSummary, Nature, Summary};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};
use table::{capital, count, section};

const STYLE: &str = include_str!("page.css");

const SCRIPT: &str = include_str!("page.js");

/// What the script needs to know about all trials.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Trials<'a> {
    scenarios: Vec<String>,
    modes: Vec<String>,
    trials: &'a [super::trials::Trial],
}

pub(crate) fn write(report: &HtmlReport<'_>, out: &mut impl Write, title: &str) -> io::Result<()> {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = head(&mut page, title).and_then(|()| body(&mut page, report, title));
    out.write_all(page.as_bytes())?;
    write_data(report, out)?;
    write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

/// Trials and traces as data: the browser parses a trace when somebody opens it.
fn write_data(report: &HtmlReport<'_>, out: &mut impl Write) -> io::Result<()> {
    let names = |names: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        names.map(super::trials::shown).collect()
    };
    let trials = Trials {
        scenarios: names(&mut report.summary.scenarios.iter().map(|(id, _)| id)),
        modes: names(&mut report.summary.modes.iter().map(|(label, _)| label)),
        trials: &report.trials,
    };
    let json = serde_json::to_string(&trials).map_err(io::Error::other)?;
    writeln!(
        out,
        "<script type=\"application/json\" id=\"data\">{}</script>",
        script_json(&json)
    )?;
    for trace in &report.traces {
        writeln!(
            out,
            "<script type=\"application/json\" id=\"trace-{}\">{}</script>",
            trace.trial, trace.json
        )?;
    }
    Ok(())
}

type Written = std::fmt::Result;

fn head(page: &mut String, title: &str) -> Written {
    let (style, script) = (source_hash(STYLE), source_hash(SCRIPT));
    writeln!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{style}'; \
         script-src '{script}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>",
        html(&format!("{title} · Assize"))
    )
}

fn body(page: &mut String, report: &HtmlReport<'_>, title: &str) -> Written {
    writeln!(
        page,
        "<body>\n<a class=\"skip\" href=\"#verdict\">Skip to the verdict</a>"
    )?;
    masthead(page, report, title)?;
    writeln!(page, "<main id=\"report\">")?;
    verdict::verdict(page, report)?;
    overview::glance(page, report)?;
    overview::comparisons(page, report.summary)?;
    evidence::measurements(page, report)?;
    evidence::scenarios(page, report)?;
    traces::time_and_tokens(page, report)?;
    traces::tools(page, report)?;
    evidence::checks(page, report.summary)?;
    labels::labels(page, report.summary)?;
    evidence::failures(page, report.summary)?;
    trials(page, report)?;
    cautions(page, report.summary)?;
    glossary(page)?;
    writeln!(
        page,
        "</main>\n<main id=\"trial\" hidden tabindex=\"-1\" aria-live=\"polite\"></main>\n\
         <footer>Made by Assize. One file, no network: it can be mailed and archived as it is.</footer>"
    )
}

fn masthead(page: &mut String, report: &HtmlReport<'_>, title: &str) -> Written {
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
    writeln!(
        page,
        "<header class=\"masthead\"><div><p class=\"brand\">Assize report</p><h1>{}</h1><p class=\"facts\">{}</p></div>\
         <button type=\"button\" id=\"theme\" hidden>Dark</button></header>",
        html(title),
        html(&facts.join(" · "))
    )?;
    nature(page, summary)?;
    let mut links = vec![("verdict", "Verdict"), ("glance", "At a glance")];
    if !summary.comparisons.is_empty() {
        links.push(("comparison", "Comparison"));
    }
    links.extend([
        ("measurements", "Measurements"),
        ("scenarios", "Scenarios"),
        ("trials", "Trials"),
        ("cautions", "Cautions"),
        ("glossary", "Glossary"),
    ]);
    write!(page, "<nav aria-label=\"Sections\"><ul>")?;
    for (target, name) in links {
        write!(page, "<li><a href=\"#{target}\">{name}</a></li>")?;
    }
    writeln!(page, "</ul></nav>")
}

/// Nobody may take a simulation for a measurement.
fn nature(page: &mut String, summary: &Summary) -> Written {
    for (nature, word, text) in [
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
    ] {
        let is_such = |(_, mode): &(&str, &ModeSummary)| mode.nature == nature;
        let such: Vec<&str> = summary
            .modes
            .iter()
            .filter(is_such)
            .map(|(label, _)| label)
            .collect();
        if such.is_empty() {
            continue;
        }
        let whom = match such.len() == summary.modes.len() {
            true => String::new(),
            false => format!(" ({})", such.join(", ")),
        };
        writeln!(
            page,
            "<p class=\"nature\"><strong>{word}.</strong> {}{}.</p>",
            html(text),
            html(&whom)
        )?;
    }
    Ok(())
}

fn trials(page: &mut String, report: &HtmlReport<'_>) -> Written {
    section(page, "trials", "Trials")?;
    let (rows, shown, traces) = (
        report.rows as usize,
        report.trials.len(),
        report.traces.len(),
    );
    let mut notes = Vec::new();
    if shown < rows {
        notes.push(format!(
            "{shown} of {rows} trials are listed: as many of each scenario and mode, failed and void ones first. All are in \
             data/results.csv."
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
    writeln!(
        page,
        "<p>{}</p><noscript><p>Scripts are off: the list of trials is not shown.</p></noscript>\
         <div id=\"list\"></div></section>",
        html(&notes.join(" "))
    )
}

fn cautions(page: &mut String, summary: &Summary) -> Written {
    section(page, "cautions", "Cautions")?;
    if summary.cautions.is_empty() {
        writeln!(page, "<p>None.</p>")?;
    }
    writeln!(page, "<ul class=\"cautions\">")?;
    for caution in &summary.cautions {
        let places = match caution.places.is_empty() {
            true => String::new(),
            false => format!("<br><small>{}</small>", html(&caution.places.join("; "))),
        };
        writeln!(
            page,
            "<li>{} <code>{}</code>{places}</li>",
            html(&caution.text),
            html(&caution.code)
        )?;
    }
    writeln!(page, "</ul>")?;
    if !summary.prices.is_empty() {
        let tables = html(&summary.prices.join("; "));
        writeln!(
            page,
            "<p class=\"legend\">Costs that Assize computed are tokens times the prices of: {tables}.</p>"
        )?;
    }
    writeln!(page, "</section>")
}

fn glossary(page: &mut String) -> Written {
    section(page, "glossary", "Glossary")?;
    write!(page, "<dl class=\"glossary\">")?;
    for (word, meaning) in GLOSSARY {
        write!(
            page,
            "<dt>{}</dt><dd>{}</dd>",
            html(word),
            html(&capital(meaning))
        )?;
    }
    writeln!(page, "</dl></section>")
}
