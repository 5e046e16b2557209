//! Success of two modes: rates, their difference in points, and how much the void trials could change it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::{SuccessBasis, SuccessPlan, level_of_family, success_components};
use super::verdict::{Finding, Member, Side, Wording, verdict_scope, word};
use super::{CompareOptions, Family, ModePair, SuccessCell};
use crate::adjust::AdjustMethod;
use crate::design::Components;
use crate::gate::Direction;
use crate::interval::{Level, Scope};
use crate::proportion::{Tally, mcnemar_exact};
use crate::scenario::scenario_warnings;
use crate::stopping::{Asked, LookFacts, Looks};
use crate::success::{
    MatchedTallies, SuccessDifference, SuccessMarginOptions, SuiteDifference, TallyCase, VoidCases,
    Voided, success_difference, success_margin, suite_difference,
};
use crate::verdict::Verdict;
use crate::warning::{Warning, Warnings};

/// Above this share of void trials the comparison carries a warning.
const MANY_VOID: f64 = 0.05;

/// Success of mode A compared with mode B. A is better when its rate is higher.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessComparison {
    /// The candidate.
    pub mode_a: String,
    /// The mode it is compared with.
    pub mode_b: String,
    /// Always `success`.
    pub metric: &'static str,
    /// Plain mean of A's rates over the compared scenarios.
    pub rate_a: Option<f64>,
    /// Plain mean of B's rates over the compared scenarios.
    pub rate_b: Option<f64>,
    /// Rate A minus rate B in percentage points.
    pub difference_pp: Option<f64>,
    /// Its interval in points, in the scope named by `scope`.
    pub ci95: Option<[f64; 2]>,
    /// The error rate at which that interval touches 0.
    pub p_value: Option<f64>,
    /// The p-value after paying for all looks, where there were several. `p_adjusted` follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_look: Option<f64>,
    /// The p-value adjusted for its family.
    pub p_adjusted: Option<f64>,
    /// The method of adjustment.
    pub adjust_method: AdjustMethod,
    /// The comparisons that are adjusted together.
    pub family: Family,
    /// Number of p-values in the family.
    pub family_size: usize,
    /// Not declared beforehand as a metric to decide by.
    pub exploratory: bool,
    /// Degrees of freedom; only in the population scope.
    pub df: Option<f64>,
    /// The share of tasks of a kind that so many tasks may have missed altogether.
    pub unseen_share: Option<f64>,
    /// The most favourable task was counted only as much as the next one.
    pub capped: bool,
    /// The method behind `ci95`.
    pub method: SuccessMethod,
    /// The tasks that the verdict, `ci95` and `pValue` apply to.
    pub scope: Scope,
    /// Exact test of the discordant pairs; only with one trial per scenario and mode.
    pub mcnemar_p: Option<f64>,
    /// Share of A's trials that could be judged.
    pub coverage_a: Option<f64>,
    /// Share of B's trials that could be judged.
    pub coverage_b: Option<f64>,
    /// The difference in points if all void trials that may depend on the mode had gone against A, and for A.
    pub void_bounds: Option<[f64; 2]>,
    /// The lower end of the interval in the first case and the upper end in the second, in points.
    pub void_interval: Option<[f64; 2]>,
    /// Void trials of A and of B whose cause may depend on the mode.
    pub void: [u64; 2],
    /// Void trials of A and of B whose cause cannot depend on the mode.
    pub void_unrelated: [u64; 2],
    /// The verdict with the void trials left out.
    pub verdict_without_voids: Verdict,
    /// The same difference for exactly these tasks.
    pub suite: Option<SuccessSuite>,
    /// The same difference for new tasks like these. Absent for one scenario.
    pub population: Option<SuccessPopulation>,
    /// Scenarios with judged trials of both modes.
    pub scenarios: usize,
    /// The usual number of judged trials of a scenario under one mode.
    pub repetitions: u64,
    /// All scenarios have that number under both modes.
    pub balanced: bool,
    /// Scenarios without a judged trial of one mode.
    pub unmatched_scenarios: Vec<String>,
    /// Passed and judged trials of A on the compared scenarios: a count, never the rate that is compared.
    pub counts_a: [u64; 2],
    /// The same for B.
    pub counts_b: [u64; 2],
    /// Nominal coverage of all intervals here.
    pub confidence_level: Level,
    /// The word.
    pub verdict: Verdict,
    /// The reason why the modes cannot be compared, or not yet.
    pub reason: Option<&'static str>,
    /// The size that an inconclusive comparison would need.
    pub plan: Option<SuccessPlan>,
    /// The variances met, for plans of other designs. Absent for fewer than two scenarios.
    #[serde(skip)]
    pub components: Option<Components>,
    /// Reasons to be careful.
    pub warnings: Warnings,
}

