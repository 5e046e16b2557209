//! A keeper that is started once and forked for every program: starting this binary anew costs several times as much as
//! all the rest of a keeper's work, most of it for relocating a large image.
//!
//! Host and nursery share a socket. A request is one byte with the three files of a keeper, and a fourth with the rules of its program
//! where those are limited; the answer is its process id.
//! When the host is gone the nursery ends; the keepers that it forked notice that by themselves.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::signals::Signals;
use super::{MARKER, executable};
use crate::sys;

/// The nursery of this process, once it has one.
static NURSERY: Mutex<Option<Nursery>> = Mutex::new(None);

/// A fork takes less than a millisecond. A nursery that does not answer within this is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// The files of a keeper, in the order of their numbers there.
const FILES: usize = 3;

/// The same and the rules of its program.
const MOST_FILES: usize = FILES + 1;

/// The host's end.
struct Nursery {
    socket: UnixStream,
    process: Child,
}

/// Forks a keeper with these files as its stdin, stdout and stderr, and returns its process id. The rules are those that its
/// program enters.
pub(crate) fn fork_keeper(
    files: [BorrowedFd<'_>; FILES],
    rules: Option<BorrowedFd<'_>>,
) -> io::Result<u32> {
    let files: Vec<BorrowedFd<'_>> = files.into_iter().chain(rules).collect();
    let mut nursery = nursery();
    let answer = match &mut *nursery {
        Some(nursery) => nursery.request(&files),
        None => Err(io::ErrorKind::NotConnected.into()),
    };
    if answer.is_ok() {
        return answer;
    }
    // It was not started yet, or it was killed.
    if let Some(mut lost) = nursery.take() {
        let _ = lost.process.kill();
        let _ = lost.process.wait();
    }
    nursery.insert(Nursery::start()?).request(&files)
}

/// Ends the nursery, so that its use of the processor is counted as that of this process.
pub(super) fn shut_down() {
    if let Some(Nursery {
        socket,
        mut process,
    }) = nursery().take()
    {
        drop(socket);
        let _ = process.wait();
    }
}

fn nursery() -> MutexGuard<'static, Option<Nursery>> {
    NURSERY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Nursery {
    fn start() -> io::Result<Self> {
        let (socket, other) = UnixStream::pair()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let process = Command::new(executable())
            .arg0("assize-keeper")
            .arg(MARKER)
            .process_group(0)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { socket, process })
    }

    fn request(&mut self, files: &[BorrowedFd<'_>]) -> io::Result<u32> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
        let mut sent = SendAncillaryBuffer::new(&mut space);
        sent.push(SendAncillaryMessage::ScmRights(files));
        let byte = [IoSlice::new(&[0])];
        sendmsg(&self.socket, &byte, &mut sent, SendFlags::NOSIGNAL)?;
        let mut answer = [0; 4];
        self.socket.read_exact(&mut answer)?;
        match u32::from_ne_bytes(answer) {
            0 => Err(io::ErrorKind::OutOfMemory.into()),
            pid => Ok(pid),
        }
    }
}

/// True when this process was started to fork keepers, and not to be one.
pub(super) fn is_wanted() -> bool {
    let metadata = rustix::fs::fstat(io::stdin());
    metadata.is_ok_and(|metadata| {
        rustix::fs::FileType::from_raw_mode(metadata.st_mode) == rustix::fs::FileType::Socket
    })
}

/// Forks keepers until the host is gone. Returns in each of them, with its files in place.
pub(super) fn serve() -> io::Result<Served> {
    let signals = Signals::block()?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    loop {
        let mut awaited = vec![PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        awaited.extend(
            signals
                .descriptor()
                .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)),
        );
        let _ = poll(&mut awaited, PollTimeout::NONE);
        let has_request = awaited[0].any().unwrap_or(true);
        // Asked to end or not, it ends with the host.
        signals.hear();
        reap();
        if !has_request {
            continue;
        }
        let Some(received) = receive(&socket)? else {
            return Ok(Served::HostGone);
        };
        let Received {
            files: [control, frames, stdin],
            rules,
        } = received;
        match sys::fork() {
            Ok(None) => {
                dup2_stdin(control)?;
                dup2_stdout(frames)?;
                dup2_stderr(stdin)?;
                return Ok(Served::Keeper { rules });
            }
            Ok(Some(pid)) => socket.write_all(&(pid.as_raw() as u32).to_ne_bytes())?,
            Err(_) => socket.write_all(&0_u32.to_ne_bytes())?,
        }
    }
}

/// The reason why serving ended.
pub(super) enum Served {
    /// This process is a keeper now, of a program inside these rules.
    Keeper { rules: Option<OwnedFd> },
    /// No client is left.
    HostGone,
}

/// The files of a request.
struct Received {
    files: [OwnedFd; FILES],
    rules: Option<OwnedFd>,
}

/// The files of the next keeper. `None` when the host is gone.
fn receive(socket: &UnixStream) -> io::Result<Option<Received>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut received = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut received,
        flags,
    )?;
    if message.bytes == 0 {
        return Ok(None);
    }
    let mut files = Vec::new();
    for message in received.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            files.extend(sent);
        }
    }
    let rules = (files.len() == MOST_FILES).then(|| files.pop()).flatten();
    match files.try_into() {
        Ok(files) => Ok(Some(Received { files, rules })),
        Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Takes leave of keepers that have ended, which also counts what they used.
fn reap() {
    while let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) =
        waitpid(None, Some(WaitPidFlag::WNOHANG))
    {}
}
