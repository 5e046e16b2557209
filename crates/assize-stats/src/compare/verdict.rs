//! From numbers to a word: better, worse, equivalent, not comparable, or cannot tell.

use super::draft::Draft;
use super::limited::Limited;
use super::plan::baseline_size;
use super::selection::{Matching, Selection};
use super::success::SuccessDraft;
use super::{CompareOptions, Family, Metric};
use crate::adjust::{AdjustMethod, adjust_p_values};
use crate::count::CountDifference;
use crate::effect::{Effect, Measure};
use crate::equivalence::within;
use crate::gate::Direction;
use crate::interval::{Level, Scope};
use crate::limited::LimitedVerdict;
use crate::paired::PairedComparison;
use crate::stopping::{Asked, LookFacts, Looks};
use crate::verdict::Verdict;

/// With so few tasks a verdict applies to exactly these.
const FEW_TASKS: usize = 4;

/// The scope that a verdict on so many tasks has.
pub(super) fn verdict_scope(wanted: Scope, tasks: usize) -> Scope {
    if tasks <= FEW_TASKS {
        Scope::Suite
    } else {
        wanted
    }
}

/// The evidence for a verdict on a metric, besides the adjusted p-value.
pub(super) struct Evidence {
    /// The reason why there can be no verdict.
    pub(super) reason: Option<&'static str>,
    pub(super) finding: Finding,
}

/// The direction of the data, and its certainty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finding {
    pub(super) side: Side,
    pub(super) is_equivalent: bool,
    /// The p-value of the number that decides; none when nothing can be decided.
    pub(super) p_value: Option<f64>,
    /// Nothing varied inside any task, so the difference on exactly these tasks is known.
    pub(super) is_certain: bool,
}

/// The side on which the whole interval of the difference lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Side {
    Lower,
    Higher,
    #[default]
    Both,
}

impl Side {
    /// Of an interval of A minus B.
    pub(super) fn of_difference(lower: f64, upper: f64) -> Self {
        match () {
            () if upper < 0.0 => Self::Lower,
            () if lower > 0.0 => Self::Higher,
            () => Self::Both,
        }
    }
}

impl Evidence {
    pub(super) fn new(selection: &Selection, metric: &Metric<'_>, finding: Finding) -> Self {
        let reason = if selection.pairs.is_empty() {
            Some("a mode has no finite measurement")
        } else if selection.design == Matching::Disjoint {
            Some("no scenario was run by both modes")
        } else if metric.direction.is_none() {
            Some("no direction is declared for this metric")
        } else {
            None
        };
        Self { reason, finding }
    }
}

impl Finding {
    pub(super) fn of_paired(
        selection: &Selection,
        metric: &Metric<'_>,
        decisive: &PairedComparison,
        options: &CompareOptions<'_>,
    ) -> Self {
        let side = side(decisive);
        let is_exact = decisive.scope == Scope::Suite && decisive.degenerate;
        Self {
            side,
            is_equivalent: is_equivalent(selection, metric, decisive, options),
            p_value: decisive.p_value,
            is_certain: is_exact && side != Side::Both,
        }
    }

    /// Cut-off runs are never shown to be equivalent.
    pub(super) fn of_limited(limited: &Limited) -> Self {
        let side = match limited.comparison.verdict {
            LimitedVerdict::More => Side::Higher,
            LimitedVerdict::Less => Side::Lower,
            LimitedVerdict::Inconclusive => Side::Both,
        };
        Self {
            side,
            p_value: limited.comparison.p_value,
            ..Self::default()
        }
    }

    /// A margin in percent says nothing about counts that are mostly zero.
    pub(super) fn of_count(count: &CountDifference) -> Self {
        let side = match (count.lower, count.upper) {
            (Some(lower), Some(upper)) if count.excludes_zero => Side::of_difference(lower, upper),
            _ => Side::Both,
        };
        Self {
            side,
            p_value: count.p_value,
            ..Self::default()
        }
    }
}

/// The rule that chooses a word once the p-value is adjusted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wording {
    /// The better direction; only declared metrics have better and worse.
    pub(super) direction: Option<Direction>,
    pub(super) exploratory: bool,
    pub(super) alpha: f64,
}

pub(super) fn judge(evidence: &Evidence, p_adjusted: Option<f64>, wording: Wording) -> Verdict {
    match evidence.reason {
        Some(_) => Verdict::NotComparable,
        None => word(&evidence.finding, p_adjusted, wording),
    }
}

