//! Pictures as SVG text. Whatever is drawn lies inside the picture, and every picture has a name that can be read aloud.

use super::escape::html;
use std::fmt::Write;

/// A picture under way. Units are CSS pixels at its natural size.
pub(crate) struct Svg {
    text: String,
    width: f64,
    height: f64,
}

/// A place in a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Which end of a text stands at its point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

pub(crate) fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64, name: &str) -> Self {
        let mut text = String::new();
        // Writing to a string cannot fail; the same holds below.
        let _ = write!(
            text,
            "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">",
            html(name)
        );
        Self {
            text,
            width,
            height,
        }
    }

    /// The picture fills whatever width it is given. Only for pictures without text.
    pub(crate) fn stretching(mut self) -> Self {
        self.text.insert_str(4, " preserveAspectRatio=\"none\"");
        self
    }

    /// A line.
    pub(crate) fn line(&mut self, class: &str, from: Point, to: Point) {
        let (from, to) = (self.inside(from), self.inside(to));
        let _ = write!(
            self.text,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            short(from.x),
            short(from.y),
            short(to.x),
            short(to.y)
        );
    }

    /// A box between two corners.
    pub(crate) fn bar(&mut self, class: &str, corner: Point, other: Point, title: &str) {
        let (corner, other) = (self.inside(corner), self.inside(other));
        let _ = write!(
            self.text,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</rect>",
            short(corner.x.min(other.x)),
            short(corner.y.min(other.y)),
            short((corner.x - other.x).abs()),
            short((corner.y - other.y).abs()),
            tooltip(title)
        );
    }

    /// A dot.
    pub(crate) fn dot(&mut self, class: &str, center: Point, radius: f64, title: &str) {
        let center = self.inside(center);
        let _ = write!(
            self.text,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{radius}\">{}</circle>",
            short(center.x),
            short(center.y),
            tooltip(title)
        );
    }

    /// A broken line through points.
    pub(crate) fn polyline(&mut self, class: &str, points: &[Point]) {
        let _ = write!(self.text, "<polyline class=\"{class}\" points=\"");
        for point in points {
            let point = self.inside(*point);
            let _ = write!(self.text, "{},{} ", short(point.x), short(point.y));
        }
        self.text.push_str("\"/>");
    }

    /// A half ellipse between two points, to the right on the way down and to the left on the way up.
    pub(crate) fn arc(&mut self, class: &str, from: Point, to: Point, stroke: f64, title: &str) {
        let (from, to) = (self.inside(from), self.inside(to));
        let across = ((from.y - to.y).abs() / 2.0).max(1.0);
        let _ = write!(
            self.text,
            "<path class=\"{class}\" stroke-width=\"{}\" d=\"M{} {}A{} {} 0 0 1 {} {}\">{}</path>",
            short(stroke),
            short(from.x),
            short(from.y),
            short(across * ARC_FLATNESS),
            short(across),
            short(to.x),
            short(to.y),
            tooltip(title)
        );
    }

    /// A line of text.
    pub(crate) fn text(&mut self, class: &str, place: Point, anchor: Anchor, text: &str) {
        let place = self.inside(place);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.text,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            short(place.x),
            short(place.y),
            html(text)
        );
    }

    /// What follows leads to a place on the page, until [`Svg::end_link`].
    pub(crate) fn begin_link(&mut self, target: &str) {
        let _ = write!(self.text, "<a href=\"{}\" tabindex=\"-1\">", html(target));
    }

    pub(crate) fn end_link(&mut self) {
        self.text.push_str("</a>");
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }

    /// The nearest place in the picture. What is no number stands at the beginning.
    fn inside(&self, point: Point) -> Point {
        let within = |value: f64, end: f64| match value.is_nan() {
            true => 0.0,
            false => value.clamp(0.0, end),
        };
        at(within(point.x, self.width), within(point.y, self.height))
    }
}

/// How far an arc reaches sideways, compared with half its length.
pub(crate) const ARC_FLATNESS: f64 = 0.62;

fn tooltip(title: &str) -> String {
    match title {
        "" => String::new(),
        _ => format!("<title>{}</title>", html(title)),
    }
}

/// A tenth of a pixel is finer than anybody sees.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_outside() {
        let mut svg = Svg::new(100.0, 50.0, "a <b> picture");
        svg.dot("p", at(f64::INFINITY, f64::NAN), 2.0, "x & y");
        svg.line("l", at(-5.0, -1e300), at(1e9, 20.0));
        let text = svg.finish();
        assert!(text.contains("cx=\"100\" cy=\"0\""), "{text}");
        assert!(
            text.contains("x1=\"0\" y1=\"0\" x2=\"100\" y2=\"20\""),
            "{text}"
        );
        assert!(text.contains("a &lt;b&gt; picture") && text.contains("x &amp; y"));
    }
}
