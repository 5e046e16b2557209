//! Any scorer in the place of an evaluator: the task is its scenario, the output is what the agent said.

use assize_contracts::{
    AtomicTask, BaseScenario, BoxError, CompletionReason, Evaluator, Evidence, JsonMap,
    PromptMetrics, PromptResult, RunRecord, RunStatus, ScoreRecord, ScoreTarget, Scorer,
    ScorerContext, TimingBreakdown, TokenBreakdown, as_text, async_trait,
};
use std::sync::Arc;

/// Scores tasks by a scorer of scenarios. What it looks for lies in the task's extensions: `checks`, `rubric`.
pub struct ScorerEvaluator {
    id: String,
    metrics: Vec<String>,
    scorer: Arc<dyn Scorer>,
    /// Extensions of tasks that have none of that name.
    criteria: JsonMap,
}

impl ScorerEvaluator {
    /// The scorer under a suite's name for it, with `checks` or a `rubric` for tasks that have none.
    pub fn shared(id: &str, scorer: Arc<dyn Scorer>, criteria: JsonMap) -> Arc<dyn Evaluator> {
        Arc::new(Self {
            id: id.to_owned(),
            metrics: vec!["success".to_owned()],
            scorer,
            criteria,
        })
    }
}

#[async_trait]
impl Evaluator for ScorerEvaluator {
    fn id(&self) -> &str {
        &self.id
    }

    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn evaluate(
        &self,
        run: &RunRecord,
        task: &AtomicTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let scenario = match self.criteria.is_empty() {
            true => BaseScenario::of_task(task),
            false => {
                let mut task = task.clone();
                let extensions = task.extensions.get_or_insert_default();
                for (key, value) in &self.criteria {
                    extensions.entry(key).or_insert_with(|| value.clone());
                }
                BaseScenario::of_task(&task)
            }
        };
        let result = self
            .scorer
            .evaluate(&scenario, &context(run, &scenario))
            .await?;
        if let Some(error) = result.error {
            return Err(error.into());
        }
        let snippets = result.details.iter().map(|check| {
            let mark = if check.passed { "passed" } else { "failed" };
            format!(
                "{mark}: {}",
                if check.description.is_empty() {
                    &check.id
                } else {
                    &check.description
                }
            )
        });
        let evidence = Evidence {
            snippets: Some(snippets.collect()),
            ..Evidence::explained(format!("{} of {} checks hold", result.passed, result.total))
        };
        let score = ScoreRecord::new(run, "success", result.success, ScoreTarget::Final);
        Ok(vec![score.because(evidence)])
    }
}

/// An execution as scorers see a session.
fn context(run: &RunRecord, scenario: &BaseScenario) -> ScorerContext {
    let text = run.output.as_ref().map(as_text).unwrap_or_default();
    let metrics = PromptMetrics {
        tokens: TokenBreakdown {
            total: run.metrics.tokens,
            ..TokenBreakdown::default()
        },
        timing: TimingBreakdown {
            wall_ms: Some(run.metrics.latency),
            segments: Vec::new(),
        },
        ..PromptMetrics::default()
    };
    let completion_reason = match run.status {
        RunStatus::Completed => CompletionReason::Stop,
        _ => CompletionReason::Error,
    };
    ScorerContext {
        agent_output: text.clone(),
        metadata: scenario.extensions.clone(),
        result: Some(Arc::new(PromptResult {
            text,
            metrics,
            completion_reason,
        })),
        ..ScorerContext::default()
    }
}
