//! A row as a table shows it: values as they stand in the text, and nothing else of it.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::fmt;

/// Columns of every table, in this order; behind them come the extensions by name.
pub(super) const COLUMNS: [&str; 42] = [
    "run_id",
    "scenario_id",
    "mode",
    "model",
    "iteration",
    "started_at",
    "completed_at",
    "success",
    "timing_wall_ms",
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
    "tokens_total",
    "tokens_active",
    "tool_calls_total",
    "tool_calls_failed",
    "tool_calls_retried",
    "tool_calls_error_rate",
    "cost_total_usd",
    "cost_input_usd",
    "cost_output_usd",
    "cost_reasoning_usd",
    "checkpoints_passed",
    "checkpoints_total",
    "output_valid",
    "provider",
    "session_id",
    "agent_turns",
    "completion_reason",
    "outcome",
    "error_code",
    "error",
    "cost_source",
    "censored",
    "replayed",
    "simulated",
    "position",
    "tokens_at_least_total",
    "tokens_at_least_active",
    "cost_at_least_usd",
];

/// The fields of a row that a table shows. Foreign rows have some of them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlatRow<'a> {
    #[serde(borrow)]
    run_id: Scalar<'a>,
    #[serde(borrow)]
    scenario_id: Scalar<'a>,
    #[serde(borrow)]
    mode: Scalar<'a>,
    #[serde(borrow)]
    model: Scalar<'a>,
    #[serde(borrow)]
    iteration: Scalar<'a>,
    #[serde(borrow)]
    started_at: Scalar<'a>,
    #[serde(borrow)]
    completed_at: Scalar<'a>,
    #[serde(borrow)]
    success: Scalar<'a>,
    #[serde(borrow)]
    checkpoints_passed: Scalar<'a>,
    #[serde(borrow)]
    checkpoints_total: Scalar<'a>,
    #[serde(borrow)]
    output_valid: Scalar<'a>,
    #[serde(borrow)]
    provider: Scalar<'a>,
    #[serde(borrow)]
    session_id: Scalar<'a>,
    #[serde(borrow)]
    agent_turns: Scalar<'a>,
    #[serde(borrow)]
    completion_reason: Scalar<'a>,
    #[serde(borrow)]
    outcome: Scalar<'a>,
    #[serde(borrow)]
    error_code: Scalar<'a>,
    #[serde(borrow)]
    error: Scalar<'a>,
    #[serde(borrow)]
    cost_source: Scalar<'a>,
    #[serde(borrow)]
    censored: Scalar<'a>,
    #[serde(borrow)]
    replayed: Scalar<'a>,
    #[serde(borrow)]
    simulated: Scalar<'a>,
    #[serde(borrow)]
    position: Scalar<'a>,
    #[serde(borrow, deserialize_with = "or_nothing")]
    timing: Timing<'a>,
    #[serde(borrow, deserialize_with = "or_nothing")]
    tokens: Tokens<'a>,
    #[serde(borrow, deserialize_with = "or_nothing")]
    tokens_at_least: Tokens<'a>,
    #[serde(borrow)]
    cost_at_least_usd: Scalar<'a>,
    #[serde(borrow, deserialize_with = "or_nothing")]
    tool_calls: ToolCalls<'a>,
    #[serde(borrow, deserialize_with = "or_nothing")]
    cost: Cost<'a>,
    #[serde(borrow)]
    extensions: NamedValues<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Timing<'a> {
    #[serde(borrow)]
    wall_ms: Scalar<'a>,
}

#[derive(Default, Deserialize)]
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

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolCalls<'a> {
    #[serde(borrow)]
    total: Scalar<'a>,
    #[serde(borrow)]
    failed: Scalar<'a>,
    #[serde(borrow)]
    retried: Scalar<'a>,
    #[serde(borrow)]
    error_rate: Scalar<'a>,
}

#[derive(Default, Deserialize)]
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

impl FlatRow<'_> {
    /// The values of the columns, in their order.
    pub(super) fn columns(&self) -> [&Scalar<'_>; 42] {
        [
            &self.run_id,
            &self.scenario_id,
            &self.mode,
            &self.model,
            &self.iteration,
            &self.started_at,
            &self.completed_at,
            &self.success,
            &self.timing.wall_ms,
            &self.tokens.input,
            &self.tokens.output,
            &self.tokens.reasoning,
            &self.tokens.cache_read,
            &self.tokens.cache_write,
            &self.tokens.total,
            &self.tokens.active,
            &self.tool_calls.total,
            &self.tool_calls.failed,
            &self.tool_calls.retried,
            &self.tool_calls.error_rate,
            &self.cost.total_usd,
            &self.cost.input_usd,
            &self.cost.output_usd,
            &self.cost.reasoning_usd,
            &self.checkpoints_passed,
            &self.checkpoints_total,
            &self.output_valid,
            &self.provider,
            &self.session_id,
            &self.agent_turns,
            &self.completion_reason,
            &self.outcome,
            &self.error_code,
            &self.error,
            &self.cost_source,
            &self.censored,
            &self.replayed,
            &self.simulated,
            &self.position,
            &self.tokens_at_least.total,
            &self.tokens_at_least.active,
            &self.cost_at_least_usd,
        ]
    }

    /// The value of an extension. Of several of one name the last counts.
    pub(super) fn extension(&self, name: &str) -> Option<&Scalar<'_>> {
        let found = self.extensions.0.iter().rfind(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }
}

/// A value, borrowed where it is a text without escapes.
#[derive(Debug, Default)]
pub(super) enum Scalar<'a> {
    /// Null, or not there.
    #[default]
    Nothing,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    /// A list or an object.
    Json(Value),
}

impl Scalar<'_> {
    pub(super) fn is_zero(&self) -> bool {
        matches!(self, Self::Number(number) if number.as_f64() == Some(0.0))
    }
}

/// Objects may be null.
fn or_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar<'de>, E> {
        Ok(Number::from_f64(value).map_or(Scalar::Nothing, Scalar::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Scalar<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(items)).map(Scalar::Json)
    }

    fn visit_map<A: MapAccess<'de>>(self, items: A) -> Result<Scalar<'de>, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(items)).map(Scalar::Json)
    }
}

/// Values by name; null has none.
#[derive(Default)]
struct NamedValues<'a>(Vec<(Cow<'a, str>, Scalar<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for NamedValues<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamedVisitor).map(Self)
    }
}

struct NamedVisitor;

impl<'de> Visitor<'de> for NamedVisitor {
    type Value = Vec<(Cow<'de, str>, Scalar<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by name")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some((name, value)) = items.next_entry::<crate::row::Text<'de>, Scalar<'de>>()? {
            values.push((name.0, value));
        }
        Ok(values)
    }
}
