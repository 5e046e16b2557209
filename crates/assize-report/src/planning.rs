//! The plan of an experiment before it is run: trials, cost, the smallest differences it can show, and whether more scenarios
//! or more repetitions are the better buy. Numbers come from an earlier run; few scenarios give ranges.

use crate::words::number;
use crate::{Comparison, Summary, duration, money};
use assize_contracts::{ProfileRow, SUCCESS};
use assize_stats::special::student_t_quantile;
use assize_stats::{
    Components, Level, Measure, PlanBasis, Question, Split, SplitCost, Statistic, best_split,
    cheapest_split, detectable, tasks_for_margin,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The trials of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDesign {
    /// Scenarios and tasks.
    pub scenarios: u64,
    /// Repetitions of each.
    pub repetitions: u64,
    /// Modes, each with each model.
    pub arms: u64,
    /// Trials at once.
    pub concurrency: u64,
    /// Questions that are adjusted together: metrics to decide by, for each comparison.
    pub questions: u64,
    /// Modes that come from factors: effects average over all of them.
    pub factorial: bool,
}

impl PlanDesign {
    /// The number of trials.
    pub fn trials(&self) -> u64 {
        self.scenarios * self.repetitions * self.arms
    }
}

/// An estimate with its 80 % range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    fn words(self, show: impl Fn(f64) -> String) -> String {
        let (value, low, high) = (show(self.value), show(self.low), show(self.high));
        match low == high {
            true => format!("about {value}"),
            false => format!("about {value} ({low} to {high})"),
        }
    }
}

/// The time, cost and tokens of one block of an earlier run: one scenario once in every arm. Absent where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimates {
    /// Dollars per trial.
    pub usd: Option<Range>,
    /// Tokens per trial.
    pub tokens: Option<Range>,
    /// Milliseconds per trial.
    pub ms: Option<Range>,
    /// Trials that they come from.
    pub trials: u64,
}

impl Estimates {
    /// From the trials of an earlier run. Scenarios are the unit: their means differ more than chance.
    pub fn of_rows(rows: impl IntoIterator<Item = ProfileRow>) -> Self {
        let mut usd = Means::default();
        let mut tokens = Means::default();
        let mut ms = Means::default();
        let mut trials = 0;
        for row in rows {
            trials += 1;
            let spent = row.spent();
            usd.add(&row.scenario_id, spent.usd);
            tokens.add(&row.scenario_id, spent.tokens.map(|tokens| tokens as f64));
            ms.add(&row.scenario_id, Some(row.duration_ms()));
        }
        Self {
            usd: usd.range(),
            tokens: tokens.range(),
            ms: ms.range(),
            trials,
        }
    }
}

#[derive(Default)]
struct Means {
    sums: BTreeMap<String, (f64, f64)>,
    is_incomplete: bool,
}

impl Means {
    fn add(&mut self, scenario: &str, value: Option<f64>) {
        match value.filter(|value| value.is_finite()) {
            Some(value) => {
                let (sum, count) = self.sums.entry(scenario.to_owned()).or_default();
                *sum += value;
                *count += 1.0;
            }
            None => self.is_incomplete = true,
        }
    }

    /// The mean over scenarios. None where nothing is known, or where most is unknown.
    fn range(&self) -> Option<Range> {
        let means: Vec<f64> = self.sums.values().map(|(sum, count)| sum / count).collect();
        let count = means.len() as f64;
        if means.is_empty() {
            return None;
        }
        let mean = means.iter().sum::<f64>() / count;
        let squares: f64 = means
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum();
        let reach = match means.len() {
            1 => 0.0,
            _ => student_t_quantile(0.9, count - 1.0) * (squares / (count - 1.0) / count).sqrt(),
        };
        Some(Range {
            value: mean,
            low: (mean - reach).max(0.0),
            high: mean + reach,
        })
    }
}

/// A difference that should be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Detect {
    /// The metric. Absent: every metric to decide by.
    pub metric: Option<String>,
    /// A share of the baseline, or points of success divided by 100.
    pub size: f64,
}

/// A difference that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "found `{found}`, expected a difference such as `15%`, `success=10pp` or `tokens_active=15%`"
)]
pub struct DetectError {
    found: String,
}

impl std::str::FromStr for Detect {
    type Err = DetectError;

