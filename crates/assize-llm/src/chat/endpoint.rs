//! The endpoint and the key of a chat client.

use super::ChatError;
use crate::api::Api;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;

/// An endpoint that speaks one of the APIs.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The API it speaks.
    pub api: Api,
    /// Its address, as the API's own clients are given it: `https://api.anthropic.com`, `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key. Absent for services that want none.
    pub key: Option<ApiKey>,
    /// The time for one try.
    pub timeout: Duration,
    /// The most retries at a busy endpoint.
    pub max_retries: u32,
}

/// A key that does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl Endpoint {
    /// The API's own service, with two retries and two minutes for each try.
    pub fn of(api: Api) -> Self {
        let base_url = match api {
            Api::AnthropicMessages => "https://api.anthropic.com",
            Api::OpenAiChat | Api::OpenAiResponses => "https://api.openai.com/v1",
            Api::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        };
        Self {
            api,
            base_url: base_url.into(),
            key: None,
            timeout: Duration::from_secs(120),
            max_retries: 2,
        }
    }

    pub(super) fn check(&self) -> Result<(), ChatError> {
        let wrong = |message: String| Err(ChatError::Settings { message });
        match reqwest::Url::parse(&self.base_url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {}
            Ok(_) => return wrong("the base URL must begin with `http://` or `https://`".into()),
            Err(error) => return wrong(format!("the base URL is none: {error}")),
        }
        match self.key_header() {
            Some(Err(_)) => wrong("the key holds characters that no header can carry".into()),
            _ => Ok(()),
        }
    }

    pub(super) fn is_loopback(&self) -> bool {
        let url = reqwest::Url::parse(&self.base_url).ok();
        let host = url.as_ref().and_then(|url| url.host_str());
        host.is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
    }

    /// The full address. A base URL may stop at the host, at the version, or hold the whole path.
    pub(super) fn url(&self, model: &str, stream: bool) -> String {
        let base = self.base_url.trim_end_matches('/');
        let is_bare = base.matches('/').count() == 2;
        let (version, rest) = match self.api {
            Api::AnthropicMessages => ("/v1", "/messages".to_owned()),
            Api::OpenAiChat => ("/v1", "/chat/completions".into()),
            Api::OpenAiResponses => ("/v1", "/responses".into()),
            Api::Gemini => ("/v1beta", google_path(model, stream)),
        };
        let has_version = match self.api {
            // Its clients add the version to whatever they are given.
            Api::AnthropicMessages => base.ends_with(version),
            _ => !is_bare,
        };
        match () {
            () if base.ends_with(&rest) => base.to_owned(),
            () if has_version => format!("{base}{rest}"),
            () => format!("{base}{version}{rest}"),
        }
    }

    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if self.api == Api::AnthropicMessages {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        if let Some(Ok((name, value))) = self.key_header() {
            headers.insert(name, value);
        }
        headers
    }

    /// The same text without the key, should a service have repeated it.
    pub(super) fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(ApiKey(key)) if !key.is_empty() => text.replace(key.as_str(), "<key>"),
            _ => text.to_owned(),
        }
    }

    fn key_header(&self) -> Option<Result<(HeaderName, HeaderValue), http::Error>> {
        let ApiKey(key) = self.key.as_ref()?;
        let (name, value) = match self.api {
            Api::AnthropicMessages => ("x-api-key", key.clone()),
            Api::OpenAiChat | Api::OpenAiResponses => ("authorization", format!("Bearer {key}")),
            Api::Gemini => ("x-goog-api-key", key.clone()),
        };
        let header = HeaderValue::try_from(value).map(|mut value| {
            value.set_sensitive(true);
            (HeaderName::from_static(name), value)
        });
        Some(header.map_err(Into::into))
    }
}

fn google_path(model: &str, stream: bool) -> String {
    let model = model.trim_start_matches("models/");
    match stream {
        true => format!("/models/{model}:streamGenerateContent?alt=sse"),
        false => format!("/models/{model}:generateContent"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(api: Api, base_url: &str, expected: &str) {
        let endpoint = Endpoint {
            base_url: base_url.into(),
            ..Endpoint::of(api)
        };
        assert_eq!(endpoint.url("m", false), expected);
    }

    #[test]
    fn base_urls_may_stop_where_people_stop() {
        use Api::*;
        check(AnthropicMessages, "http://h", "http://h/v1/messages");
        check(AnthropicMessages, "http://h/v1/", "http://h/v1/messages");
        check(
            AnthropicMessages,
            "http://h/proxy",
            "http://h/proxy/v1/messages",
        );
        check(OpenAiChat, "http://h:1", "http://h:1/v1/chat/completions");
        check(
            OpenAiChat,
            "http://h/api/v1",
            "http://h/api/v1/chat/completions",
        );
        check(
            OpenAiChat,
            "http://h/v1/chat/completions",
            "http://h/v1/chat/completions",
        );
        check(OpenAiResponses, "http://h/v1", "http://h/v1/responses");
        check(
            Gemini,
            "http://h",
            "http://h/v1beta/models/m:generateContent",
        );
    }

    #[test]
    fn a_key_does_not_show_itself() {
        let endpoint = Endpoint {
            key: Some(ApiKey::new("hush")),
            ..Endpoint::of(Api::OpenAiChat)
        };
        assert!(!format!("{endpoint:?} {:?}", endpoint.headers()).contains("hush"));
        assert_eq!(
            endpoint.without_key("no such key: hush"),
            "no such key: <key>"
        );
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        for base_url in ["", "h", "ftp://h", "http://"] {
            let endpoint = Endpoint {
                base_url: base_url.into(),
                ..Endpoint::of(Api::OpenAiChat)
            };
            assert!(endpoint.check().is_err(), "{base_url}");
        }
        let endpoint = Endpoint {
            key: Some(ApiKey::new("two\nlines")),
            ..Endpoint::of(Api::OpenAiChat)
        };
        let error = endpoint.check().unwrap_err().to_string();
        assert!(error.contains("key") && !error.contains("lines"));
    }
}
