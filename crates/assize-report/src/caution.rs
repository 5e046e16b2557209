//! Reasons to read numbers with care, as sentences that travel with the summary.

use crate::arm::Arm;
use crate::comparison::has_several_models;
use crate::number::money;
use crate::summary::Nature;
use crate::{Analysis, Comparison, SummaryBuilder};
use assize_stats::{Warning, Warnings};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One reason, said once, with the places it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caution {
    /// A word for machines, such as `few-scenarios`.
    pub code: String,
    /// A sentence for people.
    pub text: String,
    /// Modes, comparisons or metrics concerned; empty when it is everything.
    #[serde(rename = "where")]
    pub places: Vec<String>,
    /// Concerns the trials themselves or a metric that decides.
    #[serde(skip)]
    pub is_primary: bool,
}

impl Caution {
    pub(crate) fn about_all(code: &str, text: impl Into<String>) -> Self {
        Self::new(code, text, Vec::new())
    }

    pub(crate) fn new(code: &str, text: impl Into<String>, places: Vec<String>) -> Self {
        Self {
            code: code.to_owned(),
            text: text.into(),
            places,
            is_primary: true,
        }
    }
}

/// What must be known about the rows themselves. `labels` are the arms' names.
pub(crate) fn of_rows(
    builder: &SummaryBuilder,
    labels: &[String],
    analysis: &Analysis,
) -> Vec<Caution> {
    let mut cautions = Vec::new();
    if builder.arms.is_empty() {
        cautions.push(Caution::about_all(
            "no-trials",
            "There are no trials to summarise.",
        ));
    }
    cautions.extend(of_natures(builder, labels));
    if builder.duplicates > 0 {
        let rows = count(
            builder.duplicates,
            "row repeats a trial",
            "rows repeat trials",
        );
        cautions.push(Caution::about_all(
            "duplicate-rows",
            format!("{rows} that were already counted; the first one of each counts."),
        ));
    }
    if builder.torn > 0 {
        let files = count(builder.torn, "file ends", "files end");
        cautions.push(Caution::about_all(
            "torn-row",
            format!("{files} in the middle of a row, which was left out."),
        ));
    }
    cautions.extend(of_mixtures(builder, analysis.mixed));
    cautions.extend(of_trials(builder, labels));
    cautions.extend(of_disagreements(builder, labels));
    cautions
}

/// What agents say about themselves, and what counts instead: the names of both.
const CLAIMED_TOKENS: [(&str, &str); 6] = [
    ("tokens_reported_total", "tokens_total"),
    ("tokens_reported_input", "tokens_input"),
    ("tokens_reported_output", "tokens_output"),
    ("tokens_reported_reasoning", "tokens_reasoning"),
    ("tokens_reported_cache_read", "tokens_cache_read"),
    ("tokens_reported_cache_write", "tokens_cache_write"),
];
const CLAIMED_COST: [(&str, &str); 1] = [("cost_reported_usd", "cost_total_usd")];

/// A number that an agent tells beside the one that counts. It is no result to compare.
pub(crate) fn is_claim(metric: &str) -> bool {
    let mut all = CLAIMED_TOKENS.iter().chain(&CLAIMED_COST);
    all.any(|(claimed, _)| *claimed == metric)
}

fn of_disagreements(builder: &SummaryBuilder, labels: &[String]) -> Vec<Caution> {
    let tokens = (
        "agent-disagrees",
        "Agents report other token counts than the wire shows; the wire's count.",
        CLAIMED_TOKENS.as_slice(),
    );
    let cost = (
        "agent-cost-disagrees",
        "Agents report another cost than the same tokens and the prices used here come to; the computed one counts.",
        CLAIMED_COST.as_slice(),
    );
    let caution = |(code, text, claims): (&str, &str, &[(&str, &str)])| {
        let places: Vec<String> = builder
            .arms
            .iter()
            .zip(labels)
            .flat_map(|(arm, label)| {
                let found = claims
                    .iter()
                    .filter_map(|claim| disagreement(builder, arm, *claim));
                found.map(move |found| format!("{label}: {found}"))
            })
            .collect();
        let first = places.first()?;
        Some(Caution::new(
            code,
            format!("{text} For example {first}."),
            places.clone(),
        ))
    };
    [tokens, cost].into_iter().filter_map(caution).collect()
}

