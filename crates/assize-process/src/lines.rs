//! Output cut into lines without ever holding more than one bounded line.

use std::borrow::Cow;
use std::time::Duration;

use crate::running::Chunk;

/// Cuts the chunks of one stream into lines. A line longer than the limit loses its end, not its beginning.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    pending: Line,
    is_pending: bool,
    expected_offset: u64,
}

/// One line without its line end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The time of its end, counted from the start of the program.
    pub at: Duration,
    /// Its bytes up to the limit.
    pub bytes: Vec<u8>,
    /// The number of further bytes: beyond the limit, or dropped by the stream's bound, in which case lines may be
    /// missing in between.
    pub cut: u64,
}

impl Line {
    /// As text; what is not UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

impl LineSplitter {
    /// Keeps at most `limit` bytes of a line.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            pending: Line::default(),
            is_pending: false,
            expected_offset: 0,
        }
    }

    /// Takes the next chunk of the stream and returns the lines that end in it.
    pub fn push(&mut self, chunk: &Chunk) -> Vec<Line> {
        self.skip(chunk.offset.saturating_sub(self.expected_offset));
        self.expected_offset = chunk.offset + chunk.bytes.len() as u64;
        self.pending.at = chunk.at;
        let mut lines = Vec::new();
        let mut rest = chunk.bytes.as_slice();
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.append(&rest[..end]);
            lines.push(self.complete());
            self.pending.at = chunk.at;
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            self.append(rest);
            self.is_pending = true;
        }
        lines
    }

    /// The rest after the last line end, if any.
    pub fn finish(mut self) -> Option<Line> {
        self.is_pending.then(|| self.complete())
    }

    /// True when the line under way is longer than the limit already. Its end may never come.
    pub fn is_overlong(&self) -> bool {
        self.pending.cut > 0
    }

    fn skip(&mut self, dropped: u64) {
        self.pending.cut += dropped;
        self.is_pending |= dropped > 0;
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = if self.pending.cut == 0 {
            self.limit - self.pending.bytes.len()
        } else {
            0
        };
        let kept = bytes.len().min(room);
        self.pending.bytes.extend(&bytes[..kept]);
        self.pending.cut += (bytes.len() - kept) as u64;
    }

    fn complete(&mut self) -> Line {
        self.is_pending = false;
        let mut line = std::mem::take(&mut self.pending);
        if line.cut == 0 && line.bytes.last() == Some(&b'\r') {
            line.bytes.pop();
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::running::Stream;

    fn chunk(offset: u64, text: &str) -> Chunk {
        Chunk {
            stream: Stream::Stdout,
            at: Duration::from_secs(offset),
            offset,
            bytes: text.into(),
        }
    }

    fn check(limit: usize, chunks: &[(u64, &str)], expected: &[(&str, u64)]) {
        let mut splitter = LineSplitter::new(limit);
        let mut lines: Vec<Line> = chunks
            .iter()
            .flat_map(|(offset, text)| splitter.push(&chunk(*offset, text)))
            .collect();
        lines.extend(splitter.finish());
        let lines: Vec<_> = lines.iter().map(|line| (line.text(), line.cut)).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(text, cut)| (Cow::from(*text), *cut))
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_may_be_spread_over_chunks() {
        check(
            10,
            &[(0, "a"), (1, "b\nc"), (4, "\n\nd")],
            &[("ab", 0), ("c", 0), ("", 0), ("d", 0)],
        );
    }

    #[test]
    fn a_final_line_end_starts_no_new_line() {
        check(10, &[(0, "a\r\n"), (3, "b\n")], &[("a", 0), ("b", 0)]);
    }

    #[test]
    fn a_long_line_loses_its_end() {
        check(
            3,
            &[(0, "abcd"), (4, "efg\nxy\n")],
            &[("abc", 4), ("xy", 0)],
        );
    }

    #[test]
    fn a_gap_is_counted_in_the_line_it_falls_into() {
        check(10, &[(0, "ab"), (102, "c\nd\n")], &[("ab", 101), ("d", 0)]);
        check(
            10,
            &[(0, "ab\n"), (103, "c\nd")],
            &[("ab", 0), ("", 101), ("d", 0)],
        );
    }

    #[test]
    fn nothing_gives_no_line() {
        check(10, &[], &[]);
    }

    #[test]
    fn a_line_carries_the_time_of_its_end() {
        let mut splitter = LineSplitter::new(10);
        assert!(splitter.push(&chunk(0, "ab")).is_empty());
        assert_eq!(
            splitter.push(&chunk(2, "c\n"))[0].at,
            Duration::from_secs(2)
        );
    }
}
