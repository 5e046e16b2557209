//! `report.html`: one file that needs nothing else, made of a summary, the trials and some of their traces.
//!
//! Rows go in one at a time. The data kept of them is bounded: numbers for the charts, the trials of the table and as many
//! traces as fit; where that is not everything, the page says so. Pictures and tables are made here; a small script sorts
//! the table of trials and shows traces, which it writes as text and never as markup.

mod charts;
mod choice;
mod digest;
mod escape;
mod packed;
mod page;
mod scale;
mod svg;
mod tools;
mod traces;
mod trials;
mod waterfall;

use crate::row::Used;
use crate::{ModeSummary, ReportError, Row, Summary};
use assize_contracts::{
    AnalysisFinding, AnalysisResult, AtLimit, Catalog, MetricKind, Outcome, RowField, SessionTrace,
};
use charts::{Column, Measured, Square};
use choice::Choice;
use escape::EmbeddedJson;
use foldhash::fast::FixedState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use tools::ToolFlow;
use trials::Trial;

/// The most that a page holds.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    /// Trials in the table.
    pub trials: usize,
    /// Traces that can be opened.
    pub traces: usize,
    /// Bytes of all traces together.
    pub trace_bytes: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self {
            trials: 5_000,
            traces: 500,
            trace_bytes: 14 << 20,
        }
    }
}

/// A trace that takes more than this is no longer read but scrolled.
const LARGEST_TRACE: usize = 1 << 20;

/// Bytes of the checks and messages of all listed trials.
const MOST_DETAILS: usize = 2 << 20;

/// Metrics that are drawn; people look at a few.
const MOST_METRICS: usize = 18;

/// Squares drawn for a scenario in a mode.
const MOST_SQUARES: usize = 60;

/// Model calls on the axis of the growth of tokens.
const MOST_CALLS: usize = 120;

/// Runs that are named.
const MOST_RUNS: usize = 6;

/// A page under way.
#[derive(Debug)]
pub struct HtmlReport<'a> {
    summary: &'a Summary,
    limits: PageLimits,
    /// Indices of the scenarios that are listed one by one.
    scenarios: HashMap<&'a str, usize>,
    /// The metrics that are drawn, and what each mode's trials measured of each.
    metrics: Vec<DrawnMetric>,
    /// Their places by name.
    places: HashMap<String, usize, FixedState>,
    /// The name of the metric that counts tool calls.
    tool_calls: String,
    values: Vec<Vec<Column>>,
    /// By scenario and mode.
    squares: BTreeMap<(usize, usize), Vec<Square>>,
    flows: Vec<ToolFlow>,
    runs: BTreeSet<String>,
    rows: u64,
    /// The prompt of each scenario, and the instructions of each mode.
    prompts: Vec<String>,
    instructions: Vec<String>,
    shown: Choice,
    traced: Choice,
    trials: Vec<Trial>,
    detail_bytes: usize,
    traces: Vec<ShownTrace>,
    trace_bytes: usize,
    /// By mode and number of the model call: the input tokens of each trace.
    growth: Vec<Vec<Vec<f64>>>,
    splits: Vec<TimeSplit>,
    /// The circumstances of the run: label and value.
    facts: Vec<[String; 2]>,
    /// The settings of each mode: label and value.
    settings: Vec<Vec<[String; 2]>>,
    /// Tokens and cost of all trials.
    totals: [Total; 2],
    /// The start of the first listed trial and the end of the last, in milliseconds since 1970.
    span: Option<(i64, i64)>,
}

/// A metric that is drawn.
#[derive(Debug)]
struct DrawnMetric {
    name: String,
    /// Calls of tools of one category.
    is_category: bool,
    /// A trial that was cut off measured only a part of it.
    is_limited: bool,
}

impl DrawnMetric {
    fn new(name: String, catalog: &Catalog) -> Self {
        let metric = catalog.metric(&name);
        Self {
            is_category: matches!(metric.kind, MetricKind::ToolCategory(_)),
            is_limited: metric.at_limit != AtLimit::Whole,
            name,
        }
    }
}

/// A sum over trials.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    sum: f64,
    /// Trials of which something is known.
    known: u64,
    /// Some trials are known in part, or not at all.
    is_bound: bool,
}

