//! The host's side of a running program: starts the keeper, reads its frames, passes on the wish to end.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, killpg};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Child;

use crate::command::{Command, Stdin};
use crate::error::{Error, Result};
use crate::exit::Exit;
#[cfg(target_os = "linux")]
use crate::fence::Fence;
use crate::guard::Guard;
use crate::wire::{CANCEL, Frame, KILL};
use crate::{cgroup, explain, keeper, workspace};

/// A program under way. Dropping it ends the program and everything it started, with a grace of a third of a second.
///
/// Output must be taken with [`next`](Self::next) or dropped with [`wait`](Self::wait); a program whose output is not
/// taken waits, as on any pipe, and its timeout goes on.
#[derive(Debug)]
pub struct Running {
    program: PathBuf,
    pid: u32,
    started: Instant,
    started_at: SystemTime,
    stdin: Option<pipe::Sender>,
    exit: Option<Exit>,
    frames: Frames,
    control: Arc<OwnedFd>,
    keeper: Keeper,
}

/// A piece of output, in the order of its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The stream it was written to.
    pub stream: Stream,
    /// The time at which the keeper read it, counted from the start of the program by a clock that never jumps.
    pub at: Duration,
    /// Its place in the stream. Larger than the end of the previous chunk where bytes were dropped.
    pub offset: u64,
    /// The written bytes.
    pub bytes: Vec<u8>,
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Ends a program from elsewhere than where it is awaited. Does not keep it running.
#[derive(Debug, Clone)]
pub struct Canceller(Weak<OwnedFd>);

impl Command {
    /// Starts the program and returns once it runs. Needs a tokio runtime with IO.
    pub async fn start(self) -> Result<Running> {
        let keeper_error = |source| Error::KeeperNotStarted {
            program: self.program().to_owned(),
            source,
        };
        let Launched {
            mut keeper,
            control,
            frames,
            input,
            rules,
        } = launch(&self.stdin, &self.guard).map_err(keeper_error)?;
        let mut frames = Frames {
            pipe: frames,
            buffer: Vec::new(),
        };
        let mut order = self.order();
        if rules.is_some() {
            order.guard = Some(Guard::default());
        }
        let control = send(control, &order.encode()).await.map_err(keeper_error)?;
        let (pid, monotonic) = match frames.next().await {
            Ok(Some(Frame::Started { pid, monotonic })) => (pid, monotonic),
            Ok(Some(Frame::Refused { errno })) => {
                tracing::info!(program = %self.program().display(), errno, "cannot start the program");
                keeper.wait(&mut frames).await;
                return Err(explain::not_started(&self, errno));
            }
            _ => {
                keeper.end_orphans(None).await;
                return Err(Error::KeeperLost {
                    program: self.program().to_owned(),
                });
            }
        };
        if let (Some(rules), Some(guard)) = (rules, &self.guard) {
            put_back(rules, guard);
        }
        let age = monotonic_now().saturating_sub(monotonic);
        tracing::info!(program = %self.program().display(), pid, "started a program");
        Ok(Running {
            program: self.program().to_owned(),
            pid,
            started: Instant::now().checked_sub(age).unwrap_or_else(Instant::now),
            started_at: SystemTime::now() - age,
            stdin: feed(self.stdin, input),
            exit: None,
            frames,
            control: Arc::new(control),
            keeper,
        })
    }
}

impl Running {
    /// The process id of the program, for messages.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The start of the program; chunks are counted from here.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The same by the clock on the wall.
    pub fn started_at(&self) -> SystemTime {
        self.started_at
    }

