//! The verdict: what can be said about each pair of modes.

use super::ranking::ranking;
use super::table::{capital, section};
use crate::cells::comparison_cells;
use crate::comparison::{headline, level_percent};
use crate::html::HtmlReport;
use crate::html::charts::{Ends, difference_bar};
use crate::summary::shown_amount;
use crate::words::{Clause, clause, closing_clauses, sentence, verdict_word};
use crate::{
    Comparison, EFFECTS_NOTE, EXPLORATORY, GateResult, Nature, Summary, amount, effect_sentence,
    gate_bounds_note, gates_note,
};
use assize_stats::{GateVerdict, Verdict};
use maud::{Markup, html};

pub(super) fn verdict(report: &HtmlReport<'_>) -> Markup {
    let summary = report.summary;
    let pairs = summary.decisive_pairs().filter(|pair| !pair.is_empty());
    let content = html! {
        @if summary.comparisons.is_empty() { p.empty { (why_nothing_is_compared(summary)) } }
        @if let Some(words) = summary.nothing_worked() {
            p.problem { strong { (words) } " " a href="#failures" { "What went wrong" } }
        }
        // Of many modes people first want to know the order.
        (ranking(summary))
        div.cards { @for pair in pairs { (card(&pair, summary)) } }
        @if !summary.comparisons.is_empty() {
            p.legend {
                "Bars are " (level_percent(summary.confidence)) " intervals of the difference: one per line, for the tasks that its words \
                 name. The line in the middle is no difference."
            }
        }
        (effects(summary))
        (gates(&summary.gates))
        (care(summary))
    };
    section("verdict", "Verdict", content)
}

/// The effects of the factors.
fn effects(summary: &Summary) -> Markup {
    html! {
        @if !summary.effects.is_empty() {
            h3 { "Effects of the factors" }
            ul.verdicts { @for effect in summary.shown_effects().filter(|effect| !effect.exploratory) { li { span.clause { (effect_sentence(effect)) } } } }
            @if summary.shown_effects().any(|effect| effect.exploratory) {
                p.legend { (EXPLORATORY) }
                ul.verdicts { @for effect in summary.shown_effects().filter(|effect| effect.exploratory) { li { span.clause { (effect_sentence(effect)) } } } }
            }
            p.legend { (EFFECTS_NOTE) }
        }
    }
}

fn why_nothing_is_compared(summary: &Summary) -> &'static str {
    match summary.modes.len() {
        0 => "There are no trials.",
        1 => "There is nothing to compare: one mode.",
        _ => "There is nothing to compare: the modes differ in more than their mode.",
    }
}

/// The cautions about what decides.
fn care(summary: &Summary) -> Markup {
    let decisive: Vec<_> = summary
        .cautions
        .iter()
        .filter(|caution| caution.is_primary && !is_said_above(caution.code.as_str()))
        .collect();
    html! {
        @if !decisive.is_empty() {
            div.care {
                h3 { "Read with care" }
                ul { @for caution in decisive { li { (caution.text) } } }
            }
        }
    }
}

fn gates(gates: &[GateResult]) -> Markup {
    html! {
        @if !gates.is_empty() {
            h3 { "Gates" }
            ul.verdicts.gates { @for gate in gates { (gate_item(gate)) } }
            @if let Some(note) = gates_note(gates) { p.legend { (note) "." } }
            @if let Some(note) = gate_bounds_note(gates) { p.legend { (note) } }
        }
    }
}

fn gate_item(gate: &GateResult) -> Markup {
    let (class, sign, word) = match gate.verdict {
        GateVerdict::Pass => ("better", "✓", "passes"),
        GateVerdict::Fail => ("worse", "✗", "fails"),
        GateVerdict::Inconclusive => ("open", "?", "inconclusive"),
    };
    html! {
        li class=(class) {
            (glyph(sign))
            span.word { (word) }
            span.clause { (gate.line()) }
        }
    }
}

/// A sign for the eye only.
pub(super) fn glyph(sign: &str) -> Markup {
    html! { span.glyph aria-hidden="true" { (sign) } }
}

