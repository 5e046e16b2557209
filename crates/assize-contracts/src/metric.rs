//! The meaning of the numbers that trials leave behind: unit, direction, words, and what a time limit does to them.
//!
//! `BUILT_IN` is the one table of metrics that Assize measures itself. A [`Catalog`] holds those of one run: a run stores it, and
//! reports read it. Nothing outside this file looks into the text of a metric's name.

use crate::CustomMetric;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The name of the one metric that is a rate of trials instead of a number per trial.
pub const SUCCESS: &str = "success";

/// A number of a trial, and how to read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// The key among a row's `extensions`.
    pub name: Cow<'static, str>,
    /// `ms`, `USD`, `ratio` and `count` have forms of their own; any other unit is shown behind the number. Empty: unknown.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub unit: Cow<'static, str>,
    /// The direction that counts as better. Absent: differences are shown and not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// The name in tables and sentences, such as `active tokens`. Absent: the metric's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Cow<'static, str>>,
    /// Words for a smaller value, such as `fewer tokens`. Absent: `lower <label>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub less: Option<Cow<'static, str>>,
    /// Words for a larger value, such as `more tokens`. Absent: `higher <label>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Cow<'static, str>>,
    /// The effect of a time limit on the value of a trial that it cut off.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at_limit: AtLimit,
    /// The statistic that suits it unless the suite names another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub typical: Typical,
    /// Its place among the built-in metrics.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: MetricKind,
}

/// The direction in which a metric gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// The number that stands for the runs of one scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Typical {
    /// The middle value.
    #[default]
    Median,
    /// The arithmetic mean: for counts that are mostly 0, and for cost, which adds up.
    Mean,
}

/// The value of a trial that ran into its time limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AtLimit {
    /// As complete as that of any other trial.
    #[default]
    Whole,
    /// A clock that ran until the limit.
    Clock,
    /// The part that was used until the limit.
    LowerBound,
}

/// The role of a metric among the built-in ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricKind {
    /// A plugin's number or a score.
    #[default]
    Plain,
    /// A number of Assize's collectors that nothing else is derived from.
    BuiltIn,
    /// The share of judged trials that pass.
    Success,
    /// A number for which rows have a field.
    Field(RowField),
    /// The agent's own figure, beside the one that counts. It is never compared.
    Claim(RowField),
    /// Calls of tools of this category.
    ToolCategory(String),
    /// The part of the wall time with this label.
    TimeSegment(String),
    /// Measured by the scorer while it judged; replaced when a trial is scored again.
    Judging,
    /// 1 where another vote of the judge would have changed the outcome, else 0; replaced like `Judging`.
    HangsOnOneVote,
}

/// A number that rows hold in a field of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RowField {
    /// `tokens.input`
    TokensInput,
    /// `tokens.output`
    TokensOutput,
    /// `tokens.reasoning`
    TokensReasoning,
    /// `tokens.cacheRead`
    TokensCacheRead,
    /// `tokens.cacheWrite`
    TokensCacheWrite,
    /// `tokens.total`
    TokensTotal,
    /// `tokens.active`
    TokensActive,
    /// `timing.wallMs`
    WallTime,
    /// `toolCalls.total`
    ToolCalls,
    /// `toolCalls.failed`
    ToolCallsFailed,
    /// `toolCalls.retried`
    ToolCallsRetried,
    /// `toolCalls.errorRate`
    ToolErrorRate,
    /// `cost.totalUsd`
    CostTotal,
    /// `cost.inputUsd`
    CostInput,
    /// `cost.outputUsd`
    CostOutput,
    /// `cost.reasoningUsd`
    CostReasoning,
    /// `agentTurns`
    AgentTurns,
}

impl RowField {
    /// Every field that holds a metric.
    pub const ALL: [Self; 17] = [
        Self::TokensInput,
        Self::TokensOutput,
        Self::TokensReasoning,
        Self::TokensCacheRead,
        Self::TokensCacheWrite,
        Self::TokensTotal,
        Self::TokensActive,
        Self::WallTime,
        Self::ToolCalls,
        Self::ToolCallsFailed,
        Self::ToolCallsRetried,
        Self::ToolErrorRate,
        Self::CostTotal,
        Self::CostInput,
        Self::CostOutput,
        Self::CostReasoning,
        Self::AgentTurns,
    ];

