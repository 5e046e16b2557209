//! `latency`, `tokens`, `cost`: what an execution took, and whether that is within limits.

use super::{Measure, Seen, config_error, read};
use assize_contracts::{
    BoxError, ConfigError, EvaluatorSetup, Evidence, Number, RunRecord, ScoreRecord, ScoreTarget,
};
use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// More than this is too much: milliseconds, tokens or US dollars.
    max: Option<f64>,
}

pub(super) struct Budget {
    metric: &'static str,
    unit: &'static str,
    max: Option<f64>,
    amount: fn(&RunRecord) -> Option<f64>,
}

impl Budget {
    pub(super) fn latency(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        Self::new(setup, "latency", "ms", |run| {
            Some(run.metrics.latency.value())
        })
    }

    pub(super) fn tokens(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        Self::new(setup, "tokens", "tokens", |run| {
            run.metrics.tokens.map(|tokens| tokens as f64)
        })
    }

    pub(super) fn cost(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        Self::new(setup, "cost", "USD", |run| {
            run.metrics.cost.map(|cost| cost.value())
        })
    }

    fn new(
        setup: &EvaluatorSetup<'_>,
        metric: &'static str,
        unit: &'static str,
        amount: fn(&RunRecord) -> Option<f64>,
    ) -> Result<Self, ConfigError> {
        let Settings { max } = read(setup)?;
        if max.is_some_and(|max| !max.is_finite() || max < 0.0) {
            return Err(config_error("`max`: expected 0 or more"));
        }
        Ok(Self {
            metric,
            unit,
            max,
            amount,
        })
    }
}

impl Measure for Budget {
    fn metrics(&self) -> Vec<String> {
        let limit = self.max.map(|_| format!("{}_ok", self.metric));
        std::iter::once(self.metric.to_owned())
            .chain(limit)
            .collect()
    }

    /// A value that was not measured has no score; it is unknown whether it is within a limit.
    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError> {
        let Some(amount) = (self.amount)(seen.run).and_then(Number::new) else {
            return match self.max {
                Some(_) => {
                    Err(format!("the {} of this execution is not known", self.metric).into())
                }
                None => Ok(Vec::new()),
            };
        };
        let mut scores = vec![ScoreRecord::new(
            seen.run,
            self.metric,
            amount,
            ScoreTarget::Global,
        )];
        if let Some(max) = self.max {
            let value = amount.value();
            let explanation = format!("{value} {unit} of {max} {unit} allowed", unit = self.unit);
            let metric = format!("{}_ok", self.metric);
            let score = ScoreRecord::new(seen.run, metric, value <= max, ScoreTarget::Global);
            scores.push(score.because(Evidence::explained(explanation)));
        }
        Ok(scores)
    }
}
