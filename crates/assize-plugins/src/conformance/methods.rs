//! Every method of every contract, each with input as a run gives it and with input that no run would give.

use super::exchange::{Exchange, expect_refusal};
use super::{Findings, samples};
use crate::error::CallError;
use crate::protocol::*;
use assize_contracts::{
    AfterScenarioContext, AnalysisResult, BaseScenario, BeforeScenarioContext, CustomMetric,
    HookEvent, ModeConfig, PromptResult, RunRecord, RunStatus, ScoreRecord, ScorerResult,
    SessionHandle, SessionTrace, TokenBreakdown,
};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn try_all(exchange: &Exchange, modes: &[String], findings: &mut Findings) {
    let offer = exchange.offer();
    for provider in &offer.providers {
        try_provider(exchange, &provider.id, findings).await;
    }
    for ScorerOffer { id } in &offer.scorers {
        try_scorer(exchange, id, findings).await;
    }
    for CollectorOffer { id } in &offer.collectors {
        try_collector(exchange, id, findings).await;
    }
    for AnalyzerOffer { name } in &offer.analyzers {
        try_analyzer(exchange, name, findings).await;
    }
    if offer.mode_resolver.is_some() {
        try_mode_resolver(exchange, modes, findings).await;
    }
    if let Some(hooks) = &offer.hooks {
        try_hooks(exchange, hooks, findings).await;
    }
    for runner in &offer.runners {
        try_runner(exchange, runner, findings).await;
    }
    for evaluator in &offer.evaluators {
        try_evaluator(exchange, evaluator, findings).await;
    }
}

/// One contract of a plugin under test.
struct Subject<'a> {
    exchange: &'a Exchange,
    name: String,
    findings: &'a mut Findings,
}

impl<'a> Subject<'a> {
    fn new(exchange: &'a Exchange, name: String, findings: &'a mut Findings) -> Self {
        Self {
            exchange,
            name,
            findings,
        }
    }

    /// Good input: a result of the right shape that is also sensible.
    async fn good<R: DeserializeOwned>(
        &mut self,
        check: &str,
        method: &str,
        params: impl Serialize,
        is_sensible: impl FnOnce(&R) -> Result<(), String>,
    ) -> Option<R> {
        let answer: Result<R, CallError> = self.exchange.call(method, params).await;
        let (result, outcome) = match answer {
            Ok(result) => {
                let outcome = is_sensible(&result);
                (Some(result), outcome)
            }
            Err(error) => (None, Err(error.to_string())),
        };
        self.findings
            .note(&self.name, &format!("`{method}` {check}"), outcome);
        result
    }

    /// Bad input: an error, and the plugin goes on.
    async fn bad(&mut self, check: &str, method: &str, params: Value) {
        let answer = self.exchange.call::<Value>(method, params).await;
        let outcome = expect_refusal(answer).and(self.exchange.is_alive().await);
        self.findings
            .note(&self.name, &format!("`{method}` {check}"), outcome);
    }

    /// Requests that no run would send: nothing at all, and a name that is not served.
    async fn bad_usual(&mut self, method: &str, key: &str, mut params: Value) {
        self.bad("refuses empty parameters", method, json!({}))
            .await;
        params[key] = json!("nobody-has-this");
        self.bad("refuses a name that is not served", method, params)
            .await;
    }
}

fn fine<T>(_: &T) -> Result<(), String> {
    Ok(())
}

fn expect(holds: bool, problem: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem.into()) }
}

fn as_json(params: &impl Serialize) -> Value {
    serde_json::to_value(params).expect("messages are JSON")
}

