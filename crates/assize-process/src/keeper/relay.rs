//! One output stream of the program: its beginning goes to the host, its end is held back, the rest is only counted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::command::Bound;
use crate::exit::Volume;
use crate::running::Stream;
use crate::wire::Frame;

use super::outbox::Outbox;

pub(super) struct Relay {
    stream: Stream,
    /// Absent when the program has closed it.
    pipe: Option<File>,
    bound: Bound,
    started: Instant,
    seen: u64,
    tail: VecDeque<u8>,
    last_read: Instant,
}

impl Relay {
    pub(super) fn new(stream: Stream, pipe: OwnedFd, bound: Bound, started: Instant) -> Self {
        // The end of the stream must not block us: a stranger may hold the other end open.
        let _ = fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        let pipe = Some(pipe.into());
        Self {
            stream,
            pipe,
            bound,
            started,
            seen: 0,
            tail: VecDeque::new(),
            last_read: started,
        }
    }

    /// The pipe, if there is something to expect and somewhere to put it.
    pub(super) fn descriptor(&self, outbox: &Outbox) -> Option<BorrowedFd<'_>> {
        let has_somewhere = self.seen >= self.bound.head || outbox.has_room();
        self.pipe
            .as_ref()
            .filter(|_| has_somewhere)
            .map(File::as_fd)
    }

    /// Reads once. Returns how much there was.
    pub(super) fn read(&mut self, buffer: &mut [u8], outbox: &mut Outbox) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.take(&buffer[..count], outbox);
                return count;
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => self.pipe = None,
        }
        0
    }

    /// Sends the end of the stream, as far as it was not sent before.
    pub(super) fn finish(&mut self, outbox: &mut Outbox) -> Volume {
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        let kept = self.seen.min(self.bound.head) + tail.len() as u64;
        if !tail.is_empty() {
            self.send(self.seen - tail.len() as u64, tail, outbox);
        }
        Volume {
            seen: self.seen,
            kept,
        }
    }

    fn take(&mut self, bytes: &[u8], outbox: &mut Outbox) {
        self.last_read = Instant::now();
        let room = usize::try_from(self.bound.head.saturating_sub(self.seen)).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        if !head.is_empty() {
            self.send(self.seen, head.to_vec(), outbox);
        }
        self.seen += bytes.len() as u64;
        self.hold_back(rest);
    }

    fn hold_back(&mut self, bytes: &[u8]) {
        let limit = usize::try_from(self.bound.tail).unwrap_or(usize::MAX);
        let bytes = &bytes[bytes.len().saturating_sub(limit)..];
        let surplus = (self.tail.len() + bytes.len()).saturating_sub(limit);
        self.tail.drain(..surplus);
        self.tail.extend(bytes);
    }

    fn send(&self, offset: u64, bytes: Vec<u8>, outbox: &mut Outbox) {
        let at = self.last_read - self.started;
        outbox.push(&Frame::Output {
            stream: self.stream,
            at,
            offset,
            bytes,
        });
    }
}
