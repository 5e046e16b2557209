//! `factors:` of a suite become its `modes`: every combination of their levels, or a balanced fraction of them.
//!
//! Works on the tree of the file, before anything else reads it, so that the modes are like any others. Additions of levels to a
//! mode are merged: keys of maps and items of lists are joined, instructions are put after each other, and two factors that set
//! the same value are refused.

use super::document::Document;
use super::file_error::FileError;
use assize_contracts::{FactorRecord, FactorialMode, FactorialRecord};
use assize_stats::{Factor, Factorial, FactorialRuns};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The mode in which every factor is at its first level.
const BASE: &str = "none";
/// Keys of texts that are put after each other instead of being in each other's way.
const TEXTS: [&str; 2] = ["system_instructions", "systemInstructions"];

/// The part of the combinations that is run.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected `full`, `half`, `quarter`, or `{ runs: 8, interactions: [[a, b]] }`"
)]
pub enum FactorialSpec {
    /// `full` (default), `half` or `quarter`.
    Named(FactorialName),
    /// The number of combinations, and pairs of factors to decide by.
    Detailed(FactorialDetails),
}

/// A share of all combinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FactorialName {
    /// All.
    Full,
    /// Half of them: four switches in 8 instead of 16 modes.
    Half,
    /// A quarter of them.
    Quarter,
}

/// The combinations in detail.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FactorialDetails {
    /// The number of combinations: a power of two for a fraction. Default: all.
    pub runs: Option<usize>,
    /// Pairs of factors whose effect together is to be decided, too. Others are exploratory.
    pub interactions: Vec<[String; 2]>,
}

/// A suite whose factors were expanded.
pub(super) struct Expanded {
    pub(super) document: Document,
    /// Absent where the suite has no factors.
    pub(super) factorial: Option<FactorialRecord>,
}

/// Puts the modes that factors expand to into the tree. A suite without factors stays as it is.
pub(super) fn expand(document: Document) -> Result<Expanded, FileError> {
    let Some(written) = document.value().get("factors").cloned() else {
        return Ok(Expanded {
            document,
            factorial: None,
        });
    };
    if document.value().get("modes").is_some() {
        let error = document.error(&["modes"], "found `modes` beside `factors`");
        return Err(error.hint("`factors` expand to modes; leave one of them out"));
    }
    if document.value().get("interactions").is_some() {
        let error = document.error(&["interactions"], "found `interactions` beside `factors`");
        return Err(error
            .hint("they belong to the design: `factorial: { runs: 8, interactions: [[a, b]] }`"));
    }
    let factors = read_factors(&document, &written)?;
    let (runs, interactions) = read_factorial(&document, factors.len())?;
    let names = factors.iter().map(|factor| Factor {
        name: factor.name.clone(),
        levels: factor.levels.iter().map(|(name, _)| name.clone()).collect(),
    });
    let design = Factorial::new(names.collect(), runs).map_err(|error| {
        let place = match document.value().get("factorial") {
            Some(_) => "factorial",
            None => "factors",
        };
        document.error(&[place], error.to_string())
    })?;
    for name in interactions.iter().flatten() {
        if !factors.iter().any(|factor| factor.name == *name) {
            let message = format!("unknown factor `{name}` in `factorial.interactions`");
            return Err(document.error(&["factorial", "interactions"], message));
        }
    }
    let record = record(&design, interactions);
    let mut modes = Map::new();
    for mode in &record.modes {
        let settings = settings(&document, &factors, &mode.levels)?;
        modes.insert(mode.name.clone(), settings);
    }
    let mut value = document.value().clone();
    if let Some(map) = value.as_object_mut() {
        map.insert("modes".to_owned(), Value::Object(modes));
    }
    Ok(Expanded {
        document: document.with_value(value),
        factorial: Some(record),
    })
}

/// The document with its modes; as it is where its factors cannot be expanded, which loading it will say.
pub(super) fn with_modes(document: Document) -> Document {
    match document.value().get("factors") {
        None => document,
        Some(_) => {
            let copy = Document::unwritten(document.path().to_owned(), document.value().clone());
            match expand(copy) {
                Ok(expanded) => {
                    let value = expanded.document.value().clone();
                    document.with_value(value)
                }
                Err(_) => document,
            }
        }
    }
}

struct Written {
    name: String,
    /// Names of levels and what each adds to a mode. The first is the base.
    levels: Vec<(String, Map<String, Value>)>,
}

