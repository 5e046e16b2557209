//! The environment of this process. With `assize` itself, this is the only place that reads it: programs are given parts of it,
//! and providers look for keys.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A variable of this process. An empty one counts as unset.
pub fn host_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The same for values that need not be text.
pub(crate) fn host_value(name: impl AsRef<OsStr>) -> Option<OsString> {
    std::env::var_os(name)
}

/// The paths that a program of this name may have, in the order of PATH.
pub fn places_in_path(program: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .collect()
}
