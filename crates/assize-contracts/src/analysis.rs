//! Findings of analyzers.

use crate::Number;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Findings of one analyzer in one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AnalysisResult {
    /// The analyzer's name.
    pub analyzer: String,
    /// Findings by key; keys carry the analyzer's own prefix.
    pub findings: BTreeMap<String, AnalysisFinding>,
    /// One sentence for quick scanning.
    pub summary: String,
}

/// One finding, in a form that a report can show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AnalysisFinding {
    /// A quantity.
    Number {
        /// The amount.
        value: Number,
        /// Of what.
        unit: String,
    },
    /// A word or sentence.
    String {
        /// The text.
        value: String,
    },
    /// Several texts.
    List {
        /// In order.
        values: Vec<String>,
    },
    /// Rows and columns.
    Table {
        /// Column titles.
        headers: Vec<String>,
        /// Rows of cells.
        rows: Vec<Vec<String>>,
    },
    /// A share of something.
    Ratio {
        /// Usually between 0 and 1.
        value: Number,
        /// Numerator and denominator in words.
        label: String,
    },
}

/// All that was found in one session: a line of `analysis.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionAnalysisBundle {
    /// Version of the record's form. Absent in foreign ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    /// The session looked at.
    pub session_id: String,
    /// Its scenario.
    pub scenario_id: String,
    /// Its mode.
    pub mode: String,
    /// Its model.
    pub model: String,
    /// The repetition. Absent in foreign records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<i64>,
    /// Results by analyzer.
    pub results: BTreeMap<String, AnalysisResult>,
}
