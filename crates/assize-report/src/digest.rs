//! The figures that are followed over runs: one number per metric and mode, small enough to be kept beside every run.

use crate::summary::RULES_VERSION;
use crate::{MetricSummary, ModeSummary, Summary};
use assize_contracts::{Catalog, SUCCESS};
use assize_stats::Statistic;
use serde::{Deserialize, Serialize};

/// The part of a summary that does not compare modes with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDigest {
    /// The metrics to follow.
    pub followed: Vec<String>,
    /// The metrics that were measured.
    pub catalog: Catalog,
    modes: Vec<ModeDigest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ModeDigest {
    name: String,
    rate: Bits,
    metrics: Vec<(String, MetricDigest)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct MetricDigest {
    mean: Bits,
    median: Bits,
    p90: Bits,
    p95: Bits,
    min: Bits,
    max: Bits,
}

/// A number by its bits: reading a decimal back may give its neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Bits(Option<u64>);

impl Bits {
    fn of(number: Option<f64>) -> Self {
        Self(number.map(f64::to_bits))
    }

    fn number(self) -> Option<f64> {
        self.0.map(f64::from_bits)
    }
}

impl RunDigest {
    /// Names the form of a digest and the rules that its numbers follow. One of another version is of no use.
    pub fn version() -> String {
        format!("digest 1, rules {RULES_VERSION}")
    }

    /// The digest of a summary.
    pub fn of(summary: &Summary) -> Self {
        let mode = |(name, mode): (&str, &ModeSummary)| ModeDigest {
            name: name.to_owned(),
            rate: Bits::of(mode.success.rate),
            metrics: mode
                .metrics
                .iter()
                .map(|(name, found)| (name.to_owned(), MetricDigest::of(found)))
                .collect(),
        };
        Self {
            followed: summary.followed(),
            catalog: summary.catalog.clone(),
            modes: summary.modes.iter().map(mode).collect(),
        }
    }

    /// The names of the modes.
    pub fn modes(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.modes.iter().map(|mode| mode.name.as_str())
    }

    /// The value of a mode. Absent where it was not measured, or is not known.
    pub fn value(&self, mode: &str, metric: &str, statistic: Statistic) -> Option<f64> {
        let mode = self.modes.iter().find(|known| known.name == mode)?;
        if metric == SUCCESS {
            return mode.rate.number();
        }
        let found = mode.metrics.iter().find(|(known, _)| known == metric);
        found.and_then(|(_, found)| found.statistic(statistic))
    }
}

impl MetricDigest {
    fn of(found: &MetricSummary) -> Self {
        let of = |statistic| Bits::of(found.statistic(statistic));
        Self {
            mean: of(Statistic::Mean),
            median: of(Statistic::Median),
            p90: of(Statistic::P90),
            p95: of(Statistic::P95),
            min: of(Statistic::Min),
            max: of(Statistic::Max),
        }
    }

    fn statistic(&self, statistic: Statistic) -> Option<f64> {
        let bits = match statistic {
            Statistic::Mean => self.mean,
            Statistic::P90 => self.p90,
            Statistic::P95 => self.p95,
            Statistic::Min => self.min,
            Statistic::Max => self.max,
            _ => self.median,
        };
        bits.number()
    }
}
