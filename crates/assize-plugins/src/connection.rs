//! One running plugin program: requests go in by number, answers come out by number, and the end fails what is open.

use crate::error::CallError;
use crate::log::PluginLog;
use crate::protocol::{CancelParams, LONGEST_MESSAGE, LogParams, ProgressParams, RpcError, codes};
use crate::wire::{self, Incoming};
use assize_process::{Canceller, Line, LineSplitter, Running, Stream};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

/// A plugin that says nothing at all for so long after a call was cancelled is stuck.
const PATIENCE_AFTER_CANCEL: Duration = Duration::from_secs(5);
/// The time in which a program must end once its stdin is closed.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(5);
/// Lines that are no answers to anything; more of them, and the program does not know what it is talking about.
const MOST_STRAY_LINES: u64 = 1000;

/// One start of a plugin program.
pub(crate) struct Connection {
    plugin: String,
    next_id: AtomicU64,
    shared: Arc<Shared>,
    runtime: Handle,
}

/// A request with its number.
pub(crate) struct Request {
    id: u64,
    method: &'static str,
    line: Vec<u8>,
}

/// State that callers and the reader share.
struct Shared {
    open: Mutex<Open>,
    /// Everything that came in.
    heard: AtomicU64,
    answered: AtomicU64,
    stray: AtomicU64,
    log: PluginLog,
    ended: watch::Sender<Option<String>>,
    /// Ends the program; absent for a socket.
    canceller: Option<Canceller>,
}

#[derive(Default)]
struct Open {
    calls: HashMap<u64, Waiting>,
    /// Lines for the program. Absent when no more may be sent.
    outbox: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// The reason why the host ended it.
    fault: Option<String>,
}

enum Waiting {
    For(oneshot::Sender<Vec<u8>>),
    /// The caller has left, but the plugin owes an answer.
    Nobody,
}

impl Connection {
    /// Takes over a program that was just started.
    pub(crate) fn of_program(plugin: &str, mut running: Running, log: PluginLog) -> Self {
        let stdin = running.take_stdin();
        let connection = Self::new(plugin, Some(running.canceller()), log);
        if let Some(stdin) = stdin {
            connection.send_through(stdin);
        }
        tokio::spawn(listen_to_program(running, Arc::clone(&connection.shared)));
        connection
    }

    /// Connects to a plugin that listens on a socket.
    pub(crate) async fn of_socket(
        plugin: &str,
        path: &Path,
        log: PluginLog,
    ) -> std::io::Result<Self> {
        let (reader, writer) = tokio::net::UnixStream::connect(path).await?.into_split();
        let connection = Self::new(plugin, None, log);
        connection.send_through(writer);
        tokio::spawn(listen_to_socket(reader, Arc::clone(&connection.shared)));
        Ok(connection)
    }

    fn new(plugin: &str, canceller: Option<Canceller>, log: PluginLog) -> Self {
        Self {
            plugin: plugin.to_owned(),
            next_id: AtomicU64::new(1),
            shared: Arc::new(Shared {
                open: Mutex::default(),
                heard: AtomicU64::new(0),
                answered: AtomicU64::new(0),
                stray: AtomicU64::new(0),
                log,
                ended: watch::Sender::new(None),
                canceller,
            }),
            runtime: Handle::current(),
        }
    }

    fn send_through(&self, pipe: impl AsyncWrite + Unpin + Send + 'static) {
        let (outbox, lines) = mpsc::unbounded_channel();
        self.shared.open().outbox = Some(outbox);
        tokio::spawn(write_lines(pipe, lines));
    }

    /// The way it ended, if it did.
    pub(crate) fn ending(&self) -> Option<String> {
        self.shared.ended.borrow().clone()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.shared.ended.borrow().is_some()
    }

    /// True when it ever answered anything besides `initialize`.
    pub(crate) fn was_of_use(&self) -> bool {
        self.shared.answered.load(Ordering::Relaxed) > 1
    }

    /// Writes a request that is not sent yet.
    pub(crate) fn request(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<Request, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = wire::request(id, method, params)?;
        Ok(Request { id, method, line })
    }