/// The method behind the interval of a success difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuccessMethod {
    /// Student's t over the differences per task, with a floor and allowing for unseen tasks.
    TaskT,
    /// Wilson limits of each mode with harmonic run counts, combined by Newcombe's method.
    SuiteNewcombe,
}

/// The difference for exactly these tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessSuite {
    /// Rate A minus rate B in percentage points.
    pub difference_pp: f64,
    /// Its interval; absent for too few runs.
    pub ci95: Option<[f64; 2]>,
    /// The error rate at which it touches 0.
    pub p_value: Option<f64>,
    /// The number of equal runs of A and of B that carries the same information.
    pub effective_runs: [f64; 2],
}

/// The difference for new tasks like these.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessPopulation {
    /// Rate A minus rate B in percentage points.
    pub difference_pp: f64,
    /// Its interval.
    pub ci95: [f64; 2],
    /// The error rate at which it touches 0.
    pub p_value: f64,
}

/// A comparison that still lacks its adjusted p-value and verdict.
pub(super) struct SuccessDraft {
    comparison: SuccessComparison,
    observed: Finding,
    basis: Option<SuccessBasis>,
    /// With the void trials read against A and for A; absent when there are none to read.
    bounds: Option<[Finding; 2]>,
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
    let trials = TaskTrials::new(&a, &b);
    let cases = trials.cases()?;
    let observed = Reading::new(&cases.observed, options)?;
    let mut comparison = empty(modes, &trials, &observed, options);
    let mut bounds = None;
    if trials.has_related_voids() {
        let worst = Reading::new(&cases.worst, options)?;
        let best = Reading::new(&cases.best, options)?;
        comparison.void_bounds = points(worst.estimate().zip(best.estimate()));
        let ends = worst.interval().zip(best.interval());
        comparison.void_interval = points(ends.map(|(worst, best)| (worst[0], best[1])));
        bounds = Some([worst.finding, best.finding]);
    } else {
        comparison.void_bounds = points(observed.estimate().zip(observed.estimate()));
        comparison.void_interval = points(observed.interval().map(|[low, high]| (low, high)));
    }
    comparison.components = success_components(&observed.matched);
    Some(SuccessDraft {
        comparison,
        basis: SuccessBasis::new(&observed.matched, observed.scope),
        observed: observed.finding,
        bounds,
    })
}

