//! Comparisons as sentences, the same in the terminal, on pages and in files. Nothing here says more than its interval
//! carries.

mod metric;
mod noun;
mod success;

use crate::caution::count;
use crate::{Comparison, MetricResult};
use assize_stats::{Level, Scope, SuccessComparison, Verdict};
pub(crate) use metric::plan_words as metric_plan_words;
pub(crate) use success::{REPEAT_VOIDS, plan_words as success_plan_words};

/// Permutation and interval methods cannot distinguish p-values below this.
const FLOOR: f64 = 1e-4;

/// The heading of comparisons that were not declared to decide by.
pub const EXPLORATORY: &str =
    "Exploratory: not declared beforehand, so lower or higher, never better or worse";

/// One line about one comparison: `with-docs: 31 % fewer tokens (14 % to 44 %)`.
pub fn verdict_line(comparison: &Comparison) -> String {
    format!("{}: {}", comparison.mode_a(), clause(comparison))
}

/// The same without the mode, where it is above.
pub fn clause(comparison: &Comparison) -> String {
    Clause::of(comparison).to_string()
}

/// A comparison in a clause. The name is apart for readers that show it elsewhere.
pub(crate) enum Clause<'a> {
    /// A claim, whole on its own.
    Known(String),
    /// The metric of this name is inconclusive.
    Unknown {
        /// The metric's label.
        name: &'a str,
        /// The tasks it is about, such as ` on exactly these 8 tasks`; empty where the reader knows them.
        place: String,
        /// The reason, or what the data fit.
        why: String,
    },
}

impl<'a> Clause<'a> {
    pub(crate) fn of(comparison: &'a Comparison) -> Self {
        match comparison {
            Comparison::Success(found) => Self::Known(success::clause(found)),
            Comparison::Metric(found) => metric::clause(found),
        }
    }

    /// The clause where metric and verdict are above it.
    pub(crate) fn without_name(self) -> String {
        match self {
            Self::Known(text) => text,
            Self::Unknown { place, why, .. } => match place.trim_start() {
                "" => why,
                place => format!("{place}: {why}"),
            },
        }
    }
}

impl std::fmt::Display for Clause<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(text) => formatter.write_str(text),
            Self::Unknown { name, place, why } => {
                write!(formatter, "cannot tell for {name}{place} ({why})")
            }
        }
    }
}

/// One line about all given comparisons of one pair of modes. Exploratory ones are no part of it.
pub fn closing_line<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Option<String> {
    let mut comparisons = comparisons.into_iter().peekable();
    let mode = comparisons.peek()?.mode_a();
    Some(format!("{mode}: {}", closing_clauses(comparisons)?))
}

/// The same without the mode. Absent where all comparisons are exploratory.
pub(crate) fn closing_clauses<'a>(
    comparisons: impl IntoIterator<Item = &'a Comparison>,
) -> Option<String> {
    let mut declared = comparisons
        .into_iter()
        .filter(|comparison| !comparison.is_exploratory())
        .peekable();
    declared.peek()?;
    // Known verdicts come before unknown ones.
    let (known, open): (Vec<_>, Vec<_>) =
        declared.partition(|comparison| comparison.verdict() != Verdict::Inconclusive);
    let mut clauses: Vec<String> = known.into_iter().map(clause).collect();
    if !open.is_empty() {
        let names = open
            .iter()
            .map(|comparison| comparison.definition().label());
        let names = names.collect::<Vec<_>>().join(", ");
        clauses.push(format!("cannot tell for {names}"));
    }
    Some(clauses.join(", "))
}

/// A whole sentence with scope, interval and design, and advice where the comparison is inconclusive.
pub fn sentence(comparison: &Comparison) -> String {
    match comparison {
        Comparison::Success(found) => success::sentence(found),
        Comparison::Metric(found) => metric::sentence(found),
    }
}

/// Advice for an inconclusive comparison; `None` for others, or when nothing is known to help.
pub fn advice(comparison: &Comparison) -> Option<String> {
    if comparison.verdict() != Verdict::Inconclusive {
        return None;
    }
    match comparison {
        Comparison::Success(found) => success::plan(found),
        Comparison::Metric(found) => metric::plan(found),
    }
}

