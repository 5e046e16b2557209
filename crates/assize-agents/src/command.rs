//! Any program: started once per prompt, its stdout is the answer or a stream of events.

pub(crate) mod inside;
mod invocation;
mod settings;
mod turn;

#[cfg(test)]
mod tests;

use assize_contracts::{
    Concurrency, ConfigError, ContainerHandle, CreateSessionParams, JsonMap, ModelCall, ModelUse,
    PromptResult, ProviderConfig, ProviderError, ProviderScope, Sandboxing, SessionHandle,
    SessionProvider, SessionTrace, Timestamp, TokenBreakdown, TraceEvent, VoidCause, async_trait,
};
pub(crate) use invocation::{Invocation, Plan, fill_in};
pub(crate) use settings::{CommandSettings, PoliteSignal};

use crate::recipe::Recipe;
use assize_process::workspace::ScratchRoom;
use settings::LONGEST_GRACE;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use turn::{Ended, EventsFile, Turn};

/// The time limit of the set-up before the first prompt.
const SETUP_LIMIT: Duration = Duration::from_secs(120);

/// The provider `command`, and the providers of agents that have a recipe.
#[derive(Default)]
pub struct CommandProvider {
    recipe: Option<Arc<Recipe>>,
    /// The suite's directory.
    directory: OnceLock<PathBuf>,
    sessions: Mutex<HashMap<String, CommandSession>>,
    /// Keeps the place of the sessions' directories from one session to the next.
    room: OnceLock<ScratchRoom>,
}

struct CommandSession {
    invocation: Invocation,
    /// The program's name for the session, once it has begun.
    continues: Option<String>,
    /// Answers that the program has reported one by one until now.
    answers: u64,
    events: Vec<Arc<TraceEvent>>,
    model_calls: Vec<ModelCall>,
    tokens: Option<TokenBreakdown>,
}

#[async_trait]
impl SessionProvider for CommandProvider {
    fn id(&self) -> &str {
        self.recipe
            .as_ref()
            .map_or("command", |recipe| &recipe.name)
    }

    fn scope(&self) -> ProviderScope {
        ProviderScope::Session
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::ANY
    }

    fn sandboxing(&self) -> Sandboxing {
        Sandboxing::Kept
    }

    fn has_agent_program(&self) -> bool {
        true
    }

    fn default_model(&self, overrides: &JsonMap) -> Option<String> {
        match &self.recipe {
            Some(recipe) => recipe.model_for(overrides),
            None => overrides.get("model")?.as_str().map(str::to_owned),
        }
    }

    fn wants_capture(&self) -> bool {
        self.recipe.is_some()
    }

    fn base_urls(&self, overrides: &JsonMap) -> BTreeMap<String, String> {
        let recipe = self.recipe.as_ref();
        let of_login = recipe.map(|recipe| recipe.base_urls_of_login(overrides));
        of_login.unwrap_or_default()
    }

    /// The output of a program is its answer, whether or not a model had a part in it.
    fn model_use(&self) -> ModelUse {
        match &self.recipe {
            None => ModelUse::Optional,
            Some(recipe) if recipe.output.reports_end() || recipe.apis.is_empty() => {
                ModelUse::Required
            }
            Some(_) => ModelUse::RequiredAndTextIsNoProof,
        }
    }