impl Total {
    fn add(&mut self, used: Used) {
        let (value, is_bound) = match used {
            Used::Exactly(value) => (Some(value), false),
            Used::AtLeast(value) => (Some(value), true),
            Used::Unknown => (None, true),
        };
        self.is_bound |= is_bound;
        self.known += u64::from(value.is_some());
        self.sum += value.unwrap_or(0.0);
    }
}

/// A trial in the table.
#[derive(Debug, Clone, Copy)]
pub struct AddedTrial {
    trial: usize,
    cell: (usize, usize),
    outcome: Outcome,
}

/// A trial whose trace the page shows.
#[derive(Debug, Clone, Copy)]
pub struct WantedTrace {
    trial: usize,
    mode: usize,
}

#[derive(Debug)]
struct ShownTrace {
    trial: usize,
    json: EmbeddedJson,
}

/// The time of a mode's traces by what it was spent on.
#[derive(Debug, Default)]
struct TimeSplit {
    traces: u64,
    /// In the order in which they were first met.
    parts: Vec<TimePart>,
}

/// One part of the time, over all traces of a mode.
#[derive(Debug, Clone, Default)]
struct TimePart {
    name: String,
    ms: f64,
    /// `at most` or `at least`, where some trace times it only from outside.
    bound: String,
}

impl<'a> HtmlReport<'a> {
    /// An empty page for a summary.
    pub fn new(summary: &'a Summary, limits: PageLimits) -> Self {
        let metrics = drawn_metrics(summary);
        let modes = summary.modes.len();
        let columns = |mode: &ModeSummary| {
            let count = |name: &String| mode.metrics.find(name).map_or(0, |found| found.count);
            metrics
                .iter()
                .map(|name| Column::new(count(name)))
                .collect()
        };
        Self {
            summary,
            limits,
            scenarios: (summary.scenarios.iter().enumerate())
                .map(|(place, (id, _))| (id, place))
                .collect(),
            values: (summary.modes.iter())
                .map(|(_, mode)| columns(mode))
                .collect(),
            places: (metrics.iter().cloned().enumerate())
                .map(|(place, name)| (name, place))
                .collect(),
            metrics: (metrics.into_iter())
                .map(|name| DrawnMetric::new(name, &summary.catalog))
                .collect(),
            tool_calls: summary.catalog.name_of(RowField::ToolCalls).to_owned(),
            squares: BTreeMap::new(),
            flows: (0..modes).map(|_| ToolFlow::default()).collect(),
            runs: BTreeSet::new(),
            rows: 0,
            prompts: vec![String::new(); summary.scenarios.len()],
            instructions: vec![String::new(); modes],
            shown: Choice::new(summary, limits.trials),
            traced: Choice::new(summary, limits.traces),
            trials: Vec::new(),
            detail_bytes: 0,
            traces: Vec::new(),
            trace_bytes: 0,
            growth: vec![Vec::new(); modes],
            splits: (0..modes).map(|_| TimeSplit::default()).collect(),
            facts: Vec::new(),
            settings: vec![Vec::new(); modes],
            totals: [Total::default(); 2],
            span: None,
        }
    }

    /// Adds a trial of the summary; `json` is the text that `row` was read from.
    pub fn add(&mut self, row: &Row<'_>, json: &[u8], suite: Option<&str>) -> Option<AddedTrial> {
        let mode = self.summary.mode_of(row, suite)?;
        self.rows += 1;
        self.measure(row, mode);
        for (total, used) in self.totals.iter_mut().zip(row.used()) {
            total.add(used);
        }
        self.flows[mode].add_row(row);
        if self.runs.len() < MOST_RUNS {
            self.runs.insert(trials::shown(&row.run_id));
        }
        let scenario = *self.scenarios.get(&*row.scenario_id)?;
        let (cell, outcome) = ((scenario, mode), row.outcome());
        let trial = self.shown.takes(cell, outcome).then(|| {
            self.list(Trial::new(
                row,
                json,
                (scenario, mode),
                &self.summary.catalog,
            ));
            self.trials.len() - 1
        });
        let squares = self.squares.entry(cell).or_default();
        if squares.len() < MOST_SQUARES {
            squares.push(Square {
                iteration: row.iteration,
                outcome,
                trial,
            });
        }
        Some(AddedTrial {
            trial: trial?,
            cell,
            outcome,
        })
    }

