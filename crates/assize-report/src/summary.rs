//! The summary of trials: the one value that every output reads.

use crate::arm::{AllNames, Arm, Cell};
use crate::comparison::{Material, compare, has_several_models};
use crate::reason::{Reason, Tally};
use crate::scenario_change::{PassCount, ScenarioCounts};
use crate::{
    Analysis, Caution, Chances, Classification, Comparison, FactorEffect, GateResult, JudgeSummary,
    MetricSummary, Planned, ReportError, Row, SuccessSummary, SummaryBuilder, TextCounts, Triggers,
    amount, caution, cells, effects, looks, metric, success,
};
use assize_contracts::{Catalog, Metric, Nature, RowField, WallRecord};
use assize_stats::{CostPerSuccess, Level, Scope, Statistic, cost_per_success};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// All statements about a set of trials.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The version of the rules that verdicts follow. Runs of any age are judged by the rules of the reading program.
    #[serde(rename = "rulesVersion")]
    pub rules_version: u32,
    /// Modes in the order of the suite. Where models, suites or natures differ, they are part of the name.
    pub modes: Named<ModeSummary>,
    /// Scenarios in the order in which they were first seen.
    pub scenarios: Named<ScenarioSummary>,
    /// Scenarios that are only part of the modes' numbers, because there are too many to list one by one.
    #[serde(rename = "scenariosLeftOut", skip_serializing_if = "is_zero")]
    pub scenarios_left_out: usize,
    /// Metrics that are left out, by tool or by plugin, because there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub metrics_left_out: usize,
    /// Pair by pair, the deciding metrics first.
    pub comparisons: Vec<Comparison>,
    /// The effects of the factors, where the modes come from factors. The declared ones first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<FactorEffect>,
    /// Reasons to be careful.
    pub cautions: Vec<Caution>,
    /// The agreement of a judge's votes. Absent where no trial had several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeSummary>,
    /// The gates, each judged for every mode it is about. The caller that judges them puts them here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateResult>,
    /// The planned trials, where known.
    #[serde(skip)]
    pub planned: Option<Planned>,
    /// The walls around the agents, where they are known.
    #[serde(rename = "sandbox", skip_serializing_if = "Vec::is_empty")]
    pub walls: Vec<WallRecord>,
    /// The tables of prices that costs were computed from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<String>,
    /// The metrics that decide.
    #[serde(skip)]
    pub primary: Vec<String>,
    /// Nominal coverage of all intervals.
    #[serde(skip)]
    pub confidence: Level,
    /// Names of everything that rows carry as extensions.
    #[serde(skip)]
    pub extensions: Vec<String>,
    /// The metrics that were measured, also those that hold texts: unit, direction, words.
    #[serde(rename = "metrics")]
    pub catalog: Catalog,
    /// Whose trials the modes are, in their order.
    #[serde(skip)]
    pub(crate) arms: Vec<ArmName>,
    /// The passes of every scenario, where the analysis asks for them.
    #[serde(skip)]
    pub(crate) counts: Option<ScenarioCounts>,
}

/// The rules of verdicts: 2 compares success task by task, lets voids, limits and rare counts bound the verdict, and
/// adjusts over the whole report. Version 1 compared pooled counts.
pub(crate) const RULES_VERSION: u32 = 2;

/// The properties that the trials of a mode have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArmName {
    suite: Option<String>,
    mode: String,
    model: String,
    nature: Nature,
}

impl ArmName {
    pub(crate) fn is_of(&self, mode: &str) -> bool {
        self.mode == mode
    }
}

/// One mode, over all scenarios or on one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeSummary {
    /// All trials, void ones included.
    pub runs: u64,
    /// The success rate.
    pub success: SuccessSummary,
    /// Everything measured, by the collectors' names.
    pub metrics: Named<MetricSummary>,
    /// The chances of several tries.
    pub pass_k: Vec<Chances>,
    /// The cost of one success. Absent when no cost is known.
    pub cost_per_success: Option<CostPerSuccess>,
    /// The source of the numbers: live, replayed or simulated.
    pub nature: Nature,
    /// Trials that ran out of time.
    pub censored: u64,
    /// Trials that were tried again after failing.
    #[serde(skip)]
    pub retried: u64,
    /// Results of labels, by the metric that reports them.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub classification: Named<Classification>,
    /// Texts that collectors, scorers and evaluators reported, by metric: the count of each value.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub texts: Named<TextCounts>,
    /// The use of a skill compared with its expected use. Absent where no scenario states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Triggers>,
    /// Checks by `scenario/id`; where scenarios are left out, also by their id over all scenarios.
    #[serde(skip)]
    pub checks: Named<(u64, u64)>,
    /// The reasons why trials failed or are void, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// One scenario in all modes.
