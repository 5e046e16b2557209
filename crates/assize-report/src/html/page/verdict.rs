//! The verdict: what can be said about each pair of modes.

use super::Written;
use super::table::{capital, section};
use crate::comparison::{headline, level_percent};
use crate::html::HtmlReport;
use crate::html::charts::difference_bar;
use crate::html::escape::html;
use crate::words::{clause, closing_line, sentence, short_name};
use crate::{Comparison, GateResult, Nature};
use assize_stats::{GateVerdict, Verdict};
use std::fmt::Write;

pub(super) fn verdict(page: &mut String, report: &HtmlReport<'_>) -> Written {
    let summary = report.summary;
    section(page, "verdict", "Verdict")?;
    if summary.comparisons.is_empty() {
        let what = match summary.modes.len() {
            0 => "There are no trials.",
            1 => "There is nothing to compare: one mode.",
            _ => "There is nothing to compare: the modes differ in more than their mode.",
        };
        writeln!(page, "<p class=\"empty\">{what}</p>")?;
    }
    writeln!(page, "<div class=\"cards\">")?;
    for pair in summary.decisive_pairs().filter(|pair| !pair.is_empty()) {
        card(page, &pair)?;
    }
    writeln!(page, "</div>")?;
    if !summary.comparisons.is_empty() {
        writeln!(
            page,
            "<p class=\"legend\">Bars are {} intervals of the difference. The line in the middle is no difference; the ends are 100 % less and \
             100 % more, for success 100 points.</p>",
            level_percent(summary.confidence)
        )?;
    }
    gates(page, &summary.gates)?;
    let decisive: Vec<_> = summary
        .cautions
        .iter()
        .filter(|caution| caution.is_primary && !is_said_above(&caution.code))
        .collect();
    if !decisive.is_empty() {
        writeln!(page, "<div class=\"care\"><h3>Read with care</h3><ul>")?;
        for caution in decisive {
            writeln!(page, "<li>{}</li>", html(&caution.text))?;
        }
        writeln!(page, "</ul></div>")?;
    }
    writeln!(page, "</section>")
}

fn gates(page: &mut String, gates: &[GateResult]) -> Written {
    if gates.is_empty() {
        return Ok(());
    }
    writeln!(page, "<h3>Gates</h3><ul class=\"verdicts gates\">")?;
    for gate in gates {
        let (class, glyph, word) = match gate.verdict {
            GateVerdict::Pass => ("better", "✓", "passes"),
            GateVerdict::Fail => ("worse", "✗", "fails"),
            GateVerdict::Inconclusive => ("open", "?", "inconclusive"),
        };
        writeln!(
            page,
            "<li class=\"{class}\"><span class=\"glyph\" aria-hidden=\"true\">{glyph}</span><span class=\"word\">{word}</span>\
             <span class=\"clause\">{}</span></li>",
            html(&gate.line())
        )?;
    }
    writeln!(page, "</ul>")
}

/// The head of the page says what is not live.
fn is_said_above(code: &str) -> bool {
    [Nature::Simulated, Nature::Replayed]
        .iter()
        .any(|nature| nature.as_str() == code)
}

fn card(page: &mut String, pair: &[&Comparison]) -> Written {
    let (a, b) = (pair[0].mode_a(), pair[0].mode_b());
    let line = closing_line(pair.iter().copied()).unwrap_or_default();
    let line = line.strip_prefix(&format!("{a}: ")).unwrap_or(&line);
    writeln!(
        page,
        "<article class=\"card\"><h3>{} <span class=\"against\">against {}</span></h3><p class=\"headline\">{}</p>\
         <ul class=\"verdicts\">",
        html(a),
        html(b),
        html(&capital(line))
    )?;
    for comparison in pair {
        let look = look(comparison.verdict());
        writeln!(
            page,
            "<li class=\"{}\"><span class=\"glyph\" aria-hidden=\"true\">{}</span><span class=\"word\">{}: {}</span>\
             <span class=\"clause\">{}</span>{}</li>",
            look.class,
            look.glyph,
            html(&capital(short_name(comparison.metric()))),
            look.word,
            html(&short_clause(comparison)),
            bar(comparison)
        )?;
    }
    writeln!(
        page,
        "</ul><details><summary>In full sentences</summary><ul>"
    )?;
    for comparison in pair {
        writeln!(page, "<li>{}</li>", html(&sentence(comparison)))?;
    }
    writeln!(page, "</ul></details></article>")
}

/// The clause without the words that stand above it.
fn short_clause(comparison: &Comparison) -> String {
    let clause = clause(comparison);
    let name = short_name(comparison.metric());
    let range = clause
        .strip_prefix(&format!("cannot tell for {name} ("))
        .and_then(|range| range.strip_suffix(')'));
    capital(range.unwrap_or(&clause))
}

/// How a verdict looks.
pub(super) struct Look {
    pub(super) class: &'static str,
    pub(super) glyph: &'static str,
    pub(super) word: &'static str,
}

pub(super) fn look(verdict: Verdict) -> Look {
    let (class, glyph, word) = match verdict {
        Verdict::Better => ("better", "✓", "better"),
        Verdict::Worse => ("worse", "✗", "worse"),
        Verdict::Equivalent => ("equivalent", "=", "equivalent"),
        Verdict::Inconclusive => ("open", "?", "cannot tell"),
        Verdict::NotComparable => ("none", "–", "not comparable"),
    };
    Look { class, glyph, word }
}

/// The interval of a comparison as a picture; nothing where there is none.
pub(super) fn bar(comparison: &Comparison) -> String {
    let (value, interval, end) = match comparison {
        Comparison::Success(found) => match (found.difference_pp, found.ci95) {
            (Some(value), Some(interval)) => (value, interval, 100.0),
            _ => return String::new(),
        },
        Comparison::Metric(found) => match headline(found).filter(|shown| !shown.is_degenerate()) {
            // A reduction counts downwards; as a change its ends swap.
            Some(shown) if shown.is_ratio => {
                let [low, high] = shown.interval;
                (-shown.value, [-high, -low], 100.0)
            }
            Some(shown) => {
                let [low, high] = shown.interval;
                let end = low.abs().max(high.abs()).max(f64::MIN_POSITIVE) * 1.1;
                (shown.value, shown.interval, end)
            }
            None => return String::new(),
        },
    };
    let look = look(comparison.verdict());
    let name = format!("{}: {}", look.word, clause(comparison));
    difference_bar(value, interval, end, look.class, &name)
}
