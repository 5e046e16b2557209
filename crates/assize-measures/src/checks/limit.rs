//! `limit`: the most that a session may take. A value that was not measured cannot be compared with a limit.

use super::check::{Look, Seen, Sentence, Subject};
use super::tool::TOOLS_UNKNOWN;
use crate::spec::Spec;
use assize_contracts::{ConfigError, TraceEvent};
use serde_json::{Number, Value};

pub(super) const KEYS: [&str; 5] = ["turns", "tokens_total", "cost_usd", "wall_ms", "tool_calls"];

pub(super) struct LimitCheck {
    limits: Vec<Limit>,
}

struct Limit {
    key: &'static str,
    most: f64,
    written: Value,
}

impl LimitCheck {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let fields = spec.fields(&KEYS)?;
        let limits: Vec<Limit> = KEYS
            .into_iter()
            .filter_map(|key| Some((key, fields.get(key)?)))
            .map(|(key, spec)| {
                let most = spec.amount()?;
                let written = spec.value.clone();
                Ok(Limit { key, most, written })
            })
            .collect::<Result<_, _>>()?;
        if limits.is_empty() {
            return Err(spec.nothing_asked(&KEYS));
        }
        Ok(Self { limits })
    }

    pub(super) fn sentence(&self) -> Sentence {
        let words: Vec<String> = self.limits.iter().map(Limit::words).collect();
        Sentence {
            label: format!("limit-{}", self.limits[0].key.replace('_', "-")),
            words: format!("at most {}", words.join(", ")),
            expected: per_key(
                self.limits
                    .iter()
                    .map(|limit| (limit, limit.written.clone())),
            ),
        }
    }

    pub(super) fn look(&self, subject: &Subject<'_>) -> Look {
        let measured: Vec<Option<f64>> = self
            .limits
            .iter()
            .map(|limit| measured(limit.key, subject))
            .collect();
        let limits = || self.limits.iter().zip(&measured);
        // One limit that is broken for certain is enough, whatever the others are. A lower bound may show it.
        let broken = limits().any(|(limit, value)| {
            let known = value.or_else(|| at_least(limit.key, subject));
            known.is_some_and(|value| value > limit.most)
        });
        let unknown = limits().find(|(_, value)| value.is_none());
        if let (false, Some((limit, _))) = (broken, unknown) {
            return Err(limit.unmeasured());
        }
        let actual = per_key(limits().map(|(limit, value)| (limit, number(*value))));
        Ok(Seen::new(!broken, actual))
    }
}

impl Limit {
    fn words(&self) -> String {
        let most = &self.written;
        match self.key {
            "turns" => format!("{most} turns"),
            "tokens_total" => format!("{most} tokens"),
            "cost_usd" => format!("{most} USD"),
            "wall_ms" => format!("{most} ms"),
            _ => format!("{most} tool calls"),
        }
    }

    fn unmeasured(&self) -> String {
        match self.key {
            "tool_calls" => format!("`tool_calls` was not measured: {TOOLS_UNKNOWN}"),
            key => format!("`{key}` was not measured"),
        }
    }
}

/// The lower bound of a value, where a model call is incomplete.
fn at_least(key: &str, subject: &Subject<'_>) -> Option<f64> {
    let metrics = &subject.context.result.as_deref()?.metrics;
    match key {
        "tokens_total" => Some(metrics.tokens_at_least?.total? as f64),
        "cost_usd" => Some(metrics.cost_at_least_usd?.value()),
        _ => None,
    }
}

fn measured(key: &str, subject: &Subject<'_>) -> Option<f64> {
    let trace = subject.context.trace.as_deref();
    let metrics = subject
        .context
        .result
        .as_deref()
        .map(|result| &result.metrics);
    match key {
        // No session ends without a turn: they were not counted.
        "turns" => trace
            .and_then(|trace| trace.summary.total_turns)
            .map(|turns| turns as f64)
            .filter(|turns| *turns > 0.0),
        "tokens_total" => metrics
            .and_then(|metrics| metrics.tokens.total)
            .or_else(|| trace?.summary.total_tokens.total)
            .filter(|_| at_least("tokens_total", subject).is_none())
            .map(|total| total as f64),
        "cost_usd" => Some(metrics?.cost.total_usd?.value()),
        "wall_ms" => Some(metrics?.timing.wall_ms?.value()),
        _ => metrics
            .and_then(|metrics| Some(metrics.tool_calls.as_ref()?.len()))
            .or_else(|| {
                let is_call = |event: &&_| matches!(**event, TraceEvent::ToolCall { .. });
                let events = trace?.events.iter().map(AsRef::as_ref);
                // A trace without any call may come from an agent whose calls are invisible.
                Some(events.filter(is_call).count()).filter(|count| *count > 0)
            })
            .map(|count| count as f64),
    }
}

/// The value alone when there is one limit, else by key.
fn per_key<'a>(values: impl Iterator<Item = (&'a Limit, Value)>) -> Value {
    let mut values: Vec<(String, Value)> = values
        .map(|(limit, value)| (limit.key.to_owned(), value))
        .collect();
    match values.len() {
        1 => values.remove(0).1,
        _ => values.into_iter().collect(),
    }
}

fn number(value: Option<f64>) -> Value {
    let Some(value) = value else {
        return Value::Null;
    };
    let whole = value as i64;
    if whole as f64 == value {
        return Value::from(whole);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{answering, scenario, score_of};
    use assize_contracts::{PromptResult, SessionTrace, TokenBreakdown, ToolCallRecord};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn check(limit: Value, expected: Result<bool, &str>) {
        check_with_tools(Some(Vec::new()), limit, expected);
    }

    fn check_with_tools(
        tool_calls: Option<Vec<ToolCallRecord>>,
        limit: Value,
        expected: Result<bool, &str>,
    ) {
        let mut context = answering("");
        let mut result = PromptResult::default();
        result.metrics.tool_calls = tool_calls;
        result.metrics.tokens = TokenBreakdown {
            total: Some(1000),
            ..TokenBreakdown::default()
        };
        context.result = Some(Arc::new(result));
        let mut trace = SessionTrace::default();
        trace.summary.total_turns = Some(4);
        context.trace = Some(Arc::new(trace));
        let result = score_of(&scenario(json!([{"limit": limit}])), &context);
        match expected {
            Ok(success) => assert_eq!((result.success, result.error), (success, None)),
            Err(error) => assert_eq!(result.error.as_deref(), Some(error)),
        }
    }

    #[test]
    fn a_limit_is_still_inside() {
        check(
            json!({"tokens_total": 1000, "turns": 4, "tool_calls": 0}),
            Ok(true),
        );
        check(json!({"tokensTotal": 999}), Ok(false));
    }

    #[test]
    fn what_was_not_measured_neither_passes_nor_fails() {
        let unknown = "check `limit-cost-usd-1`: `cost_usd` was not measured";
        check(json!({"cost_usd": 1.5}), Err(unknown));
        check(
            json!({"cost_usd": 1.5, "turns": 5}),
            Err("check `limit-turns-1`: `cost_usd` was not measured"),
        );
        check(json!({"cost_usd": 1.5, "tokens_total": 10}), Ok(false));
    }

    #[test]
    fn calls_that_nobody_can_see_are_not_zero_calls() {
        let limit = json!({"tool_calls": 0});
        check(limit.clone(), Ok(true));
        let unknown = format!(
            "check `limit-tool-calls-1`: `tool_calls` was not measured: {}",
            super::TOOLS_UNKNOWN
        );
        check_with_tools(None, limit, Err(&unknown));
    }
}
