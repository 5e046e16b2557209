//! Modes compared on many metrics at once: the numbers, the verdict word and what weakens it.
//!
//! `selection` finds the runs of a pair of modes, `draft`, `headline` and `success` compute, `verdict` judges, and
//! `plan` says what an inconclusive comparison would take.

mod draft;
mod headline;
mod metric;
mod plan;
mod selection;
mod success;
mod verdict;

use serde::Serialize;

use crate::error::{StatsError, non_negative};
use crate::gate::Direction;
use crate::interval::{Level, Scope};
use crate::statistic::Statistic;

pub use metric::{
    CiMethod, Design, MetricComparison, PMethod, PairedSummary, RunCounts, SuiteSummary,
};
pub use plan::ComparisonPlan;
pub use success::SuccessComparison;
pub use verdict::Verdict;

/// The runs of one mode on one scenario. Several groups with the same names are read as one.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The mode's name.
    pub mode: &'a str,
    /// The scenario's name; absent when the runs are not labelled.
    pub scenario: Option<&'a str>,
    /// One value per run.
    pub values: &'a [f64],
}

/// One metric of all modes and scenarios.
#[derive(Clone, Debug)]
pub struct Metric<'a> {
    /// The metric's name.
    pub name: &'a str,
    /// Which way is better; without it there is no verdict.
    pub direction: Option<Direction>,
    /// Summary of the runs of one scenario.
    pub statistic: Statistic,
    /// Declared beforehand as a metric to decide by.
    pub is_primary: bool,
    /// The measured runs.
    pub groups: Vec<Group<'a>>,
}

/// The outcomes of one mode on one scenario. Several cells with the same names are added up.
#[derive(Clone, Copy, Debug)]
pub struct SuccessCell<'a> {
    /// The mode's name.
    pub mode: &'a str,
    /// The scenario's name; absent when the trials are not labelled.
    pub scenario: Option<&'a str>,
    /// Trials that reached their goal.
    pub passed: u64,
    /// Trials that did not.
    pub failed: u64,
    /// Trials that could not be judged.
    pub void: u64,
}

/// How to compare.
#[derive(Clone, Copy, Debug)]
pub struct CompareOptions<'a> {
    /// The mode all others are compared with; without it every later mode is compared with every earlier one.
    pub baseline: Option<&'a str>,
    /// What the verdict speaks about. One scenario always gives `suite`.
    pub scope: Scope,
    /// Nominal coverage of all intervals; its complement is the error rate of verdicts.
    pub confidence_level: Level,
    /// Bootstrap resamples.
    pub resamples: usize,
    /// Random relabelings where there are too many to enumerate.
    pub permutations: usize,
    /// Same seed, same answer.
    pub seed: u64,
    /// Differences below this share (of the baseline; points for success) count as equivalent. Without it nothing does.
    pub equivalence_margin: Option<f64>,
    /// The relative effect that plans are made for.
    pub plan_effect: f64,
    /// Success was declared beforehand as a metric to decide by.
    pub success_is_primary: bool,
}

impl Default for CompareOptions<'_> {
    fn default() -> Self {
        Self {
            baseline: None,
            scope: Scope::Population,
            confidence_level: Level::CONFIDENCE_95,
            resamples: 10_000,
            permutations: 10_000,
            seed: 42,
            equivalence_margin: None,
            plan_effect: 0.2,
            success_is_primary: false,
        }
    }
}

/// All comparisons, pair after pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparisons {
    /// One per pair of modes and metric.
    pub metrics: Vec<MetricComparison>,
    /// One per pair of modes with judged trials.
    pub success: Vec<SuccessComparison>,
}

/// Two modes; A is measured against B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModePair<'a> {
    pub(crate) a: &'a str,
    pub(crate) b: &'a str,
}

/// Compares modes on all metrics and on success, adjusts the p-values of the family and gives each pair its verdict.
pub fn compare_groups(
    metrics: &[Metric<'_>],
    success: &[SuccessCell<'_>],
    options: &CompareOptions<'_>,
) -> Result<Comparisons, StatsError> {
    non_negative(
        "equivalence margin",
        options.equivalence_margin.unwrap_or(0.0),
    )?;
    Level::new(options.plan_effect)?;
    let mut drafts = Vec::new();
    let mut successes = Vec::new();
    for pair in mode_pairs(metrics, success, options.baseline) {
        drafts.extend(draft::draft_pair(metrics, pair, options));
        successes.extend(success::draft(success, pair, options));
    }
    verdict::adjust_family(&mut drafts, &mut successes);
    Ok(Comparisons {
        metrics: drafts
            .into_iter()
            .map(|draft| draft.judged(options))
            .collect(),
        success: successes
            .into_iter()
            .map(|draft| draft.judged(options))
            .collect(),
    })
}

/// The pairs in the order in which the modes first appear.
fn mode_pairs<'a>(
    metrics: &[Metric<'a>],
    success: &[SuccessCell<'a>],
    baseline: Option<&'a str>,
) -> Vec<ModePair<'a>> {
    let mut modes: Vec<&str> = Vec::new();
    let measured = metrics
        .iter()
        .flat_map(|metric| metric.groups.iter().map(|group| group.mode));
    for mode in measured.chain(success.iter().map(|cell| cell.mode)) {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    match baseline {
        Some(b) => modes
            .into_iter()
            .filter(|&a| a != b)
            .map(|a| ModePair { a, b })
            .collect(),
        None => {
            let earlier = |later: usize| modes[..later].iter().map(move |&b| (later, b));
            let places = (0..modes.len()).flat_map(earlier);
            places
                .map(|(later, b)| ModePair { a: modes[later], b })
                .collect()
        }
    }
}

#[cfg(test)]
mod tests;
