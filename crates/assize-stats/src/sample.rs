//! A checked set of measurements and the sums over it. Everything else in this crate starts from a `Sample`,
//! so nothing further down has to think about NaN, infinity, emptiness or the order of runs.

use libm::sqrt;

/// At least one measurement, all finite, in ascending order.
///
/// Sorting once makes quantiles a lookup and every sum independent of the order of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    sorted: Vec<f64>,
}

/// Measurements after the non-finite ones were taken out.
#[derive(Clone, Debug, PartialEq)]
pub struct Screened {
    /// Absent when nothing finite was left.
    pub sample: Option<Sample>,
    /// The number of NaN or infinite values that were dropped.
    pub non_finite: usize,
}

impl Screened {
    /// Drops and counts what is not finite.
    pub fn new(values: &[f64]) -> Self {
        Self::from_parts(&[values])
    }

    /// The same for a group whose values are stored in several pieces.
    pub(crate) fn from_parts(parts: &[&[f64]]) -> Self {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut sorted = Vec::with_capacity(total);
        for part in parts {
            let finite = part.iter().filter(|value| value.is_finite());
            // Adding zero turns -0 into 0, so that equal values are equal bytes.
            sorted.extend(finite.map(|value| value + 0.0));
        }
        // Parts are often sorted: a sort that finds them only merges.
        sorted.sort_by(f64::total_cmp);
        let non_finite = total - sorted.len();
        let sample = (!sorted.is_empty()).then_some(Sample { sorted });
        Self { sample, non_finite }
    }

    pub(crate) fn len(&self) -> usize {
        self.sample.as_ref().map_or(0, Sample::count)
    }
}

impl Sample {
    /// Checks the values; none when nothing finite is among them.
    pub fn new(values: &[f64]) -> Option<Self> {
        Screened::new(values).sample
    }

    /// The values in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.sorted
    }

    /// Number of values, at least 1.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Smallest value.
    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    /// Largest value.
    pub fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// True when all values are the same.
    pub fn is_constant(&self) -> bool {
        self.min() == self.max()
    }

    /// Quantile by linear interpolation at index `share * (n - 1)` (type 7).
    pub fn quantile(&self, share: f64) -> f64 {
        quantile_of_sorted(&self.sorted, share)
    }

    /// Middle value.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Arithmetic mean; the sum cannot overflow.
    pub fn mean(&self) -> f64 {
        if self.is_constant() {
            return self.min();
        }
        let scale = self.scale();
        (scale.unit_mean(&self.sorted) * scale.unit).clamp(self.min(), self.max())
    }

    /// Standard deviation with n - 1; 0 for a single value.
    pub fn stddev(&self) -> f64 {
        if self.count() < 2 || self.is_constant() {
            return 0.0;
        }
        let scale = self.scale();
        let mean = scale.unit_mean(&self.sorted);
        let squares = sum(self.sorted.iter().map(|value| {
            let deviation = value * scale.inverse - mean;
            deviation * deviation
        }));
        finite(sqrt(squares / (self.count() - 1) as f64) * scale.unit)
    }

    /// Standard error of the mean.
    pub(crate) fn standard_error(&self) -> f64 {
        self.stddev() / sqrt(self.count() as f64)
    }

    /// The logarithms of the values; none unless all are above zero.
    pub(crate) fn logs(&self) -> Option<Sample> {
        let positive = self.min() > 0.0;
        positive.then(|| Sample {
            sorted: self.sorted.iter().map(|&value| libm::log(value)).collect(),
        })
    }

    /// The values times a factor above zero.
    pub(crate) fn scaled(&self, factor: f64) -> Sample {
        Sample {
            sorted: self.sorted.iter().map(|value| value * factor).collect(),
        }
    }

    pub(crate) fn scale(&self) -> Scale {
        Scale::of(self.min().abs().max(self.max().abs()))
    }
}

/// A power of two near the largest magnitude. Dividing by it is exact and keeps squares in range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) unit: f64,
    pub(crate) inverse: f64,
}

impl Scale {
    pub(crate) fn of(largest: f64) -> Self {
        // Beyond 2^±1000 the inverse would leave the normal range; what remains is harmless.
        let exponent = if largest > 0.0 {
            libm::ilogb(largest).clamp(-1000, 1000)
        } else {
            0
        };
        Self {
            unit: libm::scalbn(1.0, exponent),
            inverse: libm::scalbn(1.0, -exponent),
        }
    }

