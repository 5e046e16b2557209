//! The directory that an agent may work in: every path it names is resolved and must lie inside.

use crate::suite;
use std::path::{Path, PathBuf};

/// Directories that hold no suites of people.
const PASSED_OVER: [&str; 5] = [".git", ".assize", "node_modules", "target", ".venv"];

const DEEPEST: usize = 6;
const MOST_SUITES: usize = 200;

/// A directory with its links resolved.
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn new(path: &Path) -> std::io::Result<Self> {
        path.canonicalize().map(Self)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The suite file behind a path relative to the root.
    pub(super) fn suite(&self, given: &str) -> Result<PathBuf, String> {
        let path = self.inside(Path::new(given))?;
        let file = suite::find(&path).map_err(|error| error.to_string())?;
        self.inside(&file)
    }

    /// The directory that holds the runs of a suite. A suite may name any, so it is looked at, too.
    pub(super) fn runs_of(&self, suite: &Path) -> Result<PathBuf, String> {
        let directory = suite::configured_results_dir(suite).map_err(|error| error.to_string())?;
        let existing = directory.ancestors().find(|path| path.exists());
        self.inside(existing.unwrap_or(&directory))?;
        Ok(directory)
    }

    /// The path with its links resolved; an error if it is not there or leads out of the root.
    fn inside(&self, path: &Path) -> Result<PathBuf, String> {
        let path = self.0.join(path);
        let resolved = path
            .canonicalize()
            .map_err(|error| format!("{}: {error}", path.display()))?;
        match resolved.starts_with(&self.0) {
            true => Ok(resolved),
            false => Err(format!(
                "{} lies outside {}, the directory this server may use",
                path.display(),
                self.0.display()
            )),
        }
    }

    /// The suites below the root, as paths relative to it, in order. Links are not followed.
    pub(super) fn suites(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.look_in(&self.0, 0, &mut found);
        found.sort();
        found
    }

    fn look_in(&self, directory: &Path, depth: usize, found: &mut Vec<String>) {
        if suite::find(directory).is_ok() {
            let relative = directory.strip_prefix(&self.0).unwrap_or(directory);
            let shown = relative.display().to_string();
            found.push(if shown.is_empty() {
                ".".to_owned()
            } else {
                shown
            });
        }
        let Ok(entries) = std::fs::read_dir(directory) else {
            return;
        };
        for entry in entries.flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_passed_over = entry
                .file_name()
                .to_str()
                .is_some_and(|name| PASSED_OVER.contains(&name));
            if is_directory && !is_passed_over && depth < DEEPEST && found.len() < MOST_SUITES {
                self.look_in(&entry.path(), depth + 1, found);
            }
        }
    }
}
