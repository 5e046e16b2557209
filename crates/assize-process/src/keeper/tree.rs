//! The program and everything that came from it: finding, signalling, reaping, measuring.
//!
//! The keeper is child-subreaper, so "no child left to wait for" proves that no descendant lives. The walk is only
//! needed to know whom to signal.

use std::collections::HashSet;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::time::TimeVal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgid};

use crate::cgroup::Cgroup;
use crate::exit::{CpuTime, PeakMemory, Scope, Status};

pub(super) struct Tree {
    program: Pid,
    cgroup: Option<Cgroup>,
    status: Option<Status>,
    is_gone: bool,
    has_more_dead: bool,
}

/// So many dead are buried at a time: a tree that forks without end must not keep the keeper from killing it.
const BURIALS: usize = 1000;

impl Tree {
    pub(super) fn new(program: Pid, cgroup: Option<Cgroup>) -> Self {
        Self {
            program,
            cgroup,
            status: None,
            is_gone: false,
            has_more_dead: false,
        }
    }

    /// Reaps the processes that have died.
    pub(super) fn reap(&mut self) {
        for _ in 0..BURIALS {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return self.has_more_dead = false,
                Err(Errno::ECHILD) => return self.part(),
                Ok(WaitStatus::Exited(pid, code)) if pid == self.program => {
                    self.status = Some(Status::Exited(code));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.program => {
                    self.status = Some(Status::Signalled(signal as i32));
                }
                _ => {}
            }
        }
        self.has_more_dead = true;
    }

    /// There is no child left. Without a subreaper that is no evidence about other descendants, but the group is known.
    fn part(&mut self) {
        self.is_gone = true;
        #[cfg(not(target_os = "linux"))]
        let _ = killpg(self.program, Signal::SIGKILL);
    }

    /// True when there was no time to reap them all.
    pub(super) fn has_more_dead(&self) -> bool {
        self.has_more_dead
    }

    /// The exit status of the program itself, once it has ended.
    pub(super) fn status(&self) -> Option<Status> {
        self.status
    }

    /// True when no process is left.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The number of live processes besides the program itself. No more than a few thousand are counted.
    pub(super) fn count_others(&self) -> u32 {
        let living = match &self.cgroup {
            Some(cgroup) => cgroup.processes(),
            None => self.living(),
        };
        living.iter().filter(|&&pid| pid != self.program).count() as u32
    }

    pub(super) fn count(&self) -> u32 {
        self.living().len() as u32
    }

    /// Asks the program and its process group, as a terminal would. Processes that it put elsewhere are its own to clean up.
    pub(super) fn ask_program(&self, signal: Signal) {
        let _ = killpg(self.program, signal);
        let _ = killpg(self.program, Signal::SIGCONT);
    }

    /// Asks everything that lives.
    pub(super) fn ask_all(&self, signal: Signal) {
        for pid in self.living() {
            let _ = kill(pid, signal);
            let _ = kill(pid, Signal::SIGCONT);
        }
    }

    /// One round of killing. First, without looking twice, the keeper's own children: a program that forks and ends in
    /// a loop is always one of them. Then all others, all stopped before any is killed, so that none can replace
    /// the dead. A process that still escapes is a child of the keeper by the next round.
    pub(super) fn kill(&self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        // Once it is reaped its number may belong to a stranger.
        if self.status.is_none() {
            let _ = killpg(self.program, Signal::SIGKILL);
        }
        strike(
            || children(self.program),
            |pids| kill_each(pids, Signal::SIGKILL),
        );
        if !self.has_more_dead {
            let stop = |pids: &[Pid]| signal_with_groups(pids, Signal::SIGSTOP);
            let found = strike(|| self.living(), stop);
            signal_with_groups(&Vec::from_iter(found), Signal::SIGKILL);
        }
    }

    pub(super) fn cpu(&self) -> Option<CpuTime> {
        if let Some((user, system)) = self.cgroup.as_ref().and_then(Cgroup::cpu) {
            let scope = Scope::Tree;
            return Some(CpuTime {
                user,
                system,
                scope,
            });
        }
        reaped().map(|usage| CpuTime {
            user: duration(usage.user_time()),
            system: duration(usage.system_time()),
            scope: Scope::Reaped,
        })
    }

    pub(super) fn peak_memory(&self) -> Option<PeakMemory> {
        if let Some(bytes) = self.cgroup.as_ref().and_then(Cgroup::peak_memory) {
            return Some(PeakMemory {
                bytes,
                scope: Scope::Tree,
            });
        }
        let largest = u64::try_from(reaped()?.max_rss()).ok()?;
        let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
        Some(PeakMemory {
            bytes: largest * unit,
            scope: Scope::LargestProcess,
        })
    }

    fn living(&self) -> Vec<Pid> {
        descendants(self.program)
    }
}

/// Acts on those found until no new ones are, and returns all. Not for ever: the dead have to be reaped as well.
fn strike(find: impl Fn() -> Vec<Pid>, act: impl Fn(&[Pid])) -> HashSet<Pid> {
    let mut known = HashSet::new();
    for _ in 0..8 {
        let fresh: Vec<_> = find()
            .into_iter()
            .filter(|&pid| known.insert(pid))
            .collect();
        if fresh.is_empty() {
            break;
        }
        act(&fresh);
    }
    known
}

/// Groups come first: one is signalled at once, and no member can fork in between. All groups of descendants are
/// inside the tree, because the program began a session of its own.
fn signal_with_groups(pids: &[Pid], signal: Signal) {
    let groups: HashSet<_> = pids
        .iter()
        .filter_map(|&pid| getpgid(Some(pid)).ok())
        .collect();
    for group in groups {
        let _ = killpg(group, signal);
    }
    kill_each(pids, signal);
}

fn kill_each(pids: &[Pid], signal: Signal) {
    for &pid in pids {
        let _ = kill(pid, signal);
    }
}

fn reaped() -> Option<Usage> {
    getrusage(UsageWho::RUSAGE_CHILDREN).ok()
}

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000)
}

/// Everything below the keeper, parents before children, without the dead.
#[cfg(target_os = "linux")]
fn descendants(_program: Pid) -> Vec<Pid> {
    super::proc::descendants(Pid::this())
}

/// The keeper's own children, dead ones included: until they are reaped, no other process can have their number.
#[cfg(target_os = "linux")]
fn children(_program: Pid) -> Vec<Pid> {
    super::proc::children(Pid::this())
}

/// Without /proc only the program is known.
#[cfg(not(target_os = "linux"))]
fn descendants(program: Pid) -> Vec<Pid> {
    if kill(program, None).is_ok() {
        vec![program]
    } else {
        Vec::new()
    }
}

#[cfg(not(target_os = "linux"))]
fn children(program: Pid) -> Vec<Pid> {
    descendants(program)
}
