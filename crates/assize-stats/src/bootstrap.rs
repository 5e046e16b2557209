//! Bootstrap intervals of unlabelled values: percentile, expanded and BCa.

use crate::interval::{Bounds, ConfidenceInterval, Level, Method, expanded_tail};
use crate::random::{Stream, index};
use crate::resample::Resampler;
use crate::sample::{Rank, Sample, Screened, between, finite, quantile_of_sorted, sum};
use crate::special::{normal_cdf, normal_quantile};
use crate::statistic::Statistic;
use crate::warning::{Warning, Warnings};

/// Below this many values BCa's acceleration is mostly noise.
const BCA_MINIMUM: usize = 20;

/// Settings of a bootstrap.
#[derive(Clone, Copy, Debug)]
pub struct BootstrapOptions {
    /// The estimated statistic. Ignored when a closure is given.
    pub statistic: Statistic,
    /// The method that turns replicates into an interval.
    pub method: Method,
    /// Number of replicates.
    pub resamples: usize,
    /// Nominal coverage.
    pub confidence_level: Level,
    /// Same seed, same answer.
    pub seed: u64,
}

impl Default for BootstrapOptions {
    fn default() -> Self {
        Self {
            statistic: Statistic::Median,
            method: Method::Percentile,
            resamples: 10_000,
            confidence_level: Level::CONFIDENCE_95,
            seed: 42,
        }
    }
}

/// Bootstrap interval of a statistic of values that carry no scenario.
pub fn bootstrap_ci(values: &[f64], options: &BootstrapOptions) -> ConfidenceInterval {
    let statistic = options.statistic;
    interval_of(
        values,
        options,
        &Estimate {
            is_quantile: statistic.share().is_some(),
            of: &|sample| statistic.of(sample),
            jackknife: &|sample| jackknife_of(sample, statistic),
        },
        |sample, stream| {
            let resampler = Resampler::new(sample, statistic);
            stream.replicates(
                options.resamples,
                || (),
                |generator, ()| resampler.draw(generator),
            )
        },
    )
}

/// Bootstrap interval of any statistic. It sees ascending values; replicates for which it is not finite are left out.
pub fn bootstrap_ci_of(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64 + Sync,
    options: &BootstrapOptions,
) -> ConfidenceInterval {
    interval_of(
        values,
        options,
        &Estimate {
            is_quantile: false,
            of: &|sample| statistic(sample.values()),
            jackknife: &|sample| jackknife(sample.values(), &statistic),
        },
        |sample, stream| {
            let values = sample.values();
            stream.replicates(
                options.resamples,
                Vec::new,
                |generator, drawn: &mut Vec<f64>| {
                    drawn.clear();
                    drawn.extend((0..values.len()).map(|_| values[index(generator, values.len())]));
                    drawn.sort_unstable_by(f64::total_cmp);
                    statistic(drawn)
                },
            )
        },
    )
}

/// The estimated statistic, marked if it is a quantile, for which BCa does not work.
struct Estimate<'a> {
    is_quantile: bool,
    of: &'a dyn Fn(&Sample) -> f64,
    /// The estimate with each value left out once.
    jackknife: &'a dyn Fn(&Sample) -> Vec<f64>,
}

fn interval_of(
    values: &[f64],
    options: &BootstrapOptions,
    estimate: &Estimate<'_>,
    resample: impl FnOnce(&Sample, Stream) -> Vec<f64>,
) -> ConfidenceInterval {
    let screened = Screened::new(values);
    let mut interval = zero_width(0.0, options);
    interval.non_finite = screened.non_finite;
    interval
        .warnings
        .add_if(screened.non_finite > 0, Warning::NonFiniteDropped);
    interval
        .warnings
        .add_if(screened.len() <= 1, Warning::TooFewValues);
    interval
        .warnings
        .add_if(screened.len() < 5, Warning::SmallN);
    let Some(sample) = screened.sample else {
        return interval;
    };
    let point_estimate = (estimate.of)(&sample);
    if !point_estimate.is_finite() {
        return interval;
    }
    interval = ConfidenceInterval {
        point_estimate,
        lower: point_estimate,
        upper: point_estimate,
        ..interval
    };
    if sample.is_constant() || options.resamples == 0 {
        return interval;
    }
    interval.method = chosen_method(
        options.method,
        estimate.is_quantile,
        sample.count(),
        &mut interval.warnings,
    );
    let replicates = Replicates::new(resample(
        &sample,
        Stream::for_purpose(options.seed, "bootstrap"),
    ));
    let jackknife = || (estimate.jackknife)(&sample);
    let request = Request {
        point_estimate,
        units: sample.count(),
        level: options.confidence_level,
    };
    if let Some(bounds) = replicates.bounds(interval.method, &request, jackknife) {
        interval.lower = bounds.lower;
        interval.upper = bounds.upper;
        interval.degenerate = false;
    }
    interval
}

