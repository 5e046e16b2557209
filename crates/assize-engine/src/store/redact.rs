//! Keeps secrets out of every record: values taken from the environment, and strings that look like keys.

use regex::{Regex, bytes};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const REDACTED: &str = "[redacted]";

/// Shorter values cannot be distinguished from ordinary text; replacing them would ruin the records.
const SHORTEST_SECRET: usize = 4;

/// Values from the environment that a suite uses. They go to agents and nowhere else.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Remembers the value of an environment variable.
    pub fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Names and hashes, for comparing runs. A hash does not give the value away unless it can be guessed.
    pub fn hashes(&self) -> BTreeMap<String, String> {
        let hash = |value: &String| {
            let key = blake3::derive_key("assize environment value", value.as_bytes());
            blake3::hash(&key).to_hex()[..16].to_owned()
        };
        self.0
            .iter()
            .map(|(name, value)| (name.clone(), hash(value)))
            .collect()
    }

    /// Names whose values are too short to be found in records.
    pub fn too_short(&self) -> Vec<&str> {
        let is_short = |value: &String| !value.is_empty() && value.len() < SHORTEST_SECRET;
        self.0
            .iter()
            .filter(|(_, value)| is_short(value))
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

/// Never shows a value.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Patterns of the keys of usual services. Each begins with a literal, so that text without any is passed quickly.
static KEY_LIKE: LazyLock<String> = LazyLock::new(|| {
    [
        r"sk-[A-Za-z0-9_-]{20,}",
        r"sk_(?:live|test)_[A-Za-z0-9]{16,}",
        r"gh[pousr]_[A-Za-z0-9]{30,}",
        r"github_pat_[A-Za-z0-9_]{30,}",
        r"glpat-[A-Za-z0-9_-]{20,}",
        r"xox[abprs]-[A-Za-z0-9-]{10,}",
        r"AKIA[A-Z0-9]{16}",
        r"AIza[A-Za-z0-9_-]{30,}",
        r"hf_[A-Za-z0-9]{30,}",
        r"npm_[A-Za-z0-9]{30,}",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----",
    ]
    .join("|")
});

/// Removes secrets from JSON text.
pub struct Redactor {
    /// Finds anything to remove in encoded JSON: values also in their escaped form.
    encoded: bytes::Regex,
    /// Finds anything to remove in the strings themselves.
    plain: Regex,
}

impl Redactor {
    /// Looks for the given values and for everything that looks like a key.
    pub fn new(secrets: &Secrets) -> Self {
        let values: Vec<&str> = secrets
            .0
            .values()
            .map(String::as_str)
            .filter(|value| value.len() >= SHORTEST_SECRET)
            .collect();
        let escaped = values.iter().map(|value| {
            let quoted = serde_json::to_string(value).expect("text is JSON");
            quoted[1..quoted.len() - 1].to_owned()
        });
        let valid = "escaped values and fixed patterns";
        Self {
            encoded: bytes::Regex::new(&pattern(escaped)).expect(valid),
            plain: Regex::new(&pattern(values.iter().map(|v| (*v).to_owned()))).expect(valid),
        }
    }

    /// The same JSON without secrets in any of its strings or keys.
    pub fn redact<'a>(&self, json: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.encoded.is_match(json) {
            return Cow::Borrowed(json);
        }
        // Rare, so it may be slow: only by looking at the strings themselves do numbers stay numbers.
        match serde_json::from_slice(json) {
            Ok(value) => {
                let clean = self.redact_value(value);
                Cow::Owned(serde_json::to_vec(&clean).expect("a JSON value is JSON"))
            }
            Err(_) => self.encoded.replace_all(json, REDACTED.as_bytes()),
        }
    }

    /// The same text without secrets.
    pub fn redact_text(&self, text: &str) -> String {
        self.plain.replace_all(text, REDACTED).into_owned()
    }

    fn redact_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact_text(&text)),
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.redact_value(item))
                .collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(key, value)| (self.redact_text(&key), self.redact_value(value)))
                .collect(),
            other => other,
        }
    }
}

/// An expression for the given values and everything that looks like a key.
fn pattern(values: impl Iterator<Item = String>) -> String {
    let mut alternatives: Vec<String> = values.map(|value| regex::escape(&value)).collect();
    // A value that begins with another one must be tried first.
    alternatives.sort_by_key(|value| std::cmp::Reverse(value.len()));
    alternatives.push(KEY_LIKE.clone());
    alternatives.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redact(secret: &str, record: Value) -> Value {
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", secret);
        let text = serde_json::to_vec(&record).unwrap();
        serde_json::from_slice(&Redactor::new(&secrets).redact(&text)).unwrap()
    }

    #[test]
    fn environment_values_are_removed_wherever_they_stand() {
        let record = json!({"text": "it is hunter22!", "deep": [{"hunter22": 1}], "n": 5});
        let clean = json!({"text": "it is [redacted]!", "deep": [{"[redacted]": 1}], "n": 5});
        assert_eq!(redact("hunter22", record), clean);
    }

    #[test]
    fn a_secret_with_quotes_and_line_breaks_is_found_in_its_escaped_form() {
        assert_eq!(
            redact("a\"b\nc\\d", json!(["x a\"b\nc\\d y"])),
            json!(["x [redacted] y"])
        );
    }

    #[test]
    fn a_secret_of_digits_leaves_numbers_alone() {
        assert_eq!(
            redact("123456", json!({"ms": 123456, "t": "123456"})),
            json!({"ms": 123456, "t": "[redacted]"})
        );
    }

    #[test]
    fn strings_that_look_like_keys_are_removed() {
        let keys = [
            "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        ];
        for key in keys {
            assert_eq!(
                redact("unrelated", json!(format!("<{key}>"))),
                json!("<[redacted]>")
            );
        }
    }

    #[test]
    fn ordinary_text_is_not_touched() {
        let record = json!({"text": "task-list risk-free sk-short ghp_no", "total": 12.5});
        assert_eq!(redact("hunter22", record.clone()), record);
    }

    #[test]
    fn secrets_never_show_their_values() {
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "hunter22");
        assert_eq!(format!("{secrets:?}"), r#"{"TOKEN"}"#);
        assert!(!format!("{:?}", secrets.hashes()).contains("hunter22"));
    }
}
