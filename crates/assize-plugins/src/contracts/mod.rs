//! The eight contracts, each forwarded to a plugin program.

mod analyzer;
mod collector;
mod evaluator;
mod hooks;
mod mode_resolver;
mod provider;
mod runner;
mod scorer;

use crate::program::PluginProgram;
use crate::protocol::{Capabilities, OfferedScope};
use assize_contracts::Plugins;
use provider::ProgramProvider;
use serde::{Deserialize, Deserializer};
use std::sync::Arc;

/// Everything that a started program serves, under the ids it gave. Nothing, if it was not started.
pub(crate) fn served_by(program: &Arc<PluginProgram>) -> Plugins {
    let Some(offer) = program.offer() else {
        return Plugins::new();
    };
    let Capabilities {
        providers,
        scorers,
        collectors,
        analyzers,
        mode_resolver,
        hooks,
        runners,
        evaluators,
        concurrency,
    } = offer.capabilities.clone();
    let shared = || Arc::clone(program);
    let mut plugins = Plugins::new();
    for mut offer in providers {
        // A plugin that takes several requests at once can have several sessions at once.
        offer.concurrency = offer.concurrency.or(concurrency);
        let program = shared();
        plugins = match offer.scope {
            OfferedScope::Single => {
                plugins.single_provider(Arc::new(ProgramProvider::shared(program, offer)))
            }
            // A plugin on a socket exists only once.
            OfferedScope::Mode if program.is_shared() => {
                plugins.single_provider(Arc::new(ProgramProvider::shared(program, offer)))
            }
            OfferedScope::Session => plugins
                .provider(move || ProgramProvider::shared(Arc::clone(&program), offer.clone())),
            OfferedScope::Mode => plugins
                .provider(move || ProgramProvider::apart(Arc::clone(&program), offer.clone())),
        };
    }
    for offer in scorers {
        plugins = scorer::register(plugins, shared(), offer);
    }
    for offer in collectors {
        plugins = plugins.collector(collector::ProgramCollector {
            program: shared(),
            offer,
        });
    }
    for offer in analyzers {
        plugins = plugins.analyzer(analyzer::ProgramAnalyzer {
            program: shared(),
            offer,
        });
    }
    if mode_resolver.is_some() {
        let resolver = mode_resolver::ProgramModeResolver { program: shared() };
        plugins = plugins.mode_resolver(program.id(), resolver);
    }
    if let Some(offer) = hooks {
        plugins = plugins.hooks(program.id(), hooks::ProgramHooks::new(shared(), offer));
    }
    for offer in runners {
        plugins = plugins.runner(runner::ProgramRunner {
            program: shared(),
            offer,
        });
    }
    for offer in evaluators {
        plugins = evaluator::register(plugins, shared(), offer);
    }
    plugins
}

/// The result of a method without a result. Any value is accepted.
struct Nothing;

impl<'de> Deserialize<'de> for Nothing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}