    /// The built-in name of the metric, as the collectors use it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokensInput => "tokens_input",
            Self::TokensOutput => "tokens_output",
            Self::TokensReasoning => "tokens_reasoning",
            Self::TokensCacheRead => "tokens_cache_read",
            Self::TokensCacheWrite => "tokens_cache_write",
            Self::TokensTotal => "tokens_total",
            Self::TokensActive => "tokens_active",
            Self::WallTime => "latency_wall_ms",
            Self::ToolCalls => "tool_calls_total",
            Self::ToolCallsFailed => "tool_calls_failed",
            Self::ToolCallsRetried => "tool_calls_retried",
            Self::ToolErrorRate => "tool_calls_error_rate",
            Self::CostTotal => "cost_total_usd",
            Self::CostInput => "cost_input_usd",
            Self::CostOutput => "cost_output_usd",
            Self::CostReasoning => "cost_reasoning_usd",
            Self::AgentTurns => "agent_turns",
        }
    }

    /// A price of the session or of a part of it.
    pub const fn is_cost(self) -> bool {
        matches!(
            self,
            Self::CostTotal | Self::CostInput | Self::CostOutput | Self::CostReasoning
        )
    }
}

/// The metrics that Assize measures itself. No other file defines one of them.
static BUILT_IN: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    vec![
        Metric {
            better: Some(Better::Higher),
            typical: Typical::Mean,
            kind: MetricKind::Success,
            ..row(SUCCESS, "ratio", "success")
        },
        tokens(RowField::TokensInput, "input tokens", LOWER)
            .words("fewer input tokens", "more input tokens"),
        tokens(RowField::TokensOutput, "output tokens", LOWER)
            .words("fewer output tokens", "more output tokens"),
        tokens(RowField::TokensReasoning, "reasoning tokens", LOWER)
            .words("fewer reasoning tokens", "more reasoning tokens"),
        // More cached tokens can be cheaper or dearer: that depends on what they replace.
        tokens(RowField::TokensCacheRead, "cached tokens", None)
            .words("fewer cached tokens", "more cached tokens"),
        tokens(
            RowField::TokensCacheWrite,
            "tokens written to a cache",
            LOWER,
        )
        .words(
            "fewer tokens written to a cache",
            "more tokens written to a cache",
        ),
        tokens(RowField::TokensTotal, "tokens", LOWER).words("fewer tokens", "more tokens"),
        // Not just "tokens": cached ones are not among them, and the table shows the total.
        tokens(RowField::TokensActive, "active tokens", LOWER)
            .words("fewer active tokens", "more active tokens"),
        Metric {
            at_limit: AtLimit::Clock,
            ..field(RowField::WallTime, "ms", "time", LOWER)
        }
        .words("less time", "more time"),
        Metric {
            at_limit: AtLimit::LowerBound,
            ..field(RowField::ToolCalls, "count", "tool calls", None)
        }
        .words("fewer tool calls", "more tool calls"),
        rare(RowField::ToolCallsFailed, "failed tool calls")
            .words("fewer failed tool calls", "more failed tool calls"),
        rare(RowField::ToolCallsRetried, "retried tool calls")
            .words("fewer retried tool calls", "more retried tool calls"),
        field(
            RowField::ToolErrorRate,
            "ratio",
            "share of failed tool calls",
            LOWER,
        ),
        cost(RowField::CostTotal, "cost").words("less cost", "more cost"),
        cost(RowField::CostInput, "cost of input")
            .words("less cost of input", "more cost of input"),
        cost(RowField::CostOutput, "cost of output")
            .words("less cost of output", "more cost of output"),
        cost(RowField::CostReasoning, "cost of reasoning")
            .words("less cost of reasoning", "more cost of reasoning"),
        Metric {
            at_limit: AtLimit::LowerBound,
            ..field(RowField::AgentTurns, "count", "turns", LOWER)
        }
        .words("fewer turns", "more turns"),
        claim("tokens_reported_input", RowField::TokensInput),
        claim("tokens_reported_output", RowField::TokensOutput),
        claim("tokens_reported_reasoning", RowField::TokensReasoning),
        claim("tokens_reported_cache_read", RowField::TokensCacheRead),
        claim("tokens_reported_cache_write", RowField::TokensCacheWrite),
        claim("tokens_reported_total", RowField::TokensTotal),
        claim("tokens_reported_active", RowField::TokensActive),
        claim("cost_reported_usd", RowField::CostTotal),
        row("tool_calls_unique", "count", "different tools"),
        row("program_exit_code", "code", "exit code"),
        row("program_signal", "signal", "signal"),
        row("program_cpu_ms", "ms", "processor time"),
        row("program_peak_memory_bytes", "bytes", "peak memory"),
        row("program_oom_kills", "count", "processes killed for memory"),
        row("files_added", "files", "files added"),
        row("files_modified", "files", "files modified"),
        row("files_deleted", "files", "files deleted"),
        often("skill_activated", "trials that use the skill"),
        often("skill_offered", "trials that are offered the skill"),
        row("skill_activations", "count", "uses of the skill"),
        row(
            "skill_activation_turn",
            "count",
            "turn of the first use of the skill",
        ),
        row(
            "skill_time_to_activation_ms",
            "ms",
            "time to the first use of the skill",
        ),
        row(
            "skill_tokens_to_activation",
            "tokens",
            "tokens before the first use of the skill",
        ),
        row(
            "skill_text_tokens",
            "tokens",
            "tokens of the skill's text (estimate)",
        ),
        often(
            "skill_detectors_agree",
            "trials whose tool calls and wire agree on the skill",
        ),
        often(
            "skill_neighbour_activated",
            "trials that use a neighbour of the skill",
        ),
        often("skill_should_trigger", "trials that should use the skill"),
        Metric {
            better: Some(Better::Higher),
            typical: Typical::Mean,
            ..row(
                "skill_trigger_correct",
                "ratio",
                "trials that use the skill when they should",
            )
        },
        judging("judge_calls", "count", "calls of the judge"),
        judging("judge_tokens_total", "tokens", "tokens of the judge"),
        judging("judge_cost_usd", "USD", "cost of the judge"),
        judging("judge_latency_ms", "ms", "time of the judge"),
        judging("judge_agreement", "ratio", "agreement of the judge's votes"),
        judging("judge_alpha", "", "alpha of the judge's votes"),
        Metric {
            kind: MetricKind::HangsOnOneVote,
            ..row(
                "judge_hangs_on_one_vote",
                "ratio",
                "trials that hang on one vote of the judge",
            )
        },
        score("accuracy"),
        score("token_f1"),
        score("edit_similarity"),
        score("text_match"),
        // Names that other profilers use for what rows have no field for.
        Metric {
            better: LOWER,
            typical: Typical::Mean,
            at_limit: AtLimit::LowerBound,
            ..row("errors", "count", "errors")
        },
        Metric {
            better: LOWER,
            at_limit: AtLimit::LowerBound,
            ..row("turns", "count", "turns")
        },
    ]
});

