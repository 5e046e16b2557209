//! The keys of a scenario file, and the scenarios that it expands to.

use super::document::Document;
use super::file_error::FileError;
use assize_contracts::{
    BaseScenario, DEFAULT_TIMEOUT_MS, GitSource, Sandbox, WorkspaceMethod, WorkspaceSpec,
    fill_template,
};
use assize_measures::SchemaCheck;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Keys of capabilities that are not there yet.
const LATER: &[&str] = &[];

/// A task for an agent.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Unique in the suite: lower-case letters, digits, `.`, `_`, `-`.
    pub id: String,
    /// A short title. Default: the id.
    pub name: Option<String>,
    /// The purpose of the scenario.
    #[serde(default)]
    pub description: String,
    /// The first user message. `{workspace}`, `{iteration}` and the names in `vars` are replaced.
    pub prompt: String,
    /// Values to go through: every combination is a scenario of its own, `id[name=value]`.
    #[serde(default)]
    pub vars: Map<String, Value>,
    /// Further user messages.
    #[serde(default)]
    pub turns: Vec<String>,
    /// The time limit of all turns together. Default: the suite's.
    #[serde(alias = "timeoutMs")]
    pub timeout_ms: Option<u64>,
    /// Retries of a void attempt. Default: the suite's.
    #[serde(alias = "allowedRetries")]
    pub allowed_retries: Option<u32>,
    /// For choosing scenarios.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The files the agent works on: a fresh copy for every attempt.
    pub workspace: Option<WorkspaceFile>,
    /// File with the JSON Schema of a valid answer.
    #[serde(alias = "outputSchema")]
    pub output_schema: Option<PathBuf>,
    /// Conditions that must hold afterwards.
    #[serde(default)]
    pub checks: Vec<Value>,
    /// The criteria of a judge: `instructions`, and `criteria` with `id`, `description`, and perhaps `scale` and `pass`.
    pub rubric: Option<Value>,
    /// The wall around the agent, instead of the mode's: `guard`, `none` or `{ container: { … } }`.
    pub sandbox: Option<Sandbox>,
    /// True when the skill on trial should be used here. Gives recall, precision and false triggers.
    #[serde(alias = "shouldTrigger")]
    pub should_trigger: Option<bool>,
    /// Whatever a plugin needs.
    #[serde(default)]
    pub extensions: Map<String, Value>,
}

/// The source of the agent's files: a directory, a git commit or nothing at all, then set-up commands.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceFile {
    /// A directory, relative to the suite.
    pub from: Option<String>,
    /// A commit of a repository on this machine.
    pub git: Option<GitSource>,
    /// The method by which every attempt gets its own view of it. Default: `auto`, the fastest that works on the machine.
    pub method: Option<WorkspaceMethod>,
    /// Commands run once per run, such as an installation; every attempt begins with what they left.
    #[serde(alias = "setupOnce")]
    pub setup_once: Vec<String>,
    /// Commands run in the workspace before the agent starts. One that fails makes the trial void.
    pub setup: Vec<String>,
    /// The time limit of each of them, in milliseconds. Default: 600000.
    #[serde(alias = "setupTimeoutMs")]
    pub setup_timeout_ms: Option<u64>,
    /// Variables for them, besides the usual ones and the mode's.
    pub environment: BTreeMap<String, String>,
}

impl WorkspaceFile {
    fn spec(&self, fill: impl Fn(&String) -> String) -> WorkspaceSpec {
        WorkspaceSpec {
            from: self.from.as_ref().map(&fill),
            git: self.git.as_ref().map(|git| GitSource {
                repo: fill(&git.repo),
                reference: fill(&git.reference),
            }),
            method: self.method,
            setup_once: self.setup_once.iter().map(&fill).collect(),
            setup: self.setup.iter().map(&fill).collect(),
            setup_timeout_ms: self.setup_timeout_ms,
            environment: self.environment.clone(),
        }
    }
}

/// The suite's defaults for scenarios.
pub(super) struct Defaults {
    pub(super) timeout_ms: Option<u64>,
    pub(super) allowed_retries: Option<u32>,
}

/// A scenario and the file it comes from.
#[derive(Debug)]
pub(super) struct LoadedScenario {
    pub(super) scenario: BaseScenario,
    pub(super) document: std::rc::Rc<Document>,
}

