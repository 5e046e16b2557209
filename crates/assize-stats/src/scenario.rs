//! Runs grouped by scenario, checked once: groups of one mode, and scenarios that both modes ran.

use std::cmp::Ordering;

use crate::error::{StatsError, same_length};
use crate::sample::{Sample, Scale, Screened};
use crate::warning::{Warning, Warnings};

/// Below this many scenarios intervals for new tasks are wide and say so.
const FEW_SCENARIOS: usize = 6;
/// Below this many runs a group is small.
pub(crate) const SMALL_GROUP: usize = 5;

/// One mode's scenarios that have at least one finite run. The order is by content, so the input's does not matter.
pub(crate) struct Scenarios {
    pub(crate) samples: Vec<Sample>,
    pub(crate) non_finite: usize,
}

impl Scenarios {
    pub(crate) fn new<G: AsRef<[f64]>>(groups: &[G]) -> Self {
        let screened: Vec<Screened> = groups
            .iter()
            .map(|group| Screened::new(group.as_ref()))
            .collect();
        let non_finite = screened.iter().map(|group| group.non_finite).sum();
        let mut samples: Vec<Sample> = screened
            .into_iter()
            .filter_map(|group| group.sample)
            .collect();
        samples.sort_by(by_content);
        Self {
            samples,
            non_finite,
        }
    }

    pub(crate) fn warnings(&self) -> Warnings {
        let mut warnings = scenario_warnings(self.samples.len(), self.non_finite);
        warnings.add_if(
            self.samples
                .iter()
                .any(|sample| sample.count() < SMALL_GROUP),
            Warning::SmallN,
        );
        warnings
    }
}

/// The runs of one scenario under both modes.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) a: Sample,
    pub(crate) b: Sample,
}

/// Scenarios with finite runs of both modes.
pub(crate) struct Matched {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) non_finite: usize,
    pub(crate) unmatched: usize,
}

impl Matched {
    /// Scenario `s` of A belongs to scenario `s` of B.
    pub(crate) fn new<G: AsRef<[f64]>>(a: &[G], b: &[G]) -> Result<Self, StatsError> {
        same_length(a.len(), b.len())?;
        Ok(Self::paired_up(a, b))
    }

    /// The same for lists known to be of equal length.
    pub(crate) fn paired_up<G: AsRef<[f64]>>(a: &[G], b: &[G]) -> Self {
        let mut matched = Self {
            pairs: Vec::with_capacity(a.len()),
            non_finite: 0,
            unmatched: 0,
        };
        for (a, b) in a.iter().zip(b) {
            matched.push(Screened::new(a.as_ref()), Screened::new(b.as_ref()));
        }
        matched.pairs.sort_by(|left, right| {
            by_content(&left.a, &right.a).then(by_content(&left.b, &right.b))
        });
        matched
    }

    fn push(&mut self, a: Screened, b: Screened) {
        self.non_finite += a.non_finite + b.non_finite;
        match a.sample.zip(b.sample) {
            Some((a, b)) => self.pairs.push(Pair { a, b }),
            None => self.unmatched += 1,
        }
    }

    pub(crate) fn warnings(&self) -> Warnings {
        let mut warnings = scenario_warnings(self.pairs.len(), self.non_finite);
        warnings.add_if(self.unmatched > 0, Warning::UnmatchedScenarios);
        warnings.add_if(has_small_group(&self.pairs), Warning::SmallN);
        warnings
    }
}

pub(crate) fn scenario_warnings(scenarios: usize, non_finite: usize) -> Warnings {
    let mut warnings = Warnings::default();
    warnings.add_if(non_finite > 0, Warning::NonFiniteDropped);
    warnings.add_if(scenarios < FEW_SCENARIOS, Warning::FewScenarios);
    warnings.add_if(scenarios == 1, Warning::SingleScenario);
    warnings
}

pub(crate) fn has_small_group(pairs: &[Pair]) -> bool {
    pairs
        .iter()
        .any(|pair| pair.a.count() < SMALL_GROUP || pair.b.count() < SMALL_GROUP)
}

/// A power of two near the largest magnitude of any sample.
pub(crate) fn common_scale<'a>(samples: impl Iterator<Item = &'a Sample>) -> Scale {
    Scale::of(
        samples
            .map(|sample| sample.min().abs().max(sample.max().abs()))
            .fold(0.0, f64::max),
    )
}

pub(crate) fn by_content(left: &Sample, right: &Sample) -> Ordering {
    left.values()
        .partial_cmp(right.values())
        .unwrap_or(Ordering::Equal)
}
