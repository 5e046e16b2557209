//! A scorer in a plugin program.

use crate::program::PluginProgram;
use crate::protocol::{ScorerEvaluateParams, ScorerOffer};
use assize_contracts::{
    BaseScenario, BoxError, JsonMap, Plugins, Scorer, ScorerContext, ScorerResult, async_trait,
};
use std::borrow::Cow;
use std::sync::Arc;

struct ProgramScorer {
    program: Arc<PluginProgram>,
    offer: ScorerOffer,
    settings: JsonMap,
}

/// Adds the scorer; what the suite says about it goes along with every call.
pub(super) fn register(
    plugins: Plugins,
    program: Arc<PluginProgram>,
    offer: ScorerOffer,
) -> Plugins {
    plugins.scorer_with(offer.id.clone(), move |settings| {
        Ok(Arc::new(ProgramScorer {
            program: Arc::clone(&program),
            offer: offer.clone(),
            settings: settings.clone(),
        }))
    })
}

#[async_trait]
impl Scorer for ProgramScorer {
    fn id(&self) -> &str {
        &self.offer.id
    }

    async fn evaluate(
        &self,
        scenario: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        let params = ScorerEvaluateParams {
            scorer: Cow::Borrowed(&self.offer.id),
            scenario: Cow::Borrowed(scenario),
            context: Cow::Borrowed(context),
            settings: Cow::Borrowed(&self.settings),
        };
        Ok(self.program.call("scorer/evaluate", params).await?)
    }
}
