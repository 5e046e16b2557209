//! The part of a row that a summary needs, borrowed from the text it stands in.
//!
//! Numbers are taken as found: a field that holds no number was not measured. What a row may claim as measured is
//! decided here, in one place.

use assize_contracts::{CostSource, Outcome};
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
    /// The scenario.
    #[serde(borrow)]
    pub scenario_id: Cow<'a, str>,
    /// The condition.
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
    /// The model.
    #[serde(borrow, default)]
    pub model: Cow<'a, str>,
    /// The repetition.
    pub iteration: i64,
    /// Whether the goal was reached.
    pub success: bool,
    /// What was learnt. Absent in foreign rows, which know only `success`.
    #[serde(default)]
    pub outcome: Option<Outcome>,
    /// Why the session ended.
    #[serde(borrow, default)]
    pub completion_reason: Option<Text<'a>>,
    /// What went wrong, as a word.
    #[serde(borrow, default)]
    pub error_code: Option<Text<'a>>,
    #[serde(default)]
    censored: bool,
    #[serde(default)]
    pub(crate) simulated: bool,
    #[serde(default)]
    pub(crate) replayed: bool,
    #[serde(default)]
    schema_version: Option<u32>,
    #[serde(default)]
    cost_source: Option<CostSource>,
    #[serde(default)]
    tokens: Option<Tokens>,
    #[serde(default)]
    timing: Option<Timing>,
    #[serde(borrow, default)]
    tool_calls: Option<ToolCalls<'a>>,
    #[serde(default)]
    cost: Option<Cost>,
    #[serde(default)]
    agent_turns: MaybeNumber,
    #[serde(borrow, default)]
    pub(crate) checkpoint_details: Vec<Check<'a>>,
    #[serde(default)]
    attempts: Vec<Attempt>,
    #[serde(borrow, default)]
    extensions: Extensions<'a>,
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
}

