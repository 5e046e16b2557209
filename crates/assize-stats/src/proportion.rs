//! Success rates of one scenario or of pooled runs: intervals of a rate and of the difference of two.

use libm::sqrt;
use serde::Serialize;

use crate::error::StatsError;
use crate::interval::{Bounds, Level};
use crate::special::{beta_quantile, fair_binomial_cdf, normal_quantile};

/// Successes among trials; never more than there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    successes: u64,
    trials: u64,
}

impl Tally {
    /// Rejects more successes than trials.
    pub fn new(successes: u64, trials: u64) -> Result<Self, StatsError> {
        if successes > trials {
            return Err(StatsError::SuccessesExceedTrials { successes, trials });
        }
        Ok(Self { successes, trials })
    }

    /// Counted successes.
    pub fn successes(self) -> u64 {
        self.successes
    }

    /// Counted trials.
    pub fn trials(self) -> u64 {
        self.trials
    }

    /// Share of successes; none without trials.
    pub fn rate(self) -> Option<f64> {
        (self.trials > 0).then(|| self.successes as f64 / self.trials as f64)
    }

    /// Both counts added up.
    pub(crate) fn plus(self, other: Tally) -> Tally {
        Tally {
            successes: self.successes.saturating_add(other.successes),
            trials: self.trials.saturating_add(other.trials),
        }
    }

    /// Trials that all passed.
    pub(crate) fn of_passed(trials: u64) -> Tally {
        Tally {
            successes: trials,
            trials,
        }
    }

    /// Trials that all failed.
    pub(crate) fn of_failed(trials: u64) -> Tally {
        Tally {
            successes: 0,
            trials,
        }
    }
}

/// The method behind the interval of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProportionMethod {
    /// Wilson's score interval.
    #[default]
    Wilson,
    /// Clopper and Pearson's: never covers too little, usually too much.
    ClopperPearson,
    /// Jeffreys', with 0 and 1 as bounds at the edges.
    Jeffreys,
}

/// A rate, or a difference of rates, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProportionInterval {
    /// The rate or difference of the data.
    pub point_estimate: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// Nominal coverage.
    pub confidence_level: Level,
}

/// Outcomes of trials that come in pairs, one under each mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairedOutcomes {
    /// Both succeeded.
    pub both: u64,
    /// Only A succeeded.
    pub only_a: u64,
    /// Only B succeeded.
    pub only_b: u64,
    /// Neither succeeded.
    pub neither: u64,
}

/// Interval of one rate; none without trials.
pub fn proportion_ci(
    tally: Tally,
    method: ProportionMethod,
    level: Level,
) -> Option<ProportionInterval> {
    let rate = tally.rate()?;
    let bounds = match method {
        ProportionMethod::Wilson => wilson(
            rate,
            tally.trials as f64,
            normal_quantile(1.0 - level.tail()),
        ),
        ProportionMethod::ClopperPearson => clopper_pearson(tally, level),
        ProportionMethod::Jeffreys => jeffreys(tally, level),
    };
    Some(ProportionInterval {
        point_estimate: rate,
        lower: bounds.lower,
        upper: bounds.upper,
        confidence_level: level,
    })
}

/// Interval of a rate that carries the information of so many independent trials, which need not be a whole number. None for a rate
/// outside 0 to 1 or without information.
pub fn effective_proportion_ci(rate: f64, trials: f64, level: Level) -> Option<ProportionInterval> {
    let is_rate = (0.0..=1.0).contains(&rate) && trials > 0.0;
    let bounds = is_rate.then(|| wilson(rate, trials, normal_quantile(1.0 - level.tail())))?;
    Some(ProportionInterval {
        point_estimate: rate,
        lower: bounds.lower,
        upper: bounds.upper,
        confidence_level: level,
    })
}

/// Newcombe's interval of rate A minus rate B (1998, method 10); none if a side has no trials.
pub fn proportion_diff_ci(a: Tally, b: Tally, level: Level) -> Option<ProportionInterval> {
    let a = proportion_ci(a, ProportionMethod::Wilson, level)?;
    let b = proportion_ci(b, ProportionMethod::Wilson, level)?;
    Some(difference(&a, &b, 0.0))
}

/// Newcombe's interval for paired trials (1998, method 10 for pairs); none without trials.
pub fn paired_proportion_diff_ci(
    outcomes: PairedOutcomes,
    level: Level,
) -> Option<ProportionInterval> {
    let PairedOutcomes {
        both,
        only_a,
        only_b,
        neither,
    } = outcomes;
    let trials = both + only_a + only_b + neither;
    let tally = |successes| Tally { successes, trials };
    let a = proportion_ci(tally(both + only_a), ProportionMethod::Wilson, level)?;
    let b = proportion_ci(tally(both + only_b), ProportionMethod::Wilson, level)?;
    Some(difference(&a, &b, newcombe_phi(outcomes)))
}

