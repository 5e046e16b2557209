//! Numbers with one-sided bounds for exactly these scenarios, held against fixed limits.

use serde::Serialize;

use super::GateVerdict;
use crate::bootstrap::{BootstrapOptions, Replicates, Request};
use crate::interval::{Bounds, Level, Method};
use crate::random::{Stream, index};
use crate::sample::{Sample, finite};
use crate::scenario::{Scenarios, common_scale};
use crate::statistic::Statistic;

/// A number with one-sided bounds, to be held against a fixed limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OneSided {
    /// The number of the data.
    pub point_estimate: f64,
    /// Bound that the truth exceeds with the given certainty.
    pub lower_bound: f64,
    /// Bound that the truth stays below with the given certainty.
    pub upper_bound: f64,
}

/// The side of a limit on which a number must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Relation {
    /// At least the limit.
    #[serde(rename = ">=")]
    AtLeast,
    /// At most the limit.
    #[serde(rename = "<=")]
    AtMost,
    /// Above the limit.
    #[serde(rename = ">")]
    Above,
    /// Below the limit.
    #[serde(rename = "<")]
    Below,
}

/// Holds a number against a fixed limit: inconclusive while its bounds lie on both sides.
pub fn absolute_gate(number: &OneSided, relation: Relation, limit: f64) -> GateVerdict {
    let holds = |value: f64| match relation {
        Relation::AtLeast => value >= limit,
        Relation::AtMost => value <= limit,
        Relation::Above => value > limit,
        Relation::Below => value < limit,
    };
    match (holds(number.lower_bound), holds(number.upper_bound)) {
        (true, true) => GateVerdict::Pass,
        (false, false) => GateVerdict::Fail,
        _ => GateVerdict::Inconclusive,
    }
}

/// One-sided bounds of a statistic of all runs, for exactly these scenarios. None without runs.
///
/// The mean uses the spread inside scenarios. Quantiles are bootstrapped inside scenarios. No bounds exist for a
/// minimum or maximum, nor with a single run per scenario: there the number has no interval.
pub fn suite_bounds<G: AsRef<[f64]>>(
    groups: &[G],
    statistic: Statistic,
    alpha: Level,
    seed: u64,
) -> Option<OneSided> {
    let scenarios = Scenarios::new(groups);
    let pooled = pool(&scenarios.samples)?;
    let point_estimate = statistic.of(&pooled);
    let alone = OneSided {
        point_estimate,
        lower_bound: point_estimate,
        upper_bound: point_estimate,
    };
    let has_error =
        scenarios.samples.iter().all(|sample| sample.count() >= 2) && !pooled.is_constant();
    let bounds = match statistic {
        Statistic::Min | Statistic::Max => None,
        _ if !has_error => None,
        Statistic::Mean => Some(mean_bounds(&scenarios.samples, alpha)),
        quantile => quantile_bounds(&scenarios.samples, &pooled, quantile, alpha, seed),
    };
    Some(match bounds {
        Some(Bounds { lower, upper }) => OneSided {
            point_estimate,
            lower_bound: lower,
            upper_bound: upper,
        },
        None => alone,
    })
}

fn pool(samples: &[Sample]) -> Option<Sample> {
    let values: Vec<f64> = samples
        .iter()
        .flat_map(|sample| sample.values())
        .copied()
        .collect();
    Sample::new(&values)
}

/// Mean of all runs with the error of the runs inside scenarios and Welch's degrees of freedom.
fn mean_bounds(samples: &[Sample], alpha: Level) -> Bounds {
    let scale = common_scale(samples.iter());
    let scaled: Vec<Sample> = samples
        .iter()
        .map(|sample| sample.scaled(scale.inverse))
        .collect();
    let runs = scaled
        .iter()
        .map(|sample| sample.count() as f64)
        .sum::<f64>();
    let share = |sample: &Sample| sample.count() as f64 / runs;
    let mean: f64 = scaled
        .iter()
        .map(|sample| share(sample) * sample.mean())
        .sum();
    let term = |sample: &Sample| libm::pow(share(sample) * sample.standard_error(), 2.0);
    let variance: f64 = scaled.iter().map(term).sum();
    let spread: f64 = scaled
        .iter()
        .map(|sample| term(sample) * term(sample) / (sample.count() - 1) as f64)
        .sum();
    let reach = if variance == 0.0 {
        0.0
    } else {
        alpha
            .two_sided_for_one_sided_alpha()
            .t(variance * variance / spread)
            * libm::sqrt(variance)
    };
    Bounds {
        lower: finite((mean - reach) * scale.unit),
        upper: finite((mean + reach) * scale.unit),
    }
}

fn quantile_bounds(
    samples: &[Sample],
    pooled: &Sample,
    statistic: Statistic,
    alpha: Level,
    seed: u64,
) -> Option<Bounds> {
    let resamples = BootstrapOptions::default().resamples;
    let stream = Stream::for_purpose(seed, "suite-bounds");
    let draws = stream.replicates(resamples, Vec::new, |generator, drawn: &mut Vec<f64>| {
        drawn.clear();
        for sample in samples {
            let values = sample.values();
            drawn.extend((0..values.len()).map(|_| values[index(generator, values.len())]));
        }
        Sample::new(drawn).map_or(f64::NAN, |drawn| statistic.of(&drawn))
    });
    let level = alpha.two_sided_for_one_sided_alpha();
    let request = Request {
        point_estimate: statistic.of(pooled),
        units: pooled.count(),
        level,
    };
    Replicates::new(draws).bounds(Method::Expanded, &request, Vec::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(lower_bound: f64, upper_bound: f64) -> OneSided {
        OneSided {
            point_estimate: lower_bound,
            lower_bound,
            upper_bound,
        }
    }

    #[test]
    fn a_limit_between_the_bounds_is_inconclusive() {
        let gate = |lower, upper| absolute_gate(&bounds(lower, upper), Relation::AtLeast, 0.9);
        assert_eq!(gate(0.92, 0.99), GateVerdict::Pass);
        assert_eq!(gate(0.85, 0.95), GateVerdict::Inconclusive);
        assert_eq!(gate(0.5, 0.8), GateVerdict::Fail);
    }

    #[test]
    fn suite_bounds_of_a_mean_hold_the_mean() {
        let groups = [
            vec![1.0, 2.0, 3.0],
            vec![10.0, 12.0],
            vec![5.0, 5.5, 6.0, 7.0],
        ];
        for statistic in [Statistic::Mean, Statistic::Median, Statistic::P95] {
            let bounds = suite_bounds(&groups, statistic, Level::ALPHA_05, 42).unwrap();
            assert!(
                bounds.lower_bound < bounds.point_estimate
                    && bounds.point_estimate <= bounds.upper_bound
            );
        }
        let most = suite_bounds(&groups, Statistic::Max, Level::ALPHA_05, 42).unwrap();
        assert_eq!((most.lower_bound, most.upper_bound), (12.0, 12.0));
    }
}
