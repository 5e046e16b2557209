//! Looks at what sessions of a mode will need, before any of them is started and anything is spent.

use crate::mcp::McpServers;
use crate::recipe::named_by;
use crate::settings::read;
use crate::wall::{Wall, session_directory};
use assize_contracts::{CreateSessionParams, JsonMap};
use assize_process::Command;
use serde::Deserialize;
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

/// Starts or reaches the MCP servers that the settings of a mode's sessions name, behind the same wall, asks for their
/// tools and ends them again. `Err` says which of them is not ready, and why.
pub async fn try_mcp_servers(
    mode: &CreateSessionParams,
    suite: &Path,
    patience: Duration,
) -> Result<(), String> {
    let names = ["mcp_servers", "mcpServers", "pass_env", "passEnv"];
    let overrides = &mode.provider_overrides;
    let own = overrides
        .iter()
        .filter(|(key, _)| names.contains(&key.as_str()));
    let own: JsonMap = own
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let settings: WithServers = read(&own).map_err(|error| error.message)?;
    if settings.mcp_servers.is_empty() {
        return Ok(());
    }
    let workspace = session_directory().map_err(|error| error.to_string())?;
    let servers = settings.mcp_servers.for_session(workspace.path(), suite);
    let mut wall = Wall::of(mode);
    wall.own.push(workspace.path().to_owned());
    let named = named_by(&servers);
    wall.name_files(named.iter().map(String::as_str), workspace.path());
    let command = |program: &str| {
        let command = Command::new(program, workspace.path()).pass_usual_env();
        let passed = settings.pass_env.iter();
        let command = passed.fold(command, |command, name| command.pass_env(name));
        let own = mode.environment.iter();
        let command = own.fold(command, |command, (name, value)| command.env(name, value));
        wall.around(command)
    };
    crate::chat::try_servers(servers, command, patience)
        .await
        .map_err(|error| error.message)
}
