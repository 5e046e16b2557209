//! One container, from its start to its removal, and programs inside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::command::{Command, Elsewhere, Stdin};
use crate::error::{Error, Result};
use crate::lines::LineSplitter;
use crate::output::Captured;
use crate::running::{Running, Stream};

use super::engine::{CLIENT_VARIABLES, Engine, EngineKind};
use super::inside::{MARKER, READY};
use super::linkage::{Linkage, linkage_of};
use super::sweep::owner_labels;
use super::usage::{Cgroups, ContainerUse};

/// Engines wedge when dozens of containers start at once.
static STARTS: Semaphore = Semaphore::const_new(4);

/// Time limit for starting a container. Pulling its image is done before.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Time limit for copying in or out.
const COPY_LIMIT: Duration = Duration::from_secs(600);

/// A container may hold this many processes.
const MOST_PROCESSES: &str = "4096";

/// The first process where the binary cannot be it: passes signals on and idles. `$0` is the container's name.
const IDLE_SCRIPT: &str = "for s in HUP INT QUIT TERM USR1 USR2; do trap \"kill -$s -1\" $s; done; \
     echo assize-container-ready; while :; do sleep 3600 & wait $!; done";

/// A container to start.
#[derive(Debug, Clone, Default)]
pub struct ContainerSpec {
    /// The image, which must be there already.
    pub image: String,
    /// The run it belongs to, for its labels.
    pub run: String,
    /// The trial it belongs to, for its labels.
    pub trial: String,
    /// The number of processors it may use.
    pub cpus: Option<f64>,
    /// The memory it may use, swap included.
    pub memory_mb: Option<u64>,
    /// It has the engine's network. Else it has none.
    pub has_network: bool,
    /// The only way out of a container without network.
    pub forward: Option<Forward>,
    /// Directories of this machine that it sees.
    pub mounts: Vec<Mount>,
    /// The user of its programs. Absent: the image's.
    pub user: Option<String>,
    /// The directory its programs start in. Absent: the image's.
    pub workdir: Option<String>,
    /// Variables of its programs, over the image's.
    pub environment: BTreeMap<String, String>,
}

impl ContainerSpec {
    fn writable_directories(&self) -> Vec<PathBuf> {
        // Only what has the same path inside and outside is Assize's own.
        let own = self.mounts.iter().filter(|mount| {
            mount.is_writable && mount.source == mount.target && mount.source.is_dir()
        });
        own.map(|mount| mount.target.clone()).collect()
    }
}

/// A port on the loopback inside that leads to a socket on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// The port inside.
    pub port: u16,
    /// The socket outside.
    pub socket: PathBuf,
}

/// A file or directory of this machine that a container sees. With an engine elsewhere a writable one is copied in, and
/// copied out by [`Container::fetch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// On this machine.
    pub source: PathBuf,
    /// Inside.
    pub target: PathBuf,
    /// Programs inside may change it.
    pub is_writable: bool,
}

impl Mount {
    /// A directory that programs may change, under the same path inside as outside.
    pub fn same(path: impl Into<PathBuf>) -> Self {
        let source = path.into();
        Self {
            target: source.clone(),
            source,
            is_writable: true,
        }
    }

    fn option(&self) -> Result<String> {
        let refuse = |path: &Path| Error::Mount {
            path: path.to_owned(),
        };
        let text = |path: &Path| match path.to_str() {
            Some(text) if !text.contains([',', '"', '\n']) => Ok(text.to_owned()),
            _ => Err(refuse(path)),
        };
        let (source, target) = (text(&self.source)?, text(&self.target)?);
        let end = if self.is_writable { "" } else { ",readonly" };
        Ok(format!("type=bind,source={source},target={target}{end}"))
    }
}

/// The settings for starting a program inside.
#[derive(Debug, Clone, Default)]
pub struct Within {
    /// Its directory. Absent: the container's.
    pub workdir: Option<PathBuf>,
    /// Its user. Absent: the container's.
    pub user: Option<String>,
}

/// A container that runs. Dropping it removes it.
pub struct Container {
    engine: Engine,
    name: String,
    /// The client that holds it. Ending that ends the container.
    client: Mutex<Option<Running>>,
    cgroups: Option<Cgroups>,
    user: Option<String>,
    workdir: Option<String>,
    /// Directories that are copied out again, with an engine elsewhere.
    copied: Vec<Mount>,
    /// Directories of this machine that programs inside may change.
    shared: Vec<PathBuf>,
}

