//! Sentences about metrics: compared by ratio or difference, with cut-off runs, and rare counts.

use super::noun::Noun;
use super::{Clause, Doubts, design, level_words, number, p_values, reason, scope};
use crate::comparison::{Headline, headline};
use crate::{BoundedBy, MetricResult, duration, quantity};
use assize_stats::{
    ComparisonPlan, CountDifference, LimitKind, Limited, LimitedComparison, Scope, Verdict, Warning,
};

/// A design that sees only differences above this sees none.
const BLIND_PERCENT: f64 = 99.5;

/// `31 % fewer active tokens: 12.4k against 18.0k (14 % to 44 %)`.
pub(super) fn clause(found: &MetricResult) -> Clause<'_> {
    let noun = Noun::of(&found.definition);
    let unknown = |why: String| Clause::Unknown {
        name: noun.name,
        place: String::new(),
        why,
    };
    if found.verdict == Verdict::NotComparable {
        let why = reason(found.reason);
        return Clause::Known(format!("{} not comparable ({why})", noun.name));
    }
    if let Some(limited) = &found.limited {
        return limited_clause(found, limited, &noun);
    }
    if let Some(count) = &found.count {
        return Clause::Known(count_clause(found, count, &noun));
    }
    let Some(shown) = headline(found) else {
        return unknown(too_few(found));
    };
    match found.verdict {
        Verdict::Inconclusive if shown.is_degenerate() => constant_clause(found, &shown, &noun),
        Verdict::Inconclusive => {
            let range = noun.range(&shown);
            let doubt = Doubts::of_metric(found).about(shown.interval);
            Clause::Unknown {
                name: noun.name,
                place: super::place(found.scope, found.scenarios),
                why: format!("{range}{doubt}{}", values(found, &noun)),
            }
        }
        _ => Clause::Known(ratio_clause(found, &shown, &noun)),
    }
}

fn ratio_clause(found: &MetricResult, shown: &Headline, noun: &Noun<'_>) -> String {
    let values = values(found, noun);
    let place = super::place(found.scope, found.scenarios);
    match found.verdict {
        Verdict::Equivalent => {
            let range = noun.range(shown);
            format!("{} equivalent{place} ({range}{values})", noun.name)
        }
        _ if shown.is_degenerate() => {
            format!("{}{}{place}", constant(found, shown, noun), tag(found))
        }
        _ => format!(
            "{}{}{place} ({}{values})",
            noun.effect(shown),
            tag(found),
            noun.interval(shown)
        ),
    }
}

/// A whole sentence with scope, interval and design.
pub(super) fn sentence(found: &MetricResult) -> String {
    let (a, b) = (&found.mode_a, &found.mode_b);
    let noun = Noun::of(&found.definition);
    if found.verdict == Verdict::NotComparable {
        let reason = reason(found.reason);
        return format!("{a} and {b} cannot be compared by {}: {reason}.", noun.name);
    }
    let about_these = match (&found.limited, &found.count, headline(found)) {
        (Some(limited), ..) => limited_sentence(found, limited, &noun),
        (_, Some(count), _) => count_sentence(found, count, &noun),
        (_, _, Some(shown)) => ratio_sentence(found, &shown, &noun),
        (_, _, None) => format!(
            "Cannot tell whether {a} differs from {b} by {}: {}.",
            noun.name,
            too_few(found)
        ),
    };
    let sentences = [
        Some(about_these),
        super::other_tasks(found.scope, found.scenarios),
        advised(found),
    ];
    sentences
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Advice for an inconclusive comparison.
fn advised(found: &MetricResult) -> Option<String> {
    plan(found).filter(|_| found.verdict == Verdict::Inconclusive)
}

/// The clause for runs that never vary, where there is no verdict.
fn constant_clause<'a>(found: &MetricResult, shown: &Headline, noun: &Noun<'a>) -> Clause<'a> {
    let place = super::place(found.scope, found.scenarios);
    let why = match (found.scope, shown.value == 0.0 && is_same_everywhere(found)) {
        (Scope::Suite, true) => {
            return Clause::Known(format!("the same {} in every trial{place}", noun.name));
        }
        (Scope::Suite, false) => "nothing varied".to_owned(),
        (Scope::Population, true) => "the same in every task".to_owned(),
        (Scope::Population, false) => format!("{} in every task", noun.effect(shown)),
    };
    Clause::Unknown {
        name: noun.name,
        place,
        why,
    }
}

