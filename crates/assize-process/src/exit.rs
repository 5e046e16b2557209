//! The end of a program, and the resource use of its whole tree.

use std::fmt;
use std::time::Duration;

use crate::wire::{Fields, Parser, nanos};

/// The end of a program and of everything it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The exit status of the program itself. Absent if it could not be ended, see `survivors`.
    pub status: Option<Status>,
    /// The reason why the keeper ended it. Absent if it ended by itself.
    pub stopped: Option<Stopped>,
    /// From the start of the program to its own end; what it left behind is not waited for here.
    pub wall: Duration,
    /// CPU time of the tree. Absent where the system does not report it.
    pub cpu: Option<CpuTime>,
    /// The most memory in use. Absent where the system does not report it.
    pub peak_memory: Option<PeakMemory>,
    /// The number of descendants that were still there when the program had ended (or had to be killed), and were ended.
    pub leftovers: u32,
    /// The number of processes that could not be ended within ten seconds, because they belong to another user or hang in the
    /// kernel. Zero unless something is very wrong.
    pub survivors: u32,
    /// The volume of stdout.
    pub stdout: Volume,
    /// The volume of stderr.
    pub stderr: Volume,
}

impl Exit {
    /// True when the program ended by itself with status 0. Agents do that after failures too: never the sole ground.
    pub fn is_success(&self) -> bool {
        self.status == Some(Status::Exited(0)) && self.stopped.is_none()
    }

    /// The end of the program, as the rest of a sentence: `ended with exit code 3`, `did not end within 200 ms`.
    pub fn in_words(&self, timeout: Duration) -> String {
        match (self.stopped, self.status) {
            (Some(Stopped::Cancelled), _) => "was ended from outside".to_owned(),
            (None, Some(status)) => format!("ended with {status}"),
            _ => format!("did not end within {} ms", timeout.as_millis()),
        }
    }
}

/// The exit status of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It returned this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(formatter, "exit code {code}"),
            Self::Signalled(signal) => write!(formatter, "signal {signal}"),
        }
    }
}

/// The reason why a program was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It ran longer than its timeout.
    TimedOut,
    /// The host asked for it, or went away.
    Cancelled,
}

/// CPU time, all threads and processes added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in programs.
    pub user: Duration,
    /// Time in the kernel on their behalf.
    pub system: Duration,
    /// [`Scope::Tree`] from a cgroup; else [`Scope::Reaped`].
    pub scope: Scope,
}

impl CpuTime {
    /// In programs and in the kernel together.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }
}

/// The most memory in use at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakMemory {
    /// Bytes.
    pub bytes: u64,
    /// [`Scope::Tree`] from a cgroup; else [`Scope::LargestProcess`].
    pub scope: Scope,
}

/// The processes that a measurement covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The whole tree, as counted by a cgroup.
    Tree,
    /// All processes that were waited for: the whole tree, except children of a parent that ignores SIGCHLD.
    Reaped,
    /// The one process with the largest resident set; the others are not added. Never less than the keeper itself,
    /// about three megabytes.
    LargestProcess,
}

/// Bytes of one output stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Volume {
    /// Written by the program.
    pub seen: u64,
    /// Passed on to the host; the rest was beyond the bound.
    pub kept: u64,
}

const SCOPES: [Scope; 3] = [Scope::Tree, Scope::Reaped, Scope::LargestProcess];

impl Exit {
    pub(crate) fn encode(&self, fields: &mut Fields) {
        let (kind, code) = match self.status {
            None => (0, 0),
            Some(Status::Exited(code)) => (1, code),
            Some(Status::Signalled(signal)) => (2, signal),
        };
        fields.put(kind);
        fields.put(code as u64);
        fields.put_optional(self.stopped.map(|why| u64::from(why == Stopped::Cancelled)));
        fields.put(nanos(self.wall));
        fields.put_optional(self.cpu.map(|cpu| nanos(cpu.user)));
        fields.put_optional(self.cpu.map(|cpu| nanos(cpu.system)));
        fields.put_optional(self.cpu.map(|cpu| cpu.scope as u64));
        fields.put_optional(self.peak_memory.map(|peak| peak.bytes));
        fields.put_optional(self.peak_memory.map(|peak| peak.scope as u64));
        fields.put(u64::from(self.leftovers));
        fields.put(u64::from(self.survivors));
        for volume in [self.stdout, self.stderr] {
            fields.put(volume.seen);
            fields.put(volume.kept);
        }
    }

