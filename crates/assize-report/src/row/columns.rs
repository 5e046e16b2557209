//! The fields of a row as the cells of a table.

use super::{Row, Text};
use crate::scalar::Scalar;
use assize_contracts::CostSource;

/// Columns of every table, in this order; behind them come the extensions by name.
pub(crate) const COLUMNS: [&str; 42] = [
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

/// The value of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown<'a> {
    Nothing,
    Bool(bool),
    Integer(i64),
    Text(&'a str),
    /// As in the row.
    Value(&'a Scalar<'a>),
}

impl Shown<'_> {
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Integer(number) => *number == 0,
            Self::Value(value) => value.number() == Some(0.0),
            _ => false,
        }
    }
}

impl<'a> Row<'a> {
    /// The values of the columns, in their order.
    pub(crate) fn columns(&self) -> [Shown<'_>; 42] {
        let flag = |flag: Option<bool>| flag.map_or(Shown::Nothing, Shown::Bool);
        let tokens = self.tokens.as_ref();
        let least = self.tokens_at_least.as_ref();
        let calls = self.tool_calls.as_ref();
        let cost = self.cost.as_ref();
        let timing = self.timing.as_ref();
        [
            Shown::Text(&self.run_id),
            Shown::Text(&self.scenario_id),
            Shown::Text(&self.mode),
            Shown::Text(&self.model),
            Shown::Integer(self.iteration),
            Shown::Value(&self.started_at),
            Shown::Value(&self.completed_at),
            Shown::Bool(self.success),
            value(timing.map(|timing| &timing.wall_ms)),
            value(tokens.map(|tokens| &tokens.input)),
            value(tokens.map(|tokens| &tokens.output)),
            value(tokens.map(|tokens| &tokens.reasoning)),
            value(tokens.map(|tokens| &tokens.cache_read)),
            value(tokens.map(|tokens| &tokens.cache_write)),
            value(tokens.map(|tokens| &tokens.total)),
            value(tokens.map(|tokens| &tokens.active)),
            value(calls.map(|calls| &calls.total)),
            value(calls.map(|calls| &calls.failed)),
            value(calls.map(|calls| &calls.retried)),
            value(calls.map(|calls| &calls.error_rate)),
            value(cost.map(|cost| &cost.total_usd)),
            value(cost.map(|cost| &cost.input_usd)),
            value(cost.map(|cost| &cost.output_usd)),
            value(cost.map(|cost| &cost.reasoning_usd)),
            Shown::Value(&self.checkpoints_passed),
            Shown::Value(&self.checkpoints_total),
            Shown::Value(&self.output_valid),
            Shown::Value(&self.provider),
            Shown::Value(&self.session_id),
            Shown::Value(&self.agent_turns),
            text(&self.completion_reason),
            self.outcome
                .map_or(Shown::Nothing, |outcome| Shown::Text(outcome.as_str())),
            text(&self.error_code),
            Shown::Value(&self.error),
            self.cost_source
                .map_or(Shown::Nothing, |source| Shown::Text(source_word(source))),
            flag(self.censored),
            flag(self.replayed),
            flag(self.simulated),
            Shown::Value(&self.position),
            value(least.map(|tokens| &tokens.total)),
            value(least.map(|tokens| &tokens.active)),
            Shown::Value(&self.cost_at_least_usd),
        ]
    }
}

fn text<'a>(text: &'a Option<Text<'_>>) -> Shown<'a> {
    text.as_ref()
        .map_or(Shown::Nothing, |text| Shown::Text(&text.0))
}

fn value<'a>(value: Option<&'a Scalar<'a>>) -> Shown<'a> {
    value.map_or(Shown::Nothing, Shown::Value)
}

fn source_word(source: CostSource) -> &'static str {
    match source {
        CostSource::Computed => "computed",
        CostSource::Reported => "reported",
        CostSource::Unknown => "unknown",
    }
}
