//! The trials of one scenario in one mode as squares, in the order of their repetitions.

use crate::html::svg::{Svg, at};
use assize_contracts::Outcome;

const SIZE: f64 = 12.0;
const STEP: f64 = 15.0;
const PER_LINE: usize = 10;

/// One trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Square {
    pub(crate) iteration: i64,
    pub(crate) outcome: Outcome,
    /// Its place in the table of trials, if it stands there.
    pub(crate) trial: Option<usize>,
}

/// The word for an outcome.
pub(crate) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::Void => "void",
    }
}

pub(crate) fn success_squares(squares: &[Square], name: &str) -> String {
    let lines = squares.len().div_ceil(PER_LINE).max(1);
    let columns = squares.len().clamp(1, PER_LINE);
    let mut svg = Svg::new(columns as f64 * STEP, lines as f64 * STEP, name);
    for (place, square) in squares.iter().enumerate() {
        let (column, line) = (place % PER_LINE, place / PER_LINE);
        let (x, y) = (column as f64 * STEP + 1.5, line as f64 * STEP + 1.5);
        let word = word(square.outcome);
        if let Some(trial) = square.trial {
            svg.begin_link(&format!("#trial-{trial}"));
        }
        let title = format!("repetition {}: {word}", square.iteration);
        svg.bar(
            &format!("square {word}"),
            at(x, y),
            at(x + SIZE, y + SIZE),
            &title,
        );
        match square.outcome {
            // Told apart by shape as well as by colour.
            Outcome::Fail => {
                svg.line(
                    "mark",
                    at(x + 3.0, y + 3.0),
                    at(x + SIZE - 3.0, y + SIZE - 3.0),
                );
                svg.line(
                    "mark",
                    at(x + SIZE - 3.0, y + 3.0),
                    at(x + 3.0, y + SIZE - 3.0),
                );
            }
            Outcome::Void => svg.line(
                "mark",
                at(x + 3.0, y + SIZE / 2.0),
                at(x + SIZE - 3.0, y + SIZE / 2.0),
            ),
            Outcome::Pass => {}
        }
        if square.trial.is_some() {
            svg.end_link();
        }
    }
    svg.finish()
}
