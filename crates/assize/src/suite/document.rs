//! A file as a JSON value, with the place of everything in it. YAML, TOML and JSON look the same from here on.

use super::file_error::{FileError, Place, suggestion};
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Files of people are small; anything larger belongs into a workspace.
const LARGEST_FILE: u64 = 16 << 20;

/// Names of keys and list positions, from the outside in.
type Keys = Vec<String>;

/// A parsed file.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    value: Value,
    places: HashMap<Keys, Place>,
}

impl Document {
    /// Reads a file; its extension decides the format.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let unreadable =
            |error: std::io::Error| FileError::new(path, format!("cannot be read: {error}"));
        let size = std::fs::metadata(path).map_err(unreadable)?.len();
        if size > LARGEST_FILE {
            let message = format!("has {size} bytes, expected at most {LARGEST_FILE}");
            return Err(FileError::new(path, message)
                .hint("put large inputs into files of the workspace and name them in the prompt"));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        Self::parse(path, &bytes)
    }

    /// Parses the content of a file.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, FileError> {
        let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(path, bytes, &error))?;
        // Some editors begin files with a mark of their encoding.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let node = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => parse_toml(path, text)?,
            Some("json") => parse_json(path, text)?,
            _ => parse_yaml(path, text)?,
        };
        let mut places = HashMap::new();
        let value = node.into_value(&mut Vec::new(), &mut places);
        Ok(Self {
            path: path.to_owned(),
            value,
            places,
        })
    }

    /// Content that is in no file; `path` is the name that it would have.
    pub(crate) fn unwritten(path: PathBuf, value: Value) -> Self {
        Self {
            path,
            value,
            places: HashMap::new(),
        }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's content.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Replaces the content; places stay.
    pub(super) fn with_value(mut self, value: Value) -> Self {
        self.value = value;
        self
    }

    /// The place of a key or list position, or of the nearest known one around it.
    pub fn place(&self, keys: &[&str]) -> Option<Place> {
        (0..=keys.len()).rev().find_map(|length| {
            let keys: Keys = keys[..length].iter().map(|key| (*key).to_owned()).collect();
            self.places.get(&keys).copied()
        })
    }

    /// An error at a key or list position.
    pub fn error(&self, keys: &[&str], message: impl Into<String>) -> FileError {
        FileError::new(&self.path, message).at(self.place(keys))
    }

    /// The content as a typed value. `later` are keys of capabilities that are not there yet.
    pub fn read_as<T: DeserializeOwned>(&self, later: &[&str]) -> Result<T, FileError> {
        serde_path_to_error::deserialize(&self.value).map_err(|error| {
            let keys: Vec<String> = error
                .path()
                .iter()
                .map(ToString::to_string)
                .filter(|key| key != "?")
                .collect();
            self.explain(&keys, &error.inner().to_string(), later)
        })
    }

    /// Turns a message of serde into one for people.
    pub(crate) fn explain(&self, keys: &[String], message: &str, later: &[&str]) -> FileError {
        let mut path: Vec<&str> = keys.iter().map(String::as_str).collect();
        if let Some(name) = quoted_after(message, "unknown field ") {
            if path.last() != Some(&name) {
                path.push(name);
            }
            let known: Vec<&str> = message
                .split_once("expected")
                .map(|(_, list)| list.split('`').skip(1).step_by(2).collect())
                .unwrap_or_default();
            let inside = match path.len() {
                0 | 1 => String::new(),
                _ => format!(" in `{}`", path[..path.len() - 1].join(".")),
            };
            if later.contains(&name) {
                let message = format!("`{name}`{inside} is not available yet");
                return self.error(&path, message).hint("leave it out for now");
            }
            let error = self.error(&path, format!("unknown key `{name}`{inside}"));
            let known = without_twins(&known);
            if let Some(hint) = belongs_elsewhere(name, &path[..path.len() - 1]) {
                return error.hint(hint);
            }
            return error.with_hint(suggestion(name, &known));
        }
        let place = if path.is_empty() {
            String::new()
        } else {
            format!("`{}`: ", path.join("."))
        };
        let words = in_plain_words(message);
        let error = self.error(&path, format!("{place}{words}"));
        error.with_hint(way_out(&path, &words))
    }
}

