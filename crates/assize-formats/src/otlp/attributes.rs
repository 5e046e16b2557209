//! Lists of attributes that leave out what is unknown and cut what is too long.

use super::{Attribute, Attributes};
use assize_contracts::{Millis, Usd};

/// Stands at the end of a text that was cut.
const CUT: &str = "… [cut]";

pub(super) struct Writer {
    longest: usize,
    list: Attributes,
}

impl Writer {
    pub(super) fn new(longest: usize) -> Self {
        Self {
            longest,
            list: Vec::new(),
        }
    }

    pub(super) fn text(&mut self, key: &str, text: impl AsRef<str>) -> &mut Self {
        let text = cut(text.as_ref(), self.longest);
        self.put(key, Attribute::Text(text))
    }

    pub(super) fn text_if(&mut self, key: &str, text: Option<impl AsRef<str>>) -> &mut Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    pub(super) fn int(&mut self, key: &str, number: Option<u64>) -> &mut Self {
        match number.and_then(|number| i64::try_from(number).ok()) {
            Some(number) => self.put(key, Attribute::Int(number)),
            None => self,
        }
    }

    pub(super) fn double(&mut self, key: &str, number: Option<f64>) -> &mut Self {
        match number {
            Some(number) => self.put(key, Attribute::Double(number)),
            None => self,
        }
    }

    pub(super) fn seconds(&mut self, key: &str, time: Option<Millis>) -> &mut Self {
        self.double(key, time.map(|time| time.value() / 1000.0))
    }

    pub(super) fn usd(&mut self, key: &str, cost: Option<Usd>) -> &mut Self {
        self.double(key, cost.map(Usd::value))
    }

    pub(super) fn flag(&mut self, key: &str, is_set: bool) -> &mut Self {
        match is_set {
            true => self.put(key, Attribute::Bool(true)),
            false => self,
        }
    }

    pub(super) fn texts(&mut self, key: &str, texts: Vec<String>) -> &mut Self {
        match texts.is_empty() {
            true => self,
            false => self.put(key, Attribute::Texts(texts)),
        }
    }

    fn put(&mut self, key: &str, value: Attribute) -> &mut Self {
        self.list.push((key.to_owned(), value));
        self
    }

    pub(super) fn done(&mut self) -> Attributes {
        std::mem::take(&mut self.list)
    }
}

/// At most so many bytes, with a mark where something is missing.
pub(super) fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(longest.saturating_sub(CUT.len()));
    format!("{}{CUT}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        let text = "é".repeat(50);
        let short = cut(&text, 30);
        assert!(short.len() <= 30 && short.ends_with(CUT), "{short}");
        assert_eq!(cut("short", 30), "short");
        assert_eq!(cut(&text, 3), CUT);
    }
}