    /// The other end of the program's stdin, once, if it was [`Stdin::Piped`]. Dropping it closes stdin.
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.stdin.take()
    }

    /// The next piece of output, or `None` when the program and all it started has ended. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Chunk>> {
        if self.exit.is_some() {
            return Ok(None);
        }
        match self.frames.next().await {
            Ok(Some(Frame::Output {
                stream,
                at,
                offset,
                bytes,
            })) => Ok(Some(Chunk {
                stream,
                at,
                offset,
                bytes,
            })),
            Ok(Some(Frame::Ended(exit))) => {
                if exit.survivors > 0 {
                    workspace::note_survivor();
                }
                self.exit = Some(exit);
                Ok(None)
            }
            _ => {
                self.keeper.end_orphans(Some(self.pid)).await;
                Err(Error::KeeperLost {
                    program: self.program.clone(),
                })
            }
        }
    }

    /// Waits for the end, dropping output that was not taken. May be called again.
    pub async fn wait(&mut self) -> Result<Exit> {
        while self.next().await?.is_some() {}
        self.keeper.wait(&mut self.frames).await;
        match &self.exit {
            Some(exit) => {
                tracing::info!(pid = self.pid, status = ?exit.status, "the program ended");
                Ok(exit.clone())
            }
            None => Err(Error::KeeperLost {
                program: self.program.clone(),
            }),
        }
    }

    /// Asks the program to end, and kills what is left after its grace. Returns at once; the end comes through
    /// [`wait`](Self::wait).
    pub fn cancel(&self) {
        send_wish(&self.control, CANCEL);
    }

    /// Kills the whole tree without asking.
    pub fn kill(&self) {
        send_wish(&self.control, KILL);
    }

    /// A handle to end the program from another task.
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::downgrade(&self.control))
    }
}

impl Canceller {
    /// As [`Running::cancel`]; nothing happens if the program has ended.
    pub fn cancel(&self) {
        if let Some(control) = self.0.upgrade() {
            send_wish(&control, CANCEL);
        }
    }

    /// As [`Running::kill`]; nothing happens if the program has ended.
    pub fn kill(&self) {
        if let Some(control) = self.0.upgrade() {
            send_wish(&control, KILL);
        }
    }
}

struct Launched {
    keeper: Keeper,
    control: pipe::Sender,
    frames: pipe::Receiver,
    input: Option<pipe::Sender>,
    /// The rules of a guard that the keeper was handed.
    rules: Option<Rules>,
}

/// The process between host and program.
#[derive(Debug)]
enum Keeper {
    /// A child of this process.
    Child(Child),
    /// A fork of the one that was started for all, by its process id.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "others start each keeper")
    )]
    Forked(u32),
}

/// The keeper hears on its stdin, speaks on its stdout, and finds the program's stdin in place of its stderr. So
/// nothing but std is needed to hand it all three.
fn launch(stdin: &Stdin, guard: &Option<Guard>) -> io::Result<Launched> {
    let (stdin, input) = match stdin {
        // As `Stdio::null()` in this place it could only be written to.
        Stdin::Closed => (OwnedFd::from(File::open("/dev/null")?), None),
        Stdin::Bytes(_) | Stdin::Piped => {
            let (reader, writer) = io::pipe()?;
            let writer = pipe::Sender::from_owned_fd(writer.into())?;
            (reader.into(), Some(writer))
        }
    };
    let (orders, control) = io::pipe()?;
    let (frames, reports) = io::pipe()?;
    let rules = rules(guard)?;
    let keeper = start_keeper(orders.into(), reports.into(), stdin, rules.as_ref())?;
    Ok(Launched {
        rules: rules.filter(|_| matches!(keeper, Keeper::Forked(_))),
        keeper,
        control: pipe::Sender::from_owned_fd(control.into())?,
        frames: pipe::Receiver::from_owned_fd(frames.into())?,
        input,
    })
}

