//! Sentences about success.

use super::{Doubts, design, level_words, number, p_values, reason, signed};
use crate::percent;
use assize_stats::{Scope, SuccessComparison, SuccessPlan, Verdict, Warning};

/// `success higher: 73 % against 48 %, +25 points (+9 to +40)`.
pub(super) fn clause(found: &SuccessComparison) -> String {
    if found.verdict == Verdict::NotComparable {
        return format!("success not comparable ({})", reason(found.reason));
    }
    let numbers = numbers(found);
    let place = super::place(found.scope, found.scenarios);
    let range = found.ci95.map(|ends| format!(" ({})", ends_of(ends)));
    let range = range.unwrap_or_default();
    match found.verdict {
        Verdict::Better | Verdict::Worse => {
            format!("success {}{place}: {numbers}{range}", side(found))
        }
        Verdict::Lower | Verdict::Higher => {
            let side = side(found);
            format!("success {side} (exploratory){place}: {numbers}{range}")
        }
        Verdict::Equivalent => format!("success equivalent{place}: {numbers}{range}"),
        _ if decided_by_voids(found) => format!("cannot tell for success: {}", void_clause(found)),
        _ => format!("cannot tell for success{place}: {numbers}{}", fit(found)),
    }
}

/// A whole sentence with scope, interval and design, and what else must be known.
pub(super) fn sentence(found: &SuccessComparison) -> String {
    let (a, b) = (&found.mode_a, &found.mode_b);
    if found.verdict == Verdict::NotComparable {
        let reason = reason(found.reason);
        return format!("{a} and {b} cannot be compared by success: {reason}.");
    }
    let mut sentences = vec![main_sentence(found)];
    sentences.extend(capped(found));
    sentences.extend(other_scope(found));
    sentences.extend(could_turn(found));
    sentences.extend(voids(found));
    sentences.extend(plan(found));
    sentences.join(" ")
}

fn main_sentence(found: &SuccessComparison) -> String {
    let (a, b) = (&found.mode_a, &found.mode_b);
    let scope = super::scope(found.scope, found.scenarios);
    let numbers = numbers(found);
    let place = super::place(found.scope, found.scenarios);
    match found.verdict {
        Verdict::Better | Verdict::Worse | Verdict::Lower | Verdict::Higher => {
            let often = if is_up(found) { "more" } else { "less" };
            let exploratory = match found.exploratory {
                true => " (exploratory)",
                false => "",
            };
            format!(
                "{scope}, {a} passes {often} often than {b}{exploratory}: {numbers} ({}).",
                evidence(found)
            )
        }
        Verdict::Equivalent => format!(
            "{scope}, {a} and {b} pass equally often within the margin: {numbers} ({}).",
            evidence(found)
        ),
        _ if decided_by_voids(found) => {
            format!("Cannot tell whether {a} passes more often than {b}{place}: {numbers}.")
        }
        _ => match unanimous(found) {
            Some(words) => words,
            None => format!(
                "Cannot tell whether {a} passes more often than {b}{place}: {numbers}{}.",
                fit_with_design(found)
            ),
        },
    }
}

/// `73 % against 48 %, +25 points`.
fn numbers(found: &SuccessComparison) -> String {
    let rates = found.rate_a.zip(found.rate_b).zip(found.difference_pp);
    rates.map_or_else(
        || "no rates".to_owned(),
        |((a, b), points)| {
            format!(
                "{} against {}, {} points",
                percent(a),
                percent(b),
                signed(points)
            )
        },
    )
}

/// `95 % interval +9 to +40; 8 tasks x 5 runs, paired; p 0.010`.
fn evidence(found: &SuccessComparison) -> String {
    let level = level_words(found.confidence_level);
    let interval = found
        .ci95
        .map(|ends| format!("{level} interval {}; ", ends_of(ends)));
    let p = p_values(found.p_value, found.p_adjusted, found.family_size);
    format!(
        "{}{}",
        interval.unwrap_or_default(),
        super::evidence(&runs(found), found.repetitions, &p)
    )
}

