//! The cost of a mode against its success rate: up and to the left is better.

use super::colour;
use crate::html::scale::Scale;
use crate::html::svg::{Anchor, Svg, at};
use crate::{amount, percent};
use assize_contracts::Metric;
use maud::Markup;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 40.0;

/// One mode.
pub(crate) struct Worth<'a> {
    pub(crate) mode: usize,
    pub(crate) name: &'a str,
    /// The median of the metric.
    pub(crate) price: f64,
    pub(crate) rate: f64,
    pub(crate) interval: Option<[f64; 2]>,
}

/// `metric` is the price: money, or tokens where the money is unknown.
pub(crate) fn cost_against_success(metric: &Metric, axis: &str, modes: &[Worth<'_>]) -> Markup {
    let prices = modes.iter().map(|mode| mode.price).chain([0.0]);
    let x = Scale::over(prices, LEFT, WIDTH - RIGHT);
    let y = Scale::between(0.0, 1.0, HEIGHT - BOTTOM, TOP);
    let spoken = modes.iter().map(|mode| {
        format!(
            "{}: {} at {}",
            mode.name,
            percent(mode.rate),
            amount(metric, mode.price)
        )
    });
    let spoken: Vec<String> = spoken.collect();
    let mut svg = Svg::new(
        WIDTH,
        HEIGHT,
        &format!("Success against {axis}. {}", spoken.join("; ")),
    );
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let place = y.place(share);
        svg.line("grid", at(LEFT, place), at(WIDTH - RIGHT, place));
        svg.text(
            "tick",
            at(LEFT - 6.0, place + 4.0),
            Anchor::End,
            &percent(share),
        );
    }
    for tick in x.ticks(4) {
        let place = x.place(tick);
        svg.line("grid", at(place, TOP), at(place, HEIGHT - BOTTOM));
        svg.text(
            "tick",
            at(place, HEIGHT - BOTTOM + 16.0),
            Anchor::Middle,
            &amount(metric, tick),
        );
    }
    svg.text(
        "tick",
        at((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6.0),
        Anchor::Middle,
        axis,
    );
    for mode in modes {
        let (place, class) = (x.place(mode.price), colour(mode.mode));
        if let Some([low, high]) = mode.interval {
            svg.line(
                &format!("{class} end"),
                at(place, y.place(low)),
                at(place, y.place(high)),
            );
        }
        let title = format!(
            "{}: {} at {}",
            mode.name,
            percent(mode.rate),
            amount(metric, mode.price)
        );
        svg.dot(
            &format!("{class} dot"),
            at(place, y.place(mode.rate)),
            6.0,
            &title,
        );
        let number = (mode.mode + 1).to_string();
        svg.text(
            "lane",
            at(place + 9.0, y.place(mode.rate) + 13.0),
            Anchor::Start,
            &number,
        );
    }
    svg.finish()
}
