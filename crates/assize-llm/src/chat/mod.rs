//! A small chat client: one request, one answer, with bounds on time, size and tries. Judges, runners and the chat
//! provider use it; conversations and what the tools do are theirs.

mod body;
mod endpoint;
mod lost;
mod message;
mod retry;

pub use endpoint::{ApiKey, Endpoint};
pub use lost::{LostCall, Tries};
pub use message::{ChatAnswer, ChatRequest, Message, OutputSchema, ToolSpec};

use crate::answer::{ApiError, ModelAnswer};
use assize_contracts::with_causes;
use lost::UnderWay;
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
    #[error("{}: {message}", refusal(*status))]
    Refused {
        /// The HTTP status; 200 when a stream ended in an error.
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
    /// The connection broke in the middle of an answer.
    #[error("the answer broke off: {message}")]
    Cut {
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

fn refusal(status: u16) -> String {
    match status < 400 {
        true => "the answer ended in an error".to_owned(),
        false => format!("the endpoint answers {status}"),
    }
}

impl ChatError {
    /// True when the prompt was longer than the model can read, which is no failure of the service.
    pub fn is_context_overflow(&self) -> bool {
        let Self::Refused {
            status,
            kind,
            message,
            ..
        } = self
        else {
            return false;
        };
        let error = ApiError {
            status: *status,
            kind: kind.clone(),
            message: message.clone(),
        };
        error.is_context_overflow()
    }

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
        self.send_noting(request, &mut Tries::default()).await
    }

    /// The same, and notes every try that brought no whole answer, also where the future is dropped.
    pub async fn send_noting(
        &self,
        request: &ChatRequest,
        tries: &mut Tries,
    ) -> Result<ChatAnswer, ChatError> {
        let Some(described) = request.with_schema_in_words() else {
            return self.ask(request, tries).await;
        };
        if !self.describes_schemas.load(Ordering::Relaxed) {
            match self.ask(request, tries).await {
                Err(error) if error.is_about_schemas() => {
                    self.describes_schemas.store(true, Ordering::Relaxed);
                }
                answered => return answered,
            }
        }
        self.ask(&described, tries).await
    }

    /// Asks, and asks again when the endpoint is busy, as often as it may.
    async fn ask(&self, request: &ChatRequest, tries: &mut Tries) -> Result<ChatAnswer, ChatError> {
        let started = Instant::now();
        let mut retries = 0;
        loop {
            tracing::debug!(api = ?self.endpoint.api, model = request.model, "ask a model");
            let tried = self.send_once(request, &mut tries.lost).await;
            let wait = match &tried {
                Ok(Tried::Answered(_)) => None,
                Ok(Tried::Refused(refused)) => retry::wait(refused, retries),
                Err(Broken::Unreachable(_) | Broken::Cut(_)) => Some(retry::backoff(retries)),
                Err(_) => None,
            };
            match wait.filter(|_| retries < self.endpoint.max_retries) {
                Some(wait) => {
                    tracing::info!(model = request.model, ?wait, "the model is busy, ask again");
                    tries.failure = self.settle(tried, retries, started, request).err();
                    tokio::time::sleep(wait).await;
                }
                None => {
                    tries.failure = None;
                    return self.settle(tried, retries, started, request);
                }
            }
            retries += 1;
        }
    }

    async fn send_once(
        &self,
        request: &ChatRequest,
        lost: &mut Vec<LostCall>,
    ) -> Result<Tried, Broken> {
        let timeout = self.endpoint.timeout;
        let tried = tokio::time::timeout(timeout, self.exchange(request, lost)).await;
        self.hide_key(lost);
        tried.unwrap_or(Err(Broken::Timeout))
    }

    fn hide_key(&self, lost: &mut [LostCall]) {
        let answers = lost.iter_mut().filter_map(|call| call.answer.as_mut());
        for error in answers.filter_map(|answer| answer.error.as_mut()) {
            error.message = self.endpoint.without_key(&error.message);
        }
    }

    async fn exchange(
        &self,
        request: &ChatRequest,
        lost: &mut Vec<LostCall>,
    ) -> Result<Tried, Broken> {
        let mut call = UnderWay::begin(lost);
        let body = body::encode(&self.endpoint, request).to_string();
        let sent = self
            .http
            .post(self.endpoint.url(&request.model, request.stream))
            .headers(self.endpoint.headers())
            .body(body)
            .send()
            .await;
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => {
                call.settle();
                return Err(Broken::Unreachable(words_of(error)));
            }
        };
        let status = response.status().as_u16();
        let retry_after = retry::asked_for(response.headers());
        call.begin_answer(self.endpoint.api, status);
        let mut raw = Vec::new();
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(_) if call.is_complete() => break,
                Err(error) => {
                    call.cut();
                    return Err(Broken::Cut(words_of(error)));
                }
            };
            if raw.len() + chunk.len() > MAX_ANSWER {
                call.cut();
                return Err(Broken::TooLarge);
            }
            raw.extend_from_slice(&chunk);
            call.feed(&chunk);
        }
        let duration = call.elapsed();
        let answer = call.finish().expect("the answer has begun");
        match answer.error.is_some() {
            true => Ok(Tried::Refused(Box::new(Verdict {
                answer,
                retry_after,
            }))),
            false => Ok(Tried::Answered(Box::new(Answered {
                answer,
                raw,
                duration,
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
            Err(Broken::Cut(message)) => Err(ChatError::Cut {
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
    Cut(String),
    Timeout,
    TooLarge,
}

/// The address is left out: it may hold a password.
fn words_of(error: reqwest::Error) -> String {
    with_causes(&error.without_url())
}
