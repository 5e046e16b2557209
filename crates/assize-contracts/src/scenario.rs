//! Scenarios: the tasks of agents.

use crate::{AtomicTask, JsonMap, Sandbox};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The time limit of a session when neither scenario nor suite sets one.
pub const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// One task for an agent, resolved: every default filled in, every variable replaced.
///
/// The fields down to `extensions` are what every plugin may rely on; the rest is Assize's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BaseScenario {
    /// Unique in the suite.
    pub id: String,
    /// A short title.
    #[serde(default)]
    pub name: String,
    /// The purpose of the scenario.
    #[serde(default)]
    pub description: String,
    /// The first user message.
    pub prompt: String,
    /// The time limit for all turns together.
    #[serde(default = "default_timeout")]
    pub timeout_ms: u64,
    /// Retries of a void attempt.
    #[serde(default)]
    pub allowed_retries: u32,
    /// For choosing scenarios.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whatever a plugin needs to know; scorers get it as `metadata`.
    #[serde(default)]
    pub extensions: JsonMap,
    /// Further user messages, sent one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
    /// The files the agent works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceSpec>,
    /// JSON Schema of a valid answer; decides `outputValid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The checks, in the form the `checks` scorer reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Value>,
    /// The rubric, in the form the `judge` scorer reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<Value>,
    /// The wall around the agent, where it is another than the mode's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// True when the skill on trial should be used. Absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_trigger: Option<bool>,
}

fn default_timeout() -> u64 {
    DEFAULT_TIMEOUT_MS
}

impl BaseScenario {
    /// A scenario of an id and a prompt, all else at its default.
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: String::new(),
            description: String::new(),
            prompt: prompt.into(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            allowed_retries: 0,
            tags: Vec::new(),
            extensions: JsonMap::new(),
            turns: Vec::new(),
            workspace: None,
            output_schema: None,
            checks: Vec::new(),
            rubric: None,
            sandbox: None,
            should_trigger: None,
        }
    }

    /// A task as providers and scorers see it: its input is the prompt, and what else they look for (`checks`, `rubric`,
    /// `outputSchema`) lies in its extensions.
    pub fn of_task(task: &AtomicTask) -> Self {
        let scenario = Self {
            name: task.name.clone(),
            timeout_ms: task.metadata.timeout.unwrap_or(DEFAULT_TIMEOUT_MS),
            tags: task.metadata.tags.clone().unwrap_or_default(),
            ..Self::new(task.id.clone(), as_text(&task.input))
        };
        scenario.with_extensions(task.extensions.clone().unwrap_or_default())
    }

    /// The same with extensions, and with what scorers look for in them.
    pub fn with_extensions(self, extensions: JsonMap) -> Self {
        let checks = extensions.get("checks").and_then(Value::as_array);
        Self {
            checks: checks.cloned().unwrap_or_default(),
            rubric: extensions.get("rubric").cloned(),
            output_schema: extensions.get("outputSchema").cloned(),
            extensions,
            ..self
        }
    }
}

/// A value as an agent reads it: text as it is, anything else as JSON.
pub fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The source of an agent's files: a directory, a git commit or nothing at all, then set-up commands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WorkspaceSpec {
    /// A directory that is copied afresh for every attempt, relative to the suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// A commit that is checked out afresh for every attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// The method that gives an attempt its own view of the source. Default: `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<WorkspaceMethod>,
    /// Commands run once per run; every attempt begins with what they left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup_once: Vec<String>,
    /// Commands run in the workspace before the agent starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// The time limit of each of them. Default: ten minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_timeout_ms: Option<u64>,
    /// Environment of the set-up commands.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

impl WorkspaceSpec {
    /// True if it begins with files that are prepared once, and not with an empty directory.
    pub fn has_source(&self) -> bool {
        self.from.is_some() || self.git.is_some() || !self.setup_once.is_empty()
    }
}

/// The method that gives every attempt a directory of its own. The agent finds the same files by every method.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceMethod {
    /// The first of the others that works on the machine.
    #[default]
    Auto,
    /// An overlay mount, which only programs started by Assize see.
    Overlay,
    /// A copy that shares blocks with its source.
    Reflink,
    /// A copy that is brought back to its beginning after every attempt.
    Recycle,
    /// A fresh copy for every attempt.
    Copy,
}

/// A commit in a repository on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitSource {
    /// Path of the repository, relative to the suite.
    pub repo: String,
    /// Branch, tag or commit.
    #[serde(rename = "ref")]
    pub reference: String,
}
