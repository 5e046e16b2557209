//! A server that is reached by its URL: streamable HTTP with answers of bounded size. The SDK's own client reads a JSON answer
//! to its end, however long it is.

use super::brief;
use super::program::ServerNotes;
use assize_contracts::with_causes;
use assize_llm::{SseEvent, SseReader};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

const LARGEST_ANSWER: usize = 16 << 20;

const LARGEST_REFUSAL: usize = 500;

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

#[derive(Clone)]
pub(super) struct BoundedHttp {
    client: reqwest::Client,
    notes: ServerNotes,
}

/// An error on the way. The address is left out: it may hold a secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct HttpError(String);

pub(super) type RemoteError = StreamableHttpError<HttpError>;

pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    notes: &ServerNotes,
) -> Result<StreamableHttpClientTransport<BoundedHttp>, String> {
    // Fails only when another one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A secret in a header must not follow a redirect to another host.
    let mut builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let address =
        reqwest::Url::parse(url).map_err(|error| format!("has no usable URL: {error}"))?;
    if matches!(
        address.host_str(),
        Some("127.0.0.1" | "localhost" | "[::1]")
    ) {
        builder = builder.no_proxy();
    }
    let client = builder.build();
    let http = BoundedHttp {
        client: client.map_err(|error| format!("cannot be reached: {error}"))?,
        notes: notes.clone(),
    };
    let headers = headers.iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(name).ok()?;
        Some((name, HeaderValue::try_from(value).ok()?))
    });
    let config =
        StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers.collect());
    Ok(StreamableHttpClientTransport::with_client(http, config))
}

impl StreamableHttpClient for BoundedHttp {
    type Error = HttpError;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, RemoteError> {
        let has_session = session.is_some();
        let request = self
            .client
            .post(&*url)
            .header(ACCEPT, format!("{JSON}, {EVENT_STREAM}"))
            .header(CONTENT_TYPE, JSON)
            .body(serde_json::to_vec(&message)?);
        let response = sent(request, session, headers).await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            StatusCode::NOT_FOUND if has_session => return Err(RemoteError::SessionExpired),
            status if !status.is_success() => return refused(status, response).await,
            _ => {}
        }
        let header = |name: &str| response.headers().get(name)?.to_str().ok();
        let session = header(SESSION).map(str::to_owned);
        let is_stream = |kind: &str| kind.starts_with(EVENT_STREAM);
        if header(CONTENT_TYPE.as_str()).is_some_and(is_stream) {
            let events = self.events(response);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        let body = whole(response).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            Err(_) if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => Err(http_error(format!(
                "its answer is no message of MCP: `{}`",
                shown(&body)
            ))),
        }
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), RemoteError> {
        sent(self.client.delete(&*url), Some(session), headers)
            .await
            .map(drop)
    }

    /// Resumes an answer that broke off. Unasked messages of servers are ignored.
    async fn get_stream(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, RemoteError> {
        let Some(last_event) = last_event else {
            return Err(RemoteError::ServerDoesNotSupportSse);
        };
        let request = self.client.get(&*url).header(ACCEPT, EVENT_STREAM);
        let request = request.header("last-event-id", last_event);
        let response = sent(request, session, headers).await?;
        match response.status() {
            status if status.is_success() => Ok(self.events(response)),
            _ => Err(RemoteError::ServerDoesNotSupportSse),
        }
    }
}

async fn sent(
    request: reqwest::RequestBuilder,
    session: Option<Arc<str>>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> Result<reqwest::Response, RemoteError> {
    let request = match session {
        Some(session) => request.header(SESSION, &*session),
        None => request,
    };
    request
        .headers(headers.into_iter().collect())
        .send()
        .await
        .map_err(broken)
}

/// Some servers put an error of MCP into it, which says more than the status.
async fn refused(
    status: StatusCode,
    response: reqwest::Response,
) -> Result<StreamableHttpPostResponse, RemoteError> {
    let body = whole(response).await?;
    match serde_json::from_slice(&body) {
        Ok(answer @ ServerJsonRpcMessage::Error(_)) => {
            Ok(StreamableHttpPostResponse::Json(answer, None))
        }
        _ => Err(http_error(format!(
            "it answered HTTP {status}: `{}`",
            shown(&body)
        ))),
    }
}

async fn whole(mut response: reqwest::Response) -> Result<Vec<u8>, RemoteError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        if body.len() + piece.len() > LARGEST_ANSWER {
            return Err(http_error(too_large()));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

impl BoundedHttp {
    fn events(&self, response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let mut taken = 0;
        let notes = self.notes.clone();
        let pieces = response.bytes_stream().map(move |piece| {
            let piece = piece.map_err(|error| io::Error::other(error.without_url()))?;
            taken += piece.len();
            if taken > LARGEST_ANSWER {
                notes.note_words(too_large());
                return Err(io::Error::other(too_large()));
            }
            Ok::<Bytes, io::Error>(piece)
        });
        let mut reader = SseReader::new(LARGEST_ANSWER);
        let events = move |piece: Result<Bytes, io::Error>| {
            let mut events = Vec::new();
            match piece {
                Ok(piece) => reader.feed(&piece, |event| events.push(Ok(in_sdk(&event)))),
                Err(error) => events.push(Err(SseError::Body(Box::new(error)))),
            }
            stream::iter(events)
        };
        pieces.flat_map(events).boxed()
    }
}

/// For fuzzing: the events of a whole stream.
pub(super) fn each_event(bytes: &[u8], mut take: impl FnMut(Sse)) {
    SseReader::new(LARGEST_ANSWER).feed(bytes, |event| take(in_sdk(&event)));
}

/// The event in the type of the SDK.
fn in_sdk(event: &SseEvent<'_>) -> Sse {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        Some(text).filter(|text| !text.is_empty())
    };
    Sse {
        event: text(event.name),
        data: Some(String::from_utf8_lossy(event.data).into_owned()),
        id: text(event.id),
        retry: event.retry_ms,
    }
}

fn too_large() -> String {
    format!(
        "its answer is larger than {} megabytes",
        LARGEST_ANSWER >> 20
    )
}

fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(LARGEST_REFUSAL)]).into_owned()
}

fn http_error(message: String) -> RemoteError {
    RemoteError::Client(HttpError(message))
}

fn broken(error: reqwest::Error) -> RemoteError {
    http_error(brief(with_causes(&error.without_url())))
}
