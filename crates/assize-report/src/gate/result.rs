//! The result of a gate, for machines and in words.

use crate::words::number;
use crate::{amount, percent};
use assize_contracts::Metric;
use assize_stats::{GateVerdict, Scope};
use serde::Serialize;

/// One gate held against one mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateResult {
    /// The gate as it was written.
    pub gate: String,
    /// The mode. Absent when there was none to hold against it.
    pub mode: Option<String>,
    /// The decision on the mode.
    pub verdict: GateVerdict,
    /// The meaning of the numbers below. Absent when there are none.
    pub measure: Option<GateMeasure>,
    /// The number of the data.
    pub value: Option<f64>,
    /// The truth lies above this with 95 % certainty. Absent when nothing is known about it.
    pub lower_bound: Option<f64>,
    /// The truth lies below this with 95 % certainty. Absent when nothing is known about it.
    pub upper_bound: Option<f64>,
    /// The limit that the number is compared with.
    pub limit: Option<f64>,
    /// The mode or run it is compared with.
    pub baseline: Option<String>,
    /// Trials of the mode that the numbers rest on.
    pub trials: u64,
    /// Those as a share of the planned ones.
    pub coverage: Option<f64>,
    /// The reason why there is no number, or why it does not decide.
    pub reason: Option<String>,
    /// Further remarks for the reader.
    pub notes: Vec<String>,
    /// The tasks that the bounds apply to.
    pub scope: Scope,
    /// The metric; none for rates of trials.
    #[serde(skip)]
    pub(crate) metric: Option<String>,
    /// The meaning of the metric, for its unit.
    #[serde(skip)]
    pub(crate) definition: Option<Metric>,
}

/// The scale of a gate's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateMeasure {
    /// The subject itself.
    Value,
    /// The subject divided by the baseline's.
    Ratio,
    /// The subject minus the baseline's.
    Difference,
}

/// The verdict over all gates: one that fails decides, then one that is open. None without gates.
pub fn worst<'a>(results: impl IntoIterator<Item = &'a GateResult>) -> Option<GateVerdict> {
    let rank = |verdict: &GateVerdict| match verdict {
        GateVerdict::Pass => 0,
        GateVerdict::Inconclusive => 1,
        GateVerdict::Fail => 2,
    };
    let verdicts = results.into_iter().map(|result| result.verdict);
    verdicts.max_by_key(rank)
}

/// `2 gates, each at 5 %`: several gates are not adjusted for each other. None for one gate or none.
pub fn gates_note(results: &[GateResult]) -> Option<String> {
    let mut gates: Vec<&str> = results.iter().map(|result| result.gate.as_str()).collect();
    gates.sort_unstable();
    gates.dedup();
    (gates.len() > 1).then(|| format!("{} gates, each at 5 %", gates.len()))
}

/// Explains the bounds of gates, since they differ from the intervals beside them. `None` without gates.
pub fn gate_bounds_note(results: &[GateResult]) -> Option<&'static str> {
    let is_new = |of_success: bool| {
        let is_success = |result: &GateResult| result.gate.trim_start().starts_with("success");
        let new = |result: &&GateResult| result.scope == Scope::Population;
        let mut new = results.iter().filter(new);
        new.any(|result| is_success(result) == of_success)
    };
    match (results.is_empty(), is_new(true), is_new(false)) {
        (true, ..) => None,
        (_, false, false) => Some(
            "Bounds of gates are one-sided, at 95 %, and hold for exactly these tasks; intervals elsewhere are two-sided.",
        ),
        (_, true, false) => Some(
            "Bounds of gates are one-sided, at 95 %; those of success hold for tasks like these, others for exactly these tasks.",
        ),
        (_, false, true) => Some(
            "Bounds of gates are one-sided, at 95 %; those of several tries hold for tasks like these, others for exactly these tasks.",
        ),
        (_, true, true) => Some(
            "Bounds of gates are one-sided, at 95 %; those of success and of several tries hold for tasks like these, others for exactly \
             these tasks.",
        ),
    }
}

impl GateResult {
    /// `pass`, `FAIL` or `inconclusive`.
    pub fn word(&self) -> &'static str {
        match self.verdict {
            GateVerdict::Pass => "pass",
            GateVerdict::Fail => "FAIL",
            GateVerdict::Inconclusive => "inconclusive",
        }
    }

    /// The finding: `95 % (at least 88 %), 40 trials`, or the reason why there is none.
    pub fn finding(&self) -> String {
        let mut parts = Vec::new();
        if let Some(value) = self.value {
            let against = match (self.measure, &self.baseline) {
                (Some(GateMeasure::Ratio | GateMeasure::Difference), Some(baseline)) => {
                    format!(" against {baseline}")
                }
                _ => String::new(),
            };
            let value = self.shown(value);
            let trials = crate::caution::count(self.trials, "trial", "trials");
            let place = match self.scope {
                Scope::Suite => "",
                Scope::Population => " on tasks like these",
            };
            let bounds = self.bounds();
            parts.push(format!("{value}{against} ({bounds}{place}), {trials}"));
        }
        parts.extend(self.reason.clone());
        parts.extend(self.notes.iter().cloned());
        parts.join("; ")
    }

    /// The whole line: gate, mode, verdict, finding.
    pub fn line(&self) -> String {
        let mode = self.mode.as_deref().unwrap_or("no mode");
        format!("{} · {mode}: {}", self.gate, self.finding())
    }

    fn bounds(&self) -> String {
        match (self.lower_bound, self.upper_bound) {
            (Some(low), Some(high)) if low == high => "no interval".to_owned(),
            (Some(low), Some(high)) => format!("{} to {}", self.shown(low), self.shown(high)),
            (Some(low), None) => format!("{} or more", self.shown(low)),
            (None, Some(high)) => format!("{} or less", self.shown(high)),
            (None, None) => "no interval".to_owned(),
        }
    }

    fn shown(&self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "+" };
        match (self.measure, &self.definition) {
            (Some(GateMeasure::Ratio), _) => {
                let change = (value - 1.0) * 100.0;
                let sign = if change < 0.0 { "-" } else { "+" };
                format!("{sign}{} %", number(change.abs()))
            }
            (Some(GateMeasure::Difference), None) => {
                format!("{sign}{} points", number(value.abs() * 100.0))
            }
            (Some(GateMeasure::Difference), Some(metric)) => {
                format!("{sign}{}", amount(metric, value.abs()))
            }
            (_, Some(metric)) => amount(metric, value),
            (_, None) => percent(value),
        }
    }
}