fn runs(found: &SuccessComparison) -> String {
    design(found.scenarios, found.repetitions, found.balanced)
}

/// `, the data fit -14 to +31`.
fn fit(found: &SuccessComparison) -> String {
    match found.ci95 {
        Some(ends) => format!(
            ", the data fit {}{}",
            ends_of(ends),
            Doubts::of_success(found).about(ends)
        ),
        None => ", too few runs for an interval".to_owned(),
    }
}

fn fit_with_design(found: &SuccessComparison) -> String {
    match found.ci95 {
        Some(ends) => format!(
            ", the data fit {} ({}){}",
            ends_of(ends),
            runs(found),
            Doubts::of_success(found).about(ends)
        ),
        None => format!(", too few runs for an interval ({})", runs(found)),
    }
}

/// All runs ended the same way: nothing differs, and yet little is known.
fn unanimous(found: &SuccessComparison) -> Option<String> {
    let rates = found.rate_a.zip(found.rate_b)?;
    // Void trials did neither, and tasks that one mode lacks are not looked at.
    let is_all = found.void == [0, 0]
        && found.void_unrelated == [0, 0]
        && found.unmatched_scenarios.is_empty();
    let ended = match (rates, is_all) {
        ((1.0, 1.0), true) => "All runs passed in both modes.",
        ((1.0, 1.0), false) => "All runs that are compared passed in both modes.",
        ((0.0, 0.0), true) => "No run passed in either mode.",
        ((0.0, 0.0), false) => "None of the runs that are compared passed in either mode.",
        _ => return None,
    };
    let suite = found.suite.as_ref().and_then(|suite| suite.ci95);
    let these = match suite {
        Some(ends) => {
            let tasks = super::these_tasks(found.scenarios);
            format!(" On exactly {tasks}: {} points.", ends_of(ends))
        }
        None => format!(" Too few runs for an interval ({}).", runs(found)),
    };
    let new = found.unseen_share.map(|share| {
        format!(
            " For new tasks the difference may be up to {} points either way: {} tasks can miss a kind of task.",
            number(share * 100.0),
            found.scenarios
        )
    });
    Some(format!("{ended}{these}{}", new.unwrap_or_default()))
}

fn capped(found: &SuccessComparison) -> Option<String> {
    let decided = matches!(
        found.verdict,
        Verdict::Better | Verdict::Worse | Verdict::Lower | Verdict::Higher
    );
    (found.capped && decided)
        .then(|| "(The most favourable task counted only as much as the next one.)".to_owned())
}

/// The same difference in the scope that the verdict does not speak about.
fn other_scope(found: &SuccessComparison) -> Option<String> {
    let is_population = found.scope == Scope::Population;
    let is_said = is_population && unanimous(found).is_some();
    // Intervals without the void trials would contradict that these decide.
    if found.verdict == Verdict::Inconclusive && (is_said || decided_by_voids(found)) {
        return super::other_tasks(found.scope, found.scenarios);
    }
    let line = |place: &str, points: f64, ends: [f64; 2]| {
        format!("{place}: {} points ({}).", signed(points), ends_of(ends))
    };
    match found.scope {
        Scope::Population => {
            let suite = found.suite.as_ref()?;
            let place = format!("On exactly {}", super::these_tasks(found.scenarios));
            Some(line(&place, suite.difference_pp, suite.ci95?))
        }
        Scope::Suite if found.scenarios <= 4 => super::other_tasks(found.scope, found.scenarios),
        Scope::Suite => {
            let population = found.population.as_ref()?;
            Some(line(
                "On tasks like these",
                population.difference_pp,
                population.ci95,
            ))
        }
    }
}

