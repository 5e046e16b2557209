//! How numbers are taken from a trial.

use crate::{BaseScenario, BoxError, Number, PromptResult, SessionTrace};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Extracts metrics from a finished session.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a collector",
    note = "implement `Collector` with `#[assize_contracts::async_trait]` above the impl"
)]
pub trait Collector: Send + Sync {
    /// The name under which suites use it.
    fn id(&self) -> &str;

    /// Called once per attempt, in the order of registration, before analyzers and scorer; trials concurrently.
    ///
    /// `result` is all turns merged; after a failure it holds what is known. `trace` is absent when export is off or
    /// failed. Must have no side effects and be quick. An error loses this collector's metrics for the trial, no more.
    async fn collect(
        &self,
        result: &PromptResult,
        scenario: &BaseScenario,
        mode: &str,
        trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError>;
}

/// One metric of one trial. Its name becomes a key of the row's `extensions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CustomMetric {
    /// Unique among all collectors of a suite; the last one wins.
    pub name: String,
    /// Numbers are aggregated, texts are kept.
    pub value: MetricValue,
    /// For display: `count`, `ms`, `USD`, `tokens`, `ratio`.
    pub unit: Cow<'static, str>,
}

impl CustomMetric {
    /// A numeric metric. `None` for a number that is not finite: it was not measured.
    pub fn number(
        name: impl Into<String>,
        value: f64,
        unit: impl Into<Cow<'static, str>>,
    ) -> Option<Self> {
        let value = MetricValue::Number(Number::new(value)?);
        Some(Self {
            name: name.into(),
            value,
            unit: unit.into(),
        })
    }
}

/// A metric's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum MetricValue {
    /// Aggregated over trials.
    Number(Number),
    /// Kept as a label.
    Text(String),
}
