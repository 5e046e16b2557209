//! The words of an interval: its level, how it was made, what it speaks about.

use serde::Serialize;

use crate::error::StatsError;
use crate::special::{normal_cdf, student_t_quantile};
use crate::warning::Warnings;

/// A probability strictly between 0 and 1: a confidence level, an error rate or a power.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Level(f64);

impl Level {
    /// The usual confidence level.
    pub const CONFIDENCE_95: Level = Level(0.95);
    /// The usual error rate.
    pub const ALPHA_05: Level = Level(0.05);
    /// One half.
    pub const HALF: Level = Level(0.5);
    /// The usual power of a planned comparison.
    pub const POWER_80: Level = Level(0.8);
    /// The largest level below 1.
    pub(crate) const ALMOST_ONE: Level = Level(1.0 - f64::EPSILON / 2.0);

    /// Accepts numbers between 0 and 1, both excluded.
    pub fn new(value: f64) -> Result<Self, StatsError> {
        if value > 0.0 && value < 1.0 {
            Ok(Self(value))
        } else {
            Err(StatsError::LevelOutOfRange { found: value })
        }
    }

    /// The number itself.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The remaining error rate: 0.05 for 0.95.
    pub fn complement(self) -> f64 {
        1.0 - self.0
    }

    /// Error on each side of a two-sided interval.
    pub(crate) fn tail(self) -> f64 {
        self.complement() / 2.0
    }

    /// The two-sided level whose bounds are one-sided bounds with this error rate.
    pub(crate) fn two_sided_for_one_sided_alpha(self) -> Level {
        Level((1.0 - 2.0 * self.0).max(f64::MIN_POSITIVE))
    }

    /// Half width of a two-sided t interval in standard errors.
    pub(crate) fn t(self, df: f64) -> f64 {
        student_t_quantile(1.0 - self.tail(), df)
    }
}

/// The tasks that a number applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// New tasks like these: the scenarios are a sample.
    #[default]
    Population,
    /// Exactly these tasks.
    Suite,
}

/// The method that turns bootstrap replicates into an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Method {
    /// Plain quantiles of the replicates.
    #[default]
    Percentile,
    /// Quantiles moved outward to make up for few units (Hesterberg 2015).
    Expanded,
    /// Bias-corrected and accelerated (Efron 1987), because it was asked for by name.
    Bca,
    /// BCa where it works, else expanded with a warning.
    Auto,
}

/// An interval with its point estimate. Bounds are always finite.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidenceInterval {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// Nominal coverage.
    pub confidence_level: Level,
    /// Requested number of resamples.
    pub resamples: usize,
    /// The statistic of the data; 0 if there is none.
    pub point_estimate: f64,
    /// The bounds say nothing about uncertainty: too few or equal values.
    pub degenerate: bool,
    /// The method that really made the bounds.
    pub method: Method,
    /// The tasks that the interval applies to; absent for values without scenarios.
    pub scope: Option<Scope>,
    /// Dropped NaN and infinite values.
    pub non_finite: usize,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Lower and upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

/// Tail share of the expanded percentile interval with `units` resampled units; none below 2.
///
/// Resampling `u` units understates the spread by sqrt((u-1)/u) and uses normal instead of t tails; this share undoes both.
pub fn expanded_tail(units: usize, confidence_level: Level) -> Option<f64> {
    if units < 2 {
        return None;
    }
    let units = units as f64;
    let widening = libm::sqrt(units / (units - 1.0));
    Some(normal_cdf(-widening * confidence_level.t(units - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_outside_the_open_unit_interval_are_rejected() {
        for value in [0.0, 1.0, -0.5, 2.0, f64::NAN] {
            assert!(Level::new(value).is_err(), "{value}");
        }
    }

    #[test]
    fn expanded_tails_approach_the_nominal_tail_with_many_units() {
        let tail = expanded_tail(100_000, Level::CONFIDENCE_95).unwrap();
        assert!((tail - 0.025).abs() < 1e-5);
        assert_eq!(expanded_tail(1, Level::CONFIDENCE_95), None);
    }
}
