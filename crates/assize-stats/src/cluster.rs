//! Bootstrap over scenarios: whole scenarios are drawn with replacement and their runs stay together.

use crate::bootstrap::{BootstrapOptions, Replicates, Request, chosen_method, zero_width};
use crate::interval::{ConfidenceInterval, Method, Scope};
use crate::random::{Generator, Stream, index};
use crate::sample::{Rank, Sample, Scale, between};
use crate::scenario::{Scenarios, common_scale};
use crate::statistic::Statistic;

impl BootstrapOptions {
    /// The default for scenarios: expanded percentiles, since scenarios are few.
    pub fn clustered() -> Self {
        Self {
            method: Method::Expanded,
            ..Self::default()
        }
    }
}

/// Interval of a statistic of all runs, for new scenarios like these. None for fewer than two scenarios with data.
pub fn cluster_bootstrap_ci<G: AsRef<[f64]>>(
    groups: &[G],
    options: &BootstrapOptions,
) -> Option<ConfidenceInterval> {
    let statistic = options.statistic;
    cluster_interval(groups, options, statistic.share().is_some(), |samples| {
        let pool = Pool::new(samples.iter(), statistic);
        move |counts: &[u32]| pool.statistic(counts)
    })
}

/// The same for any statistic. It sees the values of the drawn scenarios one after another.
pub fn cluster_bootstrap_ci_of<G: AsRef<[f64]>>(
    groups: &[G],
    statistic: impl Fn(&[f64]) -> f64 + Sync,
    options: &BootstrapOptions,
) -> Option<ConfidenceInterval> {
    let statistic = &statistic;
    cluster_interval(groups, options, false, |samples| {
        let samples = samples.to_vec();
        move |counts: &[u32]| {
            let repeated = samples.iter().zip(counts);
            let drawn: Vec<f64> = repeated
                .flat_map(|(sample, &count)| sample.values().repeat(count as usize))
                .collect();
            statistic(&drawn)
        }
    })
}

fn cluster_interval<G: AsRef<[f64]>, S: Fn(&[u32]) -> f64 + Sync>(
    groups: &[G],
    options: &BootstrapOptions,
    is_quantile: bool,
    prepare: impl FnOnce(&[Sample]) -> S,
) -> Option<ConfidenceInterval> {
    let scenarios = Scenarios::new(groups);
    let samples = &scenarios.samples;
    if samples.len() < 2 {
        return None;
    }
    let statistic = prepare(samples);
    let point_estimate = statistic(&vec![1; samples.len()]);
    if !point_estimate.is_finite() {
        return None;
    }
    let mut interval = ConfidenceInterval {
        scope: Some(Scope::Population),
        non_finite: scenarios.non_finite,
        warnings: scenarios.warnings(),
        ..zero_width(point_estimate, options)
    };
    interval.method = chosen_method(
        options.method,
        is_quantile,
        samples.len(),
        &mut interval.warnings,
    );
    let stream = Stream::for_purpose(options.seed, "cluster");
    let draws = cluster_replicates(stream, samples.len(), options.resamples, &statistic);
    let request = Request {
        point_estimate,
        units: samples.len(),
        level: options.confidence_level,
    };
    let jackknife = || leave_one_out(samples.len(), &statistic);
    let bounds = Replicates::new(draws).bounds(interval.method, &request, jackknife)?;
    interval.lower = bounds.lower;
    interval.upper = bounds.upper;
    interval.degenerate = bounds.lower == bounds.upper;
    Some(interval)
}

/// Replicates of a function of how often each scenario was drawn.
pub(crate) fn cluster_replicates(
    stream: Stream,
    scenarios: usize,
    resamples: usize,
    statistic: &(impl Fn(&[u32]) -> f64 + Sync),
) -> Vec<f64> {
    stream.replicates(
        resamples,
        || vec![0_u32; scenarios],
        |generator, counts| {
            draw_counts(generator, counts);
            statistic(counts)
        },
    )
}

fn draw_counts(generator: &mut Generator, counts: &mut [u32]) {
    counts.fill(0);
    for _ in 0..counts.len() {
        counts[index(generator, counts.len())] += 1;
    }
}