async fn try_provider(exchange: &Exchange, id: &str, findings: &mut Findings) {
    let mut subject = Subject::new(exchange, format!("provider {id}"), findings);
    let init = ProviderInitParams {
        provider: id.into(),
        config: Cow::Owned(samples::config()),
    };
    subject
        .good::<IgnoredAny>("is answered", "provider/init", &init, fine)
        .await;
    subject
        .bad_usual(
            "provider/createSession",
            "provider",
            json!({ "params": samples::session(0) }),
        )
        .await;
    for handle in try_to_create_sessions(&mut subject, id).await {
        try_session(&mut subject, id, &handle).await;
    }
    subject
        .bad("refuses empty parameters", "provider/prompt", json!({}))
        .await;
    let shutdown = ProviderShutdownParams {
        provider: id.into(),
    };
    subject
        .good::<IgnoredAny>("is answered", "provider/shutdown", &shutdown, fine)
        .await;
}

/// Asks for two sessions, and returns those that were created.
async fn try_to_create_sessions(subject: &mut Subject<'_>, provider: &str) -> Vec<SessionHandle> {
    let mut sessions: Vec<SessionHandle> = Vec::new();
    for iteration in 0..2 {
        let params = ProviderCreateSessionParams {
            provider: provider.into(),
            params: Cow::Owned(samples::session(iteration)),
        };
        let check = "gives a handle with an id of its own";
        let is_new = |handle: &SessionHandle| {
            let is_seen = |other: &SessionHandle| other.session_id == handle.session_id;
            expect(
                !handle.session_id.is_empty() && !sessions.iter().any(is_seen),
                "found an id that is empty or in use",
            )
        };
        let created = subject
            .good(check, "provider/createSession", &params, is_new)
            .await;
        sessions.extend(created);
    }
    sessions
}

/// Prompts a session, exports it, and ends it twice.
async fn try_session(subject: &mut Subject<'_>, provider: &str, handle: &SessionHandle) {
    let prompt = ProviderPromptParams {
        provider: provider.into(),
        handle: Cow::Borrowed(handle),
        text: Cow::Borrowed("Say hello."),
        timeout_ms: 10_000,
    };
    let answered = |result: &PromptResult| tokens_add_up(&result.metrics.tokens);
    subject
        .good(
            "is answered, and known tokens add up",
            "provider/prompt",
            &prompt,
            answered,
        )
        .await;
    let on_session = ProviderSessionParams {
        provider: provider.into(),
        handle: Cow::Borrowed(handle),
    };
    let exported = |trace: &SessionTrace| {
        expect(
            trace.session_id == handle.session_id,
            format!("found the trace of session `{}`", trace.session_id),
        )
    };
    subject
        .good(
            "gives the session's trace",
            "provider/exportSession",
            &on_session,
            exported,
        )
        .await;
    for check in ["is answered", "is answered a second time, too"] {
        subject
            .good::<IgnoredAny>(check, "provider/destroySession", &on_session, fine)
            .await;
    }
}

fn tokens_add_up(tokens: &TokenBreakdown) -> Result<(), String> {
    let parts = [
        tokens.input,
        tokens.output,
        tokens.reasoning,
        tokens.cache_read,
        tokens.cache_write,
    ];
    let Some(total) = tokens.total.filter(|_| parts.iter().all(Option::is_some)) else {
        return Ok(());
    };
    let sum = parts
        .iter()
        .flatten()
        .fold(0u64, |sum, part| sum.saturating_add(*part));
    expect(
        sum == total,
        format!("found a total of {total} tokens, the parts make {sum}"),
    )
}

async fn try_scorer(exchange: &Exchange, id: &str, findings: &mut Findings) {
    let mut subject = Subject::new(exchange, format!("scorer {id}"), findings);
    let params = |trace| ScorerEvaluateParams {
        scorer: Cow::Borrowed(id),
        scenario: Cow::Owned(samples::scenario()),
        context: Cow::Owned(samples::scorer_context(trace)),
        settings: Cow::Owned(Default::default()),
    };
    let sensible = |result: &ScorerResult| {
        expect(
            result.passed <= result.total,
            format!("found {} of {} checks passed", result.passed, result.total),
        )
    };
    subject
        .good(
            "judges a trial",
            "scorer/evaluate",
            params(Some(samples::trace())),
            sensible,
        )
        .await;
    subject
        .good(
            "judges a trial without a trace",
            "scorer/evaluate",
            params(None),
            sensible,
        )
        .await;
    subject
        .bad_usual("scorer/evaluate", "scorer", as_json(&params(None)))
        .await;
}