/// A note about the tasks that the intervals and p-values of these comparisons apply to. `None` without any.
pub fn scopes_note(comparisons: &[&Comparison]) -> Option<String> {
    let shown = comparisons
        .iter()
        .filter(|found| found.verdict() != Verdict::NotComparable);
    let (new, these): (Vec<&Comparison>, Vec<&Comparison>) =
        shown.partition(|found| found.scope() == Scope::Population);
    let names = |found: &[&Comparison]| {
        let names = found.iter().map(|found| found.definition().label());
        names.collect::<Vec<_>>().join(", ")
    };
    match (new.is_empty(), these.is_empty()) {
        (true, true) => None,
        (false, true) => Some("Intervals and p-values hold for tasks like these.".to_owned()),
        (true, false) => Some("Intervals and p-values hold for exactly these tasks.".to_owned()),
        (false, false) => Some(format!(
            "Intervals and p-values hold for tasks like these; those of {} for exactly these tasks.",
            names(&these)
        )),
    }
}

/// The verdict as tables name it.
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Lower => "lower (exploratory)",
        Verdict::Higher => "higher (exploratory)",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "cannot tell",
        Verdict::NotComparable => "not comparable",
    }
}

/// `p 0.012`, `p < 0.0001`, or `n/a`.
pub fn p_value(p: Option<f64>) -> String {
    match p {
        None => "n/a".to_owned(),
        Some(p) if p < FLOOR => "p < 0.0001".to_owned(),
        Some(p) if p < 0.01 => format!("p {p:.4}"),
        Some(p) => format!("p {p:.3}"),
    }
}

/// `about 9 to 16 more scenarios like these`: what is missing to the needed number, as a range where few scenarios know badly how
/// much they differ.
fn more_like_these(needed: u64, range: Option<[u64; 2]>, have: usize, noun: &str) -> String {
    let missing = |needed: u64| needed.saturating_sub(have as u64).max(1);
    let (low, high) = match range {
        Some([low, high]) => (missing(low), missing(high)),
        None => (missing(needed), missing(needed)),
    };
    match (low, high) {
        (1, 1) => format!("about 1 more {} like these", noun.trim_end_matches('s')),
        (low, high) if low == high => format!("about {low} more {noun} like these"),
        (low, high) => format!("about {low} to {high} more {noun} like these"),
    }
}

fn scope(scope: Scope, tasks: usize) -> String {
    match scope {
        Scope::Population => "On tasks like these".to_owned(),
        Scope::Suite => format!("On exactly {}", these_tasks(tasks)),
    }
}

fn these_tasks(tasks: usize) -> String {
    match tasks {
        1 => "this task".to_owned(),
        many => format!("these {many} tasks"),
    }
}

/// ` on exactly these 3 tasks` for a scope of exactly these tasks, empty for tasks like these.
fn place(scope: Scope, tasks: usize) -> String {
    match scope {
        Scope::Population => String::new(),
        Scope::Suite => format!(" on exactly {}", these_tasks(tasks)),
    }
}

/// `For other tasks: cannot tell from 3 tasks.`, where a verdict on so few applies to exactly these.
fn other_tasks(scope: Scope, tasks: usize) -> Option<String> {
    (scope == Scope::Suite && (1..=4).contains(&tasks)).then(|| {
        let tasks = count(tasks as u64, "task", "tasks");
        format!("For other tasks: cannot tell from {tasks}.")
    })
}

/// `8 tasks x 5`, or `8 tasks x about 5` where the numbers of runs differ.
fn design(tasks: usize, repetitions: u64, is_balanced: bool) -> String {
    let about = if is_balanced { "" } else { "about " };
    let tasks = count(tasks as u64, "task", "tasks");
    format!("{tasks} x {about}{repetitions}")
}

/// `8 tasks x 5 runs, paired; p 0.010`.
fn evidence(design: &str, repetitions: u64, p: &str) -> String {
    let runs = if repetitions == 1 { "run" } else { "runs" };
    format!("{design} {runs}, paired; {p}")
}