    /// Sends a request and waits for the line that answers it. Dropping the future cancels the request.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: impl Serialize,
        limit: Option<Duration>,
    ) -> Result<Vec<u8>, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = wire::request(id, method, params)?;
        let (sender, receiver) = oneshot::channel();
        self.shared.send(id, sender, line);
        let mut waiting = CancelOnDrop {
            connection: self,
            id: Some(id),
        };
        let answer = match limit {
            Some(limit) => tokio::time::timeout(limit, receiver)
                .await
                .map_err(|_| self.timed_out(method, limit))?,
            None => receiver.await,
        };
        waiting.id = None;
        answer.map_err(|_| self.ended_before_it_answered())
    }

    /// The same for a request that must be over before anything else happens: when it is cancelled, because of its limit or
    /// because `given_up` resolves, the plugin still has to answer it. A program that does not is ended.
    pub(crate) async fn call_to_the_end(
        &self,
        request: Request,
        limit: Option<Duration>,
        given_up: oneshot::Receiver<()>,
    ) -> Result<Vec<u8>, CallError> {
        let Request { id, method, line } = request;
        let (sender, mut receiver) = oneshot::channel();
        self.shared.send(id, sender, line);
        let too_late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let reason = tokio::select! {
            answer = &mut receiver => return answer.map_err(|_| self.ended_before_it_answered()),
            () = too_late => self.timed_out(method, limit.unwrap_or_default()),
            // No caller is left to receive the error.
            _ = given_up => self.timed_out(method, Duration::ZERO),
        };
        if let Ok(line) = wire::notification("$/cancel", CancelParams { id }) {
            self.shared.open().post(line);
        }
        if self.shared.canceller.is_some() {
            let answer = tokio::time::timeout(PATIENCE_AFTER_CANCEL, &mut receiver).await;
            if answer.is_err() {
                let fault = format!("did not stop `{method}` and had to be ended");
                self.shared.give_up(fault);
                self.wait().await;
            }
        } else {
            // A plugin on a socket cannot be ended, so there is nothing but to wait.
            let _ = receiver.await;
        }
        Err(reason)
    }

    fn timed_out(&self, method: &str, limit: Duration) -> CallError {
        CallError::TimedOut {
            plugin: self.plugin.clone(),
            method: method.to_owned(),
            limit,
        }
    }

    fn ended_before_it_answered(&self) -> CallError {
        CallError::Ended {
            plugin: self.plugin.clone(),
            how: self.ending().unwrap_or_else(|| "ended".to_owned()),
        }
    }

    /// Sends bytes that are no request of ours, to see what happens.
    pub(crate) fn send_raw(&self, bytes: &[u8]) {
        self.shared.open().post(bytes.to_vec());
    }

    /// Waits until every request has been answered.
    pub(crate) async fn owes_nothing(&self) {
        while !self.shared.open().calls.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The number of lines that answer nothing.
    pub(crate) fn stray_lines(&self) -> u64 {
        self.shared.stray.load(Ordering::Relaxed)
    }

    /// Lets the program end by itself, then ends it.
    pub(crate) async fn end(&self) {
        self.shared.open().outbox = None;
        if tokio::time::timeout(PATIENCE_AT_THE_END, self.wait())
            .await
            .is_err()
        {
            match &self.shared.canceller {
                Some(canceller) => canceller.cancel(),
                None => return,
            }
            self.wait().await;
        }
    }

    async fn wait(&self) {
        let mut ended = self.shared.ended.subscribe();
        // An error means that the sender is gone, which is an end, too.
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// The answer is not wanted any more. A plugin that then keeps silent altogether is ended.
    fn cancel(&self, id: u64) {
        {
            let mut open = self.shared.open();
            let Some(waiting) = open.calls.get_mut(&id) else {
                return;
            };
            *waiting = Waiting::Nobody;
            if let Ok(line) = wire::notification("$/cancel", CancelParams { id }) {
                open.post(line);
            }
        }
        let shared = Arc::downgrade(&self.shared);
        let heard = self.shared.heard.load(Ordering::Relaxed);
        self.runtime.spawn(async move {
            tokio::time::sleep(PATIENCE_AFTER_CANCEL).await;
            if let Some(shared) = shared.upgrade()
                && shared.heard.load(Ordering::Relaxed) == heard
            {
                shared.give_up("was stuck and had to be ended".to_owned());
            }
        });
    }
}

struct CancelOnDrop<'a> {
    connection: &'a Connection,
    id: Option<u64>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.connection.cancel(id);
        }
    }
}

impl Open {
    fn post(&self, line: Vec<u8>) {
        if let Some(outbox) = &self.outbox {
            // Fails when the program reads no more; its end is on the way.
            let _ = outbox.send(line);
        }
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, id: u64, sender: oneshot::Sender<Vec<u8>>, line: Vec<u8>) {
        let mut open = self.open();
        // Without an outbox the sender is dropped, which shows the caller that it is over.
        if open.outbox.is_some() {
            open.calls.insert(id, Waiting::For(sender));
            open.post(line);
        }
    }

