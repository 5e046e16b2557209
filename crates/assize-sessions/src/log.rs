//! A log on disk. It is opened for reading only; databases are copied first.

use crate::database::{Database, DatabaseError};
use crate::json::{Json, Malformed};
use crate::lines::{Line, Lines};
use crate::session::Flaws;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A compressed log that unpacks to more than this is cut there.
const MOST_UNPACKED: u64 = 16 << 30;

/// So much of a file is searched for the lines by which its form is recognized.
pub(crate) const MOST_SEARCHED: u64 = 1 << 30;

/// So many lines are looked at then.
const SHORT_LINES: usize = 50;

/// Longer lines are no help in that.
const LONGEST_SHORT_LINE: usize = 1 << 20;

/// A log cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// The file is in none of the known forms.
    #[error("`{}` is no session log that is known here", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// The database cannot be copied or read.
    #[error("cannot read the database `{}`", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: DatabaseError,
    },
    /// The file holds something else than its beginning promised.
    #[error("`{}`: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The mistake.
        message: String,
    },
}

impl ReadError {
    /// The file it is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::File { path, .. }
            | Self::Unknown { path }
            | Self::Database { path, .. }
            | Self::Content { path, .. } => path,
        }
    }
}

/// A log, wherever its text comes from.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    /// The text itself, for tests and fuzzing.
    text: Option<Vec<u8>>,
    database: Mutex<Option<Database>>,
}

/// A line of a log.
#[derive(Debug)]
pub(crate) struct Entry<'a>(Line<'a>);

