//! `plugins`: programs that serve contracts, started when a suite is loaded.

use assize_plugins::{PluginSpec, Transport};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that serves contracts over the plugin protocol.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginEntry {
    /// Its name: of its mode resolver, its hooks and its log.
    pub id: String,
    /// The program and its arguments, started in the suite's directory.
    #[serde(default)]
    pub command: Vec<String>,
    /// A Unix socket on which somebody serves already, in place of a program.
    pub socket: Option<PathBuf>,
    /// What the plugin is told when it starts.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Variables of the program besides the usual ones.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables of the environment that it gets besides the usual ones.
    #[serde(default, alias = "passEnv")]
    pub pass_env: Vec<String>,
    /// How long any call but a prompt may take. Default: 30000.
    #[serde(alias = "timeoutMs")]
    pub timeout_ms: Option<u64>,
    /// How often in a row it is started again without having answered anything. Default: 3.
    pub restarts: Option<u32>,
}

impl PluginEntry {
    /// What to start, or what is wrong with it.
    pub(super) fn spec(&self, directory: &Path) -> Result<PluginSpec, Misfit> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if self.id.is_empty() || self.id.starts_with('.') || !self.id.chars().all(is_plain) {
            let message = format!(
                "found the id {:?}, expected letters, digits, `.`, `_` and `-`",
                self.id
            );
            return Err(Misfit { key: "id", message });
        }
        let transport = match (&self.socket, self.command.first()) {
            (None, Some(program)) if !program.is_empty() => {
                Transport::Program(self.command.clone())
            }
            (Some(socket), None) => Transport::Socket(directory.join(socket)),
            _ => {
                let message = "expected the program and its arguments, as in `command: [\"node\", \"plugin.mjs\"]`";
                return Err(Misfit {
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
            timeout: self.timeout_ms.map(Duration::from_millis),
            restarts: self.restarts,
        })
    }
}

/// A key whose value cannot be used.
pub(super) struct Misfit {
    pub(super) key: &'static str,
    pub(super) message: String,
}
