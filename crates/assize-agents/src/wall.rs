//! The wall of a session around its programs: what the suite asks for, with the places of the session put in.

use assize_contracts::{CreateSessionParams, Guard, GuardNetwork, Sandbox, SessionSandbox};
use assize_process::Command;
use assize_process::guard::{self, GuardVersion, Surroundings};
use assize_process::workspace::{self, Scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A wall that is about to be put around programs.
#[derive(Clone, Default)]
pub(crate) struct Wall {
    sandbox: SessionSandbox,
    /// Files that the agent may change besides its workspace.
    pub(crate) own: Vec<PathBuf>,
    /// Files of the suite that the agent needs.
    named: BTreeSet<PathBuf>,
    ports: BTreeSet<u16>,
}

/// Characters that end a path inside a longer text, a line for a shell for example.
const DELIMITERS: [char; 19] = [
    ' ', '\t', '\n', '\'', '"', '`', ';', ',', '|', '&', '<', '>', '(', ')', '$', '=', '*', '?',
    ':',
];

impl Wall {
    pub(crate) fn of(params: &CreateSessionParams) -> Self {
        let mut wall = Self::of_sandbox(&params.sandbox);
        if wall.is_limited_to_ports() {
            let settings = params.provider_overrides.values();
            settings.for_each(|value| note_ports(value, &mut wall.ports));
            let variables = params.environment.values();
            variables.for_each(|value| wall.ports.extend(loopback_ports(value)));
        }
        wall
    }

    pub(crate) fn of_sandbox(sandbox: &SessionSandbox) -> Self {
        Self {
            ports: sandbox.ports.iter().copied().collect(),
            sandbox: sandbox.clone(),
            ..Self::default()
        }
    }

    fn guard(&self) -> Option<&Guard> {
        match &*self.sandbox.sandbox {
            Sandbox::Guard(guard) => Some(guard),
            _ => None,
        }
    }

    /// True if programs get places of their own for temporary files.
    pub(crate) fn is_guard(&self) -> bool {
        self.guard().is_some()
    }

    fn is_limited_to_ports(&self) -> bool {
        let guard = self.guard();
        guard.is_some_and(|guard| guard.network == GuardNetwork::Model)
    }

    /// Shows the files of the suite that these texts of its settings name: words of a command, values of variables. In a
    /// session without a workspace, which starts in the suite's directory, also by paths relative to it.
    pub(crate) fn name_files<'a>(
        &mut self,
        texts: impl IntoIterator<Item = &'a str>,
        workdir: &Path,
    ) {
        if *self.sandbox.sandbox == Sandbox::None {
            return;
        }
        let suite = self.sandbox.places.suite.clone();
        let is_in_suite = workdir == suite;
        for text in texts {
            self.named.extend(paths_below(text, &suite));
            if is_in_suite {
                let words = std::iter::once(text).chain(text.split(DELIMITERS));
                let files = words.map(|word| suite.join(word));
                self.named.extend(files.filter(|path| path.is_file()));
            }
        }
    }

    /// The same program inside the wall.
    pub(crate) fn around(&self, command: Command) -> Command {
        let Some(settings) = self.guard() else {
            return command;
        };
        if GuardVersion::of_this_machine().is_err() {
            return command;
        }
        let places = &self.sandbox.places;
        let absolute = |path: &PathBuf| places.suite.join(path);
        let hidden = places.hidden.iter().cloned();
        let mut hidden: Vec<PathBuf> = hidden.chain(settings.hide.iter().map(absolute)).collect();
        hidden.extend(workspace::default_root());
        let shown = settings.show.iter().map(absolute);
        let shown = shown.chain(places.shown.iter().cloned());
        let shown = shown.chain(self.named.iter().cloned());
        command.guarded(assize_process::Guard {
            surroundings: surroundings(&hidden),
            shown: shown.filter(|path| self.may_be_shown(path)).collect(),
            writable: [self.sandbox.writable.as_slice(), &self.own].concat(),
            ports: (settings.network == GuardNetwork::Model)
                .then(|| self.ports.iter().copied().collect()),
        })
    }

    /// The files of the suite that the agent may read, besides those that the suite shows everybody.
    pub(crate) fn shown_files(&self) -> Vec<PathBuf> {
        let named = self.named.iter();
        let named = named.filter(|path| self.may_be_shown(path));
        named.cloned().collect()
    }

    /// Files by which trials are judged are never shown, whoever names them.
    fn may_be_shown(&self, path: &Path) -> bool {
        let path = guard::resolved(path);
        let mut answers = self.sandbox.places.answers.iter();
        !answers.any(|answer| answer.starts_with(&path) || path.starts_with(answer))
    }
}

