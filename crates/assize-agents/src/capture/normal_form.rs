//! The part of a request that stays the same when an agent asks the same thing again: without what changes from run to run.

use assize_secrets::Redactor;
use regex::Regex;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Stands for every secret on a cassette, so that recordings with another key are alike.
pub(super) const KEY: &str = "{key}";

/// Keys whose values say who asks and how, not what is asked.
const VOLATILE: [&str; 10] = [
    "metadata",
    "client_metadata",
    "user",
    "session_id",
    "prompt_cache_key",
    "safety_identifier",
    "previous_response_id",
    "store",
    "stream",
    "stream_options",
];

static NAMES: LazyLock<Regex> = LazyLock::new(|| {
    let uuid = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
    let temporary = r"\.?tmp[-_.]?[0-9A-Za-z_]{6,}";
    let day = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";
    let month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";
    let date = format!(r"(?:{day},?\s+)?{month}\s+\d{{1,2}},?\s+\d{{4}}");
    Regex::new(&format!("{uuid}|{temporary}|{date}")).expect("a pattern that does not change")
});

/// Values that are known to differ every time, or must not be seen.
#[derive(Default)]
pub(super) struct Known<'a> {
    /// The agent's working directory.
    pub(super) workspace: Option<&'a str>,
    pub(super) redactor: Option<&'a Redactor>,
}

/// A request to a model, or whatever else was sent, in its normal form.
pub(super) fn normal_form(body: &[u8], known: &Known<'_>) -> Value {
    match serde_json::from_slice(body) {
        Ok(value) => normalized(value, known),
        Err(_) if body.is_empty() => Value::Null,
        // A body that is no JSON is identified by its bytes.
        Err(_) => Value::String(blake3::hash(body).to_hex().to_string()),
    }
}

/// The hash that identifies equal requests.
pub(super) fn fingerprint(method: &str, path: &str, form: &Value) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in [method, path, &form.to_string()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

fn normalized(value: Value, known: &Known<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(normalized_text(&text, known)),
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| normalized(item, known)).collect()
        }
        Value::Object(map) => {
            let kept = map
                .into_iter()
                .filter(|(key, _)| !VOLATILE.contains(&key.as_str()));
            let sorted: BTreeMap<String, Value> = kept
                .map(|(key, value)| {
                    let value = match key.as_str() {
                        "model" => value,
                        _ => normalized(value, known),
                    };
                    (key, value)
                })
                .collect();
            sorted.into_iter().collect()
        }
        other => other,
    }
}

fn normalized_text(text: &str, known: &Known<'_>) -> String {
    let mut text = match known.redactor {
        Some(redactor) => redactor.text_with(text, KEY),
        None => Cow::Borrowed(text),
    };
    if let Some(workspace) = known.workspace.filter(|path| text.contains(path)) {
        text = Cow::Owned(text.replace(workspace, "{workspace}"));
    }
    without_numbers(&NAMES.replace_all(&text, "#"))
}

/// Numbers, and words that look like numbers in hexadecimal: times, sizes, process ids, hashes.
fn without_numbers(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = |c: char| c.is_ascii_alphanumeric();
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        let is_hex = word.len() >= 4 && word.chars().all(|c| c.is_ascii_hexdigit());
        match (has_digit, is_hex) {
            (false, _) => result.push_str(word),
            (true, true) => result.push('#'),
            (true, false) => push_without_digits(&mut result, word),
        }
        let next = after.find(is_word).unwrap_or(after.len());
        result.push_str(&after[..next]);
        rest = &after[next..];
    }
    result
}

fn push_without_digits(result: &mut String, word: &str) {
    let mut was_digit = false;
    for letter in word.chars() {
        let is_digit = letter.is_ascii_digit();
        match (is_digit, was_digit) {
            (false, _) => result.push(letter),
            (true, false) => result.push('#'),
            (true, true) => {}
        }
        was_digit = is_digit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_secrets::Secrets;
    use serde_json::json;

    fn are_same(a: Value, b: Value) -> bool {
        let secrets = Secrets::default();
        secrets.learn("key", "a-secret-17");
        let redactor = Redactor::new(&secrets);
        let form = |value: Value, workspace| {
            let known = Known {
                workspace: Some(workspace),
                redactor: Some(&redactor),
            };
            let form = normal_form(value.to_string().as_bytes(), &known);
            assert!(!form.to_string().contains("secret"));
            fingerprint("POST", "/x", &form)
        };
        form(a, "/runs/1/ws") == form(b, "/runs/2/ws")
    }

    #[test]
    fn what_changes_from_run_to_run_makes_no_difference() {
        let request = |text: &str, stream: bool| json!({"model": "m-1", "messages": [{"content": text}], "stream": stream});
        for (a, b) in [
            ("cwd /runs/1/ws/a.py", "cwd /runs/2/ws/a.py"),
            (
                "id 2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d",
                "id deadbeef-dead-beef-dead-beefdeadbeef",
            ),
            (
                "Today is Monday, November 16, 2026",
                "Today is Friday, May 1, 2026",
            ),
            ("2026-11-16T00:01:02.345Z", "2026-12-01T10:11:12.000Z"),
            ("Wall time: 0.0512 seconds", "Wall time: 12.5 seconds"),
            ("Chunk ID: 5fe1a2", "Chunk ID: 77ab01"),
            ("/tmp/.tmpAbCdEf/x", "/tmp/.tmpzzzzzz/x"),
            ("KEY=a-secret-17", "KEY={key}"),
        ] {
            assert!(are_same(request(a, true), request(b, false)), "{a} {b}");
        }
        assert!(are_same(
            json!({"a": 1, "b": 2, "metadata": {"user_id": "x"}}),
            json!({"b": 2, "a": 1})
        ));
    }

    #[test]
    fn what_is_asked_makes_a_difference() {
        assert!(!are_same(json!({"model": "m-1"}), json!({"model": "m-2"})));
        assert!(!are_same(
            json!({"a": "list files"}),
            json!({"a": "show files"})
        ));
        assert!(!are_same(json!({"a": ["x"]}), json!({"a": ["x", "x"]})));
    }
}
