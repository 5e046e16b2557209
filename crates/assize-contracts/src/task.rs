//! Tasks of the lab: a single capability, or a chain of them with explicit data flow.

use crate::JsonMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Either kind of task. The only two there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Task {
    /// A chain of capabilities.
    Scenario(ScenarioTask),
    /// A single capability.
    Atomic(AtomicTask),
}

impl Task {
    /// Unique in the suite.
    pub fn id(&self) -> &str {
        match self {
            Self::Scenario(task) => &task.id,
            Self::Atomic(task) => &task.id,
        }
    }

    /// A short title.
    pub fn name(&self) -> &str {
        match self {
            Self::Scenario(task) => &task.name,
            Self::Atomic(task) => &task.name,
        }
    }

    /// For choosing tasks.
    pub fn tags(&self) -> Vec<&str> {
        match self {
            Self::Atomic(task) => task
                .metadata
                .tags
                .iter()
                .flatten()
                .map(|tag| &**tag)
                .collect(),
            Self::Scenario(task) => {
                let tags = task.metadata.get("tags").and_then(Value::as_array);
                tags.into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect()
            }
        }
    }

    /// Higher runs in an earlier block. 0 when the task does not say.
    pub fn priority(&self) -> i64 {
        let priority = match self {
            Self::Atomic(task) => task.metadata.priority,
            Self::Scenario(task) => task.metadata.get("priority").and_then(Value::as_i64),
        };
        priority.unwrap_or(0)
    }

    /// Time limit in milliseconds.
    pub fn timeout_ms(&self) -> Option<u64> {
        match self {
            Self::Atomic(task) => task.metadata.timeout,
            Self::Scenario(task) => task.metadata.get("timeout").and_then(Value::as_u64),
        }
    }

    /// Conditions over scores under which it counts as passed.
    pub fn pass(&self) -> &[String] {
        match self {
            Self::Scenario(task) => &task.pass,
            Self::Atomic(task) => &task.pass,
        }
    }

    /// The atomic tasks in it: itself, or the steps of a chain.
    pub fn atoms(&self) -> &[AtomicTask] {
        match self {
            Self::Scenario(task) => &task.steps,
            Self::Atomic(task) => std::slice::from_ref(task),
        }
    }
}

impl ScenarioTask {
    /// The value that `input:` paths refer to.
    pub fn scenario_input(&self) -> Option<&Value> {
        self.input
            .as_ref()
            .or_else(|| self.metadata.get("scenarioInput"))
    }
}

/// A task for a single capability.
///
/// A module's own fields belong into `extensions`; any other unknown field is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AtomicTask {
    /// Unique in the suite.
    pub id: String,
    /// A short title.
    pub name: String,
    /// The capability, e.g. `intent`; a runner serves one.
    pub r#type: String,
    /// The input of the capability.
    pub input: Value,
    /// The expected output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// More that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonMap>,
    /// Labels and limits.
    pub metadata: TaskMetadata,
    /// Fields of the module's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonMap>,
    /// Conditions over scores under which the task counts as passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
}

/// Labels and limits of an atomic task. Any other field is an error.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct TaskMetadata {
    /// For choosing tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Higher runs in an earlier block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Time limit in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// A chain of atomic tasks whose data flow is declared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScenarioTask {
    /// Unique in the suite.
    pub id: String,
    /// A short title.
    pub name: String,
    /// The purpose of the chain.
    pub description: String,
    /// Done in this order.
    pub steps: Vec<AtomicTask>,
    /// For each step, what is put into its input and from where.
    #[serde(rename = "input_map")]
    pub input_map: BTreeMap<String, Vec<InputMapping>>,
    /// `tags`, `priority`, `timeout` and `scenarioInput`, and labels of the author's own.
    pub metadata: JsonMap,
    /// The value that `input:` paths refer to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Fields of the module's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonMap>,
    /// Conditions over scores under which the task counts as passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
}

/// One piece of data on its way into a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InputMapping {
    /// `step:previous`, `step:<id>.output.path` or `input:<path>`.
    pub from: String,
    /// `input` or `input.path`.
    pub to: String,
}
