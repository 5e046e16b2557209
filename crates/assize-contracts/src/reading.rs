//! The reading of a run's trials as evidence: the analysis, the gates, the baseline, the prices. It changes no trial, so a run can be
//! resumed with another one.

use crate::{Better, FactorialRecord, UntilSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The reading that a run recorded with its trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Reading {
    /// The suite's `analysis`.
    pub analysis: AnalysisSpec,
    /// The suite's `gates`.
    pub gates: Vec<GateSpec>,
    /// The mode that others are compared with, also where it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The tables of prices that costs were computed from.
    pub prices: Vec<String>,
    /// The metrics to decide by, fixed when the run was planned. The first of each list that any trial reports is used. Empty in runs
    /// of 0.1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub primary: Vec<Vec<String>>,
    /// The factors that the modes come from; their effects are what decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factorial: Option<FactorialRecord>,
    /// The rule by which the run stops, declared before its first trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UntilSpec>,
}

/// The metrics that are compared, their statistics and directions, and the mode they are compared with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AnalysisSpec {
    /// The mode others are compared with. Default: the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Metrics to decide by. Default: success and active tokens; time where no agent reports its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<Vec<String>>,
    /// The statistic that summarises the runs of one scenario: for all metrics, or by metric. Default: the median; the mean for cost
    /// and for counts that are mostly 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistic: Option<StatisticSpec>,
    /// The direction that counts as better, for metrics that declare none or another.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub directions: BTreeMap<String, Better>,
    /// Differences below this share count as equivalent, e.g. `5%` or 0.05. Default: nothing does.
    #[serde(alias = "equivalenceMargin", skip_serializing_if = "Option::is_none")]
    pub equivalence_margin: Option<MarginSpec>,
    /// The tasks that verdicts speak about. Default: population.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeName>,
    /// Nominal coverage of intervals. Default: 0.95.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Bootstrap resamples. Default: 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resamples: Option<u32>,
}

/// One statistic for all metrics, or one per metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected a statistic (median, mean, p90, p95, min, max), or one per metric"
)]
pub enum StatisticSpec {
    /// For all.
    All(StatisticName),
    /// By metric; the default for the others.
    ByMetric(BTreeMap<String, StatisticName>),
}

/// The statistic that summarises the runs of one scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StatisticName {
    /// The middle value.
    Median,
    /// The arithmetic mean.
    Mean,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

/// The tasks that verdicts speak about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ScopeName {
    /// New tasks like these.
    Population,
    /// Exactly these tasks.
    Suite,
}

/// A share, as a number or in percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a share such as 5% or 0.05")]
pub enum MarginSpec {
    /// 0.05
    Share(f64),
    /// `5%`
    Percent(String),
}

/// A gate for all modes, or for some.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected a gate such as \"success >= 0.9\", or one with its modes: { gate: …, modes: […] }"
)]
pub enum GateSpec {
    /// `success >= 0.9`
    AllModes(String),
    /// The same for some modes only.
    SomeModes(GateForModes),
}

/// A gate that speaks about some modes only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GateForModes {
    /// `success >= 0.9`
    pub gate: String,
    /// The modes.
    pub modes: Vec<String>,
}
