//! The search for a program: made by the keeper, and used to explain why a program was not found.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Searched where the environment has no PATH, as the C library does.
pub(crate) const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The paths to try in turn, possibly relative to the program's directory.
pub(crate) fn candidates(program: &OsStr, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    if has_slash(program) {
        return vec![program.into()];
    }
    let path = search_path(env).unwrap_or(OsStr::new(DEFAULT_PATH));
    std::env::split_paths(path)
        .map(|directory| in_directory(&directory, program))
        .collect()
}

pub(crate) fn search_path(env: &[(OsString, OsString)]) -> Option<&OsStr> {
    env.iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, path)| path.as_os_str())
}

pub(crate) fn has_slash(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

/// An empty entry of PATH means the current directory.
fn in_directory(directory: &Path, program: &OsStr) -> PathBuf {
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    directory.join(program)
}
