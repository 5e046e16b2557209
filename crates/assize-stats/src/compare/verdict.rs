//! From numbers to a word: better, worse, equivalent, not comparable, or cannot tell.

use serde::Serialize;

use super::draft::Draft;
use super::plan::baseline_size;
use super::selection::{Matching, Selection};
use super::success::SuccessDraft;
use super::{CompareOptions, Metric};
use crate::adjust::{AdjustMethod, adjust_p_values};
use crate::effect::{Effect, Measure};
use crate::equivalence::within;
use crate::gate::Direction;
use crate::interval::Level;
use crate::paired::PairedComparison;

/// What the data say about A compared with B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A is better: the interval excludes no difference and the adjusted p-value is small.
    Better,
    /// A is worse, by the same measure.
    Worse,
    /// The difference is shown to be smaller than the margin.
    Equivalent,
    /// The data fit both; never to be read as "no difference".
    Inconclusive,
    /// There is no meaningful comparison; `reason` says why.
    NotComparable,
}

/// What a verdict on a metric rests on, besides the adjusted p-value.
pub(super) struct Evidence {
    /// Why there can be no verdict.
    pub(super) reason: Option<&'static str>,
    /// Whether A lies clearly on the better or worse side of B.
    side: Side,
    is_equivalent: bool,
}

/// Where the whole interval of the difference lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Better,
    Worse,
    Both,
}

impl Evidence {
    pub(super) fn new(
        selection: &Selection,
        metric: &Metric<'_>,
        decisive: &PairedComparison,
        options: &CompareOptions<'_>,
    ) -> Self {
        let reason = if selection.pairs.is_empty() {
            Some("a mode has no finite measurement")
        } else if selection.design == Matching::Disjoint {
            Some("no scenario was run by both modes")
        } else if metric.direction.is_none() {
            Some("no direction is declared for this metric")
        } else {
            None
        };
        let side = metric
            .direction
            .map_or(Side::Both, |direction| side(decisive, direction));
        Self {
            reason,
            side,
            is_equivalent: is_equivalent(selection, metric, decisive, options),
        }
    }
}

pub(super) fn judge(evidence: &Evidence, p_adjusted: Option<f64>, alpha: f64) -> Verdict {
    match evidence {
        Evidence {
            reason: Some(_), ..
        } => Verdict::NotComparable,
        Evidence {
            side,
            is_equivalent,
            ..
        } => word(*side, *is_equivalent, p_adjusted, alpha),
    }
}

pub(super) fn word(
    side: Side,
    is_equivalent: bool,
    p_adjusted: Option<f64>,
    alpha: f64,
) -> Verdict {
    // An error rate of 1 - 0.95 is a hair above 0.05; the slack keeps p = 0.05 on the right side either way.
    let is_significant = p_adjusted.is_some_and(|p| p <= alpha + 1e-12);
    match side {
        Side::Better if is_significant => Verdict::Better,
        Side::Worse if is_significant => Verdict::Worse,
        _ if is_equivalent => Verdict::Equivalent,
        _ => Verdict::Inconclusive,
    }
}

/// Holm over the declared metrics and pairs, Benjamini-Hochberg over all others.
pub(super) fn adjust_family(metrics: &mut [Draft], successes: &mut [SuccessDraft]) {
    for method in [AdjustMethod::Holm, AdjustMethod::Bh] {
        let mut members: Vec<&mut dyn Member> = metrics
            .iter_mut()
            .map(|draft| draft as &mut dyn Member)
            .collect();
        members.extend(successes.iter_mut().map(|draft| draft as &mut dyn Member));
        members.retain(|member| member.adjust_method() == method);
        let p_values: Vec<Option<f64>> = members.iter().map(|member| member.p_value()).collect();
        let family_size = p_values.iter().flatten().count();
        for (member, adjusted) in members.iter_mut().zip(adjust_p_values(&p_values, method)) {
            member.take_adjusted(adjusted, family_size);
        }
    }
}

/// A comparison whose p-value belongs to a family.
pub(super) trait Member {
    fn adjust_method(&self) -> AdjustMethod;
    fn p_value(&self) -> Option<f64>;
    fn take_adjusted(&mut self, p_adjusted: Option<f64>, family_size: usize);
}

impl Member for Draft {
    fn adjust_method(&self) -> AdjustMethod {
        self.comparison.adjust_method
    }

    fn p_value(&self) -> Option<f64> {
        Draft::p_value(self)
    }

    fn take_adjusted(&mut self, p_adjusted: Option<f64>, family_size: usize) {
        self.comparison.p_adjusted = p_adjusted;
        self.comparison.family_size = family_size;
    }
}

fn side(comparison: &PairedComparison, direction: Direction) -> Side {
    let (Some(lower), Some(upper)) = (comparison.lower, comparison.upper) else {
        return Side::Both;
    };
    // A reduction above zero and a difference below zero both mean that A is lower.
    let (a_is_lower, a_is_higher) = match comparison.measure {
        Measure::LogRatio => (lower > 0.0, upper < 0.0),
        Measure::Difference => (upper < 0.0, lower > 0.0),
    };
    match (a_is_lower, a_is_higher, direction) {
        (true, _, Direction::Lower) | (_, true, Direction::Higher) => Side::Better,
        (true, _, Direction::Higher) | (_, true, Direction::Lower) => Side::Worse,
        _ => Side::Both,
    }
}

/// Two one-sided tests at the configured margin: a share of B, on the scale of the comparison.
fn is_equivalent(
    selection: &Selection,
    metric: &Metric<'_>,
    decisive: &PairedComparison,
    options: &CompareOptions<'_>,
) -> bool {
    let Some(margin) = options.equivalence_margin else {
        return false;
    };
    let (statistic, measure) = (metric.statistic, decisive.measure);
    let Some(effect) = Effect::new(&selection.pairs, decisive.scope, statistic, measure) else {
        return false;
    };
    if effect.is_constant() && effect.mean == 0.0 {
        return true;
    }
    let limit = match measure {
        Measure::LogRatio => libm::log1p(margin),
        Measure::Difference => margin * baseline_size(&selection.pairs, statistic),
    };
    let alpha = Level::new(options.confidence_level.complement());
    alpha.is_ok_and(|alpha| limit > 0.0 && within(&effect, -limit, limit, alpha).equivalent)
}
