//! Errors outside the program that is run. The end of a program is no error, see `exit.rs`.

use std::io;
use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why something could not be run, copied, recorded or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is not there, may not be run, or its directory is missing.
    #[error("cannot start `{program}` in `{cwd}`")]
    NotStarted {
        /// As written.
        program: PathBuf,
        /// Its working directory.
        cwd: PathBuf,
        /// Advice, where a way out is known.
        hint: Option<String>,
        /// The error of the system.
        #[source]
        source: io::Error,
    },

    /// The host binary could not start itself.
    #[error("cannot start the keeper of `{program}`")]
    KeeperNotStarted {
        /// The program it should have kept.
        program: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },

    /// The keeper was killed, or its messages could not be read. Its program is killed with it.
    #[error("the keeper of `{program}` ended without a report")]
    KeeperLost {
        /// The program it kept.
        program: PathBuf,
    },

    /// A file or directory of a workspace could not be read or written.
    #[error("cannot {action} `{path}`")]
    File {
        /// A verb: `copy`, `read`, `remove`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },

    /// Git refused, for example because there is no such revision.
    #[error("git cannot check out `{revision}` of `{repository}`: {message}")]
    Git {
        /// The repository it was copied from.
        repository: PathBuf,
        /// A commit, tag or branch.
        revision: String,
        /// The last words of git.
        message: String,
    },

    /// A workspace cannot be made by the method that was asked for.
    #[error("workspaces cannot be made by `{method}` here: {reason}")]
    Method {
        /// As in suites.
        method: &'static str,
        /// The attempt, and why it failed.
        reason: String,
    },

    /// No container engine answers.
    #[error("there is no container engine here ({reasons})")]
    NoEngine {
        /// Each that was tried, and why it cannot be used.
        reasons: String,
    },

    /// A container engine refused.
    #[error("{engine} cannot {action}: {message}")]
    Engine {
        /// Its program.
        engine: &'static str,
        /// Completes "cannot …".
        action: String,
        /// Its last words.
        message: String,
    },

    /// A container whose health check fails.
    #[error(
        "the container is not healthy: `{command}` failed {failures} times in a row: {message}"
    )]
    Unhealthy {
        /// The health check.
        command: String,
        /// The number of failures.
        failures: u32,
        /// Its last words.
        message: String,
    },

    /// A set-up command of a container that failed.
    #[error("the container could not be set up by `{command}`: {message}")]
    ContainerSetup {
        command: String,
        /// Its exit and output.
        message: String,
    },

    /// An agent that cannot be added to an image.
    #[error("`{agent}` cannot be added to an image: {message}")]
    Installation {
        agent: String,
        /// The reason.
        message: String,
    },

    /// A path that cannot be given to an engine.
    #[error(
        "`{path}` cannot be mounted into a container: found a comma, a quote or bytes that are no text"
    )]
    Mount { path: PathBuf },

    /// This program cannot run inside containers, where it would lead agents to their models.
    #[error("`{program}` cannot run inside a container: it is {}", if *is_dynamic { "dynamically linked" } else { "no program for Linux" })]
    NotStatic {
        program: PathBuf,
        /// It is a program for Linux.
        is_dynamic: bool,
    },

    /// An archive of changes names a path outside the workspace, or is no such archive.
    #[error("`{archive}` holds an entry that cannot be restored: `{entry}`")]
    Archive {
        archive: PathBuf,
        /// The path or the kind of the entry.
        entry: String,
    },
}

impl Error {
    /// Advice in one line, where a way out is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::NotStarted { hint, .. } => hint.as_deref(),
            Self::KeeperNotStarted { source, .. } if is_shortage(source) => Some(
                "run fewer at once, or raise the limits of open files and processes (`ulimit -n`, `ulimit -u`)",
            ),
            Self::NoEngine { .. } => {
                Some("install podman or docker and start it; `assize doctor` says what it finds")
            }
            Self::NotStatic { .. } => Some(
                "use a released `assize`, or build one with `make dist` (RUSTFLAGS=\"-C target-feature=+crt-static\"), or name one in ASSIZE_INSIDE",
            ),
            Self::Engine { message, .. } => hint_of_engine(message),
            Self::Method { .. } => Some(
                "`workspace.method: auto` takes the best that this machine has; `assize doctor` lists it",
            ),
            _ => None,
        }
    }

    /// The error with its cause and the way out, on one line: for records that have room for one.
    pub fn explained(&self) -> String {
        // Where the reason is known, the words of the system and the place add nothing.
        if let Self::NotStarted {
            program,
            hint: Some(hint),
            source,
            ..
        } = self
            && source.kind() == io::ErrorKind::NotFound
        {
            return format!("cannot start `{}`: {hint}", program.display());
        }
        let mut text = self.to_string();
        if let Some(cause) = std::error::Error::source(self) {
            text.push_str(&format!(": {cause}"));
        }
        if let Some(hint) = self.hint() {
            text.push_str(&format!(" (hint: {hint})"));
        }
        text
    }

    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}

/// Advice on common errors of engines.
fn hint_of_engine(message: &str) -> Option<&'static str> {
    const HINTS: [(&str, &str); 4] = [
        (
            "executable file not found",
            "the program is not in the image; `assize image build --agent AGENT --from IMAGE` adds an agent",
        ),
        (
            "setting rlimit",
            "the engine asks for higher limits than this machine allows: raise `ulimit -Hn` and `ulimit -Hu`",
        ),
        (
            "permission denied while trying to connect",
            "let your user reach the engine, or use podman, which needs no service",
        ),
        (
            "short-name",
            "write the image with its registry, such as `localhost/NAME` for one that was built here",
        ),
    ];
    let found = HINTS.iter().find(|(part, _)| message.contains(part));
    found.map(|(_, hint)| *hint)
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::ENOMEM)
    )
}
