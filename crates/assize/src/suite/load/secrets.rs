//! The secrets of a suite: what is one, which ids are none, and what `check` says about them.

use super::Loader;
use crate::suite::file::{Modes, SuiteFile};
use crate::suite::scenario::LoadedScenario;
use assize_engine::ProfileSuite;
use assize_secrets::{Removed, Secrets, in_url, is_secret_name};
use serde_json::Value;

/// Maps whose entries are variables or headers, and may be secret by their names.
const NAMED: [&str; 3] = ["environment", "env", "headers"];

impl Loader<'_> {
    /// A secret that is also an id would be in every record, or the records would be unreadable.
    pub(super) fn refuse_secret_ids(&mut self, profile: &ProfileSuite) {
        let scenarios = profile.scenarios.iter();
        let checks = scenarios.clone().flat_map(|scenario| {
            let id = |check: &Value| Some(check.get("id")?.as_str()?.to_owned());
            scenario.checks.iter().filter_map(id).collect::<Vec<_>>()
        });
        let modes = profile.modes.iter();
        let ids = scenarios
            .map(|scenario| ("scenario", scenario.id.clone()))
            .chain(checks.map(|id| ("check", id)))
            .chain(modes.clone().map(|mode| ("mode", mode.name.clone())))
            .chain(modes.map(|mode| ("provider", mode.provider.clone())))
            .chain(profile.models.iter().map(|model| ("model", model.clone())))
            .chain([("suite", profile.name.clone())]);
        for (what, id) in ids {
            for (name, _) in profile.secrets.named_by([id.as_str()].into_iter()) {
                let message = format!(
                    "the value of `{name}` is a secret and part of the id of a {what}, which is in every record"
                );
                let error = self.document.error(&[], message);
                let hint = format!(
                    "use another id, or say that it is no secret: `environment: {{ {name}: {{ value: …, secret: false }} }}`"
                );
                self.errors.push(error.hint(hint));
            }
        }
    }
}

/// Takes note of secrets that a suite holds itself: declared ones, credentials in URLs, variables and headers with telling names.
pub(super) fn note_written(document: &Value, file: &SuiteFile, secrets: &Secrets) {
    note_strings(document, secrets);
    let Modes::Definitions(modes) = &file.modes else {
        return;
    };
    for (name, value) in modes.iter().flat_map(|(_, mode)| &mode.environment) {
        if let Some(is_secret) = value.is_declared_secret() {
            secrets.declare(name, value.text(), is_secret);
        }
    }
}

/// Takes note of variables with telling names that scenarios give to the set-up of their workspaces.
pub(super) fn note_of_workspaces(scenarios: &[LoadedScenario], secrets: &Secrets) {
    let workspaces = scenarios
        .iter()
        .filter_map(|loaded| loaded.scenario.workspace.as_ref());
    for (name, value) in workspaces.flat_map(|workspace| &workspace.environment) {
        secrets.note(name, value);
    }
}

fn note_strings(value: &Value, secrets: &Secrets) {
    match value {
        Value::String(text) => secrets.add_url("a URL of the suite", text),
        Value::Array(items) => items.iter().for_each(|item| note_strings(item, secrets)),
        Value::Object(map) => {
            for (key, item) in map {
                let named = item.as_object().filter(|_| NAMED.contains(&key.as_str()));
                for (name, value) in named.into_iter().flatten() {
                    if let Some(value) = value.as_str() {
                        secrets.note(name, value);
                    }
                }
                note_strings(item, secrets);
            }
        }
        _ => {}
    }
}

/// A part of a suite as the manifest keeps it: without credentials in URLs, and without literal values of secret variables.
/// Those leave a hash, so that another value is noticed.
pub(super) fn without_secrets(value: &mut Value) {
    match value {
        Value::String(text) => {
            for found in in_url(text) {
                *text = text.replace(&found.written, "[redacted]");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_secrets),
        Value::Object(map) => {
            for (key, item) in map.iter_mut() {
                if NAMED.contains(&key.as_str())
                    && let Some(named) = item.as_object_mut()
                {
                    named.iter_mut().for_each(|(name, value)| hide(name, value));
                }
                without_secrets(item);
            }
        }
        _ => {}
    }
}

fn hide(name: &str, value: &mut Value) {
    let declared = value.get("secret").and_then(Value::as_bool);
    let text = match value {
        Value::Object(map) => map.get_mut("value"),
        value => Some(value),
    };
    if let Some(Value::String(text)) = text
        && declared.unwrap_or_else(|| is_secret_name(name))
        && !text.contains("${env:")
        && !text.is_empty()
    {
        let key = blake3::derive_key("assize environment value", text.as_bytes());
        *text = format!("[redacted:{}]", &blake3::hash(&key).to_hex()[..16]);
    }
}

/// Remarks about values that will be removed.
pub(super) fn remarks(secrets: &Secrets) -> Vec<String> {
    let short = secrets.removed();
    let short = short.iter().filter(|removed| removed.is_short);
    let in_words = |removed: &Removed| {
        format!(
            "the value of `{}` has less than {} characters; it is removed from what agents write, because {}, also where \
             it is there by chance",
            removed.name,
            assize_secrets::SHORT,
            removed.reason.in_words()
        )
    };
    let mut remarks: Vec<String> = short.map(in_words).collect();
    remarks.extend(secrets.too_short().iter().map(|name| {
        format!(
            "the value of `{name}` is too short to be recognized in records and kept out of them"
        )
    }));
    remarks
}
