//! Removes secrets from text.

use crate::forms::{Forms, forms, in_json};
use crate::matcher::{Matcher, Needle};
use crate::secrets::Secrets;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

/// Removes the secrets of a run from text. Knows what becomes known later, too.
#[derive(Clone)]
pub struct Redactor {
    secrets: Secrets,
}

pub(crate) struct Compiled {
    version: u64,
    /// Finds values in text.
    plain: Matcher,
    /// Finds values in JSON, where their quotes and line breaks are escaped. Absent where that makes no difference.
    in_json: Option<Matcher>,
}

impl Redactor {
    /// Removes these secrets, and everything that looks like a key.
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
        }
    }

    /// True when JSON holds anything that may have to be removed. Much cheaper than removing it.
    pub fn concerns(&self, json: &[u8]) -> bool {
        let compiled = self.compiled();
        compiled
            .in_json
            .as_ref()
            .unwrap_or(&compiled.plain)
            .is_in(json)
    }

    /// The text without secrets, each replaced by its numbered placeholder.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replace(text, |number| match number {
            Some(number) => format!("[redacted-{number}]").into(),
            None => "[redacted]".into(),
        })
    }

    /// The text with the same words in place of every secret.
    pub fn text_with<'a>(&self, text: &'a str, placeholder: &'static str) -> Cow<'a, str> {
        self.replace(text, |_| placeholder.into())
    }

    /// Removes secrets from a text in its place.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// The content of a file without secrets. In what is no text they are overwritten, so that everything keeps its place.
    pub fn bytes(&self, content: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(content) {
            Ok(mut text) => {
                self.clean(&mut text);
                text.into_bytes()
            }
            Err(error) => {
                let mut bytes = error.into_bytes();
                for place in self.compiled().plain.find(&bytes) {
                    bytes[place.range].fill(b'*');
                }
                bytes
            }
        }
    }

    /// Removes secrets from all strings and keys of a value that came from outside.
    pub fn clean_value(&self, value: &mut Value) {
        self.map_strings(value, &|text| self.text(text));
    }

    /// The same with the same words in place of every secret.
    pub fn clean_value_with(&self, value: &mut Value, placeholder: &'static str) {
        self.map_strings(value, &|text| self.text_with(text, placeholder));
    }

    fn map_strings(&self, value: &mut Value, clean: &dyn Fn(&str) -> Cow<'_, str>) {
        match value {
            Value::String(text) => {
                if let Some(new) = changed(clean(text)) {
                    *text = new;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.map_strings(item, clean);
                }
            }
            Value::Object(map) => {
                if map.keys().any(|key| matches!(clean(key), Cow::Owned(_))) {
                    let entries = std::mem::take(map).into_iter();
                    *map = entries
                        .map(|(key, value)| (clean(&key).into_owned(), value))
                        .collect();
                }
                for item in map.values_mut() {
                    self.map_strings(item, clean);
                }
            }
            // A number is removed as text is, where it is a secret by itself.
            Value::Number(number) => {
                if let Some(new) = changed(clean(&number.to_string())) {
                    *value = Value::String(new);
                }
            }
            _ => {}
        }
    }

    fn replace<'a>(
        &self,
        text: &'a str,
        placeholder: impl Fn(Option<usize>) -> Cow<'static, str>,
    ) -> Cow<'a, str> {
        let found = self.compiled().plain.find(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut clean, mut done) = (String::with_capacity(text.len()), 0);
        for place in found {
            let start = text.floor_char_boundary(place.range.start).max(done);
            let end = text.ceil_char_boundary(place.range.end);
            let number = place
                .number
                .or_else(|| self.secrets.number_of(&text.as_bytes()[start..end]));
            clean.push_str(&text[done..start]);
            clean.push_str(&placeholder(number));
            done = end;
        }
        clean.push_str(&text[done..]);
        Cow::Owned(clean)
    }

    fn compiled(&self) -> Arc<Compiled> {
        let place = self.secrets.compiled();
        let now = place.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(now) = now.filter(|now| now.version == self.secrets.version()) {
            return now;
        }
        let new = Arc::new(Compiled::new(&self.secrets));
        *place.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&new));
        new
    }
}

impl Compiled {
    fn new(secrets: &Secrets) -> Self {
        let version = secrets.version();
        let (mut plain, mut escaped) = (Vec::new(), Vec::new());
        for (number, value) in secrets.values() {
            let Forms { whole, wrapped } = forms(&value);
            let needle = |form: &String, is_wrapped: bool| Needle {
                text: form.clone().into_bytes(),
                number,
                is_wrapped,
            };
            plain.extend(whole.iter().map(|form| needle(form, false)));
            let in_json: BTreeSet<String> = whole.iter().map(|form| in_json(form)).collect();
            escaped.extend(in_json.iter().map(|form| needle(form, false)));
            for needles in [&mut plain, &mut escaped] {
                needles.extend(wrapped.iter().map(|form| needle(form, true)));
            }
        }
        let same = |a: &[Needle], b: &[Needle]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.text == b.text)
        };
        Self {
            version,
            in_json: (!same(&plain, &escaped)).then(|| Matcher::new(escaped)),
            plain: Matcher::new(plain),
        }
    }
}

