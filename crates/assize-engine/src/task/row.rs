//! The row of a task trial: what the statistics see of it.

use super::condition::{Judgement, name_of};
use super::evaluate::EVALUATOR;
use super::execute::{Ended, Executed};
use super::trial::TaskSlot;
use crate::store::{TaskRecords, TrialRecord};
use crate::trial::Trials;
use crate::trial::row::Clock;
use assize_contracts::{
    CompletionReason, CostBreakdown, CostReadings, CostSource, JsonMap, Metric, Nature, Number,
    Outcome, PluginError, ProfileRow, RunRecord, ScoreRecord, ScoreValue, Task, TimingBreakdown,
    TokenBreakdown, VoidCause,
};
use serde_json::Value;
use std::borrow::Cow;

/// The results of an attempt.
pub(super) struct Parts<'t> {
    pub(super) executed: Executed<'t>,
    pub(super) scores: Vec<ScoreRecord>,
    pub(super) judgement: Judgement,
    pub(super) plugin_errors: Vec<PluginError>,
}

/// The outcome of an attempt, and the error where it did not pass for another reason than its scores.
struct Verdict {
    outcome: Outcome,
    error_code: Option<&'static str>,
    error: Option<String>,
    void_cause: Option<VoidCause>,
}

pub(super) fn compose(
    trials: &Trials,
    slot: &TaskSlot<'_>,
    clock: &Clock,
    parts: Parts,
) -> TrialRecord {
    let run = &parts.executed.record;
    let cost_source = match (run.metrics.cost, run.metrics.cost_source) {
        (None, _) => CostSource::Unknown,
        // A figure of unknown source was reported by what the runner ran.
        (Some(_), None | Some(CostSource::Unknown)) => CostSource::Reported,
        (Some(_), Some(source)) => source,
    };
    let is_computed = cost_source == CostSource::Computed;
    let ended = parts.executed.ended;
    let mut row = ProfileRow {
        tokens: TokenBreakdown {
            total: run.metrics.tokens,
            ..TokenBreakdown::default()
        },
        timing: TimingBreakdown {
            wall_ms: Some(run.metrics.latency),
            segments: Vec::new(),
        },
        cost: CostBreakdown {
            total_usd: run.metrics.cost,
            ..CostBreakdown::default()
        },
        output_valid: ended == Ended::Completed,
        provider: provider_of(slot, run),
        session_id: Some(run.id.clone()),
        completion_reason: match ended {
            Ended::Completed => Some(CompletionReason::Stop),
            Ended::Failed => Some(CompletionReason::Error),
            Ended::TimedOut => Some(CompletionReason::Timeout),
            Ended::Broken => None,
        },
        cost_source: Some(cost_source),
        cost_readings: Some(CostReadings {
            reported_usd: run.metrics.cost.filter(|_| !is_computed),
            computed_usd: run.metrics.cost.filter(|_| is_computed),
            ..CostReadings::default()
        }),
        censored: ended == Ended::TimedOut,
        replayed: parts.executed.nature == Nature::Replayed,
        simulated: parts.executed.nature == Nature::Simulated,
        ..slot.cell.row(&trials.run_id, slot.task.id(), clock)
    };
    let records = put_scores(&mut row, parts, Some(trials));
    TrialRecord {
        row,
        trace: None,
        analysis: None,
        task: Some(records),
    }
}

/// The suite's name for the runner, by which suites and limits know it.
fn provider_of(slot: &TaskSlot<'_>, run: &RunRecord) -> String {
    let used = match &*slot.task {
        Task::Atomic(task) => slot.cell.mode.runners.get(&task.r#type),
        Task::Scenario(_) => None,
    };
    used.map_or_else(|| run.provenance.runner_id.clone(), |used| used.id.clone())
}

/// Puts into a row what follows from scores, and returns the other records. `trials` learn which metrics there are.
pub(super) fn put_scores(
    row: &mut ProfileRow,
    parts: Parts,
    trials: Option<&Trials>,
) -> TaskRecords {
    let verdict = verdict(&parts);
    let checks = parts.judgement.checks;
    row.success = verdict.outcome == Outcome::Pass;
    row.outcome = Some(verdict.outcome);
    row.void_cause = verdict.void_cause;
    row.error = verdict.error;
    row.error_code = verdict.error_code.map(str::to_owned);
    row.checkpoints_passed = checks.iter().filter(|check| check.passed).count() as u64;
    row.checkpoints_total = checks.len() as u64;
    row.checkpoint_details = checks;
    row.extensions = extensions(&parts.scores, trials);
    row.hook_errors.extend(parts.plugin_errors);
    TaskRecords {
        run: parts.executed.record,
        scores: parts.scores,
    }
}

fn verdict(parts: &Parts) -> Verdict {
    let error = || {
        let error = parts.executed.record.error.as_ref();
        error.map(|error| match &error.step {
            Some(step) => format!("{step}: {}", error.message),
            None => error.message.clone(),
        })
    };
    let of = |outcome, error_code, error| Verdict {
        outcome,
        error_code,
        error,
        void_cause: None,
    };
    let void = |error_code, error, cause| Verdict {
        void_cause: Some(cause),
        ..of(Outcome::Void, Some(error_code), error)
    };
    match parts.executed.ended {
        Ended::Broken => return void("runner_error", error(), VoidCause::Runner),
        Ended::TimedOut => return of(Outcome::Fail, Some("timeout"), error()),
        Ended::Failed => return of(Outcome::Fail, Some("task_failed"), error()),
        Ended::Completed => {}
    }
    let mut broken = parts
        .plugin_errors
        .iter()
        .filter(|error| error.hook.starts_with(EVALUATOR));
    let judgement = &parts.judgement;
    match (broken.next(), judgement.passed()) {
        (None, true) => of(Outcome::Pass, None, None),
        // The other evaluators decide, unless the missing score could have changed the outcome.
        (Some(error), passed) if passed || judgement.lacks_scores => {
            let error = format!("{}: {}", error.hook, error.message);
            void("evaluator_error", Some(error), VoidCause::Scorer)
        }
        _ => of(Outcome::Fail, None, None),
    }
}

/// Scores as metrics: numbers as they are, what holds or not as 1 or 0, labels as text with what was expected beside them.
fn extensions(scores: &[ScoreRecord], trials: Option<&Trials>) -> JsonMap {
    let mut metrics = JsonMap::with_capacity(scores.len());
    for score in scores {
        let name = name_of(score);
        let value = match &score.value {
            ScoreValue::Number(number) => (*number).into(),
            ScoreValue::Bool(holds) => Number::from(u64::from(*holds)).into(),
            ScoreValue::Text(text) => {
                let alignment = score
                    .evidence
                    .as_ref()
                    .and_then(|found| found.alignment.as_ref());
                if let Some(Value::String(expected)) = alignment.and_then(|map| map.get("expected"))
                {
                    metrics.insert(Metric::expected_name(&name), expected.clone().into());
                }
                Value::String(text.clone())
            }
        };
        if let Some(trials) = trials {
            let define = || match &score.meaning {
                Some(known) => Metric {
                    name: Cow::Owned(name.clone()),
                    ..Metric::clone(known)
                },
                None => Metric::score(&name, &score.metric),
            };
            trials.metrics.add(&name, define);
            if metrics.contains_key(&name) {
                trials.warn_duplicate_metric(&name, &score.evaluator_id);
            }
        }
        metrics.insert(name, value);
    }
    metrics
}
