//! Every trial as a dot, the middle half as a box: one metric in all modes.

use super::colour;
use crate::amount;
use crate::html::escape::cut;
use crate::html::scale::Scale;
use crate::html::svg::{Anchor, Svg, at};
use assize_contracts::Metric;
use maud::Markup;

const WIDTH: f64 = 360.0;
const MARGIN: f64 = 12.0;
const LANE: f64 = 54.0;
const AXIS: f64 = 26.0;
/// The range of the dots of a lane, from its top.
const DOTS: [f64; 2] = [20.0, 46.0];

/// Dots drawn per mode. More would be a blot.
const MOST_DOTS: usize = 300;

/// Layers of dots that are drawn together.
const LAYERS: usize = 4;

/// The measurement of one trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) value: f64,
    /// It ran out of time: at least this much.
    pub(crate) is_bound: bool,
}

/// The measurements of one metric in the trials of a mode: those that are drawn, and the number of all.
#[derive(Debug)]
pub(crate) struct Column {
    stride: usize,
    pub(crate) count: usize,
    pub(crate) has_bounds: bool,
    ends: Option<[f64; 2]>,
    /// With their numbers.
    dots: Vec<(usize, Measured)>,
}

impl Column {
    /// Room for so many values, of which evenly many are drawn.
    pub(crate) fn new(expected: usize) -> Self {
        Self {
            stride: expected.div_ceil(MOST_DOTS).max(1),
            count: 0,
            has_bounds: false,
            ends: None,
            dots: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, measured: Measured) {
        if !measured.value.is_finite() {
            return;
        }
        self.has_bounds |= measured.is_bound;
        let [low, high] = self.ends.unwrap_or([measured.value; 2]);
        self.ends = Some([low.min(measured.value), high.max(measured.value)]);
        if self.count.is_multiple_of(self.stride) && self.dots.len() <= 2 * MOST_DOTS {
            self.dots.push((self.count, measured));
        }
        self.count += 1;
    }
}

/// One mode.
pub(crate) struct Strip<'a> {
    pub(crate) mode: usize,
    pub(crate) name: &'a str,
    pub(crate) values: &'a Column,
    /// As the summary has it.
    pub(crate) median: Option<f64>,
    /// The same; none where times were cut off and are not known.
    pub(crate) quartiles: Option<[f64; 2]>,
}

/// A drawing and what it leaves out.
pub(crate) struct Strips {
    pub(crate) svg: Markup,
    pub(crate) is_log: bool,
    /// Trials that are not drawn as dots.
    pub(crate) undrawn: usize,
}

