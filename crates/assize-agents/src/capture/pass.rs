//! From an agent to the upstream and back, byte for byte.
//!
//! Everything goes through piece by piece as it comes; what is asked of a model is read from a copy. Only where a request may have
//! to be changed, or a cassette looked into, is it held until its end.

use super::Service;
use super::cassette::{Entry, TapedRequest};
use super::encoding::Decoded;
use super::exchange::{Exchange, ReadRequest};
use super::normal_form::Known;
use super::proxy::Shared;
use super::session::{Ending, Session};
use assize_contracts::with_causes;
use assize_llm::{Api, ask_for_usage, may_lack_usage};
use assize_secrets::{in_query, is_secret_name};
use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, request};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use serde_json::json;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A request larger than this is passed on unread.
const MOST_BUFFERED: usize = 64 << 20;

/// Pieces of a request that wait for the upstream before the agent has to.
const PIECES_UNDER_WAY: usize = 8;

/// Headers about the connection, not about the message (RFC 9110, 7.6.1).
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Finds out what a request asks.
type Reading = JoinHandle<Option<ReadRequest>>;

/// A request on its way.
struct Passage {
    session: Arc<Session>,
    service: Service,
    /// The path and query behind the prefix.
    path: String,
    head: request::Parts,
    api: Option<Api>,
    body: Gathered,
}

enum Gathered {
    Whole(Bytes),
    Stream(BoxStream<'static, io::Result<Bytes>>),
    /// On its way, with a copy that is whole in the end.
    Copied(
        BoxStream<'static, io::Result<Bytes>>,
        JoinHandle<Option<Bytes>>,
    ),
}

/// Answers a request.
pub(super) async fn respond(shared: &Shared, request: Request<Incoming>) -> Response<Body> {
    let method = request.method().clone();
    tracing::debug!(%method, "pass a request on");
    let started = Instant::now();
    let Some((session, service, path)) = route(shared, request.uri()) else {
        let message = "no session has this address; it may have ended";
        return refusal(StatusCode::NOT_FOUND, message);
    };
    let (head, body) = request.into_parts();
    remember_keys(&session, &head.headers, &path);
    let api = Api::of(head.method.as_str(), &path);
    let exchange = Exchange::begin(Arc::clone(&session), api, &head.headers);
    let is_held = session.tape.is_some() || api.is_some_and(may_lack_usage);
    let body = match (is_held, api) {
        _ if body.is_end_stream() => Gathered::Whole(Bytes::new()),
        (true, _) => gathered(body).await,
        (false, Some(_)) => copied(body),
        (false, None) => Gathered::Stream(pieces(body)),
    };
    let passage = Passage {
        session,
        service,
        path,
        head,
        api,
        body,
    };
    let answer = passage.answer(shared, exchange).await;
    let status = answer.status().as_u16();
    tracing::debug!(%method, status, after = ?started.elapsed(), "pass an answer back");
    answer
}

/// The session and service in the path of a request: `/s/TOKEN/SERVICE/…`.
fn route(shared: &Shared, uri: &http::Uri) -> Option<(Arc<Session>, Service, String)> {
    let path = uri.path_and_query()?.as_str().strip_prefix("/s/")?;
    let (token, path) = path.split_once('/')?;
    let end = path.find(['/', '?']).unwrap_or(path.len());
    let service = Service::named(&path[..end])?;
    Some((shared.session(token)?, service, path[end..].to_owned()))
}

/// Learns what the agent sends as its keys: headers and parameters with the name of a secret, and cookies.
fn remember_keys(session: &Session, headers: &HeaderMap, path: &str) {
    let secrets = &session.secrets;
    for (name, value) in headers {
        let Ok(value) = value.to_str() else { continue };
        match name.as_str() {
            "authorization" | "proxy-authorization" => secrets.learn_authorization(value),
            "cookie" => {
                for cookie in value.split(';').filter_map(|pair| pair.split_once('=')) {
                    secrets.learn("cookie", cookie.1.trim());
                }
            }
            name if is_secret_name(name) => secrets.learn(name, value.trim()),
            _ => {}
        }
    }
    let query = path.split_once('?').map_or("", |(_, query)| query);
    for found in in_query(query) {
        secrets.learn(&found.name, &found.written);
        secrets.learn(&found.name, &found.value);
    }
}

fn pieces(body: Incoming) -> BoxStream<'static, io::Result<Bytes>> {
    let pieces = body.into_data_stream();
    pieces.map(|piece| piece.map_err(io::Error::other)).boxed()
}

