//! Evaluates golden cases by function name and holds the answers against their expected values.
//! Shared by the test of the stored file and the `golden` example, which reads any file of that format.

#[path = "evaluate.rs"]
mod evaluate;
#[path = "inputs.rs"]
mod inputs;
#[path = "success.rs"]
mod success;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Map, Value};

/// The result of one case.
pub(crate) struct Outcome {
    /// The case's id.
    pub(crate) id: String,
    /// The reason of its failure; absent when it passed.
    pub(crate) failure: Option<String>,
    /// The function that took the place of the one the case asks for, which is therefore not evaluated.
    pub(crate) replaced_by: Option<&'static str>,
}

/// Functions that others took the place of.
const REPLACED: [(&str, &str); 2] = [
    ("cluster_proportion_ci", "success_rate"),
    ("success_difference_ci", "success_difference"),
];

/// Evaluates all cases of a golden file. An error means that the text is no such file.
pub(crate) fn run(text: &str) -> Result<Vec<Outcome>, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let cases = file["cases"].as_array().ok_or("no `cases` list")?;
    Ok(cases
        .iter()
        .enumerate()
        .map(|(place, case)| outcome(place, case))
        .collect())
}

fn outcome(place: usize, case: &Value) -> Outcome {
    let id = case["id"]
        .as_str()
        .map_or_else(|| format!("case-{}", place + 1), str::to_owned);
    let replaced = REPLACED.iter().find(|(name, _)| case["function"] == **name);
    if let Some((_, successor)) = replaced {
        return Outcome {
            id,
            failure: None,
            replaced_by: Some(successor),
        };
    }
    // A case that breaks an assumption of this program must not hide the cases after it.
    let checked = catch_unwind(AssertUnwindSafe(|| check(case)));
    let failure = checked.unwrap_or_else(|_| Err("panicked".to_owned())).err();
    Outcome {
        id,
        failure,
        replaced_by: None,
    }
}

fn check(case: &Value) -> Result<(), String> {
    let function = case["function"]
        .as_str()
        .ok_or("expected a `function` name, actual none")?;
    let answer = evaluate::evaluate(function, &case["inputs"], &case["options"])
        .map_err(|error| format!("expected an answer, actual error: {error}"))?;
    let tolerances = Tolerances { case };
    match &case["expected"] {
        Value::Null if has_no_interval(&answer) => {}
        Value::Object(fields) => check_fields(fields, &answer, &tolerances)?,
        other => return Err(format!("expected {other} actual {answer}")),
    }
    check_bands(&case["bands"], &answer)?;
    check_warnings(&case["warningsInclude"], &answer["warnings"])
}

/// Null stands for an answer without an interval: the library still says what it can, such as the estimate.
fn has_no_interval(answer: &Value) -> bool {
    answer.is_null() || (answer["lower"].is_null() && answer["upper"].is_null())
}

fn check_fields(
    fields: &Map<String, Value>,
    answer: &Value,
    tolerances: &Tolerances<'_>,
) -> Result<(), String> {
    for (field, expected) in fields {
        let actual = &answer[field.as_str()];
        if !agrees(expected, actual, tolerances.of(field)) {
            return Err(format!(
                "expected {field}={expected} actual {field}={actual}"
            ));
        }
    }
    Ok(())
}

fn agrees(expected: &Value, actual: &Value, tolerance: Tolerance) -> bool {
    match (expected, actual) {
        (Value::Number(expected), Value::Number(actual)) => {
            let (expected, actual) = (
                expected.as_f64().unwrap_or(f64::NAN),
                actual.as_f64().unwrap_or(f64::NAN),
            );
            (actual - expected).abs() <= tolerance.abs + tolerance.rel * expected.abs()
        }
        (Value::Array(expected), Value::Array(actual)) => {
            let mut items = expected.iter().zip(actual);
            expected.len() == actual.len()
                && items.all(|(expected, actual)| agrees(expected, actual, tolerance))
        }
        (Value::Object(fields), actual) => fields
            .iter()
            .all(|(field, expected)| agrees(expected, &actual[field.as_str()], tolerance)),
        (expected, actual) => expected == actual,
    }
}

fn check_bands(bands: &Value, answer: &Value) -> Result<(), String> {
    let Some(bands) = bands.as_object() else {
        return Ok(());
    };
    for (path, band) in bands {
        let actual = at_path(answer, path);
        let limits = (band[0].as_f64(), band[1].as_f64(), actual.as_f64());
        let (Some(low), Some(high), Some(number)) = limits else {
            return Err(format!("expected {path} in {band} actual {path}={actual}"));
        };
        if number < low || number > high {
            return Err(format!("expected {path} in {band} actual {path}={actual}"));
        }
    }
    Ok(())
}

/// A value inside an answer: `ci95.0` is the first item of the field `ci95`.
fn at_path<'a>(answer: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .fold(answer, |value, step| match step.parse::<usize>() {
            Ok(place) if value.is_array() => &value[place],
            _ => &value[step],
        })
}

fn check_warnings(expected: &Value, actual: &Value) -> Result<(), String> {
    let given = actual.as_array().map_or(&[][..], Vec::as_slice);
    let wanted = expected.as_array().map_or(&[][..], Vec::as_slice);
    match wanted.iter().find(|warning| !given.contains(warning)) {
        Some(missing) => Err(format!(
            "expected warning {missing} actual warnings {actual}"
        )),
        None => Ok(()),
    }
}

#[derive(Clone, Copy)]
struct Tolerance {
    rel: f64,
    abs: f64,
}

/// The tolerances of a case: its own, overridden by field.
struct Tolerances<'a> {
    case: &'a Value,
}

impl Tolerances<'_> {
    fn of(&self, field: &str) -> Tolerance {
        let general = &self.case["tolerance"];
        let special = &general["fields"][field];
        let number = |name: &str, default: f64| {
            special[name]
                .as_f64()
                .or(general[name].as_f64())
                .unwrap_or(default)
        };
        Tolerance {
            rel: number("rel", 1e-9),
            abs: number("abs", 1e-12),
        }
    }
}
