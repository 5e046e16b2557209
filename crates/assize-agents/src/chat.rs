//! A model with tools and nothing around it: an endpoint, a shell, files, MCP servers, and a limit of turns.

#[cfg(any(test, not(feature = "mcp")))]
#[cfg_attr(
    feature = "mcp",
    expect(dead_code, reason = "tests see that it compiles")
)]
mod no_servers;
#[cfg(feature = "mcp")]
mod servers;
mod session;
#[cfg(test)]
mod tests;
mod tools;

#[cfg(feature = "mcp")]
pub(crate) use servers::hear;

#[cfg(not(feature = "mcp"))]
use no_servers as servers;

use crate::mcp::McpServers;
use crate::sessions::Sessions;
use crate::settings::{read, setting_error, variable};
use assize_contracts::{
    Concurrency, ConfigError, CreateSessionParams, JsonMap, PromptResult, ProviderConfig,
    ProviderError, ProviderScope, Sandboxing, SessionHandle, SessionProvider, SessionTrace,
    async_trait,
};
use assize_llm::{Api, ApiKey, ChatClient, Endpoint};
use serde::Deserialize;
use session::ChatSession;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use tools::Tool;

/// Reaches the servers, asks for their tools and ends them.
pub(crate) async fn try_servers(
    servers: Vec<crate::mcp::Server>,
    command: impl Fn(&str) -> assize_process::Command,
    patience: Duration,
) -> Result<(), ProviderError> {
    servers::Servers::try_out(servers, command, patience).await
}

/// The provider `chat`.
#[derive(Default)]
pub struct ChatProvider {
    /// The suite's directory.
    directory: OnceLock<PathBuf>,
    sessions: Sessions<ChatSession>,
}

/// The suite's settings of a model with tools.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatSettings {
    #[serde(default = "default_api")]
    api: Api,
    /// As the API's own clients are given it. Absent: as the session's environment says, else the API's own service.
    #[serde(default, alias = "baseUrl")]
    base_url: Option<String>,
    /// The variable with the key.
    #[serde(default, alias = "keyEnv")]
    key_env: Option<String>,
    /// The model when the suite names none.
    #[serde(default, rename = "model")]
    _model: Option<String>,
    #[serde(default = "Tool::all")]
    tools: Vec<Tool>,
    /// The most requests to the model for one prompt.
    #[serde(default = "default_turns", alias = "maxTurns")]
    max_turns: u32,
    #[serde(default, alias = "maxOutputTokens")]
    max_output_tokens: Option<u32>,
    #[serde(default = "default_shell", alias = "shellTimeoutMs")]
    shell_timeout_ms: u64,
    #[serde(default, alias = "passEnv")]
    pass_env: Vec<String>,
    #[serde(default, alias = "mcpServers")]
    mcp_servers: McpServers,
    /// The time limit of an MCP server to be ready, and for one answer.
    #[serde(default = "default_patience", alias = "mcpTimeoutMs")]
    mcp_timeout_ms: u64,
}

fn default_api() -> Api {
    Api::OpenAiChat
}

fn default_turns() -> u32 {
    50
}

fn default_shell() -> u64 {
    120_000
}

fn default_patience() -> u64 {
    60_000
}

impl ChatSettings {
    fn checked(overrides: &JsonMap) -> Result<Self, ConfigError> {
        let settings: Self = read(overrides)?;
        if settings.max_turns == 0 {
            return Err(setting_error("max_turns", "found 0, expected at least 1"));
        }
        settings.check_servers()?;
        if let Some(url) = &settings.base_url {
            let endpoint = Endpoint {
                base_url: url.clone(),
                ..Endpoint::of(settings.api)
            };
            ChatClient::new(endpoint)
                .map_err(|error| setting_error("base_url", error.to_string()))?;
        }
        Ok(settings)
    }

    fn check_servers(&self) -> Result<(), ConfigError> {
        if !cfg!(feature = "mcp") && !self.mcp_servers.is_empty() {
            let message = "this build of Assize has no MCP servers for `chat`";
            let hint = "build it with the feature: `cargo install assize --features mcp`";
            return Err(setting_error("mcp_servers", message).with_hint(hint));
        }
        if self.mcp_timeout_ms == 0 {
            return Err(setting_error(
                "mcp_timeout_ms",
                "found 0, expected at least 1 ms",
            ));
        }
        self.mcp_servers.check()
    }

    fn client(&self, params: &CreateSessionParams) -> Result<ChatClient, ProviderError> {
        let variable = |name: &str| variable(&params.environment, name);
        let mut endpoint = Endpoint::of(self.api);
        let named = self.base_url.clone();
        if let Some(url) = named.or_else(|| variable(self.api.base_url_variable())) {
            endpoint.base_url = url;
        }
        let key = self.key_env.as_deref().unwrap_or(self.api.key_variable());
        endpoint.key = variable(key).map(ApiKey::new);
        ChatClient::new(endpoint).map_err(|error| ProviderError::service(error.to_string()))
    }
}

#[async_trait]
impl SessionProvider for ChatProvider {
    fn id(&self) -> &str {
        "chat"
    }

    fn sandboxing(&self) -> Sandboxing {
        Sandboxing::Kept
    }

    fn scope(&self) -> ProviderScope {
        ProviderScope::Session
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::ANY
    }

    fn default_model(&self, overrides: &JsonMap) -> Option<String> {
        overrides.get("model")?.as_str().map(str::to_owned)
    }

    /// A tool under way is ended when time is over.
    fn timeout_grace(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        ChatSettings::checked(overrides).map(drop)
    }

    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        let _ = self.directory.set(config.workdir.clone());
        Ok(())
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let settings = ChatSettings::checked(&params.provider_overrides)
            .map_err(|error| ProviderError::service(error.message))?;
        let client = settings.client(params)?;
        let directory = self.directory.get().unwrap_or(&params.workdir);
        let session = ChatSession::open(settings, client, params, directory).await?;
        Ok(self.sessions.open(self.id(), params.seed, session))
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let session = self.sessions.find(handle)?;
        session.lock().await.prompt(text, timeout).await
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        let session = self.sessions.find(handle)?;
        let session = session.lock().await;
        Ok(session.trace(&handle.session_id))
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        if let Some(session) = self.sessions.close(handle) {
            session.close().await;
        }
        Ok(())
    }
}
