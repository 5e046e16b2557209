//! The design of an experiment as it is stored: factors and the modes they expand to, the rule by which a run stops, its
//! budget, and the looks at its data.

use crate::metric::Judge;
use crate::{ProfileRow, Timestamp};
use serde::{Deserialize, Serialize};

/// The factors of a suite and the modes that they expand to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FactorialRecord {
    /// The varied factors, in the order of the suite.
    pub factors: Vec<FactorRecord>,
    /// The combinations that are run. The first has every factor at its first level.
    pub modes: Vec<FactorialMode>,
    /// Pairs of factors that were declared to be looked at together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<[String; 2]>,
}

/// A factor and its levels. The first level is the base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FactorRecord {
    /// Its name.
    pub name: String,
    /// `off` and `on` for a switch.
    pub levels: Vec<String>,
}

/// A mode as a combination of levels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FactorialMode {
    /// The mode's name.
    pub name: String,
    /// Per factor the place of its level, from 0.
    pub levels: Vec<usize>,
}

/// The rule that stops a run before its last repetition. Declared before the first trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct UntilSpec {
    /// All metrics to decide by are decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<bool>,
    /// Only these of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Vec<String>>,
    /// `obrien-fleming` (default with `max_repetitions` or a budget) or `anytime`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<StoppingMethod>,
    /// Looks at the data, evenly spread over the repetitions. Default: 5; for `anytime` one per repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<u32>,
    /// The most repetitions. Default: `execution.repetitions`.
    #[serde(alias = "maxRepetitions", skip_serializing_if = "Option::is_none")]
    pub max_repetitions: Option<u32>,
    /// Also stop what can hardly be decided any more. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futility: Option<bool>,
}

/// The rule that keeps the error rate over several looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StoppingMethod {
    /// Bounds that are strict early and almost the usual ones at the end.
    ObrienFleming,
    /// Any number of looks.
    Anytime,
}

impl StoppingMethod {
    /// The word in suites.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ObrienFleming => "obrien-fleming",
            Self::Anytime => "anytime",
        }
    }
}

/// The most that a run may spend. It stops at whole blocks and can be resumed with more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// US dollars, the judge's included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Tokens, cached ones and the judge's included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Minutes of running, over all starts of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
}

impl Budget {
    /// True if nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        self.usd.is_none() && self.tokens.is_none() && self.minutes.is_none()
    }

    /// The part of it for one of so many shards that share it evenly. Time is not shared: shards run at once.
    pub fn divided(&self, shards: u32) -> Self {
        let shards = shards.max(1);
        Self {
            usd: self.usd.map(|usd| usd / f64::from(shards)),
            tokens: self.tokens.map(|tokens| tokens / u64::from(shards)),
            minutes: self.minutes,
        }
    }

    /// Limits of the other where it has any, else its own.
    pub fn overridden_by(&self, other: &Self) -> Self {
        Self {
            usd: other.usd.or(self.usd),
            tokens: other.tokens.or(self.tokens),
            minutes: other.minutes.or(self.minutes),
        }
    }
}

/// A look at the data of a run: one state at which verdicts were shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LookRecord {
    /// The time they were first shown.
    pub at: Timestamp,
    /// The command that showed them: `run`, `compare`, `report`, `gate`.
    pub command: String,
    /// Hash of the set of complete blocks.
    pub state: String,
    /// Complete blocks.
    pub blocks: u64,
    /// Complete blocks per scenario.
    pub rounds: f64,
    /// The look was declared before the first trial.
    #[serde(default)]
    pub declared: bool,
    /// Comparisons that were decided by then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<DecidedRecord>,
    /// Arms that are done before their last repetition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<StoppedRecord>,
}

/// An arm of which a look started nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoppedRecord {
    /// Its mode.
    pub mode: String,
    /// Its model.
    pub model: String,
    /// Repetitions it has.
    pub after: u32,
    /// `decided` or `futile`.
    pub reason: String,
}

