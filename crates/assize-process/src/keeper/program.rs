//! Starting the program: its own session, the given directory, environment and files, and nothing else.

use std::convert::Infallible;
use std::ffi::{CString, OsStr};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execve, setsid, write};

use crate::cgroup::Cgroup;
#[cfg(target_os = "linux")]
use crate::fence::Fence;
use crate::lookup;
use crate::sys;
use crate::wire::Order;

/// A program that runs.
pub(super) struct Program {
    pub(super) pid: Pid,
    pub(super) started: Instant,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) cgroup: Option<Cgroup>,
}

/// Returns when the program has replaced the forked keeper, or with what the system said against it. The rules are those that the
/// host made for a guarded program.
pub(super) fn start(order: &Order, rules: Option<OwnedFd>) -> Result<Program, Errno> {
    let image = Image::new(order, rules)?;
    let (stdout, program_stdout) = io::pipe().map_err(errno)?;
    let (stderr, program_stderr) = io::pipe().map_err(errno)?;
    // Closed by a successful exec; else it carries the reason.
    let (mut refusal, program_refusal) = io::pipe().map_err(errno)?;
    let cgroup = order.cgroup_parent.as_deref().and_then(Cgroup::create);
    let keeper = Pid::this();

    let started = Instant::now();
    let (program_stdout, program_stderr) = (program_stdout.into(), program_stderr.into());
    let mut child = || {
        let Err(errno) = image.become_program(keeper, &program_stdout, &program_stderr);
        let _ = write(&program_refusal, &(errno as i32).to_ne_bytes());
        sys::exit_now(127);
    };
    let (pid, cgroup) = spawn(cgroup, &mut child)?;
    drop((program_stdout, program_stderr, program_refusal));
    let mut code = [0; 4];
    match refusal.read_exact(&mut code) {
        Ok(()) => {
            // It must be gone before its cgroup can be removed.
            let _ = waitpid(pid, None);
            Err(Errno::from_raw(i32::from_ne_bytes(code)))
        }
        Err(_) => Ok(Program {
            pid,
            started,
            stdout: stdout.into(),
            stderr: stderr.into(),
            cgroup,
        }),
    }
}

/// Starts `child`, which does not return, in a process of its own.
fn spawn(cgroup: Option<Cgroup>, child: &mut dyn FnMut()) -> Result<(Pid, Option<Cgroup>), Errno> {
    if let Some(cgroup) = cgroup {
        let directory = cgroup.directory();
        let spawned = sys::spawn_lent(Some(directory), child);
        let spawned = spawned.or_else(|_| as_parent(sys::fork_into(cgroup.directory())?, child));
        if let Ok(pid) = spawned {
            return Ok((pid, Some(cgroup)));
        }
    }
    let spawned = sys::spawn_lent(None, child);
    let pid = spawned.or_else(|_| as_parent(sys::fork()?, child))?;
    Ok((pid, None))
}

/// Goes on in the parent only.
fn as_parent(forked: Option<Pid>, child: &mut dyn FnMut()) -> Result<Pid, Errno> {
    match forked {
        Some(pid) => Ok(pid),
        None => {
            child();
            sys::exit_now(127)
        }
    }
}

/// Everything the child needs, made before the fork.
struct Image<'a> {
    order: &'a Order,
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    #[cfg(target_os = "linux")]
    fence: Option<Fence>,
}

impl<'a> Image<'a> {
    fn new(order: &'a Order, rules: Option<OwnedFd>) -> Result<Self, Errno> {
        let program = order
            .argv
            .first()
            .filter(|program| !program.is_empty())
            .ok_or(Errno::ENOENT)?;
        let candidates = lookup::candidates(program, &order.env);
        Ok(Self {
            order,
            candidates: candidates
                .iter()
                .map(|path| c_string(path.as_os_str()))
                .collect::<Result<_, _>>()?,
            argv: order
                .argv
                .iter()
                .map(|argument| c_string(argument))
                .collect::<Result<_, _>>()?,
            env: order
                .env
                .iter()
                .map(|(name, value)| variable(name, value))
                .collect::<Result<_, _>>()?,
            #[cfg(target_os = "linux")]
            fence: fence(order, rules)?,
        })
    }

    /// Runs in the child; returns only if it must not become the program. The child may share the memory of the keeper, so nothing
    /// is changed there.
    fn become_program(
        &self,
        keeper: Pid,
        stdout: &OwnedFd,
        stderr: &OwnedFd,
    ) -> Result<Infallible, Errno> {
        setsid()?;
        die_with(keeper)?;
        // The keeper found the program's stdin in place of its own stderr.
        dup2_stdin(io::stderr())?;
        dup2_stdout(stdout)?;
        dup2_stderr(stderr)?;
        if let Some(terminal) = &self.order.terminal {
            take_terminal(terminal)?;
        }
        if let Some(soft) = self.order.open_files {
            let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
            setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)?;
        }
        chdir(&self.order.cwd)?;
        SigSet::empty().thread_set_mask()?;
        #[cfg(target_os = "linux")]
        if let Some(fence) = &self.fence {
            fence.enter()?;
        }
        Err(self.execute_first_found())
    }

    /// As the shell does: a candidate that may not be run does not end the search, but is remembered.
    fn execute_first_found(&self) -> Errno {
        let mut reason = Errno::ENOENT;
        for candidate in &self.candidates {
            match execve(candidate, &self.argv, &self.env) {
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(Errno::EACCES) => reason = Errno::EACCES,
                Err(other) => return other,
                Ok(never) => match never {},
            }
        }
        reason
    }
}

/// A guarded program without rules must not run.
#[cfg(target_os = "linux")]
fn fence(order: &Order, rules: Option<OwnedFd>) -> Result<Option<Fence>, Errno> {
    match (&order.guard, rules) {
        (None, _) => Ok(None),
        (Some(_), Some(rules)) => Ok(Some(Fence::received(rules))),
        (Some(guard), None) => Fence::new(guard).map(Some),
    }
}

/// The first terminal that the leader of a session opens becomes its controlling one, by which Ctrl-C reaches it.
fn take_terminal(path: &Path) -> Result<(), Errno> {
    let terminal = nix::fcntl::open(path, OFlag::O_RDWR, Mode::empty())?;
    sys::control_terminal(terminal.as_fd());
    dup2_stdin(&terminal)?;
    dup2_stdout(&terminal)?;
    dup2_stderr(&terminal)
}

/// If the keeper itself is killed, the program at least does not outlive it.
#[cfg(target_os = "linux")]
fn die_with(keeper: Pid) -> Result<(), Errno> {
    use nix::sys::{prctl, signal::Signal};

    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // It may have died before we asked.
    if nix::unistd::getppid() == keeper {
        Ok(())
    } else {
        Err(Errno::ESRCH)
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with(_keeper: Pid) -> Result<(), Errno> {
    Ok(())
}

fn variable(name: &OsStr, value: &OsStr) -> Result<CString, Errno> {
    let mut variable = name.to_owned();
    variable.push("=");
    variable.push(value);
    c_string(&variable)
}

fn c_string(text: &OsStr) -> Result<CString, Errno> {
    CString::new(text.as_bytes()).map_err(|_| Errno::EINVAL)
}

fn errno(error: io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
