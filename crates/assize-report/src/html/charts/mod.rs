//! One picture per file: numbers in, SVG out. None of them decides anything.

mod confusion;
mod flow;
mod grid;
mod growth;
mod interval;
mod split;
mod strip;
mod worth;

pub(crate) use confusion::{MOST_LABELS, confusion};
pub(crate) use flow::tool_flow;
pub(crate) use grid::{Square, success_squares};
pub(crate) use growth::{Growth, token_growth};
pub(crate) use interval::{Ends, difference_bar, rate_bar};
pub(crate) use split::{Part, split_bar};
pub(crate) use strip::{Column, Measured, Strip, strips};
pub(crate) use worth::{Worth, cost_against_success};

/// Modes have one of so many colours; further ones begin again and are distinguished by their names.
const COLOURS: usize = 8;

/// The class that gives a mode its colour.
pub(crate) fn colour(mode: usize) -> String {
    format!("m{}", mode % COLOURS)
}

/// The class that gives a part of the time its colour, which no mode has.
pub(crate) fn part_colour(part: usize) -> String {
    format!("p{}", part % COLOURS)
}