/// Rules are made here, where they can serve again. The keeper only enters them.
#[cfg(target_os = "linux")]
fn rules(guard: &Option<Guard>) -> io::Result<Option<Fence>> {
    let rules = guard.as_ref().map(Fence::new).transpose();
    rules.map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn rules(_: &Option<Guard>) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

#[cfg(target_os = "linux")]
type Rules = Fence;

#[cfg(not(target_os = "linux"))]
type Rules = OwnedFd;

#[cfg(target_os = "linux")]
fn put_back(rules: Rules, guard: &Guard) {
    rules.put_back(guard);
}

#[cfg(not(target_os = "linux"))]
fn put_back(_: Rules, _: &Guard) {}

/// A keeper that is not forked makes the rules by itself.
fn start_keeper(
    orders: OwnedFd,
    reports: OwnedFd,
    stdin: OwnedFd,
    rules: Option<&Rules>,
) -> io::Result<Keeper> {
    #[cfg(target_os = "linux")]
    {
        let files = [orders.as_fd(), reports.as_fd(), stdin.as_fd()];
        let rules = rules.map(|fence| fence.rules().as_fd());
        if let Ok(pid) = keeper::fork_keeper(files, rules) {
            return Ok(Keeper::Forked(pid));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = rules;
    let child = tokio::process::Command::new(keeper::executable())
        .arg0("assize-keeper")
        .arg(keeper::MARKER)
        .process_group(0)
        .env_clear()
        .stdin(orders)
        .stdout(reports)
        .stderr(stdin)
        .spawn()?;
    Ok(Keeper::Child(child))
}

/// Sends the order and gives back the bare pipe: from here on it carries single bytes, which always fit.
async fn send(mut control: pipe::Sender, order: &[u8]) -> io::Result<OwnedFd> {
    control.write_all(order).await?;
    control.into_blocking_fd()
}

fn feed(stdin: Stdin, input: Option<pipe::Sender>) -> Option<pipe::Sender> {
    let Stdin::Bytes(bytes) = stdin else {
        return input;
    };
    let mut input = input?;
    // Ends with the program at the latest: then the pipe has no reader, and writing fails.
    tokio::spawn(async move { input.write_all(&bytes).await });
    None
}

impl Keeper {
    /// Waits for its end. One that was forked has ended when it can report nothing more.
    async fn wait(&mut self, frames: &mut Frames) {
        match self {
            Self::Child(child) => drop(child.wait().await),
            Self::Forked(_) => frames.drain().await,
        }
    }

    /// After its loss: the system has killed the program with it, the group and the cgroup reach most others.
    async fn end_orphans(&mut self, program: Option<u32>) {
        workspace::note_survivor();
        let pid = match self {
            Self::Child(child) => {
                let pid = child.id();
                let _ = child.start_kill();
                let _ = child.wait().await;
                pid
            }
            // Its number may be another process's by now. Should it live, it ends when its pipe has no reader any more.
            Self::Forked(pid) => Some(*pid),
        };
        if let Some(group) = program {
            let _ = killpg(Pid::from_raw(group as i32), Signal::SIGKILL);
        }
        if let Some(pid) = pid {
            let _ = tokio::task::spawn_blocking(move || cgroup::end_orphaned(pid)).await;
        }
    }
}

fn send_wish(control: &OwnedFd, wish: u8) {
    match wish {
        KILL => tracing::info!("kill a program with all it started"),
        _ => tracing::info!("ask a program to end"),
    }
    // Fails if the keeper is gone, and then nothing is left to end.
    let _ = nix::unistd::write(control, &[wish]);
}

fn monotonic_now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

#[derive(Debug)]
struct Frames {
    pipe: pipe::Receiver,
    buffer: Vec<u8>,
}

impl Frames {
    /// `Ok(None)` when the keeper is gone. Cancel-safe: what was read stays in the buffer.
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            match Frame::take(&mut self.buffer) {
                Ok(Some(frame)) => return Ok(Some(frame)),
                Ok(None) => {}
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
            self.buffer.reserve(16 << 10);
            if self.pipe.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits for the end of the pipe.
    async fn drain(&mut self) {
        while let Ok(1..) = self.pipe.read_buf(&mut self.buffer).await {
            self.buffer.clear();
        }
    }
}
