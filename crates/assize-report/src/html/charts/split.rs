//! The time of a mode by what it was spent on, as one bar.

use crate::duration;
use crate::html::scale::Scale;
use crate::html::svg::{Svg, at};
use maud::Markup;
use std::fmt;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 22.0;

/// A part of the time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) ms: f64,
    /// `at most` or `at least`, where it is no more than that.
    pub(crate) bound: String,
    /// The class that gives it its look.
    pub(crate) shade: String,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.bound.is_empty() { "" } else { " " };
        let time = duration(self.ms);
        write!(f, "{}: {}{space}{time}", self.name, self.bound)
    }
}

/// Parts side by side; `longest` is the length of the longest bar on the page.
pub(crate) fn split_bar(parts: &[Part], longest: f64, name: &str) -> Markup {
    let scale = Scale::between(0.0, longest, 0.0, WIDTH);
    let mut svg = Svg::new(WIDTH, HEIGHT, name).stretching();
    let mut begin = 0.0;
    for part in parts.iter().filter(|part| part.ms > 0.0) {
        let end = begin + part.ms;
        svg.bar(
            &format!("part {}", part.shade),
            at(scale.place(begin), 1.0),
            at(scale.place(end), HEIGHT - 1.0),
            &part.to_string(),
        );
        begin = end;
    }
    svg.finish()
}