async fn try_collector(exchange: &Exchange, id: &str, findings: &mut Findings) {
    let mut subject = Subject::new(exchange, format!("collector {id}"), findings);
    let params = |result, trace: Option<SessionTrace>| CollectorCollectParams {
        collector: Cow::Borrowed(id),
        result: Cow::Owned(result),
        scenario: Cow::Owned(samples::scenario()),
        mode: Cow::Borrowed("plain"),
        trace: trace.map(Cow::Owned),
    };
    let sensible = |metrics: &Vec<CustomMetric>| {
        let mut seen = BTreeSet::new();
        let twice = metrics.iter().find(|metric| !seen.insert(&metric.name));
        match (
            twice,
            metrics.iter().any(|metric| metric.name.trim().is_empty()),
        ) {
            (Some(metric), _) => Err(format!("found the metric `{}` twice", metric.name)),
            (None, true) => Err("found a metric without a name".to_owned()),
            (None, false) => Ok(()),
        }
    };
    let full = params(samples::result(), Some(samples::trace()));
    subject
        .good("measures a trial", "collector/collect", &full, sensible)
        .await;
    let traceless = params(samples::result(), None);
    subject
        .good(
            "measures a trial without a trace",
            "collector/collect",
            &traceless,
            sensible,
        )
        .await;
    let bare = subject
        .exchange
        .call::<Vec<CustomMetric>>("collector/collect", params(samples::bare_result(), None))
        .await;
    // It may say that it cannot measure this, but it must say something.
    let outcome = match bare {
        Ok(_) | Err(CallError::Refused(_)) => subject.exchange.is_alive().await,
        Err(error) => Err(error.to_string()),
    };
    subject.findings.note(
        &subject.name,
        "`collector/collect` survives a trial of which little is known",
        outcome,
    );
    subject
        .bad_usual("collector/collect", "collector", as_json(&full))
        .await;
}

async fn try_analyzer(exchange: &Exchange, name: &str, findings: &mut Findings) {
    let mut subject = Subject::new(exchange, format!("analyzer {name}"), findings);
    let params = AnalyzerAnalyzeParams {
        analyzer: Cow::Borrowed(name),
        trace: Cow::Owned(samples::trace()),
        scenario: Cow::Owned(samples::scenario()),
        mode: Cow::Borrowed("plain"),
    };
    let sensible = |result: &AnalysisResult| {
        expect(
            result.analyzer == name,
            format!(
                "found the analyzer `{}`, expected `{name}`",
                result.analyzer
            ),
        )
    };
    subject
        .good("explains a session", "analyzer/analyze", &params, sensible)
        .await;
    let empty = AnalyzerAnalyzeParams {
        trace: Cow::Owned(SessionTrace::default()),
        ..params
    };
    subject
        .good(
            "explains a session without events",
            "analyzer/analyze",
            &empty,
            sensible,
        )
        .await;
    subject
        .bad_usual("analyzer/analyze", "analyzer", as_json(&empty))
        .await;
}

async fn try_mode_resolver(exchange: &Exchange, modes: &[String], findings: &mut Findings) {
    let mut subject = Subject::new(exchange, "mode resolver".to_owned(), findings);
    for mode in modes {
        let params = ModeParams {
            mode: Cow::Borrowed(mode),
        };
        let check = format!("knows the mode `{mode}`");
        subject
            .good::<ModeConfig>(&check, "modeResolver/resolve", params, fine)
            .await;
    }
    let unknown = json!({ "mode": "nobody-has-this-mode" });
    subject
        .bad("refuses an unknown mode", "modeResolver/resolve", unknown)
        .await;
    subject
        .bad(
            "refuses empty parameters",
            "modeResolver/resolve",
            json!({}),
        )
        .await;
}

