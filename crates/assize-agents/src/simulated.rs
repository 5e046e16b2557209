//! A seeded stand-in for an agent: for trying things out, planning and load. Everything it gives is marked `simulated`.

mod repertoire;
mod session;
mod settings;

use crate::lock;
use crate::settings::read;
use assize_contracts::{
    Concurrency, ConfigError, CreateSessionParams, JsonMap, Nature, PromptResult, ProviderError,
    ProviderScope, SessionHandle, SessionProvider, SessionTrace, Timestamp, async_trait,
};
use repertoire::Simulation;
use session::SimulatedSession;
use settings::SimulatedSettings;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The provider `simulated`.
#[derive(Default)]
pub struct SimulatedProvider {
    /// Settings already read, by the mode they belong to.
    settings: Mutex<HashMap<String, ReadSettings>>,
    /// Each session has a lock of its own, so that none waits while another one is made up.
    sessions: Mutex<HashMap<String, Arc<Mutex<SimulatedSession>>>>,
}

/// Parsed settings, with their source.
type ReadSettings = (Arc<JsonMap>, Arc<Simulation>);

impl SimulatedProvider {
    /// Every session of a mode has the same settings, so they are read once.
    fn simulation(&self, params: &CreateSessionParams) -> Result<Arc<Simulation>, ProviderError> {
        let mut known = lock(&self.settings);
        match known.get(&params.mode) {
            Some((overrides, simulation)) if Arc::ptr_eq(overrides, &params.provider_overrides) => {
                Ok(Arc::clone(simulation))
            }
            _ => {
                let read: SimulatedSettings = read(&params.provider_overrides)
                    .map_err(|error| ProviderError::service(error.message))?;
                let simulation = Arc::new(Simulation::new(read));
                let entry = (
                    Arc::clone(&params.provider_overrides),
                    Arc::clone(&simulation),
                );
                known.insert(params.mode.clone(), entry);
                Ok(simulation)
            }
        }
    }
}

#[async_trait]
impl SessionProvider for SimulatedProvider {
    fn id(&self) -> &str {
        "simulated"
    }

    fn scope(&self) -> ProviderScope {
        ProviderScope::Session
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::ANY
    }

    fn default_model(&self, overrides: &JsonMap) -> Option<String> {
        overrides.get("model")?.as_str().map(str::to_owned)
    }

    fn may_cost(&self) -> bool {
        false
    }

    fn nature(&self) -> Nature {
        Nature::Simulated
    }

    /// The simulated agent notices the timeout itself, so that it can report what it used until then.
    fn timeout_grace(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        read::<SimulatedSettings>(overrides)?.check()
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let simulation = self.simulation(params)?;
        let now = assize_contracts::unix_ms_now();
        let session_id = format!("sim-{:016x}", params.seed);
        let session = SimulatedSession::draw(simulation, params, &session_id, now);
        lock(&self.sessions).insert(session_id.clone(), Arc::new(Mutex::new(session)));
        let created_at = Timestamp::from_unix_ms(now);
        Ok(SessionHandle::new(session_id, self.id(), created_at))
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let started = tokio::time::Instant::now();
        let latency = with(&self.sessions, handle, |session| session.begin_turn())?;
        if !latency.is_zero() {
            tokio::time::sleep(latency.min(timeout)).await;
        }
        let share = if latency <= timeout {
            1.0
        } else {
            timeout.div_duration_f64(latency)
        };
        let elapsed = started.elapsed();
        with(&self.sessions, handle, |session| {
            session.end_turn(text, elapsed, share)
        })
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        with(&self.sessions, handle, |session| session.trace())
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        lock(&self.sessions).remove(&handle.session_id);
        Ok(())
    }
}

fn with<T>(
    sessions: &Mutex<HashMap<String, Arc<Mutex<SimulatedSession>>>>,
    handle: &SessionHandle,
    work: impl FnOnce(&mut SimulatedSession) -> T,
) -> Result<T, ProviderError> {
    let session = lock(sessions).get(&handle.session_id).cloned();
    match session {
        Some(session) => Ok(work(&mut lock(&session))),
        None => Err(ProviderError::service(format!(
            "no session `{}`",
            handle.session_id
        ))),
    }
}