/// McNemar's exact p-value from the pairs in which exactly one mode succeeded.
pub fn mcnemar_exact(only_a: u64, only_b: u64) -> f64 {
    (2.0 * fair_binomial_cdf(only_a.min(only_b), only_a + only_b)).min(1.0)
}

/// The score interval for any effective number of trials and any number of standard errors.
pub(crate) fn wilson(rate: f64, trials: f64, z: f64) -> Bounds {
    let square = z * z / trials;
    if !square.is_finite() {
        return Bounds {
            lower: 0.0,
            upper: 1.0,
        };
    }
    let centre = (rate + square / 2.0) / (1.0 + square);
    let reach = sqrt(rate * (1.0 - rate) * square + square * square / 4.0) / (1.0 + square);
    // At the edges the formula gives 0 and 1 up to rounding.
    let lower = if rate == 0.0 {
        0.0
    } else {
        (centre - reach).max(0.0)
    };
    let upper = if rate == 1.0 {
        1.0
    } else {
        (centre + reach).min(1.0)
    };
    Bounds { lower, upper }
}

/// Square-and-add of two intervals, with the correlation of their estimates, clipped to [-1, 1].
pub(crate) fn difference(
    a: &ProportionInterval,
    b: &ProportionInterval,
    correlation: f64,
) -> ProportionInterval {
    let reach = |x: f64, y: f64| sqrt((x * x - 2.0 * correlation * x * y + y * y).max(0.0));
    let point_estimate = a.point_estimate - b.point_estimate;
    let down = reach(a.point_estimate - a.lower, b.upper - b.point_estimate);
    let up = reach(a.upper - a.point_estimate, b.point_estimate - b.lower);
    ProportionInterval {
        point_estimate,
        lower: (point_estimate - down).max(-1.0),
        upper: (point_estimate + up).min(1.0),
        confidence_level: a.confidence_level,
    }
}

fn newcombe_phi(outcomes: PairedOutcomes) -> f64 {
    let PairedOutcomes {
        both,
        only_a,
        only_b,
        neither,
    } = outcomes;
    let margins = [
        both + only_a,
        only_b + neither,
        both + only_b,
        only_a + neither,
    ];
    if margins.contains(&0) {
        return 0.0;
    }
    let half = (both + only_a + only_b + neither) as f64 / 2.0;
    let product = both as f64 * neither as f64 - only_a as f64 * only_b as f64;
    let corrected = match product {
        product if product > half => product - half,
        product if product >= 0.0 => 0.0,
        product => product,
    };
    corrected
        / margins
            .iter()
            .map(|&margin| sqrt(margin as f64))
            .product::<f64>()
}

fn clopper_pearson(tally: Tally, level: Level) -> Bounds {
    let (successes, failures) = (
        tally.successes as f64,
        (tally.trials - tally.successes) as f64,
    );
    Bounds {
        lower: if successes == 0.0 {
            0.0
        } else {
            beta_quantile(level.tail(), successes, failures + 1.0)
        },
        upper: if failures == 0.0 {
            1.0
        } else {
            beta_quantile(1.0 - level.tail(), successes + 1.0, failures)
        },
    }
}

fn jeffreys(tally: Tally, level: Level) -> Bounds {
    let (successes, failures) = (
        tally.successes as f64,
        (tally.trials - tally.successes) as f64,
    );
    let quantile = |share: f64| beta_quantile(share, successes + 0.5, failures + 0.5);
    Bounds {
        lower: if successes == 0.0 {
            0.0
        } else {
            quantile(level.tail())
        },
        upper: if failures == 0.0 {
            1.0
        } else {
            quantile(1.0 - level.tail())
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_successes_than_trials_are_rejected() {
        assert_eq!(
            Tally::new(3, 2),
            Err(StatsError::SuccessesExceedTrials {
                successes: 3,
                trials: 2
            })
        );
    }

    #[test]
    fn no_trials_have_no_interval() {
        let none = Tally::new(0, 0).unwrap();
        assert_eq!(
            proportion_ci(none, ProportionMethod::Wilson, Level::CONFIDENCE_95),
            None
        );
        assert_eq!(
            proportion_diff_ci(none, Tally::new(1, 2).unwrap(), Level::CONFIDENCE_95),
            None
        );
    }

    #[test]
    fn all_passed_is_not_certainty() {
        let interval = proportion_ci(
            Tally::new(5, 5).unwrap(),
            ProportionMethod::Wilson,
            Level::CONFIDENCE_95,
        )
        .unwrap();
        assert_eq!(interval.upper, 1.0);
        assert!(interval.lower < 0.6);
    }
}