fn changed(clean: Cow<'_, str>) -> Option<String> {
    match clean {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redactor(values: &[&str]) -> Redactor {
        let secrets = Secrets::default();
        for (number, value) in values.iter().enumerate() {
            secrets.add(format!("TOKEN_{number}_KEY"), *value);
        }
        Redactor::new(&secrets)
    }

    fn check(secret: &str, text: &str, clean: &str) {
        let redactor = redactor(&[secret]);
        assert_eq!(redactor.text(text), clean);
        let json = serde_json::to_vec(&text).unwrap();
        assert_eq!(redactor.concerns(&json), text != clean, "{text}");
    }

    #[test]
    fn values_are_removed_wherever_they_stand() {
        check("hunter22", "it is hunter22!", "it is [redacted-1]!");
        check("hunter22", "hunter22hunter22", "[redacted-1][redacted-1]");
        check("hunter22", "hunter21", "hunter21");
        check(
            "pass",
            "the pass is pass",
            "the [redacted-1] is [redacted-1]",
        );
        check("a\"b\nc\\d-1234", "x a\"b\nc\\d-1234 y", "x [redacted-1] y");
    }

    #[test]
    fn what_is_left_of_a_value_at_a_cut_is_removed() {
        let secret = "correct-horse-battery";
        check(secret, "KEY=correct-horse-ba", "KEY=[redacted-1]");
        check(
            secret,
            "`KEY=correct-hor…` is not",
            "`KEY=[redacted-1]…` is not",
        );
        check(
            secret,
            "KEY=correct-hor... more",
            "KEY=[redacted-1]... more",
        );
        let cut = "KEY=correct-hor\n[9 bytes cut]\nse-battery, charged";
        let clean = "KEY=[redacted-1]\n[9 bytes cut]\n[redacted-1], charged";
        check(secret, cut, clean);
        check(secret, "battery, charged", "[redacted-1], charged");
        check(secret, "…se-battery", "…[redacted-1]");
        check(secret, "a correct-horse ride", "a correct-horse ride");
        check(secret, "batteries", "batteries");
    }

    #[test]
    fn the_same_value_has_the_same_number_in_every_form() {
        let redactor = redactor(&["first-value-1", "p@ss word/2"]);
        for form in ["p@ss word/2", "p%40ss%20word%2F2", "cEBzcyB3b3JkLzI"] {
            assert_eq!(redactor.text(form), "[redacted-2]", "{form}");
        }
        assert_eq!(redactor.text("first-value-1"), "[redacted-1]");
        let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz";
        assert_eq!(redactor.text(key), "[redacted-3]");
        assert_eq!(
            redactor.text(&format!("{key} {key}")),
            "[redacted-3] [redacted-3]"
        );
    }

    #[test]
    fn encodings_are_found_on_several_lines() {
        let value = "correct-horse-battery-staple";
        let redactor = redactor(&[value]);
        let whole = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ";
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        for encoded in [whole, &hex] {
            for at in 0..=encoded.len() {
                for wrap in ["\n", "\r\n", "\n    ", "\\n", "\\\\n", "\\r\\n"] {
                    let (front, rest) = encoded.split_at(at);
                    let text = format!("<{front}{wrap}{rest}>");
                    let clean = redactor.text(&text).into_owned();
                    let left = clean.replace("[redacted-1]", "");
                    assert!(left.len() < 10 + wrap.len(), "{text} {clean}");
                    let json = serde_json::to_vec(&text).unwrap();
                    assert!(redactor.concerns(&json), "{text}");
                }
                // With something before each line, as differences have it, what remains is short.
                let (front, rest) = encoded.split_at(at);
                let clean = redactor.text(&format!("+{front}\n+{rest}\n")).into_owned();
                assert!(!clean.contains(&encoded[..9]), "{clean}");
                assert!(!clean.contains(&encoded[encoded.len() - 9..]), "{clean}");
            }
        }
        check(value, "Y29ycmVjdC1\n- other", "[redacted-1]\n- other");
        for text in ["Y29ycmVj and so on", "Y29ycmVjdC1ob3Nl"] {
            check(value, text, text);
        }
    }

    #[test]
    fn lines_of_a_value_and_a_value_without_its_end_are_removed() {
        let lines = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END KEY-----\n";
        check(
            lines,
            "1: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
            "1: [redacted-1]",
        );
        check(lines, "the KEY----- of", "the KEY----- of");
        check("hunter22\n", "it is hunter22!", "it is [redacted-1]!");
    }

    #[test]
    fn keys_are_known_by_their_looks() {
        for key in [
            "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        ] {
            check("unrelated", &format!("<{key}>"), "<[redacted-2]>");
        }
        for text in [
            "task-list risk-free sk-short ghp_no",
            "the task-of-finding-things-that-matter",
        ] {
            check("unrelated", text, text);
        }
    }

    #[test]
    fn keys_and_strings_of_a_value_are_cleaned() {
        let mut value = json!({"text": "it is hunter22!", "deep": [{"hunter22": 1}], "n": 5});
        redactor(&["hunter22"]).clean_value(&mut value);
        let clean = json!({"text": "it is [redacted-1]!", "deep": [{"[redacted-1]": 1}], "n": 5});
        assert_eq!(value, clean);
    }

    #[test]
    fn files_are_cleaned_whatever_they_hold() {
        let redactor = redactor(&["hunter22"]);
        assert_eq!(redactor.bytes(b"a hunter22".to_vec()), b"a [redacted-1]");
        assert_eq!(
            redactor.bytes(b"\xff hunter22 \0".to_vec()),
            b"\xff ******** \0"
        );
    }

    #[test]
    fn what_is_learnt_later_is_removed_too() {
        let secrets = Secrets::default();
        let redactor = Redactor::new(&secrets);
        assert_eq!(redactor.text("a correct horse"), "a correct horse");
        secrets.learn_authorization("Basic bWU6Y29ycmVjdCBob3JzZQ==");
        assert!(!redactor.text("a correct horse").contains("horse"));
        assert!(
            !redactor
                .text("bWU6Y29ycmVjdCBob3JzZQ")
                .contains("Y29ycmVjdCBob3Jz")
        );
    }

    #[test]
    fn ordinary_settings_stay_unless_declared() {
        let secrets = Secrets::default();
        for (name, value) in [
            ("NODE_ENV", "test"),
            ("REGION", "production-eu"),
            ("USE_AUTH", "true"),
        ] {
            secrets.add(name, value);
        }
        let redactor = Redactor::new(&secrets);
        let text = "test production-eu true";
        assert_eq!(redactor.text(text), text);
        secrets.declare("NODE_ENV", "test", true);
        assert_eq!(redactor.text(text), "[redacted-1] production-eu true");
        secrets.declare("NODE_ENV", "test", false);
        assert_eq!(redactor.text(text), text);
    }

    #[test]
    fn secrets_never_show_their_values() {
        let secrets = Secrets::default();
        secrets.add("TOKEN", "hunter22");
        assert_eq!(format!("{secrets:?}"), r#"{"TOKEN"}"#);
        assert!(!format!("{:?}{:?}", secrets.hashes(), secrets.removed()).contains("hunter22"));
    }

    /// Text that is made to be compared with everything, and values that are made for such text.
    #[test]
    fn hostile_text_takes_no_longer_than_any_other() {
        let secrets = Secrets::default();
        for number in 0..1_000 {
            let key = format!("{}{number}", "a".repeat(7_990));
            secrets.learn("x-api-key", &key);
        }
        assert!(secrets.removed().len() < 20);
        let redactor = Redactor::new(&secrets);
        let began = std::time::Instant::now();
        for piece in [
            "a",
            "sk-",
            "-eyJ",
            "eyJ",
            "-eyJaaaaaaaaaaa.",
            "-----BEGIN ",
            "-----BEGIN PRIVATE KEY-----",
            "ghp_",
            "xox",
            "aaaa\"",
        ] {
            let text = piece.repeat(60_000 / piece.len());
            let clean = redactor.text(&text);
            redactor.concerns(text.as_bytes());
            assert!(clean.len() <= text.len() * 4, "{piece}");
        }
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    }

    #[test]
    fn many_keys_in_a_text_are_all_removed() {
        let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz";
        let text = format!("{key}\n").repeat(5_000) + "the rest";
        let clean = redactor(&["hunter22"]).text(&text).into_owned();
        assert!(!clean.contains("sk-") && clean.ends_with("the rest"));
        let text = "hunter22 ".repeat(50_000);
        let clean = redactor(&["hunter22"]).text(&text).into_owned();
        assert_eq!(clean, "[redacted-1] ".repeat(50_000));
    }

    proptest::proptest! {
        #[test]
        fn no_value_survives_in_any_text(
            value in "\\PC{7,40}",
            before in "\\PC{0,30}",
            after in "\\PC{0,30}",
            cut in 0_usize..200,
        ) {
            let secrets = Secrets::default();
            secrets.declare("X", &value, true);
            let redactor = Redactor::new(&secrets);
            let text = format!("{before}{value}{after}");
            let clean = redactor.text(&text);
            proptest::prop_assert!(!clean.contains(&value) || "[redacted-1]".contains(&value));
            let json = serde_json::to_vec(&text).unwrap();
            proptest::prop_assert!(redactor.concerns(&json));
            let cut = text.floor_char_boundary(cut);
            let excerpt = format!("{}…", &text[..cut]);
            let survives = (8..=value.len())
                .filter(|end| value.is_char_boundary(*end))
                .any(|end| redactor.text(&excerpt).ends_with(&format!("{}…", &value[..end])));
            proptest::prop_assert!(!survives);
        }
    }
}
