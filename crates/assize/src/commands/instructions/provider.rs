//! Any provider in the screening: every trial gets the sections that the design gives to its scenario and block.

use assize_contracts::{
    Concurrency, ConfigError, CreateSessionParams, JsonMap, ModelUse, Nature, PromptResult,
    ProviderConfig, ProviderError, ProviderScope, Sandboxing, SessionHandle, SessionProvider,
    SessionTrace, async_trait,
};
use assize_stats::BalancedSubsets;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The design of a screening.
pub(super) struct Screening {
    pub(super) sections: Vec<String>,
    pub(super) subsets: Arc<BalancedSubsets>,
    /// Places of scenarios by id.
    pub(super) scenarios: BTreeMap<String, usize>,
}

impl Screening {
    /// The instruction file of one trial.
    fn text(&self, scenario: &str, block: i64) -> String {
        let place = self.scenarios.get(scenario).copied().unwrap_or(usize::MAX);
        let block = usize::try_from(block).unwrap_or(usize::MAX);
        let present = self.subsets.present(place, block);
        present
            .into_iter()
            .map(|section| self.sections[section].as_str())
            .collect()
    }
}

pub(super) struct Screened {
    inner: Arc<dyn SessionProvider>,
    screening: Arc<Screening>,
}

impl Screened {
    pub(super) fn new(inner: Arc<dyn SessionProvider>, screening: Arc<Screening>) -> Self {
        Self { inner, screening }
    }
}

#[async_trait]
impl SessionProvider for Screened {
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
        self.inner.may_cost()
    }

    fn nature(&self) -> Nature {
        self.inner.nature()
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

    fn base_urls(&self, overrides: &JsonMap) -> BTreeMap<String, String> {
        self.inner.base_urls(overrides)
    }

    fn model_use(&self) -> ModelUse {
        self.inner.model_use()
    }

    fn timeout_grace(&self) -> Duration {
        self.inner.timeout_grace()
    }

    fn export_limit(&self) -> Option<Duration> {
        self.inner.export_limit()
    }

    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        self.inner.check_overrides(overrides)
    }

    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        self.inner.init(config).await
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let text = self.screening.text(&params.scenario_id, params.iteration);
        let mut overrides = (*params.provider_overrides).clone();
        overrides.insert("instructions".to_owned(), json!({ "text": text }));
        let params = CreateSessionParams {
            provider_overrides: Arc::new(overrides),
            ..params.clone()
        };
        self.inner.create_session(&params).await
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        self.inner.prompt(handle, text, timeout).await
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        self.inner.export_session(handle).await
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        self.inner.destroy_session(handle).await
    }

    async fn shutdown(&self) -> Result<(), ProviderError> {
        self.inner.shutdown().await
    }
}