const LOWER: Option<Better> = Some(Better::Lower);

fn row(name: &'static str, unit: &'static str, label: &'static str) -> Metric {
    Metric {
        name: Cow::Borrowed(name),
        unit: Cow::Borrowed(unit),
        better: None,
        label: Some(Cow::Borrowed(label)),
        less: None,
        more: None,
        at_limit: AtLimit::Whole,
        typical: Typical::Median,
        kind: MetricKind::BuiltIn,
    }
}

fn field(
    field: RowField,
    unit: &'static str,
    label: &'static str,
    better: Option<Better>,
) -> Metric {
    Metric {
        better,
        kind: MetricKind::Field(field),
        ..row(field.name(), unit, label)
    }
}

fn tokens(of: RowField, label: &'static str, better: Option<Better>) -> Metric {
    Metric {
        at_limit: AtLimit::LowerBound,
        ..field(of, "tokens", label, better)
    }
}

/// A count that is mostly 0.
fn rare(of: RowField, label: &'static str) -> Metric {
    Metric {
        at_limit: AtLimit::LowerBound,
        typical: Typical::Mean,
        ..field(of, "count", label, LOWER)
    }
}

fn cost(of: RowField, label: &'static str) -> Metric {
    Metric {
        at_limit: AtLimit::LowerBound,
        typical: Typical::Mean,
        ..field(of, "USD", label, LOWER)
    }
}

fn claim(name: &'static str, of: RowField) -> Metric {
    let unit = if of.is_cost() { "USD" } else { "tokens" };
    Metric {
        name: Cow::Borrowed(name),
        unit: Cow::Borrowed(unit),
        better: None,
        label: None,
        less: None,
        more: None,
        at_limit: AtLimit::LowerBound,
        typical: Typical::Median,
        kind: MetricKind::Claim(of),
    }
}

/// A yes-or-no metric, 0 or 1 in a trial; its mean is the share of trials in which it holds.
fn often(name: &'static str, label: &'static str) -> Metric {
    Metric {
        typical: Typical::Mean,
        ..row(name, "ratio", label)
    }
}

