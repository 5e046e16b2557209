//! The plain summary of one group of values, and what to show when there are too few for an interval.

use serde::Serialize;

use crate::sample::{Sample, Screened, finite};
use crate::warning::{Warning, Warnings};

/// Summary of one group. All zeros when it is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// Finite values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Middle value.
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Distance between the quartiles.
    pub iqr: f64,
    /// The quartiles themselves.
    #[serde(skip)]
    pub quartiles: [f64; 2],
    /// Standard deviation divided by the mean.
    pub cv: f64,
    /// Standard deviation with n - 1.
    pub stddev: f64,
    /// Dropped NaN and infinite values.
    pub non_finite: usize,
    /// False when the mean is 0 and `cv` is a placeholder.
    pub cv_defined: bool,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Range of a small group, with the confidence it truly has for the median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MedianRange {
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Probability that the range holds the true median: 75 % for 3 values.
    pub level: f64,
}

/// Values far from the rest, by Tukey's rule. They are shown, never removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outliers {
    /// Values below this are flagged.
    pub low_fence: f64,
    /// Values above this are flagged.
    pub high_fence: f64,
    /// Positions of the flagged values in the input.
    pub positions: Vec<usize>,
}

/// Summarises a group of values.
pub fn describe(values: &[f64]) -> Description {
    let screened = Screened::new(values);
    let mut warnings = Warnings::default();
    warnings.add_if(screened.non_finite > 0, Warning::NonFiniteDropped);
    let non_finite = screened.non_finite;
    match screened.sample {
        Some(sample) => Description {
            non_finite,
            warnings,
            ..describe_sample(&sample)
        },
        None => Description {
            non_finite,
            warnings,
            ..Description::default()
        },
    }
}

/// Minimum to maximum with its true level, 1 - 2^(1-n); none for an empty group.
///
/// Below six values no distribution-free 95 % interval of the median exists, and this is shown instead.
pub fn median_range(values: &[f64]) -> Option<MedianRange> {
    let sample = Sample::new(values)?;
    let level = 1.0 - libm::exp2(1.0 - sample.count() as f64);
    Some(MedianRange {
        min: sample.min(),
        max: sample.max(),
        level,
    })
}

/// Flags values more than 1.5 quartile distances outside of the quartiles; none for an empty group.
pub fn tukey_outliers(values: &[f64]) -> Option<Outliers> {
    let sample = Sample::new(values)?;
    let reach = 1.5 * quartile_distance(&sample);
    let low_fence = finite(sample.quantile(0.25) - reach);
    let high_fence = finite(sample.quantile(0.75) + reach);
    let outside = |value: &f64| value.is_finite() && (*value < low_fence || *value > high_fence);
    let positions = (0..values.len())
        .filter(|&position| outside(&values[position]))
        .collect();
    Some(Outliers {
        low_fence,
        high_fence,
        positions,
    })
}

fn describe_sample(sample: &Sample) -> Description {
    let mean = sample.mean();
    let stddev = sample.stddev();
    let cv_defined = mean != 0.0;
    Description {
        count: sample.count(),
        mean,
        median: sample.median(),
        p90: sample.quantile(0.90),
        p95: sample.quantile(0.95),
        min: sample.min(),
        max: sample.max(),
        iqr: quartile_distance(sample),
        quartiles: [sample.quantile(0.25), sample.quantile(0.75)],
        cv: if cv_defined {
            finite(stddev / mean)
        } else {
            0.0
        },
        stddev,
        cv_defined,
        ..Description::default()
    }
}

fn quartile_distance(sample: &Sample) -> f64 {
    finite(sample.quantile(0.75) - sample.quantile(0.25))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_zero_has_no_coefficient_of_variation() {
        let description = describe(&[-1.0, 1.0]);
        assert!(!description.cv_defined);
        assert_eq!(description.cv, 0.0);
    }

    #[test]
    fn three_values_hold_the_median_three_times_in_four() {
        assert_eq!(
            median_range(&[5.0, 9.0, 7.0]),
            Some(MedianRange {
                min: 5.0,
                max: 9.0,
                level: 0.75
            })
        );
        assert_eq!(median_range(&[]), None);
    }

    #[test]
    fn outliers_are_flagged_by_their_position() {
        let outliers = tukey_outliers(&[10.0, 11.0, 99.0, 12.0, f64::NAN, 10.5]).unwrap();
        assert_eq!(outliers.positions, [2]);
    }
}
