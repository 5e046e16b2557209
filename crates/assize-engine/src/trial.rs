//! One trial, from the first hook to the finished row. The order of calls is a promise to plugin authors.

mod cell;
mod place;
pub(crate) mod row;
mod talk;

use crate::event::{Event, Listener};
use crate::guard::{guarded, guarded_provider};
use crate::hooks::Hooks;
use crate::instances::Instance;
use crate::store::{Outside, SeenMetrics, TrialRecord};
use crate::suite::ProfileSuite;
use crate::watch::watched;
use crate::workspace::{TrialWorkspace, TrialWorkspaces};
use assize_contracts::{
    AfterScenarioContext, Attempt, BaseScenario, Caution, CautionCode, ContainerHandle,
    CreateSessionParams, CustomMetric, HookEvent, JsonMap, Metric, MetricValue, Nature, Outcome,
    PluginError, PromptResult, ProviderError, SCHEMA_VERSION, ScorerContext, ScorerResult,
    SessionAnalysisBundle, SessionHandle, SessionSandbox, SessionTrace, TokenBreakdown,
};
use assize_llm::{Prices, Reckoning, price_calls};
use assize_secrets::Redactor;
pub(crate) use cell::TrialCell;
pub(crate) use place::filled;
use row::{Clock, RowParts, attempt_of, compose};
use serde_json::Value;
use serde_json::map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use talk::{Failure, Talk, converse};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time for a session to end after a cancel, and for a trial to be scored.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// An answer that took this long was waited for.
const WAITED_FOR: Duration = Duration::from_millis(1);

/// The state that all trials of a run share.
pub(crate) struct Trials {
    pub(crate) run_id: String,
    pub(crate) suite: Arc<ProfileSuite>,
    pub(crate) hooks: Hooks,
    pub(crate) metrics: Arc<SeenMetrics>,
    pub(crate) workspaces: TrialWorkspaces,
    pub(crate) listener: Arc<dyn Listener>,
    /// Ends running trials.
    pub(crate) cancel: CancellationToken,
    /// Lets ended sessions through a few at a time, so that those which end meanwhile are timed without delay.
    pub(crate) turnstile: Semaphore,
    /// Free executions of runners with a limit, by their id.
    pub(crate) room_at_runners: BTreeMap<String, Semaphore>,
    /// Metric names that two collectors gave and that were reported.
    pub(crate) reported: Mutex<BTreeSet<String>>,
    /// For names that plugins give to metrics: rows and the manifest contain them.
    pub(crate) redactor: Redactor,
}

/// A trial of a scenario.
pub(crate) struct Slot<'a> {
    pub(crate) cell: TrialCell<'a>,
    pub(crate) scenario: &'a Arc<BaseScenario>,
    pub(crate) instance: &'a Instance,
}

/// The attempts at a trial that came to nothing, and how many more there may be.
pub(crate) struct Tries {
    allowed: u32,
    earlier: Vec<Attempt>,
}

impl Tries {
    pub(crate) fn allowing(retries: u32) -> Self {
        Self {
            allowed: retries,
            earlier: Vec::new(),
        }
    }

    /// Of the attempt under way, from 0.
    pub(crate) fn number(&self) -> u32 {
        self.earlier.len() as u32
    }
}

/// The run was cancelled while the trial was under way: there is no row, and the cell stays open.
pub(crate) struct Cancelled;

impl Trials {
    /// One trial of a scenario.
    pub(crate) async fn run(&self, slot: &Slot<'_>) -> Result<TrialRecord, Cancelled> {
        self.listener
            .on_event(&slot.cell.started(&slot.scenario.id));
        let clock = Clock::start();
        let mut tries = Tries::allowing(slot.scenario.allowed_retries);
        loop {
            let record = self.attempt(slot, tries.number(), &clock).await?;
            if let Some(record) = self.settled(record, &mut tries) {
                return Ok(record);
            }
        }
    }

    /// The record of the trial, unless it is void and there are retries left.
    pub(crate) fn settled(
        &self,
        mut record: TrialRecord,
        tries: &mut Tries,
    ) -> Option<TrialRecord> {
        let row = &record.row;
        let (scenario, mode, iteration) = (&row.scenario_id, &row.mode, row.iteration);
        tracing::debug!(
            scenario,
            mode,
            iteration,
            outcome = row.outcome.map(Outcome::as_str),
            error = row.error,
            "ended an attempt"
        );
        if tries.number() < tries.allowed && self.is_worth_a_retry(&record) {
            tracing::info!(scenario, mode, iteration, "try the trial again");
            tries.earlier.push(attempt_of(record.row));
            return None;
        }
        record.row.attempts = std::mem::take(&mut tries.earlier);
        Some(record)
    }