fn judging(name: &'static str, unit: &'static str, label: &'static str) -> Metric {
    Metric {
        kind: MetricKind::Judging,
        ..row(name, unit, label)
    }
}

fn score(name: &'static str) -> Metric {
    Metric {
        name: Cow::Borrowed(name),
        unit: Cow::Borrowed("ratio"),
        better: Some(Better::Higher),
        label: None,
        less: None,
        more: None,
        at_limit: AtLimit::Whole,
        typical: Typical::Median,
        kind: MetricKind::BuiltIn,
    }
}

impl Metric {
    /// The metric that records whether a trial used the skill on trial: 0 or 1.
    pub const SKILL_ACTIVATED: &'static str = "skill_activated";

    /// The metric that records whether a trial should use it: 0 or 1.
    pub const SKILL_SHOULD_TRIGGER: &'static str = "skill_should_trigger";

    /// A metric about which only the name is known.
    pub fn unknown(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            unit: Cow::Borrowed(""),
            better: None,
            label: None,
            less: None,
            more: None,
            at_limit: AtLimit::Whole,
            typical: Typical::Median,
            kind: MetricKind::Plain,
        }
    }

    /// The built-in metric of exactly this name.
    pub fn built_in(name: &str) -> Option<&'static Self> {
        BUILT_IN.iter().find(|metric| metric.name == name)
    }

    /// The rate of trials that pass.
    pub fn success() -> &'static Self {
        Self::built_in(SUCCESS).expect("success is in the table")
    }

    /// The names of all built-in metrics but those that carry a label of a trial in their name.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|metric| &*metric.name)
    }

    /// The metric that a name alone gives: a built-in one, or one of a built-in collector whose name carries a label. Such a name gives the
    /// unit and never a direction, since a plugin may use it for something else.
    pub fn named(name: &str) -> Self {
        if let Some(metric) = Self::built_in(name) {
            return metric.clone();
        }
        let segment = name
            .strip_prefix(SEGMENT.0)
            .and_then(|rest| rest.strip_suffix(SEGMENT.1));
        let mut metric = match (segment, name.strip_prefix(CATEGORY)) {
            (Some(label), _) => Self::time_segment(label),
            (None, Some(category)) => Self::tool_category(category),
            (None, None) => Self::unknown(name.to_owned()),
        };
        metric.better = None;
        // Several judges are distinguished by a number.
        if metric.kind == MetricKind::Plain && name.starts_with(JUDGE) {
            metric.kind = MetricKind::Judging;
        }
        metric
    }

    /// The part of the wall time with this label.
    pub fn time_segment(label: &str) -> Self {
        Self {
            unit: Cow::Borrowed("ms"),
            better: LOWER,
            at_limit: AtLimit::Clock,
            kind: MetricKind::TimeSegment(label.to_owned()),
            ..Self::unknown([SEGMENT.0, label, SEGMENT.1].concat())
        }
    }

    /// Calls of tools of this category.
    pub fn tool_category(category: &str) -> Self {
        Self {
            unit: Cow::Borrowed("count"),
            kind: MetricKind::ToolCategory(category.to_owned()),
            ..Self::unknown([CATEGORY, category].concat())
        }
    }

    /// The name of the label that was expected, beside the metric that holds the label that came out.
    pub fn expected_name(label: &str) -> String {
        [label, "_expected"].concat()
    }

    /// A score of the lab under its full name, with the meaning of the evaluator's metric where that is built in.
    pub fn score(name: &str, metric: &str) -> Self {
        let known = Self::built_in(metric).filter(|known| known.kind == MetricKind::BuiltIn);
        let known = known.cloned().unwrap_or_else(|| Self::unknown(""));
        Self {
            kind: match name == metric {
                true => known.kind,
                false => MetricKind::Plain,
            },
            name: Cow::Owned(name.to_owned()),
            ..known
        }
    }

    /// The name in sentences.
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }

    /// The name in tables: the label, and the key by which suites and gates name it.
    pub fn title(&self) -> String {
        match self.label.as_deref() {
            Some(label) if label != self.name => format!("{label} ({})", self.name),
            _ => self.name.clone().into_owned(),
        }
    }

    /// `fewer tokens`, or `lower <label>`.
    pub fn less(&self) -> Cow<'_, str> {
        match &self.less {
            Some(words) => Cow::Borrowed(words),
            None => Cow::Owned(format!("lower {}", self.label())),
        }
    }

    /// `more tokens`, or `higher <label>`.
    pub fn more(&self) -> Cow<'_, str> {
        match &self.more {
            Some(words) => Cow::Borrowed(words),
            None => Cow::Owned(format!("higher {}", self.label())),
        }
    }

    /// A share between 0 and 1.
    pub fn is_ratio(&self) -> bool {
        self.unit == "ratio"
    }

    /// A number of things that happened in a trial.
    pub fn is_count(&self) -> bool {
        self.unit == "count"
    }

    /// The field of the row that holds it.
    pub fn field(&self) -> Option<RowField> {
        match self.kind {
            MetricKind::Field(field) => Some(field),
            _ => None,
        }
    }

    /// The agent's own figure, which is no result to compare.
    pub fn is_claim(&self) -> bool {
        matches!(self.kind, MetricKind::Claim(_))
    }

    /// The price of the session or of a part of it, whoever reported it.
    pub fn is_session_cost(&self) -> bool {
        matches!(self.kind, MetricKind::Field(field) | MetricKind::Claim(field) if field.is_cost())
    }

    /// A count, time, cost or share of the session, which cannot be below 0.
    pub fn is_never_negative(&self) -> bool {
        matches!(
            self.kind,
            MetricKind::Field(_)
                | MetricKind::Claim(_)
                | MetricKind::ToolCategory(_)
                | MetricKind::TimeSegment(_)
        )
    }

    /// Measured by the scorer while it judged, and replaced when a trial is scored again.
    pub fn is_of_judging(&self) -> bool {
        matches!(self.kind, MetricKind::Judging | MetricKind::HangsOnOneVote)
    }

    /// Measured by Assize itself, so that its name already contains the unit. A judge's score on a scale is the suite's own.
    pub fn is_built_in(&self) -> bool {
        match self.kind {
            MetricKind::Plain | MetricKind::Judging | MetricKind::HangsOnOneVote => {
                Self::built_in(&self.name).is_some()
            }
            _ => true,
        }
    }

    fn words(mut self, less: &'static str, more: &'static str) -> Self {
        self.less = Some(Cow::Borrowed(less));
        self.more = Some(Cow::Borrowed(more));
        self
    }
}

