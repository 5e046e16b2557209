//! Configurations of promptfoo: prompts, tests with variables, and those assertions that have an equivalent.

use super::assertion::{Made, made_of, unused_keys};
use super::cases::{Cases, inside, read_value};
use super::evals_json::{one_or_many, rubric};
use crate::commands::UsageError;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Combinations of variables of one test.
const MOST_COMBINATIONS: usize = 1_000;

pub(super) fn read(path: &Path) -> Result<Cases> {
    let file = match path.is_dir() {
        true => [
            "promptfooconfig.yaml",
            "promptfooconfig.yml",
            "promptfooconfig.json",
        ]
        .iter()
        .map(|name| path.join(name))
        .find(|file| file.is_file()),
        false => Some(path.to_owned()),
    };
    let Some(file) = file else {
        let message = format!("`{}` has no promptfooconfig.yaml", path.display());
        return Err(UsageError::new(message).into());
    };
    let value = read_value(&file)?;
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut reader = Reader {
        directory,
        cases: Cases::default(),
        default: Value::Null,
    };
    reader.default = reader.default_test(&value)?;
    let prompts = reader.prompts(&value)?;
    let tests = reader.tests(&value)?;
    for (number, test) in tests.iter().enumerate() {
        for (place, prompt) in prompts.iter().enumerate() {
            let id = match prompts.len() {
                1 => format!("test-{}", number + 1),
                _ => format!("test-{}-prompt-{}", number + 1, place + 1),
            };
            reader.test(&id, prompt, test);
        }
    }
    for key in value.as_object().into_iter().flat_map(|map| map.keys()) {
        let known = [
            "prompts",
            "tests",
            "defaultTest",
            "description",
            "providers",
            "targets",
        ];
        if !known.contains(&key.as_str()) && !key.starts_with('$') {
            reader
                .cases
                .left_out("configuration", format!("`{key}` has no equivalent"));
        }
    }
    for key in ["providers", "targets"] {
        if let Some(providers) = value.get(key) {
            let reason =
                format!("{key} {providers}: choose an agent in the suite (`provider`, `modes`)");
            reader.cases.left_out("configuration", reason);
        }
    }
    reader.cases.name_apart();
    Ok(reader.cases)
}

struct Reader<'a> {
    directory: &'a Path,
    cases: Cases,
    default: Value,
}

