//! JSON as spans of its text: the place of each value, without reading its content. A conversation of megabytes is asked for a few
//! words, so its texts are not worth reading.

use serde_json::Value;
use std::borrow::Cow;

/// Deeper texts are no requests.
const DEEPEST: usize = 120;

/// A value and the text that contains it.
#[derive(Debug)]
pub(crate) struct Span<'a> {
    /// Its text, without white space around it.
    pub(crate) text: &'a [u8],
    inner: Inner<'a>,
}

#[derive(Debug)]
enum Inner<'a> {
    /// A number, a text, true, false or null.
    Plain,
    List(Vec<Span<'a>>),
    /// Keys as written between their quotes.
    Object(Vec<(&'a [u8], Span<'a>)>),
}

static NOTHING: Span<'static> = Span {
    text: b"null",
    inner: Inner::Plain,
};

impl<'a> Span<'a> {
    /// Finds the values of a text. None where the text is no JSON as far as that can be seen from outside its values.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        let mut scanner = Scanner { text, at: 0 };
        let span = scanner.value(0)?;
        scanner.skip_blanks();
        (scanner.at == text.len()).then_some(span)
    }

    /// The value of a key; null where there is none. Of several the last counts.
    pub(crate) fn get(&self, key: &str) -> &Self {
        let Inner::Object(members) = &self.inner else {
            return Self::nothing();
        };
        let found = members.iter().rfind(|(known, _)| *known == key.as_bytes());
        found.map_or(Self::nothing(), |(_, value)| value)
    }

    fn nothing<'b>() -> &'b Span<'a> {
        &NOTHING
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.inner {
            Inner::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.inner, Inner::Object(_))
    }

    /// The text, if it is one.
    pub(crate) fn as_text(&self) -> Option<Cow<'a, str>> {
        let inner = self.text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        match inner.contains(&b'\\') {
            true => serde_json::from_slice(self.text).ok().map(Cow::Owned),
            false => std::str::from_utf8(inner).ok().map(Cow::Borrowed),
        }
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.as_text().is_some_and(|found| found == text)
    }

    /// Its value; null where it cannot be read.
    pub(crate) fn read(&self) -> Value {
        serde_json::from_slice(self.text).unwrap_or_default()
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn value(&mut self, depth: usize) -> Option<Span<'a>> {
        self.skip_blanks();
        let start = self.at;
        let inner = match self.peek()? {
            _ if depth > DEEPEST => return None,
            b'{' => self.object(depth)?,
            b'[' => self.list(depth)?,
            b'"' => {
                self.skip_text()?;
                Inner::Plain
            }
            _ => {
                self.skip_word()?;
                Inner::Plain
            }
        };
        let text = &self.text[start..self.at];
        Some(Span { text, inner })
    }

    fn object(&mut self, depth: usize) -> Option<Inner<'a>> {
        let mut members = Vec::new();
        self.at += 1;
        self.skip_blanks();
        if self.takes(b'}') {
            return Some(Inner::Object(members));
        }
        loop {
            self.skip_blanks();
            let start = self.at;
            self.skip_text()?;
            let key = &self.text[start + 1..self.at - 1];
            self.skip_blanks();
            if !self.takes(b':') {
                return None;
            }
            members.push((key, self.value(depth + 1)?));
            self.skip_blanks();
            if self.takes(b'}') {
                return Some(Inner::Object(members));
            }
            if !self.takes(b',') {
                return None;
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Inner<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_blanks();
        if self.takes(b']') {
            return Some(Inner::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_blanks();
            if self.takes(b']') {
                return Some(Inner::List(items));
            }
            if !self.takes(b',') {
                return None;
            }
        }
    }

    /// Goes behind the closing quote of a text.
    fn skip_text(&mut self) -> Option<()> {
        if !self.takes(b'"') {
            return None;
        }
        loop {
            let rest = self.text.get(self.at..)?;
            let found = memchr::memchr2(b'"', b'\\', rest)?;
            let is_end = rest[found] == b'"';
            self.at += found + if is_end { 1 } else { 2 };
            if is_end {
                return Some(());
            }
        }
    }

    /// Goes behind a number, true, false or null.
    fn skip_word(&mut self) -> Option<()> {
        let start = self.at;
        let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        while self.peek().is_some_and(is_inside) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}
