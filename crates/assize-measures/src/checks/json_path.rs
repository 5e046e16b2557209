//! The regular expressions written in a JSONPath: those in filters with `match` and `search`, however deep.

use jsonpath_rust::parser::model::{
    Comparable, Filter, FilterAtom, FnArg, JpQuery, Literal, Segment, Selector, Test, TestFunction,
};

pub(super) fn patterns_in(query: &JpQuery) -> Vec<&str> {
    let mut found = Patterns(Vec::new());
    found.in_segments(&query.segments);
    found.0
}

struct Patterns<'a>(Vec<&'a str>);

impl<'a> Patterns<'a> {
    fn in_segments(&mut self, segments: &'a [Segment]) {
        segments.iter().for_each(|segment| self.in_segment(segment));
    }

    fn in_segment(&mut self, segment: &'a Segment) {
        match segment {
            Segment::Descendant(inner) => self.in_segment(inner),
            Segment::Selector(selector) => self.in_selector(selector),
            Segment::Selectors(several) => several.iter().for_each(|one| self.in_selector(one)),
        }
    }

    fn in_selector(&mut self, selector: &'a Selector) {
        if let Selector::Filter(filter) = selector {
            self.in_filter(filter);
        }
    }

    fn in_filter(&mut self, filter: &'a Filter) {
        match filter {
            Filter::Or(parts) | Filter::And(parts) => {
                parts.iter().for_each(|part| self.in_filter(part));
            }
            Filter::Atom(FilterAtom::Filter { expr, .. }) => self.in_filter(expr),
            Filter::Atom(FilterAtom::Test { expr, .. }) => self.in_test(expr),
            Filter::Atom(FilterAtom::Comparison(comparison)) => {
                let (left, right) = comparison.vals();
                for side in [left, right] {
                    if let Comparable::Function(function) = side {
                        self.in_function(function);
                    }
                }
            }
        }
    }

    fn in_test(&mut self, test: &'a Test) {
        match test {
            Test::RelQuery(segments) => self.in_segments(segments),
            Test::AbsQuery(query) => self.in_segments(&query.segments),
            Test::Function(function) => self.in_function(function),
        }
    }

    fn in_function(&mut self, function: &'a TestFunction) {
        match function {
            TestFunction::Match(text, pattern) | TestFunction::Search(text, pattern) => {
                if let FnArg::Literal(Literal::String(pattern)) = pattern {
                    self.0.push(pattern);
                }
                self.in_argument(text);
                self.in_argument(pattern);
            }
            TestFunction::Length(argument) => self.in_argument(argument),
            TestFunction::Value(argument) | TestFunction::Count(argument) => {
                self.in_argument(argument);
            }
            TestFunction::Custom(_, arguments) => {
                arguments
                    .iter()
                    .for_each(|argument| self.in_argument(argument));
            }
        }
    }

    fn in_argument(&mut self, argument: &'a FnArg) {
        match argument {
            FnArg::Literal(_) => {}
            FnArg::Test(test) => self.in_test(test),
            FnArg::Filter(filter) => self.in_filter(filter),
        }
    }
}