#[derive(Debug, Serialize)]
pub struct ScenarioSummary {
    /// The modes that ran it.
    pub modes: Named<ModeSummary>,
}

/// Values by name, in an order that means something. A JSON object.
#[derive(Debug)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> Named<T> {
    /// The value of that name.
    pub fn find(&self, name: &str) -> Option<&T> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The number of them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Summaries whose comparisons are one family: that of a report over several pairs of runs.
pub(crate) fn summarize(
    trials: Vec<(SummaryBuilder, &Analysis)>,
) -> Result<Vec<Summary>, ReportError> {
    let drafts: Vec<Draft<'_>> = trials
        .into_iter()
        .map(|(builder, analysis)| Draft::new(builder, analysis))
        .collect();
    let materials: Vec<(Material<'_>, &Analysis)> = drafts
        .iter()
        .map(|draft| (draft.material(), draft.analysis))
        .collect();
    let comparisons = compare(&materials)?;
    let effects: Vec<Vec<FactorEffect>> = materials
        .iter()
        .map(|(material, analysis)| effects::estimate(material, analysis))
        .collect();
    let finished = drafts.into_iter().zip(comparisons).zip(effects);
    Ok(finished
        .map(|((draft, comparisons), effects)| Summary {
            effects,
            ..draft.finish(comparisons)
        })
        .collect())
}

/// A summary that still lacks its comparisons.
struct Draft<'a> {
    builder: SummaryBuilder,
    analysis: &'a Analysis,
    labels: Vec<String>,
    modes: Named<ModeSummary>,
    scenarios: Named<ScenarioSummary>,
    scenarios_left_out: usize,
    cautions: Vec<Caution>,
    primary: Vec<String>,
    catalog: Catalog,
}

impl<'a> Draft<'a> {
    fn new(mut builder: SummaryBuilder, analysis: &'a Analysis) -> Self {
        builder.forget_lookups();
        let labels = prepare(&mut builder, analysis);
        let listed = listed(&builder, analysis.most_scenarios);
        let mut modes = modes(&builder, &labels, &listed, analysis.confidence);
        let mut scenarios = scenarios(&builder, &labels, &listed, analysis.confidence);
        if analysis.not_judged {
            let of_scenarios = scenarios.0.iter_mut().map(|(_, scenario)| scenario);
            let of_scenarios = of_scenarios.flat_map(|scenario| &mut scenario.modes.0);
            let all = modes.0.iter_mut().chain(of_scenarios);
            all.for_each(|(_, mode)| mode.forget_success());
        }
        let scenarios_left_out = builder.scenarios.len() - listed.len();
        let mut cautions = caution::of_rows(&builder, &labels, analysis);
        cautions.extend(caution::of_modes(modes.iter().filter_map(
            |(label, mode)| {
                let cost = mode.cost_per_success.as_ref()?;
                Some((label, &cost.warnings))
            },
        )));
        // From here on only measurements are needed, not which trial they belong to.
        let catalog = &builder.names.catalog;
        let names = builder.names.metrics.names.iter();
        let is_limited: Vec<bool> = names
            .map(|name| metric::is_limited(&catalog.metric(name)))
            .collect();
        for arm in &mut builder.arms {
            arm.cells.keep_measurements(&is_limited);
        }
        let AllNames {
            catalog, metrics, ..
        } = &builder.names;
        let primary = analysis.primary_among(&metrics.names, catalog);
        let texts = builder.arms.iter().flat_map(|arm| arm.texts.keys());
        let measured = metrics.names.iter().chain(texts);
        let measured = measured.map(|name| catalog.metric(name));
        let catalog: Catalog = measured
            .map(|metric| analysis.declared(metric.into_owned()))
            .collect();
        Self {
            catalog,
            builder,
            analysis,
            labels,
            modes,
            scenarios,
            scenarios_left_out,
            cautions,
            primary,
        }
    }

