//! Success of two modes: rates, their difference in points, and how much the unjudged trials could change it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::verdict::{Member, Side, Verdict, word};
use super::{CompareOptions, ModePair, SuccessCell};
use crate::adjust::AdjustMethod;
use crate::interval::{Level, Scope};
use crate::proportion::{Tally, mcnemar_exact};
use crate::scenario::scenario_warnings;
use crate::success::{SuccessDifference, success_difference_ci};
use crate::warning::{Warning, Warnings};

/// Above this share of unjudged trials the comparison says so.
const MANY_VOID: f64 = 0.05;

/// Success of mode A compared with mode B. A is better when its rate is higher.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessComparison {
    /// The candidate.
    pub mode_a: String,
    /// What it is compared with.
    pub mode_b: String,
    /// Always `success`.
    pub metric: &'static str,
    /// Success rate of A over the compared scenarios.
    pub rate_a: Option<f64>,
    /// Success rate of B.
    pub rate_b: Option<f64>,
    /// Rate A minus rate B in percentage points.
    pub difference_pp: Option<f64>,
    /// Its interval in points.
    pub ci95: Option<[f64; 2]>,
    /// The error rate at which the interval touches 0.
    pub p_value: Option<f64>,
    /// The p-value adjusted for its family.
    pub p_adjusted: Option<f64>,
    /// How it was adjusted.
    pub adjust_method: AdjustMethod,
    /// Number of p-values in the family.
    pub family_size: usize,
    /// Not declared beforehand as a metric to decide by.
    pub exploratory: bool,
    /// Exact test of the discordant pairs; only with one trial per scenario and mode.
    pub mcnemar_p: Option<f64>,
    /// Share of A's trials that could be judged.
    pub coverage_a: Option<f64>,
    /// Share of B's trials that could be judged.
    pub coverage_b: Option<f64>,
    /// The difference in points if all unjudged trials had gone against A, and for A.
    pub void_bounds: Option<[f64; 2]>,
    /// Scenarios with judged trials of both modes.
    pub scenarios: usize,
    /// What the verdict speaks about.
    pub scope: Scope,
    /// The word.
    pub verdict: Verdict,
    /// Why the modes cannot be compared.
    pub reason: Option<&'static str>,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// A comparison that still lacks its adjusted p-value and verdict.
pub(super) struct SuccessDraft {
    comparison: SuccessComparison,
    is_equivalent: bool,
}

/// None when neither mode has a trial.
pub(super) fn draft(
    cells: &[SuccessCell<'_>],
    modes: ModePair<'_>,
    options: &CompareOptions<'_>,
) -> Option<SuccessDraft> {
    let (a, b) = (
        Outcomes::of_mode(cells, modes.a),
        Outcomes::of_mode(cells, modes.b),
    );
    if a.is_empty() && b.is_empty() {
        return None;
    }
    let judged = a.keys().filter(|scenario| {
        a[*scenario].judged() > 0 && b.get(*scenario).is_some_and(|b| b.judged() > 0)
    });
    let matched: Vec<(Outcomes, Outcomes)> =
        judged.map(|scenario| (a[scenario], b[scenario])).collect();
    let (all_a, all_b) = (Outcomes::total(a.values()), Outcomes::total(b.values()));
    let scope = if matched.len() > 1 {
        options.scope
    } else {
        Scope::Suite
    };
    let difference = difference(&matched, scope, options.confidence_level);
    let mut warnings = scenario_warnings(matched.len(), 0);
    let unmatched = matched.len() < a.len() || matched.len() < b.len();
    warnings.add_if(unmatched, Warning::UnmatchedScenarios);
    warnings.add_if(
        all_a.void_share() > MANY_VOID || all_b.void_share() > MANY_VOID,
        Warning::ManyVoid,
    );
    let comparison = SuccessComparison {
        mode_a: modes.a.to_owned(),
        mode_b: modes.b.to_owned(),
        metric: "success",
        rate_a: Outcomes::total(matched.iter().map(|pair| &pair.0)).rate(),
        rate_b: Outcomes::total(matched.iter().map(|pair| &pair.1)).rate(),
        difference_pp: difference.map(|difference| difference.point_estimate * 100.0),
        ci95: difference.map(|difference| [difference.lower * 100.0, difference.upper * 100.0]),
        p_value: difference.map(|difference| difference.p_value),
        p_adjusted: None,
        adjust_method: if options.success_is_primary {
            AdjustMethod::Holm
        } else {
            AdjustMethod::Bh
        },
        family_size: 0,
        exploratory: !options.success_is_primary,
        mcnemar_p: mcnemar(&matched),
        coverage_a: all_a.coverage(),
        coverage_b: all_b.coverage(),
        void_bounds: void_bounds(all_a, all_b),
        scenarios: matched.len(),
        scope,
        verdict: Verdict::Inconclusive,
        reason: matched
            .is_empty()
            .then_some("no scenario has judged trials of both modes"),
        warnings,
    };
    Some(SuccessDraft {
        comparison,
        is_equivalent: is_equivalent(&matched, scope, options),
    })
}

impl SuccessDraft {
    pub(super) fn judged(mut self, options: &CompareOptions<'_>) -> SuccessComparison {
        let alpha = options.confidence_level.complement();
        let side = match self.comparison.ci95 {
            Some([lower, _]) if lower > 0.0 => Side::Better,
            Some([_, upper]) if upper < 0.0 => Side::Worse,
            _ => Side::Both,
        };
        self.comparison.verdict = match self.comparison.reason {
            Some(_) => Verdict::NotComparable,
            None => word(side, self.is_equivalent, self.comparison.p_adjusted, alpha),
        };
        self.comparison
    }
}

impl Member for SuccessDraft {
    fn adjust_method(&self) -> AdjustMethod {
        self.comparison.adjust_method
    }

    fn p_value(&self) -> Option<f64> {
        self.comparison.p_value
    }

    fn take_adjusted(&mut self, p_adjusted: Option<f64>, family_size: usize) {
        self.comparison.p_adjusted = p_adjusted;
        self.comparison.family_size = family_size;
    }
}

/// Counted outcomes of a mode on one scenario or on all.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    passed: u64,
    failed: u64,
    void: u64,
}

