//! Any provider whose sessions go through the proxy: agents get the variables, results and traces the data from the wire.

use super::join;
use super::outcome::Evidence;
use super::{
    CaptureError, CapturedSession, Cassette, CassetteSettings, Proxy, Recording, Service,
    SessionOptions, Upstreams, WatchedSkill,
};
use crate::lock;
use assize_contracts::{
    CompletionReason, Concurrency, ConfigError, ContainerNetwork, CreateSessionParams, JsonMap,
    Millis, ModelDoor, ModelUse, Nature, PromptMetrics, PromptResult, ProviderConfig,
    ProviderError, ProviderScope, Sandbox, Sandboxing, SessionHandle, SessionProvider,
    SessionSandbox, SessionTrace, TimingSegment, TokenBreakdown, TraceEvent, async_trait,
    with_causes,
};
use assize_llm::Prices;
use assize_secrets::Secrets;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The time limit of a session's last calls to end after its agent has.
const PATIENCE: Duration = Duration::from_secs(5);

/// The suite's settings of capturing.
#[derive(Debug, Clone, Default)]
pub struct CaptureSettings {
    /// Real addresses of services, which replace those of the environment.
    pub upstreams: BTreeMap<Service, String>,
    /// Record to, or play from.
    pub cassette: Option<CassetteSettings>,
    /// A session without any captured call is void.
    pub required: bool,
    /// Prices calls.
    pub prices: Option<Prices>,
    /// Assize's own environment, for what no other setting names.
    pub environment: BTreeMap<String, String>,
    /// Gets to know the keys that agents send.
    pub secrets: Secrets,
    /// Skills that are looked for in requests.
    pub skills: Arc<[WatchedSkill]>,
}

/// The part that all captured providers of a suite share: one proxy, started when the first of them is.
pub struct Capture {
    settings: CaptureSettings,
    proxy: OnceCell<Proxy>,
}

impl Capture {
    /// Nothing is started yet.
    pub fn new(settings: CaptureSettings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            proxy: OnceCell::new(),
        })
    }

    async fn proxy(&self) -> Result<&Proxy, CaptureError> {
        let start = async || {
            let cassette = self.settings.cassette.clone();
            let cassette = cassette.map(Cassette::open).transpose()?;
            Proxy::start(0, cassette).await
        };
        self.proxy.get_or_try_init(start).await
    }

    /// A session for an agent with these parameters.
    async fn open(
        &self,
        params: &CreateSessionParams,
        fixed: &BTreeMap<String, String>,
    ) -> Result<CapturedSession, CaptureError> {
        let environment = self.environment(params, fixed);
        let upstreams = Upstreams::resolve(&self.settings.upstreams, environment)?;
        let workspace = std::path::absolute(&params.workdir);
        let options = SessionOptions {
            label: label(params),
            workspace: workspace
                .ok()
                .map(|path| path.to_string_lossy().into_owned()),
            listener: None,
            secrets: self.settings.secrets.clone(),
            skills: Arc::clone(&self.settings.skills),
        };
        upstreams.add_credentials_to(&self.settings.secrets);
        Ok(self.proxy().await?.open(upstreams, options))
    }

    /// The environment that the agent would have without the proxy. `fixed` are the values that its provider insists on.
    fn environment(
        &self,
        params: &CreateSessionParams,
        fixed: &BTreeMap<String, String>,
    ) -> impl Fn(&str) -> Option<String> {
        |name| {
            let own = params.environment.get(name).or_else(|| fixed.get(name));
            own.or_else(|| self.settings.environment.get(name)).cloned()
        }
    }

    /// The wall with a way to the proxy, where it is a container that may have one.
    async fn with_door(&self, wall: &SessionSandbox) -> Result<SessionSandbox, ProviderError> {
        let mut wall = wall.clone();
        if let Sandbox::Container(container) = &*wall.sandbox
            && container.network != ContainerNetwork::None
        {
            let proxy = self.proxy().await.map_err(not_captured)?;
            let socket = proxy.socket().await.map_err(not_captured)?;
            wall.door = Some(ModelDoor {
                port: proxy.port(),
                socket: socket.to_owned(),
            });
        }
        Ok(wall)
    }

    fn plays(&self) -> Option<&CassetteSettings> {
        let cassette = self.settings.cassette.as_ref();
        cassette.filter(|cassette| cassette.mode == super::CassetteMode::Replay)
    }
}