    fn material(&self) -> Material<'_> {
        Material {
            arms: &self.builder.arms,
            labels: &self.labels,
            scenarios: &self.builder.scenarios,
            metrics: &self.builder.names.metrics.names,
            catalog: &self.catalog,
            primary: &self.primary,
        }
    }

    fn finish(mut self, mut comparisons: Vec<Comparison>) -> Summary {
        for comparison in &mut comparisons {
            comparison.explain_forgotten(&self.builder);
        }
        let counts = self.analysis.counts_scenarios.then(|| ScenarioCounts {
            modes: self.builder.arms.iter().map(Arm::pass_counts).collect(),
            scenarios: std::mem::take(&mut self.builder.scenarios),
        });
        let mut cautions = self.cautions;
        let judge = self
            .builder
            .judge
            .summary(self.analysis.confidence, self.analysis.resamples);
        cautions.extend(judge.as_ref().and_then(JudgeSummary::caution));
        cautions.extend(caution::of_comparisons(&comparisons, &self.primary));
        cautions.extend(looks::caution(self.analysis, &comparisons));
        Summary {
            rules_version: RULES_VERSION,
            modes: self.modes,
            scenarios: self.scenarios,
            scenarios_left_out: self.scenarios_left_out,
            metrics_left_out: self.builder.names.extent.left_out(),
            comparisons,
            effects: Vec::new(),
            cautions,
            judge,
            gates: Vec::new(),
            planned: None,
            walls: self.analysis.walls.clone(),
            prices: self.analysis.prices.clone(),
            primary: self.primary,
            confidence: self.analysis.confidence,
            catalog: self.catalog,
            extensions: self.builder.extensions.into_iter().collect(),
            arms: self.builder.arms.into_iter().map(Arm::into_name).collect(),
            counts,
        }
    }
}

impl Summary {
    /// The effects on metrics to decide by; all others are in the JSON.
    pub fn shown_effects(&self) -> impl Iterator<Item = &FactorEffect> {
        let decides = |effect: &&FactorEffect| self.primary.contains(&effect.metric);
        self.effects.iter().filter(decides)
    }
}

/// The explanation of the table of typical tasks.
pub(crate) const TYPICAL_TASKS: &str =
    "Geometric means of the tasks' medians; their intervals hold for tasks like these.";

/// Fractions of many tokens say nothing.
pub(crate) fn shown_amount(metric: &Metric, value: f64) -> String {
    match value.abs() >= 100.0 {
        true => amount(metric, value.round()),
        false => amount(metric, value),
    }
}

/// Puts the arms in order and fills in what follows from all rows together. Returns the labels of the arms.
pub(crate) fn prepare(builder: &mut SummaryBuilder, analysis: &Analysis) -> Vec<String> {
    sort_arms(&mut builder.arms, &analysis.mode_order);
    builder.keep_versions_apart();
    for arm in &mut builder.arms {
        arm.cells.fill_categories(&builder.names);
    }
    labels(&builder.arms)
}

/// In the suite's order; what it does not name stays in the order in which it came.
fn sort_arms(arms: &mut [Arm], order: &[String]) {
    let place = |mode: &str| {
        let place = order.iter().position(|known| known == mode);
        place.unwrap_or(order.len())
    };
    arms.sort_by_key(|arm| place(&arm.mode));
}

/// The mode, and whatever else is needed to distinguish the arms.
fn labels(arms: &[Arm]) -> Vec<String> {
    let differ = |of: fn(&Arm) -> String| arms.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]));
    let models = has_several_models(arms);
    let natures = differ(|arm| arm.nature.as_str().to_owned());
    let suites = differ(|arm| arm.suite.clone().unwrap_or_default());
    let mut labels: Vec<String> = Vec::with_capacity(arms.len());
    for arm in arms {
        let mut label = arm.mode.clone();
        if models {
            label.push_str(&format!(" ({})", arm.model));
        }
        if natures {
            label.push_str(&format!(" [{}]", arm.nature.as_str()));
        }
        if suites {
            label.push_str(&format!(" @ {}", arm.suite.as_deref().unwrap_or("rows")));
        }
        while labels.contains(&label) {
            label.push('\'');
        }
        labels.push(label);
    }
    labels
}

