//! Stand-ins for testing plugins and the engine without any agent.

use crate::{
    Concurrency, CreateSessionParams, PromptResult, ProviderConfig, ProviderError, ProviderScope,
    SessionHandle, SessionProvider, SessionTrace, Timestamp,
};
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The script of a session.
#[derive(Debug, Clone)]
pub struct Script {
    /// The answer of `create_session`.
    pub create: Result<(), ProviderError>,
    /// One step per `prompt`; the last one is repeated.
    pub prompts: Vec<ScriptedPrompt>,
    /// The answer of `export_session`.
    pub export: Result<SessionTrace, ProviderError>,
    /// The answer of `destroy_session`.
    pub destroy: Result<(), ProviderError>,
}

impl Script {
    /// A session that answers every prompt with this text.
    pub fn answering(text: &str) -> Self {
        Self::of(ScriptedPrompt::Answer(Box::new(PromptResult {
            text: text.to_owned(),
            ..PromptResult::default()
        })))
    }

    /// A session whose every prompt goes like this.
    pub fn of(prompt: ScriptedPrompt) -> Self {
        Self {
            create: Ok(()),
            prompts: vec![prompt],
            export: Ok(SessionTrace::default()),
            destroy: Ok(()),
        }
    }
}

/// The script of one prompt.
#[derive(Debug, Clone)]
pub enum ScriptedPrompt {
    /// Answers at once.
    Answer(Box<PromptResult>),
    /// Fails at once.
    Fail(ProviderError),
    /// Never answers.
    Hang,
    /// Panics, as broken plugins do.
    Panic,
}

/// A provider that follows a script and notes every call.
///
/// Sessions take their scripts in order of creation; the last script is repeated. Clones share notes and scripts.
#[derive(Clone)]
pub struct ScriptedProvider {
    id: String,
    scope: ProviderScope,
    concurrency: Concurrency,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    scripts: Vec<Script>,
    created: usize,
    prompted: HashMap<String, usize>,
    calls: Vec<String>,
    configs: Vec<ProviderConfig>,
    params: Vec<CreateSessionParams>,
}

impl ScriptedProvider {
    /// A session-scoped provider named `scripted`.
    pub fn new(scripts: Vec<Script>) -> Self {
        Self {
            id: "scripted".to_owned(),
            scope: ProviderScope::Session,
            concurrency: Concurrency::ANY,
            state: Arc::new(Mutex::new(State {
                scripts,
                ..State::default()
            })),
        }
    }

    /// The same with another scope.
    pub fn with_scope(mut self, scope: ProviderScope) -> Self {
        self.scope = scope;
        self
    }

    /// The same with another number of sessions at once.
    pub fn with_concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// The same under another name.
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = id.to_owned();
        self
    }

    /// Every call so far, in order, e.g. `prompt hello`.
    pub fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// The arguments of `init`.
    pub fn configs(&self) -> Vec<ProviderConfig> {
        self.state().configs.clone()
    }

    /// The arguments of `create_session`, call by call.
    pub fn params(&self) -> Vec<CreateSessionParams> {
        self.state().params.clone()
    }

    /// Notes something that is not the provider's own, so that one list shows the order of all calls.
    pub fn note(&self, call: impl Into<String>) {
        self.state().calls.push(call.into());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn script(&self, session_id: &str) -> Script {
        let state = self.state();
        let number: usize = session_id
            .rsplit('-')
            .next()
            .and_then(|tail| tail.parse().ok())
            .unwrap_or_default();
        state
            .scripts
            .get(number)
            .or(state.scripts.last())
            .cloned()
            .unwrap_or_else(|| Script::answering(""))
    }
}

#[async_trait]
impl SessionProvider for ScriptedProvider {
    fn id(&self) -> &str {
        &self.id
    }

    fn scope(&self) -> ProviderScope {
        self.scope
    }

    fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    fn may_cost(&self) -> bool {
        false
    }

    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        let mut state = self.state();
        state.calls.push("init".to_owned());
        state.configs.push(config.clone());
        Ok(())
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let session_id = {
            let mut state = self.state();
            let session_id = format!("session-{}", state.created);
            state.created += 1;
            state.calls.push("createSession".to_owned());
            state.params.push(params.clone());
            session_id
        };
        self.script(&session_id).create?;
        let created_at = Timestamp::from_unix_ms(0);
        Ok(SessionHandle::new(session_id, &*self.id, created_at))
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        _timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let turn = {
            let mut state = self.state();
            state.calls.push(format!("prompt {text}"));
            let turn = state.prompted.entry(handle.session_id.clone()).or_default();
            *turn += 1;
            *turn - 1
        };
        let prompts = self.script(&handle.session_id).prompts;
        match prompts.get(turn).or(prompts.last()) {
            Some(ScriptedPrompt::Answer(result)) => Ok(PromptResult::clone(result)),
            Some(ScriptedPrompt::Fail(error)) => Err(error.clone()),
            Some(ScriptedPrompt::Hang) => std::future::pending().await,
            Some(ScriptedPrompt::Panic) => panic!("scripted panic"),
            None => Ok(PromptResult::default()),
        }
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        self.note("exportSession");
        let mut trace = self.script(&handle.session_id).export?;
        trace.session_id.clone_from(&handle.session_id);
        Ok(trace)
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        self.note("destroySession");
        self.script(&handle.session_id).destroy
    }

    async fn shutdown(&self) -> Result<(), ProviderError> {
        self.note("shutdown");
        Ok(())
    }
}