    fn from_str(text: &str) -> Result<Self, DetectError> {
        let error = || DetectError {
            found: text.to_owned(),
        };
        let (metric, size) = match text.split_once('=') {
            Some((metric, size)) => (Some(metric.trim().to_owned()), size.trim()),
            None => (None, text.trim()),
        };
        let is_points = ["pp", "points"].iter().any(|unit| size.ends_with(unit));
        let size_number = size
            .trim_end_matches("points")
            .trim_end_matches("pp")
            .trim_end_matches('%')
            .trim();
        let has_unit = size_number.len() < size.len();
        let value: f64 = size_number.parse().map_err(|_| error())?;
        let size = if has_unit { value / 100.0 } else { value };
        if !(size > 0.0 && size < 1.0) {
            return Err(error());
        }
        let metric = match (metric, is_points) {
            (Some(metric), true) if metric != SUCCESS => return Err(error()),
            (None, true) => Some(SUCCESS.to_owned()),
            (metric, _) => metric,
        };
        Ok(Self { metric, size })
    }
}

/// The input of a plan besides the earlier run.
#[derive(Debug, Clone)]
pub struct PlanInput<'a> {
    /// The trials.
    pub design: PlanDesign,
    /// The earlier run. Absent: nothing is known.
    pub summary: Option<&'a Summary>,
    /// The metrics to decide by, where no run gives them.
    pub primary: Vec<String>,
    /// The time and cost of earlier trials.
    pub estimates: Estimates,
    /// Differences to be shown.
    pub detect: Vec<Detect>,
    /// The most that may be spent.
    pub budget: Option<PlanBudget>,
    /// Dollars that one more scenario costs to make.
    pub scenario_usd: f64,
    /// Probability of showing a difference that is there.
    pub power: Level,
    /// Error rate of the whole report.
    pub alpha: Level,
    /// An equivalence margin, as a share.
    pub margin: Option<f64>,
}

/// An amount of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanBudget {
    /// Dollars.
    Usd(f64),
    Tokens(f64),
    Minutes(f64),
}

impl PlanBudget {
    fn amount(self) -> f64 {
        match self {
            Self::Usd(amount) | Self::Tokens(amount) | Self::Minutes(amount) => amount,
        }
    }

    /// Why such a budget cannot be split, given what trials took.
    fn problem(self, estimates: &Estimates) -> String {
        let (known, what, instead) = match self {
            Self::Usd(_) => (
                estimates.usd,
                "cost",
                "; plan with tokens or minutes instead",
            ),
            Self::Tokens(_) => (estimates.tokens, "use", "; plan with minutes instead"),
            Self::Minutes(_) => (estimates.ms, "take", ""),
        };
        let whole = self.words();
        match known {
            _ if estimates.trials == 0 => format!(
                "how to split {whole} is not known before a run: `assize plan --pilot` runs a few blocks"
            ),
            None => format!(
                "it is unknown what these trials {what}, so {whole} cannot be split{instead}"
            ),
            Some(_) => format!(
                "{whole} cannot be split sensibly: it pays for fewer than two scenarios, or for far more than any design needs"
            ),
        }
    }

    fn words(self) -> String {
        match self {
            Self::Usd(amount) => money(amount),
            Self::Tokens(amount) => format!("{} tokens", crate::number::quantity(amount)),
            Self::Minutes(amount) => duration(60_000.0 * amount),
        }
    }
}

impl std::str::FromStr for PlanBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || {
            format!("found `{text}`, expected an amount such as `20usd`, `500000tokens` or `90min`")
        };
        let trimmed = text.trim().trim_start_matches('$');
        let end = trimmed
            .find(|letter: char| letter.is_ascii_alphabetic())
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let number = number.trim().replace('_', "");
        let amount: f64 = number.parse().map_err(|_| error())?;
        if !(amount > 0.0 && amount.is_finite()) {
            return Err(error());
        }
        match unit.trim() {
            "" | "usd" | "USD" => Ok(Self::Usd(amount)),
            "tokens" | "token" => Ok(Self::Tokens(amount)),
            "min" | "minutes" | "m" => Ok(Self::Minutes(amount)),
            "h" | "hours" => Ok(Self::Minutes(60.0 * amount)),
            _ => Err(error()),
        }
    }
}