/// The head of the page says what is not live.
fn is_said_above(code: &str) -> bool {
    [Nature::Simulated, Nature::Replayed]
        .iter()
        .any(|nature| nature.as_str() == code)
}

fn card(pair: &[&Comparison], summary: &Summary) -> Markup {
    let (a, b) = (pair[0].mode_a(), pair[0].mode_b());
    let line = closing_clauses(pair.iter().copied()).unwrap_or_default();
    html! {
        article.card {
            h3 { (a) " " span.against { "against " (b) } }
            p.headline { (unbroken(&capital(&line))) }
            ul.verdicts { @for comparison in pair { (verdict_item(comparison, summary)) } }
            details {
                summary { "In full sentences" }
                ul { @for comparison in pair { li { (sentence(comparison)) } } }
            }
        }
        "\n"
    }
}

/// Numbers stay with their sign where a line ends.
fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

fn verdict_item(comparison: &Comparison, summary: &Summary) -> Markup {
    let look = look(comparison.verdict());
    let [new, old] = values(comparison, summary);
    html! {
        li class=(look.class) {
            (glyph(look.glyph))
            span.word {
                (capital(comparison.definition().label())) ": " (look.word)
                @if ![&new, &old].iter().all(|value| *value == "n/a") {
                    " " span.values { (old) " → " (new) }
                }
            }
            span.clause { (unbroken(&capital(&Clause::of(comparison).without_name()))) }
            (bar(comparison))
        }
    }
}

/// The values of the two modes: the numbers that the sentence names, or else the medians.
fn values(comparison: &Comparison, summary: &Summary) -> [String; 2] {
    let cells = comparison_cells(comparison, summary);
    let of_cells = || [1, 2].map(|place| cells.get(place).cloned().unwrap_or_default());
    match comparison {
        Comparison::Metric(found) => match found.value_a.zip(found.value_b) {
            Some((a, b)) => [a, b].map(|value| shown_amount(&found.definition, value)),
            None => of_cells(),
        },
        Comparison::Success(_) => of_cells(),
    }
}

/// The appearance of a verdict.
pub(super) struct Look {
    pub(super) class: &'static str,
    pub(super) glyph: &'static str,
    pub(super) word: &'static str,
}

pub(super) fn look(verdict: Verdict) -> Look {
    let (class, glyph) = match verdict {
        Verdict::Better => ("better", "✓"),
        Verdict::Worse => ("worse", "✗"),
        Verdict::Equivalent => ("equivalent", "="),
        Verdict::Lower => ("open", "↓"),
        Verdict::Higher => ("open", "↑"),
        Verdict::Inconclusive => ("open", "?"),
        Verdict::NotComparable => ("none", "–"),
    };
    let word = verdict_word(verdict);
    Look { class, glyph, word }
}

/// The interval of a comparison as a picture; nothing where there is none.
pub(super) fn bar(comparison: &Comparison) -> Markup {
    let hundred = |unit: &str| Ends {
        value: 100.0,
        label: format!("100 {unit}"),
    };
    let (value, interval, ends) = match comparison {
        Comparison::Success(found) => match (found.difference_pp, found.ci95) {
            (Some(value), Some(interval)) => (value, interval, hundred("points")),
            _ => return Markup::default(),
        },
        Comparison::Metric(found) => match headline(found).filter(|shown| !shown.is_degenerate()) {
            // A reduction counts downwards; as a change its ends swap.
            Some(shown) if shown.is_ratio => {
                let [low, high] = shown.interval;
                (-shown.value, [-high, -low], hundred("%"))
            }
            Some(shown) => {
                let [low, high] = shown.interval;
                let end = low.abs().max(high.abs()).max(f64::MIN_POSITIVE) * 1.1;
                let label = amount(&found.definition, end);
                (shown.value, shown.interval, Ends { value: end, label })
            }
            None => return Markup::default(),
        },
    };
    let look = look(comparison.verdict());
    let name = format!("{}: {}", look.word, clause(comparison));
    difference_bar(value, interval, &ends, look.class, &name)
}
