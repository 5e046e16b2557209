//! Effect sizes of pooled runs: Cohen's d, Hedges' g, Cliff's delta and the probability of superiority.

use libm::{exp, log, sqrt};
use serde::Serialize;

use crate::sample::{Sample, Screened, finite};
use crate::scenario::common_scale;
use crate::special::ln_gamma;
use crate::warning::{Warning, Warnings};

/// Cohen's words for the size of d.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Magnitude {
    /// Below 0.2.
    Negligible,
    /// Below 0.5.
    Small,
    /// Below 0.8.
    Medium,
    /// 0.8 and above.
    Large,
}

/// A standardised mean difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CohensD {
    /// Mean difference in pooled standard deviations; 0 as a placeholder.
    pub d: f64,
    /// The size in words.
    pub magnitude: Magnitude,
    /// False when `d` is a placeholder.
    pub defined: bool,
    /// d without its small-sample bias.
    pub hedges_g: Option<f64>,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// The dominance of runs of A over runs of B. Absent numbers mean an empty group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CliffsDelta {
    /// P(A > B) - P(A < B).
    pub cliffs_delta: Option<f64>,
    /// P(A > B) + P(A = B)/2.
    pub prob_superiority: Option<f64>,
}

/// Cohen's d with the pooled standard deviation.
pub fn cohens_d(group_a: &[f64], group_b: &[f64]) -> CohensD {
    let (a, b) = (Screened::new(group_a), Screened::new(group_b));
    let mut answer = match (&a.sample, &b.sample) {
        (Some(a), Some(b)) => standardised(a, b),
        _ => placeholder(false),
    };
    answer
        .warnings
        .add_if(a.non_finite + b.non_finite > 0, Warning::NonFiniteDropped);
    answer
}

/// Cliff's delta by counting pairs.
pub fn cliffs_delta(group_a: &[f64], group_b: &[f64]) -> CliffsDelta {
    match (Sample::new(group_a), Sample::new(group_b)) {
        (Some(a), Some(b)) => cliffs_delta_of(&a, &b),
        _ => CliffsDelta {
            cliffs_delta: None,
            prob_superiority: None,
        },
    }
}

pub(crate) fn cliffs_delta_of(a: &Sample, b: &Sample) -> CliffsDelta {
    let superiority = prob_above(a, b);
    CliffsDelta {
        cliffs_delta: Some(2.0 * superiority - 1.0),
        prob_superiority: Some(superiority),
    }
}

pub(crate) fn standardised(a: &Sample, b: &Sample) -> CohensD {
    let df = (a.count() + b.count()) as f64 - 2.0;
    if df <= 0.0 {
        return placeholder(false);
    }
    let scale = common_scale([a, b].into_iter());
    let (a, b) = (a.scaled(scale.inverse), b.scaled(scale.inverse));
    let squares = |sample: &Sample| (sample.count() - 1) as f64 * sample.stddev() * sample.stddev();
    let pooled = sqrt((squares(&a) + squares(&b)) / df);
    let difference = a.mean() - b.mean();
    if pooled == 0.0 {
        return placeholder(difference == 0.0);
    }
    let d = finite(difference / pooled);
    let correction =
        |df: f64| exp(ln_gamma(df / 2.0) - log(df / 2.0) / 2.0 - ln_gamma((df - 1.0) / 2.0));
    let hedges_g = (df > 1.0).then(|| finite(d * correction(df)));
    CohensD {
        d,
        magnitude: magnitude(d),
        defined: true,
        hedges_g,
        warnings: Warnings::default(),
    }
}

fn placeholder(defined: bool) -> CohensD {
    let hedges_g = defined.then_some(0.0);
    CohensD {
        d: 0.0,
        magnitude: Magnitude::Negligible,
        defined,
        hedges_g,
        warnings: Warnings::default(),
    }
}

fn magnitude(d: f64) -> Magnitude {
    match d.abs() {
        size if size < 0.2 => Magnitude::Negligible,
        size if size < 0.5 => Magnitude::Small,
        size if size < 0.8 => Magnitude::Medium,
        _ => Magnitude::Large,
    }
}

/// P(A > B) + P(A = B)/2 over all pairs of runs, by one walk through both sorted samples.
pub(crate) fn prob_above(a: &Sample, b: &Sample) -> f64 {
    let (mut below, mut up_to) = (0, 0);
    let mut half_wins = 0_u64;
    let others = b.values();
    for value in a.values() {
        while below < others.len() && others[below] < *value {
            below += 1;
        }
        while up_to < others.len() && others[up_to] <= *value {
            up_to += 1;
        }
        half_wins += (below + up_to) as u64;
    }
    half_wins as f64 / (2.0 * a.count() as f64 * b.count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_have_no_standardised_difference() {
        let answer = cohens_d(&[1.0], &[2.0]);
        assert!(!answer.defined && answer.hedges_g.is_none());
    }

    #[test]
    fn huge_values_have_the_effect_size_of_small_ones() {
        let small = cohens_d(&[1.0, 2.0, 3.0], &[2.0, 3.0, 5.0]);
        let huge = cohens_d(&[1e300, 2e300, 3e300], &[2e300, 3e300, 5e300]);
        assert!((small.d - huge.d).abs() < 1e-12);
    }

    #[test]
    fn superiority_counts_ties_half() {
        assert_eq!(
            cliffs_delta(&[1.0, 1.0], &[1.0]).prob_superiority,
            Some(0.5)
        );
        assert_eq!(cliffs_delta(&[], &[1.0]).prob_superiority, None);
    }
}
