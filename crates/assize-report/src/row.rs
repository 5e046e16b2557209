//! The part of a row that summaries, pages and tables need, borrowed from its text: a row is parsed once for all of them.
//!
//! Numbers are taken as found: a field that holds no number was not measured. This file alone decides which fields count as
//! measured.

mod calls;
mod columns;

pub(crate) use calls::Call;
use calls::Records;
pub(crate) use columns::{COLUMNS, Shown};

use crate::judge::Votes;
use crate::scalar::Scalar;
use assize_contracts::{
    Catalog, CellKey, CostSource, Metric, MetricKind, Nature, Outcome, RowField, VoidCause,
};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// One trial. Reads Assize's rows and those of other profilers as they are.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row<'a> {
    /// The run the trial belongs to.
    #[serde(borrow, default)]
    pub run_id: Cow<'a, str>,
    #[serde(borrow)]
    pub scenario_id: Cow<'a, str>,
    /// The condition.
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
    #[serde(borrow, default)]
    pub model: Cow<'a, str>,
    /// The repetition.
    pub iteration: i64,
    /// True if the goal was reached.
    pub success: bool,
    /// The outcome of the trial. Absent in foreign rows, which know only `success`.
    #[serde(default)]
    pub outcome: Option<Outcome>,
    /// The reason why the session ended.
    #[serde(borrow, default)]
    pub completion_reason: Option<Text<'a>>,
    /// The error, as a word.
    #[serde(borrow, default)]
    pub error_code: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) error: Scalar<'a>,
    #[serde(borrow, default)]
    pub(crate) position: Scalar<'a>,
    #[serde(borrow, default)]
    pub(crate) started_at: Scalar<'a>,
    #[serde(borrow, default)]
    pub(crate) completed_at: Scalar<'a>,
    #[serde(borrow, default)]
    output_valid: Scalar<'a>,
    #[serde(borrow, default)]
    provider: Scalar<'a>,
    #[serde(borrow, default)]
    session_id: Scalar<'a>,
    #[serde(default)]
    void_cause: Option<VoidCause>,
    #[serde(default, deserialize_with = "given")]
    censored: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    simulated: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    replayed: Option<bool>,
    #[serde(default)]
    pub(crate) not_captured: bool,
    #[serde(default)]
    pub(crate) subscription: bool,
    #[serde(default)]
    schema_version: Option<u32>,
    #[serde(default)]
    cost_source: Option<CostSource>,
    #[serde(borrow, default)]
    tokens: Option<Tokens<'a>>,
    #[serde(borrow, default)]
    tokens_at_least: Option<Tokens<'a>>,
    #[serde(borrow, default)]
    cost_at_least_usd: Scalar<'a>,
    #[serde(borrow, default)]
    timing: Option<Timing<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<ToolCalls<'a>>,
    #[serde(borrow, default)]
    cost: Option<Cost<'a>>,
    #[serde(borrow, default)]
    agent_turns: Scalar<'a>,
    #[serde(borrow, default)]
    checkpoints_passed: Scalar<'a>,
    #[serde(borrow, default)]
    checkpoints_total: Scalar<'a>,
    #[serde(borrow, default)]
    pub(crate) checkpoint_details: Vec<Check<'a>>,
    #[serde(default)]
    attempts: Vec<Attempt>,
    #[serde(default)]
    hook_errors: IsThere,
    #[serde(borrow, default)]
    extensions: Extensions<'a>,
}

/// Reads JSON. Checking the whole text at once is faster than each of its strings.
pub fn parse_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, serde_json::Error> {
    match std::str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(json),
    }
}

/// Text that is borrowed where it holds no escapes.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

#[derive(Debug, Deserialize)]
pub(crate) struct Check<'a> {
    #[serde(borrow)]
    pub(crate) id: Cow<'a, str>,
    pub(crate) passed: bool,
    /// The votes of a judge, where the check is one.
    #[serde(default)]
    pub(crate) actual: Votes,
    #[serde(borrow, default)]
    pub(crate) description: Scalar<'a>,
}