    /// Adds a fact about the circumstances of the run.
    pub fn add_fact(&mut self, label: &str, value: &str) {
        let fact = [label, value].map(trials::shown);
        if !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
    }

    /// Adds a setting of a mode, for all models.
    pub fn add_setting(&mut self, mode: &str, label: &str, value: &str) {
        let arms = self.summary.arms.iter().zip(&mut self.settings);
        for (_, settings) in arms.filter(|(arm, _)| arm.is_of(mode)) {
            let setting = [label, value].map(trials::shown);
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }

    /// Adds the prompt of a scenario.
    pub fn add_prompt(&mut self, scenario: &str, prompt: &str) {
        if let Some(place) = self.scenarios.get(scenario) {
            self.prompts[*place] = trials::shown_long(prompt);
        }
    }

    /// Adds the instructions of a mode, for all models.
    pub fn add_instructions(&mut self, mode: &str, instructions: &str) {
        let arms = self.summary.arms.iter().zip(&mut self.instructions);
        for (_, told) in arms.filter(|(arm, _)| arm.is_of(mode)) {
            *told = trials::shown_long(instructions);
        }
    }

    /// Adds the final answer of a trial's agent.
    pub fn add_answer(&mut self, wanted: WantedTrace, answer: &str) {
        if self.has_room_for(answer) {
            self.trials[wanted.trial].answer = trials::shown_long(answer);
        }
    }

    /// Adds the changes that a trial's agent made to its workspace.
    pub fn add_diff(&mut self, wanted: WantedTrace, diff: &str) {
        if self.has_room_for(diff) {
            self.trials[wanted.trial].diff = trials::shown_long(diff);
        }
    }

    fn has_room_for(&mut self, text: &str) -> bool {
        let bytes = text.len().min(trials::LONGEST_TEXT);
        let fits = self.detail_bytes + bytes <= MOST_DETAILS;
        self.detail_bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Returns a ticket when the page would show the trace of this trial, if it has one.
    pub fn wants_trace_of(&mut self, added: AddedTrial) -> Option<WantedTrace> {
        let is_wanted = self.traced.takes(added.cell, added.outcome);
        is_wanted.then_some(WantedTrace {
            trial: added.trial,
            mode: added.cell.1,
        })
    }

    /// The trace of a trial, and what was found in it by analyzer.
    pub fn add_trace(
        &mut self,
        wanted: WantedTrace,
        trace: &SessionTrace,
        findings: &BTreeMap<String, AnalysisResult>,
    ) {
        let mode = wanted.mode;
        self.measure_growth(mode, trace);
        if let Some(time) = findings.get("time") {
            self.splits[mode].add(time);
        }
        let expected = self.limits.traces.min(self.summary_trials());
        let left = expected.saturating_sub(self.traces.len()).max(1);
        let bytes = self.limits.trace_bytes.saturating_sub(self.trace_bytes) / left;
        let json = EmbeddedJson::new(&traces::compact(trace, bytes.min(LARGEST_TRACE)));
        if self.trace_bytes + json.len() > self.limits.trace_bytes {
            return;
        }
        self.trace_bytes += json.len();
        let trial = &mut self.trials[wanted.trial];
        trial.has_trace = true;
        trial.findings = findings
            .values()
            .filter(|found| !found.summary.is_empty())
            .map(|found| {
                [
                    trials::shown(&found.analyzer),
                    trials::shown(&found.summary),
                ]
            })
            .collect();
        self.traces.push(ShownTrace {
            trial: wanted.trial,
            json,
        });
    }

    /// Writes the page.
    pub fn write(self, out: &mut impl Write, title: &str) -> Result<(), ReportError> {
        page::write(&self, out, title).map_err(ReportError::Write)
    }

    /// Lists a trial, with checks and messages while there is room.
    fn list(&mut self, trial: Trial) {
        if let Some((began, ended)) = trial.span {
            let (first, last) = self.span.unwrap_or((began, ended));
            self.span = Some((first.min(began), last.max(ended)));
        }
        let bytes = trial.detail_bytes();
        if self.detail_bytes + bytes > MOST_DETAILS {
            self.trials.push(trial.into_bare());
        } else {
            self.detail_bytes += bytes;
            self.trials.push(trial);
        }
    }

    fn summary_trials(&self) -> usize {
        self.summary
            .modes
            .iter()
            .map(|(_, mode)| mode.runs as usize)
            .sum()
    }

    fn measure(&mut self, row: &Row<'_>, mode: usize) {
        let catalog = &self.summary.catalog;
        // A collector may report a metric of the row again; the last value counts.
        let mut found: Vec<Option<f64>> = vec![None; self.metrics.len()];
        let mut has_seen_tools = false;
        row.for_each_measurement(catalog, |name, value| {
            has_seen_tools |= name == self.tool_calls;
            if let Some(place) = self.places.get(name) {
                found[*place] = Some(value);
            }
        });
        // Tools that were seen, none of which is of a category, are zero calls of it.
        if has_seen_tools {
            let metrics = self.metrics.iter().zip(&mut found);
            for (_, value) in metrics.filter(|(metric, _)| metric.is_category) {
                value.get_or_insert(0.0);
            }
        }
        let mut least: Vec<Option<f64>> = vec![None; self.metrics.len()];
        row.for_each_lower_bound(catalog, |name, value| {
            if let Some(place) = self.places.get(name) {
                least[*place] = Some(value);
            }
        });
        let is_censored = row.is_censored();
        let columns = self.values[mode].iter_mut().zip(&self.metrics);
        for ((column, metric), (value, least)) in columns.zip(found.into_iter().zip(least)) {
            let is_bound = (is_censored && metric.is_limited) || value.is_none();
            if let Some(value) = value.or(least) {
                column.push(Measured { value, is_bound });
            }
        }
    }

    fn measure_growth(&mut self, mode: usize, trace: &SessionTrace) {
        let inputs = traces::main_calls(trace).map(traces::input_of);
        for (call, input) in inputs.take(MOST_CALLS).enumerate() {
            if self.growth[mode].len() <= call {
                self.growth[mode].push(Vec::new());
            }
            self.growth[mode][call].extend(input.map(|input| input as f64));
        }
    }
}

/// Parts of the time beyond these are left out: an agent may name any number of tools.
const MOST_PARTS: usize = 200;

impl TimeSplit {
    /// Adds the table of the `time` analyzer: a part, its milliseconds, its share and its bound in every row.
    fn add(&mut self, time: &AnalysisResult) {
        let Some(AnalysisFinding::Table { rows, .. }) = time.findings.get("time_split") else {
            return;
        };
        self.traces += 1;
        for row in rows {
            let [name, ms, _, bound] = &row[..] else {
                continue;
            };
            let place = self.parts.iter().position(|part| part.name == *name);
            if place.is_none() && self.parts.len() >= MOST_PARTS {
                continue;
            }
            let place = place.unwrap_or_else(|| {
                self.parts.push(TimePart {
                    name: name.clone(),
                    ..TimePart::default()
                });
                self.parts.len() - 1
            });
            let part = &mut self.parts[place];
            part.ms += ms.parse().unwrap_or(0.0);
            if !bound.is_empty() {
                part.bound.clone_from(bound);
            }
        }
    }
}

/// The deciding metrics first, then the others as they came; what never varies is nothing to look at.
fn drawn_metrics(summary: &Summary) -> Vec<String> {
    let mut names: Vec<&str> = summary.primary.iter().map(String::as_str).collect();
    for (name, _) in summary
        .modes
        .iter()
        .flat_map(|(_, mode)| mode.metrics.iter())
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let varies = |name: &&str| {
        let found = || {
            summary
                .modes
                .iter()
                .filter_map(|(_, mode)| mode.metrics.find(name))
        };
        let low = found()
            .map(|metric| metric.min)
            .fold(f64::INFINITY, f64::min);
        let high = found()
            .map(|metric| metric.max)
            .fold(f64::NEG_INFINITY, f64::max);
        low < high
    };
    names.retain(varies);
    names.truncate(MOST_METRICS);
    names.into_iter().map(str::to_owned).collect()
}
