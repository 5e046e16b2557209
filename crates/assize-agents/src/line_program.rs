//! A program that is talked to on its stdin and stdout, one message per line, and ends with its session.

use assize_process::{Captured, Line, LineSplitter, Running, Stream};
use std::collections::VecDeque;
use std::time::{Duration, UNIX_EPOCH};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;

/// A longer line is cut.
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// The time in which the program must end after its stdin is closed.
const END_PATIENCE: Duration = Duration::from_secs(3);

const LAST_WORDS: usize = 500;

pub(crate) struct LineProgram {
    running: Running,
    stdin: Option<pipe::Sender>,
    lines: LineSplitter,
    waiting: VecDeque<Line>,
    stderr: Captured,
    started_ms: i64,
}

/// The reason why no further line comes.
#[derive(Debug)]
pub(crate) enum Silence {
    /// The program has ended: how, and with which last words.
    Ended(String),
    /// Its keeper is gone.
    KeeperLost(String),
}

impl LineProgram {
    pub(crate) fn new(mut running: Running) -> Self {
        let since_1970 = running.started_at().duration_since(UNIX_EPOCH);
        Self {
            stdin: running.take_stdin(),
            running,
            lines: LineSplitter::new(LONGEST_LINE),
            waiting: VecDeque::new(),
            stderr: Captured::default(),
            started_ms: since_1970.unwrap_or_default().as_millis() as i64,
        }
    }

    /// Writes a line. [`next`](Self::next) reports whether the program still reads: one that has ended explains it on
    /// its other streams.
    pub(crate) async fn write_line(&mut self, message: impl std::fmt::Display) {
        let line = format!("{message}\n");
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(line.as_bytes()).await;
        }
    }

    /// Its stdin, for saying things from elsewhere.
    #[cfg(feature = "mcp")]
    pub(crate) fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.stdin.take()
    }

    /// The next line of its stdout. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Line, Silence> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Ok(line);
            }
            match self.running.next().await {
                Ok(Some(chunk)) if chunk.stream == Stream::Stdout => {
                    self.waiting.extend(self.lines.push(&chunk));
                }
                Ok(Some(chunk)) => self.stderr.push(chunk),
                Ok(None) => return Err(self.ended().await),
                Err(error) => return Err(Silence::KeeperLost(error.to_string())),
            }
        }
    }

    /// The arrival of a line, in milliseconds since 1970.
    pub(crate) fn at(&self, line: &Line) -> i64 {
        self.started_ms + line.at.as_millis() as i64
    }

    async fn ended(&mut self) -> Silence {
        let status = self.running.wait().await.ok().and_then(|exit| exit.status);
        let status = status.map_or("no exit code".to_owned(), |status| status.to_string());
        Silence::Ended(match self.last_words() {
            Some(words) => format!("ended with {status}: {words}"),
            None => format!("ended with {status}"),
        })
    }

    /// The end of what it wrote to stderr, if anything.
    pub(crate) fn last_words(&self) -> Option<String> {
        let words = self.stderr.last_words(LAST_WORDS);
        (!words.is_empty()).then_some(words)
    }

    /// Ends the program: politely by closing its stdin, then by its keeper.
    pub(crate) async fn close(&mut self) {
        self.stdin = None;
        let ending = self.running.wait();
        if tokio::time::timeout(END_PATIENCE, ending).await.is_err() {
            self.running.cancel();
            let _ = self.running.wait().await;
        }
    }

    /// Ends the program without asking.
    pub(crate) fn kill(&self) {
        self.running.kill();
    }
}
