//! The git repository that a suite is made for.

use crate::commands::UsageError;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository that trials begin with.
pub(super) struct Repository {
    pub(super) top: PathBuf,
    /// The path to it from the suite.
    pub(super) from_suite: String,
    pub(super) name: String,
    pub(super) has_changes: bool,
}

impl Repository {
    /// The repository that `directory` is in. The directory need not exist yet.
    pub(super) fn around(directory: &Path) -> Result<Self, UsageError> {
        let existing = existing(directory);
        let Some(top) = git(&existing, &["rev-parse", "--show-toplevel"]) else {
            return Err(UsageError {
                message: format!("`{}` is in no git repository", existing.display()),
                hint: Some(
                    "an agent works on a fresh checkout of a commit: `git init && git add . && git commit`, or go to a project first"
                        .to_owned(),
                ),
            });
        };
        Self::at(PathBuf::from(top), directory)
    }

    /// The repository around the suite's directory, or else the one around the current directory.
    pub(super) fn around_or_here(directory: &Path) -> Result<Self, UsageError> {
        let error = match Self::around(directory) {
            Ok(repository) => return Ok(repository),
            Err(error) => error,
        };
        match git(Path::new("."), &["rev-parse", "--show-toplevel"]) {
            Some(top) => Self::at(PathBuf::from(top), directory),
            None => Err(error),
        }
    }

    /// The repository that another directory is in, for a suite elsewhere.
    pub(super) fn of(directory: &Path, suite: &Path) -> Result<Self, UsageError> {
        let top = git(directory, &["rev-parse", "--show-toplevel"]).ok_or_else(|| UsageError {
            message: format!("`{}` is in no git repository", directory.display()),
            hint: None,
        })?;
        Self::at(PathBuf::from(top), suite)
    }

    fn at(top: PathBuf, suite: &Path) -> Result<Self, UsageError> {
        if git(&top, &["rev-parse", "--verify", "HEAD"]).is_none() {
            return Err(UsageError {
                message: format!("the repository `{}` has no commit yet", top.display()),
                hint: Some(
                    "an agent works on a fresh checkout of one: `git add . && git commit`"
                        .to_owned(),
                ),
            });
        }
        let changed = git(&top, &["status", "--porcelain", "--untracked-files=no"]);
        Ok(Self {
            from_suite: path_between(&resolved(suite), &top),
            name: top
                .file_name()
                .map_or("suite".into(), |name| name.to_string_lossy().into_owned()),
            has_changes: changed.is_some_and(|changed| !changed.is_empty()),
            top,
        })
    }

    /// The text that git prints. None where it fails.
    pub(super) fn git(&self, arguments: &[&str]) -> Option<String> {
        git(&self.top, arguments)
    }

    /// The bytes that git prints. None where it fails.
    pub(super) fn git_bytes(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        git_bytes(&self.top, arguments)
    }
}

/// The nearest directory that is there.
fn existing(directory: &Path) -> PathBuf {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let mut places = directory.ancestors().map(Path::to_owned);
    places.find(|place| place.is_dir()).unwrap_or("/".into())
}

/// An absolute path without links, as far as it exists.
fn resolved(directory: &Path) -> PathBuf {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let existing = existing(directory);
    let missing = absolute.strip_prefix(&existing).unwrap_or(Path::new(""));
    let existing = existing.canonicalize().unwrap_or(existing);
    existing.components().chain(missing.components()).collect()
}

/// The relative path from one directory to another; both are absolute.
fn path_between(from: &Path, to: &Path) -> String {
    let from: Vec<Component<'_>> = from.components().collect();
    let to: Vec<Component<'_>> = to.components().collect();
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".into(), from.len() - shared);
    let down = to[shared..]
        .iter()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    let parts: Vec<String> = up.chain(down).collect();
    match parts.is_empty() {
        true => ".".to_owned(),
        false => parts.join("/"),
    }
}

fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let text = String::from_utf8(git_bytes(directory, arguments)?).ok()?;
    Some(text.trim().to_owned())
}

fn git_bytes(directory: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_to_the_repository_is_relative_to_the_suite() {
        let check = |from: &str, to: &str, expected: &str| {
            assert_eq!(path_between(Path::new(from), Path::new(to)), expected);
        };
        check("/a/b", "/a/b", ".");
        check("/a/b/c/d", "/a/b", "../..");
        check("/a/suite", "/a/project", "../project");
    }
}
