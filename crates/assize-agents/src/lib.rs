//! Ways to reach what is on trial. Each provider is one module: settings, sessions, tests.

mod command;
mod replay;
mod settings;
mod simulated;

pub use command::CommandProvider;
pub use replay::ReplayProvider;
pub use simulated::SimulatedProvider;

use assize_contracts::Plugins;

/// All providers of this crate.
pub fn plugins() -> Plugins {
    Plugins::new()
        .provider(SimulatedProvider::default)
        .provider(ReplayProvider::default)
        .provider(CommandProvider::default)
}
