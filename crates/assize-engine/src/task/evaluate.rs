//! Asks the evaluators: about a task, or about each step of a chain and then about the whole.

use super::UsedEvaluator;
use super::execute::{Executed, ExecutedTask};
use super::trial::completed;
use crate::guard::guarded;
use assize_contracts::{BoxError, HookError, PartialScores, ScoreRecord, ScoreTarget, Timestamp};

/// How losses of evaluators begin; their id follows.
pub(super) const EVALUATOR: &str = "evaluator:";

/// What whole chains are called among task types.
const SCENARIO: &str = "scenario";

/// All scores of an execution. An evaluator that breaks loses its own.
pub(super) async fn evaluate(
    evaluators: &[UsedEvaluator],
    executed: &Executed<'_>,
    losses: &mut Vec<HookError>,
) -> Vec<ScoreRecord> {
    let mut scores = Vec::new();
    for used in evaluators {
        match &executed.task {
            ExecutedTask::Atomic(task) if used.scores(&task.r#type) => {
                let call = used.evaluator.evaluate(&executed.record, task);
                let given = guarded(call).await;
                take(used, given, &mut scores, losses);
            }
            ExecutedTask::Atomic(_) => {}
            ExecutedTask::Scenario(task, steps) => {
                for step in steps.iter().filter(|step| used.scores(&step.task.r#type)) {
                    let call = used.evaluator.evaluate(&step.record, &step.task);
                    let mut given = guarded(call).await;
                    for score in scores_in(&mut given) {
                        score.target = ScoreTarget::Step(step.task.id.clone());
                    }
                    take(used, given, &mut scores, losses);
                }
                if used.scores(SCENARIO) {
                    let call = used.evaluator.evaluate_scenario(&executed.record, task);
                    let given = guarded(call).await;
                    take(used, given, &mut scores, losses);
                }
            }
        }
    }
    completed(&mut scores, &executed.record.id, &Timestamp::now());
    scores
}

fn take(
    used: &UsedEvaluator,
    given: Result<Vec<ScoreRecord>, BoxError>,
    scores: &mut Vec<ScoreRecord>,
    losses: &mut Vec<HookError>,
) {
    let given = given.unwrap_or_else(|error| {
        losses.push(HookError {
            hook: format!("{EVALUATOR}{}", used.id),
            message: error.to_string(),
        });
        let kept = error.downcast::<PartialScores>();
        kept.map(|partial| partial.scores).unwrap_or_default()
    });
    scores.extend(given.into_iter().map(|mut score| {
        score.evaluator_id.clone_from(&used.id);
        score
    }));
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