impl Container {
    /// Starts a container and waits until it is ready.
    pub async fn start(engine: &Engine, spec: &ContainerSpec) -> Result<Self> {
        let name = unique_name(&spec.run);
        let command = run_command(engine, spec, &name)?;
        // The semaphore is never closed.
        let place = STARTS.acquire().await.ok();
        let client = await_ready(engine, command).await?;
        drop(place);
        let mut container = Self {
            engine: engine.clone(),
            client: Mutex::new(Some(client)),
            cgroups: None,
            user: spec.user.clone(),
            workdir: spec.workdir.clone(),
            copied: Vec::new(),
            shared: spec.writable_directories(),
            name,
        };
        if engine.is_remote() {
            container.send(&spec.mounts).await?;
        } else {
            container.cgroups = container.find_cgroups().await;
        }
        if let Some(user) = &spec.user {
            container.give_to(user).await?;
        }
        tracing::info!(
            container = container.name,
            image = spec.image,
            "started a container"
        );
        Ok(container)
    }

    /// A container that was started elsewhere. Dropping this does nothing to it.
    pub fn attach(engine: &Engine, name: &str) -> Self {
        Self {
            engine: engine.clone(),
            name: name.to_owned(),
            client: Mutex::new(None),
            cgroups: None,
            user: None,
            workdir: None,
            copied: Vec::new(),
            shared: Vec::new(),
        }
    }

    /// The name by which the engine knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The engine that runs it.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The same program inside: with these arguments and variables, and no others of this machine.
    pub fn exec(&self, command: Command, within: &Within) -> Command {
        let Command {
            argv,
            env,
            stdin,
            stdout,
            stderr,
            timeout,
            polite_signal,
            grace,
            ..
        } = command;
        let mut call = self.engine.command(["exec"]);
        if stdin != Stdin::Closed {
            call = call.arg("-i");
        }
        let user = within.user.as_ref().or(self.user.as_ref());
        if let Some(user) = user {
            call = call.args(["--user", user]);
        }
        let workdir = within.workdir.as_deref();
        if let Some(workdir) = workdir.or(self.workdir.as_deref().map(Path::new)) {
            call = call.arg("--workdir").arg(workdir);
        }
        for (name, value) in env {
            call = with_variable(call, name, value);
        }
        let signal = polite_signal.as_str();
        Command {
            stdin,
            stdout,
            stderr,
            timeout,
            polite_signal,
            grace,
            elsewhere: Some(Elsewhere {
                ask: self.engine.words(["kill", "--signal", signal, &self.name]),
                // Everything in the container but its first process, so that what it used can still be read.
                end: self.engine.words([
                    "exec",
                    "--user",
                    "0",
                    &self.name,
                    "sh",
                    "-c",
                    "kill -9 -1",
                ]),
                always: false,
            }),
            ..call.arg(&self.name).args(argv)
        }
    }

    /// The resources that its processes used until now.
    pub fn usage(&self) -> ContainerUse {
        self.cgroups.as_ref().map(Cgroups::read).unwrap_or_default()
    }

    /// Copies a file or the content of a directory into the container. A directory is made where it is missing.
    pub async fn copy_in(&self, source: &Path, target: &str) -> Result<()> {
        let mut from = source.as_os_str().to_owned();
        if source.is_dir() {
            from.push("/.");
        }
        let action = format!("copy `{}` into the container", source.display());
        let to = format!("{}:{target}", self.name);
        let call = self.engine.command(["cp"]).arg(from).arg(to);
        let call = call.timeout(COPY_LIMIT);
        self.engine.finish(&action, call).await.map(drop)
    }

    /// Copies a file or the content of a directory out of the container.
    pub async fn copy_out(&self, source: &str, target: &Path) -> Result<()> {
        let action = format!("copy `{source}` out of the container");
        let from = format!("{}:{source}", self.name);
        let call = self.engine.command(["cp"]).arg(from).arg(target);
        let call = call.timeout(COPY_LIMIT);
        self.engine.finish(&action, call).await.map(drop)
    }

    /// Brings what was changed inside back to this machine, where it is not mounted, and makes it this user's.
    pub async fn fetch(&self) -> Result<()> {
        let is_root = nix::unistd::geteuid().is_root();
        // Without root, podman maps its users to this one.
        if !is_root && self.engine.kind() != EngineKind::Podman && self.copied.is_empty() {
            let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
            self.give_to(&format!("{user}:{group}")).await?;
        }
        for mount in self.copied.iter().filter(|mount| mount.is_writable) {
            empty(&mount.source)?;
            let source = format!("{}/.", mount.target.display());
            self.copy_out(&source, &mount.source).await?;
        }
        Ok(())
    }

