//! Frames on their way to the host. Holds little: when it is full, the program has to wait for the host.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::wire::Frame;

const ROOM: usize = 256 << 10;

pub(super) struct Outbox {
    host: File,
    pending: Vec<u8>,
    sent: usize,
    is_host_gone: bool,
}

impl Outbox {
    /// The host reads our stdout.
    pub(super) fn to_host() -> io::Result<Self> {
        let host = io::stdout().as_fd().try_clone_to_owned()?;
        fcntl(&host, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self {
            host: host.into(),
            pending: Vec::new(),
            sent: 0,
            is_host_gone: false,
        })
    }

    pub(super) fn push(&mut self, frame: &Frame) {
        if !self.is_host_gone {
            frame.encode(&mut self.pending);
            self.flush();
        }
    }

    /// Sends as much as the host takes now.
    pub(super) fn flush(&mut self) {
        while self.sent < self.pending.len() {
            match self.host.write(&self.pending[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.give_up(),
            }
        }
        self.pending.clear();
        self.sent = 0;
    }

    /// Sends everything, waiting for the host as long as it lives.
    pub(super) fn flush_all(&mut self) {
        self.flush();
        while !self.is_empty() {
            let mut host = [PollFd::new(self.host.as_fd(), PollFlags::POLLOUT)];
            let _ = poll(&mut host, PollTimeout::NONE);
            self.flush();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.pending.len() - self.sent < ROOM
    }

    pub(super) fn is_host_gone(&self) -> bool {
        self.is_host_gone
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.host.as_fd()
    }

    fn give_up(&mut self) {
        self.is_host_gone = true;
        self.pending = Vec::new();
        self.sent = 0;
    }
}
