//! Providers: the way to what is on trial.

use crate::{
    ConfigError, JsonMap, ModelUse, PromptResult, Sandboxing, SessionSandbox, SessionTrace,
    Timestamp, VoidCause,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Manages the sessions of an agent: creates them, prompts them, exports what happened, ends them.
///
/// Per trial the calls are `create_session`, `prompt` (once per user message), `export_session` (only when
/// traces are wanted), `destroy_session`. One session at a time per instance, unless
/// [`concurrency`](Self::concurrency) allows more. Methods may await but must not block the thread.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a session provider",
    note = "implement `SessionProvider` with `#[assize_contracts::async_trait]` above the impl"
)]
pub trait SessionProvider: Send + Sync {
    /// The name under which suites use it.
    fn id(&self) -> &str;

    /// The part of a run that one instance can serve. See [`ProviderScope`].
    fn scope(&self) -> ProviderScope {
        ProviderScope::Mode
    }

    /// The most sessions one instance can have at once. The engine never opens more.
    fn concurrency(&self) -> Concurrency {
        Concurrency::ONE
    }

    /// The model that is used when the suite names none. Called before anything runs.
    fn default_model(&self, overrides: &JsonMap) -> Option<String> {
        let _ = overrides;
        None
    }

    /// True if sessions can cost real money: `run` then asks before it starts.
    fn may_cost(&self) -> bool {
        true
    }

    /// The nature of this provider's rows and traces: live, replayed or simulated. Shown everywhere.
    fn nature(&self) -> Nature {
        Nature::Live
    }

    /// True when sessions go through the capture proxy unless the suite says otherwise. The proxy reaches agents through the base
    /// URLs in a session's `environment`, so a provider that does not pass those on must return false.
    fn wants_capture(&self) -> bool {
        false
    }

    /// The extent to which the suite's sandbox surrounds the agents. The default is for providers that start their agents
    /// themselves: the report then says that they ran without a sandbox.
    fn sandboxing(&self) -> Sandboxing {
        match self.nature() {
            Nature::Live => Sandboxing::OutOfReach,
            Nature::Replayed | Nature::Simulated => Sandboxing::NoProcess,
        }
    }

    /// True if the agent is a program that talks to its model itself, so that it must be able to reach it.
    fn has_agent_program(&self) -> bool {
        false
    }

    /// Services that sessions with these settings must reach, by the variables that hold their base URLs. They go before
    /// Assize's own environment, not before what the suite says.
    fn base_urls(&self, overrides: &JsonMap) -> BTreeMap<String, String> {
        let _ = overrides;
        BTreeMap::new()
    }

    /// The meaning of a session without a model call. See [`ModelUse`].
    fn model_use(&self) -> ModelUse {
        ModelUse::Optional
    }

    /// The time past the timeout in which the provider winds down and hands over what was used so far.
    /// After that the engine drops the call.
    fn timeout_grace(&self) -> Duration {
        Duration::ZERO
    }

    /// The time limit of [`export_session`](Self::export_session). Absent: none.
    fn export_limit(&self) -> Option<Duration> {
        Some(QUICK_CALL_LIMIT)
    }

    /// Checks the settings that a suite gives to this provider. Called by `check` and before a run, never during.
    /// An error names the setting and stops the run before it starts.
    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        let _ = overrides;
        Ok(())
    }

    /// Called once per instance, before its first session. An error voids every trial of the instance.
    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        let _ = config;
        Ok(())
    }

    /// Called once per attempt. An error makes the attempt void; no other session method follows.
    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError>;

    /// Sends one user message and waits for the agent to end its turn. Called once per message, in order.
    ///
    /// `timeout` is what is left of the trial's time; the engine drops the call when it is over. `Err` says
    /// whose fault it is: the agent's makes the trial fail, a service's makes it void.
    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError>;

    /// Called after the last prompt, also after a failed one or a timeout, and only when traces are wanted.
    /// An error is recorded in the row; the trial continues without a trace.
    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError>;

    /// Called exactly once for every created session, in whatever state it is. An error is recorded in the row.
    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError>;

    /// Called once per instance after its last session, also after a cancel.
    async fn shutdown(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

/// The default limit of calls that may do real work: hooks, scorers, evaluators, `init`, `createSession`.
pub const LONG_CALL_LIMIT: Duration = Duration::from_secs(600);

/// The default limit of calls that only look at what is there: collectors, analyzers, `exportSession`.
pub const QUICK_CALL_LIMIT: Duration = Duration::from_secs(60);

/// The most sessions one instance of a provider can have at once. In JSON a number, or `any`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Concurrency {
    /// At most this many.
    AtMost(NonZeroU32),
    /// As many as the suite asks for.
    Any(AnyNumber),
}

/// The word `any`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnyNumber {
    /// No limit.
    Any,
}

impl Concurrency {
    /// One session after another.
    pub const ONE: Self = Self::AtMost(NonZeroU32::MIN);

    /// As many sessions as the suite asks for.
    pub const ANY: Self = Self::Any(AnyNumber::Any);