/// The same difference in every task, which says nothing about how much other tasks differ.
fn constant_sentence(found: &MetricResult, shown: &Headline, noun: &Noun<'_>) -> String {
    let (a, b) = (&found.mode_a, &found.mode_b);
    let values = values(found, noun);
    let these = scope(Scope::Suite, found.scenarios);
    let is_same = shown.value == 0.0 && is_same_everywhere(found);
    if found.scope == Scope::Suite {
        return match is_same {
            true => format!(
                "{these}, {a} and {b} had the same {} in every trial{values}.",
                noun.name
            ),
            false => format!(
                "{these}, {a} and {b} had the same {} on average{values}: nothing varied inside the tasks, and they differ both ways.",
                noun.name
            ),
        };
    }
    let found_here = match is_same {
        true => "the same in every task".to_owned(),
        false => format!("{} in every task", noun.effect(shown)),
    };
    let on_these = found.suite.as_ref().map(|suite| {
        let shown = Headline {
            value: suite.reduction_pct.or(suite.difference).unwrap_or(0.0),
            interval: suite.ci95,
            is_ratio: suite.reduction_pct.is_some(),
        };
        match shown.is_degenerate() {
            true if is_same => format!(" {these}: the same in every trial."),
            true => format!(" {these}: {}.", constant(found, &shown, noun)),
            false => format!(
                " {these}: {} ({}).",
                noun.effect(&shown),
                noun.interval(&shown)
            ),
        }
    });
    format!(
        "Cannot tell whether {a} differs from {b} by {} on other tasks: {found_here}{values}, so nothing is known about how much tasks differ.{}",
        noun.name,
        on_these.unwrap_or_default()
    )
}

/// All tasks show the same difference; a single task does.
fn is_same_everywhere(found: &MetricResult) -> bool {
    found.paired.as_ref().is_none_or(|paired| paired.degenerate)
}

/// `exactly 100 % more active tokens (twice as much) in every trial`.
fn constant(found: &MetricResult, shown: &Headline, noun: &Noun<'_>) -> String {
    match is_same_everywhere(found) {
        true => format!("{} in every trial", exactly(shown, noun)),
        false => format!("{} on average", noun.effect(shown)),
    }
}

fn ratio_sentence(found: &MetricResult, shown: &Headline, noun: &Noun<'_>) -> String {
    let (a, b) = (&found.mode_a, &found.mode_b);
    let level = level_words(found.confidence_level);
    let scope = scope(found.scope, found.scenarios);
    let values = values(found, noun);
    let evidence = evidence(found);
    match found.verdict {
        Verdict::Inconclusive if shown.is_degenerate() => constant_sentence(found, shown, noun),
        Verdict::Inconclusive => format!(
            "Cannot tell whether {a} differs from {b} by {}. {scope}, the data fit anything {}{}{values}.",
            noun.name,
            noun.range(shown),
            Doubts::of_metric(found).about(shown.interval)
        ),
        Verdict::Equivalent => format!(
            "{scope}, {a} and {b} are equivalent by {} within the margin ({level} interval {}{values}; {evidence}).",
            noun.name,
            noun.range(shown)
        ),
        _ if shown.is_degenerate() => format!(
            "{scope}, {a} had {}{} than {b}{}{values}: nothing varied inside the tasks.",
            match is_same_everywhere(found) {
                true => exactly(shown, noun),
                false => noun.effect(shown),
            },
            tag(found),
            match is_same_everywhere(found) {
                true => " in every trial",
                false => " on average over the tasks",
            },
        ),
        _ => format!(
            "{scope}, {a} had {}{} than {b} ({level} interval {}{values}; {evidence}).{}",
            noun.effect(shown),
            tag(found),
            noun.interval(shown),
            consistency(found)
        ),
    }
}