/// A directory of a session's own, in a place that is hidden from all other sessions.
pub(crate) fn session_directory() -> io::Result<Scratch> {
    Scratch::new().map_err(|error| io::Error::other(error.explained()))
}

/// Existing paths strictly below a directory that a text contains.
fn paths_below(text: &str, directory: &Path) -> Vec<PathBuf> {
    let Some(prefix) = directory.to_str() else {
        return Vec::new();
    };
    let prefix = format!("{}/", prefix.trim_end_matches('/'));
    let starts = text.match_indices(&prefix);
    let found = starts.flat_map(|(start, _)| {
        let rest = &text[start..];
        let end = rest[prefix.len()..].find(DELIMITERS);
        let word = end.map_or(rest, |end| &rest[..prefix.len() + end]);
        [rest, word].map(PathBuf::from)
    });
    let is_below = |path: &PathBuf| {
        let real = path.canonicalize();
        real.is_ok_and(|real| real != guard::resolved(directory))
    };
    found.filter(is_below).collect()
}

/// Ports of servers on this machine that a setting names.
fn note_ports(value: &Value, ports: &mut BTreeSet<u16>) {
    match value {
        Value::String(text) => ports.extend(loopback_ports(text)),
        Value::Array(items) => items.iter().for_each(|item| note_ports(item, ports)),
        Value::Object(map) => map.values().for_each(|item| note_ports(item, ports)),
        _ => {}
    }
}

/// The ports in `http://127.0.0.1:8000/mcp`, `localhost:5432` and the like.
fn loopback_ports(text: &str) -> Vec<u16> {
    let hosts = ["localhost:", "127.0.0.1:", "[::1]:"].into_iter();
    let ports = hosts.flat_map(|host| {
        text.match_indices(host).filter_map(move |(start, _)| {
            let before = text[..start].chars().next_back();
            let digits = &text[start + host.len()..];
            let end = digits.find(|c: char| !c.is_ascii_digit());
            let is_whole_host = !before.is_some_and(|c| c.is_alphanumeric() || "-.".contains(c));
            digits[..end.unwrap_or(digits.len())]
                .parse()
                .ok()
                .filter(|_| is_whole_host)
        })
    });
    ports.collect()
}

/// The time for which a look around stays valid. Files that others put beside hidden places later than that become readable.
const FRESH: Duration = Duration::from_secs(30);

/// Looking around takes longer than starting a program, so sessions share it.
fn surroundings(hidden: &[PathBuf]) -> Arc<Surroundings> {
    struct Seen {
        hidden: Vec<PathBuf>,
        at: Instant,
        surroundings: Arc<Surroundings>,
    }
    static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());
    let mut seen = crate::lock(&SEEN);
    seen.retain(|seen| seen.at.elapsed() < FRESH);
    if let Some(known) = seen.iter().find(|seen| seen.hidden == hidden) {
        return Arc::clone(&known.surroundings);
    }
    let surroundings = Arc::new(Surroundings::without(hidden));
    seen.push(Seen {
        hidden: hidden.to_vec(),
        at: Instant::now(),
        surroundings: Arc::clone(&surroundings),
    });
    surroundings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_this_machine_are_found_in_settings() {
        for (text, expected) in [
            ("http://127.0.0.1:8000/mcp", vec![8000]),
            ("postgres://me:x@localhost:5432/db", vec![5432]),
            ("http://[::1]:81", vec![81]),
            ("http://127.0.0.1/", vec![]),
            ("http://example.org:443", vec![]),
            ("http://not-localhost:443", vec![]),
            ("http://10.127.0.0.1:5", vec![]),
            ("localhost:99999", vec![]),
        ] {
            assert_eq!(loopback_ports(text), expected, "{text}");
        }
    }

    #[test]
    fn files_of_the_suite_are_found_in_commands() {
        let suite = tempfile::tempdir().unwrap();
        let suite = suite.path();
        for name in ["agent.sh", "with space.py", "lib.py"] {
            std::fs::write(suite.join(name), "").unwrap();
        }
        let shown = suite.display();
        let check = |text: String, expected: &[&str]| {
            let mut found: Vec<_> = paths_below(&text, suite);
            found.dedup();
            let expected: Vec<_> = expected.iter().map(|name| suite.join(name)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check(format!("{shown}/agent.sh"), &["agent.sh"]);
        check(format!("--config={shown}/agent.sh"), &["agent.sh"]);
        check(format!("{shown}/with space.py"), &["with space.py"]);
        check(
            format!("sh {shown}/agent.sh | python3 '{shown}/lib.py' x"),
            &["agent.sh", "lib.py"],
        );
        check(format!("{shown}/missing"), &[]);
        check(format!("{shown}/"), &[]);
        check(format!("{shown}/."), &[]);
        check(format!("{shown}-other/agent.sh"), &[]);
    }
}