    fn unit_mean(self, values: &[f64]) -> f64 {
        sum(values.iter().map(|value| value * self.inverse)) / values.len() as f64
    }
}

/// Quantile of ascending values, which must not be empty.
pub(crate) fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let rank = Rank::new(share, sorted.len());
    between(sorted[rank.below], sorted[rank.above()], rank.weight)
}

/// The position of a quantile between two order statistics, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rank {
    pub(crate) below: usize,
    /// Weight of the next order statistic; 0 when it is not needed.
    pub(crate) weight: f64,
}

impl Rank {
    pub(crate) fn new(share: f64, count: usize) -> Self {
        let index = share * (count - 1) as f64;
        let below = (index as usize).min(count - 1);
        let weight = if below + 1 < count {
            index - below as f64
        } else {
            0.0
        };
        Self { below, weight }
    }

    pub(crate) fn above(self) -> usize {
        if self.weight > 0.0 {
            self.below + 1
        } else {
            self.below
        }
    }
}

/// Linear interpolation that never leaves `[low, high]` and never overflows.
pub(crate) fn between(low: f64, high: f64, weight: f64) -> f64 {
    // Values of one sign keep all their digits this way; far apart with opposite signs the distance could overflow.
    let distance = high - low;
    let point = if distance.is_finite() {
        low + weight * distance
    } else {
        low * (1.0 - weight) + high * weight
    };
    point.clamp(low, high)
}

/// Sum with Neumaier's correction: the error does not grow with the number of terms.
pub(crate) fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut total = 0.0_f64;
    let mut lost = 0.0;
    for term in terms {
        let next = total + term;
        lost += if total.abs() >= term.abs() {
            (total - next) + term
        } else {
            (term - next) + total
        };
        total = next;
    }
    total + lost
}

/// Keeps an answer finite: what overflows becomes the largest number.
pub(crate) fn finite(value: f64) -> f64 {
    value.clamp(-f64::MAX, f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64], mean: f64, stddev: f64) {
        let sample = Sample::new(values).unwrap();
        assert!(
            (sample.mean() - mean).abs() <= 1e-14 * mean.abs(),
            "mean {}",
            sample.mean()
        );
        assert!(
            (sample.stddev() - stddev).abs() <= 1e-12 * stddev,
            "stddev {}",
            sample.stddev()
        );
    }

    #[test]
    fn huge_and_tiny_values_do_not_overflow_or_vanish() {
        check(&[1e300, 2e300, 3e300], 2e300, 1e300);
        check(&[1e-300, 2e-300, 3e-300], 2e-300, 1e-300);
        check(&[1e-320, 1e-320], 1e-320, 0.0);
        check(&[f64::MAX, f64::MAX], f64::MAX, 0.0);
    }

    #[test]
    fn a_small_spread_on_a_large_level_is_kept() {
        check(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0], 1e9 + 2.0, 1.0);
    }

    #[test]
    fn non_finite_values_are_dropped_and_counted() {
        let screened = Screened::new(&[f64::NAN, 2.0, f64::INFINITY, 1.0, f64::NEG_INFINITY]);
        assert_eq!(screened.non_finite, 3);
        assert_eq!(screened.sample.unwrap().values(), [1.0, 2.0]);
        assert_eq!(Sample::new(&[f64::NAN]), None);
    }

    #[test]
    fn quantiles_of_large_close_values_keep_their_digits() {
        let sample = Sample::new(&[1e15, 1e15 + 1.0, 1e15 + 2.0, 1e15 + 3.0]).unwrap();
        assert_eq!(sample.quantile(0.25), 1e15 + 0.75);
        let wide = Sample::new(&[-f64::MAX, f64::MAX]).unwrap();
        assert_eq!(wide.median(), 0.0);
    }

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        let sample = Sample::new(&[10.0, 20.0, 30.0, 40.0]).unwrap();
        assert_eq!(sample.quantile(0.0), 10.0);
        assert_eq!(sample.median(), 25.0);
        assert_eq!(sample.quantile(0.9), 37.0);
        assert_eq!(sample.quantile(1.0), 40.0);
    }
}
