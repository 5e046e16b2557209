//! `classification`: the label that came out and the expected one. The results of all together (accuracy, F1,
//! the confusion matrix) are part of the summary.

use super::{Measure, Seen, config_error, part, read};
use assize_contracts::{
    BoxError, ConfigError, EvaluatorSetup, Evidence, JsonMap, ScoreRecord, ScoreTarget, as_text,
};
use serde::Deserialize;

/// The label of executions that gave none.
const NONE: &str = "(none)";

/// Longer labels are cut: they are no labels.
const LONGEST: usize = 100;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// The path of the label in output and expectation.
    path: Option<String>,
    metric: Option<String>,
}

pub(super) struct Labels {
    path: Option<String>,
    metric: String,
}

impl Labels {
    pub(super) fn new(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        let Settings { path, metric } = read(setup)?;
        if metric.as_deref() == Some("") {
            return Err(config_error("`metric`: expected a name"));
        }
        Ok(Self {
            path,
            metric: metric.unwrap_or_else(|| "label".to_owned()),
        })
    }
}

impl Measure for Labels {
    fn metrics(&self) -> Vec<String> {
        vec![self.metric.clone()]
    }

    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError> {
        let path = self.path.as_deref();
        let label = |value: &serde_json::Value| -> Option<String> {
            let text = as_text(part(value, path)?);
            Some(text.chars().take(LONGEST).collect())
        };
        let Some(expected) = seen.expected.and_then(label) else {
            return Ok(Vec::new());
        };
        let actual = seen
            .output()
            .and_then(label)
            .unwrap_or_else(|| NONE.to_owned());
        let alignment = JsonMap::from_iter([
            ("expected".to_owned(), expected.clone().into()),
            ("actual".to_owned(), actual.clone().into()),
        ]);
        let evidence = Evidence::explained(format!("expected `{expected}`, found `{actual}`"));
        let score = ScoreRecord::new(seen.run, &self.metric, actual, ScoreTarget::Final);
        Ok(vec![score.because(evidence.aligned(alignment))])
    }
}