impl Outcomes {
    fn of_mode<'a>(cells: &[SuccessCell<'a>], mode: &str) -> BTreeMap<Option<&'a str>, Outcomes> {
        let mut outcomes = BTreeMap::new();
        for cell in cells.iter().filter(|cell| cell.mode == mode) {
            let sum: &mut Outcomes = outcomes.entry(cell.scenario).or_default();
            *sum = sum.plus(&Outcomes {
                passed: cell.passed,
                failed: cell.failed,
                void: cell.void,
            });
        }
        outcomes
    }

    fn total<'a>(outcomes: impl Iterator<Item = &'a Outcomes>) -> Outcomes {
        outcomes.fold(Outcomes::default(), |sum, cell| sum.plus(cell))
    }

    fn plus(self, other: &Outcomes) -> Outcomes {
        Outcomes {
            passed: self.passed.saturating_add(other.passed),
            failed: self.failed.saturating_add(other.failed),
            void: self.void.saturating_add(other.void),
        }
    }

    fn judged(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    fn trials(&self) -> u64 {
        self.judged().saturating_add(self.void)
    }

    fn tally(&self) -> Tally {
        Tally::new(self.passed, self.judged()).expect("passed trials are among the judged ones")
    }

    fn rate(&self) -> Option<f64> {
        self.tally().rate()
    }

    fn coverage(&self) -> Option<f64> {
        (self.trials() > 0).then(|| self.judged() as f64 / self.trials() as f64)
    }

    fn void_share(&self) -> f64 {
        self.coverage().map_or(0.0, |coverage| 1.0 - coverage)
    }
}

/// Over scenarios for new tasks; pooled, as if one scenario, for exactly these.
fn difference(
    matched: &[(Outcomes, Outcomes)],
    scope: Scope,
    level: Level,
) -> Option<SuccessDifference> {
    let (mut a, mut b): (Vec<Tally>, Vec<Tally>) =
        matched.iter().map(|(a, b)| (a.tally(), b.tally())).unzip();
    if scope == Scope::Suite {
        a = vec![Tally::total(&a)];
        b = vec![Tally::total(&b)];
    }
    success_difference_ci(&a, &b, level).ok().flatten()
}

/// The interval of two one-sided tests lies within the margin, read as points.
fn is_equivalent(
    matched: &[(Outcomes, Outcomes)],
    scope: Scope,
    options: &CompareOptions<'_>,
) -> bool {
    let Some(margin) = options.equivalence_margin else {
        return false;
    };
    let Ok(alpha) = Level::new(options.confidence_level.complement()) else {
        return false;
    };
    let interval = difference(matched, scope, alpha.two_sided_for_one_sided_alpha());
    interval.is_some_and(|interval| interval.lower > -margin && interval.upper < margin)
}

fn mcnemar(matched: &[(Outcomes, Outcomes)]) -> Option<f64> {
    let single = !matched.is_empty()
        && matched
            .iter()
            .all(|(a, b)| a.judged() == 1 && b.judged() == 1);
    let only = |wins: fn(&(Outcomes, Outcomes)) -> bool| {
        matched.iter().filter(|pair| wins(pair)).count() as u64
    };
    single.then(|| {
        mcnemar_exact(
            only(|(a, b)| a.passed > b.passed),
            only(|(a, b)| b.passed > a.passed),
        )
    })
}

fn void_bounds(a: Outcomes, b: Outcomes) -> Option<[f64; 2]> {
    if a.trials() == 0 || b.trials() == 0 {
        return None;
    }
    let worst = |outcomes: Outcomes| outcomes.passed as f64 / outcomes.trials() as f64;
    let best = |outcomes: Outcomes| {
        (outcomes.trials() - outcomes.failed) as f64 / outcomes.trials() as f64
    };
    Some([(worst(a) - best(b)) * 100.0, (best(a) - worst(b)) * 100.0])
}
