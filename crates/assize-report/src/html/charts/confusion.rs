//! The confusion matrix as a picture: what was expected from top to bottom, what came out from left to right.

use crate::Classification;
use crate::html::svg::{Anchor, Svg, at};
use maud::Markup;

/// Labels that are drawn; more are in the table.
pub(crate) const MOST_LABELS: usize = 20;

const SIDE: f64 = 34.0;
const LEFT: f64 = 150.0;
const TOP: f64 = 40.0;
const LONGEST: usize = 18;
const NOTE_WIDTH: f64 = 220.0;

pub(crate) fn confusion(found: &Classification, name: &str) -> Markup {
    let count = found.classes.len().min(MOST_LABELS);
    let size = SIDE * count as f64;
    // The line above a matrix of two labels is wider than the matrix.
    let width = (LEFT + size + 20.0).max(LEFT + NOTE_WIDTH);
    let mut svg = Svg::new(width, TOP + size + 20.0, name);
    svg.text(
        "tick",
        at(LEFT, 14.0),
        Anchor::Start,
        "came out →  (numbers as in the rows)",
    );
    for row in 0..count {
        let y = TOP + SIDE * row as f64;
        let label = &found.classes[row].label;
        let shown = format!("{} {}", short(label), row + 1);
        svg.text(
            "tick",
            at(LEFT - 8.0, y + SIDE / 2.0 + 4.0),
            Anchor::End,
            &shown,
        );
        let column = format!("{}", row + 1);
        let x = LEFT + SIDE * row as f64 + SIDE / 2.0;
        svg.text("tick", at(x, TOP - 8.0), Anchor::Middle, &column);
        let support = found.classes[row].support;
        for column in 0..count {
            let trials = found.matrix[row][column];
            let x = LEFT + SIDE * column as f64;
            let title = format!(
                "expected {label}, came out {}: {trials}",
                found.classes[column].label
            );
            let class = shade(trials, support, row == column);
            svg.bar(
                &class,
                at(x + 1.0, y + 1.0),
                at(x + SIDE - 1.0, y + SIDE - 1.0),
                &title,
            );
            if trials > 0 {
                let middle = at(x + SIDE / 2.0, y + SIDE / 2.0 + 4.0);
                svg.text("count", middle, Anchor::Middle, &trials.to_string());
            }
        }
    }
    svg.finish()
}

/// Five shades of right, five of wrong, and none for nothing.
fn shade(trials: u64, support: u64, is_right: bool) -> String {
    let kind = if is_right { "hit" } else { "miss" };
    let level = match support {
        0 => 0,
        _ => (trials * 5).div_ceil(support).min(5),
    };
    match trials {
        0 => "heat".to_owned(),
        _ => format!("heat {kind}{}", level.max(1)),
    }
}

fn short(label: &str) -> String {
    match label.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.to_owned(),
    }
}
