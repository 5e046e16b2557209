//! The growth of a model's input from call to call.

use super::colour;
use crate::html::escape::cut;
use crate::html::scale::Scale;
use crate::html::svg::{Anchor, Point, Svg, at};
use crate::quantity;
use maud::Markup;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;

/// One mode: typical input tokens by number of the call.
pub(crate) struct Growth<'a> {
    pub(crate) mode: usize,
    pub(crate) name: &'a str,
    pub(crate) inputs: Vec<f64>,
}

pub(crate) fn token_growth(lines: &[Growth<'_>]) -> Markup {
    let longest = lines
        .iter()
        .map(|line| line.inputs.len())
        .max()
        .unwrap_or(1);
    let x = Scale::between(1.0, (longest as f64).max(2.0), LEFT, WIDTH - RIGHT);
    let values = lines.iter().flat_map(|line| &line.inputs).copied();
    let y = Scale::over(values.chain([0.0]), HEIGHT - BOTTOM, TOP);
    let spoken: Vec<String> = lines.iter().map(describe).collect();
    let mut svg = Svg::new(
        WIDTH,
        HEIGHT,
        &format!("Input tokens by model call. {}", spoken.join("; ")),
    );
    for tick in y.ticks(4) {
        let place = y.place(tick);
        svg.line("grid", at(LEFT, place), at(WIDTH - RIGHT, place));
        svg.text(
            "tick",
            at(LEFT - 6.0, place + 4.0),
            Anchor::End,
            &quantity(tick),
        );
    }
    for tick in x.ticks(6).into_iter().filter(|tick| tick.fract() == 0.0) {
        svg.text(
            "tick",
            at(x.place(tick), HEIGHT - 18.0),
            Anchor::Middle,
            &quantity(tick),
        );
    }
    svg.text(
        "tick",
        at((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 3.0),
        Anchor::Middle,
        "model call",
    );
    for line in lines {
        let places = line
            .inputs
            .iter()
            .zip(1..)
            .map(|(&value, call)| at(x.place(f64::from(call)), y.place(value)));
        let points: Vec<Point> = places.collect();
        svg.polyline(
            &format!("{} series d{}", colour(line.mode), line.mode % 4),
            &points,
        );
        for (point, value) in points.iter().zip(&line.inputs) {
            svg.dot(
                &format!("{} dot", colour(line.mode)),
                *point,
                2.5,
                &format!("{}: {}", cut(line.name, 40), quantity(*value)),
            );
        }
    }
    svg.finish()
}

fn describe(line: &Growth<'_>) -> String {
    let end =
        |value: Option<&f64>| value.map_or_else(|| "unknown".to_owned(), |value| quantity(*value));
    format!(
        "{}: from {} to {}",
        line.name,
        end(line.inputs.first()),
        end(line.inputs.last())
    )
}
