//! The parts of an ATIF document that are read. Unknown keys are ignored; a step that cannot be read is left out.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
pub(super) struct Trajectory {
    pub(super) schema_version: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) trajectory_id: Option<String>,
    #[serde(default)]
    pub(super) agent: Option<Agent>,
    pub(super) steps: Vec<Value>,
    pub(super) final_metrics: Option<FinalMetrics>,
    pub(super) continued_trajectory_ref: Option<Value>,
    #[serde(default)]
    pub(super) subagent_trajectories: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) extra: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Agent {
    #[serde(default)]
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) model_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Step {
    pub(super) source: Source,
    pub(super) timestamp: Option<String>,
    pub(super) model_name: Option<String>,
    #[serde(default)]
    pub(super) message: Value,
    pub(super) reasoning_content: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<ToolCall>>,
    pub(super) observation: Option<Observation>,
    pub(super) metrics: Option<Metrics>,
    #[serde(default)]
    pub(super) is_copied_context: Option<bool>,
    pub(super) llm_call_count: Option<u64>,
    #[serde(default)]
    pub(super) extra: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    System,
    User,
    Agent,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCall {
    #[serde(default)]
    pub(super) tool_call_id: Option<String>,
    pub(super) function_name: String,
    #[serde(default)]
    pub(super) arguments: Value,
    #[serde(default)]
    pub(super) extra: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Observation {
    #[serde(default)]
    pub(super) results: Vec<ObservationResult>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ObservationResult {
    pub(super) source_call_id: Option<String>,
    #[serde(default)]
    pub(super) content: Value,
    #[serde(default)]
    pub(super) subagent_trajectory_ref: Option<Value>,
    #[serde(default)]
    pub(super) extra: Value,
}

impl ObservationResult {
    /// The ids of the trajectories that the result refers to.
    pub(super) fn subagents(&self) -> Vec<&str> {
        let references = match &self.subagent_trajectory_ref {
            Some(Value::Array(references)) => references.as_slice(),
            Some(reference) => std::slice::from_ref(reference),
            None => &[],
        };
        let named = references.iter().filter_map(|reference| {
            let of = |key: &str| reference.get(key).filter(|id| id.is_string());
            of("trajectory_id").or_else(|| of("session_id"))?.as_str()
        });
        named.collect()
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Metrics {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) cost_usd: Option<f64>,
    #[serde(default)]
    pub(super) extra: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FinalMetrics {
    pub(super) total_prompt_tokens: Option<u64>,
    pub(super) total_completion_tokens: Option<u64>,
    pub(super) total_cached_tokens: Option<u64>,
}

/// The text of a message or result: a string, or a list of parts. Pictures and sound are left out.
pub(super) fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![text],
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        _ => Vec::new(),
    }
}

/// The number of parts that are no text.
pub(super) fn media(content: &Value) -> usize {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_media = |part: &&Value| part.get("type").and_then(Value::as_str) != Some("text");
    parts.iter().filter(is_media).count()
}
