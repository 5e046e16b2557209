//! Finds the container engine, and calls its client.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};

use crate::command::{Bound, Command};
use crate::environment::host_variable;
use crate::error::{Error, Result};
use crate::output::Output;

/// A question that is not answered within this will not be.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Bytes kept of an answer from each end.
const ANSWER: u64 = 256 << 10;

/// The limit of open files that engines give to containers; a host may allow less, and then none would start.
const USUAL_OPEN_FILES: u64 = 1 << 20;

/// Runtimes that limit the number of processes at all do not raise it above this.
const MOST_PROCESSES: u64 = 32_768;

/// Variables of the host that clients of engines read.
pub(super) const CLIENT_VARIABLES: [&str; 28] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
    "CONTAINER_SSHKEY",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "STORAGE_DRIVER",
    "CONTAINERD_ADDRESS",
    "CONTAINERD_NAMESPACE",
    "NERDCTL_TOML",
    "REGISTRY_AUTH_FILE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// The kinds of engines whose command lines are alike enough to be driven the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineKind {
    Docker,
    /// Podman, with or without root.
    Podman,
    /// The command line of containerd. Not tested.
    Nerdctl,
}

/// A container engine that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    kind: EngineKind,
    version: String,
    is_remote: bool,
}

impl EngineKind {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Docker, Self::Podman, Self::Nerdctl];

    /// The program and the word in suites.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Nerdctl => "nerdctl",
        }
    }

    /// The engine of that word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Asks for the version of what really runs containers, so that a client without an engine is found out.
    fn question(self) -> [&'static str; 3] {
        match self {
            Self::Docker => ["version", "--format", "{{.Server.Version}}"],
            Self::Podman => [
                "info",
                "--format",
                "{{.Version.Version}} {{.Host.ServiceIsRemote}}",
            ],
            Self::Nerdctl => ["info", "--format", "{{.ServerVersion}}"],
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Engine {
    /// The engine of this kind, or the first that answers.
    pub async fn find(wanted: Option<EngineKind>) -> Result<Self> {
        let kinds: Vec<EngineKind> = match wanted {
            Some(kind) => vec![kind],
            None => EngineKind::ALL.to_vec(),
        };
        let mut reasons = Vec::new();
        for kind in kinds {
            match Self::ask(kind).await {
                Ok(engine) => return Ok(engine),
                Err(reason) => reasons.push(format!("{kind}: {reason}")),
            }
        }
        Err(Error::NoEngine {
            reasons: reasons.join("; "),
        })
    }

    /// `Err` says in a few words why the engine cannot be used.
    async fn ask(kind: EngineKind) -> Result<Self, String> {
        let output = client(kind, kind.question())
            .timeout(Duration::from_secs(20))
            .run_to_end()
            .await
            .map_err(|error| match error {
                Error::NotStarted { .. } => "not installed".to_owned(),
                other => other.to_string(),
            })?;
        let answer = output.stdout.text().trim().to_owned();
        if !output.exit.is_success() || answer.is_empty() {
            let message = output.stderr.last_words(300);
            let message = message.lines().last().unwrap_or("no answer");
            return Err(message.trim().to_owned());
        }
        let (version, rest) = answer.split_once(' ').unwrap_or((&answer, ""));
        Ok(Self {
            kind,
            version: version.to_owned(),
            is_remote: match kind {
                EngineKind::Docker => is_docker_remote().await,
                EngineKind::Podman => rest == "true",
                EngineKind::Nerdctl => false,
            },
        })
    }

    /// The kind of engine.
    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// The version of the engine, not of its client.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Containers run on another machine: paths and sockets of this one cannot be mounted there.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// A call of the client.
    pub(super) fn command<A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        client(self.kind, arguments)
    }

    /// Words of a call of the client, for keepers.
    pub(super) fn words<const N: usize>(&self, arguments: [&str; N]) -> Vec<OsString> {
        let program = OsString::from(self.kind.as_str());
        let arguments = arguments.into_iter().map(OsString::from);
        std::iter::once(program).chain(arguments).collect()
    }

    /// Options that keep limits of containers within those of this process.
    pub(super) fn ulimits(&self) -> Vec<OsString> {
        let limits = [
            ("nofile", Resource::RLIMIT_NOFILE, USUAL_OPEN_FILES),
            ("nproc", Resource::RLIMIT_NPROC, MOST_PROCESSES),
        ];
        let lower = limits.into_iter().filter_map(|(name, resource, most)| {
            let (_, hard) = getrlimit(resource).ok()?;
            let limit = hard.min(most);
            (hard < USUAL_OPEN_FILES).then(|| format!("{name}={limit}:{limit}"))
        });
        let options = lower.flat_map(|limit| ["--ulimit".to_owned(), limit]);
        options.map(OsString::from).collect()
    }

    /// Removes a container at once, with its processes.
    pub(super) fn removal(&self, name: &str) -> Vec<OsString> {
        match self.kind {
            EngineKind::Podman => self.words(["rm", "-f", "-t", "0", name]),
            _ => self.words(["rm", "-f", name]),
        }
    }

    /// Calls the client and returns what it printed. `action` completes "cannot …".
    pub(super) async fn call<A: Into<OsString>>(
        &self,
        action: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<String> {
        let command = self.command(arguments).timeout(ANSWER_LIMIT);
        self.finish(action, command).await
    }

    /// Runs a call of the client to its end.
    pub(super) async fn finish(&self, action: &str, command: Command) -> Result<String> {
        let timeout = command.timeout.unwrap_or(Duration::MAX);
        let output = command.run_to_end().await?;
        match output.exit.is_success() {
            true => Ok(output.stdout.text().trim_end().to_owned()),
            false => Err(self.failure(action, &output, timeout)),
        }
    }

    /// The error of a call that did not end well.
    pub(super) fn failure(&self, action: &str, output: &Output, timeout: Duration) -> Error {
        let message = output.stderr.last_words(600);
        let message = match message.trim() {
            "" => output.exit.in_words(timeout),
            message => message.to_owned(),
        };
        self.refused(action, &message)
    }

    pub(super) fn refused(&self, action: &str, message: &str) -> Error {
        Error::Engine {
            engine: self.kind.as_str(),
            action: action.to_owned(),
            message: message.to_owned(),
        }
    }
}

fn client<A: Into<OsString>>(kind: EngineKind, arguments: impl IntoIterator<Item = A>) -> Command {
    let command = Command::new(kind.as_str(), "/").args(arguments);
    CLIENT_VARIABLES
        .into_iter()
        .fold(command, |command, name| command.pass_env(OsStr::new(name)))
        .bound(Bound {
            head: ANSWER,
            tail: ANSWER,
        })
        // Engines put what they start into groups of their own.
        .without_cgroup()
}

/// An address that is no local socket, in the variable or in the chosen context.
async fn is_docker_remote() -> bool {
    let is_far = |address: &str| !address.is_empty() && !address.starts_with("unix://");
    if let Some(address) = host_variable("DOCKER_HOST") {
        return is_far(&address);
    }
    let question = [
        "context",
        "inspect",
        "--format",
        "{{.Endpoints.docker.Host}}",
    ];
    let answer = client(EngineKind::Docker, question)
        .timeout(Duration::from_secs(10))
        .run_to_end()
        .await;
    answer.is_ok_and(|answer| answer.exit.is_success() && is_far(answer.stdout.text().trim()))
}
