//! The forms in which text may contain a value: escaped, percent-encoded, in base64 and in hexadecimal.

use crate::classify::{SHORT, SHORTEST_BY_NAME, looks_random};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A shorter encoding is too likely to be there by chance.
const SHORTEST_ENCODED: usize = 8;

/// Every form of a value, itself included.
#[derive(Default)]
pub(crate) struct Forms {
    /// Those that stand in a text in one piece.
    pub(crate) whole: BTreeSet<String>,
    /// Base64 and hexadecimal, which programs break into lines.
    pub(crate) wrapped: BTreeSet<String>,
}

pub(crate) fn forms(value: &str) -> Forms {
    let mut forms = Forms::default();
    forms.add(value);
    // What ends a variable's value is often not printed with it, and a file of keys is printed line by line.
    let trimmed = value.trim();
    if trimmed.len() >= SHORTEST_BY_NAME && trimmed.len() < value.len() {
        forms.add(trimmed);
    }
    for line in trimmed.lines().map(str::trim) {
        if line.len() < trimmed.len() && looks_random(line) {
            forms.add(line);
        }
    }
    forms
}

impl Forms {
    fn add(&mut self, value: &str) {
        self.whole.insert(value.to_owned());
        self.whole.extend(escaped(value));
        self.whole.extend(percent_encoded(value));
        if value.len() >= SHORT {
            self.whole.extend(escaped_throughout(value));
            let encoded = base64_parts(value.as_bytes()).chain(hexadecimal(value));
            let encoded = encoded.filter(|form| form.len() >= SHORTEST_ENCODED);
            self.wrapped.extend(encoded);
        }
    }
}

/// A text as written between the quotes of a JSON string.
pub(crate) fn in_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Inside JSON inside a text, as different writers escape it; and as HTML.
fn escaped(value: &str) -> Vec<String> {
    let mut all = in_html(value);
    let json = in_json(value);
    // Python, PHP, Go, Gson and .NET write these as numbers, besides what must be escaped; the last one also the quote.
    let writers: [(&str, bool, Escape); 6] = [
        ("", false, lower_units),
        ("", true, lower_units),
        ("", true, upper_units),
        ("<>&", false, lower_units),
        ("<>&='", false, lower_units),
        ("<>&+'`", true, upper_units),
    ];
    for (numbered, is_ascii, escape) in writers {
        let is_number = |letter: char| numbered.contains(letter) || is_ascii && !letter.is_ascii();
        let mut once = with_escapes(&json, is_number, escape);
        if numbered.contains('+') {
            once = once.replace("\\\"", "\\u0022");
        }
        // JSON in JSON in JSON, as logs of agents have it.
        let twice = in_json(&once);
        all.extend([once.replace('/', "\\/"), in_json(&twice), twice, once]);
    }
    all
}

/// With every character escaped, needed or not.
fn escaped_throughout(value: &str) -> Vec<String> {
    let escapes: [Escape; 5] = [
        lower_units,
        upper_units,
        decimal_entity,
        lower_entity,
        upper_entity,
    ];
    let percent = percent(value, None);
    let throughout = escapes.map(|escape| value.chars().map(escape).collect());
    let percents = [lower_escapes(&percent), percent];
    throughout.into_iter().chain(percents).collect()
}

/// The escape of a character.
type Escape = fn(char) -> String;

/// `\u00fc`, twice for characters beyond 16 bits.
fn lower_units(letter: char) -> String {
    let units = letter.encode_utf16(&mut [0; 2]).to_vec();
    units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn upper_units(letter: char) -> String {
    let units = letter.encode_utf16(&mut [0; 2]).to_vec();
    units.iter().map(|unit| format!("\\u{unit:04X}")).collect()
}

/// An entity of HTML by its number.
fn decimal_entity(letter: char) -> String {
    format!("&#{};", u32::from(letter))
}

fn lower_entity(letter: char) -> String {
    format!("&#x{:x};", u32::from(letter))
}

fn upper_entity(letter: char) -> String {
    format!("&#x{:X};", u32::from(letter))
}

/// A text with some of its characters escaped.
fn with_escapes(text: &str, is_escaped: impl Fn(char) -> bool, escape: Escape) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_escaped(letter) {
            true => escaped.push_str(&escape(letter)),
            false => escaped.push(letter),
        }
    }
    escaped
}

/// With the names and numbers of characters that different libraries write.
fn in_html(value: &str) -> Vec<String> {
    let named = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let quotes = [
        ("&quot;", "&#39;"),
        ("&quot;", "&#x27;"),
        ("&quot;", "&apos;"),
        ("&#34;", "&#39;"),
    ];
    let mut all: Vec<String> = quotes
        .iter()
        .map(|(double, single)| named.replace('"', double).replace('\'', single))
        .collect();
    // Letters beyond ASCII become numbers, in what was escaped otherwise as in what was not.
    for text in [all[0].clone(), named.clone()] {
        let is_number = |letter: char| !letter.is_ascii();
        all.push(with_escapes(&text, is_number, decimal_entity));
        all.push(with_escapes(&text, is_number, lower_entity));
    }
    all.push(named);
    all
}

