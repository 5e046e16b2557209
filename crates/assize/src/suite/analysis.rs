//! The `analysis:` part of a suite: how its trials are read as evidence. It changes no trial, so a run can be resumed
//! with another one.

use assize_report::Analysis;
use assize_stats::{Direction, Level, Scope, Statistic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is compared with what, by which numbers, and which way is better.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnalysisSpec {
    /// The mode others are compared with. Default: the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Metrics to decide by. Default: success, tokens, time and cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<Vec<String>>,
    /// What summarises the runs of one scenario: for all metrics, or by metric. Default: median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistic: Option<StatisticSpec>,
    /// Which way is better, for metrics that do not speak for themselves.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub directions: BTreeMap<String, DirectionName>,
    /// Differences below this share count as equivalent, e.g. `5%` or 0.05. Default: nothing does.
    #[serde(alias = "equivalenceMargin", skip_serializing_if = "Option::is_none")]
    pub equivalence_margin: Option<MarginSpec>,
    /// What verdicts speak about. Default: population.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a statistic (median, mean, p90, p95, min, max), or one per metric"
)]
pub enum StatisticSpec {
    /// For all.
    All(StatisticName),
    /// By metric; the median for the others.
    ByMetric(BTreeMap<String, StatisticName>),
}

/// What summarises the runs of one scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DirectionName {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// What verdicts speak about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScopeName {
    /// New tasks like these.
    Population,
    /// Exactly these tasks.
    Suite,
}

/// A share, as a number or in percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a share such as 5% or 0.05")]
pub enum MarginSpec {
    /// 0.05
    Share(f64),
    /// `5%`
    Percent(String),
}

/// A key of the analysis and what is wrong with its value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) key: &'static str,
    pub(crate) message: String,
}

impl AnalysisSpec {
    /// The analysis, or everything that is wrong with it.
    pub(crate) fn resolve(&self) -> Result<Analysis, Vec<Misfit>> {
        let mut misfits = Vec::new();
        let mut analysis = Analysis {
            baseline: self.baseline.clone(),
            primary: self.primary.clone(),
            ..Analysis::default()
        };
        match &self.statistic {
            Some(StatisticSpec::All(name)) => analysis.statistic = (*name).into(),
            Some(StatisticSpec::ByMetric(names)) => {
                let named = names.iter();
                analysis.statistics = named
                    .map(|(metric, name)| (metric.clone(), (*name).into()))
                    .collect();
            }
            None => {}
        }
        for (metric, direction) in &self.directions {
            let direction = match direction {
                DirectionName::Lower => Direction::Lower,
                DirectionName::Higher => Direction::Higher,
            };
            analysis.directions.insert(metric.clone(), direction);
        }
        if self.scope == Some(ScopeName::Suite) {
            analysis.scope = Scope::Suite;
        }
        match self.equivalence_margin.as_ref().map(MarginSpec::share) {
            Some(Some(share)) => analysis.equivalence_margin = Some(share),
            Some(None) => misfits.push(Misfit {
                key: "equivalence_margin",
                message: "expected a share above 0 and below 1, such as 5% or 0.05".to_owned(),
            }),
            None => {}
        }
        match self.confidence.map(Level::new) {
            Some(Ok(level)) => analysis.confidence = level,
            Some(Err(error)) => misfits.push(Misfit {
                key: "confidence",
                message: error.to_string(),
            }),
            None => {}
        }
        match self.resamples {
            Some(resamples @ 100..=1_000_000) => analysis.resamples = resamples as usize,
            Some(found) => misfits.push(Misfit {
                key: "resamples",
                message: format!("found {found}, expected 100 to 1000000"),
            }),
            None => {}
        }
        match misfits.is_empty() {
            true => Ok(analysis),
            false => Err(misfits),
        }
    }
}

impl MarginSpec {
    fn share(&self) -> Option<f64> {
        let share = match self {
            Self::Share(share) => *share,
            Self::Percent(text) => {
                let number = text.trim().strip_suffix('%')?.trim_end();
                number.parse::<f64>().ok()? / 100.0
            }
        };
        (share > 0.0 && share < 1.0).then_some(share)
    }
}

impl From<StatisticName> for Statistic {
    fn from(name: StatisticName) -> Self {
        match name {
            StatisticName::Median => Self::Median,
            StatisticName::Mean => Self::Mean,
            StatisticName::P90 => Self::P90,
            StatisticName::P95 => Self::P95,
            StatisticName::Min => Self::Min,
            StatisticName::Max => Self::Max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolve(json: serde_json::Value) -> Result<Analysis, Vec<Misfit>> {
        serde_json::from_value::<AnalysisSpec>(json)
            .unwrap()
            .resolve()
    }

    #[test]
    fn all_keys_are_understood() {
        let analysis = resolve(json!({
            "baseline": "plain", "primary": ["success"], "statistic": {"cost_total_usd": "mean"},
            "directions": {"mine": "higher"}, "equivalence_margin": "5%", "scope": "suite",
            "confidence": 0.9, "resamples": 500
        }))
        .unwrap();
        assert_eq!(analysis.equivalence_margin, Some(0.05));
        assert_eq!(analysis.statistics["cost_total_usd"], Statistic::Mean);
        assert_eq!(analysis.statistic, Statistic::Median);
        assert_eq!(analysis.directions["mine"], Direction::Higher);
        assert_eq!((analysis.scope, analysis.resamples), (Scope::Suite, 500));
    }

    #[test]
    fn values_without_meaning_are_all_named() {
        let misfits =
            resolve(json!({"equivalence_margin": "much", "confidence": 95, "resamples": 1}));
        let keys: Vec<&str> = misfits
            .unwrap_err()
            .iter()
            .map(|misfit| misfit.key)
            .collect();
        assert_eq!(keys, ["equivalence_margin", "confidence", "resamples"]);
    }
}