#[derive(Debug, Deserialize)]
struct Attempt {
    outcome: Option<Outcome>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    input: MaybeNumber,
    output: MaybeNumber,
    reasoning: MaybeNumber,
    cache_read: MaybeNumber,
    cache_write: MaybeNumber,
    total: MaybeNumber,
    active: MaybeNumber,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Timing {
    wall_ms: MaybeNumber,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolCalls<'a> {
    total: MaybeNumber,
    #[serde(borrow)]
    by_category: Numbers<'a>,
    failed: MaybeNumber,
    retried: MaybeNumber,
    error_rate: MaybeNumber,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Cost {
    total_usd: MaybeNumber,
    input_usd: MaybeNumber,
    output_usd: MaybeNumber,
    reasoning_usd: MaybeNumber,
}

impl<'a> Row<'a> {
    /// Reads one JSON object.
    pub fn parse(json: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// What the trial taught.
    pub fn outcome(&self) -> Outcome {
        self.outcome.unwrap_or(if self.success {
            Outcome::Pass
        } else {
            Outcome::Fail
        })
    }

    /// Time ran out, so that what was measured is a lower bound.
    pub fn is_censored(&self) -> bool {
        let timed_out = self
            .completion_reason
            .as_ref()
            .is_some_and(|reason| reason.0 == "timeout");
        self.censored || (self.is_foreign() && timed_out)
    }

    /// A failure that another profiler wrote down with zeros for everything: nobody measured it.
    pub fn is_unmeasured(&self) -> bool {
        self.is_foreign()
            && self.outcome() == Outcome::Fail
            && self.field_values().all(|(_, value)| value == 0.0)
    }

    /// Tokens were used and the cost is said to be 0, by somebody who did not price them.
    pub fn has_unpriced_tokens(&self) -> bool {
        let total = self.cost.as_ref().and_then(|cost| cost.total_usd.0);
        let used = |tokens: &Tokens| tokens.named().iter().any(|(_, value)| *value > Some(0.0));
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

    /// Everything measured, under the collectors' names. A metric that a collector put into the extensions comes last.
    pub(crate) fn for_each_measurement(&self, mut take: impl FnMut(&str, f64)) {
        if self.outcome() == Outcome::Void || self.is_unmeasured() {
            return;
        }
        let unpriced = self.has_unpriced_tokens();
        let mut take = |name: &str, value: f64| {
            let is_unknown = unpriced && value == 0.0 && name.starts_with("cost_");
            if value.is_finite() && !is_unknown {
                take(name, value);
            }
        };
        for (name, value) in self.field_values() {
            take(name, value);
        }
        for (category, count) in self
            .tool_calls
            .iter()
            .flat_map(|calls| &calls.by_category.0)
        {
            take(&format!("{CATEGORY}{category}"), *count);
        }
        for (name, value) in &self.extensions.0 {
            if let Extension::Number(value) = value {
                take(name, *value);
            }
        }
    }

    /// Labels with what was expected: two texts among the extensions, `<name>` and `<name>_expected`.
    pub(crate) fn for_each_label(&self, mut take: impl FnMut(&str, &str, &str)) {
        for (name, expected) in &self.extensions.0 {
            let (Some(name), Extension::Text(expected)) =
                (name.strip_suffix("_expected"), expected)
            else {
                continue;
            };
            let actual = self.extensions.0.iter().find(|(known, _)| known == name);
            if let Some((_, Extension::Text(actual))) = actual {
                take(name, expected, actual);
            }
        }
    }

    /// The number of tool calls was measured.
    pub(crate) fn has_seen_tools(&self) -> bool {
        let mut has_seen = false;
        self.for_each_measurement(|name, _| has_seen |= name == "tool_calls_total");
        has_seen
    }

    /// Names of all extensions, also of those that hold no number.
    pub(crate) fn extension_names(&self) -> impl Iterator<Item = &str> {
        self.extensions.0.iter().map(|(name, _)| &**name)
    }

    fn is_foreign(&self) -> bool {
        self.schema_version.is_none()
    }

    fn field_values(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let tokens = self.tokens.iter().flat_map(Tokens::named);
        let timing = self
            .timing
            .iter()
            .map(|timing| ("latency_wall_ms", timing.wall_ms.0));
        let calls = self.tool_calls.iter().flat_map(ToolCalls::named);
        let cost = self.cost.iter().flat_map(Cost::named);
        let turns = std::iter::once(("agent_turns", self.agent_turns.0));
        let all = tokens.chain(timing).chain(calls).chain(cost).chain(turns);
        all.filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The metrics that rows have fields for, by the collectors' names.
pub fn row_metrics() -> impl Iterator<Item = &'static str> {
    let tokens = Tokens::default().named().map(|(name, _)| name);
    let calls = ToolCalls::default().named().map(|(name, _)| name);
    let cost = Cost::default().named().map(|(name, _)| name);
    let all = tokens.into_iter().chain(calls).chain(cost);
    all.chain(["latency_wall_ms", "agent_turns"])
}

/// How the names of per-category tool counts begin.
pub(crate) const CATEGORY: &str = "tool_calls_category_";

impl Tokens {
    fn named(&self) -> [(&'static str, Option<f64>); 7] {
        [
            ("tokens_input", self.input.0),
            ("tokens_output", self.output.0),
            ("tokens_reasoning", self.reasoning.0),
            ("tokens_cache_read", self.cache_read.0),
            ("tokens_cache_write", self.cache_write.0),
            ("tokens_total", self.total.0),
            ("tokens_active", self.active.0),
        ]
    }
}

impl ToolCalls<'_> {
    fn named(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("tool_calls_total", self.total.0),
            ("tool_calls_failed", self.failed.0),
            ("tool_calls_retried", self.retried.0),
            ("tool_calls_error_rate", self.error_rate.0),
        ]
    }
}

impl Cost {
    fn named(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("cost_total_usd", self.total_usd.0),
            ("cost_input_usd", self.input_usd.0),
            ("cost_output_usd", self.output_usd.0),
            ("cost_reasoning_usd", self.reasoning_usd.0),
        ]
    }
}

/// A number, or anything else, which is no measurement.
#[derive(Debug, Clone, Copy, Default)]
struct MaybeNumber(Option<f64>);

impl<'de> Deserialize<'de> for MaybeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor).map(Self)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Option<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Option<f64>, E> {
        Ok(value.is_finite().then_some(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Option<f64>, E> {
        Ok(Some(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Option<f64>, E> {
        Ok(Some(value as f64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<f64>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Option<f64>, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// The numbers of an object, by name. What is no number is NaN.
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
        while let Some((name, value)) = items.next_entry::<Text<'de>, MaybeNumber>()? {
            numbers.push((name.0, value.0.unwrap_or(f64::NAN)));
        }
        Ok(numbers)
    }
}

/// What is among the extensions, by name.
#[derive(Debug, Default)]
struct Extensions<'a>(Vec<(Cow<'a, str>, Extension<'a>)>);

#[derive(Debug)]
enum Extension<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Extensions<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtensionsVisitor).map(Self)
    }
}

struct ExtensionsVisitor;

impl<'de> Visitor<'de> for ExtensionsVisitor {
    type Value = Vec<(Cow<'de, str>, Extension<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by name")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some((name, value)) = items.next_entry::<Text<'de>, Extension<'de>>()? {
            values.push((name.0, value));
        }
        Ok(values)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Extension<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtensionVisitor)
    }
}

struct ExtensionVisitor;

impl<'de> Visitor<'de> for ExtensionVisitor {
    type Value = Extension<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Extension<'de>, E> {
        Ok(Extension::Number(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Extension<'de>, E> {
        Ok(Extension::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Extension<'de>, E> {
        Ok(Extension::Number(value as f64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Extension<'de>, E> {
        Ok(Extension::Other)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Extension<'de>, E> {
        Ok(Extension::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Extension<'de>, E> {
        Ok(Extension::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Extension<'de>, E> {
        Ok(Extension::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Extension<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Extension::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Extension<'de>, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Extension::Other)
    }
}
