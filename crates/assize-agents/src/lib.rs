//! Ways to reach what is on trial. Each provider is one module: settings, sessions, tests. The lab's runners are in `runners`.

mod acp;
pub mod capture;
mod chat;
mod command;
pub mod container;
#[doc(hidden)]
pub mod fuzzing;
pub mod image;
mod line_program;
mod mcp;
mod output;
mod preflight;
mod recipe;
mod replay;
mod runners;
mod sessions;
mod settings;
mod simulated;
mod skill;
mod wall;

pub use acp::AcpProvider;
pub use chat::ChatProvider;
pub use command::CommandProvider;
pub use preflight::try_mcp_servers;
pub use recipe::{Credential, ProjectPlaces, Recipe, SignIn, SignInError, project_places};
pub use replay::ReplayProvider;
pub use simulated::SimulatedProvider;
pub use skill::{SKILL_FILE, Skill, SkillError, Subagent};

use assize_contracts::Plugins;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All providers and runners of this crate.
pub fn plugins() -> Plugins {
    let plugins = Plugins::new()
        .provider(SimulatedProvider::default)
        .provider(ReplayProvider::default)
        .provider(CommandProvider::default)
        .provider(AcpProvider::default)
        .provider(ChatProvider::default);
    let plugins = Recipe::built_in().iter().fold(plugins, |plugins, recipe| {
        plugins.provider(|| CommandProvider::with_recipe(recipe.clone()))
    });
    runners::register(plugins)
}

/// Locks state that a provider shares between sessions. A panic in one of them leaves nothing half done that others could see.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
