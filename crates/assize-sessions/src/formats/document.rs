//! For formats whose logs are small or not line by line: values are read whole, and wrong types are noted on the way.

use crate::moment;
use crate::session::Flaws;
use assize_contracts::TokenBreakdown;
use serde_json::Value;

/// Larger documents are refused: as values they take many times their length.
pub(super) const LARGEST_DOCUMENT: u64 = 128 << 20;

/// Notes whether a record had values of wrong types.
#[derive(Debug, Default)]
pub(super) struct Types {
    pub(super) is_odd: bool,
}

impl Types {
    pub(super) fn text<'a>(&mut self, value: &'a Value) -> Option<&'a str> {
        self.noted(value, value.as_str())
    }

    /// A whole number that is not negative.
    pub(super) fn count(&mut self, value: &Value) -> Option<u64> {
        let whole = |number: f64| {
            (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
        };
        let count = value.as_u64().or_else(|| value.as_f64().and_then(whole));
        self.noted(value, count)
    }

    pub(super) fn number(&mut self, value: &Value) -> Option<f64> {
        self.noted(value, value.as_f64())
    }

    pub(super) fn flag(&mut self, value: &Value) -> Option<bool> {
        self.noted(value, value.as_bool())
    }

    pub(super) fn list<'a>(&mut self, value: &'a Value) -> &'a [Value] {
        self.noted(value, value.as_array())
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn moment(&mut self, value: &Value) -> Option<i64> {
        let text = |text: &str| assize_contracts::Timestamp::from(text.to_owned()).unix_ms();
        let found = match value {
            Value::Number(number) => number.as_f64().and_then(moment::of_number),
            Value::String(string) => text(string),
            _ => None,
        };
        self.noted(value, found)
    }

    fn noted<T>(&mut self, value: &Value, found: Option<T>) -> Option<T> {
        self.is_odd |= found.is_none() && !value.is_null();
        found
    }
}

/// The texts of a list of parts, joined.
pub(super) fn joined_texts(parts: &Value) -> String {
    match parts {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part["text"].as_str().or(part.as_str()))
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// Counts of an API whose input holds what came from the cache and whose output holds the reasoning.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inclusive {
    pub(crate) prompt: Option<u64>,
    pub(crate) completion: Option<u64>,
    pub(crate) cache_read: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

impl Inclusive {
    /// The classes apart. A part that is larger than its whole is limited to it, and noted.
    pub(crate) fn tokens(self, flaws: &mut Flaws) -> TokenBreakdown {
        let read = limited(self.cache_read, self.prompt);
        let rest = less(self.prompt, read);
        let written = limited(self.cache_write, rest);
        let reasoning = limited(self.reasoning, self.completion);
        let is_contradiction =
            read != self.cache_read || written != self.cache_write || reasoning != self.reasoning;
        flaws.contradictions += u64::from(is_contradiction);
        let tokens = TokenBreakdown {
            input: less(rest, written),
            output: less(self.completion, reasoning),
            reasoning,
            cache_read: read,
            cache_write: written,
            ..TokenBreakdown::default()
        };
        tokens.with_totals()
    }
}

fn limited(part: Option<u64>, whole: Option<u64>) -> Option<u64> {
    part.map(|part| whole.map_or(part, |whole| part.min(whole)))
}

fn less(whole: Option<u64>, part: Option<u64>) -> Option<u64> {
    whole.map(|whole| whole.saturating_sub(part.unwrap_or(0)))
}
