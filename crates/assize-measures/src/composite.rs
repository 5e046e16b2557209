//! `composite`: several scorers as one. Each has its say, also when another one breaks.

use crate::spec::nearest;
use assize_contracts::{
    BaseScenario, BoxError, ConfigError, CustomMetric, JsonMap, Plugins, Scorer, ScorerContext,
    ScorerResult, async_trait,
};
use serde_json::Value;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// Passes when all its scorers do. Ids of checks are prefixed with their scorer's: `judge:clear`, and `judge_2:clear` for
/// a second one of its kind.
pub struct CompositeScorer {
    scorers: Vec<(String, Arc<dyn Scorer>)>,
}

impl CompositeScorer {
    /// All of these together.
    pub fn new(scorers: Vec<Arc<dyn Scorer>>) -> Self {
        let mut named: Vec<(String, Arc<dyn Scorer>)> = Vec::new();
        for scorer in scorers {
            let id = scorer.id().to_owned();
            let same = named.iter().filter(|(_, known)| known.id() == id).count();
            let name = match same {
                0 => id,
                _ => format!("{id}_{}", same + 1),
            };
            named.push((name, scorer));
        }
        Self { scorers: named }
    }
}

#[async_trait]
impl Scorer for CompositeScorer {
    fn id(&self) -> &str {
        "composite"
    }

    fn check_scenario(&self, scenario: &BaseScenario) -> Result<(), ConfigError> {
        self.scorers
            .iter()
            .try_for_each(|(_, scorer)| scorer.check_scenario(scenario))
    }

    async fn evaluate(
        &self,
        scenario: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        let mut all = ScorerResult {
            success: true,
            output_valid: true,
            ..ScorerResult::default()
        };
        for (name, scorer) in &self.scorers {
            let result = unless_it_panics(scorer.evaluate(scenario, context)).await;
            add(&mut all, scorer.id(), name, result);
        }
        Ok(all)
    }
}

type Evaluation<'a> = Pin<Box<dyn Future<Output = Result<ScorerResult, BoxError>> + Send + 'a>>;

/// A panic is one more way to break.
async fn unless_it_panics(mut evaluation: Evaluation<'_>) -> Result<ScorerResult, BoxError> {
    poll_fn(|context| {
        let poll = AssertUnwindSafe(|| evaluation.as_mut().poll(context));
        catch_unwind(poll).unwrap_or_else(|_| Poll::Ready(Err("the scorer panicked".into())))
    })
    .await
}

fn add(all: &mut ScorerResult, kind: &str, name: &str, result: Result<ScorerResult, BoxError>) {
    let result = result.unwrap_or_else(|error| ScorerResult {
        output_valid: true,
        error: Some(error.to_string()),
        ..ScorerResult::default()
    });
    all.success &= result.success;
    all.output_valid &= result.output_valid;
    // Plugins may give any numbers.
    all.passed = all.passed.saturating_add(result.passed);
    all.total = all.total.saturating_add(result.total);
    for metric in result.metrics {
        add_metric(&mut all.metrics, metric, kind, name);
    }
    all.details
        .extend(result.details.into_iter().map(|mut detail| {
            detail.id = format!("{name}:{}", detail.id);
            detail
        }));
    if let Some(error) = result.error {
        let error = format!("{name}: {error}");
        all.error = Some(match all.error.take() {
            Some(earlier) => format!("{earlier}; {error}"),
            None => error,
        });
    }
}

/// The metrics of a second scorer of a kind are named after it, so that those of one judge stay together: `judge_2_calls`.
/// So is a metric that another scorer gave, too.
fn add_metric(all: &mut Vec<CustomMetric>, mut metric: CustomMetric, kind: &str, name: &str) {
    if name != kind || all.iter().any(|known| known.name == metric.name) {
        metric.rename_after(kind, name);
    }
    all.push(metric);
}

/// The scorer that a suite's `scorer` asks for: `{ uses: checks }`, or `{ composite: [ … ] }` of several.
///
/// Keys beside `uses` are the scorer's settings.
pub fn make_scorer(plugins: &Plugins, settings: &JsonMap) -> Result<Arc<dyn Scorer>, ConfigError> {
    make_at(plugins, settings, &["scorer".to_owned()])
}

fn make_at(
    plugins: &Plugins,
    settings: &JsonMap,
    path: &[String],
) -> Result<Arc<dyn Scorer>, ConfigError> {
    if let Some(list) = settings.get("composite") {
        return make_composite(plugins, list, path);
    }
    let known: Vec<&str> = plugins.scorers().keys().map(String::as_str).collect();
    let name = settings.get("uses").and_then(Value::as_str);
    let make = name.and_then(|name| plugins.scorers().get(name));
    let (Some(name), Some(make)) = (name, make) else {
        let message = match name {
            Some(name) => format!("unknown scorer `{name}`"),
            None => "expected `uses`: a scorer".to_owned(),
        };
        let hint = match name.and_then(|name| nearest(name, &known)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known scorers: {}", known.join(", ")),
        };
        return Err(error_at(path, "uses", message, Some(hint)));
    };
    let mut own = settings.clone();
    own.remove("uses");
    make(&own).map_err(|error| error_at(path, name, error.to_string(), None))
}

