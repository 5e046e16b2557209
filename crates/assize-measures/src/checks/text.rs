//! Requirements on a text: the part that checks of the output and of files share.

use super::json::{JsonPath, Pattern, Schema, parse_answer, same_value};
use crate::spec::{Fields, Spec, excerpt, nearest, quoted};
use assize_contracts::ConfigError;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Everything a text can be asked for. A file has some of it.
pub(super) const TEXT_KEYS: [&str; 6] = ["contains", "equals", "matches", "schema", "json", "path"];

/// A text on which several tests are made. JSON in it is looked for once, and only if one of them asks.
pub(super) struct Text<'a> {
    pub(super) text: Cow<'a, str>,
    json: OnceLock<Option<Value>>,
}

impl<'a> Text<'a> {
    pub(super) fn new(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        let json = OnceLock::new();
        Self { text, json }
    }

    /// The text as JSON, alone or in its last fenced block.
    pub(super) fn json(&self) -> Option<&Value> {
        self.json.get_or_init(|| parse_answer(&self.text)).as_ref()
    }
}

/// One thing a text must be.
pub(super) struct TextTest {
    key: &'static str,
    expected: Value,
    rule: Rule,
}

enum Rule {
    Contains(String),
    /// White space around the text does not count: agents end their answers as they like.
    Equals(String),
    Matches(Pattern),
    Schema(Schema),
    IsJson,
    Json(Value),
    Paths(Vec<PathRule>),
}

struct PathRule {
    path: JsonPath,
    expected: Matcher,
}

impl TextTest {
    /// All tests of these keys among the fields, in this order.
    pub(super) fn parse_all(
        fields: &Fields<'_>,
        keys: &[&'static str],
    ) -> Result<Vec<Self>, ConfigError> {
        keys.iter()
            .copied()
            .filter_map(|key| Some((key, fields.get(key)?)))
            .map(|(key, spec)| Self::parse(key, &spec))
            .collect()
    }

    fn parse(key: &'static str, spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let rule = match key {
            "contains" => Rule::Contains(spec.text()?),
            "equals" => Rule::Equals(spec.text()?),
            "matches" => Rule::Matches(Pattern::parse(spec)?),
            "schema" => Rule::Schema(Schema::parse(spec)?),
            "json" if *spec.value == Value::Bool(true) => Rule::IsJson,
            "json" => Rule::Json(spec.value.clone()),
            _ => Rule::Paths(parse_paths(spec)?),
        };
        let expected = bounded(spec.value);
        Ok(Self {
            key,
            expected,
            rule,
        })
    }

    pub(super) fn key(&self) -> &'static str {
        self.key
    }

    pub(super) fn expected(&self) -> &Value {
        &self.expected
    }

    /// The second half of a sentence about the text.
    pub(super) fn words(&self) -> String {
        match &self.rule {
            Rule::Contains(part) => format!("contains `{}`", excerpt(part, 60)),
            Rule::Equals(whole) => format!("equals `{}`", excerpt(whole, 60)),
            Rule::Matches(pattern) => format!("matches `{}`", excerpt(pattern.as_str(), 60)),
            Rule::Schema(_) => "fits the schema".to_owned(),
            Rule::IsJson => "is JSON".to_owned(),
            Rule::Json(value) => format!("is JSON equal to `{}`", excerpt(&value.to_string(), 60)),
            Rule::Paths(rules) => {
                let paths: Vec<&str> = rules.iter().map(|rule| rule.path.as_str()).collect();
                format!("is JSON with the expected {}", quoted(&paths))
            }
        }
    }

    /// The contradicting value, if the test does not hold.
    pub(super) fn broken_by(&self, text: &Text<'_>) -> Option<Value> {
        let holds = match &self.rule {
            Rule::Contains(part) => text.text.contains(part.as_str()),
            Rule::Equals(whole) => text.text.trim() == whole.trim(),
            Rule::Matches(pattern) => pattern.is_match(&text.text),
            Rule::IsJson => text.json().is_some(),
            Rule::Json(value) => text.json().is_some_and(|json| same_value(json, value)),
            Rule::Schema(schema) => return self.broken_schema(schema, text),
            Rule::Paths(rules) => return self.broken_path(rules, text),
        };
        (!holds).then(|| text.excerpt())
    }

    fn broken_schema(&self, schema: &Schema, text: &Text<'_>) -> Option<Value> {
        let Some(json) = text.json() else {
            return Some(text.excerpt());
        };
        schema.complaint(json).map(Value::String)
    }

    fn broken_path(&self, rules: &[PathRule], text: &Text<'_>) -> Option<Value> {
        let Some(json) = text.json() else {
            return Some(text.excerpt());
        };
        rules.iter().find_map(|rule| {
            let found = rule.path.select(json);
            let holds = found.iter().any(|value| rule.expected.is_match(value));
            let shown = found.iter().take(super::NAMED);
            (!holds).then(|| shown.map(|value| bounded(value)).collect())
        })
    }
}