fn empty(
    modes: ModePair<'_>,
    trials: &TaskTrials,
    observed: &Reading,
    options: &CompareOptions<'_>,
) -> SuccessComparison {
    let Reading {
        matched,
        scope,
        population,
        suite,
        ..
    } = observed;
    let is_population = *scope == Scope::Population;
    let in_scope = |value: Option<f64>| value.filter(|_| is_population);
    let counts = |tallies: &[Tally]| {
        let sum = |of: fn(Tally) -> u64| tallies.iter().map(|tally| of(*tally)).sum();
        [sum(Tally::successes), sum(Tally::trials)]
    };
    SuccessComparison {
        mode_a: modes.a.to_owned(),
        mode_b: modes.b.to_owned(),
        metric: "success",
        rate_a: population.rate_a,
        rate_b: population.rate_b,
        difference_pp: observed.estimate().map(|estimate| estimate * 100.0),
        ci95: points(observed.interval().map(|[low, high]| (low, high))),
        p_value: observed.finding.p_value,
        p_look: None,
        p_adjusted: None,
        adjust_method: options.success_method(),
        family: options.family,
        family_size: 0,
        exploratory: !options.success_is_primary,
        df: in_scope(population.df),
        unseen_share: in_scope(population.unseen_share),
        capped: is_population && population.capped,
        method: if is_population {
            SuccessMethod::TaskT
        } else {
            SuccessMethod::SuiteNewcombe
        },
        scope: *scope,
        mcnemar_p: mcnemar(matched),
        coverage_a: trials.total_a.coverage(),
        coverage_b: trials.total_b.coverage(),
        void_bounds: None,
        void_interval: None,
        void: [trials.total_a.void, trials.total_b.void],
        void_unrelated: [trials.total_a.void_unrelated, trials.total_b.void_unrelated],
        verdict_without_voids: Verdict::Inconclusive,
        suite: suite_summary(suite),
        population: population_summary(population),
        scenarios: matched.tasks(),
        repetitions: usual(matched),
        balanced: is_balanced(matched),
        unmatched_scenarios: trials.unmatched.clone(),
        counts_a: counts(&matched.a),
        counts_b: counts(&matched.b),
        confidence_level: options.confidence_level,
        verdict: Verdict::Inconclusive,
        reason: (matched.tasks() == 0).then_some("no scenario has judged trials of both modes"),
        plan: None,
        components: None,
        warnings: warnings(trials, observed),
    }
}

fn warnings(trials: &TaskTrials, observed: &Reading) -> Warnings {
    let mut warnings = scenario_warnings(observed.matched.tasks(), 0);
    warnings.extend(match observed.scope {
        Scope::Population => &observed.population.warnings,
        Scope::Suite => &observed.suite.warnings,
    });
    warnings.add_if(!trials.unmatched.is_empty(), Warning::UnmatchedScenarios);
    let totals = [&trials.total_a, &trials.total_b];
    let many = totals.iter().any(|total| total.void_share() > MANY_VOID);
    warnings.add_if(many, Warning::ManyVoid);
    let unrelated = totals.iter().any(|total| total.void_unrelated > 0);
    warnings.add_if(unrelated, Warning::VoidUnrelated);
    warnings
}

fn suite_summary(suite: &SuiteDifference) -> Option<SuccessSuite> {
    Some(SuccessSuite {
        difference_pp: suite.estimate? * 100.0,
        ci95: points(suite.lower.zip(suite.upper)),
        p_value: suite.p_value,
        effective_runs: suite.effective_runs?,
    })
}

fn population_summary(population: &SuccessDifference) -> Option<SuccessPopulation> {
    Some(SuccessPopulation {
        difference_pp: population.estimate? * 100.0,
        ci95: points(population.lower.zip(population.upper))?,
        p_value: population.p_value?,
    })
}

impl SuccessDraft {
    pub(super) fn judged(mut self, options: &CompareOptions<'_>) -> SuccessComparison {
        let comparison = &mut self.comparison;
        let wording = Wording {
            direction: Some(Direction::Higher),
            exploratory: comparison.exploratory,
            alpha: options.confidence_level.complement(),
        };
        let observed = word(&self.observed, comparison.p_adjusted, wording);
        comparison.verdict_without_voids = observed;
        comparison.verdict = observed;
        if let Some(bounds) = &self.bounds {
            // The other readings are held to the level that the observed one had to meet in its family.
            let factor = factor(comparison.p_value, comparison.p_adjusted);
            let agrees = |finding: &Finding| {
                let p = finding.p_value.map(|p| (p * factor).min(1.0));
                word(finding, p, wording) == observed
            };
            if !bounds.iter().all(agrees) {
                comparison.verdict = Verdict::Inconclusive;
                comparison.warnings.add(Warning::VoidDecides);
            }
        }
        if comparison.reason.is_some() {
            comparison.verdict = Verdict::NotComparable;
            comparison.verdict_without_voids = Verdict::NotComparable;
        }
        // A verdict that is not given cannot turn around.
        if !matches!(comparison.verdict, Verdict::Better | Verdict::Worse) {
            comparison.warnings.remove(Warning::FewTasksCouldReverse);
        }
        if comparison.verdict == Verdict::Inconclusive {
            let basis = self
                .basis
                .zip(level_of_family(options, comparison.family_size));
            comparison.plan =
                basis.and_then(|(basis, alpha)| basis.plan(options.plan_effect, alpha));
        }
        self.comparison
    }
}