    fn is_worth_a_retry(&self, record: &TrialRecord) -> bool {
        match record.row.outcome {
            Some(Outcome::Void) => true,
            Some(Outcome::Fail) => self.suite.execution.retry_fails,
            _ => false,
        }
    }

    /// One attempt: prepare, open a session, prompt, export, collect, analyze, score, end, record.
    async fn attempt(
        &self,
        slot: &Slot<'_>,
        number: u32,
        clock: &Clock,
    ) -> Result<TrialRecord, Cancelled> {
        let mut parts = RowParts::default();
        let hooked = self.before_scenario(slot, &mut parts.plugin_errors);
        let hooked = self.unless_cancelled(hooked).await;
        let talked = match &hooked {
            Ok(scenario) => self.talk(slot, number, scenario, &mut parts).await,
            Err(Cancelled) => Err(Cancelled),
        };
        let scenario = hooked.unwrap_or_else(|Cancelled| Arc::clone(slot.scenario));
        if talked.is_err() {
            parts.failure = Some(Failure::of_cancel());
        }
        match parts.workspace.take() {
            Some(workspace) if parts.failure.is_none() => workspace.remove().await,
            Some(workspace) => workspace.discard().await,
            None => {}
        }
        let mut record = compose(&self.run_id, slot, clock, parts);
        self.after_scenario(slot, scenario, &mut record).await;
        talked.map(|()| record)
    }

    /// Makes the workspace, then lets the agent work in a session.
    async fn talk(
        &self,
        slot: &Slot<'_>,
        number: u32,
        scenario: &BaseScenario,
        parts: &mut RowParts,
    ) -> Result<(), Cancelled> {
        match self.prepare(slot, scenario, parts).await? {
            true => self.with_session(slot, number, scenario, parts).await,
            false => Ok(()),
        }
    }

    /// Opens a session, lets the agent work and ends it again.
    async fn with_session(
        &self,
        slot: &Slot<'_>,
        number: u32,
        scenario: &BaseScenario,
        parts: &mut RowParts,
    ) -> Result<(), Cancelled> {
        let workdir = parts
            .workspace
            .as_ref()
            .map_or(&*self.suite.directory, TrialWorkspace::path);
        let scenario = filled(scenario, workdir, slot.cell.iteration);
        let opening = self.open_session(slot, number, &scenario, parts.workspace.as_ref());
        match self.unless_cancelled(opening).await? {
            Err(error) => {
                parts.failure = Some(Failure::of_create(error));
                Ok(())
            }
            Ok(session) => {
                let talking = converse(&*slot.instance.provider, &session, &scenario);
                let began = Instant::now();
                let talked = match self.unless_cancelled(talking).await {
                    Ok(talk) => {
                        if began.elapsed() > WAITED_FOR {
                            self.pass_the_turnstile().await;
                        }
                        self.observe(slot, number, parts).await;
                        let judging = self.judge(slot, &scenario, &session, talk, parts);
                        self.unless_cancelled_for_long(judging).await
                    }
                    Err(Cancelled) => Err(Cancelled),
                };
                self.destroy(slot, &session, talked.is_err(), &mut parts.plugin_errors)
                    .await;
                parts.session = Some(session);
                talked
            }
        }
    }

    /// Collects and scores a conversation while its session lives.
    async fn judge(
        &self,
        slot: &Slot<'_>,
        scenario: &BaseScenario,
        session: &SessionHandle,
        talk: Talk,
        parts: &mut RowParts,
    ) {
        parts.trace = self.export(slot, session, &mut parts.plugin_errors).await;
        let Talk {
            mut result,
            sent,
            failure,
            is_answered,
        } = talk.completed_from(parts.trace.as_deref());
        parts.user_turns = Some(sent.len() as u64);
        if let Some(trace) = &mut parts.trace {
            let trace = Arc::make_mut(trace);
            trace.schema_version = Some(SCHEMA_VERSION);
            trace.remember_final_text(&result.text);
            if trace.user_turns.is_empty() {
                trace.user_turns = sent;
            }
        }
        parts
            .plugin_errors
            .extend(contradicting_tokens(&result.metrics.tokens));
        parts.reckoning = Some(self.reckon(slot, &mut result, parts.trace.as_deref()));
        let result = Arc::new(result);
        parts.metrics = self.collect(slot, scenario, &result, parts).await;
        parts.analysis = self.analyze(slot, scenario, session, parts).await;
        let has_lost_workspace = parts.failure.is_some();
        parts.failure = failure.or(parts.failure.take());
        if is_answered && !has_lost_workspace {
            self.score(slot, scenario, (session, &result), parts).await;
        }
        parts.result = Some(result);
    }

