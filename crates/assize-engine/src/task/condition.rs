//! Conditions over scores: `accuracy >= 0.9`, `step-2.confidence_ok == true`, `label != "unknown"`.

use assize_contracts::{ScoreRecord, ScoreTarget, ScoreValue, ScorerCheckResult};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// One thing that must hold for a task to pass. Scores are named by their metric, or by `<step>.<metric>`,
/// `final.<metric>` or `global.<metric>` for those of one target only; every score so named must fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    subject: String,
    comparison: Comparison,
    bound: Bound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    AtMost,
    Equal,
    NotEqual,
    Above,
    Below,
}

#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Number(f64),
    Bool(bool),
    Text(String),
}

/// Longer signs first, so that `>=` is not read as `>`.
const COMPARISONS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("found `{text}`, expected a condition over scores such as `accuracy >= 0.9`")
        };
        let signs = COMPARISONS.iter();
        let found = signs.filter_map(|sign| Some((text.find(sign.0)?, sign)));
        // The earliest sign, and of two that begin together the longer one, which comes first in the list.
        let (place, (sign, comparison)) =
            found.min_by_key(|(place, _)| *place).ok_or_else(wrong)?;
        let subject = text[..place].trim();
        let bound = text[place + sign.len()..].trim();
        if subject.is_empty() || bound.is_empty() {
            return Err(wrong());
        }
        let bound = match (bound, bound.parse::<f64>()) {
            ("true", _) => Bound::Bool(true),
            ("false", _) => Bound::Bool(false),
            (_, Ok(number)) if number.is_finite() => Bound::Number(number),
            _ => Bound::Text(bound.trim_matches('"').to_owned()),
        };
        let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if is_order && !matches!(bound, Bound::Number(_)) {
            return Err(format!("{} with a number after `{sign}`", wrong()));
        }
        Ok(Self {
            subject: subject.to_owned(),
            comparison: *comparison,
            bound,
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, _) = COMPARISONS
            .iter()
            .find(|(_, comparison)| *comparison == self.comparison)
            .expect("every comparison has a sign");
        write!(f, "{} {sign} ", self.subject)?;
        match &self.bound {
            Bound::Number(number) => write!(f, "{number}"),
            Bound::Bool(value) => write!(f, "{value}"),
            Bound::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

/// The judgement of a task by its scores.
pub(crate) struct Judgement {
    pub(crate) checks: Vec<ScorerCheckResult>,
    /// A condition is about a missing score.
    pub(crate) lacks_scores: bool,
}

impl Judgement {
    pub(crate) fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

/// Decides by the conditions, or without any by the scores themselves.
pub(crate) fn judge_all(conditions: &[Condition], scores: &[ScoreRecord]) -> Judgement {
    match conditions {
        [] => judge_by_default(scores),
        conditions => judge(conditions, scores),
    }
}

/// Holds every condition against the scores.
fn judge(conditions: &[Condition], scores: &[ScoreRecord]) -> Judgement {
    let mut judgement = Judgement {
        checks: Vec::with_capacity(conditions.len()),
        lacks_scores: false,
    };
    for condition in conditions {
        let mut named = scores
            .iter()
            .filter(|score| condition.is_about(score))
            .peekable();
        let is_missing = named.peek().is_none();
        judgement.lacks_scores |= is_missing;
        let failing = named.find(|score| !condition.fits(&score.value));
        let found = |score: &ScoreRecord| format!("{} is {}", name_of(score), shown(&score.value));
        judgement.checks.push(ScorerCheckResult {
            id: condition.to_string(),
            passed: !is_missing && failing.is_none(),
            expected: failing.map(|_| json!(condition.to_string())),
            actual: failing.map(|score| json!(found(score))),
            error: is_missing.then(|| "no such score".to_owned()),
            ..ScorerCheckResult::default()
        });
    }
    judgement
}

/// Without conditions: every boolean score is true and every score named `accuracy` is 1.
fn judge_by_default(scores: &[ScoreRecord]) -> Judgement {
    let decides = |score: &&ScoreRecord| match score.value {
        ScoreValue::Bool(_) => true,
        ScoreValue::Number(_) => score.metric == "accuracy",
        ScoreValue::Text(_) => false,
    };
    let check = |score: &ScoreRecord| {
        let (passed, expected) = match &score.value {
            ScoreValue::Bool(holds) => (*holds, json!(true)),
            ScoreValue::Number(number) => (number.value() == 1.0, json!(1)),
            ScoreValue::Text(_) => (true, Value::Null),
        };
        ScorerCheckResult {
            id: name_of(score),
            passed,
            expected: (!passed).then_some(expected),
            actual: (!passed).then(|| found(score)),
            ..ScorerCheckResult::default()
        }
    };
    Judgement {
        checks: scores.iter().filter(decides).map(check).collect(),
        lacks_scores: false,
    }
}

/// The value that failed the condition, with the evaluator's reason.
fn found(score: &ScoreRecord) -> Value {
    let value = json!(score.value);
    let evidence = score.evidence.as_ref();
    match evidence.and_then(|evidence| evidence.explanation.as_ref()) {
        Some(reason) => json!({"value": value, "rationale": reason}),
        None => value,
    }
}

impl Condition {
    fn is_about(&self, score: &ScoreRecord) -> bool {
        if self.subject == score.metric {
            return true;
        }
        let target = match &score.target {
            ScoreTarget::Final => "final",
            ScoreTarget::Global => "global",
            ScoreTarget::Step(id) => id,
        };
        self.subject == [target, ".", &score.metric].concat()
    }

    fn fits(&self, value: &ScoreValue) -> bool {
        let order = match (value, &self.bound) {
            (ScoreValue::Text(value), Bound::Text(bound)) => Some(value.as_str().cmp(bound)),
            (value, bound) => match (as_number(value), bound) {
                (Some(value), Bound::Number(bound)) => value.partial_cmp(bound),
                (Some(value), Bound::Bool(bound)) => {
                    value.partial_cmp(&f64::from(u8::from(*bound)))
                }
                _ => None,
            },
        };
        match (self.comparison, order) {
            (Comparison::NotEqual, order) => order != Some(Ordering::Equal),
            (_, None) => false,
            (Comparison::Equal, Some(order)) => order.is_eq(),
            (Comparison::AtLeast, Some(order)) => order.is_ge(),
            (Comparison::AtMost, Some(order)) => order.is_le(),
            (Comparison::Above, Some(order)) => order.is_gt(),
            (Comparison::Below, Some(order)) => order.is_lt(),
        }
    }
}

fn as_number(value: &ScoreValue) -> Option<f64> {
    match value {
        ScoreValue::Bool(value) => Some(f64::from(u8::from(*value))),
        ScoreValue::Number(number) => Some(number.value()),
        ScoreValue::Text(_) => None,
    }
}

fn shown(value: &ScoreValue) -> String {
    match value {
        ScoreValue::Bool(value) => value.to_string(),
        ScoreValue::Number(number) => number.value().to_string(),
        ScoreValue::Text(text) => format!("\"{text}\""),
    }
}

/// The name of a score in rows: its metric, with the step in front.
pub(crate) fn name_of(score: &ScoreRecord) -> String {
    match &score.target {
        ScoreTarget::Step(id) => format!("{id}.{}", score.metric),
        ScoreTarget::Final | ScoreTarget::Global => score.metric.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{Number, Timestamp};

    fn score(metric: &str, value: impl Into<ScoreValue>, target: ScoreTarget) -> ScoreRecord {
        ScoreRecord {
            schema_version: None,
            id: String::new(),
            run_id: String::new(),
            metric: metric.into(),
            value: value.into(),
            target,
            evidence: None,
            evaluator_id: String::new(),
            created_at: Timestamp::default(),
            meaning: None,
        }
    }

    fn check(condition: &str, expected: bool) {
        let number = |value| Number::new(value).unwrap();
        let scores = [
            score("accuracy", number(0.9), ScoreTarget::Final),
            score("accuracy", number(1.0), ScoreTarget::Step("step-1".into())),
            score("ok", true, ScoreTarget::Global),
            score("label", "book".to_owned(), ScoreTarget::Final),
        ];
        let condition: Condition = condition.parse().unwrap();
        assert_eq!(
            judge(std::slice::from_ref(&condition), &scores).passed(),
            expected,
            "{condition}"
        );
    }

    #[test]
    fn every_score_of_that_name_must_fit() {
        check("accuracy >= 0.9", true);
        check("accuracy>0.9", false);
        check("step-1.accuracy == 1", true);
        check("final.accuracy < 1", true);
        check("ok == true", true);
        check("global.ok != true", false);
        check("ok >= 1", true);
        check("label == \"book\"", true);
        check("label == book", true);
        check("label != book", false);
        check("missing >= 0", false);
    }

    #[test]
    fn what_is_no_condition_is_refused_with_an_example() {
        for wrong in ["accuracy", ">= 1", "accuracy >=", "accuracy > high", ""] {
            let error = wrong.parse::<Condition>().unwrap_err();
            assert!(error.contains("`accuracy >= 0.9`"), "{error}");
        }
    }

    #[test]
    fn without_conditions_booleans_and_accuracy_decide() {
        let number = |value| Number::new(value).unwrap();
        let fine = [
            score("ok", true, ScoreTarget::Final),
            score("accuracy", number(1.0), ScoreTarget::Final),
            score("latency", number(7.0), ScoreTarget::Global),
        ];
        assert!(judge_by_default(&fine).passed());
        let off = [score("accuracy", number(0.5), ScoreTarget::Final)];
        assert!(!judge_by_default(&off).passed());
    }
}