impl LogFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            text: None,
            database: Mutex::new(None),
        }
    }

    /// A log that is in memory.
    pub(crate) fn of_text(path: &Path, text: &[u8]) -> Self {
        Self {
            text: Some(text.to_vec()),
            ..Self::new(path.to_owned())
        }
    }

    /// A log that is this database.
    pub(crate) fn of_database(path: &Path, database: Database) -> Self {
        Self {
            database: Mutex::new(Some(database)),
            ..Self::new(path.to_owned())
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// False for pipes and devices. True for a file that is missing, which opening it reports.
    pub(crate) fn is_regular(&self) -> bool {
        self.text.is_some()
            || std::fs::metadata(&self.path).map_or(true, |metadata| metadata.is_file())
    }

    /// True for a file that is one JSON document by its name, and not lines.
    pub(crate) fn is_document(&self) -> bool {
        self.path.extension().is_some_and(|ending| ending == "json")
    }

    pub(crate) fn open(&self) -> Result<Box<dyn Read + '_>, ReadError> {
        if let Some(text) = &self.text {
            return unpacked(&text[..]).map_err(|source| self.cannot_read(source));
        }
        let file = File::open(&self.path).map_err(|source| self.cannot_read(source))?;
        unpacked(file).map_err(|source| self.cannot_read(source))
    }

    pub(crate) fn cannot_read(&self, source: std::io::Error) -> ReadError {
        ReadError::File {
            path: self.path.clone(),
            source,
        }
    }

    /// The first bytes, unpacked: by them a form is recognized.
    pub(crate) fn head(&self, length: usize) -> Result<Vec<u8>, ReadError> {
        let mut head = vec![0; length];
        let mut reader = self.open()?;
        let mut filled = 0;
        while filled < head.len() {
            match reader.read(&mut head[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.cannot_read(error)),
            }
        }
        head.truncate(filled);
        Ok(head)
    }

    /// The first lines of usual length, joined: behind lines of any length, by which no form can be recognized.
    pub(crate) fn first_short_lines(&self) -> Result<Vec<u8>, ReadError> {
        let mut lines = Lines::new(self.open()?.take(MOST_SEARCHED));
        let mut found = Vec::new();
        for _ in 0..SHORT_LINES {
            match lines.next() {
                Ok(Some(Line::Whole(line))) if line.len() <= LONGEST_SHORT_LINE => {
                    found.extend_from_slice(line);
                    found.push(b'\n');
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(source) => return Err(self.cannot_read(source)),
            }
        }
        Ok(found)
    }

    pub(crate) fn each_line(&self, mut take: impl FnMut(Entry<'_>)) -> Result<(), ReadError> {
        let mut lines = Lines::new(self.open()?);
        loop {
            match lines.next() {
                Ok(Some(line)) => take(Entry(line)),
                Ok(None) => return Ok(()),
                Err(source) => return Err(self.cannot_read(source)),
            }
        }
    }

    /// The whole text of a log that is one JSON document, up to a bound.
    pub(crate) fn document(&self, most: u64) -> Result<Vec<u8>, ReadError> {
        let mut text = Vec::new();
        let mut reader = self.open()?.take(most + 1);
        reader
            .read_to_end(&mut text)
            .map_err(|source| self.cannot_read(source))?;
        match text.len() as u64 > most {
            true => Err(ReadError::Content {
                path: self.path.clone(),
                message: format!("longer than {} MB", most / 1_000_000),
            }),
            false => Ok(text),
        }
    }

    /// Calls `read` with a private copy of the database, which is made once.
    pub(crate) fn with_database<T>(
        &self,
        read: impl FnOnce(&Database) -> Result<T, DatabaseError>,
    ) -> Result<T, ReadError> {
        let wrap = |source| ReadError::Database {
            path: self.path.clone(),
            source,
        };
        let mut database = self
            .database
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if database
            .as_ref()
            .is_none_or(|copy| copy.is_outdated(&self.path))
        {
            *database = Some(Database::copy(&self.path).map_err(wrap)?);
        }
        match &*database {
            Some(copy) => read(copy).map_err(wrap),
            None => Err(wrap(DatabaseError::Gone)),
        }
    }
}

/// Unpacks a text that begins like a zstd frame.
fn unpacked<'a>(mut source: impl Read + 'a) -> std::io::Result<Box<dyn Read + 'a>> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut start = [0; 4];
    let mut filled = 0;
    while filled < start.len() {
        match source.read(&mut start[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    let whole = std::io::Cursor::new(start[..filled].to_vec()).chain(source);
    match start[..filled] == MAGIC {
        true => {
            let decoder = zstd::stream::read::Decoder::new(whole)?;
            Ok(Box::new(decoder.take(MOST_UNPACKED)))
        }
        false => Ok(Box::new(whole)),
    }
}

/// A line that is to be parsed.
pub(crate) struct Pending {
    is_finished: bool,
}

impl Flaws {
    /// Counts a line and gives its text, unless it has none.
    pub(crate) fn take<'a>(&mut self, entry: Entry<'a>) -> Option<(Pending, Json<'a>)> {
        let (text, is_finished) = match entry.0 {
            Line::Whole(text) => (text, true),
            Line::Unfinished(text) => (text, false),
            Line::TooLong => {
                self.lines += 1;
                self.too_long += 1;
                return None;
            }
        };
        if text.trim_ascii().is_empty() {
            return None;
        }
        self.lines += 1;
        Some((Pending { is_finished }, Json::new(text)))
    }

    /// Counts a line and gives its value. Absent where it is no JSON object.
    pub(crate) fn value(&mut self, entry: Entry<'_>) -> Option<serde_json::Value> {
        let (line, json) = self.take(entry)?;
        match serde_json::from_slice(json.text_of_all()) {
            Ok(value @ serde_json::Value::Object(_)) => Some(value),
            Ok(_) => {
                self.wrong_types += 1;
                None
            }
            Err(_) => {
                self.note(Err(Malformed), &json, &line);
                None
            }
        }
    }

    /// Notes how parsing went. True if the line can be used.
    pub(crate) fn note(
        &mut self,
        parsed: Result<(), Malformed>,
        json: &Json<'_>,
        line: &Pending,
    ) -> bool {
        match parsed {
            Ok(()) => {
                self.wrong_types += u64::from(json.has_odd_types());
                true
            }
            Err(Malformed) => {
                match line.is_finished {
                    true => self.broken_lines += 1,
                    false => self.unfinished_lines += 1,
                }
                false
            }
        }
    }
}
