//! Runs that were cut off, and what success costs when failures are paid for too.

use serde::Serialize;

use crate::error::{StatsError, same_length};
use crate::sample::{Sample, finite};
use crate::warning::{Warning, Warnings};

/// The middle of times of which some are only lower limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CensoredMedian {
    /// Absent when more than half of the runs were cut off: it lies beyond the limit.
    pub median: Option<f64>,
    /// Runs that were cut off.
    pub censored: usize,
    /// Mean of the recorded times; absent when a run was cut off before another one ended.
    pub restricted_mean: Option<f64>,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Cost over all runs, related to successes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CostPerSuccess {
    /// Cost of all runs divided by the number of successes; absent without success.
    pub value: Option<f64>,
    /// Mean cost of all runs.
    pub mean_cost: Option<f64>,
    /// Share of successes.
    pub success_rate: Option<f64>,
    /// Mean cost of the successful runs; never the headline.
    pub mean_cost_of_successes: Option<f64>,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Median time when some runs were cut off (Kaplan and Meier). `completed[i]` is false if run `i` was cut off.
pub fn censored_median(times: &[f64], completed: &[bool]) -> Result<CensoredMedian, StatsError> {
    let runs = Runs::new(times, completed)?;
    let mut warnings = Warnings::default();
    warnings.add_if(runs.censored > 0, Warning::Censored);
    warnings.add_if(runs.timed.len() < times.len(), Warning::NonFiniteDropped);
    Ok(CensoredMedian {
        median: runs.percentile(0.5),
        censored: runs.censored,
        restricted_mean: runs.restricted_mean(),
        warnings,
    })
}

/// A percentile (`share` 0.95 for p95) of times of which some are cut off; absent when more than `1 - share` are.
pub fn censored_percentile(
    times: &[f64],
    completed: &[bool],
    share: f64,
) -> Result<Option<f64>, StatsError> {
    Ok(Runs::new(times, completed)?.percentile(share))
}

/// The cost of one success: failures are paid for as well. Runs with a cost that is not finite are left out.
pub fn cost_per_success(costs: &[f64], success: &[bool]) -> Result<CostPerSuccess, StatsError> {
    same_length(costs.len(), success.len())?;
    let known: Vec<(f64, bool)> = costs
        .iter()
        .copied()
        .zip(success.iter().copied())
        .filter(|run| run.0.is_finite())
        .collect();
    let all: Vec<f64> = known.iter().map(|run| run.0).collect();
    let successful: Vec<f64> = known.iter().filter(|run| run.1).map(|run| run.0).collect();
    let mean_cost = Sample::new(&all).map(|sample| sample.mean());
    let success_rate = (!all.is_empty()).then(|| successful.len() as f64 / all.len() as f64);
    let mut warnings = Warnings::default();
    warnings.add_if(successful.is_empty(), Warning::NoSuccesses);
    warnings.add_if(known.len() < costs.len(), Warning::NonFiniteDropped);
    let per_success = |mean: f64| finite(mean * (all.len() as f64 / successful.len() as f64));
    Ok(CostPerSuccess {
        value: mean_cost
            .filter(|_| !successful.is_empty())
            .map(per_success),
        mean_cost,
        success_rate,
        mean_cost_of_successes: Sample::new(&successful).map(|sample| sample.mean()),
        warnings,
    })
}

/// Runs in order of time; of equal times the completed ones come first.
struct Runs {
    timed: Vec<(f64, bool)>,
    censored: usize,
}

impl Runs {
    fn new(times: &[f64], completed: &[bool]) -> Result<Self, StatsError> {
        same_length(times.len(), completed.len())?;
        let pairs = times.iter().copied().zip(completed.iter().copied());
        let mut timed: Vec<(f64, bool)> = pairs.filter(|run| run.0.is_finite()).collect();
        timed.sort_by(|left, right| left.0.total_cmp(&right.0).then(right.1.cmp(&left.1)));
        let censored = timed.iter().filter(|run| !run.1).count();
        Ok(Self { timed, censored })
    }

    fn times(&self) -> Option<Sample> {
        let times: Vec<f64> = self.timed.iter().map(|run| run.0).collect();
        Sample::new(&times)
    }

    fn percentile(&self, share: f64) -> Option<f64> {
        if self.censored == 0 {
            return self.times().map(|times| times.quantile(share));
        }
        let allowed = (1.0 - share) * self.timed.len() as f64;
        if self.censored as f64 > allowed + 1e-9 {
            return None;
        }
        self.first_with_survival_up_to(1.0 - share)
    }

    /// The smallest time at which at most this share is still running, by the product-limit estimate.
    fn first_with_survival_up_to(&self, share: f64) -> Option<f64> {
        let mut surviving = 1.0;
        for (position, (time, is_completed)) in self.timed.iter().enumerate() {
            if *is_completed {
                let at_risk = (self.timed.len() - position) as f64;
                surviving *= (at_risk - 1.0) / at_risk;
            }
            // The slack keeps a product like 2/3 * 1/2 from missing its third by a rounding error.
            if surviving <= share + 1e-12 {
                return Some(*time);
            }
        }
        None
    }

    fn restricted_mean(&self) -> Option<f64> {
        let last_completed = self
            .timed
            .iter()
            .filter(|run| run.1)
            .map(|run| run.0)
            .fold(f64::NEG_INFINITY, f64::max);
        let is_limit = self
            .timed
            .iter()
            .filter(|run| !run.1)
            .all(|run| run.0 >= last_completed);
        self.times().filter(|_| is_limit).map(|times| times.mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_cut_off_has_no_median() {
        let answer = censored_median(&[10.0, 120.0, 120.0], &[true, false, false]).unwrap();
        assert_eq!(answer.median, None);
        assert!(answer.warnings.contains(Warning::Censored));
    }

    #[test]
    fn without_cut_off_runs_the_median_is_the_ordinary_one() {
        let answer = censored_median(&[1.0, 2.0, 4.0, 9.0], &[true; 4]).unwrap();
        assert_eq!(answer.median, Some(3.0));
        assert!(!answer.warnings.contains(Warning::Censored));
    }

    #[test]
    fn a_run_cut_off_early_forbids_the_restricted_mean() {
        let answer = censored_median(&[1.0, 2.0, 30.0, 40.0], &[true, false, true, true]).unwrap();
        assert_eq!(answer.restricted_mean, None);
        // Survival is 3/4 after 1, then 3/8 after 30: the run at 2 no longer counts.
        assert_eq!(answer.median, Some(30.0));
    }

    #[test]
    fn a_percentile_beyond_the_limit_is_absent() {
        let times = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 99.0, 99.0];
        let completed = [true, true, true, true, true, true, true, true, false, false];
        assert_eq!(censored_percentile(&times, &completed, 0.95), Ok(None));
        assert_eq!(censored_percentile(&times, &completed, 0.8), Ok(Some(8.0)));
    }

    #[test]
    fn nothing_is_free_when_nothing_succeeds() {
        let answer = cost_per_success(&[1.0, 2.0], &[false, false]).unwrap();
        assert_eq!((answer.value, answer.mean_cost), (None, Some(1.5)));
        assert!(answer.warnings.contains(Warning::NoSuccesses));
    }
}
