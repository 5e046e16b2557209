//! Signals as something to wait for. They are blocked, so that none of them ends the keeper before its program.

use std::os::fd::BorrowedFd;

use nix::sys::signal::SigSet;

/// Requests that arrived as signals. A dead child needs none: the keeper looks for them anyway.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// The keeper was asked to end.
    pub(super) is_asked_to_end: bool,
}

#[cfg(target_os = "linux")]
pub(super) struct Signals(nix::sys::signalfd::SignalFd);

#[cfg(target_os = "linux")]
impl Signals {
    /// Blocks every signal and hears those that matter.
    pub(super) fn block() -> nix::Result<Self> {
        use nix::sys::signal::Signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        use nix::sys::signalfd::{SfdFlags, SignalFd};

        SigSet::all().thread_block()?;
        let heard: SigSet = [SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM]
            .into_iter()
            .collect();
        SignalFd::with_flags(&heard, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map(Self)
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        Some(self.0.as_fd())
    }

    pub(super) fn hear(&self) -> Heard {
        let mut heard = Heard::default();
        while let Ok(Some(signal)) = self.0.read_signal() {
            heard.is_asked_to_end |= signal.ssi_signo != libc::SIGCHLD as u32;
        }
        heard
    }
}

/// Without signalfd the keeper looks for dead children at every tick and cannot be asked to end by a signal.
#[cfg(not(target_os = "linux"))]
pub(super) struct Signals;

#[cfg(not(target_os = "linux"))]
impl Signals {
    pub(super) fn block() -> nix::Result<Self> {
        SigSet::all().thread_block().map(|()| Self)
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    pub(super) fn hear(&self) -> Heard {
        Heard::default()
    }
}