/// `, 12.4k against 18.0k`.
fn values(found: &MetricResult, noun: &Noun<'_>) -> String {
    let values = found.value_a.zip(found.value_b);
    values.map_or_else(String::new, |(a, b)| format!("; {}", noun.against([a, b])))
}

/// `exactly 100 % more time (exactly twice)`, or `exactly 30 % fewer tokens`.
fn exactly(shown: &Headline, noun: &Noun<'_>) -> String {
    let ratio = 1.0 - shown.value / 100.0;
    let is = |wanted: f64| shown.is_ratio && (ratio / wanted - 1.0).abs() < 1e-9;
    let multiple = match () {
        () if is(2.0) => " (exactly twice)",
        () if is(0.5) => " (exactly half)",
        () => "",
    };
    format!("exactly {}{multiple}", noun.effect(shown))
}

fn tag(found: &MetricResult) -> &'static str {
    match found.exploratory {
        true => " (exploratory)",
        false => "",
    }
}

fn too_few(found: &MetricResult) -> String {
    match found.repetitions {
        ..=1 => "one run of each task says nothing about chance on exactly these tasks; two or more would".to_owned(),
        _ => "too few runs".to_owned(),
    }
}

/// `8 tasks x 5 runs, paired; p 0.010`.
fn evidence(found: &MetricResult) -> String {
    let repetitions = found.repetitions as u64;
    let design = design(found.scenarios, repetitions, found.balanced);
    let p = p_values(
        crate::cells::decisive_p(found),
        found.p_adjusted,
        found.family_size,
    );
    super::evidence(&design, repetitions, &p)
}

/// In how many scenarios the direction is that of the whole.
fn consistency(found: &MetricResult) -> String {
    let Some(paired) = &found.paired else {
        return String::new();
    };
    let (word, scenarios) = match paired.scenarios_lower >= paired.scenarios_higher {
        true => ("Lower", paired.scenarios_lower),
        false => ("Higher", paired.scenarios_higher),
    };
    let better = found.prob_better.map(|share| {
        format!(
            " One run each: {} is better {} % of the time.",
            found.mode_a,
            number(100.0 * share)
        )
    });
    format!(
        " {word} in {scenarios} of {} scenarios.{}",
        found.scenarios,
        better.unwrap_or_default()
    )
}

/// The additional runs that would give a verdict.
pub(super) fn plan(found: &MetricResult) -> Option<String> {
    if found.limited.is_some() {
        let also = match found.bounded_by {
            BoundedBy::Limit => "a longer limit",
            BoundedBy::Unknown => "model calls that report what they used",
            BoundedBy::Both => "a longer limit and model calls that report what they used",
        };
        return Some(format!("More tasks would show more, and so would {also}."));
    }
    if let Some(count) = &found.count
        && count.lower.is_none()
        && !count.nothing_happened
    {
        return Some("More tasks would tell.".to_owned());
    }
    let is_constant = headline(found).is_some_and(|shown| shown.is_degenerate());
    if is_constant && found.scope == Scope::Population {
        return Some("More tasks would show how much they differ.".to_owned());
    }
    plan_words(found.plan.as_ref()?, found.scope, found.scenarios)
}

