//! The formats of session logs, one file each. To add one: write the file, add it to [`FORMATS`], put a recording into `tests/logs`.

mod assize;
mod atif;
mod claude_code;
mod cline;
mod codex;
mod copilot;
mod document;
mod gemini;
mod goose;
mod opencode;
mod pi;
mod qwen;

use crate::database::Database;
use crate::draft::{Detail, Draft};
use crate::log::{LogFile, ReadError};
use std::path::{Path, PathBuf};

/// All formats. Content decides which one a file has; the first that recognizes it reads it.
pub(crate) const FORMATS: [&dyn LogFormat; 11] = [
    &claude_code::ClaudeCode,
    &codex::Codex,
    &opencode::Opencode,
    &gemini::Gemini,
    &qwen::Qwen,
    &cline::Cline,
    &goose::Goose,
    &pi::Pi,
    &copilot::Copilot,
    &atif::Atif,
    &assize::OwnTrace,
];

/// A form in which an agent keeps its sessions.
pub(crate) trait LogFormat: Sync {
    /// The agent that writes it, as in suites: `claude-code`.
    fn agent(&self) -> &'static str;

    /// Directories below which the agent keeps its logs on this machine. None for documents, which lie where people put them.
    fn places(&self, _machine: &Machine) -> Vec<PathBuf> {
        Vec::new()
    }

    /// True for names that logs of this agent have below its places. Content decides in the end.
    fn is_log_name(&self, path: &Path) -> bool;

    /// True if a file that begins like this has the form.
    fn recognizes(&self, head: &Head<'_>) -> bool;

    /// True if a database has the form. Its file alone may hold nothing yet: what was written last is in the write-ahead log.
    fn recognizes_database(&self, _database: &Database) -> bool {
        false
    }

    /// Reads a log. Lines that cannot be used are counted in the flaws of a draft; an error means that nothing can be read.
    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError>;

    /// Reads one session with all its texts. A log that holds many sessions reads no others.
    fn read_session(&self, log: &LogFile, _id: &str) -> Result<Vec<Draft>, ReadError> {
        self.read(log, Detail::Full)
    }

    /// Files that are read together with this one and show when it changed.
    fn attachments(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Logs that belong to the same session as this one, such as those of its sub-agents.
    fn companions(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Directories in which programs keep their files on this machine. The caller reads the environment.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// The user's home directory.
    pub home: PathBuf,
    /// Variables that move an agent's directory, such as `CODEX_HOME`.
    pub variables: Vec<(String, String)>,
}

impl Machine {
    /// Names of the variables that move logs.
    pub const VARIABLES: [&'static str; 12] = [
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "OPENCODE_DATA_DIR",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "GEMINI_CLI_HOME",
        "QWEN_HOME",
        "CLINE_DATA_DIR",
        "GOOSE_PATH_ROOT",
        "PI_CODING_AGENT_DIR",
        "COPILOT_HOME",
        "APPDATA",
    ];

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The directory that a variable names, else one below the home directory.
    pub(crate) fn directory(&self, variable: &str, below_home: &str) -> PathBuf {
        match self.variable(variable) {
            Some(value) if !value.is_empty() => PathBuf::from(value),
            _ => self.home.join(below_home),
        }
    }
}

/// The beginning of a file.
pub(crate) struct Head<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// The first lines that are JSON: damage to the first of all must not hide the rest.
    pub(crate) fn values(&self) -> impl Iterator<Item = serde_json::Value> {
        let lines = self.lines().take(50);
        lines.filter_map(|line| serde_json::from_slice(line).ok())
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.bytes.starts_with(b"SQLite format 3\0")
    }

    /// The first lines that are whole.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let whole = memchr::memrchr(b'\n', self.bytes).map_or(0, |end| end + 1);
        // A file of one line may have no end.
        let whole = if whole == 0 { self.bytes.len() } else { whole };
        self.bytes[..whole]
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
    }

    /// True if one of the first lines is an object with all of these fields.
    pub(crate) fn has_line_with(&self, fields: &[&str]) -> bool {
        self.lines()
            .take(50)
            .any(|line| fields_of(line).is_some_and(|known| has_all(&known, fields)))
    }

    /// True if the file begins with an object that has all of these fields, as far as it can be seen.
    pub(crate) fn begins_with_object_of(&self, fields: &[&str]) -> bool {
        let start = self.bytes.trim_ascii_start();
        start.starts_with(b"{")
            && fields.iter().all(|field| {
                memchr::memmem::find(start, format!("\"{field}\"").as_bytes()).is_some()
            })
    }
}

pub(crate) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension == ending)
}

fn has_all(known: &[String], wanted: &[&str]) -> bool {
    wanted
        .iter()
        .all(|field| known.iter().any(|name| name == field))
}

/// The names of an object's fields.
fn fields_of(line: &[u8]) -> Option<Vec<String>> {
    let mut json = crate::json::Json::new(line);
    let mut names = Vec::new();
    json.object(|json, key| {
        names.push(key.plain().into_owned());
        json.skip()
    })
    .ok()?;
    (!names.is_empty()).then_some(names)
}
