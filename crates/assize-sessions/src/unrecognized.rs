//! The reason why a file is in none of the known forms. People who named it want to know, and a damaged log must not pass for a foreign file.

use crate::lines::{LONGEST_LINE, Line, Lines};
use crate::log::{LogFile, MOST_SEARCHED, ReadError};
use serde::de::IgnoredAny;
use std::fmt;
use std::io::Read as _;
use std::path::Path;

/// A foreign file shows that it is one in its first lines.
const MOST_LINES: u64 = 1000;

/// Larger documents are not parsed for this.
const LARGEST_DOCUMENT: u64 = 64 << 20;

/// The reason why no reader recognizes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecognized {
    /// A pipe or a device: logs are read more than once, which these are not made for.
    NotAFile,
    /// The file holds nothing.
    Empty,
    /// Lines that are too long to be read, and nothing beside them that shows what they are.
    TooLong {
        /// The number of such lines.
        lines: u64,
        /// The last one has no end.
        is_open: bool,
    },
    /// A single line, or a document, that breaks off.
    HalfWritten,
    /// Neither a line nor the whole is JSON.
    NotJson,
    /// It may be sound, but no known agent writes it.
    Foreign,
}

impl Unrecognized {
    /// Looks into a file that no reader recognizes.
    pub fn of(path: &Path) -> Result<Self, ReadError> {
        let log = LogFile::new(path.to_owned());
        if !log.is_regular() {
            return Ok(Self::NotAFile);
        }
        if log.head(16)?.starts_with(b"SQLite format 3\0") {
            return Ok(Self::Foreign);
        }
        let mut lines = Lines::new(log.open()?.take(MOST_SEARCHED));
        let (mut too_long, mut others, mut is_cut) = (0, 0, false);
        while too_long + others < MOST_LINES {
            let (text, is_last) = match lines.next().map_err(|error| log.cannot_read(error))? {
                None => break,
                Some(Line::TooLong) => {
                    too_long += 1;
                    continue;
                }
                Some(Line::Whole(text)) => (text.trim_ascii(), false),
                Some(Line::Unfinished(text)) => (text.trim_ascii(), true),
            };
            if text.is_empty() {
                continue;
            }
            match serde_json::from_slice::<IgnoredAny>(text) {
                Ok(_) => return Ok(Self::Foreign),
                // The first line of a document over several lines breaks off, too.
                Err(error) if error.is_eof() && !is_last && others == 0 => {
                    return document(&log);
                }
                Err(error) => is_cut = error.is_eof() && is_last && text.starts_with(b"{"),
            }
            others += 1;
        }
        Ok(match (too_long, others) {
            (0, 0) => Self::Empty,
            (0, 1) if is_cut => Self::HalfWritten,
            (0, _) => Self::NotJson,
            (too_long, _) => Self::TooLong {
                lines: too_long,
                is_open: lines.ended_in_long_line(),
            },
        })
    }

    /// True if the file may have been a log.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::NotAFile | Self::Empty | Self::Foreign)
    }
}

fn document(log: &LogFile) -> Result<Unrecognized, ReadError> {
    let Ok(text) = log.document(LARGEST_DOCUMENT) else {
        return Ok(Unrecognized::Foreign);
    };
    Ok(match serde_json::from_slice::<IgnoredAny>(&text) {
        Ok(_) => Unrecognized::Foreign,
        Err(error) if error.is_eof() => Unrecognized::HalfWritten,
        Err(_) => Unrecognized::NotJson,
    })
}

impl fmt::Display for Unrecognized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = LONGEST_LINE >> 20;
        match self {
            Self::NotAFile => {
                f.write_str("it is no regular file; write what it gives into one first")
            }
            Self::Empty => f.write_str("it is empty"),
            Self::TooLong { lines: 1, is_open } => {
                write!(f, "it is one line of more than {most} MB")?;
                f.write_str(if *is_open { " without an end" } else { "" })
            }
            Self::TooLong { lines, is_open } => {
                write!(f, "{lines} of its lines have more than {most} MB each")?;
                f.write_str(if *is_open {
                    ", the last without an end"
                } else {
                    ""
                })
            }
            Self::HalfWritten => f.write_str("it breaks off before its first record is complete"),
            Self::NotJson => f.write_str("it is not JSON"),
            Self::Foreign => f.write_str("no agent that is known here writes such a file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], expected: Unrecognized) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("session.jsonl");
        std::fs::write(&path, text).unwrap();
        assert_eq!(Unrecognized::of(&path).unwrap(), expected);
    }

    #[test]
    fn damage_is_distinguished_from_other_files() {
        check(b"", Unrecognized::Empty);
        check(b"\n \n", Unrecognized::Empty);
        check(b"{\"a\": 1}\n", Unrecognized::Foreign);
        check(b"{\n  \"a\": 1\n}\n", Unrecognized::Foreign);
        check(b"{\n  \"a\": 1,\n", Unrecognized::HalfWritten);
        check(b"{\"type\": \"user\", \"uu", Unrecognized::HalfWritten);
        check(b"hello\nworld\n", Unrecognized::NotJson);
        check(&[0; 4096], Unrecognized::NotJson);
    }

    #[test]
    fn lines_that_are_too_long_are_named() {
        let mut text = vec![b'x'; LONGEST_LINE + (1 << 20)];
        let lone = |is_open| Unrecognized::TooLong { lines: 1, is_open };
        check(&text, lone(true));
        assert_eq!(
            lone(true).to_string(),
            "it is one line of more than 32 MB without an end"
        );
        text.push(b'\n');
        check(&text, lone(false));
    }
}