/// The text to write instead, where the message alone does not show it.
fn way_out(path: &[&str], words: &str) -> Option<String> {
    if let Some(key) = words.strip_prefix("missing key `") {
        let key = key.split('`').next().unwrap_or_default();
        return Some(format!("add `{key}: …`"));
    }
    let (found, expected) = words.split_once(", expected ")?;
    let text = found.strip_prefix("found the text \"");
    let text = text.and_then(|text| text.strip_suffix('"'));
    let number = found.strip_prefix("found the number `");
    let hint = match (expected, text, number) {
        ("a whole number", _, Some(number)) if number.starts_with('-') => "write 0 or more",
        ("a whole number", _, Some(number)) if number.contains('.') => {
            "write it without a fraction"
        }
        ("a whole number", _, Some(_)) => "write a smaller number",
        ("a whole number" | "a number", ..) => "write digits only, without quotes or units",
        ("`true` or `false`", ..) => "write `true` or `false`, without quotes",
        ("a list", Some(text), _) => return Some(as_list(path, text)),
        ("a list", ..) => "write `[ …, … ]`, or one line with `- …` for each",
        ("keys and values", Some(text), _) if path == ["scenarios"] => {
            return Some(format!("write `scenarios: {{ paths: [\"{text}\"] }}`"));
        }
        ("keys and values", Some(text), _) if path == ["workspace"] => {
            return Some(format!("write `workspace: {{ from: {text} }}`"));
        }
        ("keys and values", ..) => {
            "write `{ key: value }`, or one indented line `key: value` for each"
        }
        ("text", ..) if found == "found a list" => {
            "write one text; `|` behind the key allows several lines"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// A text as the list it was meant to be; a command in its words.
fn as_list(path: &[&str], text: &str) -> String {
    let words = match path.last() {
        Some(&"command") => shlex::split(text).unwrap_or_default(),
        _ => vec![text.to_owned()],
    };
    let words: Vec<String> = words
        .iter()
        .map(|word| Value::from(word.as_str()).to_string())
        .collect();
    format!("write `[{}]`", words.join(", "))
}

/// Keys of suites that people look for in other places than they have.
fn belongs_elsewhere(key: &str, inside: &[&str]) -> Option<String> {
    const EXECUTION: [&str; 8] = [
        "repetitions",
        "concurrency",
        "order",
        "seed",
        "warmup",
        "until",
        "budget",
        "limits",
    ];
    const SCENARIO: [&str; 9] = [
        "allowed_retries",
        "checks",
        "output_schema",
        "prompt",
        "rubric",
        "tags",
        "turns",
        "vars",
        "workspace",
    ];
    let in_mode = inside.len() == 2 && inside[0] == "modes";
    Some(match key {
        key if inside.is_empty() && EXECUTION.contains(&key) => {
            format!("it belongs into `execution`: `execution: {{ {key}: … }}`")
        }
        key if inside.is_empty() && SCENARIO.contains(&key) => {
            "it belongs to a scenario, in a file that `scenarios: { paths: [ … ] }` names".to_owned()
        }
        "results_dir" if inside.is_empty() => {
            "it belongs into `output`: `output: { results_dir: … }`".to_owned()
        }
        "model" if in_mode || inside.is_empty() => {
            "it belongs to the provider: `provider: { uses: …, model: … }`; `models: [ …, … ]` of the suite compares several"
                .to_owned()
        }
        "system_instructions" if inside.is_empty() => {
            "it belongs to a mode: `modes: { careful: { system_instructions: … } }`".to_owned()
        }
        "system_prompt" | "prompt" if in_mode => {
            "instructions of a mode are `system_instructions`; prompts are in scenarios".to_owned()
        }
        "paths" if inside.is_empty() => {
            "it belongs into `scenarios`: `scenarios: { paths: [ … ] }`".to_owned()
        }
        "uses" if inside.is_empty() => {
            "it belongs into `provider`: `provider: { uses: … }`".to_owned()
        }
        "timeout_ms" => {
            "it belongs to a scenario; `execution: { timeout_default_ms: … }` is for all".to_owned()
        }
        _ => return None,
    })
}

/// Many keys may be written in two ways; one of them is enough to read.
fn without_twins<'a>(known: &[&'a str]) -> Vec<&'a str> {
    let snake = |key: &str| {
        let mut text = String::new();
        for letter in key.chars() {
            if letter.is_ascii_uppercase() {
                text.push('_');
            }
            text.push(letter.to_ascii_lowercase());
        }
        text
    };
    let is_twin = |key: &&&str| key.contains(char::is_uppercase) && known.contains(&&*snake(key));
    known.iter().filter(|key| !is_twin(key)).copied().collect()
}