    pub(crate) fn decode(parser: &mut Parser<'_>) -> Option<Self> {
        let (kind, code) = (parser.number()?, parser.number()? as i32);
        let status = match kind {
            0 => None,
            1 => Some(Status::Exited(code)),
            _ => Some(Status::Signalled(code)),
        };
        let stopped = parser.optional()?.map(|why| {
            if why == 1 {
                Stopped::Cancelled
            } else {
                Stopped::TimedOut
            }
        });
        let wall = Duration::from_nanos(parser.number()?);
        let cpu = decode_cpu(parser)?;
        let bytes = parser.optional()?;
        let covers = parser.optional()?.and_then(scope);
        let peak_memory = bytes
            .zip(covers)
            .map(|(bytes, scope)| PeakMemory { bytes, scope });
        let leftovers = u32::try_from(parser.number()?).ok()?;
        let survivors = u32::try_from(parser.number()?).ok()?;
        let stdout = Volume {
            seen: parser.number()?,
            kept: parser.number()?,
        };
        let stderr = Volume {
            seen: parser.number()?,
            kept: parser.number()?,
        };
        Some(Self {
            status,
            stopped,
            wall,
            cpu,
            peak_memory,
            leftovers,
            survivors,
            stdout,
            stderr,
        })
    }
}

/// The outer `None` is an unreadable message, the inner one an absent measurement.
fn decode_cpu(parser: &mut Parser<'_>) -> Option<Option<CpuTime>> {
    let (user, system) = (parser.optional()?, parser.optional()?);
    let covers = parser.optional()?.and_then(scope);
    let times = user.zip(system).zip(covers);
    Some(times.map(|((user, system), scope)| CpuTime {
        user: Duration::from_nanos(user),
        system: Duration::from_nanos(system),
        scope,
    }))
}

fn scope(number: u64) -> Option<Scope> {
    SCOPES.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Frame;

    fn check(exit: Exit) {
        let mut wire = Vec::new();
        Frame::Ended(exit.clone()).encode(&mut wire);
        assert_eq!(Frame::take(&mut wire).unwrap(), Some(Frame::Ended(exit)));
    }

    fn exit() -> Exit {
        Exit {
            status: Some(Status::Signalled(9)),
            stopped: Some(Stopped::TimedOut),
            wall: Duration::from_millis(12),
            cpu: Some(CpuTime {
                user: Duration::from_micros(3),
                system: Duration::ZERO,
                scope: Scope::Reaped,
            }),
            peak_memory: Some(PeakMemory {
                bytes: 4096,
                scope: Scope::LargestProcess,
            }),
            leftovers: 2,
            survivors: 0,
            stdout: Volume { seen: 10, kept: 5 },
            stderr: Volume::default(),
        }
    }

    #[test]
    fn an_exit_arrives_as_it_was_sent() {
        check(exit());
        check(Exit {
            status: None,
            stopped: None,
            cpu: None,
            peak_memory: None,
            survivors: 1,
            ..exit()
        });
        check(Exit {
            status: Some(Status::Exited(-1)),
            stopped: Some(Stopped::Cancelled),
            ..exit()
        });
    }

    #[test]
    fn a_stopped_program_is_no_success_even_with_status_0() {
        let exit = Exit {
            status: Some(Status::Exited(0)),
            ..exit()
        };
        assert!(!exit.is_success());
        assert!(
            Exit {
                stopped: None,
                ..exit
            }
            .is_success()
        );
    }
}
