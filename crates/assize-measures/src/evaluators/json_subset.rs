//! `json-subset`: every field that was expected is there with its value; more may be there.

use super::exact::is_same;
use super::{ACCURACY, Measure, Seen, part, read, share, shown};
use assize_contracts::{
    BoxError, ConfigError, EvaluatorSetup, Evidence, JsonMap, ScoreRecord, ScoreTarget,
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    path: Option<String>,
    metric: Option<String>,
    /// Fields that are left to other evaluators.
    ignore: Vec<String>,
    /// By how much numbers may differ.
    tolerance: f64,
}

pub(super) struct JsonSubset(Settings);

impl JsonSubset {
    pub(super) fn new(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        read(setup).map(Self)
    }

    fn metric(&self) -> &str {
        self.0.metric.as_deref().unwrap_or(ACCURACY)
    }

    /// Goes through what was expected, field by field.
    fn align(
        &self,
        place: &str,
        expected: &Value,
        actual: Option<&Value>,
        fields: &mut Vec<Field>,
    ) {
        if self.0.ignore.iter().any(|ignored| ignored == place) {
            return;
        }
        let inner = |name: &str| match place.is_empty() {
            true => name.to_owned(),
            false => format!("{place}.{name}"),
        };
        match (expected, actual) {
            (Value::Object(map), _) if !map.is_empty() => {
                for (name, expected) in map {
                    let actual = actual.and_then(|actual| actual.get(name));
                    self.align(&inner(name), expected, actual, fields);
                }
            }
            (Value::Array(items), Some(Value::Array(found))) if !items.is_empty() => {
                for (number, expected) in items.iter().enumerate() {
                    self.align(
                        &inner(&number.to_string()),
                        expected,
                        found.get(number),
                        fields,
                    );
                }
                if found.len() > items.len() {
                    fields.push(Field {
                        place: inner("length"),
                        expected: items.len().into(),
                        actual: Some(found.len().into()),
                        matches: false,
                    });
                }
            }
            _ => fields.push(Field {
                place: place.to_owned(),
                matches: actual.is_some_and(|actual| self.fits(expected, actual)),
                expected: expected.clone(),
                actual: actual.cloned(),
            }),
        }
    }

    fn fits(&self, expected: &Value, actual: &Value) -> bool {
        match (expected.as_f64(), actual.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= self.0.tolerance,
            _ => is_same(expected, actual),
        }
    }
}

struct Field {
    place: String,
    expected: Value,
    actual: Option<Value>,
    matches: bool,
}

impl Measure for JsonSubset {
    fn metrics(&self) -> Vec<String> {
        vec![self.metric().to_owned()]
    }

    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError> {
        let path = self.0.path.as_deref();
        let Some(expected) = seen.expected.and_then(|expected| part(expected, path)) else {
            return Ok(Vec::new());
        };
        let actual = seen.output().and_then(|output| part(output, path));
        let mut fields = Vec::new();
        self.align("", expected, actual, &mut fields);
        let count = fields.iter().filter(|field| field.matches).count();
        let total = fields.len();
        let wrong = fields.iter().filter(|field| !field.matches);
        let snippets: Vec<String> = wrong
            .map(|field| {
                format!(
                    "{}: expected {}, found {}",
                    if field.place.is_empty() {
                        "output"
                    } else {
                        &field.place
                    },
                    shown(Some(&field.expected)),
                    shown(field.actual.as_ref())
                )
            })
            .collect();
        let explanation = match seen.output() {
            Some(_) => format!("{count} of {total} expected fields match"),
            None => seen.failure(),
        };
        let alignment: JsonMap = fields
            .into_iter()
            .map(|field| {
                let both = json!({
                    "expected": field.expected,
                    "actual": field.actual,
                    "matches": field.matches,
                });
                (field.place, both)
            })
            .collect();
        let evidence = Evidence {
            snippets: (!snippets.is_empty()).then_some(snippets),
            ..Evidence::explained(explanation).aligned(alignment)
        };
        let score = ScoreRecord::new(
            seen.run,
            self.metric(),
            share(count, total),
            ScoreTarget::Final,
        );
        Ok(vec![score.because(evidence)])
    }
}