/// Passes the body on and keeps a copy, also of what the upstream does not wait for.
fn copied(body: Incoming) -> Gathered {
    let mut pieces = pieces(body);
    let (sender, receiver) = mpsc::channel(PIECES_UNDER_WAY);
    let copy = tokio::spawn(async move {
        let mut copy = Some(BytesMut::new());
        while let Some(piece) = pieces.next().await {
            match (&piece, &mut copy) {
                (Ok(piece), Some(copied)) if copied.len() + piece.len() <= MOST_BUFFERED => {
                    copied.extend_from_slice(piece);
                }
                // Too large to be a question, or not the whole of it.
                _ => copy = None,
            }
            let is_gone = sender.send(piece).await.is_err();
            if is_gone && copy.is_none() {
                break;
            }
        }
        copy.map(BytesMut::freeze)
    });
    let passing = stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    Gathered::Copied(passing.boxed(), copy)
}

/// The whole body, unless it is too large to be a question.
async fn gathered(body: Incoming) -> Gathered {
    let mut pieces = pieces(body);
    let mut whole = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => whole.extend_from_slice(&piece),
            // The upstream hears the beginning and the error, as it would without us.
            Err(error) => {
                let rest = stream::iter([Ok(whole.freeze()), Err(error)]);
                return Gathered::Stream(rest.boxed());
            }
        }
        if whole.len() > MOST_BUFFERED {
            let begun = stream::iter([Ok(whole.freeze())]);
            return Gathered::Stream(begun.chain(pieces).boxed());
        }
    }
    Gathered::Whole(whole.freeze())
}

impl Passage {
    async fn answer(mut self, shared: &Shared, mut exchange: Exchange) -> Response<Body> {
        let taped = match self.taped() {
            // A long conversation takes a while to compare, which must not delay other sessions.
            Some(compare) => tokio::task::spawn_blocking(compare).await.ok(),
            None => None,
        };
        if let Some((request, tape)) = taped.as_ref().zip(self.session.tape.as_ref())
            && tape.is_playing()
        {
            if let (Gathered::Whole(body), Some(read)) = (&self.body, self.reading()) {
                exchange.knows_request(read(body.clone()));
            }
            if let Some(entry) = tape.answer(request) {
                return play(exchange, &entry);
            }
            if tape.is_strict() {
                let message = "the cassette has no answer to this request";
                exchange.end(Ending::NoAnswer(message.to_owned()));
                return refusal(StatusCode::NOT_IMPLEMENTED, message);
            }
        }
        let request = self.upstream_request(&shared.client, &mut exchange);
        let answer = request.send().await;
        exchange.know_request().await;
        match answer {
            Ok(answer) => pass_back(exchange, answer, taped.as_ref()),
            Err(error) => {
                let message = format!("the upstream cannot be reached: {}", causes(&error));
                exchange.end(Ending::NoAnswer(message.clone()));
                refusal(StatusCode::BAD_GATEWAY, &message)
            }
        }
    }

    /// A function that finds the cassette's form of the request.
    fn taped(&self) -> Option<impl FnOnce() -> TapedRequest + Send + use<>> {
        let Gathered::Whole(body) = &self.body else {
            return None;
        };
        self.session.tape.as_ref()?;
        let (session, body) = (Arc::clone(&self.session), body.clone());
        let (method, path) = (self.head.method.clone(), self.path.clone());
        Some(move || {
            let known = Known {
                workspace: session.tape.as_ref().and_then(|tape| tape.workspace()),
                redactor: Some(&session.redactor),
            };
            TapedRequest::new(method.as_str(), &path, &body, &known)
        })
    }

    /// A function that reads what a model is asked.
    fn reading(&self) -> Option<impl FnOnce(Bytes) -> ReadRequest + Send + use<>> {
        let api = self.api?;
        let (session, path) = (Arc::clone(&self.session), self.path.clone());
        let encoding = self.head.headers.get(CONTENT_ENCODING);
        let encoding = encoding
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        Some(move |body| {
            let body = readable(body, encoding.as_deref());
            ReadRequest::new(api, &path, body, session.may_repeat())
        })
    }

    /// Reads a body when it is there. That takes a while for a long conversation, which must not delay other sessions.
    fn read(&self, body: impl Future<Output = Option<Bytes>> + Send + 'static) -> Option<Reading> {
        let read = self.reading()?;
        Some(tokio::spawn(async move {
            let body = body.await?;
            tokio::task::spawn_blocking(|| read(body)).await.ok()
        }))
    }