    fn hear(&self, line: Line) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        if line.cut > 0 {
            return self.give_up_for_length();
        }
        match wire::look_at(&line.bytes) {
            Incoming::Answer(id) => self.deliver(id, line.bytes),
            Incoming::StrayAnswer => self.stray("an answer to nothing", &line),
            Incoming::Request { id, method } => self.refuse(&id, &method),
            Incoming::Notification { method } => self.note(&method, &line.bytes),
            Incoming::Text if line.bytes.is_empty() => {}
            Incoming::Text => self.stray("stdout", &line),
            Incoming::Broken(problem) => {
                self.log.line("stdout", &line.text());
                self.give_up(format!("wrote a broken message ({problem}) and was ended"));
            }
        }
    }

    fn deliver(&self, id: u64, line: Vec<u8>) {
        let waiting = self.open().calls.remove(&id);
        match waiting {
            Some(Waiting::For(sender)) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                // Fails when the caller left at this very moment.
                let _ = sender.send(line);
            }
            Some(Waiting::Nobody) => {}
            None => self.stray(
                "an answer to nothing",
                &Line {
                    bytes: line,
                    ..Line::default()
                },
            ),
        }
    }

    fn stray(&self, origin: &str, line: &Line) {
        self.log.line(origin, &line.text());
        if self.stray.fetch_add(1, Ordering::Relaxed) >= MOST_STRAY_LINES {
            self.give_up(format!(
                "wrote more than {MOST_STRAY_LINES} lines that answer nothing and was ended"
            ));
        }
    }

    /// Plugins cannot ask anything yet.
    fn refuse(&self, id: &serde_json::Value, method: &str) {
        let error = RpcError {
            code: codes::UNKNOWN_METHOD,
            message: format!("the host has no method `{method}`"),
            data: None,
        };
        if let Ok(line) = wire::answer(id, Err(error)) {
            self.open().post(line);
        }
    }

    fn note(&self, method: &str, line: &[u8]) {
        match method {
            "$/log" => match wire::params::<LogParams>(line) {
                Ok(entry) => self.log.line(&entry.level, &entry.message),
                Err(problem) => self
                    .log
                    .line("assize", &format!("a `$/log` without text: {problem}")),
            },
            "$/progress" => {
                if let Ok(progress) = wire::params::<ProgressParams>(line) {
                    self.log.line("progress", &in_words(&progress));
                }
            }
            // The rest may come from a later version.
            _ => {}
        }
    }

    /// Ends a program whose line is too long, without waiting for the end of the line.
    fn give_up_for_length(&self) {
        if self.open().fault.is_none() {
            self.give_up(format!(
                "wrote a line of more than {LONGEST_MESSAGE} bytes and was ended"
            ));
        }
    }

    /// Ends a program that cannot be trusted any more.
    fn give_up(&self, fault: String) {
        self.open().fault.get_or_insert(fault.clone());
        match &self.canceller {
            Some(canceller) => canceller.kill(),
            None => self.end(fault),
        }
    }

    /// Nothing more will come: wakes all waiting callers.
    fn end(&self, how: String) {
        let (how, calls) = {
            let mut open = self.open();
            open.outbox = None;
            let how = open.fault.take().unwrap_or(how);
            (how, std::mem::take(&mut open.calls))
        };
        self.log.line("assize", &format!("the program {how}"));
        self.ended.send_if_modified(|ending| {
            let is_first = ending.is_none();
            ending.get_or_insert(how);
            is_first
        });
        // Only now, so that woken callers can report how it ended.
        drop(calls);
    }
}

fn in_words(progress: &ProgressParams) -> String {
    let mut words = format!("request {}", progress.token);
    if let Some(done) = progress.done {
        words.push_str(&format!(", {done}"));
    }
    if let Some(total) = progress.total {
        words.push_str(&format!(" of {total}"));
    }
    if let Some(message) = &progress.message {
        words.push_str(&format!(": {message}"));
    }
    words
}

/// Many waiting lines go out in one write.
async fn write_lines(
    mut pipe: impl AsyncWrite + Unpin,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    while let Some(mut batch) = lines.recv().await {
        while batch.len() < 64 << 10 {
            match lines.try_recv() {
                Ok(line) => batch.extend(line),
                Err(_) => break,
            }
        }
        if pipe.write_all(&batch).await.is_err() {
            return;
        }
    }
}

async fn listen_to_program(mut running: Running, shared: Arc<Shared>) {
    let mut messages = LineSplitter::new(LONGEST_MESSAGE);
    let mut words = LineSplitter::new(64 << 10);
    while let Ok(Some(chunk)) = running.next().await {
        match chunk.stream {
            Stream::Stdout => {
                let lines = messages.push(&chunk).into_iter();
                lines.for_each(|line| shared.hear(line));
                if messages.is_overlong() {
                    shared.give_up_for_length();
                }
            }
            Stream::Stderr => {
                for line in words.push(&chunk) {
                    shared.log.line("stderr", &line.text());
                }
            }
        }
    }
    if let Some(line) = words.finish() {
        shared.log.line("stderr", &line.text());
    }
    let how = match running.wait().await {
        Ok(exit) => exit.in_words(Duration::ZERO),
        Err(error) => format!("was lost: {error}"),
    };
    shared.end(how);
}

async fn listen_to_socket(mut reader: impl AsyncRead + Unpin, shared: Arc<Shared>) {
    let mut messages = LineSplitter::new(LONGEST_MESSAGE);
    let mut buffer = vec![0; 64 << 10];
    let mut offset = 0;
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        let chunk = assize_process::Chunk {
            stream: Stream::Stdout,
            at: Duration::ZERO,
            offset,
            bytes: buffer[..count].to_vec(),
        };
        offset += count as u64;
        messages
            .push(&chunk)
            .into_iter()
            .for_each(|line| shared.hear(line));
        if messages.is_overlong() {
            shared.give_up_for_length();
        }
        if shared.ended.borrow().is_some() {
            return;
        }
    }
    shared.end("closed its socket".to_owned());
}