/// Prefixes and suffixes of metrics whose names carry a label.
const SEGMENT: (&str, &str) = ("latency_", "_ms");
const CATEGORY: &str = "tool_calls_category_";
const JUDGE: &str = "judge_";

/// The names of the metrics that a judge's spending is in.
pub(crate) struct Judge {
    pub(crate) cost: String,
    pub(crate) tokens: String,
}

impl Judge {
    /// The judge whose calls this metric counts: `judge_calls`, `judge_2_calls` of a second one, or `step.judge_calls`.
    pub(crate) fn of_calls(name: &str) -> Option<Self> {
        let prefix = name.strip_suffix("calls")?;
        let own = prefix.rsplit('.').next().unwrap_or(prefix);
        let number = own.strip_prefix(JUDGE)?.trim_end_matches('_');
        number
            .bytes()
            .all(|digit| digit.is_ascii_digit())
            .then(|| Self {
                cost: [prefix, "cost_usd"].concat(),
                tokens: [prefix, "tokens_total"].concat(),
            })
    }
}

impl From<&CustomMetric> for Metric {
    /// A declaration wins over what is built in under the same name.
    fn from(found: &CustomMetric) -> Self {
        let mut metric = match Self::built_in(&found.name) {
            Some(metric) => metric.clone(),
            None => Self::unknown(found.name.clone()),
        };
        if !found.unit.is_empty() {
            metric.unit = found.unit.clone();
        }
        metric.better = found.better.or(metric.better);
        if let Some(label) = &found.label {
            metric.label = Some(label.clone());
            (metric.less, metric.more) = (None, None);
        }
        if found.kind != MetricKind::Plain {
            metric.kind = found.kind.clone();
        }
        if matches!(metric.kind, MetricKind::TimeSegment(_)) {
            metric.at_limit = AtLimit::Clock;
        }
        metric
    }
}

/// The metrics of a run, by name. Those that it does not list are read by their names alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    metrics: BTreeMap<String, Metric>,
    /// Fields and categories whose metrics have other names than the built-in ones.
    fields: BTreeMap<RowField, String>,
    categories: BTreeMap<String, String>,
}

