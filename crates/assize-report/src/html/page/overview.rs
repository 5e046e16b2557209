//! Modes side by side, and compared with each other.

use super::table::{Table, joined, name_cell, number, section, text};
use super::verdict::{bar, glyph, look};
use crate::cells::{comparison_cells, metric_cell};
use crate::comparison::level_percent;
use crate::efficiency;
use crate::html::HtmlReport;
use crate::html::charts::{Worth, cost_against_success, rate_bar};
use crate::summary::TYPICAL_TASKS;
use crate::words::{EXPLORATORY, scopes_note};
use crate::{Comparison, ModeSummary, Summary, percent};
use assize_contracts::RowField;
use assize_stats::{Statistic, Verdict};
use maud::{Markup, html};

pub(super) fn glance(report: &HtmlReport<'_>) -> Markup {
    let summary = report.summary;
    let content = html! {
        (glance_table(summary).markup())
        @if let Some(note) = summary.success_scope_note() { p.legend { (note) } }
        @if let Some(judge) = &summary.judge { p.legend { (judge.sentence()) } }
        (typical_tasks(summary))
        div.figures {
            (worth(summary))
            (several_tries(summary))
        }
        @if !summary.modes.is_empty() { (efficiency_figure(summary)) }
    };
    section("glance", "At a glance", content)
}

fn typical_tasks(summary: &Summary) -> Markup {
    let level = format!("{} interval", level_percent(summary.confidence));
    let heading = ["Mode", "Metric", "Typical task", &level];
    let mut table = Table::new("What a typical task takes", &heading);
    for [mode, metric, value, interval] in summary.typical_tasks() {
        table.row(vec![
            text(&mode),
            text(&metric),
            number(&value),
            number(&interval),
        ]);
    }
    html! {
        @if !table.is_empty() {
            (table.markup())
            p.legend { (TYPICAL_TASKS) }
        }
    }
}

fn glance_table(summary: &Summary) -> Table {
    let level = format!(
        "Success with {} interval",
        level_percent(summary.confidence)
    );
    let heading = [
        "Mode",
        &level,
        "Time",
        "p90",
        "Tokens",
        "Active",
        "Cost",
        "Per success",
        "Tool calls",
    ];
    let mut table = Table::new(
        "Results at a glance; numbers are medians of trials",
        &heading,
    );
    for (place, (label, mode)) in summary.modes.iter().enumerate() {
        let median = |field| summary.shown_median(mode, field);
        let (time, found) = summary.field(mode, RowField::WallTime);
        let p90 = metric_cell(&time, found, Statistic::P90);
        table.row(vec![
            name_cell(place, label),
            html! { span.number { (success_words(mode)) } (success_bar(place, label, mode)) },
            number(&median(RowField::WallTime)),
            number(&p90),
            number(&median(RowField::TokensTotal)),
            number(&median(RowField::TokensActive)),
            number(&median(RowField::CostTotal)),
            number(&efficiency::cost_per_success(summary, mode)),
            number(&median(RowField::ToolCalls)),
        ]);
    }
    table
}

pub(super) fn success_words(mode: &ModeSummary) -> String {
    let success = &mode.success;
    let Some(words) = success.words() else {
        return match success.void {
            0 => "unknown".to_owned(),
            void => format!("unknown, {void} void"),
        };
    };
    let interval = success
        .ci95
        .map(|[low, high]| format!(", {} to {}", percent(low), percent(high)));
    let void = match success.void {
        0 => String::new(),
        void => format!("; {void} void"),
    };
    format!("{words}{}{void}", interval.unwrap_or_default())
}

fn success_bar(place: usize, label: &str, mode: &ModeSummary) -> Markup {
    let success = &mode.success;
    let name = format!("{label}: success {}", success_words(mode));
    success.rate.map_or_else(Markup::default, |rate| {
        rate_bar(place, rate, success.ci95, success.void_bounds, &name)
    })
}

/// The price of a trial: money, or tokens where the money is unknown.
struct Price {
    field: RowField,
    axis: &'static str,
    title: &'static str,
}

const PRICES: [Price; 3] = [
    Price {
        field: RowField::CostTotal,
        axis: "cost of a trial (median)",
        title: "Cost against success",
    },
    Price {
        field: RowField::TokensActive,
        axis: "active tokens of a trial (median)",
        title: "Tokens against success",
    },
    Price {
        field: RowField::TokensTotal,
        axis: "tokens of a trial (median)",
        title: "Tokens against success",
    },
];

