//! Success rates over scenarios: repeated trials of one scenario are not independent, and these intervals know it.

use libm::{exp, log};
use serde::Serialize;

use crate::error::{StatsError, same_length};
use crate::interval::{Bounds, Level};
use crate::proportion::{
    ProportionInterval, ProportionMethod, Tally, difference, proportion_ci, wilson,
};
use crate::sample::Sample;

/// The smallest p-value found by inverting an interval.
const SMALLEST_P: f64 = 1e-12;

/// A rate over scenarios with its interval for new scenarios like these.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProportion {
    /// Successes divided by trials.
    pub point_estimate: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// How many independent trials carry the same information.
    pub n_eff: f64,
    /// Degrees of freedom; absent for one scenario.
    pub df: Option<f64>,
}

/// Rate A minus rate B over scenarios that both modes ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessDifference {
    /// The difference of the rates, between -1 and 1.
    pub point_estimate: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// Correlation of the scenario rates, shrunk for few scenarios; never negative.
    pub correlation: f64,
    /// Degrees of freedom; absent for one scenario.
    pub df: Option<f64>,
    /// The error rate at which the interval touches 0.
    pub p_value: f64,
}

/// Interval of a success rate over scenarios; none when no scenario has a trial.
pub fn cluster_proportion_ci(scenarios: &[Tally], level: Level) -> Option<ClusterProportion> {
    Rate::new(scenarios)?.interval(level)
}

/// Interval of the difference of two success rates; scenario `s` of `a` belongs to `s` of `b`. Scenarios without a
/// trial on one side are left out; none when nothing remains.
pub fn success_difference_ci(
    a: &[Tally],
    b: &[Tally],
    level: Level,
) -> Result<Option<SuccessDifference>, StatsError> {
    same_length(a.len(), b.len())?;
    let both = a
        .iter()
        .zip(b)
        .filter(|(a, b)| a.trials() > 0 && b.trials() > 0);
    let (a, b): (Vec<Tally>, Vec<Tally>) = both.unzip();
    Ok(Rates::new(&a, &b).map(|rates| rates.answer(level)))
}

/// A rate and what its interval needs at any level.
struct Rate {
    total: Tally,
    n_eff: f64,
    scenarios: usize,
}

impl Rate {
    fn new(scenarios: &[Tally]) -> Option<Self> {
        let total = Tally::total(scenarios);
        let rate = total.rate()?;
        let tried = scenarios.iter().filter(|tally| tally.trials() > 0);
        let count = tried.clone().count();
        let trials = total.trials() as f64;
        let mut squares: Vec<f64> = tried
            .map(|tally| tally.successes() as f64 - tally.trials() as f64 * rate)
            .collect();
        squares
            .iter_mut()
            .for_each(|deviation| *deviation *= *deviation);
        squares.sort_unstable_by(f64::total_cmp);
        let clusters = count as f64;
        let variance =
            clusters / (clusters - 1.0) * squares.iter().sum::<f64>() / (trials * trials);
        let n_eff = if rate == 0.0 || rate == 1.0 {
            clusters
        } else if count < 2 || variance <= 1e-24 {
            trials
        } else {
            (rate * (1.0 - rate) / variance).clamp(1.0, trials)
        };
        Some(Self {
            total,
            n_eff,
            scenarios: count,
        })
    }

    fn interval(&self, level: Level) -> Option<ClusterProportion> {
        if self.scenarios == 1 {
            let single = proportion_ci(self.total, ProportionMethod::Wilson, level)?;
            let ProportionInterval {
                point_estimate,
                lower,
                upper,
                ..
            } = single;
            return Some(ClusterProportion {
                point_estimate,
                lower,
                upper,
                n_eff: self.total.trials() as f64,
                df: None,
            });
        }
        let df = (self.scenarios - 1) as f64;
        let point_estimate = self.total.rate()?;
        let Bounds { lower, upper } = wilson(point_estimate, self.n_eff, level.t(df));
        Some(ClusterProportion {
            point_estimate,
            lower,
            upper,
            n_eff: self.n_eff,
            df: Some(df),
        })
    }

    fn as_interval(&self, level: Level) -> Option<ProportionInterval> {
        let ClusterProportion {
            point_estimate,
            lower,
            upper,
            ..
        } = self.interval(level)?;
        Some(ProportionInterval {
            point_estimate,
            lower,
            upper,
            confidence_level: level,
        })
    }
}

/// The rates of two modes on the same scenarios.
struct Rates {
    a: Rate,
    b: Rate,
    correlation: f64,
}

impl Rates {
    fn new(a: &[Tally], b: &[Tally]) -> Option<Self> {
        Some(Self {
            a: Rate::new(a)?,
            b: Rate::new(b)?,
            correlation: shrunk_correlation(a, b),
        })
    }