/// The plan of an experiment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentPlan {
    /// The trials.
    #[serde(flatten)]
    pub design: PlanDesign,
    /// Their number.
    pub trials: u64,
    /// The cost of all of them, in dollars.
    pub usd: Option<Range>,
    /// The tokens that they take.
    pub tokens: Option<Range>,
    /// The time that they take, in minutes.
    pub minutes: Option<Range>,
    /// The error rate that each question is held to.
    pub alpha: f64,
    /// Probability of showing a difference that is there.
    pub power: f64,
    /// The detectable differences of each metric to decide by.
    pub metrics: Vec<MetricPlan>,
    /// Why the budget was not split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_problem: Option<String>,
    /// Tasks that equivalence within the margin takes at least, however many runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_for_margin: Option<TasksForMargin>,
}

/// Tasks for a claim of equivalence about new tasks.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TasksForMargin {
    /// The margin in points.
    pub margin_pp: f64,
    /// The fewest tasks.
    pub tasks: u64,
}

/// The detectable difference of one metric.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricPlan {
    pub metric: String,
    #[serde(skip)]
    pub label: String,
    /// The comparison with the largest error, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<String>,
    /// The smallest difference that the design shows: percent, or points of success. Absent where nothing varied or nothing is known.
    pub detectable: Option<Range>,
    /// The share of the error that comes from differences between scenarios, in percent.
    pub between_percent: Option<Range>,
    /// The sizes that wanted differences need.
    pub targets: Vec<TargetPlan>,
    /// The best split of the budget, or of what the first wanted difference takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitPlan>,
    /// No run is known: this is the best that could be.
    pub assumed: bool,
}

/// The size that a wanted difference needs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetPlan {
    /// The difference in percent, or in points of success.
    pub size: f64,
    /// The chance of showing it with the planned trials.
    pub power: f64,
    /// Scenarios that it takes at the planned repetitions; absent when no sensible number does.
    pub scenarios: Option<u64>,
    /// The 80 % range of that.
    pub scenarios_range: Option<[u64; 2]>,
    /// Repetitions that it takes with the planned scenarios; absent when repetitions alone will not do.
    pub repetitions: Option<u64>,
}

/// A split of money between scenarios and repetitions.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SplitPlan {
    /// The budget; absent where the cheapest design for a difference was looked for.
    pub budget: Option<PlanBudget>,
    /// The numbers; `cost` is in the unit of the budget, without one in dollars where they are known, else in rounds.
    #[serde(flatten)]
    pub split: Split,
    /// The smallest difference that it shows, in percent or points.
    pub detectable: Option<f64>,
    /// The same for spending the budget on repetitions of the planned scenarios only.
    pub repetitions_only: Option<RepetitionsOnly>,
}

/// The budget spent on repetitions of the planned scenarios.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RepetitionsOnly {
    pub repetitions: u64,
    /// The smallest difference that they show, in percent or points.
    pub detectable: Option<f64>,
}

/// The variances of a question, and the scale of its effect sizes.
#[derive(Clone)]
struct Known {
    metric: String,
    label: String,
    comparison: Option<String>,
    basis: PlanBasis,
    assumed: bool,
}

impl Known {
    fn is_success(&self) -> bool {
        self.metric == SUCCESS
    }

    fn effect(&self, share: f64) -> f64 {
        match self.is_success() {
            true => share,
            false => self.basis.effect(share),
        }
    }

    /// Percent, or points.
    fn shown(&self, effect: f64) -> Option<f64> {
        match self.is_success() {
            true => Some(100.0 * effect.min(1.0)),
            false => self.basis.share(effect).map(|share| 100.0 * share),
        }
    }
}

impl ExperimentPlan {
    /// Plans the experiment.
    pub fn new(input: &PlanInput<'_>) -> Self {
        let design = input.design;
        let trials = design.trials() as f64;
        let all = |range: Option<Range>| range.map(|range| range.times(trials));
        let at_once = design.concurrency.clamp(1, design.trials().max(1)) as f64;
        let alpha =
            Level::new(input.alpha.value() / design.questions.max(1) as f64).unwrap_or(input.alpha);
        let planner = Planner { input, alpha };
        let margin = input.margin.and_then(|margin| {
            Some(TasksForMargin {
                margin_pp: 100.0 * margin,
                tasks: tasks_for_margin(margin, input.alpha)?,
            })
        });
        let metrics: Vec<MetricPlan> = known(input)
            .iter()
            .map(|known| planner.metric(known))
            .collect();
        let is_split = metrics.iter().any(|metric| metric.split.is_some());
        Self {
            budget_problem: input
                .budget
                .filter(|_| !is_split)
                .map(|budget| budget.problem(&input.estimates)),
            design,
            trials: design.trials(),
            usd: all(input.estimates.usd),
            tokens: all(input.estimates.tokens),
            minutes: all(input.estimates.ms).map(|range| range.times(1.0 / at_once / 60_000.0)),
            alpha: alpha.value(),
            power: input.power.value(),
            metrics,
            tasks_for_margin: margin,
        }
    }

