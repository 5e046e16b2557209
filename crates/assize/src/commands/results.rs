//! `--results URL`: shards without a shared disk keep their results in an object store.
//!
//! A shard uploads parts. A part is one object: a small run of its own with the trials that were finished since the last one, so that
//! putting parts together is merging, and a shard that is restarted elsewhere begins with a merge of its parts.

#[cfg(feature = "object-store")]
mod part;
#[cfg(feature = "object-store")]
mod remote;
#[cfg(not(feature = "object-store"))]
#[path = "results/absent.rs"]
mod remote;

pub(super) use remote::{Uploads, download, progress, publish_round, round};

use crate::commands::UsageError;
use anyhow::Result;

/// The progress of a shard in a round, from the names of its parts.
pub(super) struct Parts {
    /// From 1.
    pub(super) shard: u32,
    /// Absent where the run is not looked at between rounds.
    pub(super) round: Option<u32>,
    pub(super) done: u64,
    pub(super) planned: u64,
}

const SCHEMES: [&str; 4] = ["s3", "gs", "az", "file"];

/// True for a text that is meant as a URL.
pub(super) fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// Refuses URLs of unknown stores, and those with credentials, which would be in scripts, logs and lists of processes.
pub(super) fn check_url(url: &str) -> Result<()> {
    let refused = |message: String, hint: &str| UsageError {
        message,
        hint: Some(hint.to_owned()),
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        // Not repeated where it may hold a password.
        let message = match url.contains('@') {
            true => "the place of results is not a URL".to_owned(),
            false => format!("`{url}` is not a URL"),
        };
        return Err(refused(
            message,
            "write s3://bucket/prefix, gs://, az:// or file:///directory",
        )
        .into());
    };
    if !SCHEMES.contains(&scheme) {
        let message = format!("unknown scheme `{scheme}://` (known: s3, gs, az, file)");
        return Err(refused(
            message,
            "write s3://bucket/prefix, gs://, az:// or file:///directory",
        )
        .into());
    }
    let host = rest.split('/').find(|part| !part.is_empty());
    let host = host.unwrap_or_default();
    if scheme != "file" && (host.contains('@') || rest.contains(['?', '#'])) {
        // Not repeated: it may hold a password.
        let message = format!("the {scheme}:// URL holds a user, a password or parameters");
        return Err(refused(
            message,
            "credentials come from the environment only, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
        .into());
    }
    if scheme != "file" && (host.is_empty() || rest.starts_with('/')) {
        let message = format!("`{url}` names no bucket");
        return Err(refused(message, "write s3://bucket/prefix").into());
    }
    if scheme == "file" && !rest.starts_with('/') {
        let message = format!("`{url}` names no absolute directory");
        return Err(refused(message, "write file:///directory").into());
    }
    remote::check()
}

#[cfg(all(test, feature = "object-store"))]
mod tests {
    use super::check_url;

    #[test]
    fn urls_with_credentials_are_refused_and_not_repeated() {
        for url in [
            "s3://user:hunter2@bucket/prefix",
            "s3://user@bucket",
            "s3://bucket/x?token=hunter2",
            "ftp://bucket/x",
            "s3:///x",
            "file://relative",
            "bucket",
            "user:hunter2@bucket",
            "https://user:hunter2@bucket/x",
            "s3:///user:hunter2@bucket",
        ] {
            let error = check_url(url).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        for url in [
            "s3://bucket",
            "s3://bucket/a/b",
            "gs://b/c",
            "az://c/d",
            "file:///tmp/x",
        ] {
            check_url(url).unwrap();
        }
    }
}