/// `p 0.010`, or `p 0.010, adjusted 0.020` in a family of several.
fn p_values(p: Option<f64>, adjusted: Option<f64>, family_size: usize) -> String {
    match (p, adjusted) {
        (Some(_), Some(adjusted)) if family_size > 1 => format!(
            "{}, adjusted {}",
            p_value(p),
            p_value(Some(adjusted)).trim_start_matches("p ")
        ),
        _ => p_value(p),
    }
}

/// The circumstances under which an interval on one side of no difference is no verdict.
#[derive(Debug, Clone, Copy, Default)]
struct Doubts {
    /// Questions that are adjusted together: one of several looks like that by chance.
    questions: usize,
    /// The p-value pays for several looks.
    looks: bool,
    /// The reason why there is no verdict yet.
    reason: Option<&'static str>,
}

impl Doubts {
    fn of_success(found: &SuccessComparison) -> Self {
        Self {
            questions: found.family_size,
            looks: found.p_look.is_some(),
            reason: found.reason,
        }
    }

    fn of_metric(found: &MetricResult) -> Self {
        Self {
            questions: found.family_size,
            looks: found.p_look.is_some(),
            reason: found.reason,
        }
    }

    /// Explains why an interval on one side of no difference is no verdict. Empty for others.
    fn about(self, interval: [f64; 2]) -> String {
        let is_one_sided = interval[0] > 0.0 || interval[1] < 0.0;
        let questions = self.questions;
        match (self.reason, questions > 1, self.looks) {
            _ if !is_one_sided => String::new(),
            (Some(reason), ..) => format!("; {reason}"),
            (None, true, false) => {
                format!("; one of {questions} questions asked, so it may be chance")
            }
            (None, true, true) => {
                format!(
                    "; one of {questions} questions, asked at several looks, so it may be chance"
                )
            }
            (None, false, true) => "; asked at several looks, so it may be chance".to_owned(),
            (None, false, false) => String::new(),
        }
    }
}

/// `95 %` of a level.
fn level_words(level: Level) -> String {
    crate::comparison::level_percent(level)
}

/// A number of percent or points: whole, or with one digit where it is small.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size < 0.005 => "0".to_owned(),
        size if size < 0.095 => format!("{value:.2}"),
        size if size < 1.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A number of points with its sign.
pub(crate) fn signed(value: f64) -> String {
    let text = number(value);
    match value > 0.0 && text != "0" {
        true => format!("+{text}"),
        false => text,
    }
}

fn reason(reason: Option<&'static str>) -> &'static str {
    reason.unwrap_or("too few measurements")
}

fn lower_first(text: &str) -> String {
    with_first(text, |letter| letter.to_ascii_lowercase())
}

fn upper_first(text: &str) -> String {
    with_first(text, |letter| letter.to_ascii_uppercase())
}

fn with_first(text: &str, change: fn(char) -> char) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(change);
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_stop_at_their_floor() {
        assert_eq!(p_value(Some(0.00001)), "p < 0.0001");
        assert_eq!(p_value(Some(0.004)), "p 0.0040");
        assert_eq!(p_value(Some(0.25)), "p 0.250");
        assert_eq!(p_value(None), "n/a");
    }

    #[test]
    fn points_carry_their_sign() {
        assert_eq!(
            [25.0, -3.4, 0.0, 0.04, -1e-15].map(signed),
            ["+25", "-3", "0", "+0.04", "0"]
        );
    }

    #[test]
    fn an_interval_that_excludes_zero_without_a_verdict_is_explained() {
        let doubts = Doubts {
            questions: 3,
            ..Doubts::default()
        };
        assert_eq!(doubts.about([-3.0, 5.0]), "");
        assert_eq!(
            doubts.about([3.0, 5.0]),
            "; one of 3 questions asked, so it may be chance"
        );
        let looks = Doubts {
            looks: true,
            ..Doubts::default()
        };
        assert_eq!(
            looks.about([-5.0, -3.0]),
            "; asked at several looks, so it may be chance"
        );
        let unfinished = Doubts {
            reason: Some("not yet"),
            ..doubts
        };
        assert_eq!(unfinished.about([3.0, 5.0]), "; not yet");
    }
}
