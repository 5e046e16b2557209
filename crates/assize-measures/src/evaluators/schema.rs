//! `schema`: the output has the form that a JSON Schema asks for.

use super::{Measure, Seen, config_error, part, read};
use crate::SchemaCheck;
use assize_contracts::{BoxError, ConfigError, EvaluatorSetup, Evidence, ScoreRecord, ScoreTarget};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The schema itself, or the name of its file.
    schema: Value,
    #[serde(default)]
    path: Option<String>,
}

pub(super) struct Valid {
    path: Option<String>,
    schema: SchemaCheck,
}

impl Valid {
    pub(super) fn new(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        let Settings { schema, path } = read(setup)?;
        let schema = match schema {
            Value::String(name) => {
                let unreadable =
                    |reason: String| config_error(format!("`schema`: `{name}`: {reason}"));
                let text = std::fs::read(setup.directory.join(&name))
                    .map_err(|error| unreadable(error.to_string()))?;
                serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?
            }
            inline => inline,
        };
        Ok(Self {
            path,
            schema: SchemaCheck::new(&schema)?,
        })
    }
}

impl Measure for Valid {
    fn metrics(&self) -> Vec<String> {
        vec!["schema_valid".to_owned()]
    }

    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError> {
        let output = seen
            .output()
            .and_then(|output| part(output, self.path.as_deref()));
        let complaint = match (output, seen.output()) {
            (Some(output), _) => self.schema.complaint(output),
            (None, Some(_)) => Some("there is nothing at the path".to_owned()),
            (None, None) => Some(seen.failure()),
        };
        let is_valid = complaint.is_none();
        let explanation = complaint.unwrap_or_else(|| "the output fits the schema".to_owned());
        let score = ScoreRecord::new(seen.run, "schema_valid", is_valid, ScoreTarget::Final);
        Ok(vec![score.because(Evidence::explained(explanation))])
    }
}
