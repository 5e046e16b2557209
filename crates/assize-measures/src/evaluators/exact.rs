//! `exact`: the output is what was expected.

use super::{ACCURACY, Measure, Seen, config_error, part, read, right, shown, side_by_side};
use assize_contracts::{BoxError, ConfigError, EvaluatorSetup, Evidence, ScoreRecord, ScoreTarget};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    path: Option<String>,
    metric: Option<String>,
}

pub(super) struct Exact {
    path: Option<String>,
    metric: String,
}

impl Exact {
    pub(super) fn new(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        let Settings { path, metric } = read(setup)?;
        if metric.as_deref() == Some("") {
            return Err(config_error("`metric`: expected a name"));
        }
        Ok(Self {
            path,
            metric: metric.unwrap_or_else(|| ACCURACY.to_owned()),
        })
    }
}

impl Measure for Exact {
    fn metrics(&self) -> Vec<String> {
        vec![self.metric.clone()]
    }

    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError> {
        let path = self.path.as_deref();
        let Some(expected) = seen.expected.and_then(|expected| part(expected, path)) else {
            return Ok(Vec::new());
        };
        let actual = seen.output().and_then(|output| part(output, path));
        let is_right = actual.is_some_and(|actual| is_same(actual, expected));
        let explanation = match (is_right, seen.output()) {
            (true, _) => "the output is what was expected".to_owned(),
            (false, Some(_)) => {
                format!(
                    "expected {}, found {}",
                    shown(Some(expected)),
                    shown(actual)
                )
            }
            (false, None) => seen.failure(),
        };
        let evidence = Evidence::explained(explanation).aligned(side_by_side(expected, actual));
        let score = ScoreRecord::new(seen.run, &self.metric, right(is_right), ScoreTarget::Final);
        Ok(vec![score.because(evidence)])
    }
}

/// Equal as JSON, where 1 and 1.0 are the same number.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has = |(key, value): (&String, &Value)| {
                b.get(key).is_some_and(|other| is_same(value, other))
            };
            a.len() == b.len() && a.iter().all(has)
        }
        (a, b) => a == b,
    }
}