/// The first trial of an arm in which both numbers stand, and how many there are.
fn disagreement(
    builder: &SummaryBuilder,
    arm: &Arm,
    (claimed, counted): (&str, &str),
) -> Option<String> {
    let (told, seen) = (
        builder.metrics.find(claimed)?,
        builder.metrics.find(counted)?,
    );
    let trials = arm.cells.values().flat_map(|cell| {
        let both = move |trial| (cell.value(told, trial), cell.value(seen, trial));
        (0..cell.success.len()).map(both)
    });
    let mut differing = trials.filter(|(told, seen)| told.is_finite() && seen.is_finite());
    let (told, seen) = differing.next()?;
    let trials = count(differing.count() as u64 + 1, "trial", "trials");
    let shown = |value: f64| match counted.ends_with("_usd") {
        true => money(value),
        false => format!("{value}"),
    };
    Some(format!(
        "{counted} {} reported, {} counted, in {trials}",
        shown(told),
        shown(seen)
    ))
}

fn of_natures(builder: &SummaryBuilder, labels: &[String]) -> Vec<Caution> {
    let with = |nature: Nature| -> Vec<String> {
        let arms = builder.arms.iter().zip(labels);
        arms.filter(|(arm, _)| arm.nature == nature)
            .map(|(_, label)| label.clone())
            .collect()
    };
    let said = [
        (
            Nature::Simulated,
            "simulated",
            "Simulated: these numbers are made up by a stand-in, not measured on an agent.",
        ),
        (
            Nature::Replayed,
            "replayed",
            "Replayed: these numbers come from recordings.",
        ),
    ];
    said.into_iter()
        .map(|(nature, code, text)| Caution::new(code, text, with(nature)))
        .filter(|caution| !caution.places.is_empty())
        .collect()
}

fn of_mixtures(builder: &SummaryBuilder, mixed: bool) -> Vec<Caution> {
    let distinct = |of: fn(&Arm) -> String| {
        let values: BTreeSet<String> = builder.arms.iter().map(of).collect();
        values.len() > 1
    };
    let mixtures = [
        (
            distinct(|arm| format!("{:?}", arm.nature)),
            "mixed-nature",
            match mixed {
                false => {
                    "Live, simulated and replayed trials are kept apart and never compared with each other."
                }
                true => {
                    "Live, simulated and replayed trials are compared with each other, as asked: a difference may come from that."
                }
            },
        ),
        (
            distinct(|arm| arm.suite.clone().unwrap_or_default()),
            "several-suites",
            "The rows come from several suites, which are kept apart and not compared with each other.",
        ),
        (
            !has_several_models(&builder.arms) && distinct(|arm| arm.model.clone()),
            "different-models",
            "The modes differ in their model as well: a difference may come from either.",
        ),
        (
            has_several_models(&builder.arms),
            "several-models",
            "Several models: modes are compared within each model, and p-values are adjusted within it.",
        ),
    ];
    let present = mixtures.into_iter().filter(|(is_mixed, ..)| *is_mixed);
    present
        .map(|(_, code, text)| Caution::about_all(code, text))
        .collect()
}

