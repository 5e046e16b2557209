//! A terminal of its own for a program, whose other end the host holds; and the host's terminal made raw, so that every key
//! reaches the program.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

/// The host's end of a terminal.
#[derive(Debug)]
pub struct Terminal {
    host: File,
    path: PathBuf,
    /// Held until the program has opened it: without anybody on the other side, reading would fail.
    other: Option<OwnedFd>,
}

impl Terminal {
    /// A new terminal, as large as the one that the host has on stdout.
    pub fn new() -> io::Result<Self> {
        let host = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&host)?;
        unlockpt(&host)?;
        let name = ptsname(&host, Vec::new())?;
        let path = PathBuf::from(OsStr::from_bytes(name.as_bytes()));
        let other = rustix::fs::open(
            &path,
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )?;
        let terminal = Self {
            host: File::from(host),
            path,
            other: Some(other),
        };
        terminal.fit();
        Ok(terminal)
    }

    /// The device that the program opens, for [`Command::terminal`](crate::Command).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it so many columns and rows.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.host, size)?)
    }

    /// Gives it the size of the host's terminal, where there is one.
    pub fn fit(&self) {
        if let Ok(size) = tcgetwinsize(rustix::stdio::stdout()) {
            let _ = tcsetwinsize(&self.host, size);
        }
    }

    /// To be called once the program runs: from then on the end of the program ends reading.
    pub fn let_go(&mut self) {
        self.other = None;
    }

    /// The end to read from and write to.
    pub fn host(&self) -> io::Result<File> {
        self.host.try_clone()
    }
}

/// The host's terminal without echo, lines and signals of its own, until dropped.
#[derive(Debug)]
pub struct RawMode {
    before: Termios,
}

impl RawMode {
    /// Makes the terminal on stdin raw.
    pub fn new() -> io::Result<Self> {
        let stdin = rustix::stdio::stdin();
        let before = tcgetattr(stdin)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin.as_fd(), OptionalActions::Drain, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &self.before);
    }
}
