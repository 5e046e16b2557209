//! `agent`: a session with any provider. The task's input becomes the prompt, the answer the output.

use super::answer::{Answers, NoOutput, OutputForm};
use super::record::Execution;
use super::template::Prompt;
use super::{Role, VERSION, read};
use crate::wall::session_directory;
use assize_contracts::{
    AtomicTask, BoxError, CompletionReason, Concurrency, ConfigError, CreateSessionParams, Fault,
    JsonMap, Nature, PromptMetrics, PromptResult, ProviderConfig, ProviderError, ProviderScope,
    ProviderSource, RunRecord, RunSetting, Runner, RunnerSetup, SessionHandle, SessionProvider,
    SessionSandbox, SessionTrace, async_trait,
};
use assize_llm::{Prices, Reckoning};
use assize_process::workspace::Scratch;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;

/// The time limit of an export or an end beyond the task's own time.
const WIND_DOWN: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The provider and its settings, as suites write it.
    provider: ProviderSettings,
    /// The prompt of the agent. Default: the input.
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    output: OutputForm,
    /// JSON Schema of the answer, or the name of its file. The answer is then JSON.
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct ProviderSettings {
    uses: String,
    #[serde(flatten)]
    overrides: JsonMap,
}

/// The runner `agent`.
pub(super) struct Agent {
    role: Role,
    source: ProviderSource,
    overrides: Arc<JsonMap>,
    prompt: Prompt,
    answers: Answers,
    prices: Prices,
    model: Option<String>,
    nature: Nature,
    may_cost: bool,
    concurrency: Concurrency,
    grace: Duration,
    directory: PathBuf,
    /// Providers that are up: one, or one per mode and model where each serves one.
    up: AsyncMutex<HashMap<String, Arc<dyn SessionProvider>>>,
    /// Sessions that were not ended because their execution was dropped.
    open: Mutex<HashMap<String, OpenSession>>,
}

struct OpenSession {
    provider: Arc<dyn SessionProvider>,
    handle: SessionHandle,
    /// Goes with the session.
    _workdir: Scratch,
}

impl Agent {
    pub(super) fn new(setup: &RunnerSetup<'_>) -> Result<Self, ConfigError> {
        let settings: Settings = read(setup)?;
        let ProviderSettings { uses, overrides } = settings.provider;
        let known = setup.plugins.providers();
        let Some(source) = known.get(&uses) else {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let mut error =
                crate::settings::setting_error("provider", format!("unknown provider `{uses}`"));
            error.hint = Some(format!("known providers: {}", names.join(", ")));
            return Err(error);
        };
        let instance = source.instance();
        let within = |mut error: ConfigError| {
            error.path.insert(0, "provider".to_owned());
            error
        };
        instance.check_overrides(&overrides).map_err(within)?;
        if matches!(source, ProviderSource::Single(_)) && instance.scope() == ProviderScope::Mode {
            let message = format!("`{uses}` serves one mode at a time and cannot execute tasks");
            return Err(crate::settings::setting_error("provider", message));
        }
        Ok(Self {
            role: Role::of(setup),
            model: settings
                .model
                .or_else(|| instance.default_model(&overrides)),
            nature: instance.nature(),
            may_cost: instance.may_cost(),
            concurrency: instance.concurrency(),
            grace: instance.timeout_grace(),
            source: source.clone(),
            overrides: Arc::new(overrides),
            prompt: Prompt::parse(settings.prompt.as_deref()),
            answers: Answers::new(settings.output, settings.schema, setup)?,
            prices: super::prices(setup)?,
            directory: std::path::absolute(setup.directory)
                .unwrap_or_else(|_| setup.directory.to_owned()),
            up: AsyncMutex::default(),
            open: Mutex::default(),
        })
    }

    /// The suite's model, else the runner's own.
    fn model_of(&self, setting: &RunSetting) -> String {
        match (setting.model.as_str(), &self.model) {
            ("", Some(own)) => own.clone(),
            ("", None) => "default".to_owned(),
            (chosen, _) => chosen.to_owned(),
        }
    }