/// As in a path, in a query, and by different libraries.
fn percent_encoded(value: &str) -> Vec<String> {
    const KEPT: [&str; 3] = ["-_.~", "-_.~/", "-_.!~*'()"];
    let mut all = Vec::new();
    for kept in KEPT {
        let upper = percent(value, Some(kept));
        all.push(upper.replace("%20", "+"));
        all.push(lower_escapes(&upper));
        all.push(upper);
    }
    all
}

/// Letters and digits stay, and the characters of `kept`; without it nothing does.
fn percent(value: &str, kept: Option<&str>) -> String {
    let mut encoded = String::new();
    let is_kept = |letter: char| {
        kept.is_some_and(|kept| letter.is_ascii_alphanumeric() || kept.contains(letter))
    };
    for byte in value.bytes() {
        let letter = char::from(byte);
        if is_kept(letter) {
            encoded.push(letter);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn lower_escapes(text: &str) -> String {
    let mut parts = text.split('%');
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        lower.push('%');
        lower.push_str(&digits.to_ascii_lowercase());
        lower.push_str(rest);
    }
    lower
}

fn hexadecimal(value: &str) -> impl Iterator<Item = String> {
    let lower: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let upper = lower.to_ascii_uppercase();
    [lower, upper].into_iter()
}

/// The common part of the base64 of every text that holds the value: three parts, by where the
/// value begins in it. And the base64 of the value alone.
fn base64_parts(value: &[u8]) -> impl Iterator<Item = String> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const FOR_URLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    [STANDARD, FOR_URLS].into_iter().flat_map(move |alphabet| {
        let parts = (0..3).map(move |before| {
            let shifted = [&[0; 2][..before], value].concat();
            let digits = base64_digits(&shifted, alphabet);
            // The first digits depend on what precedes the value, the last one on what follows it.
            let from = (before * 8).div_ceil(6);
            let to = shifted.len() * 8 / 6;
            digits[from..to].to_owned()
        });
        parts.chain([base64_digits(value, alphabet)])
    })
}

fn base64_digits(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let bit = |place: usize| {
        let byte = bytes.get(place / 8).copied().unwrap_or(0);
        usize::from(byte >> (7 - place % 8) & 1)
    };
    let digit = |number: usize| (0..6).fold(0, |value, place| value << 1 | bit(number * 6 + place));
    let digits = (0..(bytes.len() * 8).div_ceil(6)).map(|number| alphabet[digit(number)]);
    digits.map(char::from).collect()
}

/// The bytes behind base64 of either alphabet, with or without padding.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut buffer, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let digit = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        buffer = buffer << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits & 0xff) as u8);
        }
    }
    Some(bytes)
}

/// A text with its percent escapes resolved, as far as they are some.
pub(crate) fn from_percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_any_surrounding_text_holds_a_form() {
        let value = "p4ss/word?+9";
        for before in ["", "u", "me", "user:", "longer name:"] {
            for after in ["", "!", "ab", "tail"] {
                let text = format!("{before}{value}{after}");
                for alphabet in ["+/", "-_"] {
                    let encoded = base64_digits(text.as_bytes(), &alphabet_with(alphabet));
                    let forms = forms(value).wrapped;
                    let found = forms.iter().any(|form| encoded.contains(form));
                    assert!(found, "{text} as {encoded}");
                    assert_eq!(from_base64(&encoded).unwrap(), text.as_bytes());
                }
            }
        }
    }

    fn alphabet_with(last: &str) -> [u8; 64] {
        let digits = ('A'..='Z')
            .chain('a'..='z')
            .chain('0'..='9')
            .chain(last.chars());
        let digits: Vec<u8> = digits.map(|digit| digit as u8).collect();
        digits.try_into().unwrap()
    }

    #[test]
    fn escapes_of_every_kind_are_forms() {
        let forms = forms("a b/c\"ü&d").whole;
        for form in [
            "a%20b%2Fc%22%C3%BC%26d",
            "a%20b%2fc%22%c3%bc%26d",
            "a+b%2Fc%22%C3%BC%26d",
            "a%20b/c%22%C3%BC%26d",
            "a b/c\\\"ü&d",
            "a b\\/c\\\"ü&d",
            "a b/c\\\"\\u00fc&d",
            "a b/c\\\"\\u00FC&d",
            "a b\\/c\\\"\\u00fc&d",
            "a b/c\\\"ü\\u0026d",
            "a b/c\\u0022\\u00FC\\u0026d",
            "a b/c\\\\\\\"ü\\\\u0026d",
            "a b/c&quot;ü&amp;d",
            "a b/c&#34;ü&amp;d",
            "a b/c&quot;&#252;&amp;d",
            "\\u0061\\u0020\\u0062\\u002f\\u0063\\u0022\\u00fc\\u0026\\u0064",
            "%61%20%62%2F%63%22%C3%BC%26%64",
            "&#97;&#32;&#98;&#47;&#99;&#34;&#252;&#38;&#100;",
        ] {
            assert!(forms.contains(form), "{form} in {forms:?}");
        }
        assert_eq!(from_percent("a%20b%2fc%zz%"), "a b/c%zz%");
    }
}