    /// The largest number of sessions at once.
    pub fn most(self) -> usize {
        match self {
            Self::AtMost(most) => most.get() as usize,
            Self::Any(_) => usize::MAX,
        }
    }
}

/// The part of a run that one instance of a provider can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProviderScope {
    /// Every session on its own: one `init` per run, and `create_session` gets mode, model, environment,
    /// directory, permissions and overrides.
    Session,
    /// One (mode, model) at a time: these settings come with `init`. Assize makes one instance for each, or,
    /// where only one instance can exist, runs modes one after another with `shutdown` and `init` between.
    Mode,
}

/// The origin of trials. Trials of different nature are never counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nature {
    /// Real sessions.
    Live,
    /// Sessions played back from a recording.
    Replayed,
    /// Sessions made up from random numbers.
    Simulated,
}

impl Nature {
    /// The nature of a trial with these marks in its row.
    pub fn of_marks(simulated: bool, replayed: bool) -> Self {
        match (simulated, replayed) {
            (true, _) => Self::Simulated,
            (_, true) => Self::Replayed,
            _ => Self::Live,
        }
    }

    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Replayed => "replayed",
            Self::Simulated => "simulated",
        }
    }
}

/// Settings of a provider instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfig {
    /// A free loopback port, one per instance, for a server if it needs one.
    pub port: u16,
    /// The model to use. The first one for a session-scoped provider.
    pub model: String,
    /// The mode to serve. The first one for a session-scoped provider.
    pub mode: String,
    /// Permissions of the agent: what it may do without asking.
    pub permissions: PermissionConfig,
    /// Variables for every process started for a session.
    pub environment: BTreeMap<String, String>,
    /// The suite's directory.
    pub workdir: PathBuf,
    /// The mode's settings for this provider.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub provider_overrides: JsonMap,
}

/// Permissions of the agent: what it may do without asking.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionConfig {
    /// Every tool call goes without confirmation.
    pub auto_approve: bool,
    /// These tools go without confirmation.
    pub allowed_tools: Vec<String>,
}

/// Settings of a session.
///
/// The first three fields are for everyone; the others carry what a session-scoped provider needs to know.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CreateSessionParams {
    /// System instructions for the agent.
    pub system_instructions: String,
    /// The scenario, for labelling.
    pub scenario_id: String,
    /// The repetition, for labelling; −1 for the warm-up.
    pub iteration: i64,
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// The mode to serve.
    pub mode: String,
    /// The model to use.
    pub model: String,
    /// Variables for every process started for the session.
    pub environment: Arc<BTreeMap<String, String>>,
    /// The directory the agent works in.
    pub workdir: PathBuf,
    /// Permissions of the agent: what it may do without asking.
    pub permissions: PermissionConfig,
    /// The mode's settings for this provider.
    pub provider_overrides: Arc<JsonMap>,
    /// The same for the same cell and attempt in every run with the same seed.
    pub seed: u64,
    /// The wall around the agent. Plugin programs start their agents themselves and do not get it.
    #[serde(skip)]
    pub sandbox: SessionSandbox,
}

/// A session, as the provider knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionHandle {
    /// Unique among the provider's sessions.
    pub session_id: String,
    /// The provider's id.
    pub provider: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Data of the provider. It comes back with every call.
    #[serde(flatten)]
    pub extra: JsonMap,
}

impl SessionHandle {
    /// A handle without anything else in it.
    pub fn new(
        session_id: impl Into<String>,
        provider: impl Into<String>,
        created_at: Timestamp,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            provider: provider.into(),
            created_at,
            extra: JsonMap::new(),
        }
    }
}

/// An error of a provider.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// Whose fault it is; decides between fail and void.
    pub fault: Fault,
    /// The message.
    pub message: String,
    /// A code for machines, e.g. `rate_limit`. Becomes the row's `errorCode`.
    pub code: Option<String>,
    /// Usage before the error.
    pub partial: Option<Box<PromptResult>>,
    /// The cause of the void, where the provider knows it. Ignored for the agent's own failures.
    pub void_cause: Option<VoidCause>,
}

/// Whose fault a provider's error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The agent failed at its task: the trial fails.
    Agent,
    /// A service, the network or the plugin broke, so the result says nothing about the agent: the trial is void.
    Service,
}

impl ProviderError {
    /// The agent failed at its task.
    pub fn agent(message: impl Into<String>) -> Self {
        Self {
            fault: Fault::Agent,
            message: message.into(),
            code: None,
            partial: None,
            void_cause: None,
        }
    }

    /// Something around the agent broke.
    pub fn service(message: impl Into<String>) -> Self {
        Self {
            fault: Fault::Service,
            message: message.into(),
            code: None,
            partial: None,
            void_cause: None,
        }
    }

    /// The same with a word for machines.
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The same with the cause of the void trial.
    pub fn with_void_cause(mut self, cause: VoidCause) -> Self {
        self.void_cause = Some(cause);
        self
    }

    /// The same with what was used before it broke.
    pub fn with_partial(mut self, partial: PromptResult) -> Self {
        self.partial = Some(Box::new(partial));
        self
    }
}