    /// The keeper ends the program when its time is over; there must be time left to report it.
    fn timeout_grace(&self) -> Duration {
        LONGEST_GRACE + Duration::from_secs(15)
    }

    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        match &self.recipe {
            Some(recipe) => recipe.check_settings(overrides),
            None => CommandSettings::checked(overrides).map(drop),
        }
    }

    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        let _ = self.directory.set(config.workdir.clone());
        if let Ok(room) = ScratchRoom::open() {
            let _ = self.room.set(room);
        }
        Ok(())
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let mut invocation = self.invocation(params)?;
        invocation.move_in(self.recipe.as_deref()).await?;
        set_up(&invocation).await?;
        let container = invocation.container_handle();
        let session = CommandSession {
            invocation,
            continues: None,
            answers: 0,
            events: Vec::new(),
            model_calls: Vec::new(),
            tokens: None,
        };
        let session_id = format!("{}-{:016x}", self.id(), params.seed);
        self.sessions().insert(session_id.clone(), session);
        let now = Timestamp::now();
        let mut handle = SessionHandle::new(session_id, self.id(), now);
        if let Some(container) = container.and_then(|found| serde_json::to_value(found).ok()) {
            handle
                .extra
                .insert(ContainerHandle::KEY.to_owned(), container);
        }
        Ok(handle)
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let (command, events_file) = self
            .with(handle, |session| {
                let events_file = session.invocation.events_file().map(EventsFile::new);
                let goes_on = session.continues.clone();
                let command = session
                    .invocation
                    .command(text, goes_on.as_deref(), timeout);
                command.map(|command| (command, events_file))
            })?
            .map_err(|error| {
                ProviderError::service(format!("cannot write the prompt file: {error}"))
            })?;
        let before = self.with(handle, |session| session.invocation.container_use())?;
        let running = command.start().await.map_err(not_started)?;
        let turn = self.with(handle, |session| {
            let started = running.started_at();
            let turn = Turn::new(&session.invocation, events_file, started, timeout);
            turn.after(session.tokens, session.answers)
        })?;
        let Ended { story, result } = turn
            .follow(running)
            .await
            .map_err(|error| ProviderError::service(error.to_string()).with_code("keeper_lost"))?;
        let result = match before {
            Some(before) => {
                let container = self.with(handle, |session| session.invocation.container())?;
                inside::conclude(result, container.as_deref(), before).await
            }
            None => result,
        };
        let is_subscription = self.with(handle, |session| {
            // A program that reports no name for its session has only this one in its home.
            session.continues = Some(story.session.unwrap_or_default());
            session.answers = story.answers;
            session.events.extend(story.events);
            session.add_calls(story.model_calls);
            session.tokens = story.tokens.map_or(session.tokens, |tokens| {
                Some(session.tokens.map_or(tokens, |so_far| so_far.plus(&tokens)))
            });
            session.invocation.is_subscription()
        })?;
        match result {
            Ok(mut result) => {
                result.metrics.subscription = is_subscription;
                Ok(result)
            }
            Err(mut error) => {
                if let Some(partial) = &mut error.partial {
                    partial.metrics.subscription = is_subscription;
                }
                Err(error)
            }
        }
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        self.with(handle, |session| {
            let tokens = session.tokens.unwrap_or_default();
            let events = session.events.clone();
            let mut trace = SessionTrace::from_events(handle.session_id.clone(), events, tokens);
            trace.model_calls = session.model_calls.clone();
            trace
        })
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        let session = self.sessions().remove(&handle.session_id);
        let container = session.and_then(|session| session.invocation.container());
        match container {
            Some(container) => container.end().await.map_err(|error| {
                ProviderError::service(format!("the container was not removed: {error}"))
            }),
            None => Ok(()),
        }
    }
}

/// Runs what must come before the first prompt.
async fn set_up(invocation: &Invocation) -> Result<(), ProviderError> {
    let Some(command) = invocation.setup(SETUP_LIMIT) else {
        return Ok(());
    };
    let output = command.run_to_end().await.map_err(not_started)?;
    if output.exit.is_success() {
        return Ok(());
    }
    let words = output.stderr.last_words(500);
    let message = format!("the agent could not be set up: {words}");
    Err(ProviderError::service(message).with_code("setup_failed"))
}

impl CommandProvider {
    /// A provider for an agent that has a recipe.
    pub fn with_recipe(recipe: Recipe) -> Self {
        Self {
            recipe: Some(Arc::new(recipe)),
            ..Self::default()
        }
    }

    fn invocation(&self, params: &CreateSessionParams) -> Result<Invocation, ProviderError> {
        let directory = self.directory.get().unwrap_or(&params.workdir);
        match &self.recipe {
            Some(recipe) => recipe.invocation(params, directory),
            None => {
                let settings = CommandSettings::checked(&params.provider_overrides)
                    .map_err(|error| ProviderError::service(error.message))?;
                let program = settings.command.first().map_or("", String::as_str);
                let known = Recipe::of_program(program).filter(|_| params.sandbox.is_guard());
                let plan = Plan {
                    own: known.map_or_else(Vec::new, Recipe::own_files),
                    ..Plan::default()
                };
                Ok(Invocation::planned(settings, params, directory, plan))
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, CommandSession>> {
        crate::lock(&self.sessions)
    }

    fn with<T>(
        &self,
        handle: &SessionHandle,
        work: impl FnOnce(&mut CommandSession) -> T,
    ) -> Result<T, ProviderError> {
        let mut sessions = self.sessions();
        let session = sessions.get_mut(&handle.session_id);
        session
            .map(work)
            .ok_or_else(|| ProviderError::service(format!("no session `{}`", handle.session_id)))
    }
}

impl CommandSession {
    /// Every prompt counts its calls from the beginning, a trace does not.
    fn add_calls(&mut self, calls: Vec<ModelCall>) {
        for mut call in calls {
            call.id = (self.model_calls.len() + 1).to_string();
            self.model_calls.push(call);
        }
    }
}

/// Nothing was learnt about a program that never ran.
fn not_started(error: assize_process::Error) -> ProviderError {
    ProviderError::service(error.explained())
        .with_code("program_not_started")
        .with_void_cause(VoidCause::AgentStart)
}
