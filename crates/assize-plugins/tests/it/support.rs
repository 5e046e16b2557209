//! A plugin in Python that misbehaves on demand, and calls to it.

use assize_contracts::{BaseScenario, BoxError, CustomMetric, JsonMap, PromptResult};
use assize_plugins::{CallLimits, PluginHost, PluginProgram, PluginSpec, Transport, Unstarted};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Far more than any call takes here, on however busy a machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn spec(command: &[&str]) -> PluginSpec {
    PluginSpec {
        id: "mine".to_owned(),
        transport: Transport::Program(command.iter().map(|part| (*part).to_owned()).collect()),
        directory: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"),
        limits: CallLimits::same(LONG),
        ..PluginSpec::default()
    }
}

pub(crate) fn faulty(fault: &str) -> PluginSpec {
    PluginSpec {
        options: JsonMap::from_iter([("fault".to_owned(), fault.into())]),
        ..spec(&["python3", "faulty.py"])
    }
}

/// Cargo builds examples next to the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples")
        .join(name)
}

/// A started plugin, or why it could not be.
pub(crate) fn start(spec: PluginSpec) -> Result<PluginHost, String> {
    let mut host = PluginHost::new().unwrap();
    match host.start(vec![spec]).into_iter().next() {
        Some(Unstarted { error, .. }) => Err(format!(
            "{error} {}",
            error.hint.clone().unwrap_or_default()
        )),
        None => Ok(host),
    }
}

pub(crate) fn program(host: &PluginHost) -> &Arc<PluginProgram> {
    &host.programs()[0]
}

/// Asks the only collector about a scenario.
pub(crate) async fn collect(
    host: &PluginHost,
    scenario: &str,
) -> Result<Vec<CustomMetric>, BoxError> {
    let plugins = host.plugins();
    let collector = plugins.collectors().values().next().unwrap();
    let scenario = BaseScenario::new(scenario, "prompt");
    collector
        .collect(&PromptResult::default(), &scenario, "plain", None)
        .await
}