/// An empty interval, to be filled in when there is one.
pub(crate) fn zero_width(point_estimate: f64, options: &BootstrapOptions) -> ConfidenceInterval {
    ConfidenceInterval {
        lower: point_estimate,
        upper: point_estimate,
        confidence_level: options.confidence_level,
        resamples: options.resamples,
        point_estimate,
        degenerate: true,
        method: options.method,
        scope: None,
        non_finite: 0,
        warnings: Warnings::default(),
    }
}

/// Warns about BCa where it does not work, and refuses it unless it was asked for by name.
pub(crate) fn chosen_method(
    method: Method,
    is_quantile: bool,
    units: usize,
    warnings: &mut Warnings,
) -> Method {
    let unsuitable = is_quantile || units < BCA_MINIMUM;
    warnings.add_if(
        unsuitable && matches!(method, Method::Bca | Method::Auto),
        Warning::BcaUnsuitable,
    );
    match method {
        Method::Auto if unsuitable => Method::Expanded,
        Method::Auto => Method::Bca,
        other => other,
    }
}

/// Any statistic with each value left out once: n evaluations of n values.
fn jackknife(values: &[f64], statistic: &impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let without = |place: usize| [&values[..place], &values[place + 1..]].concat();
    (0..values.len())
        .map(|place| statistic(&without(place)))
        .collect()
}

/// The same for a known statistic in one step per value.
fn jackknife_of(sample: &Sample, statistic: Statistic) -> Vec<f64> {
    let values = sample.values();
    let rest = values.len() - 1;
    let Some(share) = statistic.share() else {
        // Only the deviations matter, and those of the means are the values' own, divided by what is left.
        let scale = sample.scale();
        return values
            .iter()
            .map(|value| -value * scale.inverse / rest as f64)
            .collect();
    };
    let rank = Rank::new(share, rest);
    let at = |index: usize, place: usize| values[index + usize::from(index >= place)];
    let without = |place| between(at(rank.below, place), at(rank.above(), place), rank.weight);
    (0..values.len()).map(without).collect()
}

/// The request for an interval, besides the replicates.
pub(crate) struct Request {
    pub(crate) point_estimate: f64,
    pub(crate) units: usize,
    pub(crate) level: Level,
}

/// Finite replicates in ascending order.
pub(crate) struct Replicates {
    sorted: Vec<f64>,
}

impl Replicates {
    pub(crate) fn new(mut replicates: Vec<f64>) -> Self {
        replicates.retain(|value| value.is_finite());
        replicates.sort_unstable_by(f64::total_cmp);
        Self { sorted: replicates }
    }

    pub(crate) fn count(&self) -> usize {
        self.sorted.len()
    }

    /// None without replicates.
    pub(crate) fn bounds(
        &self,
        method: Method,
        request: &Request,
        jackknife: impl FnOnce() -> Vec<f64>,
    ) -> Option<Bounds> {
        if self.sorted.is_empty() {
            return None;
        }
        let tail = request.level.tail();
        let tails = match method {
            Method::Percentile => Bounds {
                lower: tail,
                upper: 1.0 - tail,
            },
            Method::Expanded => {
                let tail = expanded_tail(request.units, request.level)?;
                Bounds {
                    lower: tail,
                    upper: 1.0 - tail,
                }
            }
            Method::Bca | Method::Auto => self.bca_tails(request, &jackknife()),
        };
        Some(Bounds {
            lower: quantile_of_sorted(&self.sorted, tails.lower),
            upper: quantile_of_sorted(&self.sorted, tails.upper),
        })
    }

