//! Divides an answer's bytes into JSON texts: one document, a stream of events, or an array read by element.
//! Found out from the first byte, because content types are not to be trusted.

use crate::json_array::JsonArrayReader;
use crate::sse::SseReader;

/// The most that is kept of one event or of a whole plain answer.
pub(crate) const MAX_TEXT: usize = 8 << 20;

#[derive(Debug)]
pub(crate) enum Framing {
    Unknown(Opening),
    Document(Document),
    Events(SseReader),
    Array(JsonArrayReader),
}

/// Nothing but blanks and perhaps the start of a byte order mark so far.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    half_mark: Vec<u8>,
    has_begun: bool,
}

/// A plain answer, kept until it is complete.
#[derive(Debug, Default)]
pub(crate) struct Document {
    text: Vec<u8>,
    is_oversized: bool,
}

impl Framing {
    pub(crate) fn new() -> Self {
        Self::Unknown(Opening::default())
    }

    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Events(_) | Self::Array(_))
    }

    /// Takes the next bytes and hands out every text of a stream that ends in them.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut on_text: impl FnMut(&[u8])) {
        match self {
            Self::Unknown(opening) => {
                if let Some(rest) = opening.skip(bytes) {
                    *self = Self::recognize(rest[0]);
                    let after_bracket = usize::from(matches!(self, Self::Array(_)));
                    self.feed(&rest[after_bracket..], on_text);
                }
            }
            Self::Document(document) => document.extend(bytes),
            Self::Events(reader) => reader.feed(bytes, |event| on_text(event.data)),
            Self::Array(reader) => reader.feed(bytes, on_text),
        }
    }

    /// Hands out the document, or what was left of a stream.
    pub(crate) fn finish(&mut self, mut on_text: impl FnMut(&[u8])) {
        match self {
            Self::Unknown(_) | Self::Array(_) => {}
            Self::Document(document) if document.is_oversized => {}
            Self::Document(document) => on_text(&document.text),
            Self::Events(reader) => reader.finish(|event| on_text(event.data)),
        }
    }

    /// The number of texts skipped because of their size.
    pub(crate) fn oversized(&self) -> u64 {
        match self {
            Self::Unknown(_) => 0,
            Self::Document(document) => document.is_oversized.into(),
            Self::Events(reader) => reader.oversized(),
            Self::Array(reader) => reader.oversized(),
        }
    }

    fn recognize(first: u8) -> Self {
        match first {
            b'{' => Self::Document(Document::default()),
            b'[' => Self::Array(JsonArrayReader::new(MAX_TEXT)),
            _ => Self::Events(SseReader::new(MAX_TEXT)),
        }
    }
}

impl Opening {
    /// The bytes after the mark and the blanks, as soon as there are any.
    fn skip(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let seen = [&std::mem::take(&mut self.half_mark), bytes].concat();
        if !self.has_begun && seen.len() < MARK.len() && MARK.starts_with(&seen) {
            self.half_mark = seen;
            return None;
        }
        let text = match std::mem::replace(&mut self.has_begun, true) {
            false => seen.strip_prefix(MARK).unwrap_or(&seen),
            true => &seen,
        };
        let rest = text.trim_ascii_start();
        (!rest.is_empty()).then(|| rest.to_vec())
    }
}

impl Document {
    fn extend(&mut self, bytes: &[u8]) {
        if self.text.len() + bytes.len() > MAX_TEXT {
            self.is_oversized = true;
            self.text = Vec::new();
        } else if !self.is_oversized {
            self.text.extend_from_slice(bytes);
        }
    }
}