/// The differences that a design sees, and what it takes to see a smaller one.
pub(crate) fn plan_words(plan: &ComparisonPlan, scope: Scope, scenarios: usize) -> Option<String> {
    let Some(target) = plan.target_pct else {
        let (seen, tasks) = plan.min_detectable_effect.zip(plan.scenarios_needed)?;
        return Some(format!(
            "This design sees only differences above {} per run; half of that takes {tasks} tasks.",
            times(seen)
        ));
    };
    let sees = plan.min_detectable_pct.map(|percent| match percent {
        _ if percent > BLIND_PERCENT => "This design can hardly see any difference.".to_owned(),
        _ => format!(
            "This design sees only differences above {} %.",
            number(percent)
        ),
    });
    let target = number(target);
    let needs = match (plan.repetitions_needed, plan.scenarios_needed, scope) {
        (Some(runs), Some(needed), _) => Some(format!(
            "For {target} % it needs {runs} repetitions, or {}.",
            super::more_like_these(needed, plan.scenarios_range, scenarios, "scenarios")
        )),
        (Some(runs), None, Scope::Suite) => Some(format!(
            "For {target} %{} it needs {runs} repetitions.",
            super::place(scope, scenarios)
        )),
        (Some(runs), None, _) => Some(format!("For {target} % it needs {runs} repetitions.")),
        (None, Some(needed), _) => Some(format!(
            "For {target} % it needs {}; repetitions alone will not do.",
            super::more_like_these(needed, plan.scenarios_range, scenarios, "scenarios")
        )),
        (None, None, _) => None,
    };
    let parts: Vec<String> = sees.into_iter().chain(needs).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// The words for the direction of a limited comparison: `slower` and `faster`, or `more` and `less`.
struct Direction {
    word: &'static str,
    /// Share of pairs of runs that point this way, with its interval.
    share: f64,
    ends: Option<[f64; 2]>,
}

impl Direction {
    fn of(limited: &Limited) -> Option<Self> {
        let LimitedComparison {
            score,
            lower,
            upper,
            ..
        } = &limited.comparison;
        let score = (*score)?;
        let share = |score: f64| 50.0 * (1.0 + score);
        let is_more = score >= 0.0;
        let word = match (limited.kind, is_more) {
            (LimitKind::Time, true) => "slower",
            (LimitKind::Time, false) => "faster",
            (LimitKind::Tokens, true) => "more",
            (LimitKind::Tokens, false) => "less",
        };
        let ends = lower.zip(*upper).map(|(low, high)| match is_more {
            true => [share(low), share(high)],
            false => [share(-high), share(-low)],
        });
        Some(Self {
            word,
            share: share(score.abs()),
            ends,
        })
    }

    /// `the data fit 38 to 100 %`.
    fn fits(&self) -> String {
        match self.ends {
            Some(_) => format!("the data fit {}", self.range()),
            None => "one task gives no interval".to_owned(),
        }
    }

    /// `slower in 71 % of pairs of runs`.
    fn pairs(&self) -> String {
        format!("{} in {} % of pairs of runs", self.word, number(self.share))
    }

    fn range(&self) -> String {
        self.ends.map_or_else(
            || "no interval".to_owned(),
            |[low, high]| format!("{} to {} %", number(low), number(high)),
        )
    }
}

fn limited_clause<'a>(found: &MetricResult, limited: &Limited, noun: &Noun<'a>) -> Clause<'a> {
    let unknown = |why: String| Clause::Unknown {
        name: noun.name,
        place: String::new(),
        why,
    };
    let Some(direction) = Direction::of(limited) else {
        return unknown("nothing measured".to_owned());
    };
    let (pairs, range) = (direction.pairs(), direction.range());
    if found.verdict == Verdict::Inconclusive {
        let cut_off = cut_off(found, limited);
        let doubt = limited_doubt(found, limited);
        return unknown(format!("{pairs}, {}{doubt}; {cut_off}", direction.fits()));
    }
    let size = size(found, limited, noun, false);
    let size = size.map(|size| format!("; {size}")).unwrap_or_default();
    Clause::Known(format!(
        "{}{}{} ({pairs}, {range}{size})",
        takes(&direction, limited, noun),
        tag(found),
        super::place(found.scope, found.scenarios)
    ))
}

