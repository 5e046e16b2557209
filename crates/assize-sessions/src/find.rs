//! Finds logs: below the places that agents use on this machine, or below a directory that was named.

use crate::formats::{FORMATS, Machine};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Deeper directories are not looked into.
const DEEPEST: usize = 32;

/// Logs of the agents of this machine. Without names, of all agents.
pub fn find_on_machine(machine: &Machine, agents: &[String]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for format in FORMATS {
        if !agents.is_empty() && !agents.iter().any(|agent| agent == format.agent()) {
            continue;
        }
        for place in format.places(machine) {
            walk(&place, DEEPEST, &mut |path| {
                if format.is_log_name(path) {
                    found.insert(path.to_owned());
                }
            });
        }
    }
    found.into_iter().collect()
}

/// The file itself with what belongs to it, or the files below a directory that may be logs by their name.
pub fn find_below(path: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    if path.is_dir() {
        walk(path, DEEPEST, &mut |path| {
            if FORMATS.iter().any(|format| format.is_log_name(path)) {
                found.insert(path.to_owned());
            }
        });
    } else {
        found.insert(path.to_owned());
        for format in FORMATS {
            found.extend(format.companions(path));
        }
    }
    found.into_iter().collect()
}

/// The agents whose logs can be read.
pub fn known_agents() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.agent()).collect()
}

/// Links to directories are not followed: they may lead in circles.
fn walk(directory: &Path, depth: usize, visit: &mut impl FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        if kind.is_dir() {
            if depth > 0 {
                walk(&path, depth - 1, visit);
            }
        } else if kind.is_file() || path.is_file() {
            visit(&path);
        }
    }
}
