//! One trial as the page's table and view need it, as JSON.

use super::escape::{cut, visible};
use crate::Row;
use assize_contracts::{Catalog, Outcome, RowField, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Characters of a message or a value in a check.
const LONGEST: usize = 600;

/// Characters of a prompt, an answer or a diff.
pub(crate) const LONGEST_TEXT: usize = 6_000;

/// Checks, attempts and losses shown of one trial.
const MOST: usize = 60;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trial {
    pub(crate) scenario: usize,
    pub(crate) mode: usize,
    pub(crate) iteration: i64,
    pub(crate) outcome: Outcome,
    run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    /// Its start and end, in milliseconds since 1970.
    #[serde(skip)]
    pub(crate) span: Option<(i64, i64)>,
    /// Time, tokens, active tokens, cost, tool calls, turns: what is unknown is null.
    numbers: [Option<f64>; 6],
    /// The same for what is only known to be at least so much.
    #[serde(skip_serializing_if = "is_all_unknown")]
    least: [Option<f64>; 6],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    censored: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) answer: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) diff: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checks: Vec<CheckShown>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<[String; 2]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_trace: bool,
    /// Checks and messages did not fit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_bare: bool,
}

#[derive(Debug, Serialize)]
struct CheckShown {
    text: String,
    passed: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    expected: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    actual: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
}

/// Fields of a row beside its numbers. Foreign rows have some of them, in forms of their own.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details<'a> {
    position: Value,
    #[serde(borrow)]
    started_at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    completed_at: Option<Cow<'a, str>>,
    error: Value,
    checkpoint_details: Vec<Check>,
    attempts: Vec<Value>,
    hook_errors: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Check {
    id: Value,
    description: Value,
    passed: bool,
    actual: Value,
    expected: Value,
    error: Value,
}

const NUMBERS: [RowField; 6] = [
    RowField::WallTime,
    RowField::TokensTotal,
    RowField::TokensActive,
    RowField::CostTotal,
    RowField::ToolCalls,
    RowField::AgentTurns,
];

impl Trial {
    /// Of a row and the text it was read from.
    pub(crate) fn new(
        row: &Row<'_>,
        json: &[u8],
        (scenario, mode): (usize, usize),
        catalog: &Catalog,
    ) -> Self {
        let details: Details<'_> = serde_json::from_slice(json).unwrap_or_default();
        let mut numbers = [None; 6];
        let names = NUMBERS.map(|field| catalog.name_of(field));
        row.for_each_measurement(catalog, |name, value| {
            if let Some(place) = names.iter().position(|known| *known == name) {
                numbers[place] = Some(value);
            }
        });
        let mut least = [None; 6];
        row.for_each_lower_bound(catalog, |name, value| {
            let place = names.iter().position(|known| *known == name);
            if let Some(place) = place.filter(|place| numbers[*place].is_none()) {
                least[place] = Some(value);
            }
        });
        let word = |text: Option<&crate::row::Text<'_>>| text.map(|text| text.0.to_string());
        let reason = word(row.error_code.as_ref()).or(word(row.completion_reason.as_ref()));
        Self {
            scenario,
            mode,
            iteration: row.iteration,
            outcome: row.outcome(),
            run: shown(&row.run_id),
            position: details.position.as_u64(),
            started: details.started_at.as_deref().map(shown),
            span: moment(&details.started_at).zip(moment(&details.completed_at)),
            numbers,
            least,
            censored: row.is_censored(),
            reason: shown(&reason.unwrap_or_default()),
            error: text_of(&details.error),
            answer: String::new(),
            diff: String::new(),
            checks: details
                .checkpoint_details
                .iter()
                .take(MOST)
                .map(check)
                .collect(),
            remarks: remarks(&details),
            findings: Vec::new(),
            has_trace: false,
            is_bare: false,
        }
    }

    /// Bytes of checks and messages.
    pub(crate) fn detail_bytes(&self) -> usize {
        let of_check = |check: &CheckShown| {
            let texts = [&check.text, &check.expected, &check.actual, &check.error];
            texts.iter().map(|text| text.len()).sum::<usize>()
        };
        let checks: usize = self.checks.iter().map(of_check).sum();
        let remarks: usize = self.remarks.iter().map(String::len).sum();
        self.error.len() + checks + remarks
    }

    /// The same trial without checks and messages.
    pub(crate) fn into_bare(self) -> Self {
        Self {
            is_bare: true,
            error: String::new(),
            checks: Vec::new(),
            remarks: Vec::new(),
            ..self
        }
    }
}

fn moment(text: &Option<Cow<'_, str>>) -> Option<i64> {
    Timestamp::from(text.as_deref()?.to_owned()).unix_ms()
}

fn is_all_unknown(numbers: &[Option<f64>; 6]) -> bool {
    numbers.iter().all(Option::is_none)
}

fn check(check: &Check) -> CheckShown {
    let description = text_of(&check.description);
    let on_failure = |value: &Value| match check.passed {
        true => String::new(),
        false => text_of(value),
    };
    CheckShown {
        text: match description.is_empty() {
            true => text_of(&check.id),
            false => description,
        },
        passed: check.passed,
        expected: on_failure(&check.expected),
        actual: on_failure(&check.actual),
        error: on_failure(&check.error),
    }
}

fn remarks(details: &Details<'_>) -> Vec<String> {
    let field = |value: &Value, name: &str| value.get(name).map(text_of).unwrap_or_default();
    let attempts = details.attempts.iter().take(MOST).map(|attempt| {
        let (outcome, error) = (field(attempt, "outcome"), field(attempt, "error"));
        format!("earlier attempt, {outcome}: {error}")
    });
    let losses = details.hook_errors.iter().take(MOST).map(|loss| {
        let (hook, message) = (field(loss, "hook"), field(loss, "message"));
        format!("lost in {hook}: {message}")
    });
    attempts.chain(losses).collect()
}

/// The same for prompts, answers and diffs, which are read.
pub(crate) fn shown_long(text: &str) -> String {
    visible(&cut(text, LONGEST_TEXT))
}

pub(crate) fn shown(text: &str) -> String {
    visible(&cut(text, LONGEST))
}

/// A value as a person reads it.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    }
}
