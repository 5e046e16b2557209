//! The answer for one metric of two modes. `draft` fills it in.

use serde::Serialize;

use super::plan::{ComparisonPlan, PlanBasis};
use super::{Family, Limited};
use crate::adjust::AdjustMethod;
use crate::count::CountDifference;
use crate::effect::Measure;
use crate::effect_size::Magnitude;
use crate::interval::{Level, Scope};
use crate::statistic::Statistic;
use crate::verdict::Verdict;
use crate::warning::Warnings;

/// A metric of mode A compared with mode B.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricComparison {
    /// The candidate.
    pub mode_a: String,
    /// The mode it is compared with.
    pub mode_b: String,
    /// The metric's name.
    pub metric: String,
    /// The percentage by which the statistic of all runs of A is below that of B; a placeholder unless `reduction_defined`.
    pub reduction_pct: f64,
    /// Interval of `reduction_pct` at `confidence_level`.
    pub ci95: [f64; 2],
    /// Cohen's d of all runs; a placeholder unless `effect_defined`.
    pub effect_size: f64,
    /// Its size in words.
    pub effect_magnitude: Magnitude,
    /// Permutation p-value: does the mode matter on exactly these scenarios?
    pub p_value: f64,
    /// True when `reduction_pct` may be shown.
    pub reduction_defined: bool,
    /// True when `effect_size` may be shown.
    pub effect_defined: bool,
    /// Compared runs.
    pub n: RunCounts,
    /// Scenarios run by both modes; 0 for unlabelled runs.
    pub scenarios: usize,
    /// Usual number of runs of a scenario under one mode.
    pub repetitions: usize,
    /// All scenarios have that number under both modes.
    pub balanced: bool,
    /// Scenarios run by one mode only.
    pub unmatched_scenarios: Vec<String>,
    /// The matching of runs.
    pub design: Design,
    /// The tasks that the verdict applies to.
    pub scope: Scope,
    /// Summary of the runs.
    pub statistic: Statistic,
    /// The method behind `ci95`.
    pub ci_method: CiMethod,
    /// The method behind `p_value`.
    pub p_method: PMethod,
    /// Nominal coverage of all intervals here.
    pub confidence_level: Level,
    /// Standard error of `p_value`; 0 when exact.
    pub mc_error: f64,
    /// Dropped NaN and infinite values.
    pub non_finite: usize,
    /// The typical value of A over the compared scenarios: with `value_b` it makes the difference that decides. Absent
    /// where cut-off runs or rare counts have numbers of their own.
    pub value_a: Option<f64>,
    /// The same for B.
    pub value_b: Option<f64>,
    /// The headline: scenario by scenario, for new tasks like these. Absent for fewer than two scenarios.
    pub paired: Option<PairedSummary>,
    /// The same for exactly these tasks. Absent unless every scenario has two runs of each mode.
    pub suite: Option<SuiteSummary>,
    /// Runs were cut off by a limit: the comparison that allows for it, in place of `paired` and `suite`.
    pub limited: Option<Limited>,
    /// The metric counts rare events: the comparison of events per run, in place of `paired` and `suite`.
    pub count: Option<CountDifference>,
    /// Cohen's d without its small-sample bias.
    pub hedges_g: Option<f64>,
    /// P(A > B) - P(A < B) over all runs.
    pub cliffs_delta: Option<f64>,
    /// P(A > B) + P(A = B)/2 over all runs.
    pub prob_superiority: Option<f64>,
    /// Probability that one run of A is better than one of B on the same scenario. Absent without a direction.
    pub prob_better: Option<f64>,
    /// The verdict's p-value after paying for all looks, where there were several. `p_adjusted` follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_look: Option<f64>,
    /// The verdict's p-value, adjusted for its family.
    pub p_adjusted: Option<f64>,
    /// The method of adjustment.
    pub adjust_method: AdjustMethod,
    /// The comparisons that are adjusted together.
    pub family: Family,
    /// Number of p-values in the family.
    pub family_size: usize,
    /// Not declared beforehand as a metric to decide by.
    pub exploratory: bool,
    /// The word.
    pub verdict: Verdict,
    /// The reason why the modes cannot be compared, or not yet.
    pub reason: Option<&'static str>,
    /// The size that an inconclusive comparison would need.
    pub plan: Option<ComparisonPlan>,
    /// The variances met, for plans of other designs. Absent for fewer than two scenarios and for cut-off runs.
    #[serde(skip)]
    pub plan_basis: Option<PlanBasis>,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Runs of each mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunCounts {
    /// Runs of A.
    pub a: usize,
    /// Runs of B.
    pub b: usize,
}

/// The matching of runs: by scenario or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Design {
    /// Modes are compared inside each scenario.
    Paired,
    /// All runs are pooled.
    Unpaired,
}

/// The method behind the interval of the pooled reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CiMethod {
    /// Whole scenarios resampled, expanded percentiles.
    ClusterExpanded,
    /// Runs resampled, plain percentiles.
    Percentile,
}

/// The method behind the p-value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PMethod {
    /// All relabelings inside scenarios.
    StratifiedExact,
    /// Random relabelings inside scenarios.
    StratifiedMonteCarlo,
    /// All relabelings.
    PermutationExact,
    /// Random relabelings.
    PermutationMonteCarlo,
    /// No relabelings: the p-value that the verdict rests on, which has a closed form.
    ClosedForm,
}

/// The comparison scenario by scenario, for new tasks like these.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairedSummary {
    /// Scale of the comparison.
    pub measure: Measure,
    /// The percentage by which A is below B; only for ratios.
    pub reduction_pct: Option<f64>,
    /// A minus B in the metric's unit; only for differences.
    pub difference: Option<f64>,
    /// Interval of the number above.
    pub ci95: [f64; 2],
    /// t test over scenarios; absent without variation.
    pub p_value: Option<f64>,
    /// The same question without assuming a distribution.
    pub sign_flip_p: f64,
    /// Scenarios in which A is below B.
    pub scenarios_lower: usize,
    /// Scenarios in which A is above B.
    pub scenarios_higher: usize,
    /// No variation: the interval says nothing about uncertainty.
    pub degenerate: bool,
}

/// The comparison for exactly these tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiteSummary {
    /// Scale of the comparison.
    pub measure: Measure,
    /// The percentage by which A is below B; only for ratios.
    pub reduction_pct: Option<f64>,
    /// A minus B in the metric's unit; only for differences.
    pub difference: Option<f64>,
    /// Interval of the number above.
    pub ci95: [f64; 2],
    /// Welch's t test of the same number; absent without variation.
    pub p_value: Option<f64>,
    /// No run differs from the others of its scenario: the number is exact.
    pub degenerate: bool,
}
