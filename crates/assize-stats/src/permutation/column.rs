//! One metric prepared for relabeling, and the share of relabelings that are at least as extreme as the real labels.

use super::{Alternative, PermutationTest, relabel};
use crate::sample::{Sample, finite};
use crate::scenario::{Pair, common_scale};
use crate::special::normal_cdf;
use crate::warning::Warnings;

/// As many relabelings are enumerated; beyond that they are drawn.
const ENUMERATED: u64 = 50_000;
/// With so many runs, relabelings of a metric that decides nothing are not drawn: their sums are normally distributed.
const NORMAL: usize = 1_000;
/// Relative slack that makes ties hidden by rounding count as ties.
const SLACK: f64 = 1e-12;

/// The number of runs with label A and of all runs, for each scenario in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout(pub(super) Vec<Labels>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) runs: usize,
    pub(crate) chosen: usize,
}

/// One metric, prepared so that the test statistic of a relabeling is the sum of the chosen entries.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) layout: Layout,
    /// Scenario after scenario, ascending inside each: the order must not depend on the labels.
    pub(crate) entries: Vec<f64>,
    pub(crate) extreme: Extreme,
    observed_difference: f64,
}

impl Column {
    /// None unless at least one scenario has runs of both modes.
    pub(crate) fn new(pairs: &[Pair], alternative: Alternative) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let scale = common_scale(pairs.iter().flat_map(|pair| [&pair.a, &pair.b]));
        let mut column = Builder {
            share: 1.0 / pairs.len() as f64,
            ..Builder::default()
        };
        for pair in pairs {
            column.push(
                &pair.a.scaled(scale.inverse / 2.0),
                &pair.b.scaled(scale.inverse / 2.0),
            );
        }
        let extreme = Extreme {
            offset: column.offset,
            ..Extreme::new(column.observed, column.largest, alternative)
        };
        let observed_difference = finite(column.observed * 2.0 * scale.unit);
        Some(Self {
            layout: Layout(column.labels),
            entries: column.entries,
            extreme,
            observed_difference,
        })
    }

    /// True when every relabeling has the sum 0, because nothing varies inside a scenario.
    pub(super) fn is_constant(&self) -> bool {
        self.entries.iter().all(|entry| *entry == 0.0)
    }

    /// The exact answer; none when there are too many relabelings.
    pub(super) fn enumerate(&self, permutations: usize) -> Option<PermutationTest> {
        let sums = relabel::all_sums(&self.layout, &self.entries, ENUMERATED)?;
        let share = Share::enumerated(&sums, &self.extreme);
        Some(PermutationTest {
            exact: true,
            ..self.answer(share, permutations)
        })
    }

    /// The two-sided p-value by the normal distribution of all relabelings. None for few runs, and where nothing varies.
    pub(crate) fn normal_p(&self) -> Option<f64> {
        if self.entries.len() < NORMAL {
            return None;
        }
        let mut rest = &self.entries[..];
        let mut variance = 0.0;
        for labels in &self.layout.0 {
            let (entries, behind) = rest.split_at(labels.runs);
            rest = behind;
            let runs = labels.runs as f64;
            let mean = entries.iter().sum::<f64>() / runs;
            let squares: f64 = entries.iter().map(|entry| (entry - mean).powi(2)).sum();
            // Without replacement: the last run of a scenario follows from the others.
            let chosen = labels.chosen as f64;
            variance += chosen * (runs - chosen) / runs * squares / (runs - 1.0);
        }
        let spread = libm::sqrt(variance);
        (spread > 0.0).then(|| 2.0 * normal_cdf(-self.extreme.observed / spread))
    }

    pub(super) fn answer(&self, share: Share, permutations: usize) -> PermutationTest {
        PermutationTest {
            p_value: share.p_value,
            observed_difference: self.observed_difference,
            permutations,
            exact: false,
            evaluated: share.evaluated,
            min_attainable_p: share.smallest,
            mc_error: share.error,
            non_finite: 0,
            warnings: Warnings::default(),
        }
    }
}

/// Collects strata into a column. Values are at most 1/2 in magnitude, so differences cannot overflow.
#[derive(Default)]
struct Builder {
    share: f64,
    labels: Vec<Labels>,
    entries: Vec<f64>,
    offset: f64,
    observed: f64,
    largest: f64,
}

impl Builder {
    fn push(&mut self, a: &Sample, b: &Sample) {
        let mut runs = [a.values(), b.values()].concat();
        // Two sorted halves: a sort that finds them only merges.
        runs.sort_by(f64::total_cmp);
        // A measured value as the centre keeps differences exact, so that true ties stay ties.
        let centre = runs[runs.len() / 2];
        let total: f64 = runs.iter().map(|value| value - centre).sum();
        let chosen: f64 = a.values().iter().map(|value| value - centre).sum();
        let (count_a, count_b) = (a.count() as f64, b.count() as f64);
        // mean(A) - mean(B) = sum(A) * (1/nA + 1/nB) - total/nB
        let factor = (1.0 / count_a + 1.0 / count_b) * self.share;
        self.offset += total / count_b * self.share;
        self.observed += (chosen / count_a - (total - chosen) / count_b) * self.share;
        self.largest = runs
            .iter()
            .map(|value| (value - centre).abs())
            .fold(self.largest, f64::max);
        self.labels.push(Labels {
            runs: runs.len(),
            chosen: a.count(),
        });
        self.entries
            .extend(runs.iter().map(|value| (value - centre) * factor));
    }
}

/// Decides which sums of chosen entries are at least as extreme as the observed difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extreme {
    offset: f64,
    observed: f64,
    slack: f64,
    alternative: Alternative,
}

impl Extreme {
    pub(super) fn new(observed: f64, largest: f64, alternative: Alternative) -> Self {
        let mut extreme = Self {
            offset: 0.0,
            observed: 0.0,
            slack: SLACK * largest,
            alternative,
        };
        extreme.observed = extreme.size(observed);
        extreme
    }

    pub(crate) fn holds(&self, sum: f64) -> bool {
        self.size(sum) >= self.observed - self.slack
    }

    fn size(&self, sum: f64) -> f64 {
        let difference = sum - self.offset;
        match self.alternative {
            Alternative::TwoSided => difference.abs(),
            Alternative::Less => -difference,
            Alternative::Greater => difference,
        }
    }
}

/// A p-value and how it came about.
pub(super) struct Share {
    pub(super) p_value: f64,
    pub(super) evaluated: u64,
    pub(super) smallest: f64,
    pub(super) error: f64,
}

impl Share {
    pub(super) fn enumerated(sums: &[f64], extreme: &Extreme) -> Self {
        let total = sums.len() as f64;
        let count = sums.iter().filter(|&&sum| extreme.holds(sum)).count();
        let most = sums
            .iter()
            .map(|&sum| extreme.size(sum))
            .fold(f64::NEG_INFINITY, f64::max);
        let at_most = sums
            .iter()
            .filter(|&&sum| extreme.size(sum) >= most - extreme.slack)
            .count();
        Self {
            p_value: count as f64 / total,
            evaluated: sums.len() as u64,
            smallest: at_most as f64 / total,
            error: 0.0,
        }
    }

    /// Counting the observed labels themselves keeps the p-value above 0 and the test valid.
    pub(super) fn drawn(extreme: u64, evaluated: u64) -> Self {
        let total = evaluated as f64 + 1.0;
        let p_value = (extreme as f64 + 1.0) / total;
        Self {
            p_value,
            evaluated,
            smallest: 1.0 / total,
            error: libm::sqrt(p_value * (1.0 - p_value) / total),
        }
    }
}