    /// The whole plan for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.spending_lines();
        lines.extend(self.question_lines());
        for metric in &self.metrics {
            lines.extend(metric.lines(self.design));
        }
        lines.extend(self.budget_problem.clone());
        if let Some(TasksForMargin { margin_pp, tasks }) = self.tasks_for_margin {
            lines.push(format!(
                "equivalence within {} points for new tasks needs at least {tasks} tasks, however many runs",
                number(margin_pp)
            ));
        }
        lines
    }

    /// One or two lines before a run is agreed to.
    pub fn short_lines(&self) -> Vec<String> {
        let seen: Vec<String> = self
            .metrics
            .iter()
            .filter(|metric| !metric.assumed)
            .filter_map(MetricPlan::seen)
            .collect();
        match seen.is_empty() {
            true => Vec::new(),
            false => vec![format!(
                "This design shows {} ({} % power); `assize plan` shows more.",
                seen.join(", "),
                number(100.0 * self.power)
            )],
        }
    }

    fn spending_lines(&self) -> Vec<String> {
        let PlanDesign {
            scenarios,
            repetitions,
            arms,
            concurrency,
            ..
        } = self.design;
        let unknown = || "unknown".to_owned();
        let count = |value: f64| crate::number::quantity(value.round());
        vec![
            format!(
                "trials   {} = {scenarios} scenarios × {arms} modes × {repetitions} repetitions",
                self.trials
            ),
            format!(
                "cost     {}",
                self.usd.map_or_else(unknown, |usd| usd.words(money))
            ),
            format!(
                "tokens   {}",
                self.tokens
                    .map_or_else(unknown, |tokens| tokens.words(count))
            ),
            format!(
                "time     {}, {concurrency} at once",
                self.minutes.map_or_else(unknown, |minutes| minutes
                    .words(|minutes| duration(60_000.0 * minutes)))
            ),
        ]
    }

    fn question_lines(&self) -> Vec<String> {
        let questions = match self.design.questions {
            0 | 1 => "one question".to_owned(),
            many => format!("{many} questions"),
        };
        vec![format!(
            "{questions}, each decided at p ≤ {} with {} % power:",
            number_of_level(self.alpha),
            number(100.0 * self.power)
        )]
    }
}

fn number_of_level(level: f64) -> String {
    let text = format!("{level:.4}");
    text.trim_end_matches('0').to_owned()
}

/// The known variances of each metric to decide by: of several comparisons the one with the largest error.
fn known(input: &PlanInput<'_>) -> Vec<Known> {
    let Some(summary) = input.summary else {
        return assumed(input);
    };
    let effects = known_effects(input, summary);
    if !effects.is_empty() {
        return effects;
    }
    let mut all: Vec<Known> = Vec::new();
    let mut several: BTreeMap<String, u32> = BTreeMap::new();
    for comparison in &summary.comparisons {
        let is_primary = summary
            .primary
            .iter()
            .any(|name| name == comparison.metric());
        let Some(basis) = basis_of(comparison).filter(|_| is_primary) else {
            continue;
        };
        *several.entry(comparison.metric().to_owned()).or_default() += 1;
        let known = Known {
            metric: comparison.metric().to_owned(),
            label: comparison.definition().label().to_owned(),
            comparison: Some(format!(
                "{} against {}",
                comparison.mode_a(),
                comparison.mode_b()
            )),
            basis: adapted(basis, input.design),
            assumed: false,
        };
        match all.iter_mut().find(|other| other.metric == known.metric) {
            Some(other) if other.basis.components.spread2 < known.basis.components.spread2 => {
                *other = known;
            }
            Some(_) => {}
            None => all.push(known),
        }
    }
    for known in &mut all {
        if several[&known.metric] == 1 {
            known.comparison = None;
        }
    }
    let place = |known: &Known| {
        let mut primary = summary.primary.iter();
        primary.position(|name| *name == known.metric)
    };
    all.sort_by_key(place);
    if all.is_empty() { assumed(input) } else { all }
}