    /// The provider for a trial, started when it is first needed.
    async fn provider(&self, setting: &RunSetting) -> Result<Arc<dyn SessionProvider>, BoxError> {
        let mut up = self.up.lock().await;
        let instance = self.source.instance();
        let key = match instance.scope() {
            ProviderScope::Session => String::new(),
            ProviderScope::Mode => format!("{}\0{}", setting.mode, setting.model),
        };
        if let Some(provider) = up.get(&key) {
            return Ok(Arc::clone(provider));
        }
        let config = ProviderConfig {
            port: free_port()?,
            model: self.model_of(setting),
            mode: setting.mode.clone(),
            permissions: setting.permissions.clone(),
            environment: (*setting.environment).clone(),
            workdir: self.directory.clone(),
            provider_overrides: (*self.overrides).clone(),
        };
        let started = instance.init(&config).await;
        up.insert(key, Arc::clone(&instance));
        started.map_err(|error| format!("cannot start the provider: {error}"))?;
        Ok(instance)
    }

    async fn open_session(
        &self,
        provider: &Arc<dyn SessionProvider>,
        task: &AtomicTask,
        setting: &RunSetting,
    ) -> Result<SessionHandle, BoxError> {
        let workdir = session_directory()?;
        let params = CreateSessionParams {
            system_instructions: setting.system_instructions.clone(),
            scenario_id: task.id.clone(),
            iteration: setting.iteration,
            attempt: setting.attempt,
            mode: setting.mode.clone(),
            model: self.model_of(setting),
            environment: Arc::clone(&setting.environment),
            workdir: workdir.path().to_owned(),
            permissions: setting.permissions.clone(),
            provider_overrides: Arc::clone(&self.overrides),
            seed: setting.seed,
            sandbox: SessionSandbox {
                writable: vec![workdir.path().to_owned()],
                ..setting.sandbox.clone()
            },
        };
        let handle = provider.create_session(&params).await?;
        let session = OpenSession {
            provider: Arc::clone(provider),
            handle: handle.clone(),
            _workdir: workdir,
        };
        crate::lock(&self.open).insert(handle.session_id.clone(), session);
        Ok(handle)
    }

    async fn end_session(&self, handle: &SessionHandle, execution: &mut Execution) {
        let session = crate::lock(&self.open).remove(&handle.session_id);
        if let Some(session) = session
            && let Err(error) = session.provider.destroy_session(&session.handle).await
        {
            execution.note("session_not_ended", json!({"error": error.message}));
        }
    }

    /// Everything that happened in the session, event by event.
    async fn export(
        &self,
        provider: &Arc<dyn SessionProvider>,
        handle: &SessionHandle,
        execution: &mut Execution,
    ) -> Option<SessionTrace> {
        let reason =
            match tokio::time::timeout(WIND_DOWN / 2, provider.export_session(handle)).await {
                Ok(Ok(trace)) => {
                    for event in &trace.events {
                        let data = serde_json::to_value(&**event).unwrap_or_default();
                        let name = data.get("type").and_then(Value::as_str);
                        let name = name.unwrap_or("event").to_owned();
                        let timestamp = data.get("timestamp").and_then(Value::as_str);
                        let timestamp = timestamp.map(|text| text.to_owned().into());
                        execution.note_at(timestamp, &name, data);
                    }
                    return Some(trace);
                }
                Ok(Err(error)) => error.message,
                Err(_) => "no answer".to_owned(),
            };
        execution.note("export_failed", json!({"error": reason}));
        None
    }

    /// The usage of the session, by the agent's word or else by its trace. Simulated sessions have no price.
    fn account(
        &self,
        metrics: PromptMetrics,
        trace: Option<&SessionTrace>,
        setting: &RunSetting,
        execution: &mut Execution,
    ) {
        let in_trace = trace.and_then(|trace| trace.summary.total_tokens.total);
        execution.tokens = metrics.tokens.total.or(in_trace);
        let prices = (self.nature != Nature::Simulated).then_some(&self.prices);
        let found = Reckoning::of(&metrics, &self.model_of(setting), trace, prices);
        execution.cost = found.cost.total_usd;
        execution.cost_source = Some(found.source);
    }
}