    /// Ends the container with everything in it and waits until it is removed.
    pub async fn end(&self) -> Result<()> {
        let client = {
            let mut client = self.client.lock();
            client.as_mut().ok().and_then(|client| client.take())
        };
        let Some(mut client) = client else {
            return Ok(());
        };
        client.kill();
        client.wait().await.map(drop)
    }

    /// Lets a user inside change what is shared with this machine.
    async fn give_to(&self, user: &str) -> Result<()> {
        if self.shared.is_empty() {
            return Ok(());
        }
        let change = Command::from_argv(["chown", "-R", user], "/").args(&self.shared);
        let within = Within {
            workdir: Some("/".into()),
            user: Some("0".to_owned()),
        };
        let change = self.exec(change.timeout(COPY_LIMIT), &within);
        let action = format!("give the workspace to the user `{user}`");
        self.engine.finish(&action, change).await.map(drop)
    }

    async fn send(&mut self, mounts: &[Mount]) -> Result<()> {
        for mount in mounts {
            let target = mount.target.to_string_lossy();
            if mount.source.is_dir() {
                let make = Command::from_argv(["mkdir", "-p", &*target], "/");
                let make = self.exec(make, &Within::default()).timeout(START_LIMIT);
                self.engine.finish("make a directory", make).await?;
            }
            self.copy_in(&mount.source, &target).await?;
        }
        self.copied = mounts.to_vec();
        Ok(())
    }

    async fn find_cgroups(&self) -> Option<Cgroups> {
        let question = ["inspect", "--format", "{{.State.Pid}}", &self.name];
        let pid = self.engine.call("inspect the container", question).await;
        Cgroups::of(pid.ok()?.trim().parse().ok()?, &self.name)
    }
}

/// The call that starts a container and holds it. Its keeper removes the container, however it ends.
fn run_command(engine: &Engine, spec: &ContainerSpec, name: &str) -> Result<Command> {
    let mut call = engine.command(["run", "-i", "--rm", "--name", name]);
    for (label, value) in owner_labels(&spec.run, &spec.trial) {
        call = call.arg("--label").arg(format!("{label}={value}"));
    }
    call = call.args(["--pids-limit", MOST_PROCESSES]);
    call = call.args(["--security-opt", "label=disable"]);
    call = call.args(engine.ulimits());
    if let Some(cpus) = spec.cpus {
        call = call.arg("--cpus").arg(cpus.to_string());
    }
    if let Some(memory) = spec.memory_mb {
        let limit = format!("{memory}m");
        call = call.args(["--memory", &limit, "--memory-swap", &limit]);
    }
    if !spec.has_network {
        call = call.args(["--network", "none"]);
    }
    let first = first_process(engine, spec)?;
    let mounts = match engine.is_remote() {
        true => Vec::new(),
        false => spec.mounts.iter().chain(&first.mounts).collect(),
    };
    for mount in mounts {
        call = call.arg("--mount").arg(mount.option()?);
    }
    for (name, value) in &spec.environment {
        call = with_variable(call, name.into(), value.into());
    }
    call = call.args(["--entrypoint", first.program, &spec.image]);
    call = call.args(first.arguments).arg(name).args(first.rest);
    call.stdin = Stdin::Piped;
    call.elsewhere = Some(Elsewhere {
        ask: engine.words(["kill", "--signal", "KILL", name]),
        end: engine.removal(name),
        always: true,
    });
    Ok(call)
}

/// A variable for the inside. Its value does not show in the list of processes, except where the client of the engine would
/// take it for itself.
fn with_variable(call: Command, name: OsString, value: OsString) -> Command {
    let is_clients = CLIENT_VARIABLES.iter().any(|known| name == *known);
    if is_clients {
        let mut pair = name;
        pair.push("=");
        pair.push(value);
        return call.arg("--env").arg(pair);
    }
    call.arg("--env").arg(&name).env(name, value)
}

/// The process that keeps a container alive.
struct FirstProcess {
    program: &'static str,
    arguments: Vec<&'static str>,
    /// After the container's name.
    rest: Vec<String>,
    mounts: Vec<Mount>,
}

const OWN_PROGRAM: &str = "/.assize/assize";
const OWN_SOCKET: &str = "/.assize/model";