fn worth(summary: &Summary) -> Markup {
    let is_known = |price: &&Price| {
        let mut modes = summary.modes.iter();
        modes.any(|(_, mode)| summary.field(mode, price.field).1.is_some())
    };
    let Some(price) = PRICES.iter().find(is_known) else {
        return Markup::default();
    };
    let worth_of = |(mode, (name, found)): (usize, (_, &ModeSummary))| {
        Some(Worth {
            mode,
            name,
            price: summary.field(found, price.field).1?.median?,
            rate: found.success.rate?,
            interval: found.success.ci95,
        })
    };
    let worths: Vec<Worth<'_>> = summary
        .modes
        .iter()
        .enumerate()
        .filter_map(worth_of)
        .collect();
    if worths.is_empty() {
        return Markup::default();
    }
    let names: Vec<Markup> = worths
        .iter()
        .map(|worth| html! { (worth.mode + 1) " " (name_cell(worth.mode, worth.name)) })
        .collect();
    html! {
        figure {
            figcaption { (price.title) }
            (cost_against_success(&summary.catalog.of_field(price.field), price.axis, &worths))
            p.legend { (joined(&names, " · ")) }
            p.legend {
                @if price.field != RowField::CostTotal { "The cost is unknown, so tokens are shown in its place. " }
                "Up and to the left is better. Lines are intervals of the rate."
            }
        }
        "\n"
    }
}

fn efficiency_figure(summary: &Summary) -> Markup {
    let mut table = Table::new("What one success takes", &efficiency::HEADING);
    for (place, (label, mode)) in summary.modes.iter().enumerate() {
        let cells = efficiency::cells(summary, mode).map(|cell| number(&cell));
        table.row(
            std::iter::once(name_cell(place, label))
                .chain(cells)
                .collect(),
        );
    }
    html! {
        figure.wide {
            figcaption { "Efficiency: what one success takes, failures included" }
            (table.markup())
        }
    }
}

fn several_tries(summary: &Summary) -> Markup {
    let mut table = Table::new(
        "Several tries",
        &["Mode", "k", "pass@k", "pass^k", "Scenarios"],
    );
    for (place, (label, mode)) in summary.modes.iter().enumerate() {
        for chances in &mode.pass_k {
            let share =
                |share: Option<f64>| number(&share.map_or_else(|| "n/a".to_owned(), percent));
            let found = &chances.chances;
            table.row(vec![
                name_cell(place, label),
                number(&chances.k.to_string()),
                share(found.pass_at_k),
                share(found.pass_hat_k),
                number(&found.scenarios_used.to_string()),
            ]);
        }
    }
    html! {
        @if !table.is_empty() {
            figure.wide {
                figcaption { "Several tries" }
                (table.markup())
                p.legend { "pass@k: at least one of k tries succeeds; pass^k: all do." }
            }
        }
    }
}

pub(super) fn comparisons(summary: &Summary) -> Markup {
    if summary.comparisons.is_empty() {
        return Markup::default();
    }
    let content = html! { @for pair in summary.pairs() { (pair_tables(summary, pair)) } };
    section("comparison", "Comparison", content)
}

fn pair_tables(summary: &Summary, pair: &[Comparison]) -> Markup {
    let (judged, other): (Vec<&Comparison>, Vec<&Comparison>) = pair
        .iter()
        .partition(|found| found.verdict() != Verdict::NotComparable);
    let (decisive, exploratory): (Vec<&Comparison>, Vec<&Comparison>) = judged
        .into_iter()
        .partition(|found| !found.is_exploratory());
    let shown: Vec<&Comparison> = decisive.iter().chain(&exploratory).copied().collect();
    html! {
        h3 { (pair[0].mode_a()) " " span.against { "against " (pair[0].mode_b()) } }
        (comparison_table(summary, &decisive))
        (folded(summary, EXPLORATORY, &exploratory))
        @if let Some(note) = scopes_note(&shown) { p.legend { (note) } }
        (folded(summary, "Metrics without a verdict", &other))
    }
}

fn folded(summary: &Summary, title: &str, comparisons: &[&Comparison]) -> Markup {
    html! {
        @if !comparisons.is_empty() {
            details {
                summary { (title) " (" (comparisons.len()) ")" }
                (comparison_table(summary, comparisons))
            }
        }
    }
}

fn comparison_table(summary: &Summary, comparisons: &[&Comparison]) -> Markup {
    let Some(first) = comparisons.first() else {
        return Markup::default();
    };
    let (a, b) = (first.mode_a(), first.mode_b());
    let heading = [
        "Metric",
        a,
        b,
        "",
        "Difference",
        "Effect",
        "p (adjusted)",
        "n",
        "Verdict",
    ];
    let mut table = Table::new(&format!("{a} compared with {b}"), &heading);
    for comparison in comparisons {
        table.row(comparison_row(summary, comparison));
    }
    table.markup()
}

fn comparison_row(summary: &Summary, comparison: &Comparison) -> Vec<Markup> {
    let cells = comparison_cells(comparison, summary);
    let [
        metric,
        a,
        b,
        difference,
        interval,
        effect,
        p,
        adjusted,
        n,
        verdict,
    ] = &cells[..]
    else {
        return Vec::new();
    };
    let look = look(comparison.verdict());
    vec![
        text(metric),
        number(a),
        number(b),
        bar(comparison),
        html! { (difference) br; small { (interval) } },
        text(effect),
        html! { (p) " " small { "(" (adjusted) ")" } },
        text(n),
        html! { span class=(look.class) { (glyph(look.glyph)) " " (verdict) } },
    ]
}
