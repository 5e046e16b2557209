//! Scores a stored execution again: the record is taken apart into what evaluators saw, and they are asked as they are now.

use super::evaluate::{EVALUATOR, evaluate};
use super::execute::{Ended, Executed, ExecutedTask, Step, input_hash};
use super::flow::{fill_in, mappings_of};
use super::row::{Parts, put_scores};
use super::trial::conditions;
use super::{TaskSet, UsedEvaluator, condition};
use assize_contracts::{
    CompletionReason, JsonMap, Nature, ProfileRow, Provenance, RunError, RunMetrics, RunRecord,
    RunStatus, ScenarioTask, ScoreRecord, StepStatus, StepSummary, Task, TaskEvent, TaskKind,
};
use assize_secrets::{Redactor, Secrets};
use serde::Deserialize;
use serde_json::Value;

/// A trial with new scores.
pub(crate) struct ScoredAgain {
    pub(crate) row: ProfileRow,
    pub(crate) scores: Vec<ScoreRecord>,
}

/// The scoring rules of a suite.
#[derive(Clone, Copy)]
pub(crate) struct Judges<'a> {
    pub(crate) set: &'a TaskSet,
    pub(crate) evaluators: &'a [UsedEvaluator],
    pub(crate) secrets: &'a Secrets,
}

/// The new row and scores of a stored trial. `Err` explains why it cannot be scored.
pub(crate) async fn score_again(
    old: &ProfileRow,
    record: RunRecord,
    task: &Task,
    judges: Judges<'_>,
) -> Result<ScoredAgain, String> {
    let given = record.provenance.input_hash.as_ref();
    if given.is_some_and(|given| *given != input_hash(task)) {
        return Err("its input is another than the capability was given".to_owned());
    }
    let executed = Executed {
        task: match task {
            Task::Atomic(task) => ExecutedTask::Atomic(task),
            Task::Scenario(task) => ExecutedTask::Scenario(task, steps(task, &record)?),
        },
        ended: ended(old),
        nature: Nature::Live,
        record,
    };
    let mut plugin_errors = Vec::new();
    let redactor = Redactor::new(judges.secrets);
    let scores = evaluate(judges.evaluators, &executed, &redactor, &mut plugin_errors).await;
    let judgement = condition::judge_all(&conditions(task, judges.set), &scores);
    let mut row = old.clone();
    row.hook_errors
        .retain(|error| !error.hook.starts_with(EVALUATOR));
    let parts = Parts {
        executed,
        scores,
        judgement,
        plugin_errors,
    };
    let records = put_scores(&mut row, parts, None);
    Ok(ScoredAgain {
        row,
        scores: records.scores,
    })
}

fn ended(row: &ProfileRow) -> Ended {
    match row.completion_reason {
        Some(CompletionReason::Stop) => Ended::Completed,
        Some(CompletionReason::Timeout) => Ended::TimedOut,
        Some(_) => Ended::Failed,
        None => Ended::Broken,
    }
}

/// The steps of a chain that were begun, each with the input that it got.
fn steps(task: &ScenarioTask, record: &RunRecord) -> Result<Vec<Step>, String> {
    let summaries = record.steps.as_deref().unwrap_or_default();
    let mut outputs = Vec::new();
    let mut steps = Vec::new();
    for (number, step) in task.steps.iter().enumerate() {
        let summary = summaries
            .get(number)
            .filter(|known| known.step_id == step.id);
        let summary = summary.ok_or("its steps are others than were executed")?;
        if summary.status == StepStatus::Skipped {
            break;
        }
        let mut step = step.clone();
        for mapping in mappings_of(task, number) {
            // An input that could not be filled in then cannot be now; the step failed for it.
            let _ = fill_in(&mut step, mapping, task, &outputs);
        }
        outputs.push(summary.output.clone().unwrap_or(Value::Null));
        let record = step_record(record, summary);
        steps.push(Step { task: step, record });
    }
    Ok(steps)
}

/// The record of a step, out of the record of its chain.
fn step_record(chain: &RunRecord, summary: &StepSummary) -> RunRecord {
    let is_of_step = |event: &&TaskEvent| event.step.as_deref() == Some(&summary.step_id);
    let trace: Vec<TaskEvent> = chain.trace.iter().filter(is_of_step).cloned().collect();
    let times = |event: Option<&TaskEvent>| event.map(|event| event.timestamp.clone());
    let (first, last) = (trace.first(), trace.last());
    let phase = last.and_then(|event| event.data.as_ref()?.get("step")?.as_str());
    let provenances = chain.provenance.config.get("steps");
    let provenances = provenances.and_then(Value::as_object);
    RunRecord {
        task_id: summary.step_id.clone(),
        task_type: TaskKind::Atomic,
        status: match summary.status {
            StepStatus::Completed => RunStatus::Completed,
            _ => RunStatus::Failed,
        },
        output: summary.output.clone(),
        error: summary.error.as_ref().map(|message| RunError {
            message: message.clone(),
            step: phase.map(str::to_owned),
            stack: None,
        }),
        metrics: RunMetrics {
            latency: summary.latency,
            tokens: summary.tokens,
            cost: summary.cost,
            cost_source: None,
        },
        steps: None,
        started_at: times(first).unwrap_or_else(|| chain.started_at.clone()),
        completed_at: times(last),
        provenance: provenance(provenances, &summary.step_id),
        trace,
        id: chain.id.clone(),
        schema_version: chain.schema_version,
    }
}

fn provenance(steps: Option<&JsonMap>, id: &str) -> Provenance {
    let own = steps.and_then(|steps| steps.get(id));
    let own = own.and_then(|own| Provenance::deserialize(own).ok());
    own.unwrap_or_default()
}