/// The same of the effects of an earlier run of the factors: of several effects on a metric the one with the largest error.
fn known_effects(input: &PlanInput<'_>, summary: &Summary) -> Vec<Known> {
    if !input.design.factorial {
        return Vec::new();
    }
    let of_metric = |metric: &String| {
        let effects = summary.effects.iter().filter(|effect| {
            effect.metric == *metric && effect.factors.len() == 1 && !effect.exploratory
        });
        let known = effects.filter_map(|effect| {
            let basis = effect.estimate.as_ref()?.plan_basis?;
            Some(Known {
                metric: metric.clone(),
                label: effect.label.clone(),
                comparison: Some(effect.effect.clone()),
                basis,
                assumed: false,
            })
        });
        let spread = |known: &Known| known.basis.components.spread2;
        known.max_by(|a, b| spread(a).total_cmp(&spread(b)))
    };
    summary.primary.iter().filter_map(of_metric).collect()
}

fn basis_of(comparison: &Comparison) -> Option<PlanBasis> {
    match comparison {
        Comparison::Success(found) => Some(PlanBasis {
            components: found.components?,
            measure: Measure::Difference,
            unit: 1.0,
            size: 1.0,
        }),
        Comparison::Metric(found) => found
            .plan_basis
            .filter(|basis| basis.components.spread2 > 0.0),
    }
}

/// An effect of a factor averages runs over half of the modes on either side.
fn adapted(mut basis: PlanBasis, design: PlanDesign) -> PlanBasis {
    if design.factorial && design.arms > 2 {
        let Components {
            scenarios,
            repetitions,
            omega2,
            within2,
            statistic,
            success_rate,
            ..
        } = basis.components;
        let within2 = within2 * 2.0 / design.arms as f64;
        let mut components = Components::new(scenarios, repetitions, 0.0, within2, statistic);
        components.success_rate = success_rate;
        components.spread2 = omega2 + components.within(repetitions);
        components.omega2 = omega2;
        basis.components = components;
    }
    basis
}

/// Without any run only success can be planned, at its best: scenarios that all pass half of the time.
fn assumed(input: &PlanInput<'_>) -> Vec<Known> {
    let has_success = input.primary.iter().any(|name| name == SUCCESS);
    let components = Components {
        scenarios: input.design.scenarios,
        repetitions: input.design.repetitions as f64,
        spread2: 0.5,
        omega2: 0.0,
        within2: 0.5,
        statistic: Statistic::Mean,
        success_rate: Some(0.5),
    };
    let basis = PlanBasis {
        components,
        measure: Measure::Difference,
        unit: 1.0,
        size: 1.0,
    };
    has_success
        .then(|| Known {
            metric: SUCCESS.to_owned(),
            label: SUCCESS.to_owned(),
            comparison: None,
            basis: adapted(basis, input.design),
            assumed: true,
        })
        .into_iter()
        .collect()
}

struct Planner<'a> {
    input: &'a PlanInput<'a>,
    alpha: Level,
}

