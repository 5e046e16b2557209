//! Puts a row together from what an attempt left behind.

use super::Slot;
use super::talk::Failure;
use crate::store::TrialRecord;
use crate::workspace::TrialWorkspace;
use assize_contracts::{
    Attempt, CostSource, HookError, JsonMap, Nature, Number, Outcome, ProfileRow, PromptResult,
    SCHEMA_VERSION, ScorerResult, SessionAnalysisBundle, SessionHandle, SessionTrace, Timestamp,
    ToolCallRecord, ToolCallSummary, WorkspaceChange,
};
use assize_llm::Reckoning;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// When a trial began. Later times are counted from there, so a clock that is set back confuses nothing.
pub(crate) struct Clock {
    started: Instant,
    unix_ms: i64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started: Instant::now(),
            unix_ms: since_1970.as_millis() as i64,
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

/// What an attempt leaves behind, as far as it got.
#[derive(Default)]
pub(super) struct RowParts {
    pub(super) session: Option<SessionHandle>,
    pub(super) result: Option<Arc<PromptResult>>,
    pub(super) trace: Option<Arc<SessionTrace>>,
    /// What the session cost, once it is known how it is to be counted.
    pub(super) reckoning: Option<Reckoning>,
    pub(super) metrics: JsonMap,
    pub(super) analysis: Option<SessionAnalysisBundle>,
    pub(super) score: Option<ScorerResult>,
    pub(super) failure: Option<Failure>,
    pub(super) losses: Vec<HookError>,
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
        run_id: run_id.to_owned(),
        scenario_id: slot.scenario.id.clone(),
        mode: slot.arm.mode.clone(),
        model: slot.arm.model.clone(),
        iteration: slot.iteration,
        started_at: clock.started_at(),
        completed_at: clock.now(),
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
        agent_turns: parts.trace.as_ref().map(|trace| trace.summary.total_turns),
        completion_reason: failure.map_or(reason, |failure| failure.reason),
        extensions: parts.metrics,
        error: failure.map(|failure| failure.message.clone()),
        error_code: failure.map(|failure| failure.code.clone()),
        schema_version: Some(SCHEMA_VERSION),
        outcome: Some(outcome),
        attempts: Vec::new(),
        hook_errors: parts.losses,
        position: slot.position,
        block: slot.block,
        cost_source: Some(reckoning.map_or(CostSource::Unknown, |found| found.source)),
        cost_readings: Some(reckoning.map(|found| found.readings).unwrap_or_default()),
        cost: metrics.cost,
        censored: failure.is_some_and(Failure::is_timeout),
        replayed: nature == Nature::Replayed,
        simulated: nature == Nature::Simulated,
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
    let (mut failed, mut retried) = (0, 0);
    for (number, call) in records.iter().enumerate() {
        if !call.category.is_empty() {
            match by_category.get_mut(&call.category) {
                Some(count) => *count += 1,
                None => drop(by_category.insert(call.category.clone(), 1)),
            }
        }
        let has_failed = |call: &ToolCallRecord| call.success == Some(false);
        failed += u64::from(has_failed(call));
        let previous = records[..number]
            .iter()
            .rev()
            .find(|earlier| earlier.name == call.name);
        retried += u64::from(previous.is_some_and(has_failed));
    }
    let total = records.len() as u64;
    let error_rate = if total == 0 {
        0.0
    } else {
        failed as f64 / total as f64
    };
    ToolCallSummary {
        total: Some(total),
        by_category,
        failed: Some(failed),
        retried: Some(retried),
        error_rate: Number::new(error_rate),
        records,
    }
}

/// What is kept of an attempt that was tried again.
pub(crate) fn attempt_of(row: ProfileRow) -> Attempt {
    Attempt {
        outcome: row.outcome.unwrap_or(Outcome::Void),
        session_id: row.session_id,
        tokens: row.tokens,
        cost_usd: row.cost.total_usd,
        wall_ms: row.timing.wall_ms,
        error: row.error,
        error_code: row.error_code,
    }
}
