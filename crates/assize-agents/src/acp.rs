//! Any agent that speaks the Agent Client Protocol on stdin and stdout. One program serves all prompts of a session.

mod connection;
mod messages;
mod session;
#[cfg(test)]
mod tests;

use crate::mcp::McpServers;
use crate::recipe::{Recipe, named_by};
use crate::sessions::Sessions;
use crate::settings::{read, setting_error};
use assize_contracts::{
    Concurrency, ConfigError, ContainerHandle, CreateSessionParams, JsonMap, ModelUse,
    PromptResult, ProviderConfig, ProviderError, ProviderScope, Sandboxing, SessionHandle,
    SessionProvider, SessionTrace, async_trait,
};
use serde::Deserialize;
use serde_json::json;
use session::{AcpSession, Wishes};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The time limit of an agent from its start to its first session.
const START_LIMIT: Duration = Duration::from_secs(180);

/// The provider `acp`.
#[derive(Default)]
pub struct AcpProvider {
    /// The suite's directory.
    directory: OnceLock<PathBuf>,
    sessions: Sessions<AcpSession>,
}

/// The settings of an agent, besides those of every recipe.
#[derive(Debug, Deserialize)]
struct AcpSettings {
    /// A recipe that knows how its agent is reached.
    #[serde(default)]
    agent: Option<String>,
    /// The program and its arguments, instead of the recipe's.
    #[serde(default)]
    command: Option<Vec<String>>,
    /// The agent's name for the way to sign in.
    #[serde(default)]
    authenticate: Option<String>,
    #[serde(default, alias = "mcpServers")]
    mcp_servers: McpServers,
}

const OWN_SETTINGS: [&str; 5] = [
    "agent",
    "command",
    "authenticate",
    "mcp_servers",
    "mcpServers",
];

/// Settings, sorted by whom they are for.
struct Sorted {
    recipe: Recipe,
    authenticate: Option<String>,
    mcp_servers: McpServers,
    /// For the recipe.
    rest: JsonMap,
}

impl Sorted {
    fn new(overrides: &JsonMap) -> Result<Self, ConfigError> {
        let (own, rest): (JsonMap, JsonMap) = overrides
            .clone()
            .into_iter()
            .partition(|(key, _)| OWN_SETTINGS.contains(&key.as_str()));
        let settings: AcpSettings = read(&own)?;
        settings.mcp_servers.check()?;
        let mut recipe = match &settings.agent {
            Some(name) => known_recipe(name)?,
            // The agent asks for permission when it needs it.
            None => Recipe::from_value(&json!({
                "name": "acp", "command": ["-"], "auto_approve": {}, "allowed_tools": {},
            }))?,
        };
        let command = settings.command.or_else(|| recipe.acp.take());
        let Some(command) = command.filter(|command| !command.is_empty()) else {
            let found = setting_error("command", "found no program that speaks ACP");
            let hint = "for example `command: [my-agent, --acp]`, or `agent: gemini`";
            return Err(found.with_hint(hint));
        };
        recipe.command = command;
        recipe.setup.clear();
        recipe.output = Default::default();
        recipe.check_settings(&rest)?;
        Ok(Self {
            authenticate: settings
                .authenticate
                .or_else(|| recipe.authenticate.clone()),
            mcp_servers: settings.mcp_servers,
            recipe,
            rest,
        })
    }
}

fn known_recipe(name: &str) -> Result<Recipe, ConfigError> {
    let mut recipes = Recipe::built_in().iter();
    let speaks = |recipe: &&Recipe| recipe.name == name && recipe.acp.is_some();
    recipes.find(speaks).cloned().ok_or_else(|| {
        let all = Recipe::built_in().iter();
        let known: Vec<String> = all
            .filter(|recipe| recipe.acp.is_some())
            .map(|recipe| format!("`{}`", recipe.name))
            .collect();
        let message = format!("no recipe for ACP is called `{name}`");
        setting_error("agent", message).with_hint(format!(
            "known are {}; others take `command`",
            known.join(", ")
        ))
    })
}

#[async_trait]
impl SessionProvider for AcpProvider {
    fn id(&self) -> &str {
        "acp"
    }

    fn scope(&self) -> ProviderScope {
        ProviderScope::Session
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::ANY
    }

    fn wants_capture(&self) -> bool {
        true
    }

    fn model_use(&self) -> ModelUse {
        ModelUse::Required
    }

    fn sandboxing(&self) -> Sandboxing {
        Sandboxing::Kept
    }

    fn has_agent_program(&self) -> bool {
        true
    }

    fn default_model(&self, overrides: &JsonMap) -> Option<String> {
        Sorted::new(overrides).ok()?.recipe.model_for(overrides)
    }

    /// The agent is asked to stop when time is over; there must be time left to hear from it.
    fn timeout_grace(&self) -> Duration {
        session::CANCEL_PATIENCE + Duration::from_secs(15)
    }

    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), ConfigError> {
        Sorted::new(overrides).map(drop)
    }

    async fn init(&self, config: &ProviderConfig) -> Result<(), ProviderError> {
        let _ = self.directory.set(config.workdir.clone());
        Ok(())
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let sorted = Sorted::new(&params.provider_overrides)
            .map_err(|error| ProviderError::service(error.message))?;
        let params = CreateSessionParams {
            provider_overrides: Arc::new(sorted.rest),
            ..params.clone()
        };
        let directory = self.directory.get().unwrap_or(&params.workdir);
        let mut invocation = sorted.recipe.invocation(&params, directory)?;
        let mcp_servers = sorted.mcp_servers.for_session(&params.workdir, directory);
        invocation.also_names(&named_by(&mcp_servers));
        invocation.move_in(Some(&sorted.recipe)).await?;
        let container = invocation.container_handle();
        let wishes = Wishes {
            authenticate: sorted.authenticate,
            mcp_servers,
        };
        let opening = AcpSession::open(invocation, &params, wishes);
        let session = tokio::time::timeout(START_LIMIT, opening)
            .await
            .map_err(|_| {
                let message = format!("the agent opened no session within {START_LIMIT:?}");
                ProviderError::service(message).with_code("agent_not_ready")
            })??;
        let mut handle = self.sessions.open(self.id(), params.seed, session);
        if let Some(container) = container.and_then(|found| serde_json::to_value(found).ok()) {
            handle
                .extra
                .insert(ContainerHandle::KEY.to_owned(), container);
        }
        Ok(handle)
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
        match self.sessions.close(handle) {
            Some(session) => session.close().await,
            None => Ok(()),
        }
    }
}

impl AcpProvider {
    /// The recipe of the agent of these settings.
    pub fn recipe(overrides: &JsonMap) -> Result<Recipe, ConfigError> {
        Sorted::new(overrides).map(|sorted| sorted.recipe)
    }
}

/// Reads a message of an agent in every way there is, for fuzzing.
pub(crate) fn read_message(message: &serde_json::Value) {
    let _ = messages::Hello::read(message).takes_urls;
    let params = message.get("params").unwrap_or(message);
    let _ = messages::Update::read(params).is_some();
    let _ = messages::ToolCall::read(params).is_some();
    if let Some(request) = messages::PermissionRequest::read(params) {
        let _ = request.select(["allow_once", "allow_always"]);
    }
}
