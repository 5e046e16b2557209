//! Reasons to read numbers with care, as sentences that travel with the summary.

use crate::arm::{AllNames, Arm, Tallies};
use crate::comparison::has_several_models;
use crate::number::money;
use crate::wall;
use crate::{Analysis, Comparison, SummaryBuilder};
use assize_contracts::{Caution, CautionCode, MetricKind, Nature, RowField};
use assize_stats::{Family, Scope, Verdict, Warning, Warnings};
use std::collections::{BTreeMap, BTreeSet};

/// Cautions about the rows themselves. `labels` are the arms' names.
pub(crate) fn of_rows(
    builder: &SummaryBuilder,
    labels: &[String],
    analysis: &Analysis,
) -> Vec<Caution> {
    let mut cautions = Vec::new();
    if let Some(unfinished) = analysis.unfinished {
        cautions.push(Caution::about_all(
            CautionCode::Unfinished,
            format!(
                "The run is unfinished: {} of {} trials are there. Where modes do not have the same trials yet, there is no verdict.",
                unfinished.done, unfinished.planned
            ),
        ));
    }
    if builder.arms.is_empty() {
        cautions.push(Caution::about_all(
            CautionCode::NoTrials,
            "There are no trials to summarise.",
        ));
    }
    cautions.extend(wall::cautions(&analysis.walls));
    cautions.extend(of_natures(builder, labels));
    if builder.duplicates > 0 {
        let rows = count(
            builder.duplicates,
            "row repeats a trial",
            "rows repeat trials",
        );
        cautions.push(Caution::about_all(
            CautionCode::DuplicateRows,
            format!("{rows} that were already counted; the first one of each counts."),
        ));
    }
    if builder.torn > 0 {
        let files = count(builder.torn, "file ends", "files end");
        cautions.push(Caution::about_all(
            CautionCode::TornRow,
            format!("{files} in the middle of a row, which was left out."),
        ));
    }
    cautions.extend(builder.version_caution());
    cautions.extend(of_ways(builder, labels));
    cautions.extend(of_mixtures(builder, analysis));
    cautions.extend(of_trials(builder, labels));
    cautions.extend(of_unchecked(builder));
    cautions.extend(of_disagreements(builder, labels));
    cautions.extend(crate::looks::drift_cautions(builder, labels));
    cautions
}

/// The most scenarios that are named where nothing was checked.
const MOST_NAMED: usize = 10;

/// Scenarios that could only pass. Where a scorer failed a trial without telling a check, it did look at something.
fn of_unchecked(builder: &SummaryBuilder) -> Option<Caution> {
    let is_unchecked = |(scenario, _): &(usize, &str)| {
        let cells = builder.arms.iter();
        let cells = cells.filter_map(|arm| arm.cells.get(*scenario));
        let (passed, failed) = cells.fold((0, 0), |(passed, failed), cell| {
            (passed + cell.unchecked, failed + cell.failed_unchecked)
        });
        passed > 0 && failed == 0
    };
    let scenarios = builder.scenarios.iter().enumerate();
    let mut unchecked = scenarios.filter(is_unchecked).map(|(_, id)| id.to_owned());
    let mut places: Vec<String> = unchecked.by_ref().take(MOST_NAMED).collect();
    let more = unchecked.count();
    let number = places.len() + more;
    if more > 0 {
        places.push(format!("and {more} more"));
    }
    (number > 0).then(|| {
        let scenarios = count(number as u64, "scenario", "scenarios");
        Caution::new(
            CautionCode::NothingChecked,
            format!(
                "Nothing was checked in {scenarios}: trials passed with 0 of 0 checks, whatever the agent did. Give them `checks`, a \
                 judge or another scorer."
            ),
            places,
        )
    })
}

/// Token counts that agents report themselves, in the order in which they are shown.
const CLAIMED_TOKENS: [RowField; 6] = [
    RowField::TokensTotal,
    RowField::TokensInput,
    RowField::TokensOutput,
    RowField::TokensReasoning,
    RowField::TokensCacheRead,
    RowField::TokensCacheWrite,
];

