//! A small chat client: one request, one answer, with bounds on time, size and tries. Judges, runners and the chat
//! provider use it; conversations and what the tools do are theirs.

mod body;
mod endpoint;
mod message;
mod retry;

pub use endpoint::{ApiKey, Endpoint};
pub use message::{ChatAnswer, ChatRequest, Message, OutputSchema, ToolSpec};

use crate::answer::{AnswerReader, ModelAnswer};
use assize_contracts::with_causes;
use retry::Verdict;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most that is read of an answer.
const MAX_ANSWER: usize = 8 << 20;

/// Asks one endpoint. Cheap to clone; may be used from many tasks at once.
#[derive(Debug, Clone)]
pub struct ChatClient {
    http: reqwest::Client,
    endpoint: Endpoint,
    /// The endpoint has refused to hold answers to a schema, so the schema goes into the prompt instead.
    describes_schemas: Arc<AtomicBool>,
}

/// The reason why there is no answer. Never holds the key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChatError {
    /// The endpoint's settings cannot work.
    #[error("{message}")]
    Settings {
        /// The mistake in them.
        message: String,
    },
    /// The endpoint answered with an error, the last time it was asked.
    #[error("the endpoint answers {status}: {message}")]
    Refused {
        /// The HTTP status; 200 when a stream broke off with an error.
        status: u16,
        /// The API's word for it.
        kind: Option<String>,
        /// The endpoint's message.
        message: String,
        /// Number of retries.
        retries: u32,
    },
    /// Nothing answers.
    #[error("the endpoint cannot be reached: {message}")]
    Unreachable {
        /// The network's message.
        message: String,
        /// Number of retries.
        retries: u32,
    },
    /// The time for one answer was over.
    #[error("no answer within {} ms", after.as_millis())]
    Timeout {
        /// The time that was allowed.
        after: Duration,
        /// Number of retries.
        retries: u32,
    },
    /// The answer is larger than anything useful.
    #[error("the answer is larger than {} MiB", MAX_ANSWER >> 20)]
    TooLarge,
    /// The answer is not one of this API.
    #[error("the answer is not one of the {api} API: {message}")]
    Unreadable {
        /// The API that was spoken.
        api: crate::Api,
        /// The unexpected answer.
        message: String,
    },
}

impl ChatError {
    /// True when the endpoint refuses a schema, in any of the words that APIs have for it.
    fn is_about_schemas(&self) -> bool {
        const WORDS: [&str; 6] = [
            "response_format",
            "json_schema",
            "text.format",
            "structured output",
            "responsejsonschema",
            "tool_choice",
        ];
        let Self::Refused {
            status: 400 | 404 | 415 | 422 | 501,
            message,
            ..
        } = self
        else {
            return false;
        };
        let message = message.to_lowercase();
        WORDS.iter().any(|word| message.contains(word))
    }
}

impl ChatClient {
    /// A client for one endpoint. Nothing is sent yet.
    pub fn new(endpoint: Endpoint) -> Result<Self, ChatError> {
        endpoint.check()?;
        // Fails only when another one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            // A key must not follow a redirect to another host.
            .redirect(reqwest::redirect::Policy::none());
        if endpoint.is_loopback() {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| ChatError::Settings {
            message: format!("no HTTP client: {error}"),
        })?;
        Ok(Self {
            http,
            endpoint,
            describes_schemas: Arc::default(),
        })
    }

    /// The endpoint it asks.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks for an answer. Where the endpoint cannot hold it to a schema, the model is asked for that form in words.
    pub async fn send(&self, request: &ChatRequest) -> Result<ChatAnswer, ChatError> {
        let Some(described) = request.with_schema_in_words() else {
            return self.ask(request).await;
        };
        if !self.describes_schemas.load(Ordering::Relaxed) {
            match self.ask(request).await {
                Err(error) if error.is_about_schemas() => {
                    self.describes_schemas.store(true, Ordering::Relaxed);
                }
                answered => return answered,
            }
        }
        self.ask(&described).await
    }