async fn try_hooks(exchange: &Exchange, offer: &HooksOffer, findings: &mut Findings) {
    let mut subject = Subject::new(exchange, "hooks".to_owned(), findings);
    let before = BeforeScenarioContext {
        scenario: Arc::new(samples::scenario()),
        mode: "plain".to_owned(),
        model: "sample-model".to_owned(),
        iteration: 0,
    };
    for event in &offer.events {
        let method = format!("hooks/{}", event.as_str());
        match event {
            HookEvent::BeforeScenario => {
                let params = BeforeScenarioParams {
                    context: Cow::Borrowed(&before),
                };
                let check = "gives a scenario or nothing";
                subject
                    .good::<Option<BaseScenario>>(check, &method, params, fine)
                    .await;
            }
            HookEvent::AfterScenario => {
                let context = AfterScenarioContext {
                    before: before.clone(),
                    result: samples::row(),
                    trace: None,
                };
                let params = AfterScenarioParams {
                    context: Cow::Owned(context),
                };
                subject
                    .good::<IgnoredAny>("is answered", &method, params, fine)
                    .await;
            }
            HookEvent::BeforeMode | HookEvent::AfterMode => {
                let params = ModeParams {
                    mode: Cow::Borrowed("plain"),
                };
                subject
                    .good::<IgnoredAny>("is answered", &method, params, fine)
                    .await;
            }
            HookEvent::BeforeRun | HookEvent::AfterRun => {
                let params = RunParams {
                    context: Cow::Owned(samples::run_context()),
                };
                subject
                    .good::<IgnoredAny>("is answered", &method, params, fine)
                    .await;
            }
        }
    }
}

async fn try_runner(exchange: &Exchange, offer: &RunnerOffer, findings: &mut Findings) {
    let id = &offer.id;
    let mut subject = Subject::new(exchange, format!("runner {id}"), findings);
    let params = RunnerExecuteParams {
        runner: Cow::Borrowed(id),
        task: Cow::Owned(samples::task(&offer.r#type)),
        config: Cow::Owned(json!({})),
        setting: None,
    };
    let sensible = |record: &RunRecord| {
        expect(
            record.task_id == "sample-task",
            format!("found the record of task `{}`", record.task_id),
        )?;
        let is_over = matches!(record.status, RunStatus::Completed | RunStatus::Failed);
        expect(
            is_over,
            "found a record that is neither completed nor failed",
        )?;
        expect(
            record.trace.len() >= 2,
            "found a trace without a beginning and an end",
        )
    };
    subject
        .good(
            "gives a record that is completed or failed",
            "runner/execute",
            &params,
            sensible,
        )
        .await;
    subject
        .bad_usual("runner/execute", "runner", as_json(&params))
        .await;
}

async fn try_evaluator(exchange: &Exchange, offer: &EvaluatorOffer, findings: &mut Findings) {
    let id = &offer.id;
    let mut subject = Subject::new(exchange, format!("evaluator {id}"), findings);
    let params = EvaluatorEvaluateParams {
        evaluator: Cow::Borrowed(id),
        run: Cow::Owned(samples::record("atomic")),
        task: Cow::Owned(samples::task("sample")),
        config: Cow::default(),
    };
    let sensible = |scores: &Vec<ScoreRecord>| {
        let is_ours =
            |score: &ScoreRecord| score.run_id == "sample-record" && score.evaluator_id == *id;
        expect(
            scores.iter().all(is_ours),
            "found a score whose `runId` or `evaluatorId` is another's",
        )
    };
    subject
        .good("scores a task", "evaluator/evaluate", &params, sensible)
        .await;
    let whole = EvaluatorEvaluateScenarioParams {
        evaluator: Cow::Borrowed(id),
        run: Cow::Owned(samples::record("scenario")),
        task: Cow::Owned(samples::chain()),
        config: Cow::default(),
    };
    subject
        .good(
            "scores a chain",
            "evaluator/evaluateScenario",
            &whole,
            sensible,
        )
        .await;
    subject
        .bad_usual("evaluator/evaluate", "evaluator", as_json(&params))
        .await;
}
