//! Looks at what sessions of a mode will need, before any of them is started and anything is spent.

use crate::mcp::McpServers;
use crate::settings::read;
use assize_contracts::JsonMap;
use assize_process::Command;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The settings that are looked at here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WithServers {
    #[serde(alias = "mcpServers")]
    mcp_servers: McpServers,
    #[serde(alias = "passEnv")]
    pass_env: Vec<String>,
}

/// Starts or reaches the MCP servers that a mode's settings name, asks for their tools and ends them again. An error says
/// in words which of them is not ready, and why.
pub async fn try_mcp_servers(
    overrides: &JsonMap,
    environment: &BTreeMap<String, String>,
    suite: &Path,
    patience: Duration,
) -> Result<(), String> {
    let names = ["mcp_servers", "mcpServers", "pass_env", "passEnv"];
    let own = overrides
        .iter()
        .filter(|(key, _)| names.contains(&key.as_str()));
    let own: JsonMap = own
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let settings: WithServers = read(&own).map_err(|problem| problem.message)?;
    if settings.mcp_servers.is_empty() {
        return Ok(());
    }
    let workspace = tempfile::tempdir().map_err(|error| error.to_string())?;
    let servers = settings.mcp_servers.for_session(workspace.path(), suite);
    let command = |program: &str| {
        let command = Command::new(program, workspace.path()).pass_usual_env();
        let passed = settings.pass_env.iter();
        let command = passed.fold(command, |command, name| command.pass_env(name));
        let own = environment.iter();
        own.fold(command, |command, (name, value)| command.env(name, value))
    };
    crate::chat::try_servers(servers, command, patience)
        .await
        .map_err(|error| error.message)
}
