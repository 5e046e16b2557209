//! Asks the evaluators: about a task, or about each step of a chain and then about the whole.

use super::UsedEvaluator;
use super::execute::{Executed, ExecutedTask};
use super::trial::completed;
use crate::guard::guarded;
use crate::store::clean_name;
use assize_contracts::{
    AtomicTask, BoxError, PartialScores, PluginError, ScoreRecord, ScoreTarget, Timestamp,
};
use assize_secrets::Redactor;

/// The prefix of evaluator errors; the id follows.
pub(super) const EVALUATOR: &str = "evaluator:";

/// The prefix of remarks on scores against the evaluator's own declaration; its id follows.
const METRICS_OF: &str = "metrics:";

/// The name of whole chains among task types.
const SCENARIO: &str = "scenario";

/// All scores of an execution. An evaluator that breaks loses its own.
pub(super) async fn evaluate(
    evaluators: &[UsedEvaluator],
    executed: &Executed<'_>,
    redactor: &Redactor,
    plugin_errors: &mut Vec<PluginError>,
) -> Vec<ScoreRecord> {
    let mut scores = Vec::new();
    let mut take = |used: &UsedEvaluator, given, steps: &[AtomicTask]| {
        take(used, given, steps, redactor, &mut scores, plugin_errors);
    };
    for used in evaluators {
        match &executed.task {
            ExecutedTask::Atomic(task) if used.scores(&task.r#type) => {
                let call = used.evaluator.evaluate(&executed.record, task);
                let given = guarded(call).await;
                take(used, given, &[]);
            }
            ExecutedTask::Atomic(_) => {}
            ExecutedTask::Scenario(task, steps) => {
                for step in steps.iter().filter(|step| used.scores(&step.task.r#type)) {
                    let call = used.evaluator.evaluate(&step.record, &step.task);
                    let mut given = guarded(call).await;
                    for score in scores_in(&mut given) {
                        if !names_no_step(&score.target, &task.steps) {
                            score.target = ScoreTarget::Step(step.task.id.clone());
                        }
                    }
                    take(used, given, &task.steps);
                }
                if used.scores(SCENARIO) {
                    let call = used.evaluator.evaluate_scenario(&executed.record, task);
                    let given = guarded(call).await;
                    take(used, given, &task.steps);
                }
            }
        }
    }
    completed(&mut scores, &executed.record.id, &Timestamp::now());
    scores
}

/// Takes what an evaluator gave about an execution with these steps.
fn take(
    used: &UsedEvaluator,
    given: Result<Vec<ScoreRecord>, BoxError>,
    steps: &[AtomicTask],
    redactor: &Redactor,
    scores: &mut Vec<ScoreRecord>,
    plugin_errors: &mut Vec<PluginError>,
) {
    let given = given.unwrap_or_else(|error| {
        plugin_errors.push(PluginError {
            hook: format!("{EVALUATOR}{}", used.id),
            message: error.to_string(),
        });
        let kept = error.downcast::<PartialScores>();
        kept.map(|partial| partial.scores).unwrap_or_default()
    });
    for mut score in given {
        if !used.evaluator.declares(&score.metric) {
            note_once(
                plugin_errors,
                METRICS_OF,
                used,
                undeclared(used, &score.metric),
            );
            // The evaluator made the name up while it looked at the output.
            clean_name(&mut score.metric, redactor);
        }
        if names_no_step(&score.target, steps) {
            note_once(plugin_errors, EVALUATOR, used, nowhere(&score, steps));
            continue;
        }
        score.evaluator_id.clone_from(&used.id);
        scores.push(score);
    }
}

/// An evaluator that says the same of every step is noted once.
fn note_once(
    plugin_errors: &mut Vec<PluginError>,
    kind: &str,
    used: &UsedEvaluator,
    message: String,
) {
    let error = PluginError {
        hook: format!("{kind}{}", used.id),
        message,
    };
    if !plugin_errors.contains(&error) {
        plugin_errors.push(error);
    }
}

fn names_no_step(target: &ScoreTarget, steps: &[AtomicTask]) -> bool {
    match target {
        ScoreTarget::Step(id) => !steps.iter().any(|step| step.id == *id),
        ScoreTarget::Final | ScoreTarget::Global => false,
    }
}

fn undeclared(used: &UsedEvaluator, metric: &str) -> String {
    let declared = used.evaluator.metrics().join(", ");
    format!(
        "the score `{metric}` is of a metric that the evaluator does not declare (declared: {declared})"
    )
}

fn nowhere(score: &ScoreRecord, steps: &[AtomicTask]) -> String {
    let target = match &score.target {
        ScoreTarget::Step(id) => id.as_str(),
        ScoreTarget::Final | ScoreTarget::Global => "",
    };
    let known: Vec<&str> = steps.iter().map(|step| step.id.as_str()).collect();
    let known = match known.is_empty() {
        true => "the task has no steps".to_owned(),
        false => format!("steps: {}", known.join(", ")),
    };
    let metric = &score.metric;
    format!("the target `step:{target}` of the score `{metric}` names no step ({known})")
}

/// Those that were given, and those that were kept of a broken evaluation.
fn scores_in(given: &mut Result<Vec<ScoreRecord>, BoxError>) -> &mut [ScoreRecord] {
    match given {
        Ok(scores) => scores,
        Err(error) => match error.downcast_mut::<PartialScores>() {
            Some(partial) => &mut partial.scores,
            None => &mut [],
        },
    }
}