impl Text<'_> {
    pub(super) fn excerpt(&self) -> Value {
        Value::String(excerpt(&self.text, super::ACTUAL_LENGTH))
    }
}

fn parse_paths(spec: &Spec<'_>) -> Result<Vec<PathRule>, ConfigError> {
    let entries = spec.entries()?;
    if entries.is_empty() {
        return Err(spec.error("expected at least one JSONPath and its value"));
    }
    entries
        .into_iter()
        .map(|(path, spec)| {
            let path = JsonPath::parse(path, &spec)?;
            let expected = Matcher::parse(&spec)?;
            Ok(PathRule { path, expected })
        })
        .collect()
}

/// The requirement on a JSON value: itself, or `{ matches: … }`, `{ contains: … }`, `{ equals: … }`.
pub(super) enum Matcher {
    Equals(Value),
    Contains(String),
    Matches(Pattern),
}

const MATCHERS: [&str; 3] = ["matches", "contains", "equals"];

impl Matcher {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let entries = spec.entries().unwrap_or_default();
        match entries.as_slice() {
            [("matches", inner)] => Pattern::parse(inner).map(Self::Matches),
            [("contains", inner)] => inner.text().map(Self::Contains),
            [("equals", inner)] => Ok(Self::Equals(inner.value.clone())),
            entries => match entries.iter().find(|(key, _)| is_meant(key, entries.len())) {
                Some((key, inner)) => Err(misused(key, inner)),
                None => Ok(Self::Equals(spec.value.clone())),
            },
        }
    }

    pub(super) fn is_match(&self, value: &Value) -> bool {
        match self {
            Self::Equals(expected) => same_value(value, expected),
            Self::Contains(part) => as_text(value).contains(part.as_str()),
            Self::Matches(pattern) => pattern.is_match(&as_text(value)),
        }
    }
}

/// True when a key among so many was probably meant as one of the matchers.
fn is_meant(key: &str, entries: usize) -> bool {
    MATCHERS.contains(&key) || entries == 1 && nearest(key, &MATCHERS).is_some()
}

fn misused(key: &str, spec: &Spec<'_>) -> ConfigError {
    let mut error = spec.error(match nearest(key, &MATCHERS) {
        Some(name) if name != key => format!("found `{key}`, did you mean `{name}`?"),
        _ => format!("found `{key}` among other keys, expected it alone"),
    });
    error.hint = Some("write an object that must be equal as `{ equals: … }`".to_owned());
    error
}

fn as_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// The value itself if it is short, else the beginning of its text.
pub(super) fn bounded(value: &Value) -> Value {
    let text = as_text(value);
    if text.len() <= super::ACTUAL_LENGTH {
        return value.clone();
    }
    Value::String(excerpt(&text, super::ACTUAL_LENGTH))
}