/// The end of a conversation.
enum Ended {
    Answered(Box<PromptResult>),
    TimedOut,
    Failed(ProviderError),
}

#[async_trait]
impl Runner for Agent {
    fn id(&self) -> &str {
        &self.role.id
    }

    fn task_type(&self) -> &str {
        &self.role.task_type
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn may_cost(&self) -> bool {
        self.may_cost
    }

    fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    fn content_hash(&self) -> Option<String> {
        self.answers.content_hash()
    }

    fn nature(&self) -> Nature {
        self.nature
    }

    /// A session is exported and ended also when its time is over.
    fn timeout_grace(&self) -> Duration {
        self.grace + WIND_DOWN
    }

    async fn execute(&self, task: &AtomicTask, config: &Value) -> Result<RunRecord, BoxError> {
        self.execute_in(task, config, &super::alone()).await
    }

    async fn execute_in(
        &self,
        task: &AtomicTask,
        _: &Value,
        setting: &RunSetting,
    ) -> Result<RunRecord, BoxError> {
        let mut execution = Execution::start();
        let prompt = match self.prompt.text(task) {
            Ok(prompt) => prompt,
            Err(message) => return Ok(execution.failed(task, "render", message)),
        };
        let provider = self.provider(setting).await?;
        let handle = self.open_session(&provider, task, setting).await?;
        execution.note(
            "prompt",
            json!({"sessionId": handle.session_id, "text": prompt}),
        );
        let talk = provider.prompt(&handle, &prompt, setting.timeout);
        let ended = match tokio::time::timeout(setting.timeout + self.grace, talk).await {
            Ok(Ok(result)) => Ended::Answered(Box::new(result)),
            Ok(Err(error)) => Ended::Failed(error),
            Err(_) => Ended::TimedOut,
        };
        let result = match &ended {
            Ended::Answered(result) => Some(&**result),
            Ended::Failed(error) => error.partial.as_deref(),
            Ended::TimedOut => None,
        };
        let trace = self.export(&provider, &handle, &mut execution).await;
        let metrics = result.map(|result| result.metrics.clone());
        self.account(
            metrics.unwrap_or_default(),
            trace.as_ref(),
            setting,
            &mut execution,
        );
        self.end_session(&handle, &mut execution).await;
        let late = || format!("no answer within {} ms", setting.timeout.as_millis());
        match ended {
            Ended::TimedOut => Ok(execution.failed(task, "prompt", late())),
            Ended::Failed(error) if error.fault == Fault::Service => Err(error.into()),
            Ended::Failed(error) => Ok(execution.failed(task, "prompt", error.message)),
            Ended::Answered(result) => Ok(match result.completion_reason {
                CompletionReason::Stop => match self.answers.output(result.text) {
                    Ok(output) => execution.completed(task, output),
                    Err(NoOutput { phase, message }) => execution.failed(task, phase, message),
                },
                CompletionReason::Timeout => execution.failed(task, "prompt", late()),
                reason => {
                    let message = format!("the agent ended with `{}`", reason.as_str());
                    execution.failed(task, "prompt", message)
                }
            }),
        }
    }

    async fn shutdown(&self) -> Result<(), BoxError> {
        let left: Vec<OpenSession> = crate::lock(&self.open)
            .drain()
            .map(|(_, open)| open)
            .collect();
        let mut errors = Vec::new();
        for session in &left {
            let ended = session.provider.destroy_session(&session.handle).await;
            errors.extend(ended.err().map(|error| error.message));
        }
        for (_, provider) in self.up.lock().await.drain() {
            errors.extend(provider.shutdown().await.err().map(|error| error.message));
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(errors.join("; ").into()),
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    std::net::TcpListener::bind(("127.0.0.1", 0))?
        .local_addr()
        .map(|address| address.port())
}
