//! Containers of sessions and of checks: from the settings of a suite to one that runs.
//!
//! An agent's home and workspace are mounted under the paths that they have outside, so that nothing that names them has to
//! change. The suite and the run directory are never mounted; of the suite's files only those that a command names, one by
//! one and read-only.

use crate::recipe::Recipe;
use assize_contracts::{
    Container as Settings, ContainerEngine, ContainerHandle, ContainerNetwork, Healthcheck,
    ProviderError, SessionSandbox, VoidCause,
};
use assize_process::container::{
    BUILD_LIMIT, Container, ContainerSpec, Engine, EngineKind, Forward, ImageSource, Mount, Within,
    engine_for, image_for,
};
use assize_process::{Command, Error};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time limit of a line of the set-up.
const SETUP_LIMIT: Duration = Duration::from_secs(600);

/// A container that is wanted.
pub struct Wanted<'a> {
    /// The suite's settings.
    pub settings: &'a Settings,
    /// The wall that it is part of: places of the run, and the way to the model.
    pub sandbox: &'a SessionSandbox,
    /// Whose trial it is, for its labels.
    pub trial: String,
    /// Files and directories of this machine that it needs, besides what the suite mounts.
    pub mounts: Vec<Mount>,
    /// The image must have this agent.
    pub agent: Option<&'a Recipe>,
    /// The program inside.
    pub resident: Resident,
}

/// The kind of program that lives in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resident {
    /// An agent, which may reach its model.
    Agent,
    /// A check, which needs none.
    Check,
}

/// Starts a container and waits until it is healthy.
pub async fn start(wanted: Wanted<'_>) -> Result<Container, Error> {
    let settings = wanted.settings;
    let engine = engine_for(kind(settings.engine)).await?;
    let mut image = image_for(
        &engine,
        &image_source(settings, &wanted.sandbox.places.suite),
    )
    .await?;
    if let Some(recipe) = wanted.agent.filter(|_| settings.install_agent) {
        image = crate::image::provide_agent(&engine, &image, recipe).await?;
    }
    let spec = spec(&wanted, image);
    let container = Container::start(&engine, &spec).await?;
    for line in &settings.setup {
        set_up(&container, line).await?;
    }
    if let Some(healthcheck) = &settings.healthcheck {
        await_health(&container, healthcheck).await?;
    }
    Ok(container)
}

/// The engine that the suite names. Absent: the first that answers.
pub fn kind(wanted: ContainerEngine) -> Option<EngineKind> {
    match wanted {
        ContainerEngine::Auto => None,
        ContainerEngine::Docker => Some(EngineKind::Docker),
        ContainerEngine::Podman => Some(EngineKind::Podman),
        ContainerEngine::Nerdctl => Some(EngineKind::Nerdctl),
    }
}

/// The source of the image.
pub fn image_source(settings: &Settings, suite: &Path) -> ImageSource {
    match (&settings.image, &settings.build) {
        (None, Some(directory)) => ImageSource::Built {
            context: suite.join(directory),
            limit: settings
                .build_timeout_ms
                .map_or(BUILD_LIMIT, Duration::from_millis),
        },
        (image, _) => ImageSource::Named(image.clone().unwrap_or_default()),
    }
}

/// A container that another part of the program started and will remove.
pub async fn attach(handle: &ContainerHandle) -> Result<Container, Error> {
    let engine: Engine = engine_for(EngineKind::named(&handle.engine)).await?;
    Ok(Container::attach(&engine, &handle.name))
}

/// A mount as suites write it: `HOST:INSIDE` or `HOST:INSIDE:ro`. `Err` says what was expected.
pub fn parse_mount(text: &str, suite: &Path) -> Result<Mount, String> {
    let expected = || format!("found `{text}`, expected `HOST:INSIDE` or `HOST:INSIDE:ro`");
    let mut parts = text.split(':');
    let (source, target) = parts.next().zip(parts.next()).ok_or_else(expected)?;
    let is_writable = match (parts.next(), parts.next()) {
        (None, _) => true,
        (Some("rw"), None) => true,
        (Some("ro"), None) => false,
        _ => return Err(expected()),
    };
    if source.is_empty() || !target.starts_with('/') || text.contains(',') {
        return Err(expected());
    }
    let source = std::path::absolute(suite.join(source)).map_err(|_| expected())?;
    Ok(Mount {
        source,
        target: PathBuf::from(target),
        is_writable,
    })
}

