//! Server-sent events, read from bytes as they arrive: any line ends, any cuts, a byte order mark, and events of any
//! size at bounded memory. The meaning of the data is left to others.

/// Reads a stream of server-sent events.
///
/// An event larger than the limit is skipped and counted; the reader goes on with the next one.
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    name: Vec<u8>,
    id: Vec<u8>,
    retry_ms: Option<u64>,
    has_data: bool,
    is_oversized: bool,
    ended_by_cr: bool,
    is_first_line: bool,
    oversized: u64,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field; empty when there is none.
    pub name: &'a [u8],
    /// The `data` lines, joined by line feeds. Bytes, because UTF-8 is not guaranteed.
    pub data: &'a [u8],
    /// The last `id` of the stream so far; empty when there was none.
    pub id: &'a [u8],
    /// The wait that the server asks of clients before they connect again.
    pub retry_ms: Option<u64>,
}

impl SseReader {
    /// A reader that keeps at most about `limit` bytes of one event.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            name: Vec::new(),
            id: Vec::new(),
            retry_ms: None,
            has_data: false,
            is_oversized: false,
            ended_by_cr: false,
            is_first_line: true,
            oversized: 0,
        }
    }

    /// Takes the next bytes and hands out every event that ends in them.
    pub fn feed(&mut self, mut bytes: &[u8], mut on_event: impl FnMut(SseEvent<'_>)) {
        if std::mem::take(&mut self.ended_by_cr) && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
        }
        while let Some(end) = bytes.iter().position(|&b| b == b'\n' || b == b'\r') {
            self.extend_line(&bytes[..end]);
            let ended_by_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if ended_by_cr {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.ended_by_cr = true,
                }
            }
            self.end_line(&mut on_event);
        }
        self.extend_line(bytes);
    }

    /// Returns the event at the end of the stream that lacks the blank line after it.
    pub fn finish(&mut self, mut on_event: impl FnMut(SseEvent<'_>)) {
        if !self.line.is_empty() {
            self.end_line(&mut on_event);
        }
        self.dispatch(&mut on_event);
    }

    /// The number of events skipped because of their size.
    pub fn oversized(&self) -> u64 {
        self.oversized
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        if self.is_oversized {
            // Only whether the line is blank still matters: a blank one ends the event.
            if self.line.is_empty() && !bytes.is_empty() {
                self.line.push(b':');
            }
        } else if self.line.len() + self.data.len() + bytes.len() > self.limit {
            self.is_oversized = true;
            self.line = vec![b':'];
            self.data = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, on_event: &mut impl FnMut(SseEvent<'_>)) {
        let mut line = std::mem::take(&mut self.line);
        let text = match std::mem::take(&mut self.is_first_line) {
            true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line),
            false => &line,
        };
        if text.is_empty() {
            self.dispatch(on_event);
        } else {
            self.read_field(text);
        }
        line.clear();
        self.line = line;
    }

    fn read_field(&mut self, line: &[u8]) {
        let (field, value) = match line.iter().position(|&b| b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.extend_from_slice(value);
            }
            b"retry" => {
                let number = std::str::from_utf8(value).ok();
                self.retry_ms = number.and_then(|number| number.parse().ok());
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, on_event: &mut impl FnMut(SseEvent<'_>)) {
        if std::mem::take(&mut self.is_oversized) {
            self.oversized += 1;
        } else if self.has_data {
            on_event(SseEvent {
                name: &self.name,
                data: &self.data,
                id: &self.id,
                retry_ms: self.retry_ms.take(),
            });
        }
        self.has_data = false;
        self.data.clear();
        self.name.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]], limit: usize) -> (Vec<(String, String)>, u64) {
        let mut reader = SseReader::new(limit);
        let mut events = Vec::new();
        let mut take = |event: SseEvent<'_>| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            events.push((text(event.name), text(event.data)));
        };
        for chunk in chunks {
            reader.feed(chunk, &mut take);
        }
        reader.finish(&mut take);
        (events, reader.oversized())
    }

    fn check(stream: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, data)| (name.to_string(), data.to_string()))
            .collect();
        let bytes = stream.as_bytes();
        assert_eq!(read(&[bytes], 1000).0, expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single, 1000).0, expected, "byte by byte");
    }

    #[test]
    fn ids_last_and_times_to_wait_do_not() {
        let mut reader = SseReader::new(100);
        let mut events = Vec::new();
        reader.feed(b"id: 7\nretry: 50\ndata:\n\ndata: x\n\n", |event| {
            events.push((event.id.to_vec(), event.retry_ms));
        });
        assert_eq!(events, [(b"7".to_vec(), Some(50)), (b"7".to_vec(), None)]);
    }

    #[test]
    fn every_line_end_ends_a_line() {
        let expected = [("a", "1"), ("", "2")];
        check("event: a\ndata: 1\n\ndata: 2\n\n", &expected);
        check("event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", &expected);
        check("event: a\rdata: 1\r\rdata: 2\r\r", &expected);
    }

    #[test]
    fn data_lines_are_joined_and_comments_left_out() {
        check(
            "\u{feff}: hello\ndata:a\ndata\ndata:  b\nid: 7\n\n",
            &[("", "a\n\n b")],
        );
        check("event: ping\n\nretry: 1\n\n", &[]);
    }

    #[test]
    fn text_may_be_cut_inside_a_letter() {
        check("data: żółć\n\n", &[("", "żółć")]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        check("data: [DONE]", &[("", "[DONE]")]);
    }

    #[test]
    fn a_huge_event_is_skipped_and_the_next_one_read() {
        let huge = "x".repeat(100);
        let stream = format!("data: {huge}\ndata: more\n\ndata: small\n\n");
        for size in [1, 7, 1000] {
            let chunks: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
            let (events, oversized) = read(&chunks, 50);
            assert_eq!(events, [(String::new(), "small".into())]);
            assert_eq!(oversized, 1);
        }
    }
}
