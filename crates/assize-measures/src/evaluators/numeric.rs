//! `numeric`: a number is near the expected one.

use super::{ACCURACY, Measure, Seen, config_error, part, read, right, shown, side_by_side};
use assize_contracts::{
    BoxError, ConfigError, EvaluatorSetup, Evidence, Number, ScoreRecord, ScoreTarget,
};
use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    path: Option<String>,
    metric: Option<String>,
    /// By how much it may be off.
    absolute: Option<f64>,
    /// By which share of what was expected it may be off.
    relative: Option<f64>,
}

pub(super) struct Numeric(Settings);

impl Numeric {
    pub(super) fn new(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        let settings: Settings = read(setup)?;
        let limits = [settings.absolute, settings.relative];
        if limits
            .iter()
            .flatten()
            .any(|limit| !limit.is_finite() || *limit < 0.0)
        {
            return Err(config_error(
                "found a negative tolerance, expected 0 or more",
            ));
        }
        Ok(Self(settings))
    }

    fn metric(&self) -> &str {
        self.0.metric.as_deref().unwrap_or(ACCURACY)
    }
}

impl Measure for Numeric {
    fn metrics(&self) -> Vec<String> {
        vec![self.metric().to_owned(), "absolute_error".to_owned()]
    }

    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError> {
        let path = self.0.path.as_deref();
        let expected = seen.expected.and_then(|expected| part(expected, path));
        let Some((expected, wanted)) = expected.and_then(|value| Some((value, value.as_f64()?)))
        else {
            return Ok(Vec::new());
        };
        let actual = seen.output().and_then(|output| part(output, path));
        let error = actual.and_then(|actual| Some((actual.as_f64()? - wanted).abs()));
        let relative = self.0.relative.map(|share| share * wanted.abs());
        let tolerance = self.0.absolute.unwrap_or(0.0).max(relative.unwrap_or(0.0));
        let explanation = match (error, seen.output()) {
            (Some(error), _) => format!("off by {error}, where {tolerance} is allowed"),
            (None, Some(_)) => format!("expected a number near {wanted}, found {}", shown(actual)),
            (None, None) => seen.failure(),
        };
        let is_near = error.is_some_and(|error| error <= tolerance);
        let evidence = Evidence::explained(explanation).aligned(side_by_side(expected, actual));
        let score = ScoreRecord::new(seen.run, self.metric(), right(is_near), ScoreTarget::Final);
        let mut scores = vec![score.because(evidence)];
        let error = error.and_then(Number::new);
        scores.extend(
            error.map(|error| {
                ScoreRecord::new(seen.run, "absolute_error", error, ScoreTarget::Final)
            }),
        );
        Ok(scores)
    }
}
