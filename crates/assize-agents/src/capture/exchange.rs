//! One request and its answer, read from a copy while they pass by.

use super::agents::{subagent_in, thread_of};
use super::cassette::{Take, TapedRequest};
use super::encoding::{Decoded, Reader};
use super::normal_form::{Known, fingerprint, normal_form};
use super::session::{Call, Ending, RequestContent, Session};
use assize_llm::{AnswerReader, Api, Content, ModelAnswer, Part, RequestOutline};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// An exchange under way. Dropped without an end, the agent has gone away.
pub(super) struct Exchange {
    session: Arc<Session>,
    started: Instant,
    call: Option<CallUnderWay>,
    take: Option<Take>,
    /// Finds out what is asked, while the request goes on.
    reading: Option<JoinHandle<Option<ReadRequest>>>,
    /// Bytes still to come, where the answer says how many there are.
    left: Option<u64>,
}

struct CallUnderWay {
    number: u64,
    api: Api,
    started_ms: i64,
    request: RequestOutline,
    body: Bytes,
    fingerprint: Option<[u8; 32]>,
    asked_for_usage: bool,
    replayed: bool,
    subagent: Option<String>,
    reading: Option<Decoded<Clocked>>,
}

/// Reads an answer by the clock of the exchange.
struct Clocked {
    reader: AnswerReader,
    now: Duration,
}

impl Reader for Clocked {
    fn read(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes, self.now);
    }
}

/// The result of reading a request's body.
pub(super) struct ReadRequest {
    pub(super) request: RequestOutline,
    /// Without its encoding, to compare it if the call fails.
    pub(super) body: Bytes,
    pub(super) fingerprint: Option<[u8; 32]>,
}

impl ReadRequest {
    /// Reads a body; comparing it with others takes longer, so that is left out where nothing asks for it.
    pub(super) fn new(api: Api, path: &str, body: Bytes, is_compared: bool) -> Self {
        Self {
            request: RequestOutline::of(api, path, &body),
            fingerprint: is_compared.then(|| what_is_asked(&body)),
            body,
        }
    }
}

/// The same for every try of a request.
fn what_is_asked(body: &[u8]) -> [u8; 32] {
    fingerprint("", "", &normal_form(body, &Known::default()))
}

