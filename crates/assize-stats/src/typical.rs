//! One mode's metric over scenarios: the typical value, and the mean with its cluster-robust error.

use libm::{exp, sqrt};
use serde::Serialize;

use crate::interval::{Bounds, Level};
use crate::sample::{Sample, Screened, finite, sum};
use crate::scenario::{SMALL_GROUP, Scenarios, common_scale, scenario_warnings};
use crate::warning::{Warning, Warnings};

/// Below this many scenarios a skewed mean gets its warning.
const MANY_SCENARIOS: usize = 10;
/// Maximum over median above which values count as skewed.
const SKEWED: f64 = 5.0;

/// The typical scenario: geometric mean of the scenario medians.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioTypical {
    /// The typical value.
    pub point_estimate: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// All scenarios have the same median: the bounds say nothing about uncertainty.
    pub degenerate: bool,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// The mean over all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterMean {
    /// Mean of all runs.
    pub mean: f64,
    /// Its standard error, from the spread between scenarios.
    pub se: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// Interval of the typical value for new scenarios like these. None for fewer than two scenarios or a median that is
/// not above zero; use [`cluster_mean_ci`] then.
pub fn scenario_typical_ci<G: AsRef<[f64]>>(
    groups: impl IntoIterator<Item = G>,
    level: Level,
) -> Option<ScenarioTypical> {
    // One scenario after the other: there may be a million.
    let (mut medians, mut non_finite, mut is_small) = (Vec::new(), 0, false);
    for group in groups {
        let screened = Screened::new(group.as_ref());
        non_finite += screened.non_finite;
        if let Some(sample) = screened.sample {
            is_small |= sample.count() < SMALL_GROUP;
            medians.push(sample.median());
        }
    }
    let logs = Sample::new(&medians)
        .filter(|medians| medians.count() >= 2)?
        .logs()?;
    let df = (logs.count() - 1) as f64;
    let reach = if logs.is_constant() {
        0.0
    } else {
        level.t(df) * logs.standard_error()
    };
    let mut warnings = scenario_warnings(medians.len(), non_finite);
    warnings.add_if(is_small, Warning::SmallN);
    warnings.add_if(logs.is_constant(), Warning::NoVariation);
    Some(ScenarioTypical {
        point_estimate: finite(exp(logs.mean())),
        lower: finite(exp(logs.mean() - reach)),
        upper: finite(exp(logs.mean() + reach)),
        df,
        degenerate: logs.is_constant(),
        warnings,
    })
}

/// Interval of the mean over all runs, for new scenarios like these. None for fewer than two scenarios.
pub fn cluster_mean_ci<G: AsRef<[f64]>>(groups: &[G], level: Level) -> Option<ClusterMean> {
    let scenarios = Scenarios::new(groups);
    let samples = &scenarios.samples;
    if samples.len() < 2 {
        return None;
    }
    let scale = common_scale(samples.iter());
    let scaled: Vec<Sample> = samples
        .iter()
        .map(|sample| sample.scaled(scale.inverse))
        .collect();
    let runs = scaled
        .iter()
        .map(|sample| sample.count() as f64)
        .sum::<f64>();
    let mean = sum(scaled
        .iter()
        .flat_map(|sample| sample.values().iter().copied()))
        / runs;
    let deviations = scaled
        .iter()
        .map(|sample| sum(sample.values().iter().map(|value| value - mean)));
    let clusters = samples.len() as f64;
    let squares = sum(deviations.map(|deviation| deviation * deviation));
    let se = sqrt(clusters / (clusters - 1.0) * squares) / runs;
    let df = clusters - 1.0;
    let bounds = Bounds {
        lower: mean - level.t(df) * se,
        upper: mean + level.t(df) * se,
    };
    let mut warnings = scenarios.warnings();
    warnings.add_if(is_skewed(samples), Warning::SkewedMean);
    Some(ClusterMean {
        mean: finite(mean * scale.unit),
        se: finite(se * scale.unit),
        df,
        lower: finite(bounds.lower * scale.unit),
        upper: finite(bounds.upper * scale.unit),
        warnings,
    })
}

/// Few scenarios whose largest run dwarfs the usual one: the t interval of the mean covers about 90 %, not 95 %.
pub(crate) fn is_skewed(samples: &[Sample]) -> bool {
    let pooled: Vec<f64> = samples
        .iter()
        .flat_map(|sample| sample.values())
        .copied()
        .collect();
    let skewed = |pooled: Sample| pooled.max() / pooled.median() > SKEWED;
    samples.len() < MANY_SCENARIOS && Sample::new(&pooled).is_some_and(skewed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_skewed_scenarios_carry_a_warning() {
        let skewed =
            cluster_mean_ci(&[[1.0, 1.2], [1.1, 9.0], [1.0, 1.3]], Level::CONFIDENCE_95).unwrap();
        assert!(skewed.warnings.contains(Warning::SkewedMean));
        let even =
            cluster_mean_ci(&[[1.0, 1.2], [1.1, 2.0], [1.0, 1.3]], Level::CONFIDENCE_95).unwrap();
        assert!(!even.warnings.contains(Warning::SkewedMean));
    }

    #[test]
    fn a_median_of_zero_has_no_typical_value() {
        assert_eq!(
            scenario_typical_ci([[0.0, 0.0], [1.0, 2.0]], Level::CONFIDENCE_95),
            None
        );
        assert_eq!(
            scenario_typical_ci([[1.0, 2.0]], Level::CONFIDENCE_95),
            None
        );
    }
}
