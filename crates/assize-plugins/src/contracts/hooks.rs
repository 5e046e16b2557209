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
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct ProgramHooks {
    pub(super) program: Arc<PluginProgram>,
    pub(super) offer: HooksOffer,
}

impl ProgramHooks {
    async fn tell(&self, method: &str, params: impl Serialize) -> Result<(), BoxError> {
        self.program.call::<Nothing>(method, params, None).await?;
        Ok(())
    }

    async fn around_mode(&self, method: &str, mode: &str) -> Result<(), BoxError> {
        let mode = Cow::Borrowed(mode);
        self.tell(method, ModeParams { mode }).await
    }

    async fn around_run(&self, method: &str, context: &RunContext) -> Result<(), BoxError> {
        let context = Cow::Borrowed(context);
        self.tell(method, RunParams { context }).await
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
        Ok(self
            .program
            .call("hooks/beforeScenario", params, None)
            .await?)
    }

    async fn after_scenario(&self, context: &AfterScenarioContext) -> Result<(), BoxError> {
        let context = Cow::Borrowed(context);
        self.tell("hooks/afterScenario", AfterScenarioParams { context })
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
