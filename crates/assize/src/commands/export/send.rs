//! Sends spans to a collector: protobuf over HTTP, in requests of a bounded size.

use crate::commands::{Obstructed, UsageError};
use anyhow::{Context, Result};
use assize_contracts::with_causes;
use assize_formats::otlp::{ResourceSpans, to_protobuf};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;

/// Spans of one request. Collectors refuse bodies over a few megabytes.
const MOST_SPANS: usize = 500;

/// Time for one request.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Attempts while a collector is busy, and the pause after the first.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// Headers with keys stay off the command line in this variable, as other exporters read it.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Sends spans as they come, and keeps those that do not fill a request yet.
pub(super) struct Sender {
    collector: Collector,
    runtime: tokio::runtime::Runtime,
    waiting: Vec<ResourceSpans>,
    waiting_spans: usize,
    /// Spans that a collector took.
    pub(super) sent: usize,
}

impl Sender {
    pub(super) fn new(endpoint: &str, headers: &[String]) -> Result<Self> {
        let url = traces_url(endpoint)?;
        let headers = all_headers(headers)?;
        let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
        // Fails only when another provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A key must not follow a redirect to somebody else.
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT);
        if url
            .host_str()
            .is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host))
        {
            builder = builder.no_proxy();
        }
        let client = builder.build().context("no HTTP client")?;
        Ok(Self {
            collector: Collector {
                client,
                url,
                headers,
            },
            runtime,
            waiting: Vec::new(),
            waiting_spans: 0,
            sent: 0,
        })
    }

    /// Adds a session, which is divided if it is long.
    pub(super) fn add(&mut self, session: ResourceSpans) -> Result<()> {
        let ResourceSpans { resource, spans } = session;
        for spans in spans.chunks(MOST_SPANS) {
            if self.waiting_spans + spans.len() > MOST_SPANS {
                self.flush()?;
            }
            self.waiting_spans += spans.len();
            self.waiting.push(ResourceSpans {
                resource: resource.clone(),
                spans: spans.to_vec(),
            });
        }
        Ok(())
    }

    /// Sends what is waiting.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !self.waiting.is_empty() {
            let body = to_protobuf(&self.waiting);
            self.runtime.block_on(self.collector.post(body))?;
            self.sent += std::mem::take(&mut self.waiting_spans);
            self.waiting.clear();
        }
        Ok(())
    }
}

/// The address of the receiver of traces below an endpoint.
fn traces_url(endpoint: &str) -> Result<reqwest::Url, UsageError> {
    const PATH: &str = "/v1/traces";
    let base = endpoint.trim_end_matches('/');
    let whole = match base.ends_with(PATH) {
        true => base.to_owned(),
        false => format!("{base}{PATH}"),
    };
    let url = reqwest::Url::parse(&whole).ok();
    url.filter(|url| ["http", "https"].contains(&url.scheme()))
        .ok_or_else(|| UsageError {
            message: format!("`{endpoint}` is no address of a collector"),
            hint: Some(
                "such as http://127.0.0.1:4318, or http://127.0.0.1:6006 for Phoenix".to_owned(),
            ),
        })
}

fn all_headers(given: &[String]) -> Result<HeaderMap, UsageError> {
    let usual = std::env::var(HEADERS).unwrap_or_default();
    let usual = usual.split(',').filter_map(|pair| pair.split_once('='));
    let mut headers = HeaderMap::new();
    headers.insert(
        "content-type",
        HeaderValue::from_static("application/x-protobuf"),
    );
    let wrong = |name: &str| UsageError {
        message: format!("the header `{name}` cannot be sent"),
        hint: Some("write `--header 'Name: value'`".to_owned()),
    };
    let given = given
        .iter()
        .map(|line| line.split_once(':').ok_or_else(|| wrong(line)));
    for pair in usual.map(Ok).chain(given) {
        let (name, value) = pair?;
        let parsed = name.trim().parse::<HeaderName>().ok();
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| wrong(name))?;
        value.set_sensitive(true);
        headers.insert(parsed.ok_or_else(|| wrong(name))?, value);
    }
    Ok(headers)
}

struct Collector {
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
}

impl Collector {
    async fn post(&self, body: Vec<u8>) -> Result<()> {
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            let request = self
                .client
                .post(self.url.clone())
                .headers(self.headers.clone());
            let answer = request.body(body.clone()).send().await;
            let status = match answer {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => answer.status(),
                Err(error) => {
                    return Err(Obstructed {
                        message: format!("`{}` cannot be reached: {}", self.url, causes(&error)),
                        hint: "is the collector running, and is that its port for HTTP?".to_owned(),
                    }
                    .into());
                }
            };
            let is_busy = [429, 502, 503, 504].contains(&status.as_u16());
            if !is_busy || attempt == ATTEMPTS {
                return Err(Obstructed {
                    message: format!("`{}` answered with status {status}", self.url),
                    hint: refusal_hint(status.as_u16()).to_owned(),
                }
                .into());
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(())
    }
}

fn refusal_hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "it wants a key: `--header 'Authorization: …'`, or OTEL_EXPORTER_OTLP_HEADERS",
        404 | 405 => "is that the address of its OTLP receiver? `/v1/traces` is added to it",
        415 => "it does not take protobuf; write a file with `--out` and send that",
        429 | 502..=504 => "it is busy; try again later",
        _ => "its log may say why",
    }
}

/// The causes of an error of the client.
fn causes(error: &reqwest::Error) -> String {
    with_causes(std::error::Error::source(error).unwrap_or(error))
}
