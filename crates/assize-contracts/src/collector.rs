//! Collectors: metrics of a trial.

use crate::{BaseScenario, Better, BoxError, MetricKind, Number, PromptResult, SessionTrace};
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
    /// For display: `count`, `ms`, `USD`, `tokens`, `ratio`, or any other word.
    pub unit: Cow<'static, str>,
    /// The direction that counts as better. Absent: differences are shown and not judged, unless the suite declares a direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// The name in tables and sentences. Absent: `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Cow<'static, str>>,
    /// Its role among the built-in metrics; plugins leave it at its default.
    #[serde(skip)]
    pub kind: MetricKind,
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
            better: None,
            label: None,
            kind: MetricKind::Plain,
        })
    }

    /// The same with a direction, so that differences are judged.
    pub fn better(self, better: Better) -> Self {
        Self {
            better: Some(better),
            ..self
        }
    }

    /// The same with a name for tables and sentences.
    pub fn labelled(self, label: impl Into<Cow<'static, str>>) -> Self {
        Self {
            label: Some(label.into()),
            ..self
        }
    }

    /// Renames the metric of a second scorer of one kind after it: `judge_calls` becomes `judge_2_calls`. Its meaning stays the same.
    pub fn rename_after(&mut self, kind: &str, scorer: &str) {
        let meaning = crate::Metric::from(&*self);
        let own = self.name.strip_prefix(kind).unwrap_or(&self.name);
        self.name = format!("{scorer}_{}", own.trim_start_matches('_'));
        (self.better, self.label, self.kind) = (meaning.better, meaning.label, meaning.kind);
    }

    /// Marks a metric that the scorer measured, so that scoring again replaces it.
    pub fn mark_as_judging(&mut self) {
        if self.kind == MetricKind::Plain {
            self.kind = MetricKind::Judging;
        }
    }

    /// The same as one of the built-in kinds.
    pub fn of_kind(self, kind: MetricKind) -> Self {
        Self { kind, ..self }
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
