//! A provider in a plugin program. A session lives and dies with the start of the program that made it.

use super::Nothing;
use crate::connection::Connection;
use crate::error::CallError;
use crate::program::PluginProgram;
use crate::protocol::{
    OfferedNature, OfferedScope, ProviderCreateSessionParams, ProviderInitParams, ProviderOffer,
    ProviderPromptParams, ProviderSessionParams, ProviderShutdownParams,
};
use assize_contracts::{
    Concurrency, CreateSessionParams, JsonMap, Nature, PromptResult, ProviderConfig, ProviderError,
    ProviderScope, SessionHandle, SessionProvider, SessionTrace, async_trait,
};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The engine ends a prompt in time; this is only so that no call is without an end.
const PROMPT_SLACK: Duration = Duration::from_secs(5);

pub(super) struct ProgramProvider {
    offer: ProviderOffer,
    /// The program that the suite declared.
    declared: Arc<PluginProgram>,
    /// The program of this instance: the declared one, or one of its own from `init` on.
    serving: OnceLock<Arc<PluginProgram>>,
    sessions: Mutex<HashMap<String, Arc<Connection>>>,
}

impl ProgramProvider {
    /// Served by the declared program.
    pub(super) fn shared(program: Arc<PluginProgram>, offer: ProviderOffer) -> Self {
        let provider = Self::apart(Arc::clone(&program), offer);
        let _ = provider.serving.set(program);
        provider
    }

    /// Served by a program of its own.
    pub(super) fn apart(declared: Arc<PluginProgram>, offer: ProviderOffer) -> Self {
        Self {
            offer,
            declared,
            serving: OnceLock::new(),
            sessions: Mutex::default(),
        }
    }

    fn program(&self) -> &Arc<PluginProgram> {
        self.serving
            .get_or_init(|| self.declared.another(&BTreeMap::new()))
    }

    /// The program of an instance that serves one mode has that mode's environment, and so has whatever it starts.
    fn program_for(&self, config: &ProviderConfig) -> &Arc<PluginProgram> {
        self.serving
            .get_or_init(|| self.declared.another(&config.environment))
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Connection>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connection_of(&self, handle: &SessionHandle) -> Result<Arc<Connection>, CallError> {
        let known = self.sessions().get(&handle.session_id).cloned();
        match known {
            Some(connection) => Ok(connection),
            None => self.program().connection().await,
        }
    }

    async fn call_session<R: DeserializeOwned>(
        &self,
        method: &str,
        handle: &SessionHandle,
    ) -> Result<R, CallError> {
        let connection = self.connection_of(handle).await?;
        let params = ProviderSessionParams {
            provider: Cow::Borrowed(&self.offer.id),
            handle: Cow::Borrowed(handle),
        };
        let program = self.program();
        let limit = program.limit(method);
        program.call_on(&connection, method, params, limit).await
    }
}

#[async_trait]
impl SessionProvider for ProgramProvider {
    fn id(&self) -> &str {
        &self.offer.id
    }

    fn scope(&self) -> ProviderScope {
        match self.offer.scope {
            OfferedScope::Session => ProviderScope::Session,
            OfferedScope::Mode | OfferedScope::Single => ProviderScope::Mode,
        }
    }

    fn concurrency(&self) -> Concurrency {
        self.offer.concurrency.unwrap_or(Concurrency::ONE)
    }

    fn default_model(&self, _: &JsonMap) -> Option<String> {
        self.offer.default_model.clone()
    }

    fn may_cost(&self) -> bool {
        self.offer.may_cost.unwrap_or(true)
    }

    fn nature(&self) -> Nature {
        match self.offer.nature {
            OfferedNature::Live => Nature::Live,
            OfferedNature::Replayed => Nature::Replayed,
            OfferedNature::Simulated => Nature::Simulated,
        }
    }

    fn timeout_grace(&self) -> Duration {
        Duration::from_millis(self.offer.timeout_grace_ms.unwrap_or(0))
    }

    fn export_limit(&self) -> Option<Duration> {
        self.declared.limit("provider/exportSession")
    }

    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        let params = ProviderInitParams {
            provider: Cow::Borrowed(&self.offer.id),
            config: Cow::Borrowed(config),
        };
        let program = self.program_for(config);
        program
            .start()
            .await
            .map_err(|error| ProviderError::service(error.to_string()))?;
        program.call::<Nothing>("provider/init", &params).await?;
        program.remember_set_up(&self.offer.id, serde_json::to_value(params).ok());
        Ok(())
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let program = self.program();
        let connection = program.connection().await?;
        let params = ProviderCreateSessionParams {
            provider: Cow::Borrowed(&self.offer.id),
            params: Cow::Borrowed(params),
        };
        let limit = program.limit("provider/createSession");
        let call = program.call_on(&connection, "provider/createSession", params, limit);
        let handle: SessionHandle = call.await?;
        self.sessions()
            .insert(handle.session_id.clone(), connection);
        Ok(handle)
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let connection = self.connection_of(handle).await?;
        let params = ProviderPromptParams {
            provider: Cow::Borrowed(&self.offer.id),
            handle: Cow::Borrowed(handle),
            text: Cow::Borrowed(text),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        };
        let limit = timeout
            .saturating_add(self.timeout_grace())
            .saturating_add(PROMPT_SLACK);
        let call = self
            .program()
            .call_on(&connection, "provider/prompt", params, Some(limit));
        Ok(call.await?)
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        Ok(self.call_session("provider/exportSession", handle).await?)
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        let lived_on = self.sessions().remove(&handle.session_id);
        if let Some(connection) = lived_on {
            // A session is gone with the program that held it: nothing is left to be ended.
            if connection.has_ended() {
                return Ok(());
            }
        }
        self.call_session::<Nothing>("provider/destroySession", handle)
            .await?;
        Ok(())
    }

    async fn shutdown(&self) -> Result<(), ProviderError> {
        let program = self.program();
        program.remember_set_up(&self.offer.id, None);
        let params = ProviderShutdownParams {
            provider: Cow::Borrowed(&self.offer.id),
        };
        let answered = program.call::<Nothing>("provider/shutdown", params).await;
        if !Arc::ptr_eq(program, &self.declared) {
            program.end().await;
        }
        answered?;
        Ok(())
    }
}