fn read_factors(document: &Document, written: &Value) -> Result<Vec<Written>, FileError> {
    let wrong = |keys: &[&str]| {
        document
            .error(keys, "expected factors by name")
            .hint("such as `factors: { docs: { system_instructions: \"…\" }, lint: { environment: { LINT: \"1\" } } }`")
    };
    let map = written.as_object().ok_or_else(|| wrong(&["factors"]))?;
    let factor = |(name, value): (&String, &Value)| {
        let is_visible = !name.trim().is_empty()
            && !name
                .chars()
                .any(|letter| letter.is_control() || "+=×".contains(letter));
        if !is_visible {
            let message =
                format!("found the factor name {name:?}, expected text without `+`, `=` and `×`");
            return Err(document.error(&["factors", name], message));
        }
        let value = value.as_object().ok_or_else(|| wrong(&["factors", name]))?;
        Ok(Written {
            name: name.clone(),
            levels: levels(document, name, value)?,
        })
    };
    map.iter().map(factor).collect()
}

type Levels = Vec<(String, Map<String, Value>)>;

/// `levels: { low: {…}, high: {…} }`, or `on: {…}` with an `off:` or without, or what is added when the switch is on.
fn levels(
    document: &Document,
    name: &str,
    value: &Map<String, Value>,
) -> Result<Levels, FileError> {
    let settings = |keys: &[&str], value: &Value| match value {
        Value::Object(map) => Ok(map.clone()),
        Value::Null => Ok(Map::new()),
        _ => Err(document.error(
            keys,
            "expected what the level adds to a mode, such as `{ environment: { … } }`",
        )),
    };
    if let Some(levels) = value.get("levels") {
        let keys = ["factors", name, "levels"];
        if let Some(other) = value.keys().find(|key| *key != "levels") {
            let message = format!("unknown key `{other}` beside `levels`");
            return Err(document.error(&["factors", name, other], message));
        }
        let map = levels
            .as_object()
            .ok_or_else(|| document.error(&keys, "expected levels by name"))?;
        let level = |(level, value): (&String, &Value)| {
            let keys = ["factors", name, "levels", level.as_str()];
            Ok((level.clone(), settings(&keys, value)?))
        };
        return map.iter().map(level).collect();
    }
    let is_switch = value.contains_key("on") && value.keys().all(|key| key == "on" || key == "off");
    let part = |key: &str| match value.get(key) {
        Some(found) => settings(&["factors", name, key], found),
        None => Ok(Map::new()),
    };
    let (off, on) = match is_switch {
        true => (part("off")?, part("on")?),
        false => (Map::new(), value.clone()),
    };
    Ok(vec![("off".to_owned(), off), ("on".to_owned(), on)])
}

fn read_factorial(
    document: &Document,
    factors: usize,
) -> Result<(FactorialRuns, Vec<[String; 2]>), FileError> {
    let Some(written) = document.value().get("factorial") else {
        return Ok((FactorialRuns::Full, Vec::new()));
    };
    let spec: FactorialSpec = serde_json::from_value(written.clone())
        .map_err(|error| document.error(&["factorial"], format!("`factorial`: {error}")))?;
    let all = 1_usize.checked_shl(factors as u32).unwrap_or(usize::MAX);
    Ok(match spec {
        FactorialSpec::Named(FactorialName::Full) => (FactorialRuns::Full, Vec::new()),
        FactorialSpec::Named(FactorialName::Half) => (FactorialRuns::Fraction(all / 2), Vec::new()),
        FactorialSpec::Named(FactorialName::Quarter) => {
            (FactorialRuns::Fraction(all / 4), Vec::new())
        }
        FactorialSpec::Detailed(FactorialDetails { runs, interactions }) => {
            let runs = runs.map_or(FactorialRuns::Full, FactorialRuns::Fraction);
            (runs, interactions)
        }
    })
}

/// The modes with their names: what is not at its base, joined by `+`.
fn record(design: &Factorial, interactions: Vec<[String; 2]>) -> FactorialRecord {
    let name = |levels: &[usize]| {
        let places = design.factors.iter().zip(levels);
        let set = places.filter(|(_, level)| **level > 0);
        let names = set.map(|(factor, level)| match factor.levels.len() {
            2 if factor.levels[1] == "on" => factor.name.clone(),
            _ => format!("{}={}", factor.name, factor.levels[*level]),
        });
        match names.collect::<Vec<_>>().join("+") {
            name if name.is_empty() => BASE.to_owned(),
            name => name,
        }
    };
    FactorialRecord {
        factors: design
            .factors
            .iter()
            .map(|factor| FactorRecord {
                name: factor.name.clone(),
                levels: factor.levels.clone(),
            })
            .collect(),
        modes: design
            .runs
            .iter()
            .map(|levels| FactorialMode {
                name: name(levels),
                levels: levels.clone(),
            })
            .collect(),
        interactions,
    }
}