    /// Asks, and asks again when the endpoint is busy, as often as it may.
    async fn ask(&self, request: &ChatRequest) -> Result<ChatAnswer, ChatError> {
        let started = Instant::now();
        let mut retries = 0;
        loop {
            tracing::debug!(api = ?self.endpoint.api, model = request.model, "ask a model");
            let tried = self.send_once(request).await;
            let wait = match &tried {
                Ok(Tried::Answered(_)) => None,
                Ok(Tried::Refused(refused)) => retry::wait(refused, retries),
                Err(Broken::Unreachable(_)) => Some(retry::backoff(retries)),
                Err(_) => None,
            };
            match wait.filter(|_| retries < self.endpoint.max_retries) {
                Some(wait) => {
                    tracing::info!(model = request.model, ?wait, "the model is busy, ask again");
                    tokio::time::sleep(wait).await;
                }
                None => return self.settle(tried, retries, started, request),
            }
            retries += 1;
        }
    }

    async fn send_once(&self, request: &ChatRequest) -> Result<Tried, Broken> {
        let timeout = self.endpoint.timeout;
        tokio::time::timeout(timeout, self.exchange(request))
            .await
            .unwrap_or(Err(Broken::Timeout))
    }

    async fn exchange(&self, request: &ChatRequest) -> Result<Tried, Broken> {
        let sent = Instant::now();
        let body = body::encode(&self.endpoint, request).to_string();
        let mut response = self
            .http
            .post(self.endpoint.url(&request.model, request.stream))
            .headers(self.endpoint.headers())
            .body(body)
            .send()
            .await?;
        let status = response.status().as_u16();
        let retry_after = retry::asked_for(response.headers());
        let mut reader = AnswerReader::new(self.endpoint.api, status);
        let mut raw = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if raw.len() + chunk.len() > MAX_ANSWER {
                return Err(Broken::TooLarge);
            }
            raw.extend_from_slice(&chunk);
            reader.feed(&chunk, sent.elapsed());
        }
        let answer = reader.finish();
        match answer.error.is_some() {
            true => Ok(Tried::Refused(Box::new(Verdict {
                answer,
                retry_after,
            }))),
            false => Ok(Tried::Answered(Box::new(Answered {
                answer,
                raw,
                duration: sent.elapsed(),
            }))),
        }
    }

    fn settle(
        &self,
        tried: Result<Tried, Broken>,
        retries: u32,
        started: Instant,
        request: &ChatRequest,
    ) -> Result<ChatAnswer, ChatError> {
        match tried {
            Ok(Tried::Answered(answered)) => {
                self.check(&answered)?;
                Ok(ChatAnswer {
                    message: body::assistant(&answered, request.stream),
                    answer: answered.answer,
                    duration: answered.duration,
                    waited: started.elapsed().saturating_sub(answered.duration),
                    retries,
                })
            }
            Ok(Tried::Refused(verdict)) => {
                let status = verdict.answer.status;
                let error = verdict.answer.error;
                let (kind, message) = error.map(|e| (e.kind, e.message)).unwrap_or_default();
                Err(ChatError::Refused {
                    status,
                    kind: kind.map(|kind| self.endpoint.without_key(&kind)),
                    message: self.endpoint.without_key(&message),
                    retries,
                })
            }
            Err(Broken::Unreachable(message)) => Err(ChatError::Unreachable {
                message: self.endpoint.without_key(&message),
                retries,
            }),
            Err(Broken::Timeout) => Err(ChatError::Timeout {
                after: self.endpoint.timeout,
                retries,
            }),
            Err(Broken::TooLarge) => Err(ChatError::TooLarge),
        }
    }

    /// A cut stream and a page from somewhere else are no answers.
    fn check(&self, answered: &Answered) -> Result<(), ChatError> {
        if answered.answer.complete {
            return Ok(());
        }
        let start: String = String::from_utf8_lossy(&answered.raw)
            .chars()
            .take(200)
            .collect();
        Err(ChatError::Unreadable {
            api: self.endpoint.api,
            message: self
                .endpoint
                .without_key(&format!("it begins with `{start}`")),
        })
    }
}

enum Tried {
    Answered(Box<Answered>),
    Refused(Box<Verdict>),
}

/// An answer with the bytes it was read from.
pub(crate) struct Answered {
    pub(crate) answer: ModelAnswer,
    pub(crate) raw: Vec<u8>,
    duration: Duration,
}

impl Answered {
    pub(crate) fn document(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap_or_default()
    }
}

enum Broken {
    Unreachable(String),
    Timeout,
    TooLarge,
}

impl From<reqwest::Error> for Broken {
    /// The address is left out: it may hold a password.
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(with_causes(&error.without_url()))
    }
}
