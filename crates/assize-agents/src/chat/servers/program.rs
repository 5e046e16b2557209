//! A server that is a program of the session: under a keeper, heard within bounds, ended with the session.

use crate::line_program::{LONGEST_LINE, LineProgram, Silence};
use assize_process::{Bound, Command, Line, Stdin};
use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// Messages that wait for a server which does not read. Only its own questions can make them more.
const LARGEST_OUTBOX: usize = 64;

const STDERR: Bound = Bound {
    head: 64 << 10,
    tail: 64 << 10,
};

const LONGEST_JUNK: usize = 200;

/// Facts about a server beyond its messages, for error messages.
#[derive(Clone, Default)]
pub(super) struct ServerNotes(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    ended: Option<String>,
    last_words: Option<String>,
}

impl ServerNotes {
    /// The way the server ended, if it has.
    pub(super) fn ended(&self) -> Option<String> {
        crate::lock(&self.0).ended.clone()
    }

    /// The last line that was no message, or the error in the last message.
    pub(super) fn last_words(&self) -> Option<String> {
        crate::lock(&self.0).last_words.clone()
    }

    fn note_end(&self, how: String) {
        crate::lock(&self.0).ended = Some(how);
    }

    pub(super) fn note_words(&self, words: String) {
        crate::lock(&self.0).last_words = Some(words);
    }
}

pub(super) struct ServerProgram {
    program: LineProgram,
    /// Gone when the server's stdin is to be closed.
    outbox: Option<mpsc::Sender<String>>,
    notes: ServerNotes,
}

impl ServerProgram {
    pub(super) async fn start(command: Command, notes: ServerNotes) -> Result<Self, String> {
        let mut command = command.stdin(Stdin::Piped);
        // Its output is read at once, so there is no need to keep it.
        command.stdout.head = u64::MAX;
        command.stderr = STDERR;
        let running = command.start().await;
        let running =
            running.map_err(|error| format!("cannot be started: {}", error.explained()))?;
        let mut program = LineProgram::new(running);
        let (outbox, waiting) = mpsc::channel(LARGEST_OUTBOX);
        if let Some(stdin) = program.take_stdin() {
            tokio::spawn(post(stdin, waiting));
        }
        Ok(Self {
            program,
            outbox: Some(outbox),
            notes,
        })
    }
}

/// Ends with the outbox, or with the server.
async fn post(mut stdin: pipe::Sender, mut waiting: mpsc::Receiver<String>) {
    while let Some(line) = waiting.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Transport<RoleClient> for ServerProgram {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = serde_json::to_string(&message).map_err(io::Error::other);
        let sent = line.and_then(|line| match &self.outbox {
            Some(outbox) => outbox
                .try_send(format!("{line}\n"))
                .map_err(|_| io::Error::other("it does not read what it is sent")),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        });
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.program.next().await {
                Ok(Line { cut: 0, bytes, .. }) => match serde_json::from_slice(&bytes) {
                    // Notifications are ignored, and there may be many.
                    Ok(JsonRpcMessage::Notification(_)) => {}
                    Ok(message) => return Some(message),
                    Err(_) => self.notes.note_words(junk(&bytes)),
                },
                Ok(_) => {
                    let most = LONGEST_LINE >> 20;
                    self.notes
                        .note_end(format!("sent a message of more than {most} megabytes"));
                    self.program.kill();
                    return None;
                }
                Err(Silence::Ended(how) | Silence::KeeperLost(how)) => {
                    self.notes.note_end(how);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outbox = None;
        self.program.close().await;
        Ok(())
    }
}

fn junk(line: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&line[..line.len().min(LONGEST_JUNK)]);
    format!("it said `{shown}`, which is no message of MCP")
}

impl Drop for ServerProgram {
    /// Also when the hello takes too long: then its stderr is all there is to report.
    fn drop(&mut self) {
        if let Some(words) = self.program.last_words() {
            self.notes.note_words(words);
        }
    }
}
