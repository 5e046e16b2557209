//! The LLM APIs that are understood, and how a request is recognized as one of them.

use serde::Deserialize;
use serde::de::IntoDeserializer;

/// An API through which models are asked to generate. Suites name it by a word, e.g. `anthropic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Api {
    /// Anthropic Messages.
    #[serde(rename = "anthropic")]
    AnthropicMessages,
    /// OpenAI Chat Completions and everything compatible with it.
    #[serde(rename = "openai")]
    OpenAiChat,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Gemini `generateContent`, plain and streamed.
    #[serde(rename = "gemini")]
    Gemini,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::AnthropicMessages,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
    ];

    /// The API that a request speaks. Absent for everything that does not make a model generate: token counts, lists of
    /// models, batches, probes.
    ///
    /// `path` may have a prefix and a query.
    pub fn of(method: &str, path: &str) -> Option<Self> {
        if !method.eq_ignore_ascii_case("post") {
            return None;
        }
        let path = without_query(path).trim_end_matches('/');
        let last = path.rsplit('/').next().unwrap_or(path);
        if let Some((_, verb)) = last.rsplit_once(':') {
            return Self::of_verb(verb);
        }
        let is_thread = path.contains("/threads/");
        match last {
            "messages" if !is_thread => Some(Self::AnthropicMessages),
            "completions" if path.ends_with("chat/completions") => Some(Self::OpenAiChat),
            "responses" => Some(Self::OpenAiResponses),
            "compact" if path.ends_with("responses/compact") => Some(Self::OpenAiResponses),
            _ => None,
        }
    }

    /// Google's paths end in `MODEL:VERB`; its cloud serves Anthropic's models that way, too.
    fn of_verb(verb: &str) -> Option<Self> {
        match verb {
            "generateContent" | "streamGenerateContent" => Some(Self::Gemini),
            "rawPredict" | "streamRawPredict" => Some(Self::AnthropicMessages),
            _ => None,
        }
    }

    /// The API that suites name by this word.
    pub fn named(word: &str) -> Option<Self> {
        let word: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
            word.into_deserializer();
        Self::deserialize(word).ok()
    }

    /// The environment variable in which its clients expect a key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "ANTHROPIC_API_KEY",
            Self::OpenAiChat | Self::OpenAiResponses => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }

    /// The environment variable in which its clients expect another address.
    pub fn base_url_variable(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "ANTHROPIC_BASE_URL",
            Self::OpenAiChat | Self::OpenAiResponses => "OPENAI_BASE_URL",
            Self::Gemini => "GOOGLE_GEMINI_BASE_URL",
        }
    }

    /// The word in records, e.g. `anthropic-messages`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }
}

impl std::fmt::Display for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The model that a path names, as Google's do: `…/models/MODEL:VERB`.
pub(crate) fn model_in_path(path: &str) -> Option<&str> {
    let last = without_query(path).rsplit('/').next()?;
    let (model, _) = last.rsplit_once(':')?;
    (!model.is_empty()).then_some(model)
}

/// True when the path asks for a stream, as Google's do.
pub(crate) fn streams_by_path(path: &str) -> bool {
    let path = without_query(path);
    path.ends_with(":streamGenerateContent") || path.ends_with(":streamRawPredict")
}

fn without_query(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<Api>) {
        assert_eq!(Api::of("POST", path), expected, "{path}");
    }

    #[test]
    fn suites_name_every_api() {
        for (word, api) in [
            ("anthropic", Api::AnthropicMessages),
            ("openai", Api::OpenAiChat),
            ("openai-responses", Api::OpenAiResponses),
            ("gemini", Api::Gemini),
        ] {
            assert_eq!(Api::named(word), Some(api));
        }
        assert_eq!(Api::named("openai-chat"), None);
    }

    #[test]
    fn generating_paths_are_recognized_behind_any_prefix() {
        check("/v1/messages?beta=true", Some(Api::AnthropicMessages));
        check("/s/17/v1/messages/", Some(Api::AnthropicMessages));
        check("/v1/chat/completions", Some(Api::OpenAiChat));
        check(
            "/openai/deployments/x/chat/completions?api-version=1",
            Some(Api::OpenAiChat),
        );
        check("/v1/responses", Some(Api::OpenAiResponses));
        check("/backend/responses/compact", Some(Api::OpenAiResponses));
        check(
            "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            Some(Api::Gemini),
        );
        check("/v1beta/models/g:generateContent", Some(Api::Gemini));
        check(
            "/v1/projects/p/publishers/anthropic/models/c:streamRawPredict",
            Some(Api::AnthropicMessages),
        );
    }

    #[test]
    fn what_generates_nothing_is_no_model_call() {
        for path in [
            "/",
            "",
            "/v1/models",
            "/v1/messages/count_tokens?beta=true",
            "/v1/messages/batches",
            "/v1/threads/t/messages",
            "/v1/completions",
            "/v1/embeddings",
            "/v1/responses/resp_1",
            "/v1/responses/input_tokens",
            "/v1beta/models/g:countTokens",
            "/v1beta/models/g:embedContent",
        ] {
            check(path, None);
        }
        assert_eq!(Api::of("GET", "/v1/messages"), None);
        assert_eq!(Api::of("HEAD", "/"), None);
    }

    #[test]
    fn google_names_the_model_in_the_path() {
        let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
        assert_eq!(model_in_path(path), Some("gemini-2.5-pro"));
        assert!(streams_by_path(path));
        assert_eq!(model_in_path("/v1/messages"), None);
    }
}