/// The factor by which the adjustment for the family raised a p-value.
fn factor(p_value: Option<f64>, p_adjusted: Option<f64>) -> f64 {
    match (p_value, p_adjusted) {
        (Some(p), Some(adjusted)) if p > 0.0 => (adjusted / p).max(1.0),
        _ => 1.0,
    }
}

impl Member for SuccessDraft {
    fn adjust_method(&self) -> AdjustMethod {
        self.comparison.adjust_method
    }

    fn p_value(&self) -> Option<f64> {
        let found = &self.comparison;
        let p = found.p_look.or(found.p_value);
        p.filter(|_| found.reason.is_none())
    }

    fn pay(&mut self, looks: &Looks) {
        let found = &self.comparison;
        let facts = LookFacts {
            scope: found.scope,
            scenarios: found.scenarios as u64,
            rounds: found.repetitions as f64,
            components: found.components,
        };
        let asked = Asked {
            mode_a: &found.mode_a,
            mode_b: &found.mode_b,
            metric: found.metric,
        };
        let p = found.p_value.filter(|_| found.reason.is_none());
        self.comparison.p_look = looks.pay_success(p, &asked, &facts);
    }

    fn take_adjusted(&mut self, p_adjusted: Option<f64>, family_size: usize) {
        self.comparison.p_adjusted = p_adjusted;
        self.comparison.family_size = family_size;
    }
}

/// One reading of the void trials: both scopes and what the verdict rests on.
struct Reading {
    matched: MatchedTallies,
    scope: Scope,
    population: SuccessDifference,
    suite: SuiteDifference,
    finding: Finding,
}

impl Reading {
    fn new(case: &TallyCase, options: &CompareOptions<'_>) -> Option<Self> {
        let alpha = Level::new(options.confidence_level.complement()).ok()?;
        let matched = MatchedTallies::new(&case.a, &case.b).ok()?;
        let scope = verdict_scope(options.scope, matched.tasks());
        let population = success_difference(&matched.a, &matched.b, alpha).ok()?;
        let suite = suite_difference(&matched.a, &matched.b, alpha).ok()?;
        let (lower, upper, p_value) = match scope {
            Scope::Population => (population.lower, population.upper, population.p_value),
            Scope::Suite => (suite.lower, suite.upper, suite.p_value),
        };
        let side = match Verdict::of_interval(lower, upper) {
            Verdict::Better => Side::Higher,
            Verdict::Worse => Side::Lower,
            _ => Side::Both,
        };
        let finding = Finding {
            side,
            is_equivalent: is_equivalent(&matched, scope, options),
            p_value,
            is_certain: false,
        };
        Some(Self {
            matched,
            scope,
            population,
            suite,
            finding,
        })
    }

    fn estimate(&self) -> Option<f64> {
        self.population.estimate
    }

    fn interval(&self) -> Option<[f64; 2]> {
        let (lower, upper) = match self.scope {
            Scope::Population => (self.population.lower, self.population.upper),
            Scope::Suite => (self.suite.lower, self.suite.upper),
        };
        Some([lower?, upper?])
    }
}

/// The one-sided bounds of the difference lie within the margin, read as points.
fn is_equivalent(matched: &MatchedTallies, scope: Scope, options: &CompareOptions<'_>) -> bool {
    let alpha = Level::new(options.confidence_level.complement());
    let (Some(margin), Ok(alpha)) = (options.equivalence_margin, alpha) else {
        return false;
    };
    let options = SuccessMarginOptions {
        margin,
        alpha,
        scope,
    };
    success_margin(&matched.a, &matched.b, &options).is_ok_and(|margin| margin.equivalent)
}