    /// Efron 1987. Shares at the very ends are moved half a replicate inward so that the correction stays finite.
    fn bca_tails(&self, request: &Request, jackknife: &[f64]) -> Bounds {
        let count = self.sorted.len() as f64;
        let below = self
            .sorted
            .partition_point(|value| *value < request.point_estimate);
        let up_to = self
            .sorted
            .partition_point(|value| *value <= request.point_estimate);
        let share = ((below + up_to) as f64 / (2.0 * count)).clamp(0.5 / count, 1.0 - 0.5 / count);
        let bias = normal_quantile(share);
        let acceleration = acceleration(jackknife);
        let corrected = |tail: f64| {
            let moved = bias + normal_quantile(tail);
            let stretch = 1.0 - acceleration * moved;
            if stretch <= 0.0 {
                tail.round()
            } else {
                normal_cdf(bias + moved / stretch)
            }
        };
        Bounds {
            lower: corrected(request.level.tail()),
            upper: corrected(1.0 - request.level.tail()),
        }
    }
}

fn acceleration(jackknife: &[f64]) -> f64 {
    let Some(sample) = Sample::new(jackknife) else {
        return 0.0;
    };
    // Only ratios matter here, so the deviations may be scaled to survive their cubes.
    let sample = sample.scaled(sample.scale().inverse);
    let mean = sample.mean();
    let deviations = || sample.values().iter().map(|value| mean - value);
    let squares = sum(deviations().map(|deviation| deviation * deviation));
    if squares == 0.0 {
        return 0.0;
    }
    let spread = libm::sqrt(squares);
    finite(sum(deviations().map(|deviation| libm::pow(deviation / spread, 3.0))) / 6.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f64; 8] = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.0, 3.5];

    #[test]
    fn bca_is_refused_for_a_median_unless_asked_for_by_name() {
        let auto = bootstrap_ci(
            &VALUES,
            &BootstrapOptions {
                method: Method::Auto,
                ..Default::default()
            },
        );
        assert_eq!(auto.method, Method::Expanded);
        assert!(auto.warnings.contains(Warning::BcaUnsuitable));
        let named = bootstrap_ci(
            &VALUES,
            &BootstrapOptions {
                method: Method::Bca,
                ..Default::default()
            },
        );
        assert_eq!(named.method, Method::Bca);
    }

    #[test]
    fn expanded_intervals_are_wider_than_percentile_intervals() {
        let width = |method| {
            let options = BootstrapOptions {
                method,
                statistic: Statistic::Mean,
                ..Default::default()
            };
            let interval = bootstrap_ci(&VALUES, &options);
            interval.upper - interval.lower
        };
        assert!(width(Method::Expanded) > 1.2 * width(Method::Percentile));
    }

    #[test]
    fn a_closure_gives_the_interval_of_the_built_in_statistic() {
        let options = BootstrapOptions {
            statistic: Statistic::Mean,
            resamples: 20_000,
            ..Default::default()
        };
        let built_in = bootstrap_ci(&VALUES, &options);
        let closure = bootstrap_ci_of(
            &VALUES,
            |drawn| drawn.iter().sum::<f64>() / drawn.len() as f64,
            &options,
        );
        assert!((built_in.lower - closure.lower).abs() < 0.1);
        assert!((built_in.upper - closure.upper).abs() < 0.15);
    }

    #[test]
    fn leaving_values_out_gives_the_same_acceleration_either_way() {
        let sample = Sample::new(&VALUES).unwrap();
        for statistic in [Statistic::Mean, Statistic::Median, Statistic::P90] {
            let plain = |values: &[f64]| statistic.of(&Sample::new(values).unwrap());
            let slow = acceleration(&jackknife(sample.values(), &plain));
            let fast = acceleration(&jackknife_of(&sample, statistic));
            assert!((slow - fast).abs() < 1e-12, "{statistic:?}: {slow} {fast}");
        }
    }

    #[test]
    fn a_statistic_that_is_never_finite_gives_a_flagged_zero() {
        let interval = bootstrap_ci_of(&VALUES, |_| f64::NAN, &BootstrapOptions::default());
        assert!(interval.degenerate);
        assert_eq!(interval.point_estimate, 0.0);
    }
}
