//! Columns of values as short JSON. `page.js` unpacks them.
//!
//! A column is a list of its values, or `{"same": value}`, or `{"words": [values], "at": [places]}`, or `{"steps": [numbers]}`
//! whose sums are the values, or `{"times": [numbers]}`, the same for times in milliseconds since 1970: whichever is shortest. Among
//! places and steps, `[number, times]` stands for a number that is repeated.

use assize_contracts::Timestamp;
use foldhash::fast::FixedState;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write;

/// Largest number that is written as an integer and read back as the same number.
const LARGEST: f64 = 9e15;

/// Values of any kind.
pub(crate) fn pack(values: impl Iterator<Item = impl Serialize>) -> String {
    let texts = values.map(|value| serde_json::to_string(&value).unwrap_or_else(|_| null()));
    shortest(&texts.collect::<Vec<_>>())
}

/// Texts, or null.
pub(crate) fn pack_texts(values: impl Iterator<Item = Option<String>>) -> String {
    pack(values)
}

/// Numbers, or null.
pub(crate) fn pack_numbers(values: impl Iterator<Item = Option<f64>>) -> String {
    let values: Vec<Option<f64>> = values.collect();
    let texts: Vec<String> = values.iter().map(|value| number(*value)).collect();
    let plain = shortest(&texts);
    let integers: Option<Vec<i64>> = values.iter().map(|value| integer((*value)?)).collect();
    let stepwise = integers.map(|integers| format!("{{\"steps\":{}}}", steps(&integers)));
    stepwise
        .filter(|stepwise| stepwise.len() < plain.len())
        .unwrap_or(plain)
}

/// Times as in rows.
pub(crate) fn pack_times<'a>(values: impl Iterator<Item = Option<&'a str>>) -> String {
    let values: Vec<Option<&str>> = values.collect();
    // A time that a browser would write otherwise is shown as in the row.
    let milliseconds = |text: &Option<&str>| {
        let time = Timestamp::from((*text)?.to_owned());
        let ms = time.unix_ms()?;
        (Timestamp::from_unix_ms(ms) == time).then_some(ms)
    };
    let times: Option<Vec<i64>> = values.iter().map(milliseconds).collect();
    match times.filter(|times| !times.is_empty()) {
        Some(times) => format!("{{\"times\":{}}}", steps(&times)),
        None => pack(values.iter()),
    }
}

/// The shortest form of values that are JSON already.
fn shortest(texts: &[String]) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut places: HashMap<&str, usize, FixedState> = HashMap::default();
    let mut at = Vec::with_capacity(texts.len());
    for text in texts {
        let place = *places.entry(text).or_insert_with(|| {
            words.push(text);
            words.len() - 1
        });
        at.push(place);
    }
    if let [word] = words[..] {
        return format!("{{\"same\":{word}}}");
    }
    let plain = format!("[{}]", texts.join(","));
    let at = list(at.into_iter().map(|place| place as i64));
    let named = format!("{{\"words\":[{}],\"at\":{at}}}", words.join(","));
    match named.len() < plain.len() {
        true => named,
        false => plain,
    }
}

/// The first number and what each of the others adds to the one before it.
fn steps(numbers: &[i64]) -> String {
    let before = [0].into_iter().chain(numbers.iter().copied());
    list(
        numbers
            .iter()
            .zip(before)
            .map(|(number, before)| number - before),
    )
}

/// Numbers, with those that are repeated often enough written once.
fn list(numbers: impl Iterator<Item = i64>) -> String {
    let numbers: Vec<i64> = numbers.collect();
    let mut text = String::from("[");
    for same in numbers.chunk_by(|a, b| a == b) {
        let number = same[0];
        // Writing to a string cannot fail.
        let _ = match same.len() {
            count @ 4.. => write!(text, "[{number},{count}],"),
            count => (0..count).try_for_each(|_| write!(text, "{number},")),
        };
    }
    if text.ends_with(',') {
        text.pop();
    }
    text.push(']');
    text
}

fn integer(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < LARGEST).then_some(value as i64)
}

fn number(value: Option<f64>) -> String {
    match value {
        Some(value) => match integer(value) {
            Some(integer) => integer.to_string(),
            None => serde_json::to_string(&value).unwrap_or_else(|_| null()),
        },
        None => null(),
    }
}

fn null() -> String {
    "null".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[Option<f64>]) -> String {
        pack_numbers(values.iter().copied())
    }

    #[test]
    fn columns_take_their_shortest_form() {
        assert_eq!(numbers(&[]), "[]");
        assert_eq!(numbers(&[Some(7.0); 3]), r#"{"same":7}"#);
        assert_eq!(numbers(&[None; 3]), r#"{"same":null}"#);
        assert_eq!(numbers(&[Some(0.5), None, Some(-3.0)]), "[0.5,null,-3]");
        let growing: Vec<Option<f64>> = (0..20).map(|n| Some(f64::from(n) + 1000.0)).collect();
        assert_eq!(numbers(&growing), r#"{"steps":[1000,[1,19]]}"#);
        let long: Vec<&str> = ["<a long reason>", "another one"].repeat(20);
        let twice = [["one"; 5], ["two"; 5]].concat();
        assert_eq!(
            pack(twice.iter()),
            r#"{"words":["one","two"],"at":[[0,5],[1,5]]}"#
        );
        assert!(
            pack(long.iter())
                .starts_with(r#"{"words":["<a long reason>","another one"],"at":[0,1,0,"#)
        );
        assert_eq!(numbers(&[Some(1e300), Some(0.1)]), "[1e+300,0.1]");
    }

    #[test]
    fn times_are_steps_unless_a_browser_would_write_them_otherwise() {
        let two = |second| pack_times([Some("1970-01-01T00:00:01.000Z"), second].into_iter());
        assert_eq!(
            two(Some("1970-01-01T00:00:01.250Z")),
            r#"{"times":[1000,250]}"#
        );
        let other = r#"["1970-01-01T00:00:01.000Z","1970-01-01 00:00:02"]"#;
        assert_eq!(two(Some("1970-01-01 00:00:02")), other);
        assert_eq!(two(None), r#"["1970-01-01T00:00:01.000Z",null]"#);
    }
}