fn of_trials(builder: &SummaryBuilder, labels: &[String]) -> Vec<Caution> {
    let sums = |of: fn(&crate::arm::Cell) -> u64| -> (u64, Vec<String>) {
        let mut total = 0;
        let mut places = Vec::new();
        for (arm, label) in builder.arms.iter().zip(labels) {
            let here: u64 = arm.cells.values().map(of).sum();
            total += here;
            places.extend((here > 0).then(|| format!("{label} ({here})")));
        }
        (total, places)
    };
    type Said = (
        fn(&crate::arm::Cell) -> u64,
        &'static str,
        fn(u64) -> String,
    );
    let said: [Said; 5] = [
        (
            |cell| cell.void,
            "void",
            |n| {
                let trials = count(n, "void trial", "void trials");
                format!(
                    "{trials} taught nothing about the agent; what was measured in them is in no number."
                )
            },
        ),
        (
            |cell| cell.censored.iter().filter(|censored| **censored).count() as u64,
            "censored",
            |n| {
                let trials = count(n, "trial", "trials");
                format!(
                    "{trials} ran out of time; time, tokens and cost are lower bounds there, and comparisons take them as they were recorded."
                )
            },
        ),
        (
            |cell| cell.unmeasured,
            "unmeasured",
            |n| {
                let trials = count(n, "failed trial carries", "failed trials carry");
                format!("{trials} only zeros: counted as failed, left out of all measurements.")
            },
        ),
        (
            |cell| cell.unpriced,
            "unknown-cost",
            |n| {
                let trials = count(n, "trial used", "trials used");
                format!(
                    "{trials} tokens at a cost of 0: nobody priced them, so their cost is unknown."
                )
            },
        ),
        (
            |cell| cell.retried,
            "retried-failures",
            |n| {
                let trials = count(n, "trial was", "trials were");
                format!(
                    "{trials} tried again after failing: success means success within the allowed attempts."
                )
            },
        ),
    ];
    said.into_iter()
        .filter_map(|(of, code, text)| {
            let (total, places) = sums(of);
            (total > 0).then(|| Caution::new(code, text(total), places))
        })
        .collect()
}

/// The warnings of all comparisons, each code once.
pub(crate) fn of_comparisons(comparisons: &[Comparison], primary: &[String]) -> Vec<Caution> {
    let mut found: BTreeMap<Warning, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    let mut metrics_of: BTreeMap<String, usize> = BTreeMap::new();
    for comparison in comparisons {
        let pair = format!("{} vs {}", comparison.mode_a(), comparison.mode_b());
        *metrics_of.entry(pair.clone()).or_default() += 1;
        let warnings = comparison.warnings();
        // One scenario is fewer than six as well, which need not be said twice.
        let is_said = |warning: &Warning| {
            // Trials that ran out of time are said of the rows.
            *warning != Warning::Censored
                && (*warning != Warning::FewScenarios
                    || !warnings.contains(Warning::SingleScenario))
        };
        for warning in warnings.iter().filter(is_said) {
            let pairs = found.entry(warning).or_default();
            pairs
                .entry(pair.clone())
                .or_default()
                .push(comparison.metric());
        }
    }
    let caution = |(warning, pairs): (Warning, BTreeMap<String, Vec<&str>>)| {
        let decides = |metric: &&str| primary.iter().any(|name| name == metric);
        let is_primary = pairs.values().flatten().any(decides);
        let places = pairs.into_iter().map(|(pair, metrics)| {
            if metrics.len() == metrics_of[&pair] {
                pair
            } else {
                format!("{pair}: {}", metrics.join(", "))
            }
        });
        Caution {
            is_primary,
            ..Caution::new(&code_of(warning), warning.explanation(), places.collect())
        }
    };
    found.into_iter().map(caution).collect()
}

/// Warnings of numbers of single modes: where they come from, and what they warn of.
pub(crate) fn of_modes<'a>(warned: impl Iterator<Item = (&'a str, &'a Warnings)>) -> Vec<Caution> {
    let mut found: BTreeMap<Warning, Vec<String>> = BTreeMap::new();
    for (place, warnings) in warned {
        for warning in warnings.iter() {
            found.entry(warning).or_default().push(place.to_owned());
        }
    }
    found
        .into_iter()
        .map(|(warning, places)| Caution::new(&code_of(warning), warning.explanation(), places))
        .collect()
}

fn code_of(warning: Warning) -> String {
    let code = serde_json::to_value(warning).ok();
    code.and_then(|code| code.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// `1 row`, `2 rows`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{number} {word}")
}
