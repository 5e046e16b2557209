//! The trials of one scenario in one mode as squares, in the order of their repetitions.

use crate::html::svg::{Point, Svg, at};
use assize_contracts::Outcome;
use maud::Markup;

const SIZE: f64 = 12.0;
const STEP: f64 = 15.0;
const PER_LINE: usize = 10;

/// One trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Square {
    pub(crate) iteration: i64,
    pub(crate) outcome: Outcome,
    /// Its place in the table of trials, if it is there.
    pub(crate) trial: Option<usize>,
}

pub(crate) fn success_squares(squares: &[Square], name: &str) -> Markup {
    let lines = squares.len().div_ceil(PER_LINE).max(1);
    let columns = squares.len().clamp(1, PER_LINE);
    let mut svg = Svg::new(columns as f64 * STEP, lines as f64 * STEP, name);
    for (place, square) in squares.iter().enumerate() {
        let (column, line) = (place % PER_LINE, place / PER_LINE);
        let corner = at(column as f64 * STEP + 1.5, line as f64 * STEP + 1.5);
        match square.trial {
            Some(trial) => svg.link(&format!("#trial-{trial}"), |svg| draw(svg, square, corner)),
            None => draw(&mut svg, square, corner),
        }
    }
    svg.finish()
}

/// One square. Outcomes differ in shape as well as in colour.
fn draw(svg: &mut Svg, square: &Square, corner: Point) {
    let Point { x, y } = corner;
    let word = square.outcome.as_str();
    let title = format!("repetition {}: {word}", square.iteration);
    svg.square(&format!("square {word}"), corner, SIZE, &title);
    let (near, far) = (3.0, SIZE - 3.0);
    match square.outcome {
        Outcome::Fail => {
            svg.line("mark", at(x + near, y + near), at(x + far, y + far));
            svg.line("mark", at(x + far, y + near), at(x + near, y + far));
        }
        Outcome::Void => {
            let middle = y + SIZE / 2.0;
            svg.line("mark", at(x + near, middle), at(x + far, middle));
        }
        Outcome::Pass => {}
    }
}