impl Reader<'_> {
    /// The keys that hold for every test.
    fn default_test(&mut self, value: &Value) -> Result<Value> {
        let default = match value.get("defaultTest") {
            Some(Value::String(reference)) => {
                let path = reference.strip_prefix("file://").unwrap_or(reference);
                let is_data = ["yaml", "yml", "json"]
                    .iter()
                    .any(|end| path.ends_with(end));
                match inside(path).filter(|_| is_data) {
                    Some(path) => read_value(&self.directory.join(path))?,
                    None => {
                        let reason = format!("`{reference}` is not read");
                        self.cases.left_out("defaultTest", reason);
                        Value::Null
                    }
                }
            }
            Some(default) => default.clone(),
            None => Value::Null,
        };
        self.note_unused(&default, "defaultTest");
        Ok(default)
    }

    /// Lists keys of a test that have no equivalent, and those whose form is not known.
    fn note_unused(&mut self, test: &Value, place: &str) {
        for (key, value) in test.as_object().into_iter().flatten() {
            let reason = match key.as_str() {
                "description" | "assert" => continue,
                "vars" if value.is_object() || value.is_null() => continue,
                "vars" => format!("`vars` are {value}, not names with values"),
                _ => format!("`{key}` has no equivalent"),
            };
            self.cases.left_out(place, reason);
        }
    }

    fn prompts(&mut self, value: &Value) -> Result<Vec<String>> {
        let listed = match value.get("prompts") {
            Some(Value::Array(prompts)) => prompts.clone(),
            Some(one) => vec![one.clone()],
            None => Vec::new(),
        };
        let mut prompts = Vec::new();
        for prompt in &listed {
            let text = match prompt {
                Value::String(text) => text.clone(),
                other => match other.get("raw").and_then(Value::as_str) {
                    Some(raw) => raw.to_owned(),
                    None => {
                        self.cases
                            .left_out("prompts", format!("{other} is no text"));
                        continue;
                    }
                },
            };
            let is_file =
                |text: &str| inside(text).is_some_and(|path| self.directory.join(path).is_file());
            let path = text.strip_prefix("file://");
            match path.or_else(|| is_file(&text).then_some(text.as_str())) {
                None => prompts.push(text),
                Some(path) => match self.file(path) {
                    // A text file may hold several prompts.
                    Some(found) if path.ends_with(".txt") => {
                        let parts = found.split("\n---\n").map(str::trim);
                        let parts = parts.filter(|part| !part.is_empty());
                        prompts.extend(parts.map(str::to_owned));
                    }
                    Some(found) => prompts.push(found),
                    None => self
                        .cases
                        .left_out("prompts", format!("`{path}` cannot be read as a text")),
                },
            }
        }
        prompts.retain(|prompt| {
            let is_chat = is_chat(prompt);
            if is_chat {
                let reason = "a prompt is a chat of several messages; write it as `turns`";
                self.cases.left_out("prompts", reason);
            }
            !is_chat
        });
        match prompts.is_empty() {
            true => Err(UsageError::new("the configuration has no prompt that is a text").into()),
            false => Ok(prompts),
        }
    }

    fn tests(&mut self, value: &Value) -> Result<Vec<Value>> {
        let mut tests = Vec::new();
        let listed = match value.get("tests") {
            Some(Value::Array(tests)) => tests.clone(),
            Some(one) => vec![one.clone()],
            None => Vec::new(),
        };
        for test in listed {
            let Some(reference) = test.as_str() else {
                tests.push(test);
                continue;
            };
            let path = reference.strip_prefix("file://").unwrap_or(reference);
            let is_list = ["yaml", "yml", "json"]
                .iter()
                .any(|ending| path.ends_with(ending));
            match inside(path).filter(|_| is_list) {
                Some(path) => match read_value(&self.directory.join(path))? {
                    Value::Array(more) => tests.extend(more),
                    one => tests.push(one),
                },
                None => self
                    .cases
                    .left_out("tests", format!("`{reference}` is not read")),
            }
        }
        if tests.is_empty() {
            tests.push(json!({}));
        }
        Ok(tests)
    }

    fn test(&mut self, id: &str, prompt: &str, test: &Value) {
        let place = match test.get("description").and_then(Value::as_str) {
            Some(description) => format!("{id} ({description})"),
            None => id.to_owned(),
        };
        let mut vars = object(&self.default["vars"]);
        vars.extend(object(&test["vars"]));
        for (number, values) in self.combinations(&vars, &place).into_iter().enumerate() {
            let filled = match self.fill(prompt, &values) {
                Ok(filled) => filled,
                Err(reason) => {
                    self.cases.left_out(&place, reason);
                    continue;
                }
            };
            let name = if number == 0 {
                id.to_owned()
            } else {
                format!("{id}-{}", number + 1)
            };
            let mut scenario = json!({"id": name, "prompt": filled, "workspace": {}});
            if let Some(description) = test.get("description").and_then(Value::as_str) {
                scenario["name"] = description.into();
            }
            self.assertions(&mut scenario, test, &values, &place);
            self.cases.scenarios.push(scenario);
        }
        self.note_unused(test, &place);
    }

    fn assertions(
        &mut self,
        scenario: &mut Value,
        test: &Value,
        values: &[(String, String)],
        place: &str,
    ) {
        let (mut checks, mut criteria) = (Vec::new(), Vec::new());
        let of = |test: &Value| one_or_many(&test["assert"]).to_vec();
        for assertion in of(&self.default).into_iter().chain(of(test)) {
            let assertion = filled_in(&assertion, values);
            let parts = match assertion["type"] == "assert-set" {
                true => of(&assertion),
                false => vec![assertion],
            };
            for part in parts {
                if has_places(&part) {
                    let reason = "the value of {} uses a template that only promptfoo can fill";
                    let kind = part["type"].to_string();
                    self.cases.left_out(place, reason.replace("{}", &kind));
                    continue;
                }
                let unused = unused_keys(&part).into_iter();
                unused.for_each(|reason| self.cases.left_out(place, reason));
                match made_of(&part) {
                    Made::Checks(made) => checks.extend(made),
                    Made::Criterion(text) => criteria.push(text),
                    Made::Nothing(reason) => self.cases.left_out(place, reason),
                }
                if part.get("threshold").is_some()
                    && part["type"] != "cost"
                    && part["type"] != "latency"
                {
                    self.cases
                        .left_out(place, format!("the threshold of {}", part["type"]));
                }
            }
        }
        if !checks.is_empty() {
            scenario["checks"] = checks.into();
        }
        if !criteria.is_empty() {
            scenario["rubric"] = rubric("", &criteria);
        }
    }

    /// Every combination of the values of variables that are lists.
    fn combinations(
        &mut self,
        vars: &Map<String, Value>,
        place: &str,
    ) -> Vec<Vec<(String, String)>> {
        let mut all: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (name, value) in vars {
            let values: Vec<String> = match value {
                Value::Array(items) => items
                    .iter()
                    .filter_map(|item| self.value(item, name, place))
                    .collect(),
                one => self.value(one, name, place).into_iter().collect(),
            };
            if values.is_empty() || all.len() * values.len() > MOST_COMBINATIONS {
                self.cases.left_out(
                    place,
                    format!("the variable `{name}` has no values, or too many"),
                );
                continue;
            }
            all = all
                .into_iter()
                .flat_map(|known| {
                    let name = name.clone();
                    values.iter().map(move |value| {
                        let mut longer = known.clone();
                        longer.push((name.clone(), value.clone()));
                        longer
                    })
                })
                .collect();
        }
        all
    }

    fn value(&mut self, value: &Value, name: &str, place: &str) -> Option<String> {
        let Some(text) = value.as_str() else {
            return Some(value.to_string());
        };
        let Some(path) = text.strip_prefix("file://") else {
            return Some(text.to_owned());
        };
        let found = self.file(path);
        if found.is_none() {
            let reason = format!("the variable `{name}`: `{path}` cannot be read as a text");
            self.cases.left_out(place, reason);
        }
        found
    }

    /// A text beside the configuration. Programs are not read.
    fn file(&self, path: &str) -> Option<String> {
        let path = inside(path)?;
        let is_text = path.extension().is_some_and(|ending| {
            ["txt", "md", "json", "yaml", "yml", "csv"]
                .iter()
                .any(|known| ending == *known)
        });
        is_text.then(|| std::fs::read_to_string(self.directory.join(path)).ok())?
    }

    fn fill(&self, prompt: &str, values: &[(String, String)]) -> Result<String, String> {
        let filled = substituted(prompt, values);
        match filled.contains("{%") || filled.contains("{{") {
            true => Err("its prompt uses a template that only promptfoo can fill".to_owned()),
            false => Ok(filled),
        }
    }
}

