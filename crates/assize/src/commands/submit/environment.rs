//! The environment of shards: the variables that a suite needs, in a file that only the user can read. They are in no script, and the
//! scheduler sees none of them.

use crate::commands::UsageError;
use anyhow::Result;
use assize_engine::ProfileSuite;
use std::collections::BTreeSet;

/// Variables that programs need wherever they run; passed on where they are set.
const USUAL: [&str; 13] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "ANTHROPIC_BASE_URL",
    "OPENAI_BASE_URL",
    "GOOGLE_GEMINI_BASE_URL",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Credentials of object stores, which come from the environment only.
const STORES: [&str; 6] = [
    "AWS_",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "AZURE_",
    "AWS_ENDPOINT_URL",
    "SSL_CERT_FILE",
];

/// The names of the variables that the shards of a suite need and that are set here.
pub(super) fn needed(
    profile: &ProfileSuite,
    asked: &[String],
    has_store: bool,
) -> Result<Vec<String>> {
    let mut names = secret_names(profile);
    for name in asked {
        if std::env::var(name).is_err() {
            return Err(
                UsageError::new(format!("the environment variable `{name}` is not set")).into(),
            );
        }
        names.insert(name.clone());
    }
    names.extend(USUAL.iter().map(|name| (*name).to_owned()));
    if has_store {
        let all = std::env::vars().map(|(name, _)| name);
        names.extend(all.filter(|name| STORES.iter().any(|start| name.starts_with(start))));
    }
    names.retain(|name| std::env::var(name).is_ok() && is_name(name));
    Ok(names.into_iter().collect())
}

/// The variables with keys, and those that the suite names.
pub(super) fn secret_names(profile: &ProfileSuite) -> BTreeSet<String> {
    let known = profile.secrets.hashes().into_keys();
    known
        .filter(|name| std::env::var(name).is_ok() && is_name(name))
        .collect()
}

/// Shell assignments, one per line.
pub(super) fn assignments(names: &[String]) -> Result<String> {
    let mut text = String::new();
    for name in names {
        let Ok(value) = std::env::var(name) else {
            continue;
        };
        let Ok(quoted) = shlex::try_quote(&value) else {
            return Err(UsageError::new(format!(
                "the value of `{name}` cannot be passed on: it holds a NUL"
            ))
            .into());
        };
        text.push_str(&format!("{name}={quoted}\n"));
    }
    Ok(text)
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_part)
}