/// Counted outcomes of a mode on one scenario or on all.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    passed: u64,
    failed: u64,
    void: u64,
    void_unrelated: u64,
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
                void_unrelated: cell.void_unrelated,
            });
        }
        outcomes
    }

    fn plus(self, other: &Outcomes) -> Outcomes {
        Outcomes {
            passed: self.passed.saturating_add(other.passed),
            failed: self.failed.saturating_add(other.failed),
            void: self.void.saturating_add(other.void),
            void_unrelated: self.void_unrelated.saturating_add(other.void_unrelated),
        }
    }

    fn judged(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    fn trials(&self) -> u64 {
        let void = self.void.saturating_add(self.void_unrelated);
        self.judged().saturating_add(void)
    }

    fn voided(&self) -> Voided {
        let judged = Tally::new(self.passed, self.judged());
        Voided {
            judged: judged.expect("passed trials are among the judged ones"),
            void: self.void,
        }
    }

    fn coverage(&self) -> Option<f64> {
        (self.trials() > 0).then(|| self.judged() as f64 / self.trials() as f64)
    }

    fn void_share(&self) -> f64 {
        self.coverage().map_or(0.0, |coverage| 1.0 - coverage)
    }
}

/// The trials of both modes, task by task.
struct TaskTrials {
    a: Vec<Voided>,
    b: Vec<Voided>,
    unmatched: Vec<String>,
    total_a: Outcomes,
    total_b: Outcomes,
}

impl TaskTrials {
    fn new(a: &BTreeMap<Option<&str>, Outcomes>, b: &BTreeMap<Option<&str>, Outcomes>) -> Self {
        let total = |outcomes: &BTreeMap<Option<&str>, Outcomes>| {
            let cells = outcomes.values();
            cells.fold(Outcomes::default(), |sum, cell| sum.plus(cell))
        };
        let mut trials = Self {
            a: Vec::new(),
            b: Vec::new(),
            unmatched: Vec::new(),
            total_a: total(a),
            total_b: total(b),
        };
        let mut names: Vec<Option<&str>> = a.keys().chain(b.keys()).copied().collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let of = |outcomes: &BTreeMap<Option<&str>, Outcomes>| {
                outcomes.get(&name).copied().unwrap_or_default().voided()
            };
            let (a, b) = (of(a), of(b));
            if a.judged.trials() == 0 || b.judged.trials() == 0 {
                trials.unmatched.push(name.unwrap_or_default().to_owned());
            }
            trials.a.push(a);
            trials.b.push(b);
        }
        trials
    }

    fn has_related_voids(&self) -> bool {
        self.a.iter().chain(&self.b).any(|trials| trials.void > 0)
    }

    fn cases(&self) -> Option<VoidCases> {
        VoidCases::new(&self.a, &self.b).ok()
    }
}

fn mcnemar(matched: &MatchedTallies) -> Option<f64> {
    let pairs = || matched.a.iter().zip(&matched.b);
    let single = matched.tasks() > 0 && pairs().all(|(a, b)| a.trials() == 1 && b.trials() == 1);
    let only = |wins: fn(&(&Tally, &Tally)) -> bool| pairs().filter(wins).count() as u64;
    single.then(|| {
        mcnemar_exact(
            only(|(a, b)| a.successes() > b.successes()),
            only(|(a, b)| b.successes() > a.successes()),
        )
    })
}

/// The usual number of judged trials of a task under one mode.
fn usual(matched: &MatchedTallies) -> u64 {
    let mut counts: Vec<u64> = trials_of(matched).collect();
    counts.sort_unstable();
    let middle = counts.len().saturating_sub(1) / 2;
    counts.get(middle).copied().unwrap_or(0)
}

fn is_balanced(matched: &MatchedTallies) -> bool {
    let usual = usual(matched);
    trials_of(matched).all(|trials| trials == usual)
}

fn trials_of(matched: &MatchedTallies) -> impl Iterator<Item = u64> {
    let all = matched.a.iter().chain(&matched.b);
    all.map(|tally| tally.trials())
}

/// Rates as percentage points.
fn points(ends: Option<(f64, f64)>) -> Option<[f64; 2]> {
    ends.map(|(low, high)| [low * 100.0, high * 100.0])
}