#[derive(Debug, Deserialize)]
struct Attempt {
    outcome: Option<Outcome>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tokens<'a> {
    #[serde(borrow)]
    input: Scalar<'a>,
    #[serde(borrow)]
    output: Scalar<'a>,
    #[serde(borrow)]
    reasoning: Scalar<'a>,
    #[serde(borrow)]
    cache_read: Scalar<'a>,
    #[serde(borrow)]
    cache_write: Scalar<'a>,
    #[serde(borrow)]
    total: Scalar<'a>,
    #[serde(borrow)]
    active: Scalar<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Timing<'a> {
    #[serde(borrow)]
    wall_ms: Scalar<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolCalls<'a> {
    #[serde(borrow)]
    total: Scalar<'a>,
    #[serde(borrow)]
    by_category: Numbers<'a>,
    #[serde(borrow)]
    failed: Scalar<'a>,
    #[serde(borrow)]
    retried: Scalar<'a>,
    #[serde(borrow)]
    error_rate: Scalar<'a>,
    #[serde(borrow)]
    records: Records<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Cost<'a> {
    #[serde(borrow)]
    total_usd: Scalar<'a>,
    #[serde(borrow)]
    input_usd: Scalar<'a>,
    #[serde(borrow)]
    output_usd: Scalar<'a>,
    #[serde(borrow)]
    reasoning_usd: Scalar<'a>,
}

impl<'a> Row<'a> {
    /// Reads one JSON object. Of one whose calls cannot be read, the rest counts.
    pub fn parse(json: &'a [u8]) -> Result<Self, serde_json::Error> {
        parse_json(json).or_else(|_| Self::parse_without_calls(json))
    }

    /// The same without the tool calls: for those who want only numbers.
    pub(crate) fn parse_without_calls(json: &'a [u8]) -> Result<Self, serde_json::Error> {
        calls::pass_over(|| parse_json(json))
    }

    /// The outcome of the trial.
    pub fn outcome(&self) -> Outcome {
        self.outcome.unwrap_or(if self.success {
            Outcome::Pass
        } else {
            Outcome::Fail
        })
    }

    /// Wall time in milliseconds.
    pub(crate) fn wall_time(&self) -> Option<f64> {
        self.timing
            .as_ref()
            .and_then(|timing| timing.wall_ms.number())
    }

    /// The trial's place in its run's plan.
    pub(crate) fn position(&self) -> Option<u32> {
        let position = self
            .position
            .number()
            .filter(|place| (0.0..f64::from(u32::MAX)).contains(place));
        position.map(|position| position as u32)
    }

    /// The session ended with an error.
    pub(crate) fn has_error(&self) -> bool {
        self.error_code.is_some() || self.error.text().is_some()
    }

    /// The reason why the trial did not pass, in words: the message, else the first check that does not hold, else a word.
    pub(crate) fn reason(&self) -> String {
        if let Some(error) = self.error.text()
            && !error.trim().is_empty()
        {
            return error.to_owned();
        }
        if let Some(code) = &self.error_code {
            return code.0.to_string();
        }
        let failed = self.checkpoint_details.iter().find(|check| !check.passed);
        let completion = self.completion_reason.as_ref().map(|reason| &*reason.0);
        match (failed, completion) {
            (Some(check), _) => match check.description.text() {
                Some(words) if !words.is_empty() => format!("check failed: {words}"),
                _ => format!("check failed: {}", check.id),
            },
            (None, _) if self.outcome() == Outcome::Void => "no reason was recorded".to_owned(),
            (None, None | Some("stop")) => "checks failed".to_owned(),
            (None, Some(reason)) => reason.to_owned(),
        }
    }