impl Catalog {
    /// Adds a metric, or replaces the one of that name.
    pub fn insert(&mut self, metric: Metric) {
        match &metric.kind {
            MetricKind::Field(field) if field.name() != metric.name => {
                self.fields.insert(*field, metric.name.clone().into_owned());
            }
            MetricKind::ToolCategory(category) => {
                self.categories
                    .insert(category.clone(), metric.name.clone().into_owned());
            }
            _ => {}
        }
        self.metrics
            .insert(metric.name.clone().into_owned(), metric);
    }

    /// Adds the metrics of another catalog that this one does not have.
    pub fn merge(&mut self, other: &Self) {
        for metric in other.iter() {
            if !self.contains(&metric.name) {
                self.insert(metric.clone());
            }
        }
    }

    /// The metric of that name. One that is not listed is read by its name alone.
    pub fn metric(&self, name: &str) -> Cow<'_, Metric> {
        match self.metrics.get(name) {
            Some(metric) => Cow::Borrowed(metric),
            None => Cow::Owned(Metric::named(name)),
        }
    }

    /// The name of the metric that a field of rows holds.
    pub fn name_of(&self, field: RowField) -> &str {
        self.fields.get(&field).map_or(field.name(), String::as_str)
    }

    /// The metric that a field of rows holds.
    pub fn of_field(&self, field: RowField) -> Cow<'_, Metric> {
        self.metric(self.name_of(field))
    }

    /// The name of the metric that counts the tool calls of this category.
    pub fn category_name(&self, category: &str) -> Cow<'_, str> {
        match self.categories.get(category) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned([CATEGORY, category].concat()),
        }
    }

    /// True for a metric that is listed.
    pub fn contains(&self, name: &str) -> bool {
        self.metrics.contains_key(name)
    }

    /// The listed metrics, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Metric> {
        self.metrics.values()
    }

    /// The number of listed metrics.
    pub fn len(&self) -> usize {
        self.metrics.len()
    }

    /// True where none is listed.
    pub fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }
}

impl FromIterator<Metric> for Catalog {
    fn from_iter<T: IntoIterator<Item = Metric>>(metrics: T) -> Self {
        let mut catalog = Self::default();
        metrics
            .into_iter()
            .for_each(|metric| catalog.insert(metric));
        catalog
    }
}

impl Serialize for Catalog {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Catalog {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Metric>::deserialize(deserializer).map(Self::from_iter)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(name: &str, better: Option<Better>) -> Metric {
        let metric = CustomMetric::number(name.to_owned(), 1.0, "bytes").unwrap();
        Metric::from(&CustomMetric { better, ..metric })
    }

    #[test]
    fn a_name_never_gives_a_direction_unless_it_is_exactly_a_built_in_one() {
        for name in [
            "tokens_saved",
            "cost_avoided_usd",
            "latency_budget_ms",
            "errors_avoided",
            "step.accuracy_gap",
        ] {
            assert_eq!(Metric::named(name).better, None, "{name}");
            assert_eq!(custom(name, None).better, None, "{name}");
        }
        assert_eq!(Metric::named("tokens_total").better, LOWER);
        assert_eq!(Metric::named("tokens_cache_read").better, None);
        assert_eq!(custom("answer_bytes", LOWER).better, LOWER);
    }

    #[test]
    fn built_in_metrics_have_names_of_their_own_and_every_field_has_one() {
        let mut names: Vec<&str> = Metric::built_in_names().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for field in RowField::ALL {
            let metric = Metric::built_in(field.name()).unwrap();
            assert_eq!(metric.field(), Some(field));
        }
    }

    #[test]
    fn a_catalog_is_stored_and_read_back_whole() {
        let renamed = Metric {
            name: "x".into(),
            ..Metric::built_in("tokens_total").unwrap().clone()
        };
        let catalog: Catalog = [
            renamed,
            Metric::time_segment("llm"),
            Metric {
                name: "calls of reading".into(),
                ..Metric::tool_category("read")
            },
            custom("answer_bytes", LOWER),
        ]
        .into_iter()
        .collect();
        let json = serde_json::to_string(&catalog).unwrap();
        let read: Catalog = serde_json::from_str(&json).unwrap();
        assert_eq!(read, catalog);
        assert_eq!(read.name_of(RowField::TokensTotal), "x");
        assert_eq!(read.name_of(RowField::TokensActive), "tokens_active");
        assert_eq!(read.category_name("read"), "calls of reading");
        assert_eq!(read.metric("answer_bytes").unit, "bytes");
    }
}
