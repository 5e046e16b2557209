//! Pieces that every section is made of.

use super::Written;
use crate::html::charts::colour;
use crate::html::escape::html;
use std::fmt::Write;

/// Rows of a table of scenarios, checks or reasons; a longer one is in the CSV file.
pub(super) const MOST_ROWS: usize = 600;

pub(super) fn section(page: &mut String, id: &str, title: &str) -> Written {
    writeln!(
        page,
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\"><h2 id=\"{id}-title\">{title}</h2>"
    )
}

pub(super) fn figure(page: &mut String, title: &str, svg: &str, note: &str) -> Written {
    let note = match note {
        "" => String::new(),
        _ => format!("<p class=\"legend\">{}</p>", html(note)),
    };
    writeln!(
        page,
        "<figure><figcaption>{}</figcaption>{svg}{note}</figure>",
        html(title)
    )
}

pub(super) fn left_out(page: &mut String, all: usize, what: &str) -> Written {
    match all.checked_sub(MOST_ROWS) {
        Some(more) if more > 0 => writeln!(
            page,
            "<p class=\"legend\">{more} more {what} are not shown.</p>"
        ),
        _ => Ok(()),
    }
}

pub(super) fn name_cell(mode: usize, label: &str) -> String {
    format!(
        "<span class=\"chip {}\"></span>{}",
        colour(mode),
        html(label)
    )
}

pub(super) fn number(text: &str) -> String {
    match text {
        "unknown" | "n/a" => format!("<span class=\"unknown\">{text}</span>"),
        _ => format!("<span class=\"number\">{}</span>", html(text)),
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

/// A table whose cells are markup already. It scrolls by itself where the page is narrow.
pub(super) struct Table {
    caption: String,
    heading: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(caption: &str, heading: &[&str]) -> Self {
        Self {
            caption: caption.to_owned(),
            heading: heading.iter().map(|&cell| cell.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn write(&self, page: &mut String) -> Written {
        if self.rows.is_empty() {
            return Ok(());
        }
        let caption = html(&self.caption);
        write!(
            page,
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table><caption>{caption}</caption>\
             <thead><tr>"
        )?;
        for cell in &self.heading {
            write!(page, "<th scope=\"col\">{cell}</th>")?;
        }
        writeln!(page, "</tr></thead><tbody>")?;
        for row in &self.rows {
            write!(page, "<tr>")?;
            for (place, cell) in row.iter().enumerate() {
                match place {
                    0 => write!(page, "<th scope=\"row\">{cell}</th>")?,
                    _ => write!(page, "<td>{cell}</td>")?,
                }
            }
            writeln!(page, "</tr>")?;
        }
        writeln!(page, "</tbody></table></div>")
    }
}
