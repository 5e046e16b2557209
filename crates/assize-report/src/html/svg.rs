//! Pictures as SVG. Whatever is drawn lies inside the picture, and every picture has a name that can be read aloud.

use maud::{Markup, Render, html};
use std::fmt::Write;

/// A picture under way. Units are CSS pixels at its natural size.
pub(crate) struct Svg {
    name: String,
    width: f64,
    height: f64,
    stretches: bool,
    shapes: Vec<Markup>,
}

/// A place in a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The end of a text that stands at its point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

pub(crate) fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            width,
            height,
            stretches: false,
            shapes: Vec::new(),
        }
    }

    /// Makes the picture fill whatever width it is given. Only for pictures without text.
    pub(crate) fn stretching(self) -> Self {
        Self {
            stretches: true,
            ..self
        }
    }

    /// Draws a line.
    pub(crate) fn line(&mut self, class: &str, from: Point, to: Point) {
        let (from, to) = (self.inside(from), self.inside(to));
        self.shapes.push(html! {
            line class=(class) x1=(Tenths(from.x)) y1=(Tenths(from.y)) x2=(Tenths(to.x)) y2=(Tenths(to.y)) {}
        });
    }

    /// Draws a box between two corners.
    pub(crate) fn bar(&mut self, class: &str, corner: Point, other: Point, title: &str) {
        let (corner, other) = (self.inside(corner), self.inside(other));
        let (width, height) = ((corner.x - other.x).abs(), (corner.y - other.y).abs());
        self.shapes.push(html! {
            rect class=(class)
                x=(Tenths(corner.x.min(other.x))) y=(Tenths(corner.y.min(other.y)))
                width=(Tenths(width)) height=(Tenths(height)) { (Tooltip(title)) }
        });
    }

    /// Draws a square, in fewer bytes than a box takes: a page may have thousands.
    pub(crate) fn square(&mut self, class: &str, corner: Point, size: f64, title: &str) {
        let corner = self.inside(corner);
        self.shapes.push(html! {
            path class=(class)
                d={ "M" (Tenths(corner.x)) " " (Tenths(corner.y)) "h" (size) "v" (size) "h-" (size) "z" } { (Tooltip(title)) }
        });
    }

    /// Draws a dot.
    pub(crate) fn dot(&mut self, class: &str, center: Point, radius: f64, title: &str) {
        let center = self.inside(center);
        self.shapes.push(html! {
            circle class=(class) cx=(Tenths(center.x)) cy=(Tenths(center.y)) r=(radius) { (Tooltip(title)) }
        });
    }

    /// Draws dots that say nothing by themselves, as one shape: strokes of no length with round ends. They are on half
    /// pixels from left to right.
    pub(crate) fn dots(&mut self, class: &str, centers: impl Iterator<Item = Point>) {
        let half = |value: f64| Tenths((value * 2.0).round() / 2.0);
        let mut path = String::new();
        for center in centers {
            let center = self.inside(center);
            path.push('M');
            half(center.x).render_to(&mut path);
            path.push(' ');
            Tenths(center.y.round()).render_to(&mut path);
            path.push_str("h0");
        }
        if !path.is_empty() {
            self.shapes.push(html! { path class=(class) d=(path) {} });
        }
    }

    /// Draws a broken line through points.
    pub(crate) fn polyline(&mut self, class: &str, points: &[Point]) {
        let points: Vec<Point> = points.iter().map(|point| self.inside(*point)).collect();
        self.shapes.push(html! {
            polyline class=(class) points={ @for point in &points { (Tenths(point.x)) "," (Tenths(point.y)) " " } } {}
        });
    }

    /// Draws a half ellipse between two points, to the right on the way down and to the left on the way up.
    pub(crate) fn arc(&mut self, class: &str, from: Point, to: Point, stroke: f64, title: &str) {
        let (from, to) = (self.inside(from), self.inside(to));
        let across = ((from.y - to.y).abs() / 2.0).max(1.0);
        self.shapes.push(html! {
            path class=(class) stroke-width=(Tenths(stroke))
                d={
                    "M" (Tenths(from.x)) " " (Tenths(from.y))
                    "A" (Tenths(across * ARC_FLATNESS)) " " (Tenths(across)) " 0 0 1 " (Tenths(to.x)) " " (Tenths(to.y))
                } { (Tooltip(title)) }
        });
    }

    /// Draws a line of text.
    pub(crate) fn text(&mut self, class: &str, place: Point, anchor: Anchor, text: &str) {
        let place = self.inside(place);
        self.shapes.push(html! {
            text class=(class) x=(Tenths(place.x)) y=(Tenths(place.y)) text-anchor=(anchor.as_str()) { (text) }
        });
    }

    /// Draws shapes that lead to a place on the page.
    pub(crate) fn link(&mut self, target: &str, draw: impl FnOnce(&mut Self)) {
        let before = std::mem::take(&mut self.shapes);
        draw(self);
        let linked = std::mem::replace(&mut self.shapes, before);
        self.shapes.push(html! {
            a href=(target) tabindex="-1" { @for shape in &linked { (shape) } }
        });
    }

    pub(crate) fn finish(self) -> Markup {
        let ratio = self.stretches.then_some("none");
        html! {
            svg role="img" aria-label=(self.name) preserveAspectRatio=[ratio]
                viewBox={ "0 0 " (self.width) " " (self.height) } width=(self.width) height=(self.height) {
                @for shape in &self.shapes { (shape) }
            }
        }
    }

    /// The nearest place in the picture. A NaN is placed at the start.
    fn inside(&self, point: Point) -> Point {
        let within = |value: f64, end: f64| match value.is_nan() {
            true => 0.0,
            false => value.clamp(0.0, end),
        };
        at(within(point.x, self.width), within(point.y, self.height))
    }
}

