//! Errors of run directories.

use std::path::{Path, PathBuf};

/// An error of reading or writing a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An error of the file system.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The action: `read`, `write`, `create`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// There is no such run.
    #[error("no run `{id}` in `{}`", directory.display())]
    NotFound {
        /// The id asked for.
        id: String,
        /// The directory searched.
        directory: PathBuf,
    },
    /// A shortened id fits several runs.
    #[error("`{id}` fits {} runs: {}", matches.len(), matches.join(", "))]
    Ambiguous {
        /// The id asked for.
        id: String,
        /// The ids it fits.
        matches: Vec<String>,
    },
    /// The directory holds something else.
    #[error("`{}` is not a run of Assize: {reason}", path.display())]
    Foreign {
        /// The directory or file.
        path: PathBuf,
        /// The evidence for it.
        reason: String,
    },
    /// A newer Assize wrote it.
    #[error("`{}` has format version {found}; this Assize reads up to {supported}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest version understood.
        supported: u32,
    },
    /// Another process is writing.
    #[error("{process} is writing to run `{id}`")]
    Locked {
        /// The run.
        id: String,
        /// The process that holds the lock.
        process: String,
    },
    /// A line is not what it should be.
    #[error("{}:{line}: not a {expected}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The kind of record expected.
        expected: &'static str,
        reason: String,
    },
    /// A part of how the run is to be read is not understood.
    #[error("cannot read `{place}` in `manifest.json` of run `{id}`: {reason}")]
    Reading {
        /// The run.
        id: String,
        /// The path of the key in the manifest.
        place: String,
        /// The value found and the value expected.
        reason: String,
    },
    /// The suite is no longer the one that the run was started with.
    #[error("run `{id}` cannot be resumed, because old and new trials would not be comparable: {}", changes.join("; "))]
    Changed {
        /// The run.
        id: String,
        /// The changes, in words.
        changes: Vec<String>,
    },
    /// Runs that are to be merged are not parts of one plan.
    #[error("`{}` does not belong to `{}`: {}", other.display(), first.display(), differences.join("; "))]
    Unrelated {
        /// The run that others are held against.
        first: PathBuf,
        /// The one that does not fit.
        other: PathBuf,
        /// The differences, in words.
        differences: Vec<String>,
    },
    /// No run was given to be merged.
    #[error("there is nothing to merge")]
    NothingToMerge,
}

impl StoreError {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    Some("free some space, then `--resume` the run: finished trials are kept")
                }
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a directory you can write to with `--output DIR`")
                }
                _ => None,
            },
            Self::NotFound { .. } => Some("`assize runs` lists the runs there are"),
            Self::Ambiguous { .. } => Some("give more of the id"),
            Self::Newer { .. } => Some("update Assize to read it"),
            Self::Locked { .. } => Some("wait for it to end, or start a new run"),
            Self::Corrupt { .. } => Some("remove the line to continue without that trial"),
            Self::Changed { .. } => Some("undo the change, or start a new run"),
            Self::Reading { .. } => Some(
                "correct or remove that key (a newer Assize may have written it); trials are not affected",
            ),
            Self::Unrelated { .. } => Some(
                "shards that are merged need the same suite, flags, seed and environment; `assize compare` compares different runs",
            ),
            Self::Foreign { .. } | Self::NothingToMerge => None,
        }
    }
}

/// Names what was tried, for `map_err`.
pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io {
        action,
        path,
        source,
    }
}
