//! Analyzers: findings from a session's trace about how the agent worked. Each is a plain function of a trace.

mod findings;
mod grouped;
mod same_calls;
mod tool_name;
mod trace_view;

mod efficiency;
mod error;
mod reasoning;
mod strategy;
mod tool_pattern;

mod loops;
mod subagents;
mod time;
mod time_spans;
mod tokens;
mod waste;

#[cfg(test)]
mod testing;

pub use efficiency::EFFICIENCY;
pub use error::ERROR;
pub use loops::LOOPS;
pub use reasoning::REASONING;
pub use strategy::STRATEGY;
pub use subagents::SUBAGENTS;
pub use time::TIME;
pub use tokens::TOKENS;
pub use tool_pattern::TOOL_PATTERN;
pub use waste::{CacheMiss, WASTE, cache_misses};

use assize_contracts::{
    AnalysisResult, Analyzer, BaseScenario, BoxError, SessionTrace, async_trait,
};

/// The analyzers every suite uses unless it says otherwise.
pub const FIVE: [TraceAnalyzer; 5] = [REASONING, STRATEGY, EFFICIENCY, TOOL_PATTERN, ERROR];

/// Every analyzer of this crate.
pub const ALL: [TraceAnalyzer; 10] = [
    REASONING,
    STRATEGY,
    EFFICIENCY,
    TOOL_PATTERN,
    ERROR,
    TIME,
    TOKENS,
    LOOPS,
    SUBAGENTS,
    WASTE,
];

/// An analyzer that needs the trace alone and never breaks.
#[derive(Debug, Clone, Copy)]
pub struct TraceAnalyzer {
    name: &'static str,
    find: fn(&SessionTrace) -> AnalysisResult,
}

impl TraceAnalyzer {
    /// Runs this analyzer without going through the asynchronous contract.
    pub fn find(&self, trace: &SessionTrace) -> AnalysisResult {
        (self.find)(trace)
    }
}

#[async_trait]
impl Analyzer for TraceAnalyzer {
    fn name(&self) -> &str {
        self.name
    }

    async fn analyze(
        &self,
        trace: &SessionTrace,
        _scenario: &BaseScenario,
        _mode: &str,
    ) -> Result<AnalysisResult, BoxError> {
        Ok(self.find(trace))
    }
}
