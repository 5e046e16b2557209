//! Reads the inputs and options of a golden case. Every error says which field was found wanting.

use assize_stats::{
    Alternative, BootstrapOptions, Level, Method, PermutationOptions, Scope, Statistic, Tally,
};
use serde_json::Value;

/// A field or option that could not be read.
pub(crate) fn expected<T>(name: &str, kind: &str, found: &Value) -> Result<T, String> {
    Err(format!("`{name}` is {found}, expected {kind}"))
}

/// A number, or one of the words for what JSON cannot write.
pub(crate) fn number(name: &str, value: &Value) -> Result<f64, String> {
    match value {
        Value::Number(number) => number
            .as_f64()
            .map_or_else(|| expected(name, "a number", value), Ok),
        Value::String(word) if word == "NaN" => Ok(f64::NAN),
        Value::String(word) if word == "Infinity" => Ok(f64::INFINITY),
        Value::String(word) if word == "-Infinity" => Ok(f64::NEG_INFINITY),
        _ => expected(name, "a number", value),
    }
}

/// A number, or the default when the field is absent.
pub(crate) fn number_or(name: &str, parent: &Value, default: f64) -> Result<f64, String> {
    if parent[name].is_null() {
        Ok(default)
    } else {
        number(name, &parent[name])
    }
}

/// A whole number of at least zero.
pub(crate) fn count(name: &str, value: &Value) -> Result<u64, String> {
    let whole = value
        .as_f64()
        .filter(|number| *number >= 0.0 && number.fract() == 0.0 && *number < 1e15);
    whole.map_or_else(
        || expected(name, "a count", value),
        |number| Ok(number as u64),
    )
}

/// A count, or the default when the field is absent.
pub(crate) fn count_or(name: &str, parent: &Value, default: u64) -> Result<u64, String> {
    if parent[name].is_null() {
        Ok(default)
    } else {
        count(name, &parent[name])
    }
}

/// The items of a list.
pub(crate) fn list<'a>(name: &str, value: &'a Value) -> Result<&'a [Value], String> {
    value.as_array().map_or_else(
        || expected(name, "a list", value),
        |items| Ok(items.as_slice()),
    )
}

/// A list of numbers.
pub(crate) fn numbers(name: &str, value: &Value) -> Result<Vec<f64>, String> {
    list(name, value)?
        .iter()
        .map(|item| number(name, item))
        .collect()
}

/// A list of lists of numbers.
pub(crate) fn groups(name: &str, value: &Value) -> Result<Vec<Vec<f64>>, String> {
    list(name, value)?
        .iter()
        .map(|item| numbers(name, item))
        .collect()
}

/// A list of truth values.
pub(crate) fn truths(name: &str, value: &Value) -> Result<Vec<bool>, String> {
    list(name, value)?
        .iter()
        .map(|item| {
            item.as_bool()
                .map_or_else(|| expected(name, "true or false", item), Ok)
        })
        .collect()
}

/// Successes and trials of one scenario.
pub(crate) fn tally(successes: &Value, trials: &Value) -> Result<Tally, String> {
    let tally = Tally::new(count("successes", successes)?, count("trials", trials)?);
    tally.map_err(|error| error.to_string())
}

/// A level, or the default when the option is absent.
pub(crate) fn level_or(name: &str, options: &Value, default: Level) -> Result<Level, String> {
    Level::new(number_or(name, options, default.value())?).map_err(|error| error.to_string())
}

/// The confidence level of the options.
pub(crate) fn confidence(options: &Value) -> Result<Level, String> {
    level_or("confidenceLevel", options, Level::CONFIDENCE_95)
}

/// One of several words; the first when the option is absent.
pub(crate) fn word<T: Copy>(name: &str, options: &Value, words: &[(&str, T)]) -> Result<T, String> {
    let found = &options[name];
    let wanted = found.as_str().unwrap_or(words[0].0);
    let known = words
        .iter()
        .find(|(word, _)| *word == wanted)
        .filter(|_| found.is_null() || found.is_string());
    known.map_or_else(
        || expected(name, "a known word", found),
        |(_, meaning)| Ok(*meaning),
    )
}

/// The statistic of the options.
pub(crate) fn statistic(options: &Value) -> Result<Statistic, String> {
    const WORDS: [(&str, Statistic); 6] = [
        ("median", Statistic::Median),
        ("mean", Statistic::Mean),
        ("p90", Statistic::P90),
        ("p95", Statistic::P95),
        ("min", Statistic::Min),
        ("max", Statistic::Max),
    ];
    word("statistic", options, &WORDS)
}

/// The scope of the options.
pub(crate) fn scope(options: &Value) -> Result<Scope, String> {
    word(
        "scope",
        options,
        &[("population", Scope::Population), ("suite", Scope::Suite)],
    )
}

/// Bootstrap options; `defaults` for what is absent.
pub(crate) fn bootstrap(
    options: &Value,
    defaults: BootstrapOptions,
) -> Result<BootstrapOptions, String> {
    const WORDS: [(&str, Method); 4] = [
        ("percentile", Method::Percentile),
        ("expanded", Method::Expanded),
        ("bca", Method::Bca),
        ("auto", Method::Auto),
    ];
    let method = if options["method"].is_null() {
        defaults.method
    } else {
        word("method", options, &WORDS)?
    };
    Ok(BootstrapOptions {
        statistic: statistic(options)?,
        method,
        resamples: count_or("resamples", options, defaults.resamples as u64)? as usize,
        confidence_level: confidence(options)?,
        seed: count_or("seed", options, defaults.seed)?,
    })
}

/// Permutation options.
pub(crate) fn permutation(options: &Value) -> Result<PermutationOptions, String> {
    const WORDS: [(&str, Alternative); 3] = [
        ("two-sided", Alternative::TwoSided),
        ("less", Alternative::Less),
        ("greater", Alternative::Greater),
    ];
    Ok(PermutationOptions {
        permutations: count_or("permutations", options, 10_000)? as usize,
        alternative: word("alternative", options, &WORDS)?,
        seed: count_or("seed", options, 42)?,
    })
}

/// Ratings as numbers: words and truth values become their place in sorted order, null becomes none.
pub(crate) fn ratings(name: &str, lists: &[&Value]) -> Result<Vec<Vec<Option<f64>>>, String> {
    let mut words: Vec<String> = Vec::new();
    for rater in lists {
        words.extend(
            list(name, rater)?
                .iter()
                .filter(|rating| !rating.is_null())
                .map(Value::to_string),
        );
    }
    words.sort();
    words.dedup();
    let rating = |value: &Value| match value {
        Value::Null => None,
        Value::Number(number) => number.as_f64(),
        other => words
            .binary_search(&other.to_string())
            .ok()
            .map(|place| place as f64),
    };
    lists
        .iter()
        .map(|rater| Ok(list(name, rater)?.iter().map(rating).collect()))
        .collect()
}
