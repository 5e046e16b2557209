//! Patterns, JSONPaths and schemas, compiled once; JSON in an agent's answer.

use super::json_path::patterns_in;
use crate::spec::Spec;
use assize_contracts::ConfigError;
use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

/// More than any pattern a person writes; a counted repetition of a repetition can want gigabytes.
const PATTERN_SIZE_LIMIT: usize = 1 << 20;

/// A regular expression; matching takes linear time.
pub(super) struct Pattern(Regex);

impl Pattern {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        Self::compile(&spec.text()?, spec)
    }

    /// `spec` is the place of the text.
    fn compile(text: &str, spec: &Spec<'_>) -> Result<Self, ConfigError> {
        RegexBuilder::new(text)
            .size_limit(PATTERN_SIZE_LIMIT)
            .build()
            .map(Self)
            .map_err(|error| spec.error(format!("invalid regular expression: {error}")))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// A JSONPath as RFC 9535 has it.
pub(super) struct JsonPath {
    text: String,
    query: JpQuery,
}

impl JsonPath {
    /// `spec` is the place of the path.
    pub(super) fn parse(text: &str, spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let query = parse_json_path(text)
            .map_err(|error| spec.error(format!("invalid JSONPath: {error}")))?;
        // To the library a broken pattern is one that matches nothing.
        for pattern in patterns_in(&query) {
            Pattern::compile(pattern, spec)?;
        }
        let text = text.to_owned();
        Ok(Self { text, query })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn select<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        js_path_process(&self.query, value)
            .map(|found| found.into_iter().map(|found| found.val()).collect())
            .unwrap_or_default()
    }
}

/// A JSON Schema. Patterns in it take linear time, and references leave neither the schema nor the machine.
pub(super) struct Schema(jsonschema::Validator);

impl Schema {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        if !matches!(spec.value, Value::Object(_) | Value::Bool(_)) {
            return Err(spec.error("expected a JSON Schema: an object, or the name of its file"));
        }
        jsonschema::options()
            .with_pattern_options(
                jsonschema::PatternOptions::regex().size_limit(PATTERN_SIZE_LIMIT),
            )
            .build(spec.value)
            .map(Self)
            .map_err(|error| {
                let message = format!("invalid JSON Schema: {error}");
                spec.error_at(place_in_schema(spec.value, &error), message)
            })
    }

    pub(super) fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// The error in the value and its place, if there is one.
    pub(super) fn complaint(&self, value: &Value) -> Option<String> {
        let error = self.0.validate(value).err()?;
        let text = match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("{place}: {error}"),
        };
        Some(super::excerpt(&text, super::ACTUAL_LENGTH))
    }
}

/// The place of a schema's error, as a JSON Pointer. An error against the rules for schemas has its place in the instance, one
/// of compilation in the schema.
fn place_in_schema<'a>(schema: &Value, error: &'a jsonschema::ValidationError<'_>) -> &'a str {
    let places = [error.instance_path(), error.schema_path()].map(|place| place.as_str());
    let is_inside = |place: &&str| !place.is_empty() && schema.pointer(place).is_some();
    places.into_iter().find(is_inside).unwrap_or("")
}

/// The whole text as JSON, else its last fenced block that is JSON.
pub(super) fn parse_answer(text: &str) -> Option<Value> {
    let whole = text.trim();
    serde_json::from_str(whole).ok().or_else(|| {
        fenced_blocks(whole)
            .rev()
            .find_map(|block| serde_json::from_str(block).ok())
    })
}

fn fenced_blocks(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let parts: Vec<&str> = text.split("```").collect();
    // Every second part lies between fences; what follows the opening one on its line is the language.
    parts
        .into_iter()
        .skip(1)
        .step_by(2)
        .filter_map(|part| part.split_once('\n'))
        .filter(|(language, _)| matches!(language.trim(), "" | "json" | "JSON"))
        .map(|(_, block)| block)
}

/// Equality of JSON in which 42 and 42.0 are one number.
pub(super) fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(xs), Value::Array(ys)) => {
            xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| same_value(x, y))
        }
        (Value::Object(xs), Value::Object(ys)) => {
            let same = |(key, x)| ys.get(key).is_some_and(|y| same_value(x, y));
            xs.len() == ys.len() && xs.iter().all(same)
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_alone_and_in_the_last_fenced_block() {
        let expected = Some(json!({"a": 1}));
        for answer in [
            " {\"a\": 1}\n",
            "Done:\n```json\n{\"a\": 1}\n```\nBye.",
            "```json\n{\"a\": 0}\n```\nor rather\n```\n{\"a\": 1}\n```",
            "```json\n{\"a\": 1}\n```\n```sh\nls\n```",
        ] {
            assert_eq!(parse_answer(answer), expected, "{answer}");
        }
        assert_eq!(parse_answer("a = 1"), None);
        assert_eq!(parse_answer("```"), None);
    }

    #[test]
    fn whole_numbers_equal_themselves_with_a_point() {
        assert!(same_value(&json!({"a": [42]}), &json!({"a": [42.0]})));
        assert!(!same_value(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
    }

    #[test]
    fn a_pattern_that_would_explode_is_refused() {
        let value = json!("((a{1000}){1000}){1000}");
        assert!(Pattern::parse(&Spec::at(&[], &value)).is_err());
    }

    #[test]
    fn a_path_that_is_nested_deeply_is_refused_in_peace() {
        for (depth, is_refused) in [(20, false), (100_000, true)] {
            let path = format!("$[?{}@.a{}]", "(".repeat(depth), ")".repeat(depth));
            let parsed = JsonPath::parse(&path, &Spec::at(&[], &Value::Null));
            assert_eq!(parsed.is_err(), is_refused, "{depth}");
        }
    }

    #[test]
    fn a_schema_refers_to_nothing_outside_itself() {
        let value = json!({"$ref": "file:///etc/passwd"});
        assert!(Schema::parse(&Spec::at(&[], &value)).is_err());
    }
}