/// The scenarios that are listed one by one, in their order. Those that did not always pass are of interest, so they come first
/// where not all can be listed.
fn listed(builder: &SummaryBuilder, most: usize) -> Vec<usize> {
    let all = 0..builder.scenarios.len();
    if all.len() <= most {
        return all.collect();
    }
    let is_imperfect = |scenario: &usize| {
        let cells = builder
            .arms
            .iter()
            .filter_map(|arm| arm.cells.get(*scenario));
        cells.into_iter().any(|cell| cell.failed + cell.void > 0)
    };
    let (imperfect, fine): (Vec<usize>, Vec<usize>) = all.partition(is_imperfect);
    let mut listed: Vec<usize> = imperfect.into_iter().chain(fine).take(most).collect();
    listed.sort_unstable();
    listed
}

fn modes(
    builder: &SummaryBuilder,
    labels: &[String],
    listed: &[usize],
    level: Level,
) -> Named<ModeSummary> {
    let summary = |(arm, label): (&Arm, &String)| {
        let cells: Vec<Cell<'_>> = arm.cells.values().collect();
        let mut mode = mode(builder, arm, &cells, level);
        mode.checks = checks(builder, arm, listed);
        mode.triggers = Triggers::of(&builder.names, &cells, level);
        let labels = arm.labels.iter();
        let labels = labels.map(|(name, confusion)| (name.clone(), confusion.summarize()));
        mode.classification = Named(labels.collect());
        let texts = arm.texts.iter();
        mode.texts = Named(
            texts
                .map(|(name, counts)| (name.clone(), counts.clone()))
                .collect(),
        );
        (label.clone(), mode)
    };
    Named(builder.arms.iter().zip(labels).map(summary).collect())
}

/// The counts of checks that held: over all scenarios where some are left out, then scenario by scenario.
fn checks(builder: &SummaryBuilder, arm: &Arm, listed: &[usize]) -> Named<(u64, u64)> {
    let mut checks = Vec::new();
    if listed.len() < builder.scenarios.len() {
        let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (word, tally) in arm.cells.values().flat_map(|cell| &cell.tallies().checks) {
            let sum = sums.entry(*word).or_default();
            *sum = (
                sum.0 + u64::from(tally.passed),
                sum.1 + u64::from(tally.made),
            );
        }
        let named = |(word, sum)| {
            let id = &builder.names.words.names[word as usize];
            (format!("{id} (all)"), sum)
        };
        checks.extend(sums.into_iter().map(named));
    }
    for scenario in listed {
        let tallies = arm.cells.get(*scenario).map(|cell| &cell.tallies().checks);
        checks.extend(tallies.into_iter().flatten().map(|(word, tally)| {
            let (scenario, id) = (
                &builder.scenarios[*scenario],
                &builder.names.words.names[*word as usize],
            );
            let counts = (u64::from(tally.passed), u64::from(tally.made));
            (format!("{scenario}/{id}"), counts)
        }));
    }
    Named(checks)
}

fn scenarios(
    builder: &SummaryBuilder,
    labels: &[String],
    listed: &[usize],
    level: Level,
) -> Named<ScenarioSummary> {
    let summary = |place: &usize| {
        let id = &builder.scenarios[*place];
        let arms = builder.arms.iter().zip(labels);
        let ran = arms.filter_map(|(arm, label)| Some((arm, label, arm.cells.get(*place)?)));
        let modes = ran.map(|(arm, label, cell)| {
            let mode = mode(builder, arm, &[cell], level);
            (label.clone(), mode)
        });
        let modes = Named(modes.collect());
        (id.to_owned(), ScenarioSummary { modes })
    };
    Named(listed.iter().map(summary).collect())
}

