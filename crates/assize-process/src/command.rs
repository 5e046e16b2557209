//! A program to run and its limits. Starting it is in `running.rs`, the convenience of waiting in `output.rs`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::environment::host_value;
use crate::guard::Guard;
use crate::wire::Order;
use crate::{cgroup, open_files};

/// Variables of the host that programs usually cannot do without and that hold no secrets.
pub const USUAL_ENVIRONMENT: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
];

/// A program to run under a keeper. Nothing is inherited: environment, directory and stdin are as given here.
#[derive(Clone)]
pub struct Command {
    /// The program and its arguments. A name without `/` is searched in `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// The whole environment, in this order.
    pub env: Vec<(OsString, OsString)>,
    /// The directory the program starts in; a relative program path is relative to it.
    pub cwd: PathBuf,
    /// The program's input.
    pub stdin: Stdin,
    /// The amount of stdout that is kept.
    pub stdout: Bound,
    /// The amount of stderr that is kept.
    pub stderr: Bound,
    /// Time limit of the program. `None`: no limit.
    pub timeout: Option<Duration>,
    /// The signal that asks the program to end, before it is killed. Agents differ in which one makes them clean up.
    pub polite_signal: Signal,
    /// The time it may take to end after having been asked.
    pub grace: Duration,
    /// The terminal that the program gets for all three streams, see [`Terminal`](crate::Terminal). Its output then comes
    /// out there, and `stdin`, `stdout` and `stderr` mean nothing.
    pub terminal: Option<PathBuf>,
    /// True to use a cgroup where one can be made. There is no need to turn this off except to compare.
    pub use_cgroup: bool,
    /// The permissions of the program, where they are limited.
    pub guard: Option<Guard>,
    /// For a program that only speaks for what runs elsewhere: how that is ended.
    pub elsewhere: Option<Elsewhere>,
}

/// The way to end something that a program stands for but did not start itself, such as what the client of a container engine
/// runs. The commands get the program's environment and directory; their output is dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Run in place of the polite signal. Empty: the program is signalled as any other.
    pub ask: Vec<OsString>,
    /// Run by the keeper when the program was stopped, also after the death of the host.
    pub end: Vec<OsString>,
    /// Run `end` also when the program ended by itself.
    pub always: bool,
}

/// The program's stdin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    #[default]
    Closed,
    /// These bytes, then the end. A program that does not read them is no error.
    Bytes(Vec<u8>),
    /// A pipe that the host writes to, see [`Running::take_stdin`](crate::Running::take_stdin).
    Piped,
}

/// The part of an output stream that is kept: its beginning as it comes and, once that is full, its end.
/// The bytes between are counted and dropped; the program never waits for this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Bytes kept from the beginning.
    pub head: u64,
    /// Bytes kept from the end, delivered when the program has ended. The keeper holds them, 16 megabytes at most.
    pub tail: u64,
}

const LONGEST_TAIL: u64 = 16 << 20;

impl Bound {
    fn within_reason(self) -> Self {
        Self {
            head: self.head,
            tail: self.tail.min(LONGEST_TAIL),
        }
    }
}

impl Default for Bound {
    /// Eight megabytes and the last 64 kilobytes.
    fn default() -> Self {
        Self {
            head: 8 << 20,
            tail: 64 << 10,
        }
    }
}

impl Command {
    /// A program without arguments and with an empty environment.
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self::from_argv([program.into()], cwd)
    }

    /// A program with its arguments, as in a suite file.
    pub fn from_argv<A: Into<OsString>>(
        argv: impl IntoIterator<Item = A>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: cwd.into(),
            stdin: Stdin::default(),
            stdout: Bound::default(),
            stderr: Bound::default(),
            timeout: None,
            polite_signal: Signal::SIGTERM,
            grace: Duration::from_secs(5),
            terminal: None,
            use_cgroup: true,
            guard: None,
            elsewhere: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.argv.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.argv.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable, in place of one with the same name.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.into()));
        self
    }

    /// Passes a variable of the host on, if it is set there.
    pub fn pass_env(self, name: impl AsRef<OsStr>) -> Self {
        match host_value(&name) {
            Some(value) => self.env(name.as_ref(), value),
            None => self,
        }
    }

    /// Passes the usual variables of the host on ([`USUAL_ENVIRONMENT`]) and says that there is no terminal.
    pub fn pass_usual_env(self) -> Self {
        let passed = USUAL_ENVIRONMENT
            .into_iter()
            .fold(self, |command, name| command.pass_env(name));
        passed.env("TERM", "dumb")
    }

    /// Sets what the program reads.
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Bounds both output streams.
    pub fn bound(mut self, bound: Bound) -> Self {
        (self.stdout, self.stderr) = (bound, bound);
        self
    }

    /// Sets how long the program may run.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how the program is asked to end and how long it may take for it.
    pub fn polite(mut self, signal: Signal, grace: Duration) -> Self {
        (self.polite_signal, self.grace) = (signal, grace);
        self
    }

    /// Limits what the program and everything it starts may do. Where the kernel knows only some of the rules, only those
    /// are in force, see [`GuardVersion`](crate::GuardVersion).
    pub fn guarded(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Keeps the tree without a cgroup.
    pub fn without_cgroup(mut self) -> Self {
        self.use_cgroup = false;
        self
    }

    /// The program as written, for messages. Empty if there is none.
    pub(crate) fn program(&self) -> &Path {
        Path::new(self.argv.first().map_or(OsStr::new(""), |program| program))
    }

    pub(crate) fn order(&self) -> Order {
        Order {
            argv: self.argv.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            timeout: self.timeout,
            polite_signal: self.polite_signal as i32,
            grace: self.grace,
            stdout: self.stdout.within_reason(),
            stderr: self.stderr.within_reason(),
            terminal: self.terminal.clone(),
            cgroup_parent: self.use_cgroup.then(cgroup::parent).flatten(),
            open_files: open_files::before_raising(),
            guard: self.guard.clone(),
            elsewhere: self.elsewhere.clone(),
        }
    }
}

impl fmt::Debug for Command {
    /// Without the values of the environment and without stdin, which may be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("Command")
            .field("argv", &self.argv)
            .field("env", &names)
            .field("cwd", &self.cwd)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let command = Command::new("x", "/")
            .env("KEY", "secret")
            .stdin(Stdin::Bytes(b"secret".to_vec()));
        let shown = format!("{command:?}");
        assert!(
            shown.contains("KEY") && !shown.contains("secret") && !shown.contains("115"),
            "{shown}"
        );
    }

    #[test]
    fn a_variable_set_twice_is_passed_once() {
        let command = Command::new("x", "/")
            .env("A", "1")
            .env("B", "2")
            .env("A", "3");
        assert_eq!(
            command.env,
            [("B".into(), "2".into()), ("A".into(), OsString::from("3"))]
        );
    }
}
