//! Reads JSON in place: every byte is checked, and nothing is copied without need. Logs run to gigabytes, and most of them
//! is text of tools that only has to be valid.
//!
//! A value of another type than expected is skipped, noted in [`Json::has_odd_types`], and unknown.

use std::borrow::Cow;

/// Deeper values are refused, so that hostile files cannot exhaust the stack. The limit of `serde_json`.
const DEEPEST: u32 = 128;

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

type Read<T> = Result<T, Malformed>;

/// A place in a JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Json<'a> {
    bytes: &'a [u8],
    at: usize,
    has_odd_types: bool,
    depth: u32,
}

/// A string as written in the text, without its quotes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    raw: &'a [u8],
    has_escapes: bool,
}

/// The type of the value ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    Text,
    Array,
    Object,
}

impl<'a> Json<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            has_odd_types: false,
            depth: 0,
        }
    }

    /// The text from its beginning.
    pub(crate) fn text_of_all(&self) -> &'a [u8] {
        self.bytes
    }

    /// True after a value had another type than expected.
    pub(crate) fn has_odd_types(&self) -> bool {
        self.has_odd_types
    }

    /// Notes a value that has a valid type and an impossible content.
    pub(crate) fn note_odd(&mut self) {
        self.has_odd_types = true;
    }

    /// Fails unless only white space is left.
    pub(crate) fn end(&mut self) -> Read<()> {
        self.skip_space();
        match self.at == self.bytes.len() {
            true => Ok(()),
            false => Err(Malformed),
        }
    }

    pub(crate) fn kind(&mut self) -> Read<Kind> {
        self.skip_space();
        match self.bytes.get(self.at) {
            Some(b'"') => Ok(Kind::Text),
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            _ => Err(Malformed),
        }
    }

    /// Calls `field` for every field of an object; it must read or skip the value. Another type is skipped and noted.
    pub(crate) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, Text<'a>) -> Read<()>,
    ) -> Read<()> {
        if self.is_other_than(Kind::Object)? {
            return Ok(());
        }
        self.enter()?;
        if !self.takes(b'}') {
            loop {
                self.skip_space();
                let key = self.string()?;
                self.expect(b':')?;
                field(self, key)?;
                if !self.has_more(b'}')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Calls `item` for every value of an array; it must read or skip it. Another type is skipped and noted.
    pub(crate) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        if self.is_other_than(Kind::Array)? {
            return Ok(());
        }
        self.enter()?;
        if !self.takes(b']') {
            loop {
                item(self)?;
                if !self.has_more(b']')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// A string. Absent for `null`, and for other types, which are noted.
    pub(crate) fn text(&mut self) -> Read<Option<Text<'a>>> {
        match self.is_other_than(Kind::Text)? {
            true => Ok(None),
            false => self.string().map(Some),
        }
    }

    /// A whole number that is not negative. Absent for `null`, and for anything else, which is noted.
    pub(crate) fn count(&mut self) -> Read<Option<u64>> {
        if self.is_other_than(Kind::Number)? {
            return Ok(None);
        }
        let raw = self.number()?;
        let count = whole_number(raw);
        self.has_odd_types |= count.is_none();
        Ok(count)
    }

    /// A number. Absent for `null`, and for other types, which are noted.
    pub(crate) fn float(&mut self) -> Read<Option<f64>> {
        if self.is_other_than(Kind::Number)? {
            return Ok(None);
        }
        let raw = self.number()?;
        let text = std::str::from_utf8(raw).unwrap_or_default();
        Ok(text.parse().ok().filter(|value: &f64| value.is_finite()))
    }

    /// `true` or `false`. Absent for `null`, and for other types, which are noted.
    pub(crate) fn flag(&mut self) -> Read<Option<bool>> {
        if self.is_other_than(Kind::Bool)? {
            return Ok(None);
        }
        match self.bytes.get(self.at) {
            Some(b't') => self.literal(b"true").map(|()| Some(true)),
            _ => self.literal(b"false").map(|()| Some(false)),
        }
    }

    /// The text of any value, to be read later.
    pub(crate) fn raw(&mut self) -> Read<&'a [u8]> {
        self.skip_space();
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Checks a value and moves on.
    pub(crate) fn skip(&mut self) -> Read<()> {
        self.skip_space();
        match self.bytes.get(self.at) {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => {
                self.enter()?;
                if !self.takes(b'}') {
                    loop {
                        self.skip_space();
                        self.string()?;
                        self.expect(b':')?;
                        self.skip()?;
                        if !self.has_more(b'}')? {
                            break;
                        }
                    }
                }
                self.depth -= 1;
                Ok(())
            }
            Some(b'[') => {
                self.enter()?;
                if !self.takes(b']') {
                    loop {
                        self.skip()?;
                        if !self.has_more(b']')? {
                            break;
                        }
                    }
                }
                self.depth -= 1;
                Ok(())
            }
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            _ => Err(Malformed),
        }
    }

    /// Skips a value that is not of this type. `null` is no wrong type, only unknown.
    fn is_other_than(&mut self, expected: Kind) -> Read<bool> {
        let kind = self.kind()?;
        if kind == expected {
            return Ok(false);
        }
        self.has_odd_types |= kind != Kind::Null;
        self.skip()?;
        Ok(true)
    }

    fn enter(&mut self) -> Read<()> {
        self.at += 1;
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(Malformed),
            false => Ok(()),
        }
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    #[inline]
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Read<()> {
        match self.takes(byte) {
            true => Ok(()),
            false => Err(Malformed),
        }
    }

    /// After a value: a comma, or the end of what it is in.
    #[inline]
    fn has_more(&mut self, end: u8) -> Read<bool> {
        self.skip_space();
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        match byte {
            Some(b',') => Ok(true),
            Some(byte) if byte == end => Ok(false),
            _ => Err(Malformed),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Read<()> {
        match self.bytes[self.at..].starts_with(word) {
            true => {
                self.at += word.len();
                Ok(())
            }
            false => Err(Malformed),
        }
    }

    fn number(&mut self) -> Read<&'a [u8]> {
        let start = self.at;
        self.at += usize::from(self.bytes.get(self.at) == Some(&b'-'));
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(Malformed),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.expect_digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.expect_digits()?;
        }
        Ok(&self.bytes[start..self.at])
    }

    fn expect_digits(&mut self) -> Read<()> {
        match self.bytes.get(self.at) {
            Some(b'0'..=b'9') => {
                self.skip_digits();
                Ok(())
            }
            _ => Err(Malformed),
        }
    }

    fn skip_digits(&mut self) {
        while let Some(b'0'..=b'9') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Read<Text<'a>> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(Malformed);
        }
        let start = self.at + 1;
        let mut at = start;
        let mut has_escapes = false;
        loop {
            at = special_byte(self.bytes, at);
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    at = after_escape(self.bytes, at)?;
                }
                _ => return Err(Malformed),
            }
        }
        self.at = at + 1;
        Ok(Text {
            raw: &self.bytes[start..at],
            has_escapes,
        })
    }
}

