//! Analyzers: explanations of sessions.

use crate::{AnalysisResult, BaseScenario, BoxError, SessionTrace};
use async_trait::async_trait;

/// Looks at a session's trace for patterns, strategies and waste.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an analyzer",
    note = "implement `Analyzer` with `#[assize_contracts::async_trait]` above the impl"
)]
pub trait Analyzer: Send + Sync {
    /// The name under which suites use it and results are filed.
    fn name(&self) -> &str;

    /// Called once per attempt that has a trace, after the collectors; trials concurrently. Also called on stored
    /// traces, without any agent. An error loses this analyzer's findings for the trial, no more.
    async fn analyze(
        &self,
        trace: &SessionTrace,
        scenario: &BaseScenario,
        mode: &str,
    ) -> Result<AnalysisResult, BoxError>;
}
