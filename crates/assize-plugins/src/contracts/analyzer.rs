//! An analyzer in a plugin program.

use crate::program::PluginProgram;
use crate::protocol::{AnalyzerAnalyzeParams, AnalyzerOffer};
use assize_contracts::{
    AnalysisResult, Analyzer, BaseScenario, BoxError, SessionTrace, async_trait,
};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct ProgramAnalyzer {
    pub(super) program: Arc<PluginProgram>,
    pub(super) offer: AnalyzerOffer,
}

#[async_trait]
impl Analyzer for ProgramAnalyzer {
    fn name(&self) -> &str {
        &self.offer.name
    }

    async fn analyze(
        &self,
        trace: &SessionTrace,
        scenario: &BaseScenario,
        mode: &str,
    ) -> Result<AnalysisResult, BoxError> {
        let params = AnalyzerAnalyzeParams {
            analyzer: Cow::Borrowed(&self.offer.name),
            trace: Cow::Borrowed(trace),
            scenario: Cow::Borrowed(scenario),
            mode: Cow::Borrowed(mode),
        };
        Ok(self.program.call("analyzer/analyze", params).await?)
    }
}
