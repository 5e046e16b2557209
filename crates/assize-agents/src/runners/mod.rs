//! Runners: what executes the lab's tasks. Each is one file: settings, execution, tests.

mod agent;
mod answer;
mod command;
mod http;
mod llm;
mod record;
mod rules;
mod template;

#[cfg(test)]
mod tests;

use assize_contracts::{ConfigError, DEFAULT_TIMEOUT_MS, Plugins, RunSetting, Runner, RunnerSetup};
use assize_llm::Prices;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Adds all runners of this crate.
pub(crate) fn register(plugins: Plugins) -> Plugins {
    plugins
        .runner_with("rules", VERSION, |setup| shared(rules::Rules::new(setup)))
        .runner_with("command", VERSION, |setup| {
            shared(command::Program::new(setup))
        })
        .runner_with("http", VERSION, |setup| shared(http::Service::new(setup)))
        .runner_with("llm", VERSION, |setup| shared(llm::Model::new(setup)))
        .runner_with("agent", VERSION, |setup| shared(agent::Agent::new(setup)))
}

fn shared<R: Runner + 'static>(
    runner: Result<R, ConfigError>,
) -> Result<Arc<dyn Runner>, ConfigError> {
    runner.map(|runner| Arc::new(runner) as Arc<dyn Runner>)
}

/// The part that every runner receives: the suite's name for it, and the type it serves.
struct Role {
    id: String,
    task_type: String,
}

impl Role {
    fn of(setup: &RunnerSetup<'_>) -> Self {
        Self {
            id: setup.id.to_owned(),
            task_type: setup.task_type.to_owned(),
        }
    }
}

/// Reads a runner's configuration.
fn read<T: DeserializeOwned>(setup: &RunnerSetup<'_>) -> Result<T, ConfigError> {
    crate::settings::read(setup.config)
}

/// The suite's prices before the built-in ones.
fn prices(setup: &RunnerSetup<'_>) -> Result<Prices, ConfigError> {
    let Some(file) = setup.prices_file else {
        return Ok(Prices::default());
    };
    Prices::with_file(file)
        .map_err(|error| crate::settings::setting_error("prices", error.to_string()))
}

/// The setting of an execution that belongs to no trial.
fn alone() -> RunSetting {
    RunSetting {
        timeout: Duration::from_millis(DEFAULT_TIMEOUT_MS),
        ..RunSetting::default()
    }
}

/// The beginning of a text.
fn excerpt(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
