//! Calls the functions of success over tasks that a golden case names.

use assize_stats::*;
use serde::Serialize;
use serde_json::Value;

use super::inputs::*;

/// The answer of a function of success.
pub(crate) fn evaluate(function: &str, inputs: &Value, options: &Value) -> Result<Value, String> {
    let alpha = level_or("alpha", options, Level::ALPHA_05)?;
    let a = counts("a", &inputs["a"])?;
    let b = || counts("b", &inputs["b"]);
    match function {
        "success_rate" => json_of(&success_rate(&a, alpha)),
        "suite_rate" => json_of(&suite_rate(&a, alpha)),
        "success_difference" => answered(success_difference(&a, &b()?, alpha)),
        "suite_difference" => answered(suite_difference(&a, &b()?, alpha)),
        "success_gate" => json_of(&success_gate(
            &a,
            number("threshold", &options["threshold"])?,
            alpha,
            scope(options)?,
        )),
        "success_margin" => answered(success_margin(
            &a,
            &b()?,
            &SuccessMarginOptions {
                margin: number("margin", &options["margin"])?,
                alpha,
                scope: scope(options)?,
            },
        )),
        "void_check" => answered(void_check(
            &a,
            &b()?,
            &voids("voidA", inputs, a.len())?,
            &voids("voidB", inputs, a.len())?,
            alpha,
        )),
        unknown => Err(format!("unknown function `{unknown}`")),
    }
}

/// Lists of passed and judged trials.
fn counts(name: &str, value: &Value) -> Result<Vec<Tally>, String> {
    let pair = |item: &Value| match item.as_array().map(Vec::as_slice) {
        Some([successes, trials]) => tally(successes, trials),
        _ => expected(name, "a list of successes and trials", item),
    };
    list(name, value)?.iter().map(pair).collect()
}

/// Void trials per task; none when the field is absent.
fn voids(name: &str, inputs: &Value, tasks: usize) -> Result<Vec<u64>, String> {
    if inputs[name].is_null() {
        return Ok(vec![0; tasks]);
    }
    let items = list(name, &inputs[name])?;
    items.iter().map(|item| count(name, item)).collect()
}

fn json_of(answer: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn answered<T: Serialize>(answer: Result<T, StatsError>) -> Result<Value, String> {
    json_of(&answer.map_err(|error| error.to_string())?)
}
