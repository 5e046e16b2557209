//! Evaluators: what an execution of a task is worth. Each is a plain function of the record and of what was expected.
//!
//! An evaluator that needs an expectation says nothing about tasks that have none. A chain as a whole is held against the
//! expectation of its last step.

mod budget;
mod classification;
mod exact;
mod json_subset;
mod numeric;
mod schema;
mod scorer;
mod text;
mod threshold;

#[cfg(test)]
mod tests;

pub use scorer::ScorerEvaluator;

use assize_contracts::{
    AtomicTask, BoxError, ConfigError, Evaluator, EvaluatorSetup, JsonMap, Number, Plugins,
    RunRecord, RunStatus, ScenarioTask, ScoreRecord, async_trait,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// The score that the default rule of passing looks at.
const ACCURACY: &str = "accuracy";

/// The length of a value shown as evidence, in characters.
const EXCERPT: usize = 200;

/// Adds all evaluators of this crate.
pub(crate) fn register(plugins: Plugins) -> Plugins {
    let version = env!("CARGO_PKG_VERSION");
    plugins
        .evaluator_with("exact", version, &[ACCURACY], made(exact::Exact::new))
        .evaluator_with(
            "json-subset",
            version,
            &[ACCURACY],
            made(json_subset::JsonSubset::new),
        )
        .evaluator_with(
            "numeric",
            version,
            &[ACCURACY, "absolute_error"],
            made(numeric::Numeric::new),
        )
        .evaluator_with("threshold", version, &[], made(threshold::Threshold::new))
        .evaluator_with(
            "text",
            version,
            &["text_match", "token_f1", "edit_similarity"],
            made(text::Text::new),
        )
        .evaluator_with(
            "schema",
            version,
            &["schema_valid"],
            made(schema::Valid::new),
        )
        .evaluator_with(
            "latency",
            version,
            &["latency"],
            made(budget::Budget::latency),
        )
        .evaluator_with("tokens", version, &["tokens"], made(budget::Budget::tokens))
        .evaluator_with("cost", version, &["cost"], made(budget::Budget::cost))
        .evaluator_with(
            "classification",
            version,
            &["label"],
            made(classification::Labels::new),
        )
}

type Made = Result<Arc<dyn Evaluator>, ConfigError>;

/// A maker of evaluators out of a maker of measures.
fn made<M: Measure + 'static>(
    make: impl Fn(&EvaluatorSetup<'_>) -> Result<M, ConfigError> + Send + Sync + 'static,
) -> impl Fn(&EvaluatorSetup<'_>) -> Made + Send + Sync + 'static {
    move |setup| {
        let measure = make(setup)?;
        Ok(Arc::new(Plain {
            id: setup.id.to_owned(),
            metrics: measure.metrics(),
            measure,
        }))
    }
}

/// An evaluator of this crate: a function.
trait Measure: Send + Sync {
    /// The metrics it gives.
    fn metrics(&self) -> Vec<String>;

    /// An error means that the score is unknown.
    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError>;
}

/// The input of a measure.
struct Seen<'a> {
    run: &'a RunRecord,
    expected: Option<&'a Value>,
}

impl<'a> Seen<'a> {
    /// The output. `None` for an execution that failed.
    fn output(&self) -> Option<&'a Value> {
        match self.run.status {
            RunStatus::Completed => Some(self.run.output.as_ref().unwrap_or(&Value::Null)),
            _ => None,
        }
    }

    /// The reason why there is no output.
    fn failure(&self) -> String {
        match &self.run.error {
            Some(error) => format!("there is no output: {}", error.message),
            None => "there is no output".to_owned(),
        }
    }
}

struct Plain<M> {
    id: String,
    metrics: Vec<String>,
    measure: M,
}

#[async_trait]
impl<M: Measure> Evaluator for Plain<M> {
    fn id(&self) -> &str {
        &self.id
    }

    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn evaluate(
        &self,
        run: &RunRecord,
        task: &AtomicTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        self.measure.scores(&Seen {
            run,
            expected: task.expected.as_ref(),
        })
    }

    async fn evaluate_scenario(
        &self,
        run: &RunRecord,
        task: &ScenarioTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let last = task.steps.last();
        self.measure.scores(&Seen {
            run,
            expected: last.and_then(|step| step.expected.as_ref()),
        })
    }
}

/// Reads an evaluator's configuration.
fn read<T: DeserializeOwned>(setup: &EvaluatorSetup<'_>) -> Result<T, ConfigError> {
    let value = Value::Object(setup.config.clone());
    serde_json::from_value(value).map_err(|error| config_error(error.to_string()))
}

fn config_error(message: impl Into<String>) -> ConfigError {
    ConfigError::at([""; 0], message)
}

/// The part of a value that a configuration names: keys and list positions between dots. Without a path, all of it.
fn part<'a>(value: &'a Value, path: Option<&str>) -> Option<&'a Value> {
    let Some(path) = path else {
        return Some(value);
    };
    path.split('.').try_fold(value, |value, name| match value {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// 1 for what is right, 0 for what is not.
fn right(is_right: bool) -> Number {
    Number::from(u64::from(is_right))
}

/// A share of a whole. Without a whole everything is right.
fn share(count: usize, total: usize) -> Number {
    match total {
        0 => Number::from(1),
        total => Number::new(count as f64 / total as f64).unwrap_or_default(),
    }
}

/// The beginning of a value as JSON.
fn shown(value: Option<&Value>) -> String {
    let text = value.map_or("nothing".to_owned(), ToString::to_string);
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Expected and actual side by side.
fn side_by_side(expected: &Value, actual: Option<&Value>) -> JsonMap {
    JsonMap::from_iter([
        ("expected".to_owned(), expected.clone()),
        ("actual".to_owned(), actual.cloned().unwrap_or(Value::Null)),
    ])
}