fn leave_one_out(scenarios: usize, statistic: &impl Fn(&[u32]) -> f64) -> Vec<f64> {
    let mut counts = vec![1; scenarios];
    (0..scenarios)
        .map(|left_out| {
            counts[left_out] = 0;
            let value = statistic(&counts);
            counts[left_out] = 1;
            value
        })
        .collect()
}

/// The runs of all scenarios, arranged so that the statistic of any mix of scenarios is cheap.
pub(crate) enum Pool {
    Quantile {
        share: f64,
        ranked: Ranked,
    },
    Mean {
        totals: Vec<f64>,
        sizes: Vec<u64>,
        scale: Scale,
    },
}

impl Pool {
    pub(crate) fn new<'a>(
        samples: impl Iterator<Item = &'a Sample> + Clone,
        statistic: Statistic,
    ) -> Self {
        match statistic.share() {
            Some(share) => Self::Quantile {
                share,
                ranked: Ranked::new(&samples.collect::<Vec<_>>()),
            },
            None => {
                let scale = common_scale(samples.clone());
                let total = |sample: &Sample| sample.mean() * scale.inverse * sample.count() as f64;
                let totals = samples.clone().map(total).collect();
                Self::Mean {
                    totals,
                    sizes: samples.map(size).collect(),
                    scale,
                }
            }
        }
    }

    /// The statistic when scenario `s` is in the mix `counts[s]` times; the mix must not be empty.
    pub(crate) fn statistic(&self, counts: &[u32]) -> f64 {
        match self {
            Self::Quantile { share, ranked } => ranked.quantile(counts, *share),
            Self::Mean {
                totals,
                sizes,
                scale,
            } => {
                let weighted: f64 = totals
                    .iter()
                    .zip(counts)
                    .map(|(total, &count)| total * f64::from(count))
                    .sum();
                weighted / runs(sizes, counts) as f64 * scale.unit
            }
        }
    }
}

/// All runs in ascending order with their scenarios, and how many runs of each scenario lie below some of them.
///
/// A quantile of a mix of scenarios is then a binary search over the table and a short walk, not a sort of all runs.
pub(crate) struct Ranked {
    values: Vec<f64>,
    scenarios: Vec<u32>,
    sizes: Vec<u64>,
    stride: usize,
    /// Row r holds, for each scenario, its runs among the first `r * stride` values.
    below: Vec<u32>,
}

impl Ranked {
    fn new(samples: &[&Sample]) -> Self {
        let mut runs: Vec<(f64, u32)> =
            Vec::with_capacity(samples.iter().map(|sample| sample.count()).sum());
        for (scenario, sample) in (0_u32..).zip(samples) {
            runs.extend(sample.values().iter().map(|&value| (value, scenario)));
        }
        // Each scenario's runs are sorted, so that there is only to merge; equal values stay in the order of scenarios.
        runs.sort_by(|left, right| left.0.total_cmp(&right.0));
        // At least as many values per row as there are scenarios: the table is no larger than the runs.
        let stride = samples.len().max(16);
        let mut below = Vec::with_capacity((runs.len() / stride + 1) * samples.len());
        let mut seen = vec![0_u32; samples.len()];
        for (position, (_, scenario)) in runs.iter().enumerate() {
            if position % stride == 0 {
                below.extend_from_slice(&seen);
            }
            seen[*scenario as usize] += 1;
        }
        Self {
            values: runs.iter().map(|run| run.0).collect(),
            scenarios: runs.iter().map(|run| run.1).collect(),
            sizes: samples.iter().map(|sample| size(sample)).collect(),
            stride,
            below,
        }
    }

    fn quantile(&self, counts: &[u32], share: f64) -> f64 {
        let all = runs(&self.sizes, counts);
        let rank = Rank::new(share, all as usize);
        if let ([first, .., last], true) = (&self.values[..], all > 0)
            && first.to_bits() == last.to_bits()
        {
            return between(*first, *last, rank.weight);
        }
        let mut reached = 0;
        let row = self.row_up_to(rank.below as u64, counts, all, &mut reached);
        let mut position = row * self.stride;
        let mut next_above = |wanted: usize| {
            while reached <= wanted as u64 {
                reached += u64::from(counts[self.scenarios[position] as usize]);
                position += 1;
            }
            self.values[position - 1]
        };
        let low = next_above(rank.below);
        between(low, next_above(rank.above()), rank.weight)
    }