fn quoted_after<'a>(message: &'a str, start: &str) -> Option<&'a str> {
    message.strip_prefix(start)?.split('`').nth(1)
}

/// serde names Rust types; people do not.
fn in_plain_words(message: &str) -> String {
    let mut words = without_types(message);
    for (technical, plain) in [
        ("invalid type: ", "found "),
        ("invalid value: ", "found "),
        ("expected f32", "expected a number"),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected `true` or `false`"),
        ("expected a string", "expected text"),
        ("expected a borrowed string", "expected text"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected keys and values"),
        ("expected any valid JSON value", "expected a value"),
        ("found integer", "found the number"),
        ("found floating point", "found the number"),
        ("found string", "found the text"),
        ("found boolean", "found"),
        ("found unit", "found nothing"),
        ("found null", "found nothing"),
        ("found sequence", "found a list"),
        ("found map", "found keys and values"),
        ("missing field", "missing key"),
        ("unknown variant", "unknown value"),
    ] {
        words = words.replace(technical, plain);
    }
    if words.contains("expected text") && words.contains("found the number") {
        words.push_str(" (put it into quotes)");
    }
    words
}

/// The message without the names of types, which are no business of people who write files.
fn without_types(message: &str) -> String {
    const WHOLE: [&str; 10] = [
        "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize",
    ];
    if message.starts_with("data did not match any variant") {
        return "found something else than any of the forms that are possible here".to_owned();
    }
    let Some((before, expected)) = message.split_once("expected ") else {
        return message.to_owned();
    };
    let (first, rest) = expected.split_once(' ').unwrap_or((expected, ""));
    let plain = match first {
        "struct" | "map" | "internally" | "adjacently" => "keys and values",
        "tuple" | "newtype" => "a list",
        "enum" => "a name",
        "variant" => "a name",
        "unit" => "nothing",
        number if WHOLE.contains(&number) && rest.is_empty() => "a whole number",
        number if WHOLE.contains(&number) => {
            return format!("{before}expected a whole number {rest}");
        }
        _ => return message.to_owned(),
    };
    format!("{before}expected {plain}")
}

fn not_utf8(path: &Path, bytes: &[u8], error: &std::str::Utf8Error) -> FileError {
    let before = &bytes[..error.valid_up_to()];
    let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |place| place + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() as u64 + 1;
    let message = format!("the byte 0x{:02x} is not UTF-8", bytes[error.valid_up_to()]);
    FileError::new(path, message)
        .at(Some(Place { line, column }))
        .hint("save the file as UTF-8")
}

/// A value with its place.
#[derive(Debug)]
struct Node {
    place: Option<Place>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug)]
struct Entry {
    key: String,
    place: Option<Place>,
    node: Node,
}

impl Node {
    fn into_value(self, keys: &mut Keys, places: &mut HashMap<Keys, Place>) -> Value {
        if let Some(place) = self.place {
            places.entry(keys.clone()).or_insert(place);
        }
        match self.kind {
            Kind::Scalar(value) => value,
            Kind::List(nodes) => nodes
                .into_iter()
                .enumerate()
                .map(|(number, node)| {
                    keys.push(number.to_string());
                    let value = node.into_value(keys, places);
                    keys.pop();
                    value
                })
                .collect(),
            Kind::Map(entries) => {
                let mut map = Map::new();
                for Entry { key, place, node } in entries {
                    keys.push(key);
                    if let Some(place) = place {
                        places.insert(keys.clone(), place);
                    }
                    let value = node.into_value(keys, places);
                    map.extend(keys.pop().map(|key| (key, value)));
                }
                Value::Object(map)
            }
        }
    }
}

fn parse_yaml(path: &Path, text: &str) -> Result<Node, FileError> {
    serde_saphyr::from_str_with_options(text, yaml_options()).map_err(|error| {
        let place = error.location().map(place_of);
        let message = error.without_snippet().to_string();
        // The place is printed in front; the library has it at the end.
        let message = message.split(" at line ").next().unwrap_or(&message);
        let line = place.and_then(|place| text.lines().nth(place.line as usize - 1));
        let error = FileError::new(path, about_yaml(message, line)).at(place);
        error.with_hint(hint_about_yaml(message))
    })
}

