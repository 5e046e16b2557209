//! Where the time of a mode went, as one bar.

use crate::duration;
use crate::html::scale::Scale;
use crate::html::svg::{Svg, at};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 22.0;

/// A part of the time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) ms: f64,
    /// The class that gives it its look.
    pub(crate) shade: String,
}

/// Parts side by side; `longest` is the length of the longest bar on the page.
pub(crate) fn split_bar(parts: &[Part], longest: f64, name: &str) -> String {
    let scale = Scale::between(0.0, longest, 0.0, WIDTH);
    let mut svg = Svg::new(WIDTH, HEIGHT, name).stretching();
    let mut begin = 0.0;
    for part in parts.iter().filter(|part| part.ms > 0.0) {
        let end = begin + part.ms;
        let title = format!("{}: {}", part.name, duration(part.ms));
        svg.bar(
            &format!("part {}", part.shade),
            at(scale.place(begin), 1.0),
            at(scale.place(end), HEIGHT - 1.0),
            &title,
        );
        begin = end;
    }
    svg.finish()
}
