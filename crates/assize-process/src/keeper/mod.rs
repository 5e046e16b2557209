//! The keeper: a small single-threaded process between the host and one program. It starts the program, relays its
//! output, and does not end before everything the program started has ended.

mod elsewhere;
#[cfg(target_os = "linux")]
mod nursery;
mod outbox;
#[cfg(target_os = "linux")]
mod proc;
mod program;
mod relay;
mod signals;
mod tree;
mod watch;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::unistd::{Pid, dup2_stderr, getpgid, getppid, setpgid, setsid};

use crate::container;
use crate::sys;
use crate::wire::{Frame, Order};
use crate::workspace;
use outbox::Outbox;
use watch::Watch;

#[cfg(target_os = "linux")]
pub(crate) use nursery::fork_keeper;

/// The first argument that makes the binary a keeper.
pub(crate) const MARKER: &str = "__keeper";

/// Becomes a keeper and does not return, if this process was started as one. The first statement of `main`: before
/// threads, a runtime or anything that takes time.
pub fn main_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == MARKER => {
            let code = if keep().is_ok() { 0 } else { 1 };
            sys::exit_now(code);
        }
        Some(first) if first == container::MARKER => container::run_inside(arguments),
        Some(first) if first == workspace::PROBE => {
            let root = arguments.next().unwrap_or_default();
            sys::exit_now(answer_probe(Path::new(&root)));
        }
        _ => {}
    }
}

/// Tries an overlay for a host that must not change its own namespaces for it. The reason goes to stdout.
fn answer_probe(root: &Path) -> i32 {
    match workspace::answer_probe(root) {
        Ok(()) => 0,
        Err(reason) => {
            let _ = io::Write::write_all(&mut io::stdout(), reason.as_bytes());
            let _ = io::Write::flush(&mut io::stdout());
            1
        }
    }
}

/// The binary to start as keeper: this one, even if it was replaced on disk since.
pub(crate) fn executable() -> &'static Path {
    #[cfg(target_os = "linux")]
    return Path::new("/proc/self/exe");
    #[cfg(not(target_os = "linux"))]
    {
        static EXECUTABLE: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
        EXECUTABLE.get_or_init(|| std::env::current_exe().unwrap_or_else(|_| "assize".into()))
    }
}

/// Ends what was started to start keepers, at the end of `main`: its use of the processor is counted as this process's own.
pub fn shut_down() {
    #[cfg(target_os = "linux")]
    nursery::shut_down();
}

fn keep() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if nursery::is_wanted() {
        sys::reset_signals();
        leave_terminal();
        match nursery::serve()? {
            nursery::Served::Keeper { rules } => return keep_one(rules),
            nursery::Served::HostGone => return Ok(()),
        }
    }
    sys::reset_signals();
    keep_one(None)
}

/// Keeps one program, inside the rules that the host made for it.
fn keep_one(rules: Option<OwnedFd>) -> io::Result<()> {
    sys::close_inherited_files(rules.as_ref());
    let signals = signals::Signals::block()?;
    leave_terminal();
    let order = receive_order()?;
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;

    let mut outbox = Outbox::to_host()?;
    match program::start(&order, rules) {
        Ok(program) => {
            hide_stdin_of_program()?;
            Watch::new(order, program, signals, outbox).run();
        }
        Err(errno) => {
            outbox.push(&Frame::Refused {
                errno: errno as i32,
            });
            outbox.flush_all();
        }
    }
    Ok(())
}

/// Ctrl-C in the terminal is for the host, which then decides. The host started us as leader of a group, so that we are
/// safe from the first moment; but a leader cannot begin a session, so the group is left first.
fn leave_terminal() {
    if let Ok(group) = getpgid(Some(getppid())) {
        let _ = setpgid(Pid::from_raw(0), group);
    }
    let _ = setsid();
}

/// Read without a buffer: bytes after the order are wishes of the host and stay in the pipe.
fn receive_order() -> io::Result<Order> {
    let mut control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut prefix = [0; 8];
    control.read_exact(&mut prefix)?;
    let length = Order::length(prefix).ok_or(io::ErrorKind::InvalidData)?;
    let mut body = vec![0; length];
    control.read_exact(&mut body)?;
    Order::decode(&body).ok_or(io::ErrorKind::InvalidData.into())
}

/// The keeper holds the program's stdin in place of its own stderr. If it kept it, the host would not learn that the
/// program stopped reading.
fn hide_stdin_of_program() -> io::Result<()> {
    Ok(dup2_stderr(File::options().write(true).open("/dev/null")?)?)
}