fn limited_sentence(found: &MetricResult, limited: &Limited, noun: &Noun<'_>) -> String {
    let (a, b) = (&found.mode_a, &found.mode_b);
    let Some(direction) = Direction::of(limited) else {
        return format!("{a} and {b} cannot be compared by {}.", noun.name);
    };
    let level = level_words(found.confidence_level);
    let (pairs, range) = (direction.pairs(), direction.range());
    let design = evidence(found);
    let place = super::place(found.scope, found.scenarios);
    if found.verdict == Verdict::Inconclusive {
        let question = match limited.kind {
            LimitKind::Time => format!("{a} is slower than {b}"),
            LimitKind::Tokens => format!("{a} used {} than {b}", noun.compared(false)),
        };
        return format!(
            "Cannot tell whether {question}{place}: {pairs}, {} ({design}){}; {}.",
            direction.fits(),
            limited_doubt(found, limited),
            cut_off(found, limited)
        );
    }
    let claim = match limited.kind {
        LimitKind::Time => {
            format!("{a} is {}{} than {b}{place}", direction.word, tag(found))
        }
        LimitKind::Tokens => {
            let compared = takes(&direction, limited, noun);
            format!("{a} used {compared}{} than {b}{place}", tag(found))
        }
    };
    let size = size(found, limited, noun, true).unwrap_or_else(|| match limited.kind {
        LimitKind::Time => "How much is not known: too many runs reached the limit".to_owned(),
        LimitKind::Tokens => String::new(),
    });
    let size = match size.as_str() {
        "" => String::new(),
        size => format!(" {}.", super::upper_first(size)),
    };
    format!(
        "{claim} ({pairs}, {level} interval {range}; {design}).{size} {}.",
        super::upper_first(&cut_off(found, limited))
    )
}

fn limited_doubt(found: &MetricResult, limited: &Limited) -> String {
    let ends = limited.comparison.lower.zip(limited.comparison.upper);
    ends.map_or_else(String::new, |(low, high)| {
        Doubts::of_metric(found).about([low, high])
    })
}

/// `slower`, or `more active tokens`.
fn takes(direction: &Direction, limited: &Limited, noun: &Noun<'_>) -> String {
    match limited.kind {
        LimitKind::Time => direction.word.to_owned(),
        LimitKind::Tokens => noun.compared(direction.word == "less"),
    }
}

/// The size that the limit leaves to be known.
fn size(
    result: &MetricResult,
    limited: &Limited,
    noun: &Noun<'_>,
    is_sentence: bool,
) -> Option<String> {
    let found = &limited.comparison;
    match limited.kind {
        LimitKind::Time => {
            let ratio = found.ratio?;
            let change = |ratio: f64| 100.0 * (ratio - 1.0);
            let word = if ratio >= 1.0 { "longer" } else { "less" };
            let ends = found.ratio_lower.zip(found.ratio_upper);
            let ends = ends.map(|(low, high)| match ratio >= 1.0 {
                true => [change(low), change(high)],
                false => [-change(high), -change(low)],
            });
            let ends = ends.map(|[low, high]| format!(" ({} to {} %)", number(low), number(high)));
            let it = if is_sentence { " it took" } else { "" };
            Some(format!(
                "within {}{it} {} % {word}{}",
                limit_words(found),
                number(change(ratio).abs()),
                ends.unwrap_or_default()
            ))
        }
        LimitKind::Tokens => {
            let (a, b) = found.recorded_a.zip(found.recorded_b)?;
            let how = match result.bounded_by {
                BoundedBy::Limit => "used until the limit",
                BoundedBy::Unknown => "as far as it is known",
                BoundedBy::Both => "used until the limit or as far as it is known",
            };
            Some(format!("{} {how}", noun.against([a, b])))
        }
    }
}

/// `the limit of 120 s`.
fn limit_words(found: &LimitedComparison) -> String {
    let seconds = |limit: f64| match limit % 1e3 == 0.0 && limit >= 1e3 {
        true => format!("{:.0} s", limit / 1e3),
        false => duration(limit),
    };
    match (found.smallest_limit, found.limit) {
        (Some(low), Some(high)) if low < high => {
            format!("the limits of {} to {}", seconds(low), seconds(high))
        }
        (_, Some(limit)) => format!("the limit of {}", seconds(limit)),
        _ => "the limit".to_owned(),
    }
}

/// `20 % and 3 % of the runs reached the limit`.
fn cut_off(found: &MetricResult, limited: &Limited) -> String {
    let share = |share: Option<f64>| number(100.0 * share.unwrap_or(0.0));
    let LimitedComparison {
        cut_share_a,
        cut_share_b,
        ..
    } = &limited.comparison;
    let (a, b) = (share(*cut_share_a), share(*cut_share_b));
    match found.bounded_by {
        BoundedBy::Limit => format!("{a} % and {b} % of the runs reached the limit"),
        BoundedBy::Unknown => {
            format!("in {a} % and {b} % of the runs only a lower bound is known")
        }
        BoundedBy::Both => format!(
            "{a} % and {b} % of the runs reached the limit or are known only as a lower bound"
        ),
    }
}

