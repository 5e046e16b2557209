//! Pieces that every section is made of.

use crate::html::charts::colour;
use maud::{Markup, html};

/// Rows of a table of scenarios, checks or reasons; a longer one is in the CSV file.
pub(super) const MOST_ROWS: usize = 600;

pub(super) fn section(id: &str, title: &str, content: Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } { (title) }
            (content)
        }
        "\n"
    }
}

pub(super) fn figure(title: &str, picture: &Markup, note: &str) -> Markup {
    html! {
        figure {
            figcaption { (title) }
            (picture)
            @if !note.is_empty() { p.legend { (note) } }
        }
        "\n"
    }
}

pub(super) fn left_out(all: usize, what: &str) -> Markup {
    let more = all.saturating_sub(MOST_ROWS);
    html! {
        @if more > 0 { p.legend { (more) " more " (what) " are not shown." } }
    }
}

pub(super) fn name_cell(mode: usize, label: &str) -> Markup {
    chip(&colour(mode), label)
}

/// A name beside its colour.
pub(super) fn chip(shade: &str, name: &str) -> Markup {
    html! { span class={ "chip " (shade) } {} (name) }
}

pub(super) fn number(text: &str) -> Markup {
    let class = match text {
        "unknown" | "n/a" => "unknown",
        _ => "number",
    };
    html! { span class=(class) { (text) } }
}

/// Plain text as a cell.
pub(super) fn text(text: &str) -> Markup {
    html! { (text) }
}

/// Items with something between them.
pub(super) fn joined(items: &[Markup], between: &str) -> Markup {
    html! {
        @for (place, item) in items.iter().enumerate() {
            @if place > 0 { (between) }
            (item)
        }
    }
}

pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    crate::caution::count(number as u64, one, many)
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// A table. It scrolls by itself where the page is narrow.
pub(super) struct Table {
    caption: String,
    heading: Vec<String>,
    rows: Vec<Vec<Markup>>,
}

impl Table {
    pub(super) fn new(caption: &str, heading: &[&str]) -> Self {
        Self {
            caption: caption.to_owned(),
            heading: heading.iter().map(|&cell| cell.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<Markup>) {
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as markup; nothing for a table without rows.
    pub(super) fn markup(&self) -> Markup {
        html! {
            @if !self.is_empty() {
                div.scroll role="region" tabindex="0" aria-label=(self.caption) {
                    table {
                        caption { (self.caption) }
                        thead { tr { @for cell in &self.heading { th scope="col" { (cell) } } } }
                        "\n"
                        tbody { @for row in &self.rows { (table_row(row)) } }
                    }
                }
                "\n"
            }
        }
    }
}

fn table_row(cells: &[Markup]) -> Markup {
    html! {
        tr {
            @for (place, cell) in cells.iter().enumerate() {
                @if place == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
            }
        }
        "\n"
    }
}