fn make_composite(
    plugins: &Plugins,
    list: &Value,
    path: &[String],
) -> Result<Arc<dyn Scorer>, ConfigError> {
    let entries = list.as_array().filter(|entries| !entries.is_empty());
    let Some(entries) = entries else {
        let message = "expected a list of scorers".to_owned();
        return Err(error_at(path, "composite", message, None));
    };
    let mut scorers = Vec::with_capacity(entries.len());
    for (position, entry) in entries.iter().enumerate() {
        let place = [path, &["composite".to_owned(), position.to_string()]].concat();
        let Some(settings) = entry
            .as_object()
            .filter(|map| !map.contains_key("composite"))
        else {
            return Err(error_at(
                &place,
                "uses",
                "expected a scorer".to_owned(),
                None,
            ));
        };
        scorers.push(make_at(plugins, settings, &place)?);
    }
    Ok(Arc::new(CompositeScorer::new(scorers)))
}

fn error_at(path: &[String], key: &str, message: String, hint: Option<String>) -> ConfigError {
    ConfigError {
        hint,
        ..ConfigError::at([path, &[key.to_owned()]].concat(), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChecksScorer;
    use assize_contracts::{PromptResult, ScorerCheckResult};
    use serde_json::json;

    struct Broken;
    struct Panicking;

    #[async_trait]
    impl Scorer for Broken {
        fn id(&self) -> &str {
            "broken"
        }

        async fn evaluate(
            &self,
            _scenario: &BaseScenario,
            _context: &ScorerContext,
        ) -> Result<ScorerResult, BoxError> {
            Err("no answer".into())
        }
    }

    #[async_trait]
    impl Scorer for Panicking {
        fn id(&self) -> &str {
            "panicking"
        }

        async fn evaluate(
            &self,
            _scenario: &BaseScenario,
            _context: &ScorerContext,
        ) -> Result<ScorerResult, BoxError> {
            panic!("on purpose")
        }
    }

    fn evaluate(scorer: &dyn Scorer) -> ScorerResult {
        let mut scenario = BaseScenario::new("s", "p");
        scenario.checks = vec![json!({"output": {"contains": "yes"}, "id": "agrees"})];
        let context = ScorerContext {
            agent_output: "yes".to_owned(),
            result: Some(Arc::new(PromptResult::default())),
            ..ScorerContext::default()
        };
        pollster::block_on(scorer.evaluate(&scenario, &context)).unwrap()
    }

    #[test]
    fn a_broken_scorer_does_not_hide_the_others() {
        let scorer = CompositeScorer::new(vec![
            Arc::new(Broken),
            Arc::new(Panicking),
            Arc::new(ChecksScorer::new()),
        ]);
        let result = evaluate(&scorer);
        let error = "broken: no answer; panicking: the scorer panicked";
        assert_eq!(result.error.as_deref(), Some(error));
        assert_eq!((result.passed, result.total), (1, 1));
        assert_eq!(result.details[0].id, "checks:agrees");
        assert!(!result.success);
    }

    struct Judge(f64);

    #[async_trait]
    impl Scorer for Judge {
        fn id(&self) -> &str {
            "judge"
        }

        async fn evaluate(
            &self,
            _scenario: &BaseScenario,
            _context: &ScorerContext,
        ) -> Result<ScorerResult, BoxError> {
            let calls = CustomMetric::number("judge_calls", self.0, "count");
            // The cost of the first one is unknown.
            let cost = (self.0 > 1.0).then(|| CustomMetric::number("judge_cost_usd", 0.5, "USD"));
            Ok(ScorerResult {
                metrics: calls.into_iter().chain(cost.flatten()).collect(),
                passed: u64::MAX,
                total: u64::MAX,
                details: vec![ScorerCheckResult {
                    id: "clear".to_owned(),
                    ..ScorerCheckResult::default()
                }],
                ..ScorerResult::default()
            })
        }
    }

    #[test]
    fn two_scorers_of_a_kind_are_told_apart() {
        let scorer = CompositeScorer::new(vec![Arc::new(Judge(1.0)), Arc::new(Judge(2.0))]);
        let result = evaluate(&scorer);
        let ids: Vec<&str> = result.details.iter().map(|check| &*check.id).collect();
        assert_eq!(ids, ["judge:clear", "judge_2:clear"]);
        let metrics: Vec<&str> = result.metrics.iter().map(|metric| &*metric.name).collect();
        assert_eq!(
            metrics,
            ["judge_calls", "judge_2_calls", "judge_2_cost_usd"]
        );
        assert_eq!((result.passed, result.total), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_suite_names_its_scorers() {
        let make = |settings: Value| {
            let plugins = crate::plugins().scorer(Broken);
            make_scorer(&plugins, settings.as_object().unwrap())
        };
        assert!(evaluate(&*make(json!({"uses": "checks"})).unwrap()).success);
        let both = make(json!({"composite": [{"uses": "checks"}, {"uses": "broken"}]})).unwrap();
        assert_eq!(evaluate(&*both).details.len(), 1);

        let path = |settings: Value| make(settings).err().unwrap().path.join(".");
        assert_eq!(path(json!({"uses": "jury"})), "scorer.uses");
        assert_eq!(path(json!({"composite": []})), "scorer.composite");
        let list = json!({"composite": [{"uses": "checks"}, {}]});
        assert_eq!(path(list), "scorer.composite.1.uses");
    }
}