    fn upstream_request(
        &mut self,
        client: &reqwest::Client,
        exchange: &mut Exchange,
    ) -> reqwest::RequestBuilder {
        let address = self.session.upstreams.address(self.service, &self.path);
        let mut headers = end_to_end(&self.head.headers);
        headers.remove(HOST);
        if self
            .session
            .tape
            .as_ref()
            .is_some_and(|tape| !tape.is_playing())
        {
            // Compressed bytes can be neither searched for secrets nor read by people.
            headers.remove(ACCEPT_ENCODING);
        }
        let body = std::mem::replace(&mut self.body, Gathered::Whole(Bytes::new()));
        let body = match body {
            Gathered::Whole(body) => {
                let whole = std::future::ready(Some(body.clone()));
                if let Some(reading) = self.read(whole) {
                    exchange.reads_request(reading);
                }
                let asked = self.api.and_then(|api| ask_for_usage(api, &body));
                if let Some(body) = &asked {
                    exchange.asked_for_usage();
                    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
                }
                let is_empty = body.is_empty() && !headers.contains_key(CONTENT_LENGTH);
                (!is_empty).then(|| asked.map_or(body, Bytes::from).into())
            }
            Gathered::Stream(pieces) => Some(reqwest::Body::wrap_stream(pieces)),
            Gathered::Copied(pieces, copy) => {
                let copy = async { copy.await.ok().flatten() };
                if let Some(reading) = self.read(copy) {
                    exchange.reads_request(reading);
                }
                Some(reqwest::Body::wrap_stream(pieces))
            }
        };
        let request = client
            .request(self.head.method.clone(), address)
            .headers(headers);
        match body {
            Some(body) => request.body(body),
            None => request,
        }
    }
}

/// Passes an answer back as it comes.
fn pass_back(
    mut exchange: Exchange,
    answer: reqwest::Response,
    taped: Option<&TapedRequest>,
) -> Response<Body> {
    let (status, headers) = (answer.status(), end_to_end(answer.headers()));
    exchange.answered(status.as_u16(), &headers);
    if let Some(request) = taped {
        exchange.tape(request, status.as_u16(), &headers);
    }
    let pieces = stream::unfold(Some((answer.bytes_stream(), exchange)), |state| async {
        let (mut pieces, mut exchange) = state?;
        match pieces.next().await {
            Some(Ok(piece)) => {
                exchange.passed(&piece);
                Some((Ok(piece), Some((pieces, exchange))))
            }
            Some(Err(error)) => {
                exchange.end(Ending::Cut(causes(&error)));
                // The agent must see that the answer has no end.
                Some((Err(io::Error::other(error)), None))
            }
            None => {
                exchange.end(Ending::Complete);
                None
            }
        }
    });
    response(status, headers, streamed(pieces))
}

/// Answers from a cassette.
fn play(mut exchange: Exchange, entry: &Entry) -> Response<Body> {
    let headers = entry.headers.iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(name.as_str()).ok()?;
        Some((name, HeaderValue::try_from(value.as_str()).ok()?))
    });
    let headers: HeaderMap = headers.collect();
    exchange.is_replayed();
    exchange.answered(entry.status, &headers);
    let pieces = entry.pieces().into_iter();
    let state = Some((pieces, exchange, entry.cut));
    let pieces = stream::unfold(state, |state| async {
        let (mut pieces, mut exchange, is_cut) = state?;
        if let Some((due, piece)) = pieces.next() {
            if let Some(tape) = &exchange.session().tape {
                tape.wait_for(due, exchange.elapsed()).await;
            }
            exchange.passed(&piece);
            return Some((Ok(piece), Some((pieces, exchange, is_cut))));
        }
        if !is_cut {
            exchange.end(Ending::Complete);
            return None;
        }
        let message = "the recorded answer was cut here";
        exchange.end(Ending::Cut(message.to_owned()));
        Some((Err(io::Error::other(message)), None))
    });
    let status = StatusCode::from_u16(entry.status).unwrap_or(StatusCode::BAD_GATEWAY);
    response(status, headers, streamed(pieces))
}

fn streamed(pieces: impl stream::Stream<Item = io::Result<Bytes>> + Send + 'static) -> Body {
    let frames = pieces.map(|piece| piece.map(Frame::data));
    StreamBody::new(frames).boxed_unsync()
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// An answer of our own, in a form that the APIs' clients show.
fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let message = format!("assize: {message}");
    let body = json!({"type": "error", "error": {"type": "assize_proxy", "message": message}});
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    response(status, headers.into_iter().collect(), body.boxed_unsync())
}

/// The headers that concern both ends.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all("connection").iter();
    let named: Vec<String> = named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let is_hop_by_hop = |name: &HeaderName| {
        HOP_BY_HOP.contains(&name.as_str()) || named.iter().any(|hop| hop == name.as_str())
    };
    let kept = headers.iter().filter(|(name, _)| !is_hop_by_hop(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn readable(body: Bytes, encoding: Option<&str>) -> Bytes {
    if encoding.is_none() {
        return body;
    }
    let mut decoded = Decoded::new(encoding, Vec::new());
    decoded.take(&body);
    decoded.finish().0.unwrap_or_default().into()
}

/// An error and everything behind it, without the address, which may hold a key.
fn causes(error: &reqwest::Error) -> String {
    match error.source() {
        Some(cause) => with_causes(cause),
        None => "it broke off".to_owned(),
    }
}