    /// The trial is void for a cause that cannot depend on the mode. Rows without a cause may depend on it.
    pub(crate) fn is_void_unrelated(&self) -> bool {
        self.outcome() == Outcome::Void
            && self
                .void_cause
                .is_some_and(|cause| !cause.may_depend_on_mode())
    }

    /// Live, replayed or simulated.
    pub fn nature(&self) -> Nature {
        Nature::of_marks(self.simulated == Some(true), self.replayed == Some(true))
    }

    /// The cell that the trial belongs to.
    pub fn key(&self) -> CellKey {
        CellKey {
            scenario_id: self.scenario_id.clone().into_owned(),
            mode: self.mode.clone().into_owned(),
            model: self.model.clone().into_owned(),
            iteration: self.iteration,
        }
    }

    /// Time ran out, so that what was measured is a lower bound.
    pub fn is_censored(&self) -> bool {
        let timed_out = self
            .completion_reason
            .as_ref()
            .is_some_and(|reason| reason.0 == "timeout");
        self.censored == Some(true) || (self.is_foreign() && timed_out)
    }

    /// True for a failure that another profiler recorded with zeros for everything: it was not measured.
    pub fn is_unmeasured(&self) -> bool {
        self.is_foreign()
            && self.outcome() == Outcome::Fail
            && self.field_values().all(|(_, value)| value == 0.0)
    }

    /// True when tokens were used and the recorded cost is 0, because they were not priced.
    pub fn has_unpriced_tokens(&self) -> bool {
        let total = self.cost.as_ref().and_then(|cost| cost.total_usd.number());
        let used = |tokens: &Tokens| tokens.fields().iter().any(|(_, value)| *value > Some(0.0));
        total == Some(0.0)
            && self.cost_source != Some(CostSource::Computed)
            && self.tokens.as_ref().is_some_and(used)
    }

    /// The goal was reached, or missed, only after failed attempts: success means pass@k.
    pub(crate) fn was_retried_after_failing(&self) -> bool {
        self.attempts
            .iter()
            .any(|attempt| attempt.outcome == Some(Outcome::Fail))
    }

    /// True when one vote of a judge would have changed the outcome. Absent where the row does not record it.
    pub(crate) fn hangs_on_one_vote(&self, catalog: &Catalog) -> Option<bool> {
        let recorded: Vec<f64> = self
            .extensions
            .0
            .iter()
            .filter(|(name, _)| catalog.metric(name).kind == MetricKind::HangsOnOneVote)
            .filter_map(|(_, value)| value.number())
            .collect();
        // A trial that failed a check as well fails however the judge votes.
        let failed_otherwise = self
            .checkpoint_details
            .iter()
            .any(|check| !check.passed && check.actual.0.is_empty());
        let could_turn = self.outcome() == Outcome::Pass || !failed_otherwise;
        (!recorded.is_empty()).then(|| could_turn && recorded.contains(&1.0))
    }

    /// Everything measured, under the names of the catalog. A metric that a collector put into the extensions comes last.
    pub(crate) fn for_each_measurement(&self, catalog: &Catalog, mut take: impl FnMut(&str, f64)) {
        if self.outcome() == Outcome::Void || self.is_unmeasured() {
            return;
        }
        let unpriced = self.has_unpriced_tokens();
        let is_unpriced = |name: &str| catalog.metric(name).is_session_cost();
        let mut take = |name: &str, value: f64| {
            let is_unknown = unpriced && value == 0.0 && is_unpriced(name);
            if value.is_finite() && !is_unknown {
                take(name, value);
            }
        };
        for (field, value) in self.field_values() {
            take(catalog.name_of(field), value);
        }
        for (category, count) in self
            .tool_calls
            .iter()
            .flat_map(|calls| &calls.by_category.0)
        {
            take(&catalog.category_name(category), *count);
        }
        for (name, value) in &self.extensions.0 {
            if let Some(value) = value.number() {
                take(name, value);
            }
        }
    }