/// The same for the same trial in every run.
fn label(params: &CreateSessionParams) -> String {
    let CreateSessionParams {
        scenario_id,
        mode,
        model,
        iteration,
        attempt,
        ..
    } = params;
    format!("{scenario_id} · {mode} · {model} #{iteration}.{attempt}")
}

/// A provider behind the proxy. Only for session-scoped ones: others know their environment before any session.
pub struct CapturedProvider {
    inner: Arc<dyn SessionProvider>,
    capture: Arc<Capture>,
    sessions: Mutex<HashMap<String, Arc<Captured>>>,
}

struct Captured {
    session: CapturedSession,
    /// The number of calls that belong to earlier prompts.
    earlier_calls: Mutex<usize>,
    /// Contradictions between the agent and the wire.
    notes: Mutex<Vec<String>>,
    /// The time limit of the session: that of its first prompt.
    limit: OnceLock<Duration>,
}

/// The settings by which a prompt is judged.
struct Concluding {
    limit: Duration,
    deadline_ms: i64,
    model_use: ModelUse,
    capture_required: bool,
}

impl CapturedProvider {
    /// Puts the proxy in front of a provider's sessions.
    pub fn new(inner: Arc<dyn SessionProvider>, capture: Arc<Capture>) -> Self {
        Self {
            inner,
            capture,
            sessions: Mutex::default(),
        }
    }

    fn captured(&self, handle: &SessionHandle) -> Option<Arc<Captured>> {
        lock(&self.sessions).get(&handle.session_id).map(Arc::clone)
    }
}

#[async_trait]
impl SessionProvider for CapturedProvider {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn scope(&self) -> ProviderScope {
        self.inner.scope()
    }

    fn concurrency(&self) -> Concurrency {
        self.inner.concurrency()
    }

    fn default_model(&self, overrides: &JsonMap) -> Option<String> {
        self.inner.default_model(overrides)
    }

    fn may_cost(&self) -> bool {
        let is_closed = self.capture.plays().is_some_and(|cassette| cassette.strict);
        !is_closed && self.inner.may_cost()
    }

    fn nature(&self) -> Nature {
        match self.capture.plays() {
            Some(_) => Nature::Replayed,
            None => self.inner.nature(),
        }
    }

    fn wants_capture(&self) -> bool {
        self.inner.wants_capture()
    }

    fn sandboxing(&self) -> Sandboxing {
        self.inner.sandboxing()
    }

    fn has_agent_program(&self) -> bool {
        self.inner.has_agent_program()
    }

    fn timeout_grace(&self) -> Duration {
        self.inner.timeout_grace() + PATIENCE
    }