fn of_disagreements(builder: &SummaryBuilder, labels: &[String]) -> Vec<Caution> {
    let tokens = (
        CautionCode::AgentDisagrees,
        "Agents report other token counts than the wire shows; the wire's count.",
        CLAIMED_TOKENS.as_slice(),
    );
    let cost = (
        CautionCode::AgentCostDisagrees,
        "Agents report another cost than the same tokens and the prices used here come to; the computed one counts.",
        [RowField::CostTotal].as_slice(),
    );
    let caution = |(code, text, claims): (CautionCode, &str, &[RowField])| {
        let places: Vec<String> = builder
            .arms
            .iter()
            .zip(labels)
            .flat_map(|(arm, label)| {
                let found = claims
                    .iter()
                    .filter_map(|field| disagreement(builder, arm, *field));
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

/// The first trial of an arm that has both numbers, and the number of such trials.
fn disagreement(builder: &SummaryBuilder, arm: &Arm, field: RowField) -> Option<String> {
    let AllNames {
        catalog, metrics, ..
    } = &builder.names;
    let is_claim = |name: &String| catalog.metric(name).kind == MetricKind::Claim(field);
    let claimed = metrics.names.iter().position(is_claim)?;
    let counted = catalog.name_of(field);
    let seen = metrics.find(counted)?;
    let trials = arm.cells.values().flat_map(|cell| {
        let both = move |trial| (cell.value(claimed, trial), cell.value(seen, trial));
        (0..cell.trials()).map(both)
    });
    let mut differing = trials.filter(|(claimed, seen)| claimed.is_finite() && seen.is_finite());
    let (claimed, seen) = differing.next()?;
    let trials = count(differing.count() as u64 + 1, "trial", "trials");
    let shown = |value: f64| match field.is_cost() {
        true => money(value),
        false => format!("{value}"),
    };
    Some(format!(
        "{counted} {} reported, {} counted, in {trials}",
        shown(claimed),
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
            CautionCode::Simulated,
            "Simulated: these numbers are made up by a stand-in, not measured on an agent.",
        ),
        (
            Nature::Replayed,
            CautionCode::Replayed,
            "Replayed: these numbers come from recordings.",
        ),
    ];
    said.into_iter()
        .map(|(nature, code, text)| Caution::new(code, text, with(nature)))
        .filter(|caution| !caution.places.is_empty())
        .collect()
}

/// Cautions about agents that reached their model past the proxy, whose numbers are unchecked; and about subscriptions, which are
/// not paid by the token.
fn of_ways(builder: &SummaryBuilder, labels: &[String]) -> Vec<Caution> {
    let caution = |of: fn(&Tallies) -> u64, code, text: fn(u64) -> String| {
        let (trials, places) = judged(builder, labels, of);
        (trials > 0).then(|| Caution::new(code, text(trials), places))
    };
    let not_captured = caution(
        |cell| u64::from(cell.not_captured),
        CautionCode::NotCaptured,
        |n| {
            let trials = count(n, "trial reached its model", "trials reached their model");
            format!(
                "{trials} by a way that the proxy does not see (a subscription, Bedrock, Vertex): tokens, times and costs are the agent's own claims."
            )
        },
    );
    let subscription = caution(
        |cell| u64::from(cell.subscription),
        CautionCode::Subscription,
        |n| {
            let trials = count(n, "trial", "trials");
            format!(
                "{trials} signed in with a subscription: costs are what the tokens would cost at list prices, not what was billed."
            )
        },
    );
    not_captured.into_iter().chain(subscription).collect()
}

fn sum_over(arm: &Arm, of: fn(&Tallies) -> u64) -> u64 {
    arm.cells.values().map(|cell| of(&cell)).sum()
}

/// The number of trials of a kind, and the arms that have any.
fn judged(
    builder: &SummaryBuilder,
    labels: &[String],
    of: fn(&Tallies) -> u64,
) -> (u64, Vec<String>) {
    let arms = builder.arms.iter().zip(labels);
    let counted = arms.map(|(arm, label)| (sum_over(arm, of), label));
    let found: Vec<(u64, &String)> = counted.filter(|(count, _)| *count > 0).collect();
    let trials = found.iter().map(|(count, _)| count).sum();
    (
        trials,
        found.into_iter().map(|(_, label)| label.clone()).collect(),
    )
}

fn of_mixtures(builder: &SummaryBuilder, analysis: &Analysis) -> Vec<Caution> {
    let distinct = |of: fn(&Arm) -> String| {
        let values: BTreeSet<String> = builder.arms.iter().map(of).collect();
        values.len() > 1
    };
    let mixtures = [
        (
            distinct(|arm| format!("{:?}", arm.nature)),
            CautionCode::MixedNature,
            match analysis.mixed {
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
            CautionCode::SeveralSuites,
            "The rows come from several suites, which are kept apart and not compared with each other.",
        ),
        (
            !has_several_models(&builder.arms) && distinct(|arm| arm.model.clone()),
            CautionCode::DifferentModels,
            "The modes differ in their model as well: a difference may come from either.",
        ),
        (
            has_several_models(&builder.arms),
            CautionCode::SeveralModels,
            match analysis.family {
                Family::Report => {
                    "Several models: modes are compared within each model, and p-values are adjusted over all of them."
                }
                Family::Model => {
                    "Several models: modes are compared within each model; the error rate holds per model, not for the report."
                }
            },
        ),
    ];
    let present = mixtures.into_iter().filter(|(is_mixed, ..)| *is_mixed);
    present
        .map(|(_, code, text)| Caution::about_all(code, text))
        .collect()
}

fn of_trials(builder: &SummaryBuilder, labels: &[String]) -> Vec<Caution> {
    let sums = |of: fn(&Tallies) -> u64| -> (u64, Vec<String>) {
        let mut total = 0;
        let mut places = Vec::new();
        for (arm, label) in builder.arms.iter().zip(labels) {
            let here = sum_over(arm, of);
            total += here;
            places.extend((here > 0).then(|| format!("{label} ({here})")));
        }
        (total, places)
    };
    type Said = (fn(&Tallies) -> u64, CautionCode, fn(u64) -> String);
    let said: [Said; 7] = [
        (Tallies::related_voids, CautionCode::Void, |n| {
            let trials = count(n, "void trial", "void trials");
            format!(
                "{trials} could not be judged, for a cause that may depend on the mode; a verdict holds only if they cannot change it."
            )
        }),
        (
            |cell| u64::from(cell.void_unrelated),
            CautionCode::VoidUnrelated,
            |n| {
                let trials = count(n, "trial", "trials");
                format!(
                    "{trials} failed before the agent acted and were left out; `assize run --resume ID --only void` repeats them."
                )
            },
        ),
        (Tallies::censored, CautionCode::CutOff, |n| {
            let trials = count(n, "trial was", "trials were");
            format!(
                "{trials} cut off by the limit; time, tokens, cost and turns are lower bounds there, and comparisons treat them so."
            )
        }),
        (Tallies::incomplete, CautionCode::Incomplete, |n| {
            let trials = count(n, "trial has", "trials have");
            format!(
                "{trials} a model call that did not report all it used: tokens and cost are lower bounds there (≥), and comparisons treat \
                 them so."
            )
        }),
        (
            |cell| u64::from(cell.unmeasured),
            CautionCode::Unmeasured,
            |n| {
                let trials = count(n, "failed trial carries", "failed trials carry");
                format!("{trials} only zeros: counted as failed, left out of all measurements.")
            },
        ),
        (
            |cell| u64::from(cell.unpriced),
            CautionCode::UnknownCost,
            |n| {
                let trials = count(n, "trial used", "trials used");
                format!(
                    "{trials} tokens at a cost of 0: they have no price, so their cost is unknown."
                )
            },
        ),
        (
            |cell| u64::from(cell.retried),
            CautionCode::RetriedFailures,
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
        let is_said = |warning: &Warning| is_said_of(*warning, comparison);
        for warning in comparison.warnings().iter().filter(is_said) {
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
            ..Caution::new(code_of(warning), warning.explanation(), places.collect())
        }
    };
    found.into_iter().map(caution).collect()
}

/// True when a warning applies to what the comparison shows and is not given elsewhere.
fn is_said_of(warning: Warning, comparison: &Comparison) -> bool {
    match warning {
        // Warnings about trials are given with the rows.
        Warning::Censored | Warning::CutOff | Warning::VoidUnrelated => false,
        // Of exactly these tasks nothing is wider because they are few.
        Warning::FewScenarios => {
            comparison.scope() == Scope::Population
                && comparison.verdict() != Verdict::NotComparable
        }
        Warning::UnmatchedScenarios | Warning::ManyVoid | Warning::NonFiniteDropped => true,
        // Without a number there is nothing to be careful with.
        _ => comparison.verdict() != Verdict::NotComparable,
    }
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
        .map(|(warning, places)| Caution::new(code_of(warning), warning.explanation(), places))
        .collect()
}

fn code_of(warning: Warning) -> CautionCode {
    let code = serde_json::to_value(warning).ok();
    let word = code.as_ref().and_then(|code| code.as_str());
    CautionCode::from(word.unwrap_or_default())
}

/// `1 row`, `2 rows`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{number} {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_of_the_statistics_has_a_code_of_its_own() {
        for warning in Warning::ALL {
            let code = code_of(warning);
            assert!(!matches!(code, CautionCode::Other(_)), "{code}");
        }
    }
}