pub(super) fn word(finding: &Finding, p_adjusted: Option<f64>, wording: Wording) -> Verdict {
    // An error rate of 1 - 0.95 is a hair above 0.05; the slack keeps p = 0.05 on the right side either way.
    let is_significant = p_adjusted.is_some_and(|p| p <= wording.alpha + 1e-12);
    let is_shown = is_significant || finding.is_certain;
    match (finding.side, wording.direction) {
        (Side::Lower, _) if is_shown && wording.exploratory => Verdict::Lower,
        (Side::Higher, _) if is_shown && wording.exploratory => Verdict::Higher,
        (Side::Lower, Some(Direction::Lower)) | (Side::Higher, Some(Direction::Higher))
            if is_shown =>
        {
            Verdict::Better
        }
        (Side::Lower | Side::Higher, Some(_)) if is_shown => Verdict::Worse,
        _ if finding.is_equivalent && !wording.exploratory => Verdict::Equivalent,
        _ => Verdict::Inconclusive,
    }
}

/// Holm over the declared metrics and pairs of the family, Benjamini-Hochberg over all others.
pub(super) fn adjust_families(
    sets: &mut [(Vec<Draft>, Vec<SuccessDraft>)],
    options: &CompareOptions<'_>,
) {
    let together = match options.family {
        Family::Report => sets.len().max(1),
        Family::Model => 1,
    };
    for sets in sets.chunks_mut(together) {
        for method in [AdjustMethod::Holm, AdjustMethod::Bh] {
            adjust(sets, method, options.looks);
        }
    }
}

fn adjust(
    sets: &mut [(Vec<Draft>, Vec<SuccessDraft>)],
    method: AdjustMethod,
    looks: Option<&Looks>,
) {
    let mut members: Vec<&mut dyn Member> = Vec::new();
    for (metrics, successes) in sets {
        members.extend(metrics.iter_mut().map(|draft| draft as &mut dyn Member));
        members.extend(successes.iter_mut().map(|draft| draft as &mut dyn Member));
    }
    members.retain(|member| member.adjust_method() == method);
    if let Some(looks) = looks {
        for member in &mut members {
            member.pay(looks);
        }
    }
    let p_values: Vec<Option<f64>> = members.iter().map(|member| member.p_value()).collect();
    let family_size = p_values.iter().flatten().count();
    for (member, adjusted) in members.iter_mut().zip(adjust_p_values(&p_values, method)) {
        member.take_adjusted(adjusted, family_size);
    }
}

/// A comparison whose p-value belongs to a family.
pub(super) trait Member {
    fn adjust_method(&self) -> AdjustMethod;
    fn p_value(&self) -> Option<f64>;
    /// Replaces the p-value by one that pays for all looks.
    fn pay(&mut self, looks: &Looks);
    fn take_adjusted(&mut self, p_adjusted: Option<f64>, family_size: usize);
}

impl Member for Draft {
    fn adjust_method(&self) -> AdjustMethod {
        self.comparison.adjust_method
    }

    fn p_value(&self) -> Option<f64> {
        self.comparison.p_look.or_else(|| Draft::p_value(self))
    }

    fn pay(&mut self, looks: &Looks) {
        let found = &self.comparison;
        let facts = LookFacts {
            scope: found.scope,
            scenarios: found.scenarios as u64,
            rounds: found.repetitions as f64,
            components: found.plan_basis.map(|basis| basis.components),
        };
        let asked = Asked {
            mode_a: &found.mode_a,
            mode_b: &found.mode_b,
            metric: &found.metric,
        };
        self.comparison.p_look = looks.pay(Draft::p_value(self), &asked, &facts);
    }

    fn take_adjusted(&mut self, p_adjusted: Option<f64>, family_size: usize) {
        self.comparison.p_adjusted = p_adjusted;
        self.comparison.family_size = family_size;
    }
}

fn side(comparison: &PairedComparison) -> Side {
    let (Some(lower), Some(upper)) = (comparison.lower, comparison.upper) else {
        return Side::Both;
    };
    match comparison.measure {
        // A reduction above zero means that A is lower.
        Measure::LogRatio => Side::of_difference(-upper, -lower),
        Measure::Difference => Side::of_difference(lower, upper),
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
    if effect.is_constant() {
        // Equal medians of runs that differ show nothing; equal runs do.
        let repeats = |pair: &crate::scenario::Pair| pair.a.is_constant() && pair.b.is_constant();
        return effect.mean == 0.0 && selection.pairs.iter().all(repeats);
    }
    let limit = match measure {
        Measure::LogRatio => libm::log1p(margin),
        Measure::Difference => margin * baseline_size(&selection.pairs, statistic),
    };
    let alpha = Level::new(options.confidence_level.complement());
    alpha.is_ok_and(|alpha| limit > 0.0 && within(&effect, -limit, limit, alpha).equivalent)
}
