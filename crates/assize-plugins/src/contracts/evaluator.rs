//! An evaluator in a plugin program.

use crate::program::PluginProgram;
use crate::protocol::{EvaluatorEvaluateParams, EvaluatorEvaluateScenarioParams, EvaluatorOffer};
use assize_contracts::{
    AtomicTask, BoxError, Evaluator, JsonMap, Plugins, RunRecord, ScenarioTask, ScoreRecord,
    async_trait,
};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

struct ProgramEvaluator {
    program: Arc<PluginProgram>,
    offer: EvaluatorOffer,
    /// The suite's name for it.
    id: String,
    config: JsonMap,
}

/// Adds the evaluator; its configuration in the suite goes along with every call.
pub(super) fn register(
    plugins: Plugins,
    program: Arc<PluginProgram>,
    offer: EvaluatorOffer,
) -> Plugins {
    let EvaluatorOffer { id, metrics } = offer.clone();
    let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
    plugins.evaluator_with(id, "unversioned", &metrics, move |setup| {
        Ok(Arc::new(ProgramEvaluator {
            program: Arc::clone(&program),
            offer: offer.clone(),
            id: setup.id.to_owned(),
            config: setup.config.clone(),
        }))
    })
}

impl ProgramEvaluator {
    /// Scores are filed under the suite's name, since a suite may use one evaluator twice.
    async fn call(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let mut scores: Vec<ScoreRecord> = self.program.call(method, params).await?;
        for score in &mut scores {
            score.evaluator_id.clone_from(&self.id);
        }
        Ok(scores)
    }
}

#[async_trait]
impl Evaluator for ProgramEvaluator {
    fn id(&self) -> &str {
        &self.id
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
            config: Cow::Borrowed(&self.config),
        };
        self.call("evaluator/evaluate", params).await
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
            config: Cow::Borrowed(&self.config),
        };
        self.call("evaluator/evaluateScenario", params).await
    }
}
