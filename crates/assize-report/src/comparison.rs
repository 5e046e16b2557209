//! Which arms are compared with which, and the numbers of each pair.

use crate::analysis::SUCCESS;
use crate::arm::Arm;
use crate::caution::is_claim;
use crate::summary::Nature;
use crate::{Analysis, ReportError};
use assize_stats::{
    CompareOptions, Group, Level, Metric, MetricComparison, SuccessCell, SuccessComparison,
    Verdict, Warning, Warnings, compare_groups,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// One metric, or success, of one mode compared with another.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Comparison {
    /// How many trials reach their goal.
    Success(Box<SuccessComparison>),
    /// A number measured in every trial.
    Metric(Box<MetricComparison>),
}

impl Comparison {
    /// The candidate.
    pub fn mode_a(&self) -> &str {
        match self {
            Self::Success(comparison) => &comparison.mode_a,
            Self::Metric(comparison) => &comparison.mode_a,
        }
    }

    /// What it is compared with.
    pub fn mode_b(&self) -> &str {
        match self {
            Self::Success(comparison) => &comparison.mode_b,
            Self::Metric(comparison) => &comparison.mode_b,
        }
    }

    /// The metric's name.
    pub fn metric(&self) -> &str {
        match self {
            Self::Success(comparison) => comparison.metric,
            Self::Metric(comparison) => &comparison.metric,
        }
    }

    /// The word.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Success(comparison) => comparison.verdict,
            Self::Metric(comparison) => comparison.verdict,
        }
    }

    /// Reasons to be careful.
    pub fn warnings(&self) -> &Warnings {
        match self {
            Self::Success(comparison) => &comparison.warnings,
            Self::Metric(comparison) => &comparison.warnings,
        }
    }
}

/// What all comparisons of a summary share.
pub(crate) struct Material<'a> {
    pub(crate) arms: &'a [Arm],
    /// The arms' names.
    pub(crate) labels: &'a [String],
    pub(crate) scenarios: &'a [String],
    /// Names of the columns.
    pub(crate) metrics: &'a [String],
    pub(crate) primary: &'a [String],
}

/// Compares within each set of arms that may be compared. Columns must hold measurements only.
pub(crate) fn compare(
    material: &Material<'_>,
    analysis: &Analysis,
) -> Result<Vec<Comparison>, ReportError> {
    check_baseline(material, analysis)?;
    let mut comparisons = Vec::new();
    for set in comparable_sets(material.arms, analysis.mixed) {
        if set.len() > 1 {
            comparisons.extend(compare_set(material, &set, analysis)?);
        }
    }
    Ok(comparisons)
}

fn check_baseline(material: &Material<'_>, analysis: &Analysis) -> Result<(), ReportError> {
    let Some(baseline) = &analysis.baseline else {
        return Ok(());
    };
    let is_known = |(arm, label): (&Arm, &String)| arm.mode == *baseline || label == baseline;
    // A mode that is planned may have no trial yet.
    if material.arms.is_empty()
        || analysis.mode_order.contains(baseline)
        || material.arms.iter().zip(material.labels).any(is_known)
    {
        return Ok(());
    }
    Err(ReportError::Baseline {
        found: baseline.clone(),
        known: material.labels.to_vec(),
    })
}

/// Arms of one suite and, unless they may be mixed, nature. Where modes have several models, also of one model, since else
/// two things differ.
fn comparable_sets(arms: &[Arm], mixed: bool) -> Vec<Vec<usize>> {
    let nature = |arm: &Arm| (!mixed).then_some(arm.nature);
    let crosses_models = |arm: &Arm| {
        let is_alike = |other: &&Arm| other.suite == arm.suite && nature(other) == nature(arm);
        let alike: Vec<&Arm> = arms.iter().filter(is_alike).collect();
        let has_rival = alike.iter().any(|other| other.mode != arm.mode);
        has_rival && has_several_models(alike)
    };
    type Key<'a> = (Option<&'a str>, Option<Nature>, Option<&'a str>);
    let mut sets: Vec<(Key<'_>, Vec<usize>)> = Vec::new();
    for (place, arm) in arms.iter().enumerate() {
        let model = crosses_models(arm).then_some(arm.model.as_str());
        let key = (arm.suite.as_deref(), nature(arm), model);
        match sets.iter_mut().find(|(known, _)| *known == key) {
            Some((_, set)) => set.push(place),
            None => sets.push((key, vec![place])),
        }
    }
    sets.into_iter().map(|(_, set)| set).collect()
}

/// Whether some mode was run with more than one model.
pub(crate) fn has_several_models<'a>(arms: impl IntoIterator<Item = &'a Arm>) -> bool {
    let mut models: BTreeMap<&str, &str> = BTreeMap::new();
    let is_second = |arm: &'a Arm| match models.insert(&arm.mode, &arm.model) {
        Some(first) => first != arm.model,
        None => false,
    };
    arms.into_iter().any(is_second)
}