    fn export_limit(&self) -> Option<Duration> {
        self.inner.export_limit()
    }

    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        self.inner.check_overrides(overrides)
    }

    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        self.capture.proxy().await.map_err(not_captured)?;
        self.inner.init(config).await
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let fixed = self.inner.base_urls(&params.provider_overrides);
        let opened = self.capture.open(params, &fixed).await;
        let session = opened.map_err(not_captured)?;
        let mut environment = (*params.environment).clone();
        environment.extend(session.variables(self.capture.environment(params, &fixed)));
        let params = CreateSessionParams {
            environment: Arc::new(environment),
            sandbox: self.capture.with_door(&params.sandbox).await?,
            ..params.clone()
        };
        let handle = self.inner.create_session(&params).await?;
        let captured = Captured {
            session,
            earlier_calls: Mutex::default(),
            notes: Mutex::default(),
            limit: OnceLock::new(),
        };
        lock(&self.sessions).insert(handle.session_id.clone(), Arc::new(captured));
        Ok(handle)
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let started_ms = assize_contracts::unix_ms_now();
        let result = self.inner.prompt(handle, text, timeout).await;
        let Some(captured) = self.captured(handle) else {
            return result;
        };
        captured.session.settle().await;
        let settings = Concluding {
            limit: *captured.limit.get_or_init(|| timeout),
            deadline_ms: started_ms.saturating_add(timeout.as_millis() as i64),
            model_use: self.inner.model_use(),
            capture_required: self.capture.settings.required,
        };
        captured.conclude(result, started_ms, &settings)
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        let own = self.inner.export_session(handle).await?;
        let Some(captured) = self.captured(handle) else {
            return Ok(own);
        };
        captured.session.settle().await;
        let prices = self.capture.settings.prices.as_ref();
        let mut trace = merged(own, captured.session.recording(), prices);
        for note in lock(&captured.notes).iter() {
            trace.events.push(Arc::new(TraceEvent::Error {
                message: note.clone(),
                recoverable: true,
                context: None,
            }));
        }
        Ok(trace)
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        lock(&self.sessions).remove(&handle.session_id);
        self.inner.destroy_session(handle).await
    }

    async fn shutdown(&self) -> Result<(), ProviderError> {
        self.inner.shutdown().await
    }
}

impl Captured {
    /// The result of a prompt, completed by the data from the wire.
    fn conclude(
        &self,
        own: Result<PromptResult, ProviderError>,
        started_ms: i64,
        settings: &Concluding,
    ) -> Result<PromptResult, ProviderError> {
        let session = self.session.recording();
        let earlier = std::mem::replace(&mut *lock(&self.earlier_calls), session.calls.len());
        let prompt = session.clone().after(earlier);
        let evidence = Evidence {
            session: &session,
            prompt: &prompt,
            limit: settings.limit,
            deadline_ms: settings.deadline_ms,
            model_use: settings.model_use,
            capture_required: settings.capture_required,
        };
        let failure = evidence.failure(&own);
        let complete = |mut result: PromptResult| {
            result.metrics.not_captured = evidence.is_not_captured();
            self.completed(result, &prompt, started_ms)
        };
        match (own, failure) {
            // Also when time is over: an agent that waits for a broken service shows nothing of itself.
            (Ok(result), Some(failure)) => Err(failure.with_partial(complete(result))),
            (Ok(result), None) => Ok(complete(result)),
            (Err(mut error), failure) => {
                let known = error
                    .partial
                    .take()
                    .map_or_else(unknown, |partial| *partial);
                // Some agents lose the end of what they print; the wire shows that they were done.
                let is_end_lost = error.code.as_deref() == Some("no_result");
                if is_end_lost && failure.is_none() && prompt.is_finished() {
                    return Ok(complete(PromptResult {
                        text: prompt.final_text().unwrap_or(known.text),
                        completion_reason: CompletionReason::Stop,
                        ..known
                    }));
                }
                Err(failure.unwrap_or(error).with_partial(complete(known)))
            }
        }
    }

    fn completed(
        &self,
        mut result: PromptResult,
        recording: &Recording,
        started_ms: i64,
    ) -> PromptResult {
        if recording.is_empty() {
            return result;
        }
        let PromptMetrics {
            tokens,
            tokens_at_least,
            reported_tokens,
            timing,
            tool_calls,
            model_calls,
            ..
        } = &mut result.metrics;
        // The wire is the truth: what it does not show is unknown, and the agent's own count is kept beside it.
        if recording.is_billed() {
            let (own, wire) = (*tokens, recording.tokens());
            *reported_tokens = self.beside(own, wire.tokens, recording.main_tokens());
            *tokens = wire.tokens;
            *tokens_at_least = wire.at_least;
        }
        timing.segments.extend(segments(recording, started_ms));
        let wire = recording.trace("", None);
        if tool_calls.as_ref().is_none_or(Vec::is_empty) {
            *tool_calls = Some(wire.tool_call_records());
        }
        *model_calls = wire.model_calls;
        if result.text.is_empty() {
            result.text = recording.final_text().unwrap_or_default();
        }
        result
    }