/// The possible effect of an unseen kind of task on the verdict.
fn could_turn(found: &SuccessComparison) -> Option<String> {
    let points = found.difference_pp?.abs() / 100.0;
    let unseen = found.unseen_share?;
    let is_claimed = matches!(found.verdict, Verdict::Better | Verdict::Worse);
    let fate = if is_up(found) { "loses" } else { "wins" };
    (is_claimed && found.warnings.contains(Warning::FewTasksCouldReverse)).then(|| {
        format!(
            "This would turn if about {} % of tasks were of a kind not seen here where {} always {fate}; {} tasks may miss up to {} %.",
            number(100.0 * points / (1.0 + points)),
            found.mode_a,
            found.scenarios,
            number(100.0 * unseen)
        )
    })
}

pub(super) fn decided_by_voids(found: &SuccessComparison) -> bool {
    found.warnings.contains(Warning::VoidDecides)
}

/// `void trials decide: without them A is better by 12 points; counted against A, the difference is -3 to +21`.
fn void_clause(found: &SuccessComparison) -> String {
    let a = &found.mode_a;
    let points = found.difference_pp.unwrap_or(0.0);
    let without = match found.verdict_without_voids {
        Verdict::Better => format!("{a} is better by {} points", number(points.abs())),
        Verdict::Worse => format!("{a} is worse by {} points", number(points.abs())),
        Verdict::Equivalent => format!("{a} is equivalent ({} points)", signed(points)),
        _ => format!(
            "the difference is {} points and may be chance",
            signed(points)
        ),
    };
    let against = found.void_interval.map(|ends| {
        format!(
            "; counted against {a} or for it, the difference is {}",
            ends_of(ends)
        )
    });
    format!(
        "void trials decide: without them {without}{}",
        against.unwrap_or_default()
    )
}

/// The possible effect of void trials.
fn voids(found: &SuccessComparison) -> Option<String> {
    let void = found.void[0] + found.void[1];
    if void == 0 {
        return None;
    }
    if decided_by_voids(found) {
        return Some(format!("{}.", super::upper_first(&void_clause(found))));
    }
    let ends = found.void_bounds?;
    Some(format!(
        "With {} counted against {} or for it, the difference is {} points.",
        crate::caution::count(void, "void trial", "void trials"),
        found.mode_a,
        ends_of(ends)
    ))
}

/// The additional runs that would give a verdict.
pub(super) fn plan(found: &SuccessComparison) -> Option<String> {
    let plan = found.plan.as_ref()?;
    if decided_by_voids(found) {
        return Some(REPEAT_VOIDS.to_owned());
    }
    plan_words(plan, found.scenarios)
}

/// The advice where void trials decide.
pub(crate) const REPEAT_VOIDS: &str =
    "`assize run --resume ID --only void` repeats the void trials.";

/// The differences that a design sees, and what it takes to see a smaller one.
pub(crate) fn plan_words(plan: &SuccessPlan, scenarios: usize) -> Option<String> {
    let target = number(plan.target_pp);
    let tasks = plan
        .scenarios_needed
        .map(|tasks| super::more_like_these(tasks, plan.scenarios_range, scenarios, "tasks"));
    let repetitions = plan
        .repetitions_needed
        .map(|repetitions| format!("{repetitions} repetitions of these"));
    let takes = match (tasks, repetitions) {
        (Some(tasks), Some(repetitions)) => format!("{tasks}, or {repetitions}"),
        (Some(tasks), None) => format!("{tasks}; repetitions alone will not do"),
        (None, Some(repetitions)) => repetitions,
        (None, None) => return None,
    };
    let sees = match plan.min_detectable_pp {
        points if points >= 99.5 => "This design can hardly see any difference.".to_owned(),
        points => format!(
            "This design sees only differences above {} points.",
            number(points)
        ),
    };
    Some(format!("{sees} For {target} points it takes {takes}."))
}

fn side(found: &SuccessComparison) -> &'static str {
    if is_up(found) { "higher" } else { "lower" }
}

fn is_up(found: &SuccessComparison) -> bool {
    found.difference_pp.unwrap_or(0.0) > 0.0
}

/// `+9 to +40`.
fn ends_of([low, high]: [f64; 2]) -> String {
    format!("{} to {}", signed(low), signed(high))
}
