//! A collector in a plugin program.

use crate::program::PluginProgram;
use crate::protocol::{CollectorCollectParams, CollectorOffer};
use assize_contracts::{
    BaseScenario, BoxError, Collector, CustomMetric, PromptResult, SessionTrace, async_trait,
};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct ProgramCollector {
    pub(super) program: Arc<PluginProgram>,
    pub(super) offer: CollectorOffer,
}

#[async_trait]
impl Collector for ProgramCollector {
    fn id(&self) -> &str {
        &self.offer.id
    }

    async fn collect(
        &self,
        result: &PromptResult,
        scenario: &BaseScenario,
        mode: &str,
        trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        let params = CollectorCollectParams {
            collector: Cow::Borrowed(&self.offer.id),
            result: Cow::Borrowed(result),
            scenario: Cow::Borrowed(scenario),
            mode: Cow::Borrowed(mode),
            trace: trace.map(Cow::Borrowed),
        };
        Ok(self.program.call("collector/collect", params).await?)
    }
}
