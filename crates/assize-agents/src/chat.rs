//! A model with tools and nothing around it: an endpoint, a shell, files, and a limit of turns.

mod session;
#[cfg(test)]
mod tests;
mod tools;

use crate::settings::{problem, read};
use assize_contracts::{
    CreateSessionParams, JsonMap, OverrideProblem, PromptResult, ProviderError, ProviderScope,
    SessionHandle, SessionProvider, SessionTrace, Timestamp, async_trait,
};
use assize_llm::{Api, ApiKey, ChatClient, Endpoint};
use serde::Deserialize;
use session::ChatSession;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tools::Tool;

/// The provider `chat`.
#[derive(Default)]
pub struct ChatProvider {
    sessions: Mutex<HashMap<String, Arc<tokio::sync::Mutex<ChatSession>>>>,
}

/// What a suite says about a model with tools.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatSettings {
    #[serde(default)]
    api: ApiName,
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
    /// How often the model may be asked for one prompt.
    #[serde(default = "default_turns", alias = "maxTurns")]
    max_turns: u32,
    #[serde(default, alias = "maxOutputTokens")]
    max_output_tokens: Option<u32>,
    #[serde(default = "default_shell", alias = "shellTimeoutMs")]
    shell_timeout_ms: u64,
    #[serde(default, alias = "passEnv")]
    pass_env: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ApiName {
    Anthropic,
    #[default]
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Gemini,
}

fn default_turns() -> u32 {
    50
}

fn default_shell() -> u64 {
    120_000
}

impl ApiName {
    fn api(self) -> Api {
        match self {
            Self::Anthropic => Api::AnthropicMessages,
            Self::OpenAi => Api::OpenAiChat,
            Self::OpenAiResponses => Api::OpenAiResponses,
            Self::Gemini => Api::Gemini,
        }
    }

    fn base_url_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi | Self::OpenAiResponses => "OPENAI_BASE_URL",
            Self::Gemini => "GOOGLE_GEMINI_BASE_URL",
        }
    }

    fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi | Self::OpenAiResponses => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }
}

impl ChatSettings {
    fn checked(overrides: &JsonMap) -> Result<Self, OverrideProblem> {
        let settings: Self = read(overrides)?;
        if settings.max_turns == 0 {
            return Err(problem("max_turns", "found 0, expected at least 1"));
        }
        if let Some(url) = &settings.base_url {
            let endpoint = Endpoint {
                base_url: url.clone(),
                ..Endpoint::of(settings.api.api())
            };
            ChatClient::new(endpoint).map_err(|error| problem("base_url", error.to_string()))?;
        }
        Ok(settings)
    }

    fn client(&self, params: &CreateSessionParams) -> Result<ChatClient, ProviderError> {
        let variable = |name: &str| {
            let given = params.environment.get(name).cloned();
            given
                .or_else(|| std::env::var(name).ok())
                .filter(|value| !value.is_empty())
        };
        let mut endpoint = Endpoint::of(self.api.api());
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

    fn scope(&self) -> ProviderScope {
        ProviderScope::Session
    }

    fn default_model(&self, overrides: &JsonMap) -> Option<String> {
        overrides.get("model")?.as_str().map(str::to_owned)
    }

    /// A tool under way is ended when time is over.
    fn timeout_grace(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn check_overrides(&self, overrides: &JsonMap) -> Result<(), OverrideProblem> {
        ChatSettings::checked(overrides).map(drop)
    }

    async fn create_session(
        &self,
        params: &CreateSessionParams,
    ) -> Result<SessionHandle, ProviderError> {
        let settings = ChatSettings::checked(&params.provider_overrides)
            .map_err(|problem| ProviderError::service(problem.message))?;
        let client = settings.client(params)?;
        let session = ChatSession::new(settings, client, params)?;
        let session_id = format!("chat-{:016x}", params.seed);
        let session = Arc::new(tokio::sync::Mutex::new(session));
        crate::lock(&self.sessions).insert(session_id.clone(), session);
        Ok(SessionHandle {
            session_id,
            provider: self.id().to_owned(),
            created_at: Timestamp::from_unix_ms(unix_ms()),
        })
    }

    async fn prompt(
        &self,
        handle: &SessionHandle,
        text: &str,
        timeout: Duration,
    ) -> Result<PromptResult, ProviderError> {
        let session = self.session(handle)?;
        session.lock().await.prompt(text, timeout).await
    }

    async fn export_session(&self, handle: &SessionHandle) -> Result<SessionTrace, ProviderError> {
        let session = self.session(handle)?;
        let session = session.lock().await;
        Ok(session.trace(&handle.session_id))
    }

    async fn destroy_session(&self, handle: &SessionHandle) -> Result<(), ProviderError> {
        crate::lock(&self.sessions).remove(&handle.session_id);
        Ok(())
    }
}

impl ChatProvider {
    fn session(
        &self,
        handle: &SessionHandle,
    ) -> Result<Arc<tokio::sync::Mutex<ChatSession>>, ProviderError> {
        let session = crate::lock(&self.sessions)
            .get(&handle.session_id)
            .map(Arc::clone);
        session.ok_or_else(|| ProviderError::service(format!("no session `{}`", handle.session_id)))
    }
}

fn unix_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.unwrap_or_default().as_millis() as i64
}