    /// A row with at most `wanted` of all runs of the mix before it, the last one or a little before that; `reached` receives how many
    /// runs those are.
    ///
    /// Most mixes look alike all over, so that the row is near the share of runs before it.
    fn row_up_to(&self, wanted: u64, counts: &[u32], all: u64, reached: &mut u64) -> usize {
        /// Looks by share, before the rest is halved.
        const GUESSES: usize = 4;
        let (mut low, mut high) = (0, self.below.len() / counts.len());
        // Walking over two rows takes no longer than looking at one more.
        let near = 2 * all / (high as u64).max(1);
        let rows_per_run = high as f64 / all.max(1) as f64;
        let mut guess = wanted as f64 * rows_per_run;
        for look in 0.. {
            if high - low <= 1 {
                break;
            }
            let middle = match look < GUESSES {
                true => (guess as usize).clamp(low + 1, high - 1),
                false => (low + high) / 2,
            };
            let row = &self.below[middle * counts.len()..(middle + 1) * counts.len()];
            let before = weighted(row, counts);
            if before <= wanted {
                low = middle;
                *reached = before;
                if wanted - before < near {
                    break;
                }
            } else {
                high = middle;
            }
            guess = middle as f64 + (wanted as f64 - before as f64) * rows_per_run;
        }
        low
    }
}

fn weighted(row: &[u32], counts: &[u32]) -> u64 {
    row.iter()
        .zip(counts)
        .map(|(&runs, &count)| u64::from(runs) * u64::from(count))
        .sum()
}

fn size(sample: &Sample) -> u64 {
    sample.count() as u64
}

fn runs(sizes: &[u64], counts: &[u32]) -> u64 {
    sizes
        .iter()
        .zip(counts)
        .map(|(size, &count)| size * u64::from(count))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;

    fn scenarios(count: usize, runs: usize) -> Vec<Sample> {
        let mut generator = Stream::for_purpose(3, "scenarios").generator(0);
        (0..count)
            .map(|scenario| {
                let size = 1 + (scenario * 7) % runs;
                let values: Vec<f64> = (0..size)
                    .map(|_| (unit(&mut generator) * 50.0).floor())
                    .collect();
                Sample::new(&values).unwrap()
            })
            .collect()
    }

    #[test]
    fn ranks_give_the_quantile_of_the_written_out_mix() {
        let samples = scenarios(70, 40);
        let mut generator = Stream::for_purpose(5, "mix").generator(0);
        let mut counts = vec![0; samples.len()];
        for statistic in [
            Statistic::Median,
            Statistic::P90,
            Statistic::Min,
            Statistic::Max,
            Statistic::Mean,
        ] {
            let pool = Pool::new(samples.iter(), statistic);
            for _ in 0..50 {
                draw_counts(&mut generator, &mut counts);
                let mix: Vec<f64> = samples
                    .iter()
                    .zip(&counts)
                    .flat_map(|(sample, &count)| sample.values().repeat(count as usize))
                    .collect();
                let expected = statistic.of(&Sample::new(&mix).unwrap());
                assert!(
                    (pool.statistic(&counts) - expected).abs() < 1e-12,
                    "{statistic:?}"
                );
            }
        }
    }

    #[test]
    fn one_scenario_says_nothing_about_others() {
        assert_eq!(
            cluster_bootstrap_ci(&[vec![1.0, 2.0, 3.0]], &BootstrapOptions::clustered()),
            None
        );
    }

    #[test]
    fn a_closure_gives_the_interval_of_the_built_in_statistic() {
        let groups = [
            vec![1.0, 2.0, 3.0],
            vec![4.0, 6.0],
            vec![2.0, 2.0, 9.0],
            vec![7.0],
        ];
        let options = BootstrapOptions {
            statistic: Statistic::Mean,
            ..BootstrapOptions::clustered()
        };
        let built_in = cluster_bootstrap_ci(&groups, &options).unwrap();
        let mean = |drawn: &[f64]| drawn.iter().sum::<f64>() / drawn.len() as f64;
        let closure = cluster_bootstrap_ci_of(&groups, mean, &options).unwrap();
        assert!((built_in.lower - closure.lower).abs() < 1e-12);
        assert!((built_in.upper - closure.upper).abs() < 1e-12);
    }
}
