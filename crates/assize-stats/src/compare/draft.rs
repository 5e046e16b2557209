//! Computes one metric of two modes: baseline numbers on pooled runs, the paired headline and the permutation test.

use super::headline::{Headline, typical_values};
use super::limited::{Limited, limited};
use super::metric::{CiMethod, Design, MetricComparison, PMethod, RunCounts};
use super::plan::{Basis, level_of_family};
use super::selection::{Matching, Selection};
use super::verdict::{Evidence, Finding, Wording, judge, verdict_scope};
use super::{CompareOptions, Metric, MetricKind, ModePair};
use crate::adjust::AdjustMethod;
use crate::bootstrap::BootstrapOptions;
use crate::cluster::{Pool, cluster_replicates};
use crate::count::{CountDifference, count_difference_of};
use crate::effect_size::{Magnitude, cliffs_delta_of, prob_above, standardised};
use crate::gate::Direction;
use crate::interval::{Level, Method, Scope};
use crate::permutation::{Alternative, Column, PermutationTest, test_columns};
use crate::random::Stream;
use crate::reduction::{Reduction, ReductionInterval, reduction_of, reduction_or_nan, undefined};
use crate::sample::Sample;
use crate::scenario::{Pair, has_small_group, scenario_warnings};
use crate::statistic::Statistic;
use crate::typical::is_skewed;
use crate::verdict::Verdict;
use crate::warning::{Warning, Warnings};

/// A comparison that still lacks its permutation test, adjusted p-value and verdict.
pub(super) struct Draft {
    pub(super) comparison: MetricComparison,
    evidence: Evidence,
    direction: Option<Direction>,
    basis: Option<Basis>,
}

/// Metrics that share one set of relabelings. More would cost memory.
const TOGETHER: usize = 6;

