//! Student's t over one value per task, for values that may be skewed or hardly vary.
//!
//! The interval reaches further on the side to which the values are skewed, and never trusts a spread below a floor that
//! the caller derives from chance inside the tasks. Success differences, success rates and rare counts all use it.

use libm::sqrt;

use crate::interval::Bounds;
use crate::sample::{finite, sum};
use crate::special::{student_t_cdf, student_t_quantile};

/// Differences up to this size are rounding, not evidence.
pub(crate) const ROUNDING: f64 = 1e-12;
/// From this many tasks on, the most favourable one may be counted as the next one.
const FEWEST_FOR_CAP: usize = 5;

/// Values of at least two tasks with their mean, variance and skew.
#[derive(Clone, Debug)]
pub(crate) struct TaskT {
    /// Ascending.
    values: Vec<f64>,
    floor: f64,
    pub(crate) mean: f64,
    /// Variance of the values, not below the floor.
    pub(crate) variance: f64,
    /// Change of the variance per unit of the mean; 0 for up to three tasks.
    pub(crate) slope: f64,
}

/// An interval and whether its most favourable task was counted only as much as the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CappedBounds {
    pub(crate) bounds: Bounds,
    pub(crate) capped: bool,
}

impl TaskT {
    /// None for fewer than two values.
    pub(crate) fn new(mut values: Vec<f64>, floor: f64) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        // Sorted before adding, so that the order of the tasks leaves no trace.
        values.sort_unstable_by(f64::total_cmp);
        let tasks = values.len() as f64;
        let mean = sum(values.iter().copied()) / tasks;
        let power = |exponent: i32| sum(values.iter().map(|value| (value - mean).powi(exponent)));
        let squares = power(2);
        let slope = if values.len() <= 3 || squares <= ROUNDING {
            0.0
        } else {
            (tasks - 3.0) / tasks * power(3) / squares
        };
        Some(Self {
            variance: (squares / (tasks - 1.0)).max(floor),
            values,
            floor,
            mean,
            slope,
        })
    }

    pub(crate) fn df(&self) -> f64 {
        self.tasks() - 1.0
    }

    /// The interval with error rate `alpha`, without a cap.
    pub(crate) fn bounds(&self, alpha: f64) -> Bounds {
        let t = student_t_quantile(alpha / 2.0, self.df());
        let c = t * t / self.tasks();
        let reach = |slope: f64| {
            let linear = c * slope;
            (linear + sqrt(linear * linear + 4.0 * c * self.variance)) / 2.0
        };
        Bounds {
            lower: finite(self.mean - reach((-self.slope).max(0.0))),
            upper: finite(self.mean + reach(self.slope.max(0.0))),
        }
    }

    /// The interval with error rate `alpha`. A task that favours one side even more than the others must not hide a
    /// difference, so the end near zero may come from values whose largest one counts only as much as the next.
    pub(crate) fn capped_bounds(&self, alpha: f64) -> CappedBounds {
        let plain = self.bounds(alpha);
        let mut answer = CappedBounds {
            bounds: plain,
            capped: false,
        };
        if self.mean > 0.0 {
            let capped = self.with_cap().map(|capped| capped.bounds(alpha).lower);
            if let Some(lower) =
                capped.filter(|&lower| lower > ROUNDING && lower > plain.lower + ROUNDING)
            {
                answer.bounds.lower = lower;
                answer.capped = true;
            }
        } else if self.mean < 0.0 {
            let mirrored = self.mirrored().capped_bounds(alpha);
            if mirrored.capped {
                answer.bounds.upper = -mirrored.bounds.lower;
                answer.capped = true;
            }
        }
        answer
    }

    /// The error rate at which the capped interval touches zero.
    pub(crate) fn p_value(&self) -> f64 {
        if self.mean < 0.0 {
            return self.mirrored().p_value();
        }
        let capped = self.with_cap().map_or(0.0, |capped| capped.distance());
        (2.0 * student_t_cdf(-self.distance().max(capped), self.df())).min(1.0)
    }

    /// Distance of the mean above zero in standard errors at zero; 0 for a mean at or below it.
    fn distance(&self) -> f64 {
        if self.mean <= 0.0 {
            return 0.0;
        }
        let at_zero = self.variance + (-self.slope).max(0.0) * self.mean;
        self.mean * sqrt(self.tasks() / at_zero)
    }

    /// The same values with the largest replaced by the second largest; none for too few tasks.
    fn with_cap(&self) -> Option<Self> {
        let last = self.values.len() - 1;
        if self.values.len() < FEWEST_FOR_CAP {
            return None;
        }
        let mut values = self.values.clone();
        values[last] = values[last - 1];
        Self::new(values, self.floor)
    }

    fn mirrored(&self) -> Self {
        Self {
            values: self.values.iter().rev().map(|value| -value).collect(),
            floor: self.floor,
            mean: -self.mean,
            variance: self.variance,
            slope: -self.slope,
        }
    }

    fn tasks(&self) -> f64 {
        self.values.len() as f64
    }
}

/// The share of tasks of one kind that `tasks` tasks may have missed altogether, at error rate `alpha`.
pub(crate) fn unseen_share(tasks: usize, alpha: f64) -> f64 {
    -libm::expm1(libm::log(alpha) / tasks as f64)
}
