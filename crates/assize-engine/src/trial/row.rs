//! Puts a row together from what an attempt left behind.

use super::Slot;
use super::talk::Failure;
use crate::store::TrialRecord;
use crate::workspace::TrialWorkspace;
use assize_contracts::{
    Attempt, CostSource, JsonMap, Nature, Number, Outcome, PluginError, ProfileRow, PromptResult,
    ScorerResult, SessionAnalysisBundle, SessionHandle, SessionTrace, Timestamp, ToolCallRecord,
    ToolCallSummary, WorkspaceChange,
};
use assize_llm::Reckoning;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The start of a trial. Later times are counted from there, so that setting the clock back changes nothing.
pub(crate) struct Clock {
    started: Instant,
    unix_ms: i64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            unix_ms: assize_contracts::unix_ms_now(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn started_at(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.unix_ms)
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.unix_ms + self.started.elapsed().as_millis() as i64)
    }
}

/// The results of an attempt, as far as it got.
#[derive(Default)]
pub(super) struct RowParts {
    pub(super) session: Option<SessionHandle>,
    pub(super) result: Option<Arc<PromptResult>>,
    pub(super) trace: Option<Arc<SessionTrace>>,
    /// The cost of the session, once it is known how to count it.
    pub(super) reckoning: Option<Reckoning>,
    /// User messages that were sent. Absent when no session was opened.
    pub(super) user_turns: Option<u64>,
    pub(super) metrics: JsonMap,
    pub(super) analysis: Option<SessionAnalysisBundle>,
    pub(super) score: Option<ScorerResult>,
    pub(super) failure: Option<Failure>,
    pub(super) plugin_errors: Vec<PluginError>,
    /// Taken away before the row is made.
    pub(super) workspace: Option<TrialWorkspace>,
    pub(super) changes: Vec<WorkspaceChange>,
}

/// The record of an attempt.
pub(super) fn compose(
    run_id: &str,
    slot: &Slot<'_>,
    clock: &Clock,
    parts: RowParts,
) -> TrialRecord {
    let nature = slot.instance.provider.nature();
    let failure = parts.failure.as_ref();
    let reckoning = parts.reckoning;
    let result = parts.result.map(Arc::unwrap_or_clone);
    let reason = result.as_ref().map(|result| result.completion_reason);
    let metrics = result.map(|result| result.metrics).unwrap_or_default();
    let score = parts.score.unwrap_or_default();
    let outcome = match failure {
        Some(failure) => failure.outcome,
        None if score.success => Outcome::Pass,
        None => Outcome::Fail,
    };
    let row = ProfileRow {
        tokens: metrics.tokens,
        timing: metrics.timing,
        tool_calls: summarize_tools(metrics.tool_calls),
        success: outcome == Outcome::Pass,
        checkpoints_passed: score.passed,
        checkpoints_total: score.total,
        checkpoint_details: score.details,
        output_valid: score.output_valid,
        provider: slot.instance.name.clone(),
        session_id: parts.session.map(|session| session.session_id),
        agent_turns: parts
            .trace
            .as_ref()
            .and_then(|trace| trace.summary.total_turns),
        completion_reason: failure.map_or(reason, |failure| failure.reason),
        extensions: parts.metrics,
        error: failure.map(|failure| failure.message.clone()),
        error_code: failure.map(|failure| failure.code.clone()),
        outcome: Some(outcome),
        void_cause: failure.and_then(|failure| failure.void_cause),
        tokens_at_least: metrics.tokens_at_least,
        cost_at_least_usd: metrics.cost_at_least_usd,
        user_turns: parts.user_turns,
        hook_errors: parts.plugin_errors,
        cost_source: Some(reckoning.map_or(CostSource::Unknown, |found| found.source)),
        cost_readings: Some(reckoning.map(|found| found.readings).unwrap_or_default()),
        cost: metrics.cost,
        censored: failure.is_some_and(Failure::is_timeout),
        not_captured: metrics.not_captured,
        subscription: metrics.subscription,
        replayed: nature == Nature::Replayed,
        simulated: nature == Nature::Simulated,
        ..slot.cell.row(run_id, &slot.scenario.id, clock)
    };
    TrialRecord {
        row,
        trace: parts.trace,
        analysis: parts.analysis,
        task: None,
    }
}

