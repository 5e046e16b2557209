//! The number that summarises the runs of a group.

use serde::Serialize;

use crate::sample::Sample;

/// A summary of one group of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Statistic {
    /// Middle value; the default, since a few slow runs do not move it.
    #[default]
    Median,
    /// Arithmetic mean; for cost and tokens when totals matter.
    Mean,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
}

impl Statistic {
    /// The statistic of a sample.
    pub fn of(self, sample: &Sample) -> f64 {
        match self.share() {
            Some(share) => sample.quantile(share),
            None => sample.mean(),
        }
    }

    /// The quantile's share; none for the mean, which is no quantile.
    pub(crate) fn share(self) -> Option<f64> {
        match self {
            Self::Median => Some(0.5),
            Self::Mean => None,
            Self::P90 => Some(0.90),
            Self::P95 => Some(0.95),
            Self::Min => Some(0.0),
            Self::Max => Some(1.0),
        }
    }
}