    /// Visits values that are known only as lower bounds: the known part of tokens and cost whose total is unknown.
    pub(crate) fn for_each_lower_bound(&self, catalog: &Catalog, mut take: impl FnMut(&str, f64)) {
        if self.outcome() == Outcome::Void {
            return;
        }
        let tokens = self.tokens_at_least.iter().flat_map(Tokens::fields);
        let cost = std::iter::once((RowField::CostTotal, self.cost_at_least_usd.number()));
        for (field, value) in tokens.chain(cost) {
            if let Some(value) = value {
                take(catalog.name_of(field), value);
            }
        }
    }

    /// All tokens and the cost of a trial, void or not.
    pub(crate) fn used(&self) -> [Used; 2] {
        let tokens = self
            .tokens
            .as_ref()
            .and_then(|tokens| tokens.total.number());
        let least = self.tokens_at_least.as_ref();
        let least = least.and_then(|tokens| tokens.total.number());
        let cost = self.cost.as_ref().and_then(|cost| cost.total_usd.number());
        let cost = cost.filter(|_| !self.has_unpriced_tokens());
        [
            Used::of(tokens, least),
            Used::of(cost, self.cost_at_least_usd.number()),
        ]
    }

    /// Labels with what was expected: two texts among the extensions.
    pub(crate) fn for_each_label(&self, mut take: impl FnMut(&str, &str, &str)) {
        for (name, actual) in self.texts() {
            if let Some(expected) = self.text(&Metric::expected_name(name)) {
                take(name, expected, actual);
            }
        }
    }

    /// Texts among the extensions that are neither labels with an expectation nor expectations.
    pub(crate) fn for_each_text(&self, mut take: impl FnMut(&str, &str)) {
        let is_expectation = |name: &str| {
            let mut labels = self.texts();
            labels.any(|(label, _)| Metric::expected_name(label) == name)
        };
        for (name, text) in self.texts() {
            if self.text(&Metric::expected_name(name)).is_none() && !is_expectation(name) {
                take(name, text);
            }
        }
    }

    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.extensions
            .0
            .iter()
            .filter_map(|(name, value)| Some((&**name, value.text()?)))
    }

    fn text(&self, wanted: &str) -> Option<&str> {
        let mut texts = self.texts();
        texts.find_map(|(name, text)| (name == wanted).then_some(text))
    }

    /// Scored without a single check. Unknown, and therefore false, for rows of other profilers.
    pub(crate) fn has_no_checks(&self) -> bool {
        !self.is_foreign() && self.checkpoints_total.number() == Some(0.0)
    }

    /// True when the row says more about its attempts, losses and checks than what passed.
    pub(crate) fn has_remarks(&self) -> bool {
        let is_failed = |check: &Check<'_>| !check.passed;
        self.hook_errors.0
            || !self.attempts.is_empty()
            || self.checkpoint_details.iter().any(is_failed)
    }

    /// The tool calls in their order. Absent where they are in no known form.
    pub(crate) fn calls(&self) -> Option<&[Call<'a>]> {
        self.tool_calls.as_ref()?.records.calls()
    }

    /// The value of an extension. Of several of one name the last counts.
    pub(crate) fn extension(&self, name: &str) -> Option<&Scalar<'a>> {
        let found = self.extensions.0.iter().rfind(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Names of all extensions, also of those that hold no number.
    pub(crate) fn extension_names(&self) -> impl Iterator<Item = &str> {
        self.extensions.0.iter().map(|(name, _)| &**name)
    }

    /// Written by Assize 0.1.
    pub(crate) fn is_of_first_version(&self) -> bool {
        self.schema_version == Some(1)
    }

    /// Written by another profiler.
    pub(crate) fn is_foreign(&self) -> bool {
        self.schema_version.is_none()
    }

    fn field_values(&self) -> impl Iterator<Item = (RowField, f64)> {
        let tokens = self.tokens.iter().flat_map(Tokens::fields);
        let timing = self.timing.iter();
        let timing = timing.map(|timing| (RowField::WallTime, timing.wall_ms.number()));
        let calls = self.tool_calls.iter().flat_map(ToolCalls::fields);
        let cost = self.cost.iter().flat_map(Cost::fields);
        let turns = std::iter::once((RowField::AgentTurns, self.agent_turns.number()));
        let all = tokens.chain(timing).chain(calls).chain(cost).chain(turns);
        all.filter_map(|(field, value)| Some((field, value?)))
    }
}