fn first_process(engine: &Engine, spec: &ContainerSpec) -> Result<FirstProcess> {
    let Some(forward) = &spec.forward else {
        return Ok(FirstProcess {
            program: "sh",
            arguments: vec!["-c", IDLE_SCRIPT],
            rest: Vec::new(),
            mounts: Vec::new(),
        });
    };
    if engine.is_remote() {
        let reason =
            "it is on another machine, where the socket that leads to the model cannot be mounted";
        return Err(engine.refused("let an agent reach its model alone", reason));
    }
    let own = own_program()?;
    Ok(FirstProcess {
        program: OWN_PROGRAM,
        arguments: vec![MARKER],
        rest: vec![forward.port.to_string(), OWN_SOCKET.to_owned()],
        mounts: vec![
            Mount {
                source: own,
                target: OWN_PROGRAM.into(),
                is_writable: false,
            },
            Mount {
                source: forward.socket.clone(),
                target: OWN_SOCKET.into(),
                is_writable: true,
            },
        ],
    })
}

/// This program, as it can be run in a container: `ASSIZE_INSIDE` names another one where this one cannot.
pub fn own_program() -> Result<PathBuf> {
    let given = crate::environment::host_variable("ASSIZE_INSIDE").map(PathBuf::from);
    let own = given.map_or_else(std::env::current_exe, Ok);
    let own = own.map_err(Error::file("find", Path::new("assize")))?;
    match linkage_of(&own).map_err(Error::file("read", &own))? {
        Linkage::Static => Ok(own),
        linkage => Err(Error::NotStatic {
            program: own,
            is_dynamic: linkage == Linkage::Dynamic,
        }),
    }
}

/// Starts the client and reads until the first process inside says that it is ready.
async fn await_ready(engine: &Engine, command: Command) -> Result<Running> {
    let mut client = command.start().await?;
    let waiting = async {
        let mut lines = LineSplitter::new(4096);
        let mut complaints = Captured::default();
        while let Some(chunk) = client.next().await? {
            match chunk.stream {
                Stream::Stderr => complaints.push(chunk),
                Stream::Stdout => {
                    if lines
                        .push(&chunk)
                        .iter()
                        .any(|line| line.text().trim() == READY)
                    {
                        return Ok(());
                    }
                }
            }
        }
        Err(engine.refused("start the container", &complaints.last_words(800)))
    };
    match tokio::time::timeout(START_LIMIT, waiting).await {
        Ok(Ok(())) => Ok(client),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let reason = format!("it was not ready within {} s", START_LIMIT.as_secs());
            Err(engine.refused("start the container", &reason))
        }
    }
}

/// Unique on this machine and, with the time in it, on others that share an engine.
fn unique_name(run: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let moment = since.unwrap_or_default().as_micros() % 1_000_000_007;
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "_-".contains(*c);
    let run: String = run.chars().filter(is_plain).take(32).collect();
    let pid = std::process::id();
    format!("assize-{run}-{pid}-{moment:x}-{number}").replace("--", "-")
}

/// Removes what is in a directory, but not the directory.
fn empty(directory: &Path) -> Result<()> {
    let entries = std::fs::read_dir(directory).map_err(Error::file("read", directory))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let removed = match entry.file_type() {
            Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(&path),
            _ => std::fs::remove_file(&path),
        };
        removed.map_err(Error::file("remove", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_would_be_read_as_two_options_is_refused() {
        assert!(Mount::same("/a,readonly").option().is_err());
        assert_eq!(
            Mount::same("/a b").option().unwrap(),
            "type=bind,source=/a b,target=/a b"
        );
    }

    #[test]
    fn names_are_fit_for_engines_and_differ() {
        let name = unique_name("2026-11-18 x/../y");
        assert!(name.starts_with("assize-2026-11-18xy-"), "{name}");
        assert_ne!(unique_name("a"), unique_name("a"));
    }

    #[test]
    fn values_do_not_show_in_the_list_of_processes() {
        let call = Command::new("podman", "/").env("HOME", "/root");
        let call = with_variable(call, "API_KEY".into(), "secret".into());
        let call = with_variable(call, "HOME".into(), "/home/agent".into());
        assert_eq!(
            call.argv[1..],
            ["--env", "API_KEY", "--env", "HOME=/home/agent"]
        );
        assert!(call.env.contains(&("HOME".into(), "/root".into())));
        assert!(call.env.contains(&("API_KEY".into(), "secret".into())));
    }
}