fn count_clause(found: &MetricResult, count: &CountDifference, noun: &Noun<'_>) -> String {
    if count.nothing_happened {
        return super::lower_first(nothing_happened(found, count, noun).trim_end_matches('.'));
    }
    let rates = rates(count, noun);
    match found.verdict {
        Verdict::Inconclusive => format!(
            "cannot tell for {}{}: {rates}{}",
            noun.name,
            super::place(found.scope, found.scenarios),
            count_doubt(found, count)
        ),
        _ => format!(
            "{}{}{}: {rates}",
            noun.compared(count.estimate.unwrap_or(0.0) < 0.0),
            tag(found),
            super::place(found.scope, found.scenarios)
        ),
    }
}

fn count_sentence(found: &MetricResult, count: &CountDifference, noun: &Noun<'_>) -> String {
    let (a, b) = (&found.mode_a, &found.mode_b);
    if count.nothing_happened {
        return nothing_happened(found, count, noun);
    }
    let (rates, evidence) = (rates(count, noun), evidence(found));
    let ratio = count
        .ratio
        .map(|ratio| format!(" That is {} times as many in these runs.", times(ratio)));
    match found.verdict {
        Verdict::Inconclusive if count.lower.is_none() => format!(
            "Cannot tell whether {a} has {} than {b}{}: {rates}, one task gives no interval ({}).",
            noun.compared(false),
            super::place(found.scope, found.scenarios),
            design(found.scenarios, found.repetitions as u64, found.balanced)
        ),
        Verdict::Inconclusive => format!(
            "Cannot tell whether {a} has {} than {b}{}: {rates}; {evidence}{}.",
            noun.compared(false),
            super::place(found.scope, found.scenarios),
            count_doubt(found, count)
        ),
        _ => format!(
            "{}, {a} has {}{} than {b}: {rates}; {evidence}.{}{}",
            scope(found.scope, found.scenarios),
            noun.compared(count.estimate.unwrap_or(0.0) < 0.0),
            tag(found),
            ratio.unwrap_or_default(),
            match found.warnings.contains(Warning::TaskCapped) {
                true => " (The most telling task counted only as much as the next one.)",
                false => "",
            }
        ),
    }
}

/// `0.40 against 0.10 failed tool calls per run (0.13 to 0.49 more)`.
fn rates(count: &CountDifference, noun: &Noun<'_>) -> String {
    let per_run = |rate: Option<f64>| rate.map_or_else(|| "unknown".to_owned(), times);
    let range = count.lower.zip(count.upper).map(|(low, high)| {
        let end = |value: f64| match value < 0.0 {
            true => format!("{} fewer", times(-value)),
            false => format!("{} more", times(value)),
        };
        match (low < 0.0, high < 0.0) {
            (false, false) => format!(" ({} to {} more)", times(low), times(high)),
            (true, true) => format!(" ({} to {} fewer)", times(-high), times(-low)),
            _ => format!(" (from {} to {})", end(low), end(high)),
        }
    });
    format!(
        "{} against {} {} per run{}",
        per_run(count.rate_a),
        per_run(count.rate_b),
        noun.name,
        range.unwrap_or_default()
    )
}

fn count_doubt(found: &MetricResult, count: &CountDifference) -> String {
    let ends = count.lower.zip(count.upper);
    ends.map_or_else(String::new, |(low, high)| {
        Doubts::of_metric(found).about([low, high])
    })
}

fn nothing_happened(found: &MetricResult, count: &CountDifference, noun: &Noun<'_>) -> String {
    let most = count.at_most_a.zip(count.at_most_b);
    let most = most.map_or(0.0, |(a, b)| a.max(b));
    format!(
        "No {} in either ({} and {} runs): at most {} per run ({}), on these tasks.",
        noun.one(),
        count.runs_a,
        count.runs_b,
        times(most),
        level_words(found.confidence_level)
    )
}

/// A small number of events: two digits, or whole where it is large.
fn times(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => quantity(value.round()),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