fn spec(wanted: &Wanted<'_>, image: String) -> ContainerSpec {
    let Wanted {
        settings, sandbox, ..
    } = wanted;
    let suite = &sandbox.places.suite;
    let own = settings.mounts.iter();
    // Checked when the suite was loaded.
    let own = own.filter_map(|mount| parse_mount(mount, suite).ok());
    let door = match (wanted.resident, settings.network) {
        (Resident::Agent, ContainerNetwork::Model | ContainerNetwork::Open) => {
            sandbox.door.as_ref()
        }
        _ => None,
    };
    ContainerSpec {
        image,
        run: sandbox.run.to_string(),
        trial: wanted.trial.clone(),
        cpus: settings.cpus,
        memory_mb: settings.memory_mb,
        has_network: settings.network.is_open(),
        forward: door.map(|door| Forward {
            port: door.port,
            socket: door.socket.clone(),
        }),
        mounts: wanted.mounts.iter().cloned().chain(own).collect(),
        user: settings.user.clone(),
        workdir: settings.workdir.clone(),
        environment: settings.environment.clone(),
    }
}

/// Copies skills from a directory inside to where the agent looks for them in its home.
pub(crate) async fn give_skills(
    container: &Container,
    skills: &str,
    home: &Path,
    agent: Option<&Recipe>,
) -> Result<(), Error> {
    let refused = |message: String| Error::ContainerSetup {
        command: format!("skills_dir: {skills}"),
        message,
    };
    let Some(place) = agent.and_then(Recipe::home_of_skills) else {
        let name = agent.map_or("command", |recipe| &recipe.name);
        return Err(refused(format!("`{name}` has no place for skills")));
    };
    let target = home.join(place);
    let script = "mkdir -p \"$1\" && cp -R \"$0/.\" \"$1/\"";
    let command = Command::from_argv(["sh", "-c", script, skills], "/").arg(target.as_os_str());
    let command = container.exec(command.timeout(SETUP_LIMIT), &Within::default());
    let output = command.run_to_end().await?;
    match output.exit.is_success() {
        true => Ok(()),
        false => Err(refused(output.stderr.last_words(300))),
    }
}

/// Runs a line of the set-up as root.
async fn set_up(container: &Container, line: &str) -> Result<(), Error> {
    let within = Within {
        workdir: None,
        user: Some("0".to_owned()),
    };
    let command = Command::from_argv(["sh", "-c", line], "/").timeout(SETUP_LIMIT);
    let output = container.exec(command, &within).run_to_end().await?;
    match output.exit.is_success() {
        true => Ok(()),
        false => Err(Error::ContainerSetup {
            command: line.to_owned(),
            message: format!(
                "it {}: {}",
                output.exit.in_words(SETUP_LIMIT),
                output.stderr.last_words(300)
            ),
        }),
    }
}

/// Tries the command until it succeeds, or fails too often.
async fn await_health(container: &Container, healthcheck: &Healthcheck) -> Result<(), Error> {
    let began = Instant::now();
    let start_period = Duration::from_millis(healthcheck.start_period_ms);
    let mut failures = 0;
    loop {
        let command = Command::from_argv(["sh", "-c", &healthcheck.command], "/")
            .timeout(Duration::from_millis(healthcheck.timeout_ms));
        let mut command = container.exec(command, &Within::default());
        // A try that takes too long is a failure, not the end of the container.
        command.elsewhere = None;
        let output = command.run_to_end().await?;
        if output.exit.is_success() {
            return Ok(());
        }
        let is_starting = began.elapsed() < start_period;
        failures += u32::from(!is_starting);
        if failures >= healthcheck.retries.max(1) {
            let printed = format!("{}{}", output.stdout.text(), output.stderr.text());
            let printed = printed.trim();
            let start = printed.ceil_char_boundary(printed.len().saturating_sub(300));
            return Err(Error::Unhealthy {
                command: healthcheck.command.clone(),
                failures,
                message: printed[start..].to_owned(),
            });
        }
        let pause = match is_starting {
            true => healthcheck.start_interval_ms,
            false => healthcheck.interval_ms,
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

/// A container of a session.
pub(crate) struct Lodging {
    pub(crate) container: Arc<Container>,
    /// The directory of the agent's programs. Absent: the container's.
    pub(crate) workdir: Option<PathBuf>,
}

/// The reason why a session has no container, for its record.
pub(crate) fn not_housed(error: Error) -> ProviderError {
    ProviderError::service(error.explained())
        .with_code("container_not_started")
        .with_void_cause(VoidCause::AgentStart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_written_as_elsewhere() {
        let suite = Path::new("/suite");
        let mount = parse_mount("data:/data:ro", suite).unwrap();
        assert_eq!(mount.source, Path::new("/suite/data"));
        assert_eq!(mount.target, Path::new("/data"));
        assert!(!mount.is_writable);
        assert!(parse_mount("/abs:/x", suite).unwrap().is_writable);
        for wrong in [
            "data",
            "data:rel",
            ":/x",
            "a:/b:ro:c",
            "a:/b:maybe",
            "a,b:/c",
        ] {
            assert!(parse_mount(wrong, suite).is_err(), "{wrong}");
        }
    }
}
