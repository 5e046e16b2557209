//! The built-in measures of Assize: collectors take numbers from a trial, analyzers explain it, checks and
//! evaluators score it.
//!
//! Every built-in here goes through the public traits of `assize-contracts` and is a plain function behind them;
//! each is also an example for plugin authors. Missing measurements stay absent.

pub mod analyzers;
mod checks;
mod collectors;
mod composite;
mod evaluators;
#[doc(hidden)]
pub mod fuzzing;
mod judge;
mod skill_use;
mod spec;

pub use checks::{
    CheckPlace, ChecksScorer, CommandOutcome, CommandRunner, CommandSpec, HarborSpec, Rewards,
    SchemaCheck, load_references,
};
pub use collectors::{
    CostCollector, LatencyCollector, ProgramCollector, SkillsCollector, TokenCollector,
    ToolCallsCollector,
};
pub use composite::{CompositeScorer, make_scorer};
pub use evaluators::ScorerEvaluator;
pub use judge::JudgeScorer;

use assize_contracts::Plugins;
use std::sync::Arc;

/// All built-ins of this crate, except that `command` checks cannot be made.
pub fn plugins() -> Plugins {
    plugins_scoring_by(ChecksScorer::new())
}

/// All built-ins of this crate.
pub fn plugins_with_commands(commands: Arc<dyn CommandRunner>) -> Plugins {
    plugins_scoring_by(ChecksScorer::with_commands(commands))
}

fn plugins_scoring_by(checks: ChecksScorer) -> Plugins {
    let checks = Arc::new(checks);
    let plugins = Plugins::new()
        .collector(TokenCollector)
        .collector(LatencyCollector)
        .collector(CostCollector)
        .collector(ToolCallsCollector)
        .collector(ProgramCollector)
        .scorer_with("checks", move |settings| match settings.keys().next() {
            Some(key) => Err(format!("unknown key `{key}`: the scorer has no settings").into()),
            None => Ok(Arc::<ChecksScorer>::clone(&checks)),
        })
        .scorer_with("judge", JudgeScorer::from_settings);
    let plugins = analyzers::ALL.into_iter().fold(plugins, Plugins::analyzer);
    evaluators::register(plugins)
}