/// All metrics of one pair of modes.
pub(super) fn draft_pair(
    metrics: &[Metric<'_>],
    modes: ModePair<'_>,
    options: &CompareOptions<'_>,
) -> Vec<Draft> {
    let mut drafts = Vec::with_capacity(metrics.len());
    let mut waiting = Waiting::default();
    for metric in metrics {
        let selection = Selection::new(&metric.groups, modes);
        let mut draft = Draft::new(metric, &selection, modes, options);
        let is_wanted = metric.is_primary || options.relabel_exploratory;
        if is_wanted || !draft.take_verdict_p() {
            let column = Column::new(&selection.pairs, Alternative::TwoSided);
            let normal = column.as_ref().and_then(Column::normal_p);
            match normal.filter(|_| !is_wanted) {
                Some(p) => draft.take_closed_form(p),
                None => {
                    waiting.columns.push(column);
                    waiting.places.push(drafts.len());
                }
            }
        }
        drafts.push(draft);
        if waiting.columns.len() == TOGETHER {
            waiting.test(&mut drafts, modes, options);
        }
    }
    waiting.test(&mut drafts, modes, options);
    drafts
}

/// Drafts that wait for their tests, by their places.
#[derive(Default)]
struct Waiting {
    columns: Vec<Option<Column>>,
    places: Vec<usize>,
}

impl Waiting {
    fn test(&mut self, drafts: &mut [Draft], modes: ModePair<'_>, options: &CompareOptions<'_>) {
        let stream = Stream::for_pair(options.seed, modes.a, modes.b, "permutation");
        let tests = test_columns(&self.columns, options.permutations, stream);
        for (place, test) in self.places.drain(..).zip(tests) {
            drafts[place].take_test(&test);
        }
        self.columns.clear();
    }
}

impl Draft {
    fn new(
        metric: &Metric<'_>,
        selection: &Selection,
        modes: ModePair<'_>,
        options: &CompareOptions<'_>,
    ) -> Self {
        let mut comparison = empty(metric, selection, modes, options);
        comparison.warnings = warnings(selection, metric.statistic);
        comparison.prob_better = metric
            .direction
            .and_then(|direction| prob_better(&selection.pairs, direction));
        let runs = selection.all_runs();
        if let Some(runs) = &runs {
            comparison.take_pooled_runs(runs);
        }
        let mut draft = Self {
            comparison,
            evidence: Evidence::new(selection, metric, Finding::default()),
            direction: metric.direction,
            basis: None,
        };
        let Ok(alpha) = Level::new(options.confidence_level.complement()) else {
            return draft;
        };
        if let Some(limited) = limited(metric, modes, alpha) {
            draft.take_limited(limited);
        } else if metric.kind == MetricKind::Count && has_zero_median(&selection.pairs) {
            let warnings = Warnings::default();
            draft.take_count(count_difference_of(&selection.pairs, alpha, warnings));
            let found = draft.comparison.count.as_ref();
            draft.basis = found.and_then(Basis::of_counts);
            draft.comparison.plan_basis = draft.basis.as_ref().and_then(Basis::of_new_tasks);
        } else {
            draft.take_headline(metric, selection, modes, options);
            if let Some(runs) = &runs {
                let stream = Stream::for_pair(options.seed, modes.a, modes.b, "bootstrap");
                let bootstrap = resampling(selection, metric.statistic, options);
                let reduction = reduction(&selection.pairs, runs, &bootstrap, stream);
                draft.comparison.take_reduction(&reduction);
            }
        }
        draft
    }

    fn take_headline(
        &mut self,
        metric: &Metric<'_>,
        selection: &Selection,
        modes: ModePair<'_>,
        options: &CompareOptions<'_>,
    ) {
        let headline = Headline::new(selection, metric.statistic, modes, options);
        let comparison = &mut self.comparison;
        comparison.paired = headline.paired_summary(selection);
        comparison.suite = headline.suite_summary();
        let decisive = headline.decisive();
        let [value_a, value_b] = typical_values(selection, metric.statistic, decisive);
        comparison.value_a = value_a;
        comparison.value_b = value_b;
        comparison.scope = headline.scope;
        self.evidence.finding = Finding::of_paired(selection, metric, decisive, options);
        let is_exact = self.evidence.finding.is_certain;
        comparison
            .warnings
            .add_if(decisive.degenerate && !is_exact, Warning::NoVariation);
        let of_scenarios =
            Basis::of_scenarios(&selection.pairs, metric.statistic, headline.paired.measure);
        comparison.plan_basis = of_scenarios.as_ref().and_then(Basis::of_new_tasks);
        self.basis = match headline.scope {
            Scope::Population => of_scenarios,
            Scope::Suite => Basis::of_runs(&selection.pairs, decisive.measure),
        };
    }

    fn take_limited(&mut self, limited: Limited) {
        self.evidence.finding = Finding::of_limited(&limited);
        self.comparison.warnings.remove(Warning::SkewedMean);
        self.comparison
            .warnings
            .extend(&limited.comparison.warnings);
        self.comparison.limited = Some(limited);
    }

    fn take_count(&mut self, count: CountDifference) {
        self.evidence.finding = Finding::of_count(&count);
        // Its interval reaches further on the side of the skew.
        self.comparison.warnings.remove(Warning::SkewedMean);
        self.comparison.statistic = Statistic::Mean;
        self.comparison.warnings.extend(&count.warnings);
        self.comparison.count = Some(count);
    }

    /// Takes the p-value that the verdict rests on for the one of a test. False when there is none.
    fn take_verdict_p(&mut self) -> bool {
        let p = self.evidence.finding.p_value;
        p.inspect(|p| self.take_closed_form(*p)).is_some()
    }

    fn take_closed_form(&mut self, p: f64) {
        self.comparison.p_value = p;
        self.comparison.p_method = PMethod::ClosedForm;
    }

    fn take_test(&mut self, test: &PermutationTest) {
        let stratified = self.comparison.scenarios > 1;
        self.comparison.p_value = test.p_value;
        self.comparison.mc_error = test.mc_error;
        self.comparison.p_method = match (stratified, test.exact) {
            (true, true) => PMethod::StratifiedExact,
            (true, false) => PMethod::StratifiedMonteCarlo,
            (false, true) => PMethod::PermutationExact,
            (false, false) => PMethod::PermutationMonteCarlo,
        };
    }

    /// The p-value that decides; none when nothing can be decided.
    pub(super) fn p_value(&self) -> Option<f64> {
        self.evidence
            .finding
            .p_value
            .filter(|_| self.evidence.reason.is_none())
    }

    pub(super) fn judged(mut self, options: &CompareOptions<'_>) -> MetricComparison {
        let wording = Wording {
            direction: self.direction,
            exploratory: self.comparison.exploratory,
            alpha: options.confidence_level.complement(),
        };
        self.comparison.verdict = judge(&self.evidence, self.comparison.p_adjusted, wording);
        self.comparison.reason = self.evidence.reason;
        if self.comparison.verdict == Verdict::Inconclusive {
            let basis = self
                .basis
                .zip(level_of_family(options, self.comparison.family_size));
            self.comparison.plan =
                basis.and_then(|(basis, alpha)| basis.plan(options.plan_effect, alpha));
        }
        self.comparison
    }
}

impl MetricComparison {
    fn take_pooled_runs(&mut self, runs: &Pair) {
        let effect = standardised(&runs.a, &runs.b);
        let superiority = cliffs_delta_of(&runs.a, &runs.b);
        self.n = RunCounts {
            a: runs.a.count(),
            b: runs.b.count(),
        };
        self.effect_size = effect.d;
        self.effect_magnitude = effect.magnitude;
        self.effect_defined = effect.defined;
        self.hedges_g = effect.hedges_g;
        self.cliffs_delta = superiority.cliffs_delta;
        self.prob_superiority = superiority.prob_superiority;
    }

    fn take_reduction(&mut self, reduction: &ReductionInterval) {
        self.reduction_pct = reduction.interval.point_estimate;
        self.ci95 = [reduction.interval.lower, reduction.interval.upper];
        self.reduction_defined = reduction.reduction_defined;
        self.warnings.extend(&reduction.interval.warnings);
    }
}

/// Everything that is known before any number is computed.
fn empty(
    metric: &Metric<'_>,
    selection: &Selection,
    modes: ModePair<'_>,
    options: &CompareOptions<'_>,
) -> MetricComparison {
    let labelled = selection.design == Matching::Labelled;
    let scenarios = if labelled { selection.pairs.len() } else { 0 };
    MetricComparison {
        mode_a: modes.a.to_owned(),
        mode_b: modes.b.to_owned(),
        metric: metric.name.to_owned(),
        reduction_pct: 0.0,
        ci95: [0.0, 0.0],
        effect_size: 0.0,
        effect_magnitude: Magnitude::Negligible,
        p_value: 1.0,
        reduction_defined: false,
        effect_defined: false,
        n: RunCounts { a: 0, b: 0 },
        scenarios,
        repetitions: selection.repetitions(),
        balanced: selection.is_balanced(),
        unmatched_scenarios: selection.unmatched.clone(),
        design: if labelled {
            Design::Paired
        } else {
            Design::Unpaired
        },
        scope: verdict_scope(options.scope, scenarios),
        statistic: metric.statistic,
        ci_method: if scenarios > 1 {
            CiMethod::ClusterExpanded
        } else {
            CiMethod::Percentile
        },
        p_method: PMethod::PermutationExact,
        confidence_level: options.confidence_level,
        mc_error: 0.0,
        non_finite: selection.non_finite,
        value_a: None,
        value_b: None,
        paired: None,
        suite: None,
        limited: None,
        count: None,
        hedges_g: None,
        cliffs_delta: None,
        prob_superiority: None,
        prob_better: None,
        p_look: None,
        p_adjusted: None,
        adjust_method: if metric.is_primary {
            AdjustMethod::Holm
        } else {
            AdjustMethod::Bh
        },
        family: options.family,
        family_size: 0,
        exploratory: !metric.is_primary,
        verdict: Verdict::Inconclusive,
        reason: None,
        plan: None,
        plan_basis: None,
        warnings: Warnings::default(),
    }
}

fn warnings(selection: &Selection, statistic: Statistic) -> Warnings {
    let pairs = &selection.pairs;
    let mut warnings = Warnings::default();
    match selection.design {
        Matching::Labelled => {
            warnings.extend(&scenario_warnings(pairs.len(), selection.non_finite));
        }
        Matching::Unlabelled | Matching::Disjoint => warnings.add(Warning::Unpaired),
    }
    warnings.add_if(selection.non_finite > 0, Warning::NonFiniteDropped);
    warnings.add_if(!selection.unmatched.is_empty(), Warning::UnmatchedScenarios);
    warnings.add_if(has_small_group(pairs), Warning::SmallN);
    if statistic == Statistic::Mean && pairs.len() > 1 {
        let side = |side: fn(&Pair) -> &Sample| {
            pairs
                .iter()
                .map(|pair| side(pair).clone())
                .collect::<Vec<_>>()
        };
        let skewed = is_skewed(&side(|pair| &pair.a)) || is_skewed(&side(|pair| &pair.b));
        warnings.add_if(skewed, Warning::SkewedMean);
    }
    warnings
}

/// Some scenario's median is 0 in either mode: most runs had no event there.
fn has_zero_median(pairs: &[Pair]) -> bool {
    let is_zero = |sample: &Sample| Statistic::Median.of(sample) == 0.0;
    pairs
        .iter()
        .any(|pair| is_zero(&pair.a) || is_zero(&pair.b))
}

/// Whole scenarios are resampled where there are several, single runs otherwise.
fn resampling(
    selection: &Selection,
    statistic: Statistic,
    options: &CompareOptions<'_>,
) -> BootstrapOptions {
    BootstrapOptions {
        statistic,
        method: if selection.pairs.len() > 1 {
            Method::Expanded
        } else {
            Method::Percentile
        },
        resamples: options.resamples,
        confidence_level: options.confidence_level,
        seed: options.seed,
    }
}

/// The reduction of the pooled statistic.
fn reduction(
    pairs: &[Pair],
    runs: &Pair,
    options: &BootstrapOptions,
    stream: Stream,
) -> ReductionInterval {
    if pairs.len() < 2 {
        return reduction_of(runs, options, stream);
    }
    let mut answer = undefined(options);
    let warnings = &mut answer.interval.warnings;
    let point = Reduction::new(
        options.statistic.of(&runs.a),
        options.statistic.of(&runs.b),
        warnings,
    );
    answer.take_point(&point);
    if point.is_without_baseline() {
        return answer;
    }
    let pool_a = Pool::new(pairs.iter().map(|pair| &pair.a), options.statistic);
    let pool_b = Pool::new(pairs.iter().map(|pair| &pair.b), options.statistic);
    let draws = cluster_replicates(
        stream,
        pairs.len(),
        options.resamples,
        &|counts: &[u32]| reduction_or_nan(pool_a.statistic(counts), pool_b.statistic(counts)),
    );
    answer.take_replicates(draws, pairs.len(), options);
    answer
}

/// The mean over scenarios of the probability that a run of A is better than one of B.
fn prob_better(pairs: &[Pair], direction: Direction) -> Option<f64> {
    let better = |pair: &Pair| match direction {
        Direction::Lower => prob_above(&pair.b, &pair.a),
        Direction::Higher => prob_above(&pair.a, &pair.b),
    };
    let shares: Vec<f64> = pairs.iter().map(better).collect();
    Sample::new(&shares).map(|shares| shares.mean())
}