impl Planner<'_> {
    fn metric(&self, known: &Known) -> MetricPlan {
        let components = known.basis.components;
        let ends = match known.assumed {
            true => [components; 2],
            false => components.range(),
        };
        let repetitions = self.input.design.repetitions as f64;
        let share = |components: &Components| 100.0 * components.between_share(repetitions);
        let between = Range {
            value: share(&components),
            low: share(&ends[0]),
            high: share(&ends[1]),
        };
        let wanted = self
            .input
            .detect
            .iter()
            .filter(|detect| match &detect.metric {
                Some(metric) => *metric == known.metric,
                None => true,
            });
        let sizes: Vec<f64> = wanted.map(|detect| detect.size).collect();
        MetricPlan {
            metric: known.metric.clone(),
            label: known.label.clone(),
            comparison: known.comparison.clone(),
            detectable: self.range_of(&components, &ends, |components| {
                known.shown(self.detectable(
                    components,
                    self.input.design.scenarios,
                    repetitions,
                )?)
            }),
            between_percent: (!known.assumed).then_some(between),
            targets: sizes
                .iter()
                .map(|size| self.target(known, *size, &ends))
                .collect(),
            split: self.split(known, sizes.first().copied()),
            assumed: known.assumed,
        }
    }

    fn range_of(
        &self,
        components: &Components,
        ends: &[Components; 2],
        of: impl Fn(&Components) -> Option<f64>,
    ) -> Option<Range> {
        Some(Range {
            value: of(components)?,
            low: of(&ends[0])?,
            high: of(&ends[1])?,
        })
    }

    fn detectable(&self, components: &Components, scenarios: u64, repetitions: f64) -> Option<f64> {
        detectable(
            components,
            scenarios,
            repetitions,
            self.alpha,
            self.input.power,
        )
    }

    fn question(&self, delta: f64) -> Question {
        Question {
            delta,
            alpha: self.alpha,
            power: self.input.power,
        }
    }

    fn target(&self, known: &Known, size: f64, ends: &[Components; 2]) -> TargetPlan {
        let design = self.input.design;
        let repetitions = design.repetitions as f64;
        let question = self.question(known.effect(size));
        let components = &known.basis.components;
        let needs = |components: &Components| question.scenarios_needed(components, repetitions);
        TargetPlan {
            size: 100.0 * size,
            power: question.power_of(components, design.scenarios, repetitions),
            scenarios: needs(components),
            scenarios_range: needs(&ends[0])
                .zip(needs(&ends[1]))
                .map(|(low, high)| [low, high]),
            repetitions: question.repetitions_needed(components, design.scenarios),
        }
    }

    /// The best use of the budget; without one, the cheapest design that shows the wanted difference.
    fn split(&self, known: &Known, size: Option<f64>) -> Option<SplitPlan> {
        if known.assumed {
            return None;
        }
        let design = self.input.design;
        let components = &known.basis.components;
        let estimates = &self.input.estimates;
        let per_trial = match self.input.budget {
            Some(PlanBudget::Tokens(_)) => estimates.tokens,
            Some(PlanBudget::Minutes(_)) => {
                let at_once = design.concurrency.max(1) as f64;
                estimates.ms.map(|ms| ms.times(1.0 / 60_000.0 / at_once))
            }
            Some(PlanBudget::Usd(_)) | None => estimates.usd,
        };
        let per_round = per_trial
            .map(|spent| spent.value * design.arms as f64)
            .filter(|spent| *spent > 0.0);
        let is_money = matches!(self.input.budget, Some(PlanBudget::Usd(_)) | None);
        let cost = SplitCost {
            scenario: match per_round.is_some() && is_money {
                true => self.input.scenario_usd,
                false => 0.0,
            },
            round: per_round.unwrap_or(1.0),
        };
        let budget = self.input.budget.filter(|_| per_round.is_some());
        let question = self.question(known.effect(size.unwrap_or(0.2)));
        let split = match budget {
            Some(budget) => best_split(components, &cost, budget.amount(), &question)?,
            None => {
                size?;
                cheapest_split(components, &cost, &question)?
            }
        };
        let repetitions_only = budget.and_then(|budget| {
            let round = cost.round * design.scenarios as f64;
            let affordable = (budget.amount() / round).floor();
            (affordable >= 1.0).then(|| RepetitionsOnly {
                repetitions: affordable as u64,
                detectable: self
                    .detectable(components, design.scenarios, affordable)
                    .and_then(|effect| known.shown(effect)),
            })
        });
        Some(SplitPlan {
            budget,
            detectable: split
                .min_detectable_effect
                .and_then(|effect| known.shown(effect)),
            split,
            repetitions_only,
        })
    }
}

impl MetricPlan {
    fn unit(&self) -> &'static str {
        match self.metric == SUCCESS {
            true => "points",
            false => "%",
        }
    }

    /// `tokens_active from 18 % on`.
    fn seen(&self) -> Option<String> {
        let seen = self.detectable?;
        Some(format!(
            "{} from {} {} on",
            self.label,
            number(seen.value),
            self.unit()
        ))
    }

    fn lines(&self, design: PlanDesign) -> Vec<String> {
        let unit = self.unit();
        let of = self.comparison.as_ref();
        let of = of.map_or_else(String::new, |pair| format!(" ({pair})"));
        let range = |range: Range| {
            let (low, high) = (number(range.low), number(range.high));
            match low == high {
                true => String::new(),
                false => format!(" ({low} to {high})"),
            }
        };
        let first = match (self.detectable, self.assumed) {
            (Some(seen), true) => format!(
                "  {}: no run is known; at best differences above {} {unit}",
                self.label,
                number(seen.value)
            ),
            (Some(seen), false) => format!(
                "  {}{of}: shows differences above {} {unit}{}",
                self.label,
                number(seen.value),
                range(seen)
            ),
            (None, _) => format!("  {}{of}: nothing is known about its variation", self.label),
        };
        let mut lines = vec![first];
        lines.extend(self.between_percent.map(|between| {
            format!(
                "    {} %{} of the error comes from differences between scenarios",
                number(between.value),
                range(between)
            )
        }));
        for target in &self.targets {
            lines.push(format!("    {}", target.words(design, unit)));
        }
        lines.extend(
            self.split
                .as_ref()
                .map(|split| format!("    {}", split.words(design, unit))),
        );
        lines
    }
}

