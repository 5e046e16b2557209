//! Modes compared on many metrics at once: the numbers, the verdict word and what weakens it.
//!
//! `selection` finds the runs of a pair of modes, `draft`, `headline` and `success` compute, `verdict` judges, and
//! `plan` says what an inconclusive comparison would take.

mod draft;
mod headline;
mod limited;
mod metric;
mod plan;
mod selection;
mod success;
mod verdict;

use serde::Serialize;

use crate::adjust::AdjustMethod;
use crate::error::{StatsError, non_negative};
use crate::gate::Direction;
use crate::interval::{Level, Scope};
use crate::statistic::Statistic;
use crate::stopping::Looks;

pub use limited::Limited;
pub use metric::{
    CiMethod, Design, MetricComparison, PMethod, PairedSummary, RunCounts, SuiteSummary,
};
pub(crate) use plan::variance_inside;
pub use plan::{ComparisonPlan, PlanBasis, SuccessPlan, plan_for_metric, plan_for_success};
pub use success::{SuccessComparison, SuccessMethod, SuccessPopulation, SuccessSuite};

/// The runs of one mode on one scenario. Several groups with the same names are read as one.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The mode's name.
    pub mode: &'a str,
    /// The scenario's name; absent when the runs are not labelled.
    pub scenario: Option<&'a str>,
    /// One value per run.
    pub values: &'a [f64],
    /// Marks the runs that a limit cut off, so that their values are lower bounds; missing entries count as not cut off.
    pub cut: &'a [bool],
}

/// The kind of a metric's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// A time; that of a cut-off run is its limit.
    Time,
    /// Tokens, cost, a score.
    #[default]
    Amount,
    /// A number of occurrences.
    Count,
}

/// The comparisons that are adjusted for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// All of a report.
    #[default]
    Report,
    /// Those of one model.
    Model,
}

/// One metric of all modes and scenarios.
#[derive(Clone, Debug)]
pub struct Metric<'a> {
    /// The metric's name.
    pub name: &'a str,
    /// The better direction; without it there is no verdict.
    pub direction: Option<Direction>,
    /// Summary of the runs of one scenario.
    pub statistic: Statistic,
    /// The kind of its numbers.
    pub kind: MetricKind,
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
    /// Trials that could not be judged, for a cause that may depend on the mode.
    pub void: u64,
    /// Trials that could not be judged, for a cause that cannot depend on the mode.
    pub void_unrelated: u64,
}

/// Modes that may be compared with each other, such as those of one model.
#[derive(Clone, Debug, Default)]
pub struct ComparisonSet<'a> {
    /// The mode all others are compared with; without it every later mode is compared with every earlier one.
    pub baseline: Option<&'a str>,
    /// The measured metrics.
    pub metrics: Vec<Metric<'a>>,
    /// The judged trials.
    pub success: Vec<SuccessCell<'a>>,
}

/// Settings of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct CompareOptions<'a> {
    /// The mode all others are compared with; without it every later mode is compared with every earlier one.
    pub baseline: Option<&'a str>,
    /// The tasks that verdicts apply to. Up to four scenarios always give `suite`.
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
    /// The comparisons that are adjusted for each other.
    pub family: Family,
    /// Metrics that were not declared are tested by relabelings, too. Without it their p-value is the one that the verdict
    /// rests on, which has a closed form; relabelings are most of the work of a large comparison.
    pub relabel_exploratory: bool,
    /// Looks at growing data that verdicts pay for. Absent: the data are looked at once.
    pub looks: Option<&'a Looks>,
}

impl CompareOptions<'_> {
    pub(crate) fn success_method(&self) -> AdjustMethod {
        if self.success_is_primary {
            AdjustMethod::Holm
        } else {
            AdjustMethod::Bh
        }
    }
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
            family: Family::Report,
            relabel_exploratory: true,
            looks: None,
        }
    }
}

/// All comparisons, pair after pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    let set = ComparisonSet {
        baseline: options.baseline,
        metrics: metrics.to_vec(),
        success: success.to_vec(),
    };
    let compared = compare_sets(&[set], options)?;
    Ok(compared.into_iter().next().unwrap_or_default())
}

/// Compares the modes of each set, adjusts the p-values of the family and gives each pair its verdict. The answers are in
/// the order of the sets; `options.baseline` is that of no set.
pub fn compare_sets(
    sets: &[ComparisonSet<'_>],
    options: &CompareOptions<'_>,
) -> Result<Vec<Comparisons>, StatsError> {
    non_negative(
        "equivalence margin",
        options.equivalence_margin.unwrap_or(0.0),
    )?;
    Level::new(options.plan_effect)?;
    let mut drafts = Vec::with_capacity(sets.len());
    for set in sets {
        let mut metrics = Vec::new();
        let mut successes = Vec::new();
        for pair in mode_pairs(&set.metrics, &set.success, set.baseline) {
            metrics.extend(draft::draft_pair(&set.metrics, pair, options));
            successes.extend(success::draft(&set.success, pair, options));
        }
        drafts.push((metrics, successes));
    }
    verdict::adjust_families(&mut drafts, options);
    let judged =
        |(metrics, successes): (Vec<draft::Draft>, Vec<success::SuccessDraft>)| Comparisons {
            metrics: metrics
                .into_iter()
                .map(|draft| draft.judged(options))
                .collect(),
            success: successes
                .into_iter()
                .map(|draft| draft.judged(options))
                .collect(),
        };
    Ok(drafts.into_iter().map(judged).collect())
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
