//! The lines of a log, one at a time: bounded memory whatever the file holds.

use std::io::{ErrorKind, Read};

/// Longer lines are counted and skipped. Agents keep pictures in their logs, so the bound is generous.
pub(crate) const LONGEST_LINE: usize = 32 << 20;

const CHUNK: usize = 256 << 10;

/// The next line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Whole(&'a [u8]),
    /// The last line has no end: the agent may be writing it at this moment.
    Unfinished(&'a [u8]),
    /// Too long to be held.
    TooLong,
}

/// Reads lines from a file, a decompressor or bytes.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not handed out.
    start: usize,
    end: usize,
    /// Bytes of the current line in which no line end was found.
    searched: usize,
    is_over: bool,
    /// The last line was too long, and the source ended within it.
    is_long_line_open: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            searched: 0,
            is_over: false,
            is_long_line_open: false,
        }
    }

    /// True if the source ended within a line that was too long.
    pub(crate) fn ended_in_long_line(&self) -> bool {
        self.is_long_line_open
    }

    /// The next line without its end, or nothing at the end of the file.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        loop {
            let unsearched = &self.buffer[self.start + self.searched..self.end];
            if let Some(length) = memchr::memchr(b'\n', unsearched) {
                let line = self.start..self.start + self.searched + length;
                self.start = line.end + 1;
                self.searched = 0;
                return Ok(Some(Line::Whole(&self.buffer[line])));
            }
            self.searched = self.end - self.start;
            if self.is_over {
                let line = self.start..self.end;
                self.start = self.end;
                self.searched = 0;
                return Ok((!line.is_empty()).then(|| Line::Unfinished(&self.buffer[line])));
            }
            if self.searched > LONGEST_LINE {
                self.skip_line()?;
                return Ok(Some(Line::TooLong));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> std::io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            let length = (self.buffer.len() * 2).min(LONGEST_LINE + CHUNK);
            self.buffer.resize(length, 0);
        }
        let read = read_some(&mut self.source, &mut self.buffer[self.end..])?;
        self.is_over = read == 0;
        self.end += read;
        Ok(())
    }

    /// Drops everything up to the next line end, and the memory that the line took.
    fn skip_line(&mut self) -> std::io::Result<()> {
        self.buffer = vec![0; CHUNK];
        (self.start, self.end, self.searched) = (0, 0, 0);
        loop {
            let read = read_some(&mut self.source, &mut self.buffer)?;
            if read == 0 {
                self.is_over = true;
                self.is_long_line_open = true;
                return Ok(());
            }
            if let Some(place) = memchr::memchr(b'\n', &self.buffer[..read]) {
                (self.start, self.end) = (place + 1, read);
                return Ok(());
            }
        }
    }
}

fn read_some(source: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(bytes);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Whole(line) => format!("{} ", String::from_utf8_lossy(line)),
                Line::Unfinished(line) => String::from_utf8_lossy(line).into_owned(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        found
    }

    #[test]
    fn a_last_line_without_an_end_is_distinguished() {
        assert_eq!(lines(b"a\n\nbc\nd"), ["a ", " ", "bc ", "d"]);
        assert_eq!(lines(b""), [""; 0]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_rest_is_read() {
        let mut bytes = vec![b'x'; LONGEST_LINE * 2 + 5];
        bytes.extend_from_slice(b"\nnext\n");
        assert_eq!(lines(&bytes), ["too long", "next "]);
    }

    #[test]
    fn lines_across_reads_are_whole() {
        let long = "y".repeat(CHUNK + 3);
        let bytes = format!("a\n{long}\nb\n");
        assert_eq!(
            lines(bytes.as_bytes()),
            ["a ".to_owned(), format!("{long} "), "b ".to_owned()]
        );
    }
}