    fn answer(&self, level: Level) -> SuccessDifference {
        let ProportionInterval {
            point_estimate,
            lower,
            upper,
            ..
        } = self.difference(level);
        SuccessDifference {
            point_estimate,
            lower,
            upper,
            correlation: self.correlation,
            df: (self.a.scenarios > 1).then(|| (self.a.scenarios - 1) as f64),
            p_value: self.p_value(point_estimate),
        }
    }

    fn difference(&self, level: Level) -> ProportionInterval {
        let a = self
            .a
            .as_interval(level)
            .expect("a rate is only built from at least one trial");
        let b = self
            .b
            .as_interval(level)
            .expect("a rate is only built from at least one trial");
        difference(&a, &b, self.correlation)
    }

    /// Bisection on the logarithm of the error rate, since small p-values need relative accuracy.
    fn p_value(&self, point_estimate: f64) -> f64 {
        if point_estimate == 0.0 {
            return 1.0;
        }
        let excludes_zero = |ln_alpha: f64| {
            let Ok(level) = Level::new(1.0 - exp(ln_alpha)) else {
                return false;
            };
            let interval = self.difference(level);
            interval.lower > 0.0 || interval.upper < 0.0
        };
        let (mut low, mut high) = (log(SMALLEST_P), 0.0);
        if excludes_zero(low) {
            return SMALLEST_P;
        }
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if excludes_zero(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        exp((low + high) / 2.0)
    }
}

/// Pearson's correlation of the scenario rates, not below 0, times (G-2)/(G+1).
fn shrunk_correlation(a: &[Tally], b: &[Tally]) -> f64 {
    let scenarios = a.len() as f64;
    if a.len() < 3 {
        return 0.0;
    }
    let rates = |tallies: &[Tally]| -> Vec<f64> {
        tallies.iter().filter_map(|tally| tally.rate()).collect()
    };
    let (a, b) = (rates(a), rates(b));
    let (Some(sample_a), Some(sample_b)) = (Sample::new(&a), Sample::new(&b)) else {
        return 0.0;
    };
    if sample_a.is_constant() || sample_b.is_constant() {
        return 0.0;
    }
    let (mean_a, mean_b) = (sample_a.mean(), sample_b.mean());
    // Sorted before adding, so that the order of the scenarios leaves no trace.
    let products: Vec<f64> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| (a - mean_a) * (b - mean_b))
        .collect();
    let covariance = Sample::new(&products).map_or(0.0, |products| products.mean()) * scenarios
        / (scenarios - 1.0);
    let pearson = covariance / (sample_a.stddev() * sample_b.stddev());
    pearson.clamp(0.0, 1.0) * (scenarios - 2.0) / (scenarios + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies(successes: &[u64], trials: u64) -> Vec<Tally> {
        successes
            .iter()
            .map(|&successes| Tally::new(successes, trials).unwrap())
            .collect()
    }

    #[test]
    fn the_p_value_is_the_level_at_which_the_interval_touches_zero() {
        let (a, b) = (
            tallies(&[5, 4, 5, 3, 5, 4], 5),
            tallies(&[4, 3, 5, 1, 4, 2], 5),
        );
        let answer = success_difference_ci(&a, &b, Level::CONFIDENCE_95)
            .unwrap()
            .unwrap();
        let level = Level::new(1.0 - answer.p_value).unwrap();
        let touching = success_difference_ci(&a, &b, level).unwrap().unwrap();
        assert!(touching.lower.abs() < 1e-9, "{}", touching.lower);
        assert!(answer.p_value < 0.05);
    }

    #[test]
    fn scenarios_that_agree_count_as_independent_trials() {
        let rate = cluster_proportion_ci(&tallies(&[2, 2, 2, 2], 4), Level::CONFIDENCE_95).unwrap();
        assert_eq!(rate.n_eff, 16.0);
    }

    #[test]
    fn one_scenario_has_the_plain_interval() {
        let one = Tally::new(7, 10).unwrap();
        let cluster = cluster_proportion_ci(&[one], Level::CONFIDENCE_95).unwrap();
        let plain = proportion_ci(one, ProportionMethod::Wilson, Level::CONFIDENCE_95).unwrap();
        assert_eq!((cluster.lower, cluster.upper), (plain.lower, plain.upper));
        assert_eq!(cluster_proportion_ci(&[], Level::CONFIDENCE_95), None);
    }

    #[test]
    fn equal_rates_have_a_p_value_of_one() {
        let both = tallies(&[3, 3, 3], 3);
        let answer = success_difference_ci(&both, &both, Level::CONFIDENCE_95)
            .unwrap()
            .unwrap();
        assert_eq!(answer.p_value, 1.0);
    }
}
