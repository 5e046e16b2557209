//! A mistake in a file, its place, and the way out.

use crate::terminal::plain;
use assize_contracts::ConfigError;
use std::fmt;
use std::path::{Path, PathBuf};

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub line: u64,
    pub column: u64,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    pub file: PathBuf,
    /// Its place in the file. Absent when it concerns the file as a whole.
    pub place: Option<Place>,
    /// The value found and the value expected.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl FileError {
    /// An error in a file as a whole.
    pub fn new(file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            place: None,
            message: message.into(),
            hint: None,
        }
    }

    /// An error in a task that a line or record of a file holds.
    pub(super) fn in_task(file: &Path, place: Option<Place>, error: ConfigError) -> Self {
        let path = match error.path.is_empty() {
            true => String::new(),
            false => format!("`{}`: ", error.path.join(".")),
        };
        Self {
            hint: error.hint,
            ..Self::new(file, format!("{path}{}", error.message)).at(place)
        }
    }

    /// The same at a place.
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// The same with a way out, where one is known.
    pub(super) fn with_hint(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The same with a way out.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.strip_prefix(".").unwrap_or(&self.file);
        let file = match file.as_os_str().is_empty() {
            true => Path::new("."),
            false => file,
        };
        write!(f, "{}", plain(&file.display().to_string()))?;
        if let Some(Place { line, column }) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", plain(&self.message))
    }
}

/// Everything that is wrong with a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteError(pub Vec<FileError>);

impl From<FileError> for SuiteError {
    fn from(error: FileError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for SuiteError {}

/// The known name that a wrong one was probably meant to be.
pub(crate) fn nearest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| {
            (
                strsim::damerau_levenshtein(&wrong.to_lowercase(), &name.to_lowercase()),
                name,
            )
        })
        .filter(|(distance, name)| *distance <= (name.chars().count().max(3) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `did you mean …?`, or what there is.
pub(crate) fn suggestion(wrong: &str, known: &[&str]) -> Option<String> {
    if wrong.contains(',') && wrong.split(',').all(|part| known.contains(&part.trim())) {
        return Some("name each of them by itself: flags may be repeated".to_owned());
    }
    match nearest(wrong, known.iter().copied()).or_else(|| akin(wrong, known)) {
        Some(name) => Some(format!("did you mean `{name}`?")),
        None if known.is_empty() => None,
        None => Some(format!("known are {}", listed(known))),
    }
}

/// The only name that begins like the wrong one, or whose first part is nearly it: `claude` for `claude-code`.
fn akin<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let is_akin = |name: &&&str| {
        let first = name.split(['-', '_']).next().unwrap_or(name);
        let is_short = wrong.chars().count() < 3 || first.chars().count() < 3;
        !is_short
            && (name.starts_with(&wrong)
                || wrong.starts_with(first)
                || nearest(&wrong, [first]).is_some())
    };
    let mut akin = known.iter().filter(is_akin);
    akin.next().filter(|_| akin.next().is_none()).copied()
}

/// Names as people read them: `a`, `b`, `c`.
pub(crate) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