/// A comparison that a look decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DecidedRecord {
    /// The candidate, as reports name it.
    pub mode_a: String,
    /// The mode it was compared with.
    pub mode_b: String,
    /// The metric.
    pub metric: String,
    /// The p-value that pays for all looks, before adjustment for several questions.
    pub p: f64,
    /// The word.
    pub verdict: String,
}

/// Tokens and money that a trial spent, all attempts and the judge included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Dollars. Absent when a part of them is unknown.
    pub usd: Option<f64>,
    /// Tokens. Absent when a part of them is unknown.
    pub tokens: Option<u64>,
}

impl ProfileRow {
    /// Tokens and money that the trial spent. One that failed before its agent did anything spent nothing.
    pub fn spent(&self) -> Spent {
        let untouched = self.outcome == Some(crate::Outcome::Void)
            && !self.is_void_by_mode()
            && self.tokens.total.is_none();
        let own_usd = match untouched {
            true => Some(0.0),
            false => self.cost.total_usd.map(|usd| usd.value()),
        };
        let own_tokens = match untouched {
            true => Some(0),
            false => self.tokens.total,
        };
        let (mut usd, mut tokens) = (own_usd, own_tokens);
        for attempt in &self.attempts {
            let cost = attempt.cost_usd.map(|usd| usd.value());
            usd = usd.zip(cost).map(|(sum, part)| sum + part);
            tokens = tokens
                .zip(attempt.tokens.total)
                .map(|(sum, part)| sum + part);
        }
        let number = |name: &String| self.extensions.get(name).and_then(number_in);
        for judge in self
            .extensions
            .keys()
            .filter_map(|name| Judge::of_calls(name))
        {
            usd = usd.zip(number(&judge.cost)).map(|(sum, part)| sum + part);
            let judged = number(&judge.tokens).map(|tokens| tokens as u64);
            tokens = tokens.zip(judged).map(|(sum, part)| sum + part);
        }
        Spent { usd, tokens }
    }

    /// Time from start to end, in milliseconds; the attempts and the judge included.
    pub fn duration_ms(&self) -> f64 {
        let span = || {
            let start = self.started_at.unix_ms()?;
            let end = self.completed_at.unix_ms()?;
            Some((end - start) as f64)
        };
        span().unwrap_or(0.0).max(0.0)
    }
}

/// A number, with or without a unit after it.
fn number_in(value: &serde_json::Value) -> Option<f64> {
    value.as_f64().or_else(|| value.get("value")?.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(extensions: Value, usd: Option<f64>, tokens: Option<u64>) {
        let row: ProfileRow = serde_json::from_value(json!({
            "runId": "r", "scenarioId": "s", "mode": "m", "model": "", "iteration": 0,
            "startedAt": "2026-01-01T00:00:00.000Z", "completedAt": "2026-01-01T00:00:01.000Z",
            "tokens": {"total": 100}, "timing": {"wallMs": 1000, "segments": []},
            "toolCalls": {"byCategory": {}, "records": []}, "cost": {"totalUsd": 1}, "success": true,
            "checkpointsPassed": 0, "checkpointsTotal": 0, "checkpointDetails": [],
            "outputValid": true, "provider": "p", "sessionId": null, "agentTurns": null,
            "completionReason": null, "outcome": "pass", "extensions": extensions,
        }))
        .unwrap();
        assert_eq!(row.spent(), Spent { usd, tokens });
    }

    #[test]
    fn every_judge_is_paid_for() {
        check(json!({}), Some(1.0), Some(100));
        let mut extensions = json!({
            "judge_calls": 1, "judge_cost_usd": 0.5, "judge_tokens_total": 10,
            "judge_2_calls": 3, "judge_2_cost_usd": 0.25, "judge_2_tokens_total": 20,
            "judge_phone_calls": 7,
        });
        check(extensions.clone(), Some(1.75), Some(130));
        extensions["judge_2_cost_usd"].take();
        check(extensions, None, Some(130));
    }
}