/// Reads a scenario file: one scenario per combination of its variables.
pub(super) fn load(
    document: Document,
    defaults: &Defaults,
) -> Result<Vec<LoadedScenario>, FileError> {
    let document = std::rc::Rc::new(document);
    if document.value().is_null() {
        let message = "the file is empty, expected a scenario with `id` and `prompt`";
        return Err(FileError::new(document.path(), message)
            .hint("`assize schema scenario` describes what a scenario can hold"));
    }
    if document.value().is_array() {
        let message = "found a list, expected one scenario with `id` and `prompt`";
        return Err(document
            .error(&[], message)
            .hint("write each scenario into a file of its own"));
    }
    let file: ScenarioFile = document.read_as(LATER)?;
    check(&document, &file)?;
    let schema = output_schema(&document, &file)?;
    let combinations = combinations(&document, &file.vars)?;
    let scenario = |values: Vec<(String, String)>| {
        let fill = |text: &String| fill_in(text, &values);
        BaseScenario {
            id: with_values(&file.id, &values),
            name: file.name.clone().unwrap_or_else(|| file.id.clone()),
            description: file.description.clone(),
            prompt: fill(&file.prompt),
            timeout_ms: file
                .timeout_ms
                .or(defaults.timeout_ms)
                .unwrap_or(DEFAULT_TIMEOUT_MS),
            allowed_retries: file
                .allowed_retries
                .or(defaults.allowed_retries)
                .unwrap_or(0),
            tags: file.tags.clone(),
            extensions: file.extensions.clone(),
            turns: file.turns.iter().map(fill).collect(),
            workspace: file
                .workspace
                .as_ref()
                .map(|workspace| workspace.spec(fill)),
            output_schema: schema.clone(),
            checks: file
                .checks
                .iter()
                .map(|check| fill_in_value(check, &values))
                .collect(),
            rubric: file
                .rubric
                .as_ref()
                .map(|rubric| fill_in_value(rubric, &values)),
            sandbox: file.sandbox.clone(),
            should_trigger: file.should_trigger,
        }
    };
    let loaded = |values| LoadedScenario {
        scenario: scenario(values),
        document: document.clone(),
    };
    Ok(combinations.into_iter().map(loaded).collect())
}

fn check(document: &Document, file: &ScenarioFile) -> Result<(), FileError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    if file.id.is_empty() || !file.id.chars().all(is_plain) {
        let message = format!(
            "found the id {:?}, expected lower-case letters, digits, `.`, `_` and `-` only",
            file.id
        );
        let kept: String = file
            .id
            .to_lowercase()
            .chars()
            .map(|c| if is_plain(c) { c } else { '-' })
            .collect();
        let name = kept.trim_matches(|c| "-.".contains(c)).to_owned();
        let error = document.error(&["id"], message);
        return Err(if name.is_empty() {
            error
        } else {
            error.hint(format!("for example `{name}`"))
        });
    }
    if file.prompt.trim().is_empty() {
        return Err(document.error(&["prompt"], "the prompt is empty"));
    }
    if file.timeout_ms == Some(0) {
        return Err(document.error(&["timeout_ms"], "found 0, expected at least 1 ms"));
    }
    Ok(())
}

fn output_schema(document: &Document, file: &ScenarioFile) -> Result<Option<Value>, FileError> {
    let Some(path) = &file.output_schema else {
        return Ok(None);
    };
    let path = document.path().with_file_name("").join(path);
    let schema = Document::read(&path).map_err(|error| {
        let message = format!("the schema is no use: {error}");
        document.error(&["output_schema"], message)
    })?;
    SchemaCheck::new(schema.value())
        .map_err(|found| schema.explain(&found.path, &found.message, &[]))?;
    Ok(Some(schema.value().clone()))
}

/// Every combination of the variables' values, in the order of the file. One empty combination without variables.
fn combinations(
    document: &Document,
    vars: &Map<String, Value>,
) -> Result<Vec<Vec<(String, String)>>, FileError> {
    const MOST: usize = 10_000;
    let mut combinations = vec![Vec::new()];
    for (name, values) in vars {
        let values: Vec<String> = match values {
            Value::Array(items) if !items.is_empty() => items.iter().map(as_text).collect(),
            Value::Array(_) => {
                return Err(document.error(&["vars", name], "found an empty list, expected values"));
            }
            single => vec![as_text(single)],
        };
        if combinations.len() * values.len() > MOST {
            let message = format!("the variables have more than {MOST} combinations");
            return Err(document.error(&["vars"], message));
        }
        combinations = combinations
            .into_iter()
            .flat_map(|known: Vec<(String, String)>| {
                values.iter().map(move |value| {
                    let mut longer = known.clone();
                    longer.push((name.clone(), value.clone()));
                    longer
                })
            })
            .collect();
    }
    Ok(combinations)
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn with_values(id: &str, values: &[(String, String)]) -> String {
    if values.is_empty() {
        return id.to_owned();
    }
    let is_plain = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if is_plain(c) { c } else { '-' })
            .collect()
    };
    let pairs: Vec<String> = values
        .iter()
        .map(|(name, value)| format!("{}={}", plain(name), plain(value)))
        .collect();
    format!("{id}[{}]", pairs.join(","))
}

fn fill_in(text: &str, values: &[(String, String)]) -> String {
    fill_template(text, |wanted| {
        let found = values.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| Cow::Borrowed(value.as_str()))
    })
}

fn fill_in_value(value: &Value, values: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => Value::String(fill_in(text, values)),
        Value::Array(items) => items
            .iter()
            .map(|item| fill_in_value(item, values))
            .collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| (key.clone(), fill_in_value(item, values)))
            .collect(),
        other => other.clone(),
    }
}