/// The additions of all levels to a mode.
fn settings(
    document: &Document,
    factors: &[Written],
    levels: &[usize],
) -> Result<Value, FileError> {
    let mut merged = Map::new();
    for (factor, level) in factors.iter().zip(levels) {
        for (key, value) in &factor.levels[*level].1 {
            merge(&mut merged, key, value).map_err(|clash| {
                document.error(
                    &["factors", &factor.name],
                    format!(
                        "factor `{}` sets `{clash}`, which another factor sets, too",
                        factor.name
                    ),
                )
            })?;
        }
    }
    Ok(json!(merged))
}

/// Adds a value to a map; `Err` names a key that two want to set.
fn merge(map: &mut Map<String, Value>, key: &str, value: &Value) -> Result<(), String> {
    let Some(known) = map.get_mut(key) else {
        map.insert(key.to_owned(), value.clone());
        return Ok(());
    };
    match (known, value) {
        (Value::Object(known), Value::Object(more)) => {
            for (inner, value) in more {
                merge(known, inner, value).map_err(|clash| format!("{key}.{clash}"))?;
            }
            Ok(())
        }
        (Value::Array(known), Value::Array(more)) => {
            known.extend(more.iter().cloned());
            Ok(())
        }
        (Value::String(known), Value::String(more)) if TEXTS.contains(&key) => {
            known.push_str("\n\n");
            known.push_str(more);
            Ok(())
        }
        (known, more) if known == more => Ok(()),
        _ => Err(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn expanded(suite: Value) -> Result<Expanded, FileError> {
        expand(Document::unwritten(PathBuf::from("assize.yaml"), suite))
    }

    fn modes(suite: Value) -> Map<String, Value> {
        let expanded = expanded(suite).unwrap_or_else(|error| panic!("{error}"));
        expanded.document.value()["modes"]
            .as_object()
            .unwrap()
            .clone()
    }

    #[test]
    fn two_switches_are_four_modes_whose_settings_are_joined() {
        let modes = modes(json!({"factors": {
            "docs": {"system_instructions": "Use the docs.", "environment": {"A": "1"}},
            "lint": {"on": {"system_instructions": "Lint.", "environment": {"B": "2"}}, "off": {"environment": {"B": "0"}}},
        }}));
        let names: Vec<&String> = modes.keys().collect();
        assert_eq!(names, ["none", "lint", "docs", "docs+lint"]);
        assert_eq!(modes["none"], json!({"environment": {"B": "0"}}));
        assert_eq!(
            modes["docs+lint"],
            json!({"system_instructions": "Use the docs.\n\nLint.", "environment": {"A": "1", "B": "2"}})
        );
    }

    #[test]
    fn four_switches_fit_into_eight_modes() {
        let switch = |name: &str| json!({"environment": {name: "1"}});
        let suite = json!({
            "factors": {"a": switch("A"), "b": switch("B"), "c": switch("C"), "d": switch("D")},
            "factorial": {"runs": 8},
        });
        assert_eq!(modes(suite.clone()).len(), 8);
        let mut half = suite;
        half["factorial"] = json!("half");
        assert_eq!(modes(half).len(), 8);
    }

    #[test]
    fn levels_have_names_and_the_first_is_the_base() {
        let modes = modes(
            json!({"factors": {"heat": {"levels": {"low": null, "mid": {"provider_overrides": {"t": 1}}, "high": {"provider_overrides": {"t": 2}}}}}}),
        );
        let names: Vec<&String> = modes.keys().collect();
        assert_eq!(names, ["none", "heat=mid", "heat=high"]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let message = |suite: Value| expanded(suite).err().expect("a problem").to_string();
        let clash = json!({"factors": {"a": {"environment": {"X": "1"}}, "b": {"environment": {"X": "2"}}}});
        assert!(message(clash).contains("sets `environment.X`"));
        let both = json!({"modes": {"m": {}}, "factors": {"a": {"environment": {}}}});
        assert!(message(both).contains("`modes` beside `factors`"));
        let six =
            json!({"factors": {"a": {}, "b": {}, "c": {}, "d": {}}, "factorial": {"runs": 6}});
        assert!(message(six).contains("cannot be balanced"));
        assert!(message(json!({"factors": {"a": 3}})).contains("expected factors by name"));
        let unknown =
            json!({"factors": {"a": {}, "b": {}}, "factorial": {"interactions": [["a", "x"]]}});
        assert!(message(unknown).contains("unknown factor `x`"));
    }
}