fn hint_about_yaml(message: &str) -> Option<&'static str> {
    let says = |part: &str| message.contains(part);
    Some(match () {
        () if says("tabs disallowed") || says("tab character") => "write spaces instead of the tab",
        () if says("block mapping") || says("block collection") => {
            "give it as many spaces as the lines beside it have"
        }
        () if says("mapping values are not allowed") => "put the text into quotes",
        () if says("flow mapping") => {
            "close it with `}`; text with a colon, a comma or a brace needs quotes"
        }
        () if says("flow sequence") => {
            "close it with `]`; text with a comma or a bracket needs quotes"
        }
        () if says("quoted scalar") => {
            "close it; an apostrophe inside single quotes is written twice, as in 'it''s'"
        }
        () if says("unclosed bracket") => "close it",
        () if says("duplicate mapping key") => "keep one of them, or give one another name",
        () if says("multiple YAML documents") => "write what follows `---` into a file of its own",
        () => return None,
    })
}

/// The message of the YAML reader, for people who write it, and the line it stumbled over.
fn about_yaml(message: &str, line: Option<&str>) -> String {
    let twice = message.strip_prefix("duplicate mapping key: ");
    let twice = twice.map(|rest| rest.split(", set ").next().unwrap_or(rest));
    let twice = twice.map(|key| format!("the key `{key}` is given twice"));
    let plain = match message {
        _ if twice.is_some() => twice.as_deref().unwrap_or_default(),
        text if text.contains("multiple YAML documents") => {
            "found a second document after `---`, expected one per file"
        }
        text if text.contains("tabs disallowed") || text.contains("tab character") => {
            "found a tab, expected spaces: YAML is indented by spaces only"
        }
        text if text.contains("block mapping") || text.contains("block collection") => {
            "the line is indented differently from the lines it belongs to"
        }
        text if text.contains("mapping values are not allowed") => {
            "found a second `:`, expected one key per line (text with a colon needs quotes)"
        }
        text if text.contains("simple key") => "expected a key and `:`",
        text if text.contains("flow mapping") => "a `{` is never closed, or a comma is missing",
        text if text.contains("flow sequence") => "a `[` is never closed, or a comma is missing",
        text if text.contains("quoted scalar") => "a quote is never closed",
        text => text,
    };
    match line
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty())
    {
        Some(line) => format!("{plain}; the line is `{}`", line.replace('\t', "→")),
        None => plain.to_owned(),
    }
}

fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        // `no` is a country, not a falsehood.
        strict_booleans: true,
        with_snippet: false,
    }
}