/// The known amount of something that was used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Used {
    Exactly(f64),
    AtLeast(f64),
    Unknown,
}

impl Used {
    fn of(value: Option<f64>, least: Option<f64>) -> Self {
        let least = least.map_or(Self::Unknown, Self::AtLeast);
        value.map_or(least, Self::Exactly)
    }
}

impl Tokens<'_> {
    fn fields(&self) -> [(RowField, Option<f64>); 7] {
        [
            (RowField::TokensInput, self.input.number()),
            (RowField::TokensOutput, self.output.number()),
            (RowField::TokensReasoning, self.reasoning.number()),
            (RowField::TokensCacheRead, self.cache_read.number()),
            (RowField::TokensCacheWrite, self.cache_write.number()),
            (RowField::TokensTotal, self.total.number()),
            (RowField::TokensActive, self.active.number()),
        ]
    }
}

impl ToolCalls<'_> {
    fn fields(&self) -> [(RowField, Option<f64>); 4] {
        [
            (RowField::ToolCalls, self.total.number()),
            (RowField::ToolCallsFailed, self.failed.number()),
            (RowField::ToolCallsRetried, self.retried.number()),
            (RowField::ToolErrorRate, self.error_rate.number()),
        ]
    }
}

impl Cost<'_> {
    fn fields(&self) -> [(RowField, Option<f64>); 4] {
        [
            (RowField::CostTotal, self.total_usd.number()),
            (RowField::CostInput, self.input_usd.number()),
            (RowField::CostOutput, self.output_usd.number()),
            (RowField::CostReasoning, self.reasoning_usd.number()),
        ]
    }
}

/// The numbers of an object, by name. Any other value is NaN.
#[derive(Debug, Default)]
struct Numbers<'a>(Vec<(Cow<'a, str>, f64)>);

impl<'de: 'a, 'a> Deserialize<'de> for Numbers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor).map(Self)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Vec<(Cow<'de, str>, f64)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by name")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut numbers = Vec::new();
        while let Some((name, value)) = items.next_entry::<Text<'de>, Scalar<'de>>()? {
            numbers.push((name.0, value.number().unwrap_or(f64::NAN)));
        }
        Ok(numbers)
    }
}

/// The extensions, by name.
#[derive(Debug, Default)]
struct Extensions<'a>(Vec<(Cow<'a, str>, Scalar<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Extensions<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtensionsVisitor).map(Self)
    }
}

struct ExtensionsVisitor;

impl<'de> Visitor<'de> for ExtensionsVisitor {
    type Value = Vec<(Cow<'de, str>, Scalar<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by name")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some((name, value)) = items.next_entry::<Text<'de>, Scalar<'de>>()? {
            values.push((name.0, value));
        }
        Ok(values)
    }
}

/// Takes a value that must not be null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    bool::deserialize(deserializer).map(Some)
}

/// True for a list that is not empty, and for anything that should not be there.
#[derive(Debug, Default)]
struct IsThere(bool);

impl<'de> Deserialize<'de> for IsThere {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IsThereVisitor).map(Self)
    }
}

struct IsThereVisitor;

impl<'de> Visitor<'de> for IsThereVisitor {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut is_there = false;
        while items.next_element::<IgnoredAny>()?.is_some() {
            is_there = true;
        }
        Ok(is_there)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(true)
    }
}