/// The sideways extent of an arc, compared with half its length.
pub(crate) const ARC_FLATNESS: f64 = 0.62;

/// The text that a browser shows beside the pointer. Empty text makes none.
struct Tooltip<'a>(&'a str);

impl Render for Tooltip<'_> {
    fn render(&self) -> Markup {
        html! { @if !self.0.is_empty() { title { (self.0) } } }
    }
}

/// A length to a tenth of a pixel, which is finer than anybody sees.
struct Tenths(f64);

impl Render for Tenths {
    fn render_to(&self, buffer: &mut String) {
        let halves = self.0 * 2.0;
        if halves.fract() == 0.0 && (0.0..1e6).contains(&halves) {
            // Dots and squares, of which there are thousands, stand on halves.
            let halves = halves as u32;
            let _ = write!(buffer, "{}", halves / 2);
            buffer.push_str(if halves % 2 == 1 { ".5" } else { "" });
            return;
        }
        let text = format!("{:.1}", self.0);
        buffer.push_str(text.strip_suffix(".0").unwrap_or(&text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_written_as_all_other_lengths() {
        for length in [0.0, 0.5, 1.0, 7.5, 150.0, 499_999.5, 500_000.0, -0.5] {
            let text = format!("{length:.1}");
            let shown = Tenths(length).render().into_string();
            assert_eq!(shown, text.strip_suffix(".0").unwrap_or(&text));
        }
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let mut svg = Svg::new(100.0, 50.0, "a <b> picture");
        svg.dot("p", at(f64::INFINITY, f64::NAN), 2.0, "x & y");
        svg.line("l", at(-5.0, -1e300), at(1e9, 20.0));
        let text = svg.finish().into_string();
        assert!(text.contains("cx=\"100\" cy=\"0\""), "{text}");
        assert!(
            text.contains("x1=\"0\" y1=\"0\" x2=\"100\" y2=\"20\""),
            "{text}"
        );
        assert!(text.contains("a &lt;b&gt; picture") && text.contains("x &amp; y"));
    }
}