fn place_of(location: serde_saphyr::Location) -> Place {
    Place {
        line: location.line(),
        column: location.column(),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<Kind>::deserialize(deserializer)?;
        let place = (referenced.line() > 0).then(|| place_of(referenced));
        Ok(Self { place, kind: value })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        Kind::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Kind, E> {
        Err(E::custom(format!("the number {value} is too large")))
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Kind, E> {
        Err(E::custom(format!("the number {value} is too large")))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Kind, E> {
        let number = Number::from_f64(value);
        number
            .map(|number| Kind::Scalar(number.into()))
            .ok_or_else(|| E::custom("expected a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Kind::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = items.next_key::<Spanned<String>>()? {
            let place = (key.referenced.line() > 0).then(|| place_of(key.referenced));
            if !seen.insert(key.value.clone()) {
                return Err(A::Error::custom(format!(
                    "the key `{}` is given twice",
                    key.value
                )));
            }
            entries.push(Entry {
                key: key.value,
                place,
                node: items.next_value()?,
            });
        }
        Ok(Kind::Map(entries))
    }
}

/// JSON itself decides what is valid; since YAML contains it, the YAML reader can find the places.
fn parse_json(path: &Path, text: &str) -> Result<Node, FileError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let place = Place {
            line: error.line() as u64,
            column: error.column() as u64,
        };
        let message = error.to_string();
        let message = message
            .split(" at line ")
            .next()
            .unwrap_or(&message)
            .to_owned();
        let hint = match message.as_str() {
            "expected value" if place.line == 1 && place.column == 1 => {
                "this is no JSON; a file in YAML is called .yaml, one in TOML .toml"
            }
            "trailing comma" => "remove the last comma",
            "EOF while parsing an object" | "EOF while parsing a list" => {
                "a bracket is never closed"
            }
            "key must be a string" => "put keys into double quotes",
            _ => "JSON has double quotes around keys and texts, and a comma between items",
        };
        FileError::new(path, message).at(Some(place)).hint(hint)
    })?;
    let located = serde_saphyr::from_str_with_options::<Node>(text, yaml_options()).ok();
    Ok(with_places(value, located))
}

fn with_places(value: Value, located: Option<Node>) -> Node {
    let (place, kind) = match located {
        Some(Node { place, kind }) => (place, Some(kind)),
        None => (None, None),
    };
    let kind = match (value, kind) {
        (Value::Array(values), Some(Kind::List(nodes))) if values.len() == nodes.len() => {
            let pairs = values.into_iter().zip(nodes);
            Kind::List(
                pairs
                    .map(|(value, node)| with_places(value, Some(node)))
                    .collect(),
            )
        }
        (Value::Array(values), _) => Kind::List(
            values
                .into_iter()
                .map(|value| with_places(value, None))
                .collect(),
        ),
        (Value::Object(map), located) => {
            let mut entries: HashMap<String, Entry> = match located {
                Some(Kind::Map(entries)) => entries
                    .into_iter()
                    .map(|entry| (entry.key.clone(), entry))
                    .collect(),
                _ => HashMap::new(),
            };
            let entry = |(key, value): (String, Value)| {
                let located = entries.remove(&key);
                let place = located.as_ref().and_then(|entry| entry.place);
                Entry {
                    node: with_places(value, located.map(|entry| entry.node)),
                    key,
                    place,
                }
            };
            Kind::Map(map.into_iter().map(entry).collect())
        }
        (scalar, _) => Kind::Scalar(scalar),
    };
    Node { place, kind }
}

fn parse_toml(path: &Path, text: &str) -> Result<Node, FileError> {
    let lines = LineStarts::new(text);
    let table = toml::de::DeTable::parse(text).map_err(|error| {
        let place = error.span().map(|span| lines.place(text, span.start));
        FileError::new(path, error.message()).at(place)
    })?;
    let whole = toml::Spanned::new(table.span(), toml::de::DeValue::Table(table.into_inner()));
    toml_node(path, text, &lines, whole)
}

fn toml_node(
    path: &Path,
    text: &str,
    lines: &LineStarts,
    spanned: toml::Spanned<toml::de::DeValue<'_>>,
) -> Result<Node, FileError> {
    use toml::de::DeValue;
    let place = Some(lines.place(text, spanned.span().start));
    let wrong = |message: String| FileError::new(path, message).at(place);
    let kind = match spanned.into_inner() {
        DeValue::String(text) => Kind::Scalar(text.into_owned().into()),
        DeValue::Boolean(value) => Kind::Scalar(value.into()),
        DeValue::Datetime(value) => Kind::Scalar(value.to_string().into()),
        DeValue::Integer(value) => {
            let number = i64::from_str_radix(value.as_str(), value.radix());
            let number = number.map_err(|_| wrong(format!("the number {value} is too large")))?;
            Kind::Scalar(number.into())
        }
        DeValue::Float(value) => {
            let number = value.as_str().parse().ok().and_then(Number::from_f64);
            let number =
                number.ok_or_else(|| wrong(format!("found {value}, expected a finite number")))?;
            Kind::Scalar(number.into())
        }
        DeValue::Array(items) => {
            let nodes: Result<Vec<Node>, FileError> = items
                .into_iter()
                .map(|item| toml_node(path, text, lines, item))
                .collect();
            Kind::List(nodes?)
        }
        DeValue::Table(table) => {
            let mut items: Vec<_> = table.into_iter().collect();
            items.sort_by_key(|(key, _)| key.span().start);
            let mut entries = Vec::new();
            for (key, value) in items {
                let place = Some(lines.place(text, key.span().start));
                let node = toml_node(path, text, lines, value)?;
                entries.push(Entry {
                    key: key.into_inner().into_owned(),
                    place,
                    node,
                });
            }
            Kind::Map(entries)
        }
    };
    Ok(Node { place, kind })
}

/// The starts of lines, to turn offsets into places.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(text: &str) -> Self {
        Self(
            std::iter::once(0)
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
        )
    }

    fn place(&self, text: &str, offset: usize) -> Place {
        let line = self.0.partition_point(|start| *start <= offset).max(1);
        let column = text
            .get(self.0[line - 1]..offset)
            .map_or(0, |before| before.chars().count());
        Place {
            line: line as u64,
            column: column as u64 + 1,
        }
    }
}