/// All modes on one axis.
pub(crate) fn strips(metric: &Metric, title: &str, lanes: &[Strip<'_>]) -> Strips {
    let height = lanes.len() as f64 * LANE + AXIS;
    let all = lanes.iter().filter_map(|lane| lane.values.ends).flatten();
    let scale = Scale::over(all, MARGIN, WIDTH - MARGIN);
    let mut svg = Svg::new(WIDTH, height, &spoken(metric, title, lanes));
    let ticks = scale.ticks(4);
    for tick in &ticks {
        let x = scale.place(*tick);
        svg.line("grid", at(x, 6.0), at(x, height - AXIS + 4.0));
        let anchor = match x {
            x if x < 30.0 => Anchor::Start,
            x if x > WIDTH - 30.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        svg.text("tick", at(x, height - 8.0), anchor, &mark(metric, *tick));
    }
    let mut undrawn = 0;
    for (place, lane) in lanes.iter().enumerate() {
        undrawn += draw_lane(&mut svg, metric, &scale, place as f64 * LANE, lane);
    }
    Strips {
        svg: svg.finish(),
        is_log: scale.is_log,
        undrawn,
    }
}

/// A value at the axis. Nothing has no unit.
fn mark(metric: &Metric, value: f64) -> String {
    match value == 0.0 {
        true => "0".to_owned(),
        false => amount(metric, value),
    }
}

fn draw_lane(svg: &mut Svg, metric: &Metric, scale: &Scale, top: f64, lane: &Strip<'_>) -> usize {
    let colour = colour(lane.mode);
    let label = match lane.median {
        Some(median) => format!("{} · {}", cut(lane.name, 34), amount(metric, median)),
        None => cut(lane.name, 40),
    };
    svg.text("lane", at(MARGIN, top + 14.0), Anchor::Start, &label);
    let (upper, lower) = (top + DOTS[0], top + DOTS[1]);
    if let Some([first, third]) = quartiles(lane) {
        let (from, to) = (scale.place(first), scale.place(third));
        let title = format!(
            "middle half: {} to {}",
            amount(metric, first),
            amount(metric, third)
        );
        svg.bar(
            &format!("{colour} box"),
            at(from, upper),
            at(to.max(from + 1.0), lower),
            &title,
        );
    }
    let place = |(number, measured): &(usize, Measured)| {
        // Dots of equal values would hide each other: each has a height of its own, the same in every drawing.
        let height = (*number as f64 * 0.618_034 + 0.31).fract();
        let y = upper + 3.0 + height * (lower - upper - 6.0);
        at(scale.place(measured.value), y)
    };
    let is_single = |measured: &Measured| lane.values.count <= MOST_DOTS || measured.is_bound;
    for dot in &lane.values.dots {
        let (_, measured) = dot;
        if !is_single(measured) {
            continue;
        }
        let (class, word) = match measured.is_bound {
            true => (format!("{colour} bound"), "more than "),
            false => (format!("{colour} point"), ""),
        };
        let title = match lane.values.count <= MOST_DOTS {
            true => format!("{word}{}", amount(metric, measured.value)),
            false => String::new(),
        };
        svg.dot(&class, place(dot), 3.0, &title);
    }
    // Within a layer dots that overlap do not look darker; over several layers they do.
    for layer in 0..LAYERS {
        let dots = lane.values.dots.iter().filter(|dot| !is_single(&dot.1));
        let dots = dots.skip(layer).step_by(LAYERS);
        svg.dots(&format!("{colour} points"), dots.map(place));
    }
    if let Some(median) = lane.median {
        let x = scale.place(median);
        svg.line(
            &format!("{colour} median"),
            at(x, upper - 2.0),
            at(x, lower + 2.0),
        );
    }
    lane.values.count - lane.values.dots.len()
}

/// The middle half of the values. `None` for few values, and where times were cut off and are unknown.
fn quartiles(lane: &Strip<'_>) -> Option<[f64; 2]> {
    let is_known = lane.values.count >= 4 && !lane.values.has_bounds;
    lane.quartiles.filter(|_| is_known)
}

/// The text of the picture for screen readers.
fn spoken(metric: &Metric, title: &str, lanes: &[Strip<'_>]) -> String {
    let lane = |lane: &Strip<'_>| {
        let median = lane
            .median
            .map_or_else(|| "unknown".to_owned(), |median| amount(metric, median));
        format!(
            "{}: median {median} of {} trials",
            lane.name, lane.values.count
        )
    };
    let lanes: Vec<String> = lanes.iter().map(lane).collect();
    format!("{title}, every trial as a dot. {}", lanes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(values: &[f64]) -> Strips {
        let mut column = Column::new(values.len());
        for &value in values {
            let is_bound = value < 0.0;
            column.push(Measured { value, is_bound });
        }
        let median = values.first().copied().filter(|value| value.is_finite());
        strips(
            &Metric::named("tokens_total"),
            "tokens",
            &[Strip {
                mode: 0,
                name: "<m>",
                values: &column,
                median,
                quartiles: column.ends,
            }],
        )
    }

    /// The dots that are drawn as one shape.
    fn together(svg: &str) -> impl Iterator<Item = &str> {
        let paths = svg.split("<path").skip(1);
        let paths = paths.filter_map(|path| path.split(" d=\"").nth(1)?.split('"').next());
        paths
            .flat_map(|path| path.split("h0").map(|dot| dot.trim_start_matches('M')))
            .filter(|dot| !dot.is_empty())
    }

    /// Every dot between the margins and in its lane.
    fn check(values: &[f64]) {
        let drawn = draw(values);
        let svg = drawn.svg.into_string();
        let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
        for dot in svg.split("<circle").skip(1) {
            let x = number(dot.split("cx=\"").nth(1).unwrap());
            let y = number(dot.split("cy=\"").nth(1).unwrap());
            assert!((MARGIN..=WIDTH - MARGIN).contains(&x), "{x} for {values:?}");
            assert!((DOTS[0]..=DOTS[1]).contains(&y), "{y} for {values:?}");
        }
        for dot in together(&svg) {
            let (x, y) = dot.split_once(' ').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((MARGIN..=WIDTH - MARGIN).contains(&x), "{x} for {values:?}");
            assert!((DOTS[0]..=DOTS[1]).contains(&y), "{y} for {values:?}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.len() < 60_000);
    }

    #[test]
    fn every_point_is_inside_the_plot() {
        check(&[]);
        check(&[0.0; 7]);
        check(&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 3.0]);
        check(&[f64::MAX, f64::MIN, 1e-300, 0.0, -0.0]);
        // A crude generator of values of all sizes and signs.
        let mut state = 1u64;
        for length in 0..400 {
            let mut next = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                f64::from_bits(state ^ (state >> 13))
            };
            check(&(0..length % 23).map(|_| next()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn of_many_trials_some_are_drawn_and_the_rest_is_counted() {
        let values: Vec<f64> = (0..10_000).map(f64::from).collect();
        let drawn = draw(&values);
        let dots = together(&drawn.svg.0).count();
        assert!(dots <= MOST_DOTS && dots > MOST_DOTS / 2, "{dots}");
        assert_eq!(drawn.undrawn + dots, values.len());
        check(&values);
    }

    #[test]
    fn times_that_were_cut_off_have_no_box() {
        assert!(draw(&[1.0, 2.0, 3.0, 4.0, 5.0]).svg.0.contains("m0 box"));
        assert!(!draw(&[1.0, 2.0, 3.0, -4.0, 5.0]).svg.0.contains("m0 box"));
    }
}
