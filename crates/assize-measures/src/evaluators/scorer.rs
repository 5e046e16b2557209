//! Any scorer in the place of an evaluator: the task is its scenario, the output is what the agent said.

use assize_contracts::{
    AtomicTask, BaseScenario, BoxError, CompletionReason, CostBreakdown, CustomMetric, Evaluator,
    Evidence, JsonMap, MetricValue, PartialScores, PromptMetrics, PromptResult, RunRecord,
    RunStatus, ScenarioTask, ScoreRecord, ScoreTarget, ScoreValue, Scorer, ScorerContext,
    ScorerResult, TimingBreakdown, TokenBreakdown, as_text, async_trait,
};
use serde_json::Value;
use std::sync::Arc;

/// Scores tasks by a scorer of scenarios. Its settings are in the task's extensions: `checks`, `rubric`.
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

    /// Scorers of scenarios declare no metrics: what they measure besides success is theirs.
    fn declares(&self, _: &str) -> bool {
        true
    }

    async fn evaluate(
        &self,
        run: &RunRecord,
        task: &AtomicTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let extensions = self.extensions(task.extensions.as_ref());
        let scenario = BaseScenario::of_task(&AtomicTask {
            extensions: Some(extensions),
            ..task.clone()
        });
        self.scores(run, &scenario).await
    }

    /// The whole is held against the criteria by its final output.
    async fn evaluate_scenario(
        &self,
        run: &RunRecord,
        task: &ScenarioTask,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let extensions = self.extensions(task.extensions.as_ref());
        let scenario = BaseScenario {
            name: task.name.clone(),
            ..BaseScenario::new(task.id.clone(), task.description.clone())
        };
        self.scores(run, &scenario.with_extensions(extensions))
            .await
    }
}

impl ScorerEvaluator {
    /// The task's own, and the criteria where it has none.
    fn extensions(&self, own: Option<&JsonMap>) -> JsonMap {
        let mut extensions = own.cloned().unwrap_or_default();
        for (key, value) in &self.criteria {
            extensions.entry(key).or_insert_with(|| value.clone());
        }
        extensions
    }

    async fn scores(
        &self,
        run: &RunRecord,
        scenario: &BaseScenario,
    ) -> Result<Vec<ScoreRecord>, BoxError> {
        let context = context(run, scenario);
        let result = self.scorer.evaluate(scenario, &context).await?;
        let mut scores = measured(run, &result.metrics);
        match result.error {
            Some(message) => Err(Box::new(PartialScores { message, scores })),
            None => {
                let score = ScoreRecord::new(run, "success", result.success, ScoreTarget::Final);
                scores.insert(0, score.because(evidence(&result)));
                Ok(scores)
            }
        }
    }
}

/// The cost of scoring, and whatever else the scorer measured: kept apart from the measurements of the execution.
fn measured(run: &RunRecord, metrics: &[CustomMetric]) -> Vec<ScoreRecord> {
    let score = |metric: &CustomMetric| {
        let value = match &metric.value {
            MetricValue::Number(number) => ScoreValue::Number(*number),
            MetricValue::Text(text) => ScoreValue::Text(text.to_string()),
        };
        let evidence = Evidence::explained(format!("in {}", metric.unit));
        let score = ScoreRecord::new(run, &*metric.name, value, ScoreTarget::Global);
        score.because(evidence).meaning(metric)
    };
    metrics.iter().map(score).collect()
}

/// Every check in a line, and by its id what was expected and found.
fn evidence(result: &ScorerResult) -> Evidence {
    let snippets = result.details.iter().map(|check| {
        let mark = if check.passed { "passed" } else { "failed" };
        let name = match check.description.is_empty() {
            true => &check.id,
            false => &check.description,
        };
        format!("{mark}: {name}")
    });
    let sides = result.details.iter().map(|check| {
        let sides = [("expected", &check.expected), ("actual", &check.actual)];
        let known = sides.into_iter();
        let known = known.filter_map(|(side, value)| Some((side.to_owned(), value.clone()?)));
        (check.id.clone(), Value::Object(known.collect()))
    });
    Evidence {
        snippets: Some(snippets.collect()),
        alignment: Some(sides.collect()),
        ..Evidence::explained(format!("{} of {} checks hold", result.passed, result.total))
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
        cost: CostBreakdown {
            total_usd: run.metrics.cost,
            ..CostBreakdown::default()
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
