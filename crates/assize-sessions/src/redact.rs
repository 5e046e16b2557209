//! Secrets in transcripts: keys that tools printed, headers, passwords in addresses. Found by their shape and by the name they are given,
//! because nothing marks the secrets among a stranger's texts. Better one word too many than a key.

use crate::session::Session;
use assize_contracts::{SessionTrace, TraceEvent};
use assize_secrets::is_secret_name;
use regex::{Captures, Regex};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

const REPLACEMENT: &str = "[redacted]";

/// Keys with a shape of their own: of model providers, clouds, forges, chats; tokens in three parts; private keys.
static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
        r"|\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}",
        r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}",
        r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}",
        r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bnpm_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}",
        r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
    ))
    .ok()
});

/// `NAME=value`, `"name": "value"`, `Authorization: Bearer value`, `//user:password@host`.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?P<name>[A-Za-z_][A-Za-z0-9_.-]{1,60})(?P<between>["']?\s*[=:]\s*["']?(?:Bearer\s+|Basic\s+)?)(?P<value>[^\s"',;&<>/][^\s"',;&<>]{5,})"#,
        r"|(?P<user>//[^/\s:@]{1,80}:)(?P<password>[^/\s@]{3,})@",
    ))
    .ok()
});

/// Removes what looks like a secret from all texts of a session.
pub fn redact(session: &mut Session) {
    redact_trace(&mut session.trace);
    for prompt in &mut session.prompts {
        redact_string(&mut prompt.text);
    }
}

/// Removes what looks like a secret from all texts of a trace.
pub fn redact_trace(trace: &mut SessionTrace) {
    for event in &mut trace.events {
        redact_event(Arc::make_mut(event));
    }
    for turn in &mut trace.turns {
        for event in &mut turn.events {
            redact_event(Arc::make_mut(event));
        }
    }
    if let Some(answer) = &mut trace.answer {
        redact_string(answer);
    }
}

/// The text without what looks like a secret.
pub fn redact_text(text: &str) -> Cow<'_, str> {
    let Some((shapes, named)) = SHAPES.as_ref().zip(NAMED.as_ref()) else {
        return Cow::Borrowed(REPLACEMENT);
    };
    let shaped = shapes.replace_all(text, REPLACEMENT);
    let named = named.replace_all(&shaped, |found: &Captures<'_>| {
        let part = |name: &str| found.name(name).map_or("", |part| part.as_str());
        if found.name("password").is_some() {
            return format!("{}{REPLACEMENT}@", part("user"));
        }
        let is_number = part("value").bytes().all(|byte| byte.is_ascii_digit());
        match is_secret_name(part("name")) && !is_number {
            true => format!("{}{}{REPLACEMENT}", part("name"), part("between")),
            false => part_of_all(found),
        }
    });
    match named == text {
        true => Cow::Borrowed(text),
        false => Cow::Owned(named.into_owned()),
    }
}

fn part_of_all(found: &Captures<'_>) -> String {
    found.get(0).map_or("", |all| all.as_str()).to_owned()
}

fn redact_string(text: &mut String) {
    if let Cow::Owned(clean) = redact_text(text)
        && clean != *text
    {
        *text = clean;
    }
}

fn redact_event(event: &mut TraceEvent) {
    match event {
        TraceEvent::Reasoning { content, .. } | TraceEvent::TextOutput { content, .. } => {
            redact_string(content);
        }
        TraceEvent::Error { message, .. } => redact_string(message),
        TraceEvent::ToolCall {
            input,
            output,
            error,
            ..
        } => {
            redact_value(input, None);
            redact_value(output, None);
            if let Some(error) = error {
                redact_string(error);
            }
        }
        TraceEvent::TurnBoundary { .. } => {}
    }
}

/// Texts below a secret name are secrets whatever they look like.
fn redact_value(value: &mut Value, name: Option<&str>) {
    match value {
        Value::String(text) if name.is_some_and(is_secret_name) => REPLACEMENT.clone_into(text),
        Value::String(text) => redact_string(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| redact_value(value, name)),
        Value::Object(fields) => {
            for (name, value) in fields {
                redact_value(value, Some(name));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(redact_text(text), expected);
    }

    #[test]
    fn keys_are_removed_by_their_shape_and_by_their_name() {
        check(
            "export OPENAI_API_KEY=abcdef123456 && make",
            "export OPENAI_API_KEY=[redacted] && make",
        );
        check(
            "use sk-ant-api03-AbCdEf0123456789abcdef now",
            "use [redacted] now",
        );
        check(
            "Authorization: Bearer abcdefghijkl",
            "Authorization: Bearer [redacted]",
        );
        check(
            "git clone https://me:hunter2hunter2@host/x.git",
            "git clone https://me:[redacted]@host/x.git",
        );
        check("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted]");
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest",
            "[redacted]\nrest",
        );
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "cargo test --workspace",
            "path=/home/me/project",
            "let token_count = 12345678;",
            "sk-8 is a road",
        ] {
            check(text, text);
        }
    }
}
