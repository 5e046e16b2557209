//! The definition of each mode: the settings that make it differ from the others.

use super::table::{Table, name_cell, section};
use crate::html::HtmlReport;
use maud::{Markup, html};

pub(super) fn modes(report: &HtmlReport<'_>) -> Markup {
    let has_any = |settings: &Vec<[String; 2]>| !settings.is_empty();
    if !report.settings.iter().any(has_any) {
        return Markup::default();
    }
    let labels = labels(&report.settings);
    let heading: Vec<&str> = std::iter::once("Mode")
        .chain(labels.iter().copied())
        .collect();
    let mut table = Table::new("What each mode is", &heading);
    for (place, (name, _)) in report.summary.modes.iter().enumerate() {
        let settings = &report.settings[place];
        let cells = labels.iter().map(|label| setting(settings, label));
        let name = std::iter::once(name_cell(place, name));
        table.row(name.chain(cells).collect());
    }
    section("modes", "What was compared", table.markup())
}

/// All labels, in the order of their first appearance.
fn labels(settings: &[Vec<[String; 2]>]) -> Vec<&str> {
    let mut labels = Vec::new();
    for [label, _] in settings.iter().flatten() {
        if !labels.contains(&label.as_str()) {
            labels.push(label.as_str());
        }
    }
    labels
}

/// Several values of one setting are below each other.
fn setting(settings: &[[String; 2]], label: &str) -> Markup {
    let found = settings.iter().filter(|[known, _]| known == label);
    let values: Vec<&String> = found.map(|[_, value]| value).collect();
    html! {
        @if values.is_empty() { small { "none" } }
        @for (place, value) in values.iter().enumerate() {
            @if place > 0 { br; }
            span.setting { (value) }
        }
    }
}
