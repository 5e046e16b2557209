//! Texts and values with places to fill in from a task: `{input}`, `{input.text}`, `{context.user}`.

use assize_contracts::{AtomicTask, TemplatePiece, as_text, split_template};
use serde_json::Value;

/// The pieces of a template. Braces that name nothing in a task stay as they are.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Place(Vec<String>),
}

impl Template {
    pub(super) fn parse(text: &str) -> Self {
        let piece = |piece| match piece {
            TemplatePiece::Text(text) => Piece::Text(str::to_owned(text)),
            TemplatePiece::Value(path) => Piece::Place(path),
        };
        Self(split_template(text, place).into_iter().map(piece).collect())
    }

    /// The text with everything filled in. An error names what the task does not have.
    pub(super) fn text(&self, task: &AtomicTask) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Place(path) => text.push_str(&as_text(look_up(task, path)?)),
            }
        }
        Ok(text)
    }

    /// The same, where a template of a single placeholder becomes the value itself, of whatever type.
    fn value(&self, task: &AtomicTask) -> Result<Value, String> {
        match &self.0[..] {
            [Piece::Place(path)] => look_up(task, path).cloned(),
            _ => self.text(task).map(Value::String),
        }
    }
}

/// The prompt of a model or an agent: a template, or else the input of the task as it is.
pub(super) struct Prompt(Option<Template>);

impl Prompt {
    pub(super) fn parse(text: Option<&str>) -> Self {
        Self(text.map(Template::parse))
    }

    pub(super) fn text(&self, task: &AtomicTask) -> Result<String, String> {
        match &self.0 {
            Some(template) => template.text(task),
            None => Ok(as_text(&task.input)),
        }
    }
}

/// A value whose texts are templates.
#[derive(Debug, Clone)]
pub(super) enum ValueTemplate {
    Fixed(Value),
    Text(Template),
    List(Vec<ValueTemplate>),
    Map(Vec<(String, ValueTemplate)>),
}

impl ValueTemplate {
    pub(super) fn parse(value: &Value) -> Self {
        let parsed = match value {
            Value::String(text) => {
                let template = Template::parse(text);
                match template
                    .0
                    .iter()
                    .any(|piece| matches!(piece, Piece::Place(_)))
                {
                    true => return Self::Text(template),
                    false => return Self::Fixed(value.clone()),
                }
            }
            Value::Array(items) => Self::List(items.iter().map(Self::parse).collect()),
            Value::Object(map) => {
                let entry = |(key, value): (&String, &Value)| (key.clone(), Self::parse(value));
                Self::Map(map.iter().map(entry).collect())
            }
            scalar => return Self::Fixed(scalar.clone()),
        };
        // A value without placeholders is copied as a whole.
        match parsed.is_fixed() {
            true => Self::Fixed(value.clone()),
            false => parsed,
        }
    }

    fn is_fixed(&self) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::Text(_) => false,
            Self::List(items) => items.iter().all(Self::is_fixed),
            Self::Map(entries) => entries.iter().all(|(_, value)| value.is_fixed()),
        }
    }

    pub(super) fn value(&self, task: &AtomicTask) -> Result<Value, String> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::Text(template) => template.value(task),
            Self::List(items) => items.iter().map(|item| item.value(task)).collect(),
            Self::Map(entries) => {
                let filled = entries
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), value.value(task)?)));
                filled.collect::<Result<_, String>>().map(Value::Object)
            }
        }
    }
}

/// The path that a placeholder names in a task.
fn place(text: &str) -> Option<Vec<String>> {
    let path: Vec<String> = text.split('.').map(str::to_owned).collect();
    let is_known = ["input", "context"].contains(&&*path[0]);
    (is_known && path.iter().all(|part| !part.is_empty())).then_some(path)
}

fn look_up<'a>(task: &'a AtomicTask, path: &[String]) -> Result<&'a Value, String> {
    let missing = || format!("the task has no `{}`", path.join("."));
    let (root, rest) = path.split_first().ok_or_else(missing)?;
    let (value, rest) = match (&**root, rest.split_first()) {
        ("input", _) => (Some(&task.input), rest),
        (_, Some((name, rest))) => (task.context.as_ref().and_then(|map| map.get(name)), rest),
        _ => (None, rest),
    };
    part(value.ok_or_else(missing)?, rest).ok_or_else(missing)
}

/// The value at a path: keys and list positions.
pub(super) fn part<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| match value {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}
