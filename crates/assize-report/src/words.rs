//! Comparisons as sentences. Nothing here says more than its interval carries.

use crate::caution::count;
use crate::comparison::{Headline, headline, level_percent};
use crate::{Comparison, amount};
use assize_stats::{MetricComparison, Scope, SuccessComparison, Verdict};

/// Permutation and interval methods cannot tell p-values below this apart.
const FLOOR: f64 = 1e-4;

/// Above this many percent more, people think in multiples.
const MANY_PERCENT: f64 = 400.0;

/// A design that sees only differences above this sees none.
const BLIND_PERCENT: f64 = 99.5;

/// One line about one comparison: `with-docs: 31 % fewer tokens (14 % to 44 %)`.
pub fn verdict_line(comparison: &Comparison) -> String {
    format!("{}: {}", comparison.mode_a(), clause(comparison))
}

/// The same without the mode, where it stands above.
pub fn clause(comparison: &Comparison) -> String {
    match comparison {
        Comparison::Success(success) => success_clause(success),
        Comparison::Metric(metric) => metric_clause(metric),
    }
}

/// One line about all given comparisons of one pair of modes.
pub fn closing_line<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Option<String> {
    let mut comparisons = comparisons.into_iter().peekable();
    let mode = comparisons.peek()?.mode_a().to_owned();
    // What is known comes before what is not.
    let (known, open): (Vec<_>, Vec<_>) =
        comparisons.partition(|comparison| comparison.verdict() != Verdict::Inconclusive);
    let mut clauses: Vec<String> = known.into_iter().map(clause).collect();
    if !open.is_empty() {
        let names = open
            .iter()
            .map(|comparison| short_name(comparison.metric()));
        let names = names.collect::<Vec<_>>().join(", ");
        clauses.push(format!("cannot tell for {names}"));
    }
    Some(format!("{mode}: {}", clauses.join(", ")))
}

/// A whole sentence with scope, interval and design.
pub fn sentence(comparison: &Comparison) -> String {
    match comparison {
        Comparison::Success(success) => success_sentence(success),
        Comparison::Metric(metric) => metric_sentence(metric),
    }
}

/// `p = 0.012`, `p < 0.0001`, or `n/a`.
pub fn p_value(p: Option<f64>) -> String {
    match p {
        None => "n/a".to_owned(),
        Some(p) if p < FLOOR => "p < 0.0001".to_owned(),
        Some(p) if p < 0.01 => format!("p = {p:.4}"),
        Some(p) => format!("p = {p:.3}"),
    }
}

/// The metric as tables name it.
pub(crate) fn metric_name(metric: &str) -> String {
    match Noun::of(metric).name {
        name if name == metric => metric.to_owned(),
        name => format!("{name} ({metric})"),
    }
}

/// The metric as sentences name it.
pub(crate) fn short_name(metric: &str) -> &str {
    Noun::of(metric).name
}

fn success_clause(success: &SuccessComparison) -> String {
    let (Some(difference), Some([low, high])) = (success.difference_pp, success.ci95) else {
        return format!("success not comparable ({})", reason(success.reason));
    };
    match success.verdict {
        Verdict::NotComparable => format!("success not comparable ({})", reason(success.reason)),
        Verdict::Equivalent => format!("success not worse ({})", points_range(low, high)),
        Verdict::Better | Verdict::Worse => {
            let word = if difference > 0.0 { "higher" } else { "lower" };
            let (low, high) = outward(difference, low, high);
            let points = number(difference.abs());
            format!(
                "success {points} points {word} ({} to {})",
                number(low),
                number(high)
            )
        }
        Verdict::Inconclusive => {
            let range = points_range(low, high);
            let doubt = doubt([low, high], success.family_size);
            format!("cannot tell for success ({range}{doubt})")
        }
    }
}

fn metric_clause(metric: &MetricComparison) -> String {
    let noun = Noun::of(&metric.metric);
    let Some(shown) = headline(metric).filter(|_| metric.verdict != Verdict::NotComparable) else {
        return format!("{} not comparable ({})", noun.name, reason(metric.reason));
    };
    match metric.verdict {
        Verdict::Inconclusive if shown.is_degenerate() => {
            format!("cannot tell for {} (nothing varied)", noun.name)
        }
        Verdict::Inconclusive => {
            let range = noun.range(&shown);
            let doubt = doubt(shown.interval, metric.family_size);
            format!("cannot tell for {} ({range}{doubt})", noun.name)
        }
        Verdict::Equivalent => {
            format!("{} equivalent ({})", noun.name, noun.range(&shown))
        }
        _ => format!("{} ({})", noun.effect(&shown), noun.interval(&shown)),
    }
}