/// The place of the next quote, backslash or control character, or the end.
#[inline]
fn special_byte(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = from;
    // Eight bytes at a time (Mycroft's test for a zero byte). A false hit can only follow a true one in the same word, and the lowest
    // one is taken.
    while let Some(Ok(word)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let word = u64::from_le_bytes(word);
        let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let quote = is_zero(word ^ (ONES * b'"' as u64));
        let backslash = is_zero(word ^ (ONES * b'\\' as u64));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (quote | backslash | control) & HIGH;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..=0x1f) {
            break;
        }
        at += 1;
    }
    at
}

#[inline]
fn after_escape(bytes: &[u8], at: usize) -> Read<usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let digits = bytes.get(at + 2..at + 6).ok_or(Malformed)?;
            match digits.iter().all(u8::is_ascii_hexdigit) {
                true => Ok(at + 6),
                false => Err(Malformed),
            }
        }
        _ => Err(Malformed),
    }
}

/// `12`, and also `12.0` as some writers have it.
fn whole_number(raw: &[u8]) -> Option<u64> {
    if raw.iter().all(u8::is_ascii_digit) && raw.len() < 20 {
        return Some(raw.iter().fold(0, |sum: u64, digit| {
            sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))
        }));
    }
    let value: f64 = std::str::from_utf8(raw).ok()?.parse().ok()?;
    (value >= 0.0 && value.fract() == 0.0 && value < 9e15).then_some(value as u64)
}

