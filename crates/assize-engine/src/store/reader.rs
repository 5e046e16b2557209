//! Reads rows back, one at a time.

use super::error::{StoreError, io};
use assize_contracts::ProfileRow;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The complete lines of a file, in order. A last line without a line break was never finished and is left out.
pub(crate) struct Lines {
    path: PathBuf,
    reader: Option<BufReader<File>>,
    line: Vec<u8>,
    pub(crate) number: u64,
    /// The offset at which the last line that was read ends.
    pub(crate) end: u64,
}

impl Lines {
    /// A file that does not exist has no lines.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let reader = match File::open(path) {
            Ok(file) => Some(BufReader::with_capacity(1 << 16, file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(io("read", path)(error)),
        };
        Ok(Self {
            path: path.to_owned(),
            reader,
            line: Vec::new(),
            number: 0,
            end: 0,
        })
    }

    /// The same from a place in the file on.
    pub(crate) fn open_at(path: &Path, offset: u64) -> Result<Self, StoreError> {
        let mut lines = Self::open(path)?;
        if let Some(reader) = &mut lines.reader {
            let sought = reader.seek(SeekFrom::Start(offset));
            sought.map_err(io("read", path))?;
        }
        lines.end = offset;
        Ok(lines)
    }

    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, StoreError> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        self.line.clear();
        reader
            .read_until(b'\n', &mut self.line)
            .map_err(io("read", &self.path))?;
        if self.line.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.number += 1;
        self.end += self.line.len() as u64;
        Ok(Some(&self.line))
    }

    /// Reads the next line, for [`Lines::line`], and returns its number.
    pub(crate) fn advance(&mut self) -> Result<Option<u64>, StoreError> {
        let has_line = self.next()?.is_some();
        Ok(has_line.then_some(self.number))
    }

    /// The line that was read last.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    pub(crate) fn parse<'a, T: Deserialize<'a>>(
        &'a mut self,
        expected: &'static str,
    ) -> Result<Option<T>, StoreError> {
        let path = self.path.clone();
        let line = self.number + 1;
        let Some(bytes) = self.next()? else {
            return Ok(None);
        };
        serde_json::from_slice(bytes)
            .map(Some)
            .map_err(|error| StoreError::Corrupt {
                path,
                line,
                expected,
                reason: error.to_string(),
            })
    }
}

/// The rows of a run, in the order in which they were written.
pub struct RowReader(Lines);

impl RowReader {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        Lines::open(path).map(Self)
    }
}

impl Iterator for RowReader {
    type Item = Result<ProfileRow, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.parse("row").transpose()
    }
}
