//! Confidence sequences by betting: an interval that may be looked at after every round (Waudby-Smith and Ramdas 2024).
//!
//! For every candidate mean two gamblers bet that the truth lies above or below it. A candidate against which a gambler
//! would have grown rich is ruled out, at whatever moment one looks.

use libm::{log, log1p, sqrt};
use serde::Serialize;

use crate::error::StatsError;
use crate::interval::Level;

/// Settings of the bets.
#[derive(Clone, Copy, Debug)]
pub struct BettingOptions {
    /// Error rate over all looks together.
    pub alpha: Level,
    /// Largest share of the capital put at risk.
    pub truncation: Level,
}

impl Default for BettingOptions {
    fn default() -> Self {
        Self {
            alpha: Level::ALPHA_05,
            truncation: Level::HALF,
        }
    }
}

/// Interval of the mean, by the last look alone and by all looks together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidenceSequence {
    /// Lower bound at the last look.
    pub lower: f64,
    /// Upper bound at the last look.
    pub upper: f64,
    /// Largest lower bound of any look: what to report, since every look is valid at once.
    pub running_lower: f64,
    /// Smallest upper bound of any look.
    pub running_upper: f64,
}

/// The capital of the two gamblers who bet against a mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capital {
    /// The candidate mean.
    pub m: f64,
    /// Log capital of the gambler who bets on a larger mean.
    pub log_capital_up: f64,
    /// Log capital of the gambler who bets on a smaller mean.
    pub log_capital_down: f64,
}

/// Bounds of the mean of values between 0 and 1, in the order they were observed. One value is one round.
pub fn betting_cs(
    values: &[f64],
    options: &BettingOptions,
) -> Result<ConfidenceSequence, StatsError> {
    let rounds = rounds(values, options.alpha)?;
    let search = Search {
        goal: log(2.0 / options.alpha.value()),
        truncation: options.truncation.value(),
    };
    let mut answer = ConfidenceSequence {
        lower: 0.0,
        upper: 1.0,
        running_lower: 0.0,
        running_upper: 1.0,
    };
    for look in 1..=rounds.len() {
        answer.running_lower = search.lower(&rounds[..look], answer.running_lower);
        answer.running_upper =
            1.0 - search.mirrored_upper(&rounds[..look], 1.0 - answer.running_upper);
    }
    answer.lower = search.lower(&rounds, 0.0);
    answer.upper = 1.0 - search.mirrored_upper(&rounds, 0.0);
    Ok(answer)
}

/// The gamblers' capital after all rounds, for some candidate means.
pub fn betting_capital(
    values: &[f64],
    means: &[f64],
    options: &BettingOptions,
) -> Result<Vec<Capital>, StatsError> {
    let rounds = rounds(values, options.alpha)?;
    means.iter().try_for_each(|&mean| in_unit(mean))?;
    Ok(means
        .iter()
        .map(|&mean| capital(&rounds, mean, options.truncation.value()))
        .collect())
}

/// A value and the bet placed before it was seen.
struct Round {
    value: f64,
    bet: f64,
}

fn rounds(values: &[f64], alpha: Level) -> Result<Vec<Round>, StatsError> {
    let (mut total, mut squares, mut variance) = (0.5, 0.25, 0.25);
    let mut rounds = Vec::with_capacity(values.len());
    for (count, &value) in (1_u32..).zip(values) {
        in_unit(value)?;
        let count = f64::from(count);
        rounds.push(Round {
            value,
            bet: sqrt(2.0 * log(2.0 / alpha.value()) / (count * log1p(count) * variance)),
        });
        total += value;
        let mean = total / (count + 1.0);
        squares += (value - mean) * (value - mean);
        variance = squares / (count + 1.0);
    }
    Ok(rounds)
}

fn in_unit(value: f64) -> Result<(), StatsError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(StatsError::ValueOutsideUnit { found: value })
    }
}

fn capital(rounds: &[Round], m: f64, truncation: f64) -> Capital {
    let mut answer = Capital {
        m,
        log_capital_up: 0.0,
        log_capital_down: 0.0,
    };
    for round in rounds {
        let gain = round.value - m;
        answer.log_capital_up += log1p(round.bet.min(truncation / m) * gain);
        answer.log_capital_down += log1p(-round.bet.min(truncation / (1.0 - m)) * gain);
    }
    answer
}

/// Finds which candidate means are ruled out.
struct Search {
    goal: f64,
    truncation: f64,
}

impl Search {
    /// The largest mean ruled out from below, or `start` if that is larger.
    fn lower(&self, rounds: &[Round], start: f64) -> f64 {
        rise_while(start, |m| {
            capital(rounds, m, self.truncation).log_capital_up >= self.goal
        })
    }

    /// The same from above, measured from 1 downwards.
    fn mirrored_upper(&self, rounds: &[Round], start: f64) -> f64 {
        rise_while(start, |m| {
            capital(rounds, 1.0 - m, self.truncation).log_capital_down >= self.goal
        })
    }
}

/// The last point for which `holds`, which is true up to some point and false after it; at least `start`.
fn rise_while(start: f64, holds: impl Fn(f64) -> bool) -> f64 {
    // Most looks move nothing: one check next to the old bound spares the search.
    const STEP: f64 = 1e-9;
    if start + STEP >= 1.0 || !holds(start + STEP) {
        return start;
    }
    let (mut low, mut high) = (start + STEP, 1.0);
    while high - low > STEP / 10.0 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rounds_rule_nothing_out() {
        let all = betting_cs(&[], &BettingOptions::default()).unwrap();
        assert_eq!((all.lower, all.upper), (0.0, 1.0));
    }

    #[test]
    fn values_outside_the_unit_interval_are_rejected() {
        for value in [-0.1, 1.1, f64::NAN] {
            assert!(betting_cs(&[value], &BettingOptions::default()).is_err());
        }
    }

    #[test]
    fn more_rounds_never_widen_the_interval() {
        let values: Vec<f64> = (0..60).map(|round| f64::from(round % 3) / 2.0).collect();
        let mut before = betting_cs(&[], &BettingOptions::default()).unwrap();
        for look in 1..=values.len() {
            let now = betting_cs(&values[..look], &BettingOptions::default()).unwrap();
            assert!(
                now.running_lower >= before.running_lower
                    && now.running_upper <= before.running_upper
            );
            before = now;
        }
        assert!(before.running_lower < 0.5 && before.running_upper > 0.5);
    }

    #[test]
    fn mirrored_values_have_the_mirrored_interval() {
        let values = [0.0, 0.2, 0.0, 0.1, 0.0, 0.3, 0.0, 0.0, 0.1, 0.0, 0.0, 0.2];
        let mirrored = values.map(|value| 1.0 - value);
        let one = betting_cs(&values, &BettingOptions::default()).unwrap();
        let other = betting_cs(&mirrored, &BettingOptions::default()).unwrap();
        assert!((one.lower - (1.0 - other.upper)).abs() < 1e-8);
        assert!((one.upper - (1.0 - other.lower)).abs() < 1e-8);
    }
}
