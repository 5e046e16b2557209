//! Scores of one execution.

use crate::{CustomMetric, JsonMap, Metric, Number, RunRecord, SCHEMA_VERSION, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// One score with its evidence. A line of `scores.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScoreRecord {
    /// Version of the record's form. Absent in foreign ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    /// Unique.
    pub id: String,
    /// The run record it scores.
    pub run_id: String,
    /// The metric, e.g. `accuracy`.
    pub metric: String,
    /// The score.
    pub value: ScoreValue,
    /// The part of the execution that is scored.
    pub target: ScoreTarget,
    /// Evidence for the score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The evaluator.
    pub evaluator_id: String,
    /// Time of scoring.
    pub created_at: Timestamp,
    /// Unit, direction and words, where the evaluator of this process knows them. Runs keep them in their manifest.
    #[serde(skip)]
    pub meaning: Option<Arc<Metric>>,
}

impl ScoreRecord {
    /// A score of an execution. The engine fills in ids and times.
    pub fn new(
        run: &RunRecord,
        metric: impl Into<String>,
        value: impl Into<ScoreValue>,
        target: ScoreTarget,
    ) -> Self {
        Self {
            schema_version: Some(SCHEMA_VERSION),
            id: String::new(),
            run_id: run.id.clone(),
            metric: metric.into(),
            value: value.into(),
            target,
            evidence: None,
            evaluator_id: String::new(),
            created_at: Timestamp::default(),
            meaning: None,
        }
    }

    /// The same with what a scorer says about its metric.
    pub fn meaning(mut self, metric: &CustomMetric) -> Self {
        self.meaning = Some(Arc::new(metric.into()));
        self
    }

    /// The same with the reason for it.
    pub fn because(mut self, evidence: Evidence) -> Self {
        self.evidence = Some(evidence);
        self
    }
}

impl From<bool> for ScoreValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Number> for ScoreValue {
    fn from(value: Number) -> Self {
        Self::Number(value)
    }
}

impl From<String> for ScoreValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// A score's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ScoreValue {
    /// Holds or not.
    Bool(bool),
    /// The amount.
    Number(Number),
    /// A label.
    Text(String),
}

/// The part of an execution that a score is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScoreTarget {
    /// The final output.
    Final,
    /// The whole process.
    Global,
    /// One step: `step:<id>`.
    Step(String),
}

impl Serialize for ScoreTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Final => serializer.serialize_str("final"),
            Self::Global => serializer.serialize_str("global"),
            Self::Step(id) => serializer.collect_str(&format_args!("step:{id}")),
        }
    }
}

impl<'de> Deserialize<'de> for ScoreTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "final" => Ok(Self::Final),
            "global" => Ok(Self::Global),
            other => match other.strip_prefix("step:") {
                Some(id) if !id.is_empty() => Ok(Self::Step(id.to_owned())),
                _ => Err(serde::de::Error::custom(format!(
                    "unknown target `{other}`, expected `final`, `global` or `step:<id>`"
                ))),
            },
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ScoreTarget {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ScoreTarget".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "The part of an execution that a score is about.",
            "type": "string",
            "pattern": "^(final|global|step:.+)$"
        })
    }
}

/// Evidence for a score, for people to follow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The passages that decided it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippets: Option<Vec<String>>,
    /// The values that were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<JsonMap>,
}

impl Evidence {
    /// A reason in words.
    pub fn explained(explanation: impl Into<String>) -> Self {
        Self {
            explanation: Some(explanation.into()),
            ..Self::default()
        }
    }

    /// The same with what was compared with what.
    pub fn aligned(mut self, alignment: JsonMap) -> Self {
        self.alignment = Some(alignment);
        self
    }
}
