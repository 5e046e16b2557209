//! An evaluator in a plugin program.

use crate::program::PluginProgram;
use crate::protocol::{EvaluatorEvaluateParams, EvaluatorEvaluateScenarioParams, EvaluatorOffer};
use assize_contracts::{
    AtomicTask, BoxError, Evaluator, RunRecord, ScenarioTask, ScoreRecord, async_trait,
};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct ProgramEvaluator {
    pub(super) program: Arc<PluginProgram>,
    pub(super) offer: EvaluatorOffer,
}

#[async_trait]
impl Evaluator for ProgramEvaluator {
    fn id(&self) -> &str {
        &self.offer.id
    }

    fn metrics(&self) -> &[String] {
        &self.offer.metrics
    }

    async fn evaluate(
        &self,
        run: &RunRecord,
        task: &AtomicTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let params = EvaluatorEvaluateParams {
            evaluator: Cow::Borrowed(&self.offer.id),
            run: Cow::Borrowed(run),
            task: Cow::Borrowed(task),
        };
        Ok(self
            .program
            .call("evaluator/evaluate", params, None)
            .await?)
    }

    async fn evaluate_scenario(
        &self,
        run: &RunRecord,
        task: &ScenarioTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let params = EvaluatorEvaluateScenarioParams {
            evaluator: Cow::Borrowed(&self.offer.id),
            run: Cow::Borrowed(run),
            task: Cow::Borrowed(task),
        };
        Ok(self
            .program
            .call("evaluator/evaluateScenario", params, None)
            .await?)
    }
}