    /// The agent's count, where the wire shows something else or no total. Agents may leave side calls out of their sums.
    fn beside(
        &self,
        own: TokenBreakdown,
        wire: TokenBreakdown,
        main: TokenBreakdown,
    ) -> Option<TokenBreakdown> {
        let has_no_side = own.total.is_some() && own.total == main.total;
        let seen = if has_no_side { main } else { wire };
        let claimed = own.beside(&seen)?;
        if seen.total.is_none() {
            return Some(claimed);
        }
        let counts = |tokens: TokenBreakdown| {
            [
                ("input", tokens.input),
                ("output", tokens.output),
                ("reasoning", tokens.reasoning),
                ("cache read", tokens.cache_read),
                ("cache write", tokens.cache_write),
                ("altogether", tokens.total),
            ]
        };
        let differences: Vec<String> = counts(claimed)
            .into_iter()
            .zip(counts(seen))
            .filter_map(|((kind, claimed), (_, seen))| {
                Some(format!("{} {kind}, not {}", claimed?, seen?))
            })
            .collect();
        lock(&self.notes).push(format!(
            "the agent reports other tokens than the wire shows, which count: {}",
            differences.join("; ")
        ));
        Some(claimed)
    }
}

/// The time to the first token, and the time of all model calls.
fn segments(recording: &Recording, started_ms: i64) -> Vec<TimingSegment> {
    let since_start = |ms: i64| Duration::from_millis(ms.saturating_sub(started_ms).max(0) as u64);
    let segment = |label: &str, start: Duration, end: Duration| TimingSegment {
        label: label.to_owned(),
        start_ms: Millis::from(start),
        end_ms: Millis::from(end),
    };
    let first_token = recording.main_calls().find_map(|call| {
        let at = call.answer.as_ref()?.first_content_at?;
        let end = since_start(call.started_ms) + at;
        Some(segment("first_token", Duration::ZERO, end))
    });
    let models = recording.task_calls().map(|call| {
        let start = since_start(call.started_ms);
        segment("model", start, start + call.duration)
    });
    first_token.into_iter().chain(models).collect()
}

/// One trace of two: see [`join`]. Calls, turns and tokens are as the wire shows them.
fn merged(own: SessionTrace, mut recording: Recording, prices: Option<&Prices>) -> SessionTrace {
    if recording.is_empty() {
        return own;
    }
    let mut wire = recording.trace(&own.session_id, prices);
    if recording.name_agents(&join::agents(&own.events, &wire.events)) {
        wire = recording.trace(&own.session_id, prices);
    }
    let tokens = match recording.is_billed() {
        true => wire.summary.total_tokens,
        false => own.summary.total_tokens,
    };
    let events = join::joined(own.events, wire.events);
    let mut trace = SessionTrace::from_events(own.session_id, events, tokens);
    trace.summary.total_turns = wire.summary.total_turns;
    trace.summary.total_duration = own.summary.total_duration.or(wire.summary.total_duration);
    trace.model_calls = wire.model_calls;
    trace.skills = wire.skills;
    trace.is_joined = true;
    trace
}

fn unknown() -> PromptResult {
    PromptResult {
        completion_reason: CompletionReason::Error,
        ..PromptResult::default()
    }
}

fn not_captured(error: CaptureError) -> ProviderError {
    ProviderError::service(with_causes(&error)).with_code("not_captured")
}