impl TargetPlan {
    fn words(&self, design: PlanDesign, unit: &str) -> String {
        let size = number(self.size);
        let chance = format!(
            "{size} {unit}: shown with {} % chance as planned",
            number(100.0 * self.power)
        );
        let scenarios = match (self.scenarios, self.scenarios_range) {
            (Some(needed), _) if needed <= design.scenarios => None,
            (_, Some([low, high])) if low < high => Some(format!("{low} to {high} scenarios")),
            (Some(needed), _) => Some(format!("{needed} scenarios")),
            (None, _) => None,
        };
        let more = match (scenarios, self.repetitions) {
            (None, _) if self.scenarios.is_some() => String::new(),
            (Some(scenarios), Some(repetitions)) => format!(
                "; needs {scenarios} at {} repetitions, or {repetitions} repetitions of these",
                design.repetitions
            ),
            (Some(scenarios), None) => format!(
                "; needs {scenarios} at {} repetitions; repetitions alone will not do",
                design.repetitions
            ),
            (None, Some(repetitions)) => format!("; needs {repetitions} repetitions"),
            (None, None) => "; no sensible number of trials shows it".to_owned(),
        };
        format!("{chance}{more}")
    }
}

impl SplitPlan {
    fn words(&self, design: PlanDesign, unit: &str) -> String {
        let Split {
            scenarios,
            repetitions,
            cost,
            ..
        } = self.split;
        let shows = |seen: Option<f64>| {
            seen.map_or_else(String::new, |seen| {
                format!(", shows {} {unit}", number(seen))
            })
        };
        match self.budget {
            Some(budget) => {
                let only = self.repetitions_only.map_or_else(String::new, |only| {
                    format!(
                        "; all of it on your {} scenarios: {} repetitions{}",
                        design.scenarios,
                        only.repetitions,
                        shows(only.detectable)
                    )
                });
                format!(
                    "best split of {}: {scenarios} scenarios × {repetitions} repetitions{}{only}",
                    budget.words(),
                    shows(self.detectable)
                )
            }
            None => format!(
                "cheapest design for it: {scenarios} scenarios × {repetitions} repetitions, {} trials{}",
                scenarios * repetitions * design.arms,
                match cost > 0.0 && design.arms > 0 {
                    true => shows(self.detectable),
                    false => String::new(),
                }
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_read_in_every_form() {
        let check = |text: &str, metric: Option<&str>, size: f64| {
            let found: Detect = text.parse().unwrap();
            assert_eq!(found.metric.as_deref(), metric, "{text}");
            assert!((found.size - size).abs() < 1e-12, "{text}");
        };
        check("15%", None, 0.15);
        check("0.15", None, 0.15);
        check("10pp", Some("success"), 0.1);
        check("success=10pp", Some("success"), 0.1);
        check("tokens_active = 20 %", Some("tokens_active"), 0.2);
        for wrong in ["", "abc", "150%", "-3%", "tokens=10pp", "0"] {
            assert!(wrong.parse::<Detect>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_plan_without_any_run_says_what_success_can_show_at_best() {
        let plan = ExperimentPlan::new(&PlanInput {
            design: PlanDesign {
                scenarios: 10,
                repetitions: 5,
                arms: 2,
                concurrency: 4,
                questions: 2,
                factorial: false,
            },
            summary: None,
            primary: vec![SUCCESS.to_owned()],
            estimates: Estimates::default(),
            detect: vec!["success=10pp".parse().unwrap()],
            budget: None,
            scenario_usd: 0.0,
            power: Level::POWER_80,
            alpha: Level::ALPHA_05,
            margin: Some(0.1),
        });
        assert_eq!((plan.trials, plan.usd), (100, None));
        assert_eq!(plan.tasks_for_margin.unwrap().tasks, 29);
        let text = plan.lines().join("\n");
        assert!(text.contains("cost     unknown"), "{text}");
        assert!(text.contains("at best differences above"), "{text}");
    }
}
