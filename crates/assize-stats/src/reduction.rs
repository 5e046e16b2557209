//! Reductions against the baseline, in percent, for values that carry no scenario.

use serde::Serialize;

use crate::bootstrap::{BootstrapOptions, Replicates, Request, chosen_method, zero_width};
use crate::interval::{ConfidenceInterval, Method};
use crate::random::Stream;
use crate::resample::Resampler;
use crate::sample::{Screened, finite};
use crate::scenario::Pair;
use crate::warning::{Warning, Warnings};

/// A reduction in percent with its interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReductionInterval {
    /// The interval, in percent.
    #[serde(flatten)]
    pub interval: ConfidenceInterval,
    /// False when the number must not be shown.
    pub reduction_defined: bool,
    /// Resamples left out because their baseline was at or below zero.
    pub undefined_resamples: usize,
}

/// Reduction of A against the baseline B, both resampled on their own.
pub fn bootstrap_reduction_ci(
    mode_a: &[f64],
    mode_b: &[f64],
    options: &BootstrapOptions,
) -> ReductionInterval {
    let (a, b) = (Screened::new(mode_a), Screened::new(mode_b));
    let non_finite = a.non_finite + b.non_finite;
    let stream = Stream::for_purpose(options.seed, "reduction");
    let mut reduction = match a.sample.zip(b.sample) {
        Some((a, b)) => reduction_of(&Pair { a, b }, options, stream),
        None => {
            let mut nothing = undefined(options);
            nothing.interval.warnings.add(Warning::TooFewValues);
            nothing
        }
    };
    let warnings = &mut reduction.interval.warnings;
    warnings.add_if(non_finite > 0, Warning::NonFiniteDropped);
    reduction.interval.non_finite = non_finite;
    reduction
}

/// The same for checked values, with the draws of a given stream.
pub(crate) fn reduction_of(
    runs: &Pair,
    options: &BootstrapOptions,
    stream: Stream,
) -> ReductionInterval {
    let Pair { a, b } = runs;
    let mut reduction = undefined(options);
    let warnings = &mut reduction.interval.warnings;
    let too_few = a.count() <= 1 || b.count() <= 1;
    warnings.add_if(too_few, Warning::TooFewValues);
    warnings.add_if(a.count() < 5 || b.count() < 5, Warning::SmallN);
    let point = Reduction::new(options.statistic.of(a), options.statistic.of(b), warnings);
    reduction.take_point(&point);
    let nothing_varies = a.is_constant() && b.is_constant();
    if too_few || nothing_varies || point.is_without_baseline() {
        return reduction;
    }
    let (from_a, from_b) = (
        Resampler::new(a, options.statistic),
        Resampler::new(b, options.statistic),
    );
    let draws = stream.replicates(
        options.resamples,
        || (),
        |generator, ()| {
            let (value, baseline) = (from_a.draw(generator), from_b.draw(generator));
            reduction_or_nan(value, baseline)
        },
    );
    reduction.take_replicates(draws, a.count().min(b.count()), options);
    reduction
}

impl ReductionInterval {
    /// An interval without width, until there are replicates.
    pub(crate) fn take_point(&mut self, point: &Reduction) {
        self.reduction_defined = point.defined;
        self.interval.point_estimate = point.percent;
        self.interval.lower = point.percent;
        self.interval.upper = point.percent;
    }

    /// Turns replicates, in which NaN stands for a baseline at or below zero, into bounds and flags.
    pub(crate) fn take_replicates(
        &mut self,
        draws: Vec<f64>,
        units: usize,
        options: &BootstrapOptions,
    ) {
        let replicates = Replicates::new(draws);
        self.undefined_resamples = options.resamples - replicates.count();
        let warnings = &mut self.interval.warnings;
        warnings.add_if(self.undefined_resamples > 0, Warning::BaselineTouchesZero);
        let allowed = options.confidence_level.tail() * options.resamples as f64;
        self.reduction_defined &= self.undefined_resamples as f64 <= allowed;
        // A jackknife of two groups at once is not defined here, so BCa falls back even when named.
        let method = match chosen_method(options.method, true, units, warnings) {
            Method::Bca => Method::Expanded,
            other => other,
        };
        self.interval.method = method;
        let request = Request {
            point_estimate: self.interval.point_estimate,
            units,
            level: options.confidence_level,
        };
        if let Some(bounds) = replicates.bounds(method, &request, Vec::new) {
            self.interval.lower = bounds.lower;
            self.interval.upper = bounds.upper;
            self.interval.degenerate = false;
        }
    }
}

/// The placeholder: zero, flagged.
pub(crate) fn undefined(options: &BootstrapOptions) -> ReductionInterval {
    ReductionInterval {
        interval: zero_width(0.0, options),
        reduction_defined: false,
        undefined_resamples: 0,
    }
}

/// A reduction in percent and whether it means anything.
pub(crate) struct Reduction {
    percent: f64,
    defined: bool,
    baseline: f64,
}

impl Reduction {
    pub(crate) fn new(value: f64, baseline: f64, warnings: &mut Warnings) -> Self {
        warnings.add_if(baseline == 0.0, Warning::BaselineZero);
        warnings.add_if(baseline < 0.0, Warning::BaselineNonpositive);
        let percent = if baseline == 0.0 {
            0.0
        } else {
            percent_less(value, baseline)
        };
        Self {
            percent,
            defined: baseline > 0.0,
            baseline,
        }
    }

    /// A baseline of zero has no percentages at all.
    pub(crate) fn is_without_baseline(&self) -> bool {
        self.baseline == 0.0
    }
}

/// NaN marks a resample whose baseline is at or below zero; it is counted and left out.
pub(crate) fn reduction_or_nan(value: f64, baseline: f64) -> f64 {
    if baseline > 0.0 {
        percent_less(value, baseline)
    } else {
        f64::NAN
    }
}

fn percent_less(value: f64, baseline: f64) -> f64 {
    finite((1.0 - value / baseline) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduction(a: &[f64], b: &[f64]) -> ReductionInterval {
        bootstrap_reduction_ci(
            a,
            b,
            &BootstrapOptions {
                resamples: 2_000,
                ..Default::default()
            },
        )
    }

    #[test]
    fn a_negative_baseline_keeps_its_number_and_is_flagged() {
        let answer = reduction(&[1.0, 2.0, 3.0], &[-1.0, -2.0, -3.0]);
        assert!(!answer.reduction_defined);
        assert_eq!(answer.interval.point_estimate, 200.0);
        assert!(
            answer
                .interval
                .warnings
                .contains(Warning::BaselineNonpositive)
        );
    }

    #[test]
    fn resamples_with_a_baseline_of_zero_are_counted() {
        let answer = reduction(&[1.0, 2.0, 3.0], &[0.0, 0.0, 5.0, 6.0, 7.0]);
        assert!(answer.undefined_resamples > 0);
        assert!(
            answer
                .interval
                .warnings
                .contains(Warning::BaselineTouchesZero)
        );
        assert!(!answer.reduction_defined);
    }

    #[test]
    fn an_empty_group_gives_a_flagged_zero() {
        let answer = reduction(&[], &[1.0, 2.0]);
        assert!(!answer.reduction_defined && answer.interval.degenerate);
        assert_eq!(answer.interval.point_estimate, 0.0);
    }
}