    /// Lets sessions that end at the same time be timed before this one is worked up.
    async fn pass_the_turnstile(&self) {
        let place = self.turnstile.acquire().await;
        // The runtime favours whom it woke last; stepping back lets the others go first.
        tokio::task::yield_now().await;
        // Not held any longer: a scorer may take its time.
        drop(place);
    }

    pub(crate) async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Cancelled> {
        tokio::select! {
            // Work that is done at once need not register for a cancel.
            biased;
            done = work => Ok(done),
            () = self.cancel.cancelled() => Err(Cancelled),
        }
    }

    /// The same for work that is nearly done: after a cancel it may continue for a moment.
    async fn unless_cancelled_for_long<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Cancelled> {
        let too_late = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(CANCEL_GRACE).await;
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = too_late => Err(Cancelled),
        }
    }

    async fn before_scenario(
        &self,
        slot: &Slot<'_>,
        plugin_errors: &mut Vec<PluginError>,
    ) -> Arc<BaseScenario> {
        if !self.hooks.has(HookEvent::BeforeScenario) {
            return Arc::clone(slot.scenario);
        }
        self.hooks
            .before_scenario(
                slot.cell.hook_context(Arc::clone(slot.scenario)),
                plugin_errors,
            )
            .await
    }

    async fn open_session(
        &self,
        slot: &Slot<'_>,
        attempt: u32,
        scenario: &BaseScenario,
        workspace: Option<&TrialWorkspace>,
    ) -> Result<SessionHandle, ProviderError> {
        let workdir = workspace.map_or(&*self.suite.directory, TrialWorkspace::path);
        let place = workspace.map(TrialWorkspace::place);
        let params = CreateSessionParams {
            system_instructions: slot.cell.mode.system_instructions.clone(),
            scenario_id: slot.scenario.id.clone(),
            iteration: slot.cell.iteration,
            attempt,
            mode: slot.cell.arm.mode.clone(),
            model: slot.cell.arm.model.clone(),
            environment: Arc::clone(&slot.cell.mode.environment),
            workdir: workdir.to_owned(),
            permissions: self.suite.permissions.clone(),
            provider_overrides: Arc::clone(&slot.cell.mode.overrides),
            seed: self.seed_of(slot, attempt),
            sandbox: SessionSandbox {
                writable: place.into_iter().map(Path::to_owned).collect(),
                ..self.sandbox(slot, scenario)
            },
        };
        let name = ["provider", &slot.instance.name, "createSession"];
        let call = guarded_provider(slot.instance.provider.create_session(&params));
        watched(&*self.listener, &name, call).await
    }

    /// The wall around the agent of a trial.
    fn sandbox(&self, slot: &Slot<'_>, scenario: &BaseScenario) -> SessionSandbox {
        let wall = self
            .suite
            .sandbox(slot.cell.mode, scenario.sandbox.as_ref());
        SessionSandbox {
            run: Arc::from(self.run_id.as_str()),
            ..wall
        }
    }

    async fn export(
        &self,
        slot: &Slot<'_>,
        session: &SessionHandle,
        plugin_errors: &mut Vec<PluginError>,
    ) -> Option<Arc<SessionTrace>> {
        if !self.suite.output.session_export && self.suite.analyzers.is_empty() {
            return None;
        }
        let provider = &slot.instance.provider;
        let name = ["provider", &slot.instance.name, "exportSession"];
        let export = guarded_provider(provider.export_session(session));
        let export = watched(&*self.listener, &name, export);
        // It also follows timeouts, where the agent may be stuck.
        let limit = provider.export_limit();
        let message = match tokio::time::timeout(limit.unwrap_or(Duration::MAX), export).await {
            Ok(Ok(mut trace)) => {
                if let Some(prices) = self.prices(slot) {
                    price_calls(&mut trace, prices);
                }
                return Some(Arc::new(trace));
            }
            Ok(Err(error)) => error.message,
            Err(_) => format!("no answer within {:?}", limit.unwrap_or_default()),
        };
        plugin_errors.push(PluginError {
            hook: "exportSession".to_owned(),
            message,
        });
        None
    }

    /// Finds what the session cost and puts it in the result, so that collectors and checks see the same figure.
    fn reckon(
        &self,
        slot: &Slot<'_>,
        result: &mut PromptResult,
        trace: Option<&SessionTrace>,
    ) -> Reckoning {
        let metrics = &mut result.metrics;
        // An agent that does not go through the API may not pay by the token, so only its own figure counts.
        let prices = self.prices(slot).filter(|_| !metrics.not_captured);
        let found = Reckoning::of(metrics, &slot.cell.arm.model, trace, prices);
        metrics.cost = found.cost;
        metrics.cost_at_least_usd = found.at_least;
        metrics.reported_cost_usd = found.disputed;
        found
    }

    /// Simulated sessions have no price.
    fn prices(&self, slot: &Slot<'_>) -> Option<&Prices> {
        let is_real = slot.instance.provider.nature() != Nature::Simulated;
        self.suite.prices.as_ref().filter(|_| is_real)
    }

    async fn collect(
        &self,
        slot: &Slot<'_>,
        scenario: &BaseScenario,
        result: &PromptResult,
        parts: &mut RowParts,
    ) -> JsonMap {
        // Room for the built-in ones, so that the map need not grow with every few metrics.
        let mut metrics = JsonMap::with_capacity(32);
        for collector in &self.suite.collectors {
            let trace = parts.trace.as_deref();
            let call = collector.collect(result, scenario, &slot.cell.arm.mode, trace);
            let name = ["collector", collector.id()];
            match watched(&*self.listener, &name, guarded(call)).await {
                Ok(collected) => self.keep(collected, collector.id(), &mut metrics),
                Err(error) => parts.plugin_errors.push(PluginError {
                    hook: format!("collector:{}", collector.id()),
                    message: error.to_string(),
                }),
            }
        }
        self.count_changes(parts, &mut metrics);
        metrics
    }

    /// Puts what a collector or the scorer measured among the row's metrics.
    fn keep(&self, mut found: Vec<CustomMetric>, by: &str, metrics: &mut JsonMap) {
        let clean = |metric: &mut CustomMetric| metric.clean(&self.redactor);
        self.metrics.add_found(&mut found, clean);
        for mut metric in found {
            let mut place = metrics.entry(std::mem::take(&mut metric.name));
            if let Entry::Occupied(known) = &mut place {
                metric.name.clone_from(known.key());
                self.warn_duplicate_metric(&metric.name, by);
                // Its name was known, so its meaning was not looked at.
                clean(&mut metric);
                self.metrics.replace(Metric::from(&metric));
            }
            let value = match metric.value {
                MetricValue::Number(number) => number.into(),
                MetricValue::Text(text) => Value::String(text),
            };
            match place {
                Entry::Occupied(mut known) => drop(known.insert(value)),
                Entry::Vacant(new) => drop(new.insert(value)),
            }
        }
    }

    pub(crate) fn warn_duplicate_metric(&self, metric: &str, giver: &str) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.insert(metric.to_owned()) {
            self.listener.on_event(&Event::Caution(&Caution::about(
                CautionCode::MetricClash,
                format!(
                    "two measurements give the metric `{metric}`; the value of `{giver}` is kept"
                ),
                metric,
            )));
        }
    }

    async fn analyze(
        &self,
        slot: &Slot<'_>,
        scenario: &BaseScenario,
        session: &SessionHandle,
        parts: &mut RowParts,
    ) -> Option<SessionAnalysisBundle> {
        let trace = parts.trace.as_deref()?;
        if self.suite.analyzers.is_empty() {
            return None;
        }
        let mut bundle = SessionAnalysisBundle {
            schema_version: Some(SCHEMA_VERSION),
            session_id: session.session_id.clone(),
            scenario_id: slot.scenario.id.clone(),
            mode: slot.cell.arm.mode.clone(),
            model: slot.cell.arm.model.clone(),
            iteration: Some(slot.cell.iteration),
            results: Default::default(),
        };
        for analyzer in &self.suite.analyzers {
            let name = ["analyzer", analyzer.name()];
            let call = guarded(analyzer.analyze(trace, scenario, &slot.cell.arm.mode));
            match watched(&*self.listener, &name, call).await {
                Ok(result) => {
                    bundle.results.insert(analyzer.name().to_owned(), result);
                }
                Err(error) => parts.plugin_errors.push(PluginError {
                    hook: format!("analyzer:{}", analyzer.name()),
                    message: error.to_string(),
                }),
            }
        }
        Some(bundle)
    }

    async fn score(
        &self,
        slot: &Slot<'_>,
        scenario: &BaseScenario,
        (session, result): (&SessionHandle, &Arc<PromptResult>),
        parts: &mut RowParts,
    ) {
        let container = session.extra.get(ContainerHandle::KEY).cloned();
        let context = ScorerContext {
            sandbox: self.sandbox(slot, scenario),
            container: container.and_then(|found| serde_json::from_value(found).ok()),
            agent_output: result.text.clone(),
            trace: parts.trace.clone(),
            mode: slot.cell.arm.mode.clone(),
            model: slot.cell.arm.model.clone(),
            iteration: slot.cell.iteration,
            metadata: scenario.extensions.clone(),
            result: Some(Arc::clone(result)),
            workspace: parts
                .workspace
                .as_ref()
                .map(|workspace| workspace.path().to_owned()),
            changes: parts.changes.clone(),
            environment: Arc::clone(&slot.cell.mode.environment),
        };
        let name = ["scorer", self.suite.scorer.id()];
        let call = guarded(self.suite.scorer.evaluate(scenario, &context));
        let scored = watched(&*self.listener, &name, call).await;
        let mut score = scored.unwrap_or_else(|error| ScorerResult {
            error: Some(error.to_string()),
            output_valid: scenario.output_schema.is_none(),
            ..ScorerResult::default()
        });
        let mut metrics = std::mem::take(&mut score.metrics);
        metrics.iter_mut().for_each(CustomMetric::mark_as_judging);
        self.keep(metrics, self.suite.scorer.id(), &mut parts.metrics);
        if let Some(message) = score.error.take() {
            match parts.failure {
                // That it failed is known without any check.
                Some(_) => parts.plugin_errors.push(PluginError {
                    hook: format!("scorer:{}", self.suite.scorer.id()),
                    message,
                }),
                None => parts.failure = Some(Failure::of_scorer(message)),
            }
            // A scorer that broke may not have counted its checks.
            score.passed = score.details.iter().filter(|check| check.passed).count() as u64;
            score.total = score.details.len() as u64;
        }
        parts.score = Some(score);
    }

    /// Ends the session. After a cancel there is only so much patience.
    async fn destroy(
        &self,
        slot: &Slot<'_>,
        session: &SessionHandle,
        cancelled: bool,
        plugin_errors: &mut Vec<PluginError>,
    ) {
        let call = guarded_provider(slot.instance.provider.destroy_session(session));
        let message = if cancelled {
            match tokio::time::timeout(CANCEL_GRACE, call).await {
                Ok(ended) => ended.err().map(|error| error.message),
                Err(_) => Some("no answer".to_owned()),
            }
        } else {
            call.await.err().map(|error| error.message)
        };
        let error = |message| PluginError {
            hook: "destroySession".to_owned(),
            message,
        };
        plugin_errors.extend(message.map(error));
    }

    async fn after_scenario(
        &self,
        slot: &Slot<'_>,
        scenario: Arc<BaseScenario>,
        record: &mut TrialRecord,
    ) {
        if !self.hooks.has(HookEvent::AfterScenario) {
            return;
        }
        let context = AfterScenarioContext {
            before: slot.cell.hook_context(scenario),
            result: record.row.clone(),
            trace: record.trace.clone(),
        };
        record
            .row
            .hook_errors
            .extend(self.hooks.after_scenario(&context).await);
    }
}

/// The error of token counts whose parts do not add up.
fn contradicting_tokens(tokens: &TokenBreakdown) -> Option<PluginError> {
    let (sum, total) = (tokens.contradicting_sum()?, tokens.total?);
    Some(PluginError {
        hook: "tokens".to_owned(),
        message: format!("the parts add up to {sum}, but `total` is {total}"),
    })
}