fn metric_sentence(metric: &MetricComparison) -> String {
    let (a, b) = (&metric.mode_a, &metric.mode_b);
    let noun = Noun::of(&metric.metric);
    let Some(shown) = headline(metric).filter(|_| metric.verdict != Verdict::NotComparable) else {
        return format!(
            "{a} and {b} cannot be compared by {}: {}.",
            noun.name,
            reason(metric.reason)
        );
    };
    let level = level_percent(metric.confidence_level);
    let scope = scope(metric.scope, metric.scenarios);
    let design = design(metric);
    match metric.verdict {
        Verdict::Inconclusive if shown.is_degenerate() => format!(
            "Cannot tell whether {a} differs from {b} by {}: the measurements do not vary, so no interval exists.",
            noun.name
        ),
        Verdict::Inconclusive => format!(
            "Cannot tell whether {a} differs from {b} by {}. {scope}, the data fit anything {}{}.{}",
            noun.name,
            noun.range(&shown),
            doubt(shown.interval, metric.family_size),
            plan(metric)
        ),
        Verdict::Equivalent => format!(
            "{scope}, {a} and {b} are equivalent by {} within the margin ({level} interval {}; {design}).",
            noun.name,
            noun.range(&shown)
        ),
        _ => format!(
            "{scope}, {a} had {} than {b} ({level} interval {}; {design}).{}",
            noun.effect(&shown),
            noun.interval(&shown),
            consistency(metric)
        ),
    }
}

fn success_sentence(success: &SuccessComparison) -> String {
    let (a, b) = (&success.mode_a, &success.mode_b);
    let rates = success.rate_a.zip(success.rate_b);
    let (Some((rate_a, rate_b)), Some([low, high])) = (rates, success.ci95) else {
        return format!(
            "{a} and {b} cannot be compared by success: {}.",
            reason(success.reason)
        );
    };
    let scope = scope(success.scope, success.scenarios);
    let against = format!(
        "{} against {}",
        crate::percent(rate_a),
        crate::percent(rate_b)
    );
    let range = points_range(low, high);
    match success.verdict {
        Verdict::Better => {
            format!("{scope}, {a} succeeded more often than {b}: {against} ({range}).")
        }
        Verdict::Worse => {
            format!("{scope}, {a} succeeded less often than {b}: {against} ({range}).")
        }
        Verdict::Equivalent => {
            format!("{scope}, {a} succeeds as often as {b} within the margin: {against} ({range}).")
        }
        _ => format!(
            "Cannot tell whether {a} succeeds more often than {b}: {against}; {}, the data fit anything {range}{}.",
            lower_first(&scope),
            doubt([low, high], success.family_size)
        ),
    }
}

/// How a metric is spoken of.
struct Noun<'a> {
    metric: &'a str,
    name: &'a str,
    less: &'a str,
    more: &'a str,
}

impl<'a> Noun<'a> {
    fn of(metric: &'a str) -> Self {
        let (name, less, more) = match metric {
            // Not just "tokens": cached ones are not among them, and the table shows the total.
            "tokens_active" => ("active tokens", "fewer active tokens", "more active tokens"),
            "tokens_total" => ("tokens", "fewer tokens", "more tokens"),
            "latency_wall_ms" => ("time", "less time", "more time"),
            "cost_total_usd" => ("cost", "less cost", "more cost"),
            "agent_turns" => ("turns", "fewer turns", "more turns"),
            "tool_calls_total" => ("tool calls", "fewer tool calls", "more tool calls"),
            "tool_calls_failed" => (
                "failed tool calls",
                "fewer failed tool calls",
                "more failed tool calls",
            ),
            other => (other, "", ""),
        };
        Self {
            metric,
            name,
            less,
            more,
        }
    }

    /// `31 % fewer tokens`.
    fn effect(&self, shown: &Headline) -> String {
        let is_less = is_less(shown, shown.value);
        let size = self.size(shown, shown.value);
        match (self.less, is_less) {
            ("", true) => format!("{size} lower {}", self.name),
            ("", false) => format!("{size} higher {}", self.name),
            (less, true) => format!("{size} {less}"),
            (_, false) => format!("{size} {}", self.more),
        }
    }

