//! Statistics for repeated trials of scenarios: intervals, tests and verdicts that do not overclaim.
//!
//! The scenario is the independent unit; repetitions inside it are not. Nothing here reads a clock, a global random
//! source or a file: the same values, options and seed give the same bytes on every platform and thread count.

pub mod special;

mod error;
mod interval;
mod random;
mod sample;
mod statistic;
mod warning;

mod bootstrap;
mod cluster;
mod describe;
mod permutation;
mod reduction;
mod resample;

pub use bootstrap::{BootstrapOptions, bootstrap_ci, bootstrap_ci_of};
pub use cluster::{cluster_bootstrap_ci, cluster_bootstrap_ci_of};
pub use describe::{Description, MedianRange, Outliers, describe, median_range, tukey_outliers};
pub use error::StatsError;
pub use interval::{ConfidenceInterval, Level, Method, Scope, expanded_tail};
pub use permutation::{
    Alternative, PermutationOptions, PermutationTest, SignFlipTest, Stratum, permutation_test,
    sign_flip_test, stratified_permutation_test,
};
pub use reduction::{ReductionInterval, bootstrap_reduction_ci};
pub use sample::{Sample, Screened};
pub use statistic::Statistic;
pub use warning::{Warning, Warnings};