fn mode(builder: &SummaryBuilder, arm: &Arm, cells: &[Cell<'_>], level: Level) -> ModeSummary {
    let AllNames {
        catalog, metrics, ..
    } = &builder.names;
    let metrics = metrics.names.iter().enumerate();
    let metrics = metrics.filter_map(|(place, name)| {
        let summary = metric::summarize(&catalog.metric(name), place, cells, level)?;
        Some((name.clone(), summary))
    });
    let success = success::summarize(cells, level);
    ModeSummary {
        runs: success.trials + success.void,
        success,
        metrics: Named(metrics.collect()),
        pass_k: success::chances(cells, level),
        cost_per_success: price_of_success(builder, cells),
        nature: arm.nature,
        censored: cells.iter().map(|cell| cell.censored()).sum(),
        retried: cells.iter().map(|cell| u64::from(cell.retried)).sum(),
        classification: Named(Vec::new()),
        texts: Named(Vec::new()),
        triggers: None,
        checks: Named(Vec::new()),
        reasons: reasons(builder, cells),
    }
}

impl ModeSummary {
    /// Leaves success unknown, and what follows from it.
    fn forget_success(&mut self) {
        self.success = SuccessSummary {
            passed: 0,
            trials: 0,
            rate: None,
            ci95: None,
            void_bounds: None,
            ..self.success.clone()
        };
        self.pass_k = Vec::new();
        self.cost_per_success = None;
    }
}

/// The reasons why trials of these cells did not pass, the most frequent first.
fn reasons(builder: &SummaryBuilder, cells: &[Cell<'_>]) -> Vec<Reason> {
    let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
    for (place, tally) in cells.iter().flat_map(|cell| cell.reasons()) {
        let sum = tallies.entry(place as usize).or_default();
        sum.trials += tally.trials;
        sum.position = match (sum.position, tally.position) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
    }
    let tallies = tallies.into_iter();
    let mut reasons: Vec<Reason> = tallies
        .map(|(place, tally)| builder.names.reasons.reason(place, tally))
        .collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.trials));
    reasons
}

