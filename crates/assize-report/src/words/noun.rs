//! The nouns for metrics in sentences.

use super::number;
use crate::amount;
use crate::comparison::Headline;
use assize_contracts::Metric;

/// Above this many percent more, people think in multiples.
const MANY_PERCENT: f64 = 400.0;

/// The words for a metric.
pub(super) struct Noun<'a> {
    pub(super) metric: &'a Metric,
    pub(super) name: &'a str,
}

impl<'a> Noun<'a> {
    pub(super) fn of(metric: &'a Metric) -> Self {
        Self {
            metric,
            name: metric.label(),
        }
    }

    /// One of what a count counts: `failed tool call` of `failed tool calls`.
    pub(super) fn one(&self) -> String {
        if let Some(stem) = self.name.strip_suffix("ies") {
            return format!("{stem}y");
        }
        let one = self.name.strip_suffix('s');
        let one = one.filter(|one| !one.ends_with('s'));
        one.unwrap_or(self.name).to_owned()
    }

    /// `31 % fewer tokens`.
    pub(super) fn effect(&self, shown: &Headline) -> String {
        let size = self.size(shown, shown.value);
        format!("{size} {}", self.compared(is_less(shown, shown.value)))
    }

    /// `fewer tokens`, or `lower my_metric`.
    pub(super) fn compared(&self, is_less: bool) -> String {
        match is_less {
            true => self.metric.less().to_string(),
            false => self.metric.more().to_string(),
        }
    }

    /// `14 % to 44 %`, or `from … to …` where the ends lie on different sides.
    pub(super) fn interval(&self, shown: &Headline) -> String {
        let [low, high] = shown.interval;
        if is_less(shown, low) != is_less(shown, high) {
            return self.range(shown);
        }
        let mut ends = [low, high];
        ends.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let [near, far] = ends.map(|end| self.size(shown, end));
        format!("{near} to {far}")
    }

    /// `from 9 % less to 22 % more`.
    pub(super) fn range(&self, shown: &Headline) -> String {
        let [low, high] = shown.interval;
        // The end with less of the metric first: a reduction counts the other way round than a difference.
        let ends = if shown.is_ratio {
            [high, low]
        } else {
            [low, high]
        };
        let [from, to] = ends.map(|end| match is_less(shown, end) {
            true => format!("{} less", self.size(shown, end)),
            false if shown.is_ratio && end < -MANY_PERCENT => {
                format!("{:.0} times as much", 1.0 - end / 100.0)
            }
            false => format!("{} more", self.size(shown, end)),
        });
        format!("from {from} to {to}")
    }

    fn size(&self, shown: &Headline, value: f64) -> String {
        if shown.is_ratio {
            format!("{} %", number(value.abs()))
        } else {
            amount(self.metric, value.abs())
        }
    }

    /// `12.4k against 18.0k`.
    pub(super) fn against(&self, [a, b]: [f64; 2]) -> String {
        // Fractions of many tokens say nothing.
        let shown = |value: f64| match value.abs() >= 100.0 {
            true => amount(self.metric, value.round()),
            false => amount(self.metric, value),
        };
        format!("{} against {}", shown(a), shown(b))
    }
}

/// A reduction above zero is less, and so is a difference below it.
pub(super) fn is_less(shown: &Headline, value: f64) -> bool {
    if shown.is_ratio {
        value > 0.0
    } else {
        value < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(interval: [f64; 2], expected: &str) {
        let shown = Headline {
            value: (interval[0] + interval[1]) / 2.0,
            interval,
            is_ratio: true,
        };
        assert_eq!(
            Noun::of(&Metric::named("tokens_active")).range(&shown),
            expected
        );
    }

    #[test]
    fn one_of_a_count_is_a_word() {
        let one = |name: &str| Noun::of(&Metric::named(name)).one();
        assert_eq!(one("tool_calls_failed"), "failed tool call");
        assert_eq!(one("retries"), "retry");
        assert_eq!(one("loss"), "loss");
    }

    #[test]
    fn ranges_name_both_ends_and_large_ones_as_multiples() {
        check([-22.0, 9.0], "from 9 % less to 22 % more");
        check([-900.0, 0.4], "from 0.4 % less to 10 times as much");
        check([8.0, 32.0], "from 32 % less to 8 % less");
    }
}
