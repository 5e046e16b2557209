//! Hooks in a plugin program.

use super::Nothing;
use crate::program::PluginProgram;
use crate::protocol::{
    AfterScenarioParams, BeforeScenarioParams, HooksOffer, ModeParams, RunParams,
};
use assize_contracts::{
    AfterScenarioContext, BaseScenario, BeforeScenarioContext, BoxError, HookEvent, RunContext,
    RunHooks, async_trait,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::Mutex;

pub(super) struct ProgramHooks {
    program: Arc<PluginProgram>,
    offer: HooksOffer,
    /// Held while a hook runs, also when its caller has left.
    turn: Arc<Mutex<()>>,
}

impl ProgramHooks {
    pub(super) fn new(program: Arc<PluginProgram>, offer: HooksOffer) -> Self {
        Self {
            program,
            offer,
            turn: Arc::default(),
        }
    }

    /// Nothing may start while a hook that comes first still runs.
    async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<R, BoxError> {
        let turn = match self.offer.concurrent {
            true => None,
            false => Some(Arc::clone(&self.turn).lock_owned().await),
        };
        Ok(self.program.call_to_the_end(method, params, turn).await?)
    }

    async fn call_without_result(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<(), BoxError> {
        self.call::<Nothing>(method, params).await.map(drop)
    }

    async fn around_mode(&self, method: &'static str, mode: &str) -> Result<(), BoxError> {
        let mode = Cow::Borrowed(mode);
        self.call_without_result(method, ModeParams { mode }).await
    }

    async fn around_run(&self, method: &'static str, context: &RunContext) -> Result<(), BoxError> {
        let context = Cow::Borrowed(context);
        self.call_without_result(method, RunParams { context })
            .await
    }
}

#[async_trait]
impl RunHooks for ProgramHooks {
    fn events(&self) -> &[HookEvent] {
        &self.offer.events
    }

    fn concurrent(&self) -> bool {
        self.offer.concurrent
    }

    async fn before_scenario(
        &self,
        context: &BeforeScenarioContext,
    ) -> Result<Option<BaseScenario>, BoxError> {
        let params = BeforeScenarioParams {
            context: Cow::Borrowed(context),
        };
        self.call("hooks/beforeScenario", params).await
    }

    async fn after_scenario(&self, context: &AfterScenarioContext) -> Result<(), BoxError> {
        let context = Cow::Borrowed(context);
        self.call_without_result("hooks/afterScenario", AfterScenarioParams { context })
            .await
    }

    async fn before_mode(&self, mode: &str) -> Result<(), BoxError> {
        self.around_mode("hooks/beforeMode", mode).await
    }

    async fn after_mode(&self, mode: &str) -> Result<(), BoxError> {
        self.around_mode("hooks/afterMode", mode).await
    }

    async fn before_run(&self, context: &RunContext) -> Result<(), BoxError> {
        self.around_run("hooks/beforeRun", context).await
    }

    async fn after_run(&self, context: &RunContext) -> Result<(), BoxError> {
        self.around_run("hooks/afterRun", context).await
    }
}
