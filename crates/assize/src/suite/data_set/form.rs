//! Turns the content of a file into tasks: missing parts are filled in, mistakes are reported.

use super::Reading;
use crate::suite::file_error::nearest;
use assize_contracts::{AtomicTask, ConfigError, JsonMap, Task, TaskMetadata};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::Path;

/// Longer ids are a mistake.
const LONGEST_ID: usize = 200;

/// Defaults of tasks that leave parts out.
pub(super) struct Form {
    defaults: JsonMap,
}

/// An atomic task as people write it into lines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: Option<String>,
    name: Option<String>,
    r#type: Option<String>,
    input: Value,
    #[serde(default)]
    expected: Option<Value>,
    #[serde(default)]
    context: Option<JsonMap>,
    #[serde(default)]
    metadata: Option<TaskMetadata>,
    #[serde(default)]
    extensions: Option<JsonMap>,
    #[serde(default)]
    pass: Vec<String>,
}

impl Form {
    pub(super) fn new(reading: &Reading<'_>) -> Self {
        let mut defaults = reading.spec.defaults.clone();
        if let Some(only) = reading.only_type {
            defaults.entry("type").or_insert_with(|| only.into());
        }
        Self { defaults }
    }

    /// A task from a line of JSON.
    pub(super) fn parse(&self, bytes: &[u8], path: &Path) -> Result<Task, ConfigError> {
        // Most lines are whole atomic tasks; everything else takes the long way, which also knows what is wrong.
        if self.defaults.keys().all(|key| key == "type")
            && let Ok(line) = serde_json::from_slice::<Line>(bytes)
            && let Some(task) = self.of_line(line)
        {
            return checked(Task::Atomic(task));
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let message = error.to_string();
            let message = message
                .split(" at line ")
                .next()
                .unwrap_or(&message)
                .to_owned();
            ConfigError::at([""; 0], format!("not JSON: {message}"))
        })?;
        self.of_value(value, path)
    }

    fn of_line(&self, line: Line) -> Option<AtomicTask> {
        let id = line.id?;
        let default = || self.defaults.get("type")?.as_str().map(str::to_owned);
        Some(AtomicTask {
            name: line.name.unwrap_or_else(|| id.clone()),
            id,
            r#type: line.r#type.or_else(default)?,
            input: line.input,
            expected: line.expected,
            context: line.context,
            metadata: line.metadata.unwrap_or_default(),
            extensions: line.extensions,
            pass: line.pass,
        })
    }

    /// A task from a value: a chain if it has steps.
    pub(super) fn of_value(&self, value: Value, path: &Path) -> Result<Task, ConfigError> {
        let Value::Object(mut map) = value else {
            return Err(ConfigError::at(
                [""; 0],
                "expected a task with `id`, `type` and `input`",
            ));
        };
        if !map.contains_key("id") {
            let id = id_of_content(&map, path);
            map.insert("id".to_owned(), id.into());
        }
        if map.contains_key("steps") {
            for (key, usual) in [("description", json!("")), ("input_map", json!({}))] {
                map.entry(key).or_insert(usual);
            }
            for step in map
                .get_mut("steps")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                if let Value::Object(step) = step {
                    self.fill_in(step);
                }
            }
            name_it(&mut map);
            return read(Value::Object(map))
                .map(Task::Scenario)
                .and_then(checked);
        }
        self.fill_in(&mut map);
        read(Value::Object(map)).map(Task::Atomic).and_then(checked)
    }

    fn fill_in(&self, map: &mut JsonMap) {
        for (key, value) in &self.defaults {
            map.entry(key.clone()).or_insert_with(|| value.clone());
        }
        name_it(map);
    }
}

fn name_it(map: &mut JsonMap) {
    map.entry("metadata").or_insert_with(|| json!({}));
    if let Some(id) = map.get("id").cloned() {
        map.entry("name").or_insert(id);
    }
}

/// Stays the same wherever the task is in the file.
fn id_of_content(map: &JsonMap, path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let text = serde_json::to_vec(map).unwrap_or_default();
    format!("{stem}-{}", &blake3::hash(&text).to_hex()[..12])
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, ConfigError> {
    serde_path_to_error::deserialize(&value).map_err(|error| {
        let path = error.path().iter().map(ToString::to_string);
        let message = error.inner().to_string();
        let mut error = ConfigError::at(path.filter(|part| part != "?"), message);
        explain_unknown(&mut error);
        error
    })
}

/// A field that tasks do not have: a slip, or one of a module's own.
fn explain_unknown(error: &mut ConfigError) {
    let Some(rest) = error.message.strip_prefix("unknown field `") else {
        return;
    };
    let mut names = rest.split('`');
    let name = names.next().unwrap_or_default().to_owned();
    let known: Vec<&str> = names.skip(1).step_by(2).collect();
    let meant = nearest(&name, known).map(|name| format!("did you mean `{name}`? "));
    error.hint = Some(format!(
        "{}fields of a module's own belong into `extensions`",
        meant.unwrap_or_default()
    ));
    if error.path.last() == Some(&name) {
        error.path.pop();
    }
    error.message = format!("unknown field `{name}`");
}

/// A key in the metadata of a chain that is more than a label, and the value it must have.
type Meaning = (&'static str, &'static str, fn(&Value) -> bool);

const MEANINGS: [Meaning; 4] = [
    ("tags", "a list of texts", |value| {
        value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string))
    }),
    ("priority", "a whole number", Value::is_i64),
    ("timeout", "milliseconds as a whole number", Value::is_u64),
    ("scenarioInput", "any value", |_| true),
];

/// The metadata of a chain may hold anything, so a slip would go unnoticed: what looks like one is none of the author's own labels.
fn check_labels(metadata: &JsonMap) -> Result<(), ConfigError> {
    for (key, value) in metadata {
        let place = ["metadata", key.as_str()];
        match MEANINGS.iter().find(|(name, ..)| name == key) {
            Some((_, expected, is_right)) if !is_right(value) => {
                let message = format!("found {value}, expected {expected}");
                return Err(ConfigError::at(place, message));
            }
            Some(_) => {}
            None => {
                let known = MEANINGS.iter().map(|(name, ..)| *name);
                if let Some(meant) = nearest(key, known) {
                    let message = format!("unknown field `{key}`");
                    let mut error = ConfigError::at(["metadata"], message);
                    error.hint = Some(format!(
                        "did you mean `{meant}`? fields of a module's own belong into `extensions`"
                    ));
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

fn checked(task: Task) -> Result<Task, ConfigError> {
    if let Task::Scenario(chain) = &task {
        check_labels(&chain.metadata)?;
    }
    let id = task.id();
    let is_plain = !id.trim().is_empty() && !id.chars().any(char::is_control);
    if is_plain && id.len() <= LONGEST_ID {
        return Ok(task);
    }
    let shown: String = id.chars().take(40).collect();
    Err(ConfigError::at(
        ["id"],
        format!("found the id {shown:?}, expected visible text of at most {LONGEST_ID} bytes"),
    ))
}