    /// `14 % to 44 %`, or `from … to …` where the ends lie on different sides.
    fn interval(&self, shown: &Headline) -> String {
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
    fn range(&self, shown: &Headline) -> String {
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
}

/// A reduction above zero is less, and so is a difference below it.
fn is_less(shown: &Headline, value: f64) -> bool {
    if shown.is_ratio {
        value > 0.0
    } else {
        value < 0.0
    }
}

fn scope(scope: Scope, scenarios: usize) -> String {
    match (scope, scenarios) {
        (Scope::Population, _) => "On tasks like these".to_owned(),
        (Scope::Suite, 1) => "On exactly this task".to_owned(),
        (Scope::Suite, many) => format!("On exactly these {many} tasks"),
    }
}

fn design(metric: &MetricComparison) -> String {
    let scenarios = count(metric.scenarios as u64, "scenario", "scenarios");
    let runs = count(metric.repetitions as u64, "run", "runs");
    format!("{scenarios} × {runs}, {}", p_value(metric.p_adjusted))
}

fn consistency(metric: &MetricComparison) -> String {
    let Some(paired) = &metric.paired else {
        return String::new();
    };
    let (word, scenarios) = match paired.scenarios_lower >= paired.scenarios_higher {
        true => ("Lower", paired.scenarios_lower),
        false => ("Higher", paired.scenarios_higher),
    };
    format!(" {word} in {scenarios} of {} scenarios.", metric.scenarios)
}

/// Why an interval on one side of no difference is no verdict: among several questions one looks like that by chance.
fn doubt(interval: [f64; 2], questions: usize) -> String {
    let is_one_sided = interval[0] > 0.0 || interval[1] < 0.0;
    match is_one_sided && questions > 1 {
        true => format!("; one of {questions} questions asked, so it may be chance"),
        false => String::new(),
    }
}

/// What it would take to know more.
fn plan(metric: &MetricComparison) -> String {
    let Some(plan) = &metric.plan else {
        return match metric.scenarios {
            1 => " One task says nothing about others: more scenarios would.".to_owned(),
            _ => String::new(),
        };
    };
    let sees = plan.min_detectable_pct.map(|percent| match percent {
        _ if percent > BLIND_PERCENT => " This design can hardly see any difference.".to_owned(),
        _ => format!(
            " This design sees only differences above {} %.",
            number(percent)
        ),
    });
    let target = number(plan.target_pct);
    let needs = match (plan.repetitions_needed, plan.scenarios_needed) {
        (Some(runs), _) => format!(" For {target} % it needs {runs} repetitions."),
        (None, Some(scenarios)) => format!(
            " For {target} % it needs {scenarios} scenarios (more repetitions alone will not do)."
        ),
        (None, None) => String::new(),
    };
    sees.unwrap_or_default() + &needs
}

fn points_range(low: f64, high: f64) -> String {
    let end = |points: f64| {
        let word = if points < 0.0 { "lower" } else { "higher" };
        format!("{} points {word}", number(points.abs()))
    };
    format!("from {} to {}", end(low), end(high))
}

/// An interval counted away from zero.
fn outward(value: f64, low: f64, high: f64) -> (f64, f64) {
    if value > 0.0 {
        (low, high)
    } else {
        (-high, -low)
    }
}

/// A number of percent or points: whole, or with one digit where it is small.
pub(crate) fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn reason(reason: Option<&'static str>) -> &'static str {
    reason.unwrap_or("too few measurements")
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_stop_at_their_floor() {
        assert_eq!(p_value(Some(0.00001)), "p < 0.0001");
        assert_eq!(p_value(Some(0.004)), "p = 0.0040");
        assert_eq!(p_value(Some(0.25)), "p = 0.250");
        assert_eq!(p_value(None), "n/a");
    }

    fn check(interval: [f64; 2], expected: &str) {
        let shown = Headline {
            value: (interval[0] + interval[1]) / 2.0,
            interval,
            is_ratio: true,
        };
        assert_eq!(Noun::of("tokens_active").range(&shown), expected);
    }

    #[test]
    fn ranges_name_both_ends_and_large_ones_as_multiples() {
        check([-22.0, 9.0], "from 9 % less to 22 % more");
        check([-900.0, 0.4], "from 0.4 % less to 10 times as much");
        check([8.0, 32.0], "from 32 % less to 8 % less");
    }

    #[test]
    fn an_interval_that_excludes_zero_without_a_verdict_is_explained() {
        assert_eq!(doubt([-3.0, 5.0], 3), "");
        assert_eq!(
            doubt([3.0, 5.0], 3),
            "; one of 3 questions asked, so it may be chance"
        );
    }
}