/// Unknown where trials are known to cost only at least so much: leaving them out would make success cheaper than it is.
fn price_of_success(builder: &SummaryBuilder, cells: &[Cell<'_>]) -> Option<CostPerSuccess> {
    let names = &builder.names;
    let place = names
        .metrics
        .find(names.catalog.name_of(RowField::CostTotal))?;
    let (mut costs, mut successes) = (Vec::new(), Vec::new());
    if cells.iter().any(|cell| cell.incomplete_in(place) > 0) {
        return None;
    }
    for cell in cells {
        for trial in 0..cell.trials() {
            let cost = cell.value(place, trial);
            if cost.is_finite() {
                costs.push(cost);
                successes.push(cell.is_success(trial));
            }
        }
    }
    let price = cost_per_success(&costs, &successes).ok();
    price.filter(|_| !costs.is_empty())
}

impl Arm {
    /// By scenario.
    fn pass_counts(&self) -> Vec<Option<PassCount>> {
        let mut counts = Vec::new();
        for (scenario, cell) in self.cells.iter() {
            counts.resize(scenario, None);
            counts.push(Some(PassCount {
                passed: cell.passed.into(),
                trials: cell.judged(),
            }));
        }
        counts
    }

    fn into_name(self) -> ArmName {
        ArmName {
            suite: self.suite,
            mode: self.mode,
            model: self.model,
            nature: self.nature,
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Summary {
    /// The metric that a field of rows holds, and its summary in a mode.
    pub fn field<'a>(
        &self,
        mode: &'a ModeSummary,
        field: RowField,
    ) -> (Cow<'_, Metric>, Option<&'a MetricSummary>) {
        let metric = self.catalog.of_field(field);
        let summary = mode.metrics.find(&metric.name);
        (metric, summary)
    }

    /// The median of a field of rows, as tables show it.
    pub(crate) fn shown_median(&self, mode: &ModeSummary, field: RowField) -> String {
        let (metric, summary) = self.field(mode, field);
        cells::metric_cell(&metric, summary, Statistic::Median)
    }

    /// A sentence for the case that every trial of every mode ended with an error: then it is unknown which mode is better.
    pub fn nothing_worked(&self) -> Option<&'static str> {
        let is_broken = |mode: &ModeSummary| {
            mode.success.passed == 0
                && !mode.reasons.is_empty()
                && mode.reasons.iter().all(|reason| reason.is_error)
        };
        let all_are = self.modes.iter().all(|(_, mode)| is_broken(mode));
        (all_are && self.modes.len() > 1).then_some(
            "No verdict: every trial of every mode ended with an error, so nothing is known about which one is better.",
        )
    }

    /// The number of scenarios of the trials, listed one by one or not.
    pub fn scenario_count(&self) -> usize {
        self.scenarios.len() + self.scenarios_left_out
    }

    /// A note about scenarios that are not listed one by one. `None` when all of them are.
    pub fn left_out_words(&self) -> Option<String> {
        let left_out = self.scenarios_left_out;
        let metrics = self.metrics_left_out;
        let metrics = (metrics > 0).then(|| {
            format!(
                "and {metrics} more metrics, by tool or by plugin, are left out: there are too many. Every trial has its own in \
                 data/results.json."
            )
        });
        let scenarios = (left_out > 0).then(|| {
            format!(
                "{left_out} of {} scenarios are not listed one by one: those with trials that did not pass come first. All \
                 count in the numbers of their modes, and `assize report --format csv` lists every trial.",
                self.scenario_count()
            )
        });
        let both: Vec<String> = scenarios.into_iter().chain(metrics).collect();
        (!both.is_empty()).then(|| both.join(" "))
    }

    /// The place among the modes of the one that a trial counts for.
    pub fn mode_of(&self, row: &Row<'_>, suite: Option<&str>) -> Option<usize> {
        let nature = row.nature();
        self.arms.iter().position(|arm| {
            arm.mode == row.mode
                && arm.model == row.model
                && arm.nature == nature
                && arm.suite.as_deref() == suite
        })
    }

    /// The metrics to follow over runs: those that decide, and tokens, time and cost where they were measured.
    pub fn followed(&self) -> Vec<String> {
        const USUAL: [RowField; 3] = [
            RowField::TokensActive,
            RowField::WallTime,
            RowField::CostTotal,
        ];
        let is_measured = |name: &str| {
            self.modes
                .iter()
                .any(|(_, mode)| mode.metrics.find(name).is_some())
        };
        let mut followed = self.primary.clone();
        for name in USUAL.map(|field| self.catalog.name_of(field)) {
            if is_measured(name) && !followed.iter().any(|known| known == name) {
                followed.push(name.to_owned());
            }
        }
        followed
    }

    /// Comparisons of the deciding metrics, pair by pair.
    pub fn decisive(&self) -> impl Iterator<Item = &Comparison> {
        let comparisons = self.comparisons.iter();
        comparisons.filter(|comparison| !comparison.is_exploratory())
    }

    /// The comparisons of the deciding metrics, for each pair of modes.
    pub fn decisive_pairs(&self) -> impl Iterator<Item = Vec<&Comparison>> {
        let is_declared = |found: &&Comparison| !found.is_exploratory();
        self.pairs()
            .map(move |pair| pair.iter().filter(is_declared).collect())
    }

    /// A note about the tasks that the intervals of the modes' success apply to. `None` without any.
    pub fn success_scope_note(&self) -> Option<String> {
        let known = self.modes.iter().map(|(_, mode)| &mode.success);
        let scopes: Vec<Scope> = known
            .filter(|success| success.ci95.is_some())
            .map(|success| success.scope)
            .collect();
        let words = match (
            scopes.contains(&Scope::Population),
            scopes.contains(&Scope::Suite),
        ) {
            (true, false) => "tasks like these",
            (false, true) => "exactly these tasks",
            (true, true) => "tasks like these, and for exactly these where a mode has at most four",
            (false, false) => return None,
        };
        Some(format!("Intervals of success hold for {words}."))
    }

    /// Typical tasks by the deciding metrics: the mode, the metric, the value and its interval.
    pub(crate) fn typical_tasks(&self) -> Vec<[String; 4]> {
        let mut rows = Vec::new();
        for metric in &self.primary {
            let definition = self.catalog.metric(metric);
            for (name, mode) in self.modes.iter() {
                let found = mode.metrics.find(metric);
                if let Some(typical) = found.and_then(|found| found.typical_task) {
                    let [value, low, high] = [typical.value, typical.ci95[0], typical.ci95[1]]
                        .map(|value| shown_amount(&definition, value));
                    let metric = definition.label().to_owned();
                    rows.push([name.to_owned(), metric, value, format!("{low} to {high}")]);
                }
            }
        }
        rows
    }

    /// The comparisons of each pair of modes.
    pub fn pairs(&self) -> impl Iterator<Item = &[Comparison]> {
        self.comparisons
            .chunk_by(|a, b| (a.mode_a(), a.mode_b()) == (b.mode_a(), b.mode_b()))
    }
}
