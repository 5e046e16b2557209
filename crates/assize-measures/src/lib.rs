//! What Assize measures on its own: collectors take numbers from a trial, checks score it.
//!
//! Every built-in here goes through the public traits of `assize-contracts` and is a plain function behind them;
//! each is also an example for plugin authors. Numbers that nobody measured stay absent.

mod checks;
mod collectors;

pub use checks::ChecksScorer;
pub use collectors::{CostCollector, LatencyCollector, TokenCollector, ToolCallsCollector};

use assize_contracts::Plugins;

/// All built-ins of this crate.
pub fn plugins() -> Plugins {
    Plugins::new()
        .collector(TokenCollector)
        .collector(LatencyCollector)
        .collector(CostCollector)
        .collector(ToolCallsCollector)
        .scorer(ChecksScorer::new())
}