impl Exchange {
    /// Begins with the request; it is a model call if it speaks one of the APIs.
    pub(super) fn begin(session: Arc<Session>, api: Option<Api>, headers: &HeaderMap) -> Self {
        let call = api.map(|api| CallUnderWay {
            number: session.begin_call(),
            api,
            started_ms: assize_contracts::unix_ms_now(),
            request: RequestOutline::default(),
            body: Bytes::new(),
            fingerprint: None,
            asked_for_usage: false,
            replayed: false,
            subagent: subagent_in(headers),
            reading: None,
        });
        if call.is_none() {
            session.count_other_request();
        }
        Self {
            session,
            started: Instant::now(),
            call,
            take: None,
            reading: None,
            left: None,
        }
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn knows_request(&mut self, read: ReadRequest) {
        if let Some(call) = &mut self.call {
            call.know(read);
        }
    }

    /// Sets the task that reads the request.
    pub(super) fn reads_request(&mut self, reading: JoinHandle<Option<ReadRequest>>) {
        self.reading = Some(reading);
    }

    /// Waits for what is asked. Upstreams answer questions that they have read, so there is hardly anything to wait for; who
    /// answers before that does not wait for us either.
    pub(super) async fn know_request(&mut self) {
        const PATIENCE: Duration = Duration::from_millis(200);
        let Some(reading) = &mut self.reading else {
            return;
        };
        if let Ok(read) = tokio::time::timeout(PATIENCE, reading).await {
            self.reading = None;
            if let Ok(Some(read)) = read {
                self.knows_request(read);
            }
        }
    }

    pub(super) fn asked_for_usage(&mut self) {
        if let Some(call) = &mut self.call {
            call.asked_for_usage = true;
        }
    }

    pub(super) fn is_replayed(&mut self) {
        if let Some(call) = &mut self.call {
            call.replayed = true;
        }
    }

    /// The answer begins.
    pub(super) fn answered(&mut self, status: u16, headers: &HeaderMap) {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        self.left = header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        if let Some(call) = &mut self.call {
            let clocked = Clocked {
                reader: AnswerReader::new(call.api, status),
                now: Duration::ZERO,
            };
            call.reading = Some(Decoded::new(header(CONTENT_ENCODING), clocked));
        }
    }

    /// The answer is recorded, too.
    pub(super) fn tape(&mut self, request: &TapedRequest, status: u16, headers: &HeaderMap) {
        let tape = self.session.tape.as_ref();
        self.take = tape.and_then(|tape| tape.take(request, status, headers));
    }

    /// The next bytes of the answer.
    pub(super) fn passed(&mut self, bytes: &Bytes) {
        let now = self.elapsed();
        self.left = self
            .left
            .map(|left| left.saturating_sub(bytes.len() as u64));
        if let Some(reading) = self.call.as_mut().and_then(|call| call.reading.as_mut()) {
            if let Some(clocked) = reading.reader() {
                clocked.now = now;
            }
            reading.take(bytes);
        }
        if let Some(take) = &mut self.take {
            take.push(bytes, now);
        }
    }

    /// The exchange is over.
    pub(super) fn end(mut self, ending: Ending) {
        self.conclude(ending);
    }

    fn conclude(&mut self, ending: Ending) {
        if let Some((take, tape)) = self.take.take().zip(self.session.tape.as_ref()) {
            let is_cut = matches!(ending, Ending::Cut(_));
            // A response that the agent did not wait for is no answer.
            if ending != Ending::ClientGone {
                // A full disk must not break the session; the replay will miss the answer and say so.
                let _ = tape.keep(take, is_cut, &self.session.redactor);
            }
        }
        let Some(mut call) = self.call.take() else {
            return;
        };
        let (reader, unread) = match call.reading.take() {
            Some(reading) => reading.finish(),
            None => (None, None),
        };
        let ended = EndedCall {
            answer: reader.map(|clocked| clocked.reader.finish()),
            unread,
            duration: self.started.elapsed(),
            ending,
            session: Arc::clone(&self.session),
            call,
        };
        let runtime = tokio::runtime::Handle::try_current();
        match self.reading.take().zip(runtime.ok()) {
            // The session ends no sooner than its calls.
            Some((reading, runtime)) => drop(runtime.spawn(async {
                let read = reading.await.ok().flatten();
                ended.report(read);
            })),
            None => ended.report(None),
        }
    }

    /// Nothing more is expected: agents hang up after the last event, and do not read on after the last byte.
    fn is_complete(&mut self) -> bool {
        let reading = self.call.as_mut().and_then(|call| call.reading.as_mut());
        let reader = reading.and_then(Decoded::reader);
        self.left == Some(0) || reader.is_some_and(|clocked| clocked.reader.is_complete())
    }
}

/// A call whose answer has ended. Its request may not have been read yet.
struct EndedCall {
    session: Arc<Session>,
    call: CallUnderWay,
    answer: Option<ModelAnswer>,
    unread: Option<String>,
    duration: Duration,
    ending: Ending,
}

impl EndedCall {
    /// Reports the exchange to the session. A request that may be tried again is compared before that.
    fn report(self, read: Option<ReadRequest>) {
        let Self {
            session,
            mut call,
            answer,
            unread,
            duration,
            ending,
        } = self;
        if let Some(read) = read {
            call.know(read);
        }
        let RequestOutline {
            model,
            tools,
            tool_names,
            opening,
            from_agents,
            tool_results: results,
        } = call.request;
        // What a subagent inherits from the conversation that started it is not its own.
        let opening = match call.subagent.is_some() && !from_agents.is_empty() {
            true => from_agents,
            false => opening,
        };
        let mut ended = Call {
            number: call.number,
            api: call.api,
            started_ms: call.started_ms,
            duration,
            model,
            tools,
            fingerprint: call.fingerprint,
            thread: thread_of(&opening, call.subagent.as_deref()),
            subagent: call.subagent,
            unknown_tools: unknown_tools(answer.as_ref(), &tool_names),
            answer,
            ending,
            asked_for_usage: call.asked_for_usage,
            replayed: call.replayed,
            unread,
        };
        let content = RequestContent {
            results,
            opening,
            body: call.body,
        };
        if ended.fingerprint.is_some() || !ended.may_be_retried() {
            return session.end_call(ended, content);
        }
        session.note_failure();
        let compare = move || {
            ended.fingerprint = Some(what_is_asked(&content.body));
            session.end_failed_call(ended, content);
        };
        // A long conversation takes a while to compare, which must not delay other sessions.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(compare)),
            Err(_) => compare(),
        }
    }
}

impl CallUnderWay {
    fn know(&mut self, read: ReadRequest) {
        self.request = read.request;
        self.body = read.body;
        self.fingerprint = read.fingerprint;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let ending = match self.is_complete() {
            true => Ending::Complete,
            false => Ending::ClientGone,
        };
        self.conclude(ending);
    }
}

/// Parts of an answer that call a tool which was not offered. Unknown where the request names no tools.
fn unknown_tools(answer: Option<&ModelAnswer>, offered: &[String]) -> Vec<usize> {
    let parts = answer.iter().flat_map(|answer| &answer.parts);
    let is_unknown = |part: &Part| match &part.content {
        Content::Tool(tool) => !tool.by_server && offered.binary_search(&tool.name).is_err(),
        _ => false,
    };
    let unknown = parts.enumerate().filter(|(_, part)| is_unknown(part));
    let unknown = unknown.map(|(place, _)| place);
    match offered.is_empty() {
        true => Vec::new(),
        false => unknown.collect(),
    }
}