/// Messages with roles, as JSON.
fn is_chat(prompt: &str) -> bool {
    let read: Result<Vec<Value>, _> = serde_json::from_str(prompt);
    read.is_ok_and(|messages| {
        let mut messages = messages.iter();
        messages.any(|message| message.get("role").is_some())
    })
}

/// True when a text of an assertion still has a place for a variable.
fn has_places(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(has_places),
        Value::Object(map) => map.values().any(has_places),
        _ => false,
    }
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Replaces `{{ name }}` once, so that a value is never a template itself.
fn substituted(text: &str, values: &[(String, String)]) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let inside = &rest[start + 2..];
        let Some(end) = inside.find("}}") else {
            break;
        };
        let name = inside[..end].trim();
        let value = values.iter().find(|(known, _)| known == name);
        filled.push_str(&rest[..start]);
        match value {
            Some((_, value)) => filled.push_str(value),
            None => filled.push_str(&rest[start..start + end + 4]),
        }
        rest = &inside[end + 2..];
    }
    filled.push_str(rest);
    filled
}

fn filled_in(value: &Value, values: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => substituted(text, values).into(),
        Value::Array(items) => items.iter().map(|item| filled_in(item, values)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| (key.clone(), filled_in(item, values)))
            .collect(),
        other => other.clone(),
    }
}
