//! Finds logs: below the places that agents use on this machine, or below a directory that was named.

use crate::formats::{FORMATS, Machine};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Deeper directories are not looked into.
const DEEPEST: usize = 32;

/// Logs of the agents of this machine. Without names, of all agents.
pub fn find_on_machine(machine: &Machine, agents: &[String]) -> Vec<PathBuf> {
    let mut walk = Walk::default();
    for format in FORMATS {
        if !agents.is_empty() && !agents.iter().any(|agent| agent == format.agent()) {
            continue;
        }
        for place in format.places(machine) {
            walk.below(&place, DEEPEST, &|path| format.is_log_name(path));
        }
    }
    walk.finish()
}

/// The file itself with what belongs to it, or the files below a directory that may be logs by their name.
pub fn find_below(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let mut walk = Walk::default();
        walk.below(path, DEEPEST, &|path| {
            FORMATS.iter().any(|format| format.is_log_name(path))
        });
        return walk.finish();
    }
    let mut found = BTreeSet::from([path.to_owned()]);
    for format in FORMATS {
        found.extend(format.companions(path));
    }
    found.into_iter().collect()
}

/// The name that a compressed log had before: people pack old logs of any agent.
fn unpacked_name(path: &Path) -> Cow<'_, Path> {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(name) if name.ends_with(".jsonl.zst") => Cow::Owned(path.with_extension("")),
        _ => Cow::Borrowed(path),
    }
}

/// The agents whose logs can be read.
pub fn known_agents() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.agent()).collect()
}

/// A search below directories. Links are followed, and a file or directory that they lead to again is passed over.
#[derive(Default)]
struct Walk {
    /// Where links lead to.
    linked: BTreeSet<PathBuf>,
    found: Vec<PathBuf>,
}

impl Walk {
    fn below(&mut self, directory: &Path, depth: usize, is_log: &impl Fn(&Path) -> bool) {
        let Ok(entries) = std::fs::read_dir(directory) else {
            return;
        };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let path = entry.path();
            let is_new = !kind.is_symlink() || self.is_new(&path);
            if !is_new || depth == 0 {
                continue;
            }
            if kind.is_dir() || (kind.is_symlink() && path.is_dir()) {
                self.below(&path, depth - 1, is_log);
            } else if is_log(&unpacked_name(&path)) && (kind.is_file() || path.is_file()) {
                self.found.push(path);
            }
        }
    }

    fn is_new(&mut self, link: &Path) -> bool {
        std::fs::canonicalize(link).is_ok_and(|target| self.linked.insert(target))
    }

    /// The target of a link is often found without it, too: then it counts under its own name.
    fn finish(mut self) -> Vec<PathBuf> {
        // As texts: paths compare part by part, which is slow for thousands of them.
        self.found
            .sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        self.found.dedup();
        if self.linked.is_empty() {
            return self.found;
        }
        let mut real: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for path in self.found {
            let target = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            let known = real.entry(target.clone()).or_insert_with(|| path.clone());
            if path == target {
                *known = path;
            }
        }
        let mut found: Vec<PathBuf> = real.into_values().collect();
        found.sort();
        found
    }
}
