//! Reads checks and rubrics as people write them: every value knows its place, every error names the place and the way out.

use assize_contracts::{ConfigError, JsonMap};
use serde_json::Value;

/// A value inside a scenario, with its place.
#[derive(Clone)]
pub(super) struct Spec<'a> {
    pub(super) value: &'a Value,
    path: Vec<String>,
}

impl<'a> Spec<'a> {
    pub(super) fn at(path: &[&str], value: &'a Value) -> Self {
        let path = path.iter().map(|&part| part.to_owned()).collect();
        Self { value, path }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ConfigError {
        ConfigError::at(self.path.clone(), message)
    }

    /// An error further inside, at a JSON Pointer.
    pub(super) fn error_at(&self, pointer: &str, message: impl Into<String>) -> ConfigError {
        let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
        let mut error = self.error(message);
        error.path.extend(pointer.split('/').skip(1).map(unescaped));
        error
    }

    fn expected(&self, what: &str) -> ConfigError {
        self.error(format!("expected {what}, found {}", kind(self.value)))
    }

    /// Another value at the same place, such as its key.
    pub(super) fn with_value<'b>(&self, value: &'b Value) -> Spec<'b> {
        let path = self.path.clone();
        Spec { value, path }
    }

    /// The fields of an object, which may have these names only, in snake_case or camelCase.
    pub(super) fn fields(&self, known: &[&str]) -> Result<Fields<'a>, ConfigError> {
        let map = self.object()?;
        for (position, key) in map.keys().enumerate() {
            let name = snake_case(key);
            if !known.contains(&name.as_str()) {
                return Err(self.unknown_key(key, known));
            }
            if map
                .keys()
                .take(position)
                .any(|other| snake_case(other) == name)
            {
                return Err(self.error(format!("`{name}` is given twice")));
            }
        }
        let path = self.path.clone();
        Ok(Fields { map, path })
    }

    /// The entries of an object whose keys people choose.
    pub(super) fn entries(&self) -> Result<Vec<(&'a str, Self)>, ConfigError> {
        let child = |(key, value): (&'a String, &'a Value)| (key.as_str(), self.child(key, value));
        Ok(self.object()?.iter().map(child).collect())
    }

    pub(super) fn items(&self) -> Result<Vec<Self>, ConfigError> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.expected("a list"))?;
        let child =
            |(position, value): (usize, &'a Value)| self.child(&position.to_string(), value);
        Ok(items.iter().enumerate().map(child).collect())
    }

    /// A text; numbers and truth values count as the text they are written as.
    pub(super) fn text(&self) -> Result<String, ConfigError> {
        match self.value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(self.value.to_string()),
            _ => Err(self.expected("a text")),
        }
    }

    /// One text or a list of them, at least one.
    pub(super) fn texts(&self) -> Result<Vec<String>, ConfigError> {
        if !self.value.is_array() {
            return Ok(vec![self.text()?]);
        }
        let texts: Vec<String> = self
            .items()?
            .iter()
            .map(Self::text)
            .collect::<Result<_, _>>()?;
        if texts.is_empty() {
            return Err(self.error("expected at least one entry"));
        }
        Ok(texts)
    }

    pub(super) fn count(&self) -> Result<u64, ConfigError> {
        self.value
            .as_u64()
            .ok_or_else(|| self.expected("a whole number that is not negative"))
    }

    pub(super) fn amount(&self) -> Result<f64, ConfigError> {
        self.value
            .as_f64()
            .filter(|amount| *amount >= 0.0)
            .ok_or_else(|| self.expected("a number that is not negative"))
    }

    pub(super) fn flag(&self) -> Result<bool, ConfigError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.expected("`true` or `false`"))
    }

    /// An object that has none of the keys, or several of which only one can be.
    pub(super) fn nothing_asked(&self, keys: &[&str]) -> ConfigError {
        self.error(format!("expected one of {}", quoted(keys)))
    }

    fn unknown_key(&self, key: &str, known: &[&str]) -> ConfigError {
        let mut error = self
            .child(key, self.value)
            .error(format!("unknown key `{key}`"));
        error.hint = Some(match nearest(key, known) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known keys: {}", quoted(known)),
        });
        error
    }

    fn object(&self) -> Result<&'a JsonMap, ConfigError> {
        self.value
            .as_object()
            .ok_or_else(|| self.expected("an object"))
    }

    fn child(&self, key: &str, value: &'a Value) -> Self {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        Self { value, path }
    }
}

/// The known fields of an object.
pub(super) struct Fields<'a> {
    map: &'a JsonMap,
    path: Vec<String>,
}

impl<'a> Fields<'a> {
    /// The field of this snake_case name, however it is spelled.
    pub(super) fn get(&self, name: &str) -> Option<Spec<'a>> {
        let (key, value) = self.map.iter().find(|(key, _)| snake_case(key) == name)?;
        let mut path = self.path.clone();
        path.push(key.clone());
        Some(Spec { value, path })
    }

    /// The weight of a check or criterion, 1 unless it has one.
    pub(super) fn weight(&self) -> Result<u64, ConfigError> {
        let Some(spec) = self.get("weight") else {
            return Ok(1);
        };
        match spec.count()? {
            0 => Err(spec.error("expected a weight of at least 1")),
            weight @ 1..=1000 => Ok(weight),
            _ => Err(spec.error("expected a weight of at most 1000")),
        }
    }
}

fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 2);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

pub(crate) fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    // Long keys are no misspellings, and the distance takes time in the product of both lengths.
    if key.len() > 40 {
        return None;
    }
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&snake_case(key), name), *name))
        .min()
        .filter(|(distance, name)| *distance <= 1.max(name.len() / 3))
        .map(|(_, name)| name)
}

pub(super) fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    quoted.join(", ")
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) => format!("the text `{}`", excerpt(text, 40)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// At most this many bytes of a text, marked where it was cut.
pub(super) fn excerpt(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(length)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_of_a_key_are_one_field() {
        for value in [json!({"at_most": 5}), json!({"atMost": 5})] {
            let fields = Spec::at(&["checks", "0"], &value)
                .fields(&["at_most"])
                .unwrap();
            assert_eq!(fields.get("at_most").unwrap().count(), Ok(5));
        }
    }

    #[test]
    fn an_unknown_key_names_its_place_and_the_nearest_one() {
        let value = json!({"contians": "x"});
        let error = Spec::at(&["checks", "2", "output"], &value)
            .fields(&["contains", "equals"])
            .err()
            .unwrap();
        assert_eq!(error.path, ["checks", "2", "output", "contians"]);
        assert_eq!(error.message, "unknown key `contians`");
        assert_eq!(error.hint.unwrap(), "did you mean `contains`?");
    }

    #[test]
    fn a_key_in_two_spellings_is_refused() {
        let value = json!({"at_most": 5, "atMost": 6});
        assert!(Spec::at(&[], &value).fields(&["at_most"]).is_err());
    }
}
