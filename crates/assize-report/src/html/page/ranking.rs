//! Three and more modes: their ranks, and the distance of every mode from every other.

use super::table::{Table, name_cell, number, text};
use super::verdict::{glyph, look};
use crate::words::signed;
use crate::{Comparison, ModeSummary, Summary, metric_cell, percent};
use assize_contracts::{Better, SUCCESS};
use assize_stats::Statistic;
use maud::{Markup, html};

/// With fewer modes the verdict says it all.
const FEWEST_MODES: usize = 3;

/// More columns than these cannot be read.
const MOST_MODES: usize = 12;

/// The table and the matrix. Nothing for one or two modes, and where not all are held against the same one.
pub(super) fn ranking(summary: &Summary) -> Markup {
    let order = order(summary);
    let mut baselines: Vec<&str> = summary.comparisons.iter().map(Comparison::mode_b).collect();
    baselines.dedup();
    if order.len() < FEWEST_MODES || baselines.len() != 1 {
        return Markup::default();
    }
    html! {
        h3 { "Ranking" }
        (ranks(summary, &order).markup())
        p.legend {
            "By the share of trials that passed, then by what else decides. Places are those of these trials; whether a difference is real \
             is under “against the baseline”."
        }
        @if order.len() <= MOST_MODES {
            h3 { "Every mode against every other" }
            (matrix(summary, &order).markup())
            p.legend {
                "Points of success by which the mode of the row is ahead of that of the column, over all their trials. Only comparisons \
                 with the baseline are tested; the others are differences of these trials."
            }
        }
    }
}

/// Places of the modes that may be compared, the best first; modes that were never judged come last.
fn order(summary: &Summary) -> Vec<usize> {
    let is_compared = |place: &usize| {
        let name = summary.modes.0[*place].0.as_str();
        let mut all = summary.comparisons.iter();
        all.any(|found| found.mode_a() == name || found.mode_b() == name)
    };
    let mut order: Vec<usize> = (0..summary.modes.len()).filter(is_compared).collect();
    let mode = |place: usize| &summary.modes.0[place].1;
    let rate = |place: usize| mode(place).success.rate.unwrap_or(-1.0);
    let others = others(summary);
    order.sort_by(|a, b| {
        let by_rate = rate(*b).total_cmp(&rate(*a));
        let by_others = others.iter().map(|(name, better)| {
            let value = |place: usize| {
                let found = mode(place).metrics.find(name)?;
                found.median.or(found.least(Statistic::Median))
            };
            match (value(*a), value(*b), better) {
                (Some(a), Some(b), Better::Higher) => b.total_cmp(&a),
                (Some(a), Some(b), Better::Lower) => a.total_cmp(&b),
                _ => std::cmp::Ordering::Equal,
            }
        });
        by_others.fold(by_rate, std::cmp::Ordering::then)
    });
    order
}

/// The deciding metrics besides success that have a direction.
fn others(summary: &Summary) -> Vec<(&String, Better)> {
    let names = summary.primary.iter().filter(|name| *name != SUCCESS);
    names
        .filter_map(|name| Some((name, summary.catalog.metric(name).better?)))
        .collect()
}

fn ranks(summary: &Summary, order: &[usize]) -> Table {
    let others = others(summary);
    let titles: Vec<String> = others
        .iter()
        .map(|(name, _)| summary.catalog.metric(name).label().to_owned())
        .collect();
    let mut heading = vec!["Place", "Mode", "Success"];
    heading.extend(titles.iter().map(String::as_str));
    heading.push("Against the baseline");
    let mut table = Table::new("Modes by how they did", &heading);
    let mut last = None;
    let mut shared = 0;
    for (number_in_order, &place) in order.iter().enumerate() {
        let (name, mode) = &summary.modes.0[place];
        // Equal rates share a place.
        if last != Some(mode.success.rate) {
            shared = number_in_order + 1;
        }
        last = Some(mode.success.rate);
        let rank = mode.success.rate.map(|_| shared.to_string());
        let mut cells = vec![
            number(&rank.unwrap_or_else(|| "n/a".to_owned())),
            name_cell(place, name),
            number(&success(mode)),
        ];
        cells.extend(others.iter().map(|(metric, _)| {
            let definition = summary.catalog.metric(metric);
            let found = mode.metrics.find(metric);
            number(&metric_cell(&definition, found, Statistic::Median))
        }));
        cells.push(against_baseline(summary, name));
        table.row(cells);
    }
    table
}

fn success(mode: &ModeSummary) -> String {
    mode.success
        .rate
        .map_or_else(|| "unknown".to_owned(), percent)
}

/// The words on the deciding metrics.
fn against_baseline(summary: &Summary, mode: &str) -> Markup {
    let of_mode = |found: &&Comparison| found.mode_a() == mode;
    let found: Vec<&Comparison> = summary.decisive().filter(of_mode).collect();
    html! {
        @if found.is_empty() { small { "the baseline" } }
        @for (place, comparison) in found.iter().enumerate() {
            @if place > 0 { br; }
            @let look = look(comparison.verdict());
            span class=(look.class) {
                (glyph(look.glyph)) " " (comparison.definition().label()) ": " (look.word)
            }
        }
    }
}

fn matrix(summary: &Summary, order: &[usize]) -> Table {
    let mut heading = vec!["ahead of →"];
    heading.extend(order.iter().map(|&place| summary.modes.0[place].0.as_str()));
    let mut table = Table::new("Points of success, mode by mode", &heading);
    for &row in order {
        let (name, mode) = &summary.modes.0[row];
        let cells = order.iter().map(|&column| {
            let (other_name, other) = &summary.modes.0[column];
            match (mode.success.rate, other.success.rate) {
                _ if row == column => text("·"),
                (Some(own), Some(other)) => {
                    let points = signed(100.0 * (own - other));
                    let verdict = verdict_of(summary, name, other_name);
                    html! { span.number { (points) } @if let Some(sign) = verdict { " " (sign) } }
                }
                _ => number("n/a"),
            }
        });
        let cells: Vec<Markup> = std::iter::once(name_cell(row, name)).chain(cells).collect();
        table.row(cells);
    }
    table
}

/// The sign of the verdict on success, where the two were compared.
fn verdict_of(summary: &Summary, mode: &str, other: &str) -> Option<Markup> {
    let mut all = summary.comparisons.iter();
    let found = all.find(|found| {
        found.metric() == SUCCESS && found.mode_a() == mode && found.mode_b() == other
    })?;
    let look = look(found.verdict());
    Some(html! { span class=(look.class) title=(look.word) { (glyph(look.glyph)) } })
}
