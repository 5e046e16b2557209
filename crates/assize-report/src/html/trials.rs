//! The trials as the page's table and view need them, as JSON: field by field, because most of what trials say they all say.

use super::escape::{cut, visible};
use super::packed::{pack, pack_numbers, pack_texts, pack_times};
use crate::Row;
use crate::scalar::Scalar;
use assize_contracts::{Catalog, Outcome, RowField, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Characters of a message or a value in a check.
const LONGEST: usize = 600;

/// Characters of a prompt, an answer or a diff.
pub(crate) const LONGEST_TEXT: usize = 6_000;

/// Checks, attempts and losses shown of one trial.
const MOST: usize = 60;

#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) scenario: usize,
    pub(crate) mode: usize,
    pub(crate) iteration: i64,
    pub(crate) outcome: Outcome,
    run: String,
    position: Option<u64>,
    started: Option<String>,
    /// Its start and end, in milliseconds since 1970.
    pub(crate) span: Option<(i64, i64)>,
    /// Time, tokens, active tokens, cost, tool calls, turns: what is unknown is null.
    numbers: [Option<f64>; 6],
    /// The same for what is only known to be at least so much.
    least: [Option<f64>; 6],
    censored: bool,
    reason: String,
    error: String,
    pub(crate) answer: String,
    pub(crate) diff: String,
    checks: Vec<CheckShown>,
    remarks: Vec<String>,
    pub(crate) findings: Vec<[String; 2]>,
    pub(crate) has_trace: bool,
    /// Checks and messages did not fit.
    is_bare: bool,
}

#[derive(Debug, PartialEq, Serialize)]
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

/// Fields of a row that only trials with something to remark have. Foreign rows have some of them, in forms of their own.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
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
        let details: Option<Details> = row
            .has_remarks()
            .then(|| serde_json::from_slice(json).unwrap_or_default());
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
            position: match &row.position {
                Scalar::Number(position) => position.as_u64(),
                _ => None,
            },
            started: row.started_at.text().map(shown),
            span: moment(&row.started_at).zip(moment(&row.completed_at)),
            numbers,
            least,
            censored: row.is_censored(),
            reason: shown(&reason.unwrap_or_default()),
            error: text_in(&row.error),
            answer: String::new(),
            diff: String::new(),
            checks: match &details {
                Some(details) => {
                    let checks = details.checkpoint_details.iter();
                    checks.take(MOST).map(check).collect()
                }
                None => {
                    let checks = row.checkpoint_details.iter();
                    checks.take(MOST).map(passed_check).collect()
                }
            },
            remarks: details.as_ref().map(remarks).unwrap_or_default(),
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

/// The trials as columns of packed values. A null in them is a field that a trial does not have.
pub(crate) fn columns(trials: &[Trial]) -> String {
    let known = |text: &'_ String| (!text.is_empty()).then(|| text.clone());
    let flag = |of: fn(&Trial) -> bool| pack(trials.iter().map(|trial| of(trial).then_some(true)));
    let text = |of: fn(&Trial) -> &String| pack_texts(trials.iter().map(|trial| known(of(trial))));
    let numbers = |of: fn(&Trial) -> &[Option<f64>; 6]| {
        let column = |place| pack_numbers(trials.iter().map(|trial| of(trial)[place]));
        let columns: Vec<String> = (0..6).map(column).collect();
        format!("[{}]", columns.join(","))
    };
    let integers = |of: fn(&Trial) -> Option<f64>| pack_numbers(trials.iter().map(of));
    let has_least = trials.iter().any(|trial| trial.least != [None; 6]);
    let fields = [
        ("scenario", integers(|trial| Some(trial.scenario as f64))),
        ("mode", integers(|trial| Some(trial.mode as f64))),
        ("iteration", integers(|trial| Some(trial.iteration as f64))),
        ("outcome", pack(trials.iter().map(|trial| trial.outcome))),
        ("run", text(|trial| &trial.run)),
        ("position", integers(|trial| Some(trial.position? as f64))),
        (
            "started",
            pack_times(trials.iter().map(|trial| trial.started.as_deref())),
        ),
        ("numbers", numbers(|trial| &trial.numbers)),
        (
            "least",
            match has_least {
                true => numbers(|trial| &trial.least),
                false => "null".to_owned(),
            },
        ),
        ("censored", flag(|trial| trial.censored)),
        ("reason", text(|trial| &trial.reason)),
        ("error", text(|trial| &trial.error)),
        ("answer", text(|trial| &trial.answer)),
        ("diff", text(|trial| &trial.diff)),
        (
            "checks",
            pack(trials.iter().map(|trial| some(&trial.checks))),
        ),
        (
            "remarks",
            pack(trials.iter().map(|trial| some(&trial.remarks))),
        ),
        (
            "findings",
            pack(trials.iter().map(|trial| some(&trial.findings))),
        ),
        ("hasTrace", flag(|trial| trial.has_trace)),
        ("isBare", flag(|trial| trial.is_bare)),
    ];
    let fields = fields.map(|(name, column)| format!("\"{name}\":{column}"));
    format!("{{\"count\":{},{}}}", trials.len(), fields.join(","))
}

/// A list that is not empty.
fn some<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

fn moment(text: &Scalar<'_>) -> Option<i64> {
    Timestamp::from(text.text()?.to_owned()).unix_ms()
}

/// A check that holds, of which no more is shown.
fn passed_check(check: &crate::row::Check<'_>) -> CheckShown {
    let description = text_in(&check.description);
    CheckShown {
        text: match description.is_empty() {
            true => shown(&check.id),
            false => description,
        },
        passed: check.passed,
        expected: String::new(),
        actual: String::new(),
        error: String::new(),
    }
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

fn remarks(details: &Details) -> Vec<String> {
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

fn text_in(value: &Scalar<'_>) -> String {
    match value {
        Scalar::Nothing => String::new(),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Number(value) => shown(&value.to_string()),
        Scalar::Text(text) => shown(text),
        Scalar::Json(value) => shown(&value.to_string()),
    }
}

/// A value as a person reads it.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    }
}
