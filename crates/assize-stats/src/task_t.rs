//! Student's t over one value per task, for values that may be skewed or hardly vary.
//!
//! The interval reaches further on the side to which the values are skewed, and never trusts a spread below a floor that
//! the caller derives from chance inside the tasks. Success differences, success rates and rare counts all use it.

use libm::sqrt;

use crate::interval::{Bounds, Level};
use crate::sample::{finite, sum};
use crate::special::{
    mean_over_spreads, normal_cdf, normal_quantile, student_t_cdf, student_t_quantile,
};

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
        let reach = |slope: f64| reach(c, slope, self.variance);
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

/// Probability that the interval of a true difference `delta` excludes zero: differences per task are taken as normal with `variance`,
/// and the spread that is trusted is not below `floor`.
///
/// Integrates over the estimated spread and over the skew that few normal values show by chance, which makes the interval
/// reach further; the cap is left out. Simulated, it is right to 3 points.
pub(crate) fn power(delta: f64, [variance, floor]: [f64; 2], tasks: u64, alpha: Level) -> f64 {
    const SKEWS: u32 = 16;
    let (number, df) = (tasks as f64, tasks.saturating_sub(1) as f64);
    let critical = student_t_quantile(1.0 - alpha.value() / 2.0, df);
    let per_task = critical * critical / number;
    let error = sqrt(variance / number);
    let slopes: Vec<f64> = (0..SKEWS)
        .map(|step| normal_quantile((f64::from(step) + 0.5) / f64::from(SKEWS)))
        .map(|quantile| (quantile * slope_by_chance(number)).max(0.0))
        .collect();
    mean_over_spreads(df, |spread| {
        let seen = (spread * spread * variance).max(floor);
        let beyond = |slope: &f64| {
            let reach = reach(per_task, slope * spread * sqrt(variance), seen);
            normal_cdf((delta - reach) / error)
        };
        slopes.iter().map(beyond).sum::<f64>() / f64::from(SKEWS)
    })
}

/// The distance from the mean to an end of its interval; `c` is the squared critical value per task.
fn reach(c: f64, slope: f64, variance: f64) -> f64 {
    let linear = c * slope;
    (linear + sqrt(linear * linear + 4.0 * c * variance)) / 2.0
}

/// Standard deviation of the slope of normal values, in standard deviations of the values.
fn slope_by_chance(tasks: f64) -> f64 {
    if tasks <= 3.0 {
        return 0.0;
    }
    let skewness2 = 6.0 * (tasks - 2.0) / ((tasks + 1.0) * (tasks + 3.0));
    (tasks - 3.0) / tasks * sqrt(skewness2 * (tasks - 1.0) / tasks)
}

/// The share of tasks of one kind that `tasks` tasks may have missed altogether, at error rate `alpha`.
pub(crate) fn unseen_share(tasks: usize, alpha: f64) -> f64 {
    -libm::expm1(libm::log(alpha) / tasks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Stream, unit};

    /// The share of simulated experiments whose interval excludes zero.
    fn simulated(rates: [f64; 2], tasks: u64, runs: u64, alpha: f64) -> f64 {
        const EXPERIMENTS: u64 = 4000;
        let mut random = Stream::for_purpose(7, "power").generator(0);
        let mut rate_of = |rate: f64| {
            let passed = (0..runs).filter(|_| unit(&mut random) < rate).count();
            passed as f64 / runs as f64
        };
        let mut is_shown = || {
            let differences = (0..tasks).map(|_| rate_of(rates[0]) - rate_of(rates[1]));
            let chance: f64 = rates.iter().map(|rate| rate * (1.0 - rate)).sum();
            let fit = TaskT::new(differences.collect(), chance / runs as f64 / 2.0).unwrap();
            fit.p_value() <= alpha
        };
        let shown = (0..EXPERIMENTS).filter(|_| is_shown()).count();
        shown as f64 / EXPERIMENTS as f64
    }

    #[test]
    fn power_is_that_of_simulated_experiments() {
        for (rates, tasks, runs, alpha) in [
            ([0.7, 0.43], 8, 10, 0.025),
            ([0.7, 0.97], 8, 10, 0.025),
            ([0.8, 0.6], 20, 5, 0.05),
            ([0.5, 0.2], 10, 3, 0.05),
            ([0.9, 0.7], 30, 3, 0.05),
            ([0.5, 0.3], 50, 2, 0.025),
            ([0.9, 0.5], 5, 10, 0.05),
        ] {
            let chance: f64 = rates.iter().map(|rate| rate * (1.0 - rate)).sum();
            let variance = chance / runs as f64;
            let level = Level::new(alpha).unwrap();
            let delta = rates[0] - rates[1];
            let promised = power(delta.abs(), [variance, variance / 2.0], tasks, level);
            let shown = simulated(rates, tasks, runs, alpha);
            assert!(
                (promised - shown).abs() < 0.04,
                "{rates:?} {tasks} × {runs}: {promised} and {shown}"
            );
        }
    }
}
