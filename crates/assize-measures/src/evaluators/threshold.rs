//! `threshold`: a number in the output is at least, or at most, so much.

use super::{Measure, Seen, config_error, part, read, shown};
use assize_contracts::{BoxError, ConfigError, EvaluatorSetup, Evidence, ScoreRecord, ScoreTarget};
use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    path: Option<String>,
    metric: Option<String>,
    at_least: Option<Limit>,
    at_most: Option<Limit>,
}

/// A number, or the one that the task expects there.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Limit {
    Number(f64),
    Expected(Expected),
}

#[derive(Deserialize, Clone, Copy)]
enum Expected {
    #[serde(rename = "expected")]
    Expected,
}

pub(super) struct Threshold {
    settings: Settings,
    metric: String,
}

impl Threshold {
    pub(super) fn new(setup: &EvaluatorSetup<'_>) -> Result<Self, ConfigError> {
        let settings: Settings = read(setup)?;
        if settings.at_least.is_none() && settings.at_most.is_none() {
            return Err(config_error(
                "expected `at_least` or `at_most`: a number, or `expected`",
            ));
        }
        let path = settings.path.as_deref().unwrap_or("output");
        let metric = settings.metric.clone();
        Ok(Self {
            metric: metric.unwrap_or_else(|| format!("{}_ok", path.replace('.', "_"))),
            settings,
        })
    }
}

impl Measure for Threshold {
    fn metrics(&self) -> Vec<String> {
        vec![self.metric.clone()]
    }

    fn scores(&self, seen: &Seen<'_>) -> Result<Vec<ScoreRecord>, BoxError> {
        let path = self.settings.path.as_deref();
        let expected = seen
            .expected
            .and_then(|expected| part(expected, path)?.as_f64());
        let limit = |limit: Option<Limit>| match limit {
            Some(Limit::Number(number)) => Some(number),
            Some(Limit::Expected(Expected::Expected)) => expected,
            None => None,
        };
        let (least, most) = (limit(self.settings.at_least), limit(self.settings.at_most));
        if least.is_none() && most.is_none() {
            // The limit is the expectation, and this task has none.
            return Ok(Vec::new());
        }
        let actual = seen.output().and_then(|output| part(output, path));
        let number = actual.and_then(serde_json::Value::as_f64);
        let holds = number.is_some_and(|number| {
            least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
        });
        let wanted: Vec<String> = [("at least", least), ("at most", most)]
            .iter()
            .filter_map(|(word, limit)| Some(format!("{word} {}", (*limit)?)))
            .collect();
        let explanation = match seen.output() {
            Some(_) => format!("found {}, expected {}", shown(actual), wanted.join(" and ")),
            None => seen.failure(),
        };
        let score = ScoreRecord::new(seen.run, &self.metric, holds, ScoreTarget::Final);
        Ok(vec![score.because(Evidence::explained(explanation))])
    }
}
