//! The comparison inside scenarios, for new tasks like these and for exactly these.

use super::metric::{PairedSummary, SuiteSummary};
use super::selection::{Matching, Selection};
use super::verdict::verdict_scope;
use super::{CompareOptions, ModePair};
use crate::effect::{Measure, ScenarioEffects};
use crate::interval::Scope;
use crate::paired::{PairedComparison, PairedOptions, compare, natural_measure};
use crate::permutation::{PermutationOptions, sign_flip_from};
use crate::random::Stream;
use crate::sample::{Sample, finite};
use crate::scenario::Pair;
use crate::statistic::Statistic;
use crate::warning::Warnings;

/// The comparison inside scenarios, in both scopes.
pub(super) struct Headline {
    pub(super) scope: Scope,
    pub(super) paired: PairedComparison,
    suite: PairedComparison,
    sign_flip_p: f64,
}

impl Headline {
    pub(super) fn new(
        selection: &Selection,
        statistic: Statistic,
        modes: ModePair<'_>,
        options: &CompareOptions<'_>,
    ) -> Self {
        let pairs = &selection.pairs;
        let options_in = |scope| PairedOptions {
            statistic,
            confidence_level: options.confidence_level,
            scope,
        };
        let measure = natural_measure(pairs, statistic);
        let effects = ScenarioEffects::new(pairs, statistic, measure)
            .map_or(Vec::new(), |effects| effects.values);
        let flips = PermutationOptions {
            permutations: options.permutations,
            seed: options.seed,
            ..Default::default()
        };
        let stream = Stream::for_pair(options.seed, modes.a, modes.b, "sign-flip");
        Self {
            scope: verdict_scope(options.scope, pairs.len()),
            paired: compare(
                pairs,
                measure,
                &options_in(Scope::Population),
                Warnings::default(),
            ),
            suite: compare(
                pairs,
                every_run_measure(pairs),
                &options_in(Scope::Suite),
                Warnings::default(),
            ),
            sign_flip_p: sign_flip_from(&effects, &flips, stream).p_value,
        }
    }

    /// The comparison that the verdict rests on.
    pub(super) fn decisive(&self) -> &PairedComparison {
        match self.scope {
            Scope::Population => &self.paired,
            Scope::Suite => &self.suite,
        }
    }

    pub(super) fn paired_summary(&self, selection: &Selection) -> Option<PairedSummary> {
        let paired = &self.paired;
        let ci95 = bounds(paired).filter(|_| selection.design == Matching::Labelled)?;
        Some(PairedSummary {
            measure: paired.measure,
            reduction_pct: paired.reduction_pct,
            difference: paired.difference,
            ci95,
            p_value: paired.p_value,
            sign_flip_p: self.sign_flip_p,
            scenarios_lower: paired.scenarios_lower,
            scenarios_higher: paired.scenarios_higher,
            degenerate: paired.degenerate,
        })
    }

    pub(super) fn suite_summary(&self) -> Option<SuiteSummary> {
        let PairedComparison {
            measure,
            reduction_pct,
            difference,
            ..
        } = self.suite;
        Some(SuiteSummary {
            measure,
            reduction_pct,
            difference,
            ci95: bounds(&self.suite)?,
            p_value: self.suite.p_value,
            degenerate: self.suite.degenerate,
        })
    }
}

/// The suite scope takes logs of every run, so every run must be above zero for ratios.
fn every_run_measure(pairs: &[Pair]) -> Measure {
    natural_measure(pairs, Statistic::Min)
}

fn bounds(comparison: &PairedComparison) -> Option<[f64; 2]> {
    Some([comparison.lower?, comparison.upper?])
}

/// The typical values of A and B over scenarios whose ratio, or difference, is the number that decides.
pub(super) fn typical_values(
    selection: &Selection,
    statistic: Statistic,
    decisive: &PairedComparison,
) -> [Option<f64>; 2] {
    if decisive.lower.is_none() {
        return [None, None];
    }
    let of_scenario = |sample: &Sample| match (decisive.scope, decisive.measure) {
        (Scope::Population, Measure::LogRatio) => Some(libm::log(statistic.of(sample))),
        (Scope::Population, Measure::Difference) => Some(statistic.of(sample)),
        (Scope::Suite, Measure::LogRatio) => Some(sample.logs()?.mean()),
        (Scope::Suite, Measure::Difference) => Some(sample.mean()),
    };
    let over_scenarios = |side: fn(&Pair) -> &Sample| {
        let values = selection.pairs.iter().map(|pair| of_scenario(side(pair)));
        let mean = Sample::new(&values.collect::<Option<Vec<f64>>>()?)?.mean();
        Some(match decisive.measure {
            Measure::LogRatio => finite(libm::exp(mean)),
            Measure::Difference => mean,
        })
    };
    [
        over_scenarios(|pair| &pair.a),
        over_scenarios(|pair| &pair.b),
    ]
}
