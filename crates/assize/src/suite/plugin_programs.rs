//! `plugins`: programs that serve contracts, started when a suite is loaded.

use assize_plugins::{CallLimits, PluginSpec, Transport};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that serves contracts over the plugin protocol.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PluginEntry {
    /// Its name: of its mode resolver, its hooks and its log.
    pub id: String,
    /// The program and its arguments, started in the suite's directory.
    #[serde(default)]
    pub command: Vec<String>,
    /// A Unix socket on which a plugin serves already, in place of a program.
    pub socket: Option<PathBuf>,
    /// Options that the plugin receives when it starts.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Variables of the program besides the usual ones.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables of the environment that it gets besides the usual ones.
    #[serde(default, alias = "passEnv")]
    pub pass_env: Vec<String>,
    /// The time limit of any call but a prompt, in milliseconds, in place of the limits by kind. 0: no limit.
    #[serde(alias = "timeoutMs")]
    pub timeout_ms: Option<u64>,
    /// The time limits of calls, by kind.
    #[serde(default)]
    pub timeouts: TimeoutsSpec,
    /// Restarts in a row without any answer in between. Default: 3.
    pub restarts: Option<u32>,
}

impl PluginEntry {
    /// The program to start, or the mistake in its entry.
    pub(super) fn spec(&self, directory: &Path) -> Result<PluginSpec, PluginEntryError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if self.id.is_empty() || self.id.starts_with('.') || !self.id.chars().all(is_plain) {
            let message = format!(
                "found the id {:?}, expected letters, digits, `.`, `_` and `-`",
                self.id
            );
            return Err(PluginEntryError { key: "id", message });
        }
        let transport = match (&self.socket, self.command.first()) {
            (None, Some(program)) if !program.is_empty() => {
                Transport::Program(self.command.clone())
            }
            (Some(socket), None) => Transport::Socket(directory.join(socket)),
            _ => {
                let message = "expected the program and its arguments, as in `command: [\"node\", \"plugin.mjs\"]`";
                return Err(PluginEntryError {
                    key: "command",
                    message: message.to_owned(),
                });
            }
        };
        Ok(PluginSpec {
            id: self.id.clone(),
            transport,
            options: self.options.clone(),
            directory: directory.to_owned(),
            environment: self.environment.clone(),
            pass_env: self.pass_env.clone(),
            limits: CallLimits {
                all: self.timeout_ms.map(Duration::from_millis),
                by_kind: self.timeouts.by_kind(),
            },
            restarts: self.restarts,
        })
    }
}

/// Milliseconds that calls may take, by kind. 0: no limit.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutsSpec {
    /// `init` of a provider. Default: 600000.
    pub init: Option<u64>,
    /// `createSession` of a provider. Default: 600000.
    #[serde(alias = "createSession")]
    pub create_session: Option<u64>,
    /// `exportSession` of a provider. Default: 60000.
    #[serde(alias = "exportSession")]
    pub export_session: Option<u64>,
    /// `destroySession` of a provider. Default: 60000.
    #[serde(alias = "destroySession")]
    pub destroy_session: Option<u64>,
    /// `shutdown` of a provider. Default: 60000.
    pub shutdown: Option<u64>,
    /// `evaluate` of scorers. Default: 600000.
    pub scorer: Option<u64>,
    /// `collect` of collectors. Default: 60000.
    pub collector: Option<u64>,
    /// `analyze` of analyzers. Default: 60000.
    pub analyzer: Option<u64>,
    /// `resolve` of a mode resolver. Default: 600000.
    #[serde(alias = "modeResolver")]
    pub mode_resolver: Option<u64>,
    /// Each hook. Default: 600000.
    pub hooks: Option<u64>,
    /// `evaluate` of evaluators. Default: 600000.
    pub evaluator: Option<u64>,
    /// The answer to `initialize`, when the program starts. Default: 60000.
    pub initialize: Option<u64>,
}

impl TimeoutsSpec {
    fn by_kind(&self) -> BTreeMap<&'static str, Duration> {
        let all = [
            ("init", self.init),
            ("create_session", self.create_session),
            ("export_session", self.export_session),
            ("destroy_session", self.destroy_session),
            ("shutdown", self.shutdown),
            ("scorer", self.scorer),
            ("collector", self.collector),
            ("analyzer", self.analyzer),
            ("mode_resolver", self.mode_resolver),
            ("hooks", self.hooks),
            ("evaluator", self.evaluator),
            ("initialize", self.initialize),
        ];
        let given = |(kind, millis): (_, Option<u64>)| Some((kind, Duration::from_millis(millis?)));
        all.into_iter().filter_map(given).collect()
    }
}

/// A key whose value cannot be used.
pub(super) struct PluginEntryError {
    pub(super) key: &'static str,
    pub(super) message: String,
}
