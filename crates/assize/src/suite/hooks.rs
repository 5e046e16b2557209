//! `hooks`: the name of a plugin, or commands.

use crate::programs::HookCommands;
use assize_contracts::{HookEvent, LONG_CALL_LIMIT};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Hooks around runs, modes and trials.
#[derive(Debug, Clone)]
pub enum HooksSpec {
    /// A plugin.
    Plugin(String),
    /// Commands.
    Commands(Box<HookCommandsSpec>),
}

/// Lines for the shell, run in the suite's directory with the context as JSON on stdin.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct HookCommandsSpec {
    /// Once, before any provider starts.
    #[serde(alias = "beforeRun")]
    pub before_run: Option<String>,
    /// Before the first trial of a mode. Modes then run one after another.
    #[serde(alias = "beforeMode")]
    pub before_mode: Option<String>,
    /// Before each attempt of a trial. May print a scenario as JSON to use instead.
    #[serde(alias = "beforeScenario")]
    pub before_scenario: Option<String>,
    /// After each attempt of a trial.
    #[serde(alias = "afterScenario")]
    pub after_scenario: Option<String>,
    /// After the last trial of a mode. Modes then run one after another.
    #[serde(alias = "afterMode")]
    pub after_mode: Option<String>,
    /// Once, after the last row is stored.
    #[serde(alias = "afterRun")]
    pub after_run: Option<String>,
    /// The time limit of each, in milliseconds. Default: 600000. 0: no limit.
    #[serde(alias = "timeoutMs")]
    pub timeout_ms: Option<u64>,
    /// Variables of the environment that they get besides the usual ones.
    #[serde(alias = "passEnv")]
    pub pass_env: Vec<String>,
}

impl HookCommandsSpec {
    /// Commands that run in this directory.
    pub(crate) fn commands(&self, directory: &Path) -> HookCommands {
        let lines = [
            (HookEvent::BeforeRun, &self.before_run),
            (HookEvent::BeforeMode, &self.before_mode),
            (HookEvent::BeforeScenario, &self.before_scenario),
            (HookEvent::AfterScenario, &self.after_scenario),
            (HookEvent::AfterMode, &self.after_mode),
            (HookEvent::AfterRun, &self.after_run),
        ];
        let given = lines
            .into_iter()
            .filter_map(|(event, line)| Some((event, line.clone()?)));
        let timeout = self
            .timeout_ms
            .map_or(LONG_CALL_LIMIT, Duration::from_millis);
        HookCommands::new(given.collect(), directory.to_owned(), timeout).passing(&self.pass_env)
    }
}

impl<'de> Deserialize<'de> for HooksSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HooksVisitor)
    }
}

struct HooksVisitor;

impl<'de> Visitor<'de> for HooksVisitor {
    type Value = HooksSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("commands by hook, or the name of a plugin")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<HooksSpec, E> {
        String::deserialize(StrDeserializer::new(name)).map(HooksSpec::Plugin)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HooksSpec, A::Error> {
        let commands = HookCommandsSpec::deserialize(MapAccessDeserializer::new(map))?;
        Ok(HooksSpec::Commands(Box::new(commands)))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for HooksSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hooks".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let commands = generator.subschema_for::<HookCommandsSpec>();
        schemars::json_schema!({
            "description": "Commands by hook, or the name of a plugin.",
            "oneOf": [commands, { "type": "string" }]
        })
    }
}