fn summarize_tools(records: Option<Vec<ToolCallRecord>>) -> ToolCallSummary {
    let Some(records) = records else {
        return ToolCallSummary::default();
    };
    let mut by_category: BTreeMap<String, u64> = BTreeMap::new();
    for call in &records {
        if !call.category.is_empty() {
            match by_category.get_mut(&call.category) {
                Some(count) => *count += 1,
                None => drop(by_category.insert(call.category.clone(), 1)),
            }
        }
    }
    let total = records.len() as u64;
    let failed = failed_calls(&records);
    let error_rate = |failed: u64| match total {
        0 => 0.0,
        total => failed as f64 / total as f64,
    };
    ToolCallSummary {
        total: Some(total),
        by_category,
        failed,
        retried: failed.map(|_| retried_calls(&records)),
        error_rate: failed.and_then(|failed| Number::new(error_rate(failed))),
        records,
    }
}

/// Unknown as soon as the end of one call is unknown.
fn failed_calls(records: &[ToolCallRecord]) -> Option<u64> {
    records
        .iter()
        .try_fold(0, |failed, call| Some(failed + u64::from(!call.success?)))
}

/// Calls that repeat a failed one of the same tool. Calls of one answer run in parallel and repeat nothing.
fn retried_calls(records: &[ToolCallRecord]) -> u64 {
    let is_parallel = |one: &ToolCallRecord, other: &ToolCallRecord| {
        one.call_ref.is_some() && one.call_ref == other.call_ref
    };
    let is_retry = |(number, call): &(usize, &ToolCallRecord)| {
        let mut earlier = records[..*number].iter().rev();
        let previous =
            earlier.find(|earlier| earlier.name == call.name && !is_parallel(earlier, call));
        previous.is_some_and(|previous| previous.success == Some(false))
    };
    records.iter().enumerate().filter(is_retry).count() as u64
}

/// The record of an attempt that was tried again.
pub(crate) fn attempt_of(row: ProfileRow) -> Attempt {
    Attempt {
        outcome: row.outcome.unwrap_or(Outcome::Void),
        session_id: row.session_id,
        tokens: row.tokens,
        cost_usd: row.cost.total_usd,
        tokens_at_least: row.tokens_at_least,
        cost_at_least_usd: row.cost_at_least_usd,
        wall_ms: row.timing.wall_ms,
        error: row.error,
        error_code: row.error_code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(records: &[(&str, Option<bool>, Option<&str>)]) -> ToolCallSummary {
        let record = |&(name, success, call_ref): &(&str, Option<bool>, Option<&str>)| {
            let record = serde_json::json!({"name": name, "success": success, "callRef": call_ref});
            serde_json::from_value(record).unwrap()
        };
        summarize_tools(Some(records.iter().map(record).collect()))
    }

    #[test]
    fn parallel_calls_of_one_answer_are_no_retries() {
        let parallel = calls(&[
            ("bash", Some(false), Some("call-1")),
            ("bash", Some(true), Some("call-1")),
        ]);
        assert_eq!((parallel.failed, parallel.retried), (Some(1), Some(0)));
        let again = calls(&[
            ("bash", Some(false), Some("call-1")),
            ("bash", Some(true), Some("call-1")),
            ("bash", Some(false), Some("call-2")),
            ("bash", Some(true), Some("call-3")),
            ("bash", Some(true), None),
        ]);
        assert_eq!((again.failed, again.retried), (Some(2), Some(1)));
    }

    #[test]
    fn one_call_that_does_not_tell_leaves_failures_unknown() {
        let found = calls(&[("bash", Some(false), None), ("bash", None, None)]);
        assert_eq!(found.total, Some(2));
        assert_eq!((found.failed, found.retried), (None, None));
        assert_eq!(found.error_rate, None);
        assert_eq!(calls(&[]).failed, Some(0));
    }
}