impl<'a> Text<'a> {
    /// The bytes between the quotes, escapes and all.
    pub(crate) fn raw(&self) -> &'a [u8] {
        self.raw
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Compares with a text that needs no escapes.
    pub(crate) fn is(&self, plain: &str) -> bool {
        self.raw == plain.as_bytes()
    }

    /// The text itself. Bytes that are not UTF-8 and halves of surrogates become replacement characters.
    pub(crate) fn plain(&self) -> Cow<'a, str> {
        match self.has_escapes {
            false => String::from_utf8_lossy(self.raw),
            true => Cow::Owned(unescaped(self.raw)),
        }
    }
}

fn unescaped(raw: &[u8]) -> String {
    let mut plain: Vec<u8> = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(place) = memchr::memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..place]);
        let (character, length) = escape(&rest[place..]);
        let mut buffer = [0; 4];
        plain.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        rest = &rest[place + length..];
    }
    plain.extend_from_slice(rest);
    match String::from_utf8(plain) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// The character of an escape that was checked before, and the escape's length.
fn escape(raw: &[u8]) -> (char, usize) {
    let simple = match raw.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unicode_escape(raw),
        Some(&byte) => char::from(byte),
        None => return (char::REPLACEMENT_CHARACTER, raw.len()),
    };
    (simple, 2)
}

fn unicode_escape(raw: &[u8]) -> (char, usize) {
    let unit = |from: usize| {
        let digits = std::str::from_utf8(raw.get(from..from + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(2) else {
        return (char::REPLACEMENT_CHARACTER, raw.len().min(6));
    };
    let is_pair = (0xd800..0xdc00).contains(&first) && raw.get(6..8) == Some(b"\\u");
    let second = unit(8).filter(|unit| is_pair && (0xdc00..0xe000).contains(unit));
    match second {
        Some(second) => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            (
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                12,
            )
        }
        None => (
            char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
            6,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn is_valid(text: &[u8]) -> bool {
        let mut json = Json::new(text);
        json.skip().and_then(|()| json.end()).is_ok()
    }

    #[test]
    fn types_that_are_not_expected_are_noted_and_unknown() {
        let mut json = Json::new(br#"{"a":"1","b":2,"c":null,"d":-1,"e":1.5,"f":[1],"g":3.0}"#);
        let mut counts = Vec::new();
        json.object(|json, _| {
            let count = json.count()?;
            counts.push((count, std::mem::take(&mut json.has_odd_types)));
            Ok(())
        })
        .unwrap();
        let expected = [
            (None, true),
            (Some(2), false),
            (None, false),
            (None, true),
            (None, true),
            (None, true),
            (Some(3), false),
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn depth_is_bounded() {
        let deep = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
        assert!(is_valid(&deep(128)));
        assert!(!is_valid(&deep(129)));
        assert!(!is_valid(&b"[".repeat(1_000_000)));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_serde_json_writes_is_read_and_texts_come_back(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
            prop_assert!(is_valid(&text));
            if let Value::String(expected) = &value {
                let mut json = Json::new(&text);
                prop_assert_eq!(json.text().unwrap().unwrap().plain(), expected.as_str());
            }
        }

        #[test]
        fn broken_json_is_refused_exactly_where_serde_json_refuses_it(value in any_json(), place in any::<usize>(), byte in 0x20_u8..0x7f) {
            let mut text = serde_json::to_vec(&value).unwrap();
            let place = place % text.len();
            text[place] = byte;
            // Numbers out of range and halves of surrogates are valid to us: nothing of them is used.
            let refused = serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_err();
            let is_number_or_surrogate = String::from_utf8_lossy(&text).contains("\\u") || text.iter().any(u8::is_ascii_digit);
            prop_assert!(is_valid(&text) != refused || is_number_or_surrogate);
        }

        #[test]
        fn any_escapes_give_the_text_of_serde_json(text in r#"([a-z"]|\\n|\\u00e9|\\ud83d\\ude00|\\\\|\\")*"#) {
            let quoted = format!("\"{}\"", text.replace('"', ""));
            if let Ok(expected) = serde_json::from_str::<String>(&quoted) {
                let mut json = Json::new(quoted.as_bytes());
                prop_assert_eq!(json.text().unwrap().unwrap().plain(), expected);
            }
        }
    }
}
