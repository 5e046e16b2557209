//! Intervals as bars: of a difference around zero, of a rate between none and all.

use super::colour;
use crate::html::scale::Scale;
use crate::html::svg::{Anchor, Svg, at};
use maud::Markup;

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 26.0;
const MARGIN: f64 = 8.0;
/// Room for the numbers below an axis.
const AXIS: f64 = 14.0;

/// The axis of a difference: from so much less to so much more.
pub(crate) struct Ends {
    pub(crate) value: f64,
    /// The same as people read it, without a sign.
    pub(crate) label: String,
}

/// A difference with its interval; zero, no difference, is in the middle.
pub(crate) fn difference_bar(
    value: f64,
    interval: [f64; 2],
    ends: &Ends,
    class: &str,
    name: &str,
) -> Markup {
    let end = ends.value;
    let scale = Scale::between(-end, end, MARGIN, WIDTH - MARGIN);
    let mut svg = Svg::new(WIDTH, HEIGHT + AXIS, name);
    let label = &ends.label;
    for (place, anchor, text) in [
        (-end, Anchor::Start, format!("−{label}")),
        (0.0, Anchor::Middle, "0".to_owned()),
        (end, Anchor::End, format!("+{label}")),
    ] {
        svg.text(
            "tick",
            at(scale.place(place), HEIGHT + AXIS - 3.0),
            anchor,
            &text,
        );
    }
    let middle = HEIGHT / 2.0;
    svg.line("rule", at(MARGIN, middle), at(WIDTH - MARGIN, middle));
    for mark in [-1.0, -0.5, 0.5, 1.0] {
        let x = scale.place(mark * end);
        svg.line("rule", at(x, middle - 3.0), at(x, middle + 3.0));
    }
    let zero = scale.place(0.0);
    svg.line("zero", at(zero, 2.0), at(zero, HEIGHT - 2.0));
    let [low, high] = interval.map(|bound| scale.place(bound));
    let class = format!("verdict {class}");
    svg.bar(
        &format!("{class} band"),
        at(low, middle - 5.0),
        at(high.max(low + 1.0), middle + 5.0),
        name,
    );
    // An interval that goes on beyond the end is open there.
    for (bound, place) in interval.into_iter().zip([low, high]) {
        if bound.abs() <= end {
            svg.line(&class, at(place, middle - 6.0), at(place, middle + 6.0));
        }
    }
    if value.abs() <= end {
        svg.dot(
            &format!("{class} dot"),
            at(scale.place(value), middle),
            4.5,
            name,
        );
    }
    svg.finish()
}

/// A rate with its interval; the thin line is where it would lie had all void trials failed, or passed.
pub(crate) fn rate_bar(
    mode: usize,
    rate: f64,
    interval: Option<[f64; 2]>,
    bounds: Option<[f64; 2]>,
    name: &str,
) -> Markup {
    let scale = Scale::between(0.0, 1.0, MARGIN, WIDTH - MARGIN);
    let mut svg = Svg::new(WIDTH, HEIGHT, name);
    let middle = HEIGHT / 2.0;
    svg.line("rule", at(MARGIN, middle), at(WIDTH - MARGIN, middle));
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let x = scale.place(share);
        svg.line("rule", at(x, middle - 3.0), at(x, middle + 3.0));
    }
    let colour = colour(mode);
    if let Some([low, high]) = interval.map(|ends| ends.map(|end| scale.place(end))) {
        svg.bar(
            &format!("{colour} band"),
            at(low, middle - 5.0),
            at(high, middle + 5.0),
            name,
        );
        svg.line(
            &format!("{colour} end"),
            at(low, middle - 6.0),
            at(low, middle + 6.0),
        );
        svg.line(
            &format!("{colour} end"),
            at(high, middle - 6.0),
            at(high, middle + 6.0),
        );
    }
    if let Some([low, high]) = bounds.filter(|[low, high]| low < high) {
        let [low, high] = [low, high].map(|end| scale.place(end));
        svg.line("bounds", at(low, HEIGHT - 3.0), at(high, HEIGHT - 3.0));
    }
    svg.dot(
        &format!("{colour} dot"),
        at(scale.place(rate), middle),
        4.5,
        name,
    );
    svg.finish()
}
