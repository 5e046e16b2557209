//! Statistics for repeated trials of scenarios: intervals, tests and verdicts that do not overclaim.
//!
//! The scenario is the independent unit; repetitions inside it are not. Nothing here reads a clock, a global random
//! source or a file: the same values, options and seed give the same bytes on every platform and thread count.
//!
//! ```
//! use assize_stats::{CompareOptions, Direction, Group, Metric, MetricKind, Statistic, Verdict, compare_groups};
//!
//! let runs = [
//!     ("login", [81.0, 79.0, 84.0], [120.0, 115.0, 131.0]),
//!     ("search", [410.0, 395.0, 402.0], [590.0, 640.0, 571.0]),
//!     ("refund", [33.0, 36.0, 31.0], [52.0, 47.0, 49.0]),
//! ];
//! let group = |mode, scenario, values| Group { mode, scenario: Some(scenario), values, cut: &[] };
//! let tokens = Metric {
//!     name: "tokens",
//!     direction: Some(Direction::Lower),
//!     statistic: Statistic::Median,
//!     kind: MetricKind::Amount,
//!     is_primary: true,
//!     groups: runs
//!         .iter()
//!         .flat_map(|(scenario, fast, plain)| [group("fast", *scenario, fast), group("plain", *scenario, plain)])
//!         .collect(),
//! };
//! let options = CompareOptions { baseline: Some("plain"), ..CompareOptions::default() };
//! let comparisons = compare_groups(&[tokens], &[], &options)?;
//! assert_eq!(comparisons.metrics[0].verdict, Verdict::Better);
//! # Ok::<(), assize_stats::StatsError>(())
//! ```

pub mod special;

mod error;
mod interval;
mod random;
mod sample;
mod scenario;
mod statistic;
mod verdict;
mod warning;

mod describe;

mod bootstrap;
mod cluster;
mod reduction;
mod resample;
mod typical;

mod effect;
mod effect_size;
mod paired;
mod permutation;

mod count;
mod limited;
mod pass_k;
mod proportion;
mod success;
mod task_t;

mod ablation;
mod adjust;
mod design;
mod equivalence;
mod gate;
mod power;

mod agreement;
mod censored;
mod change;
mod sequential;
mod stopping;

mod factorial;

mod compare;

pub use ablation::{
    AblationBudget, AblationFinding, BalancedSubsets, CLAIM_ERROR, ConfirmedEffect,
    LONGEST_SHORTLIST, ScreenedEffect, ScreenedTrial, confirm_ablation,
};
pub use adjust::{AdjustMethod, HolmFamily, adjust_p_values, holm_family};
pub use agreement::{
    CohensKappa, KappaWeights, KrippendorffAlpha, PooledAlpha, RatingLevel, VoteSums, cohens_kappa,
    cohens_kappa_ci, krippendorff_alpha, krippendorff_alpha_ci, pooled_alpha,
};
pub use bootstrap::{BootstrapOptions, bootstrap_ci, bootstrap_ci_of};
pub use censored::{
    CensoredMedian, CostPerSuccess, censored_median, censored_percentile, cost_per_success,
};
pub use change::{ChangePoint, FEWEST_FOR_CHANGE, change_point};
pub use cluster::{cluster_bootstrap_ci, cluster_bootstrap_ci_of};
pub use compare::{
    CiMethod, CompareOptions, ComparisonPlan, ComparisonSet, Comparisons, Design, Family, Group,
    Limited, Metric, MetricComparison, MetricKind, PMethod, PairedSummary, PlanBasis, RunCounts,
    SuccessCell, SuccessComparison, SuccessMethod, SuccessPlan, SuccessPopulation, SuccessSuite,
    SuiteSummary, compare_groups, compare_sets, plan_for_metric, plan_for_success,
};
pub use count::{CountDifference, count_difference};
pub use describe::{Description, MedianRange, Outliers, describe, median_range, tukey_outliers};
pub use design::{
    Components, Question, Split, SplitCost, best_split, cheapest_split, detectable,
    detectable_in_errors, ideal_repetitions,
};
pub use effect::Measure;
pub use effect_size::{CliffsDelta, CohensD, Magnitude, cliffs_delta, cohens_d};
pub use equivalence::{Tost, tost};
pub use error::StatsError;
pub use factorial::{
    EffectEstimate, EffectRuns, EffectTerm, Factor, Factorial, FactorialError, FactorialRuns,
    metric_effect, success_effect,
};
pub use gate::{
    Direction, GateOptions, GateVerdict, Margin, NoninferiorityGate, OneSided, Relation,
    absolute_gate, noninferiority_gate, suite_bounds,
};
pub use interval::{ConfidenceInterval, Level, Method, Scope, expanded_tail};
pub use limited::{LimitKind, LimitedComparison, LimitedRuns, LimitedVerdict, limited_comparison};
pub use paired::{PairedComparison, PairedOptions, paired_difference, paired_log_ratio};
pub use pass_k::{PassK, PassKSuite, pass_k, pass_k_suite};
pub use permutation::{
    Alternative, PermutationOptions, PermutationTest, SignFlipTest, Stratum, permutation_test,
    sign_flip_test, stratified_permutation_test,
};
pub use power::{PowerInputs, PowerPlan, power_plan};
pub use proportion::{
    PairedOutcomes, ProportionInterval, ProportionMethod, Tally, effective_proportion_ci,
    mcnemar_exact, paired_proportion_diff_ci, proportion_ci, proportion_diff_ci,
};
pub use reduction::{ReductionInterval, bootstrap_reduction_ci};
pub use sample::{Sample, Screened};
pub use sequential::{BettingOptions, Capital, ConfidenceSequence, betting_capital, betting_cs};
pub use statistic::Statistic;
pub use stopping::{
    Asked, Decided, LookFacts, Looks, PairRounds, Spending, Stopping, anytime_p,
    anytime_p_of_rounds, boundaries, conditional_power, sequential_p, t_e_value,
};
pub use success::{
    SuccessDifference, SuccessGate, SuccessMargin, SuccessMarginOptions, SuccessRate,
    SuiteDifference, SuiteRate, VoidCheck, success_difference, success_gate, success_margin,
    success_rate, suite_difference, suite_rate, tasks_for_margin, void_check,
};
pub use typical::{ClusterMean, ScenarioTypical, cluster_mean_ci, scenario_typical_ci};
pub use verdict::Verdict;
pub use warning::{Warning, Warnings};