fn compare_set(
    material: &Material<'_>,
    set: &[usize],
    analysis: &Analysis,
) -> Result<Vec<Comparison>, ReportError> {
    let is_primary = |name: &str| material.primary.iter().any(|known| known == name);
    let metrics: Vec<Metric<'_>> = material
        .metrics
        .iter()
        .enumerate()
        .filter(|(_, name)| analysis.compares(name) && !is_claim(name))
        .map(|(place, name)| Metric {
            name,
            direction: analysis.direction_of(name),
            statistic: analysis.statistic_of(name),
            is_primary: is_primary(name),
            groups: groups(material, set, place),
        })
        .filter(|metric| !metric.groups.is_empty())
        .collect();
    let success = match analysis.compares(SUCCESS) {
        true => success_cells(material, set),
        false => Vec::new(),
    };
    let options = CompareOptions {
        baseline: Some(baseline(material, set, analysis)),
        scope: analysis.scope,
        confidence_level: analysis.confidence,
        resamples: analysis.resamples,
        permutations: analysis.resamples,
        equivalence_margin: analysis.equivalence_margin,
        success_is_primary: is_primary(SUCCESS),
        ..CompareOptions::default()
    };
    let found = compare_groups(&metrics, &success, &options)?;
    let success = found
        .success
        .into_iter()
        .map(|comparison| Comparison::Success(Box::new(comparison)));
    // A metric that one mode never reports is no comparison; where it decides, that must be said.
    let is_worth_saying = |comparison: &MetricComparison| {
        is_primary(&comparison.metric) || (comparison.n.a > 0 && comparison.n.b > 0)
    };
    let metrics = found
        .metrics
        .into_iter()
        .filter(is_worth_saying)
        .map(|comparison| with_cut_offs(comparison, material))
        .map(|comparison| Comparison::Metric(Box::new(comparison)));
    let mut comparisons: Vec<Comparison> = success.chain(metrics).collect();
    comparisons.sort_by_key(|comparison| order(comparison, material, set));
    Ok(comparisons)
}

/// Time, tokens and cost of trials that ran out of time are taken as recorded, which must be said.
fn with_cut_offs(mut comparison: MetricComparison, material: &Material<'_>) -> MetricComparison {
    let is_cut_off = ["latency_", "tokens_", "cost_"]
        .iter()
        .any(|kind| comparison.metric.starts_with(kind));
    let is_meant = |label: &String| [&comparison.mode_a, &comparison.mode_b].contains(&label);
    let arms = material.arms.iter().zip(material.labels);
    let mut arms = arms.filter(|(_, label)| is_meant(label));
    let some = arms.any(|(arm, _)| arm.cells.values().any(|cell| cell.censored.contains(&true)));
    comparison
        .warnings
        .add_if(is_cut_off && some, Warning::Censored);
    comparison
}

/// Pair by pair; the deciding metrics first, in their order.
fn order(comparison: &Comparison, material: &Material<'_>, set: &[usize]) -> (usize, usize) {
    let pair = set
        .iter()
        .position(|arm| material.labels[*arm] == comparison.mode_a());
    let metric = material
        .primary
        .iter()
        .position(|name| name == comparison.metric());
    (pair.unwrap_or(usize::MAX), metric.unwrap_or(usize::MAX))
}

fn baseline<'a>(material: &Material<'a>, set: &[usize], analysis: &Analysis) -> &'a str {
    let is_wanted = |arm: &&usize| {
        let wanted = analysis.baseline.as_deref();
        wanted == Some(&material.arms[**arm].mode) || wanted == Some(&material.labels[**arm])
    };
    let place = set.iter().find(is_wanted).unwrap_or(&set[0]);
    &material.labels[*place]
}

fn groups<'a>(material: &Material<'a>, set: &[usize], place: usize) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    for &arm in set {
        for (scenario, cell) in &material.arms[arm].cells {
            let values = cell.measurements(place);
            if !values.is_empty() {
                groups.push(Group {
                    mode: &material.labels[arm],
                    scenario: Some(&material.scenarios[*scenario]),
                    values,
                });
            }
        }
    }
    groups
}

fn success_cells<'a>(material: &Material<'a>, set: &[usize]) -> Vec<SuccessCell<'a>> {
    let of_arm = |&arm: &usize| {
        let cells = material.arms[arm].cells.iter();
        cells.map(move |(scenario, cell)| SuccessCell {
            mode: &material.labels[arm],
            scenario: Some(&material.scenarios[*scenario]),
            passed: cell.passed,
            failed: cell.failed,
            void: cell.void,
        })
    };
    set.iter().flat_map(of_arm).collect()
}

/// The number a comparison stands for, with its interval, on the scale of its scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// Percent that A is below B, or A minus B in the metric's unit.
    pub value: f64,
    /// Its interval.
    pub interval: [f64; 2],
    /// Whether it is a percentage.
    pub is_ratio: bool,
}

impl Headline {
    /// The interval only says that nothing varied.
    pub fn is_degenerate(&self) -> bool {
        self.interval[0] == self.interval[1]
    }
}

/// None where no number may be shown.
pub fn headline(comparison: &MetricComparison) -> Option<Headline> {
    let paired = comparison.paired.as_ref().map(|paired| Headline {
        value: paired.reduction_pct.or(paired.difference).unwrap_or(0.0),
        interval: paired.ci95,
        is_ratio: paired.reduction_pct.is_some(),
    });
    let suite = comparison.suite.as_ref().map(|suite| Headline {
        value: suite.reduction_pct.or(suite.difference).unwrap_or(0.0),
        interval: suite.ci95,
        is_ratio: suite.reduction_pct.is_some(),
    });
    let (first, second) = match comparison.scope {
        assize_stats::Scope::Population => (paired, suite),
        assize_stats::Scope::Suite => (suite, paired),
    };
    first.or(second)
}

/// `95 %` of a level.
pub(crate) fn level_percent(level: Level) -> String {
    let percent = level.value() * 100.0;
    if (percent - percent.round()).abs() < 1e-9 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}
