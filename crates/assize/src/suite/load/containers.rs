//! Containers: what a suite asks of them that cannot work, and Harbor tasks, which bring their own.

use super::Loader;
use crate::suite::capture::ProxySpec;
use crate::suite::document::Document;
use crate::suite::file::{Scenarios, SuiteFile};
use crate::suite::file_error::FileError;
use crate::suite::harbor::{self, HarborTask};
use crate::suite::scenario::LoadedScenario;
use assize_agents::container::parse_mount;
use assize_contracts::{Container, ContainerNetwork, Sandbox, SandboxPlaces};
use assize_engine::{Mode, ProfileSuite};
use std::path::Path;
use std::rc::Rc;

/// Engines refuse containers with less memory.
const LEAST_MEMORY_MB: u64 = 8;

/// A setting of a container that cannot work, by its key.
struct Wrong(&'static str, String);

impl Loader<'_> {
    /// The tasks that the suite names, as scenarios.
    pub(super) fn harbor_scenarios(
        &mut self,
        file: &SuiteFile,
        spec: &Scenarios,
        directory: &Path,
    ) -> Vec<LoadedScenario> {
        let over = match &file.sandbox {
            Some(Sandbox::Container(container)) => Some(&**container),
            _ => None,
        };
        let mut loaded = Vec::new();
        for (number, path) in spec.harbor.iter().enumerate() {
            let tasks = harbor::find(&directory.join(path));
            if tasks.is_empty() {
                let place = ["scenarios", "harbor", &number.to_string()];
                let message =
                    format!("there is no Harbor task in `{path}` (a directory with `task.toml`)");
                self.report(&place, message);
            }
            for task in tasks {
                match HarborTask::read(&task) {
                    Ok((task, document)) => {
                        let remarks = task.remarks.iter();
                        let remarks = remarks.map(|remark| format!("task `{}`: {remark}", task.id));
                        self.remarks.extend(remarks);
                        loaded.push(LoadedScenario {
                            scenario: harbor::scenario(&task, over),
                            document: Rc::new(document),
                        });
                    }
                    Err(errors) => errors.into_iter().for_each(|error| self.add(error)),
                }
            }
        }
        loaded
    }

    /// Modes whose agents cannot be put into containers although they should be.
    pub(super) fn check_housing(
        &mut self,
        file: &SuiteFile,
        modes: &[Mode],
        scenarios: &[LoadedScenario],
    ) {
        let of_scenario = scenarios
            .iter()
            .find(|loaded| matches!(loaded.scenario.sandbox, Some(Sandbox::Container(_))));
        for mode in modes {
            let is_housed =
                matches!(&*mode.sandbox, Sandbox::Container(_)) || of_scenario.is_some();
            if is_housed && !self.has_programs(&mode.provider) {
                let message = format!(
                    "the provider `{}` cannot be put into a container, which mode `{}` is to have",
                    mode.provider, mode.name
                );
                let error = self.document.error(&["modes", &mode.name], message);
                self.add(error.hint("containers hold agents that are programs: `command`, `acp`, and agents with a recipe"));
            }
        }
        let is_off = file
            .capture
            .as_ref()
            .is_some_and(|capture| capture.proxy == ProxySpec::Off);
        let of_modes = modes.iter().map(|mode| &*mode.sandbox);
        let of_scenarios = scenarios
            .iter()
            .filter_map(|loaded| loaded.scenario.sandbox.as_ref());
        if is_off && of_modes.chain(of_scenarios).any(reaches_model_alone) {
            self.report(
                &["capture", "proxy"],
                "found `off`, but with `network: model` agents reach their models through the proxy alone",
            );
        }
    }

    fn has_programs(&self, provider: &str) -> bool {
        matches!(provider, "command" | "acp" | "") || self.has_recipe(provider)
    }
}

/// True if an agent of the suite reaches nothing but its model, through the proxy.
pub(super) fn any_reaches_model_alone(
    file: &SuiteFile,
    modes: &[Mode],
    scenarios: &[LoadedScenario],
) -> bool {
    let of_modes = modes.iter().map(|mode| &*mode.sandbox);
    let of_scenarios = scenarios
        .iter()
        .filter_map(|loaded| loaded.scenario.sandbox.as_ref());
    let _ = file;
    of_modes.chain(of_scenarios).any(reaches_model_alone)
}

fn reaches_model_alone(sandbox: &Sandbox) -> bool {
    matches!(sandbox, Sandbox::Container(container) if container.network == ContainerNetwork::Model)
}

/// True if the file puts an agent into a container. Such workspaces cannot be overlays, which other processes do not see.
pub(super) fn has_container(file: &SuiteFile) -> bool {
    let is_container = |sandbox: &Option<Sandbox>| matches!(sandbox, Some(Sandbox::Container(_)));
    let harbor = file
        .scenarios
        .as_ref()
        .is_some_and(|scenarios| !scenarios.harbor.is_empty());
    let of_modes = match &file.modes {
        crate::suite::file::Modes::Definitions(modes) => {
            modes.iter().any(|(_, mode)| is_container(&mode.sandbox))
        }
        crate::suite::file::Modes::Names(_) => false,
    };
    harbor || of_modes || is_container(&file.sandbox)
}

/// The reason why a container cannot be used, at its place in the file.
pub(super) fn refusal(
    document: &Document,
    keys: &[&str],
    container: &Container,
    suite: &SuiteSide<'_>,
) -> Option<FileError> {
    let Wrong(key, message) = wrong(container, suite)?;
    let mut keys = keys.to_vec();
    keys.push("container");
    if !key.is_empty() {
        keys.push(key);
    }
    Some(document.error(&keys, message))
}

/// The part of a suite that matters to its containers.
pub(super) struct SuiteSide<'a> {
    pub(super) directory: &'a Path,
    /// Scenarios bring their own images, so that a container of the suite needs none.
    pub(super) has_own_images: bool,
}

fn wrong(container: &Container, suite: &SuiteSide<'_>) -> Option<Wrong> {
    match (&container.image, &container.build) {
        (Some(_), Some(_)) => {
            return Some(Wrong(
                "",
                "found `image` and `build`, expected one of them".to_owned(),
            ));
        }
        (None, None) if !suite.has_own_images => {
            return Some(Wrong(
                "",
                "found neither `image` nor `build`, expected one of them".to_owned(),
            ));
        }
        (Some(image), _) if image.trim().is_empty() || image.starts_with('-') => {
            return Some(Wrong(
                "image",
                format!("found `{image}`, expected the name of an image"),
            ));
        }
        (None, Some(build)) if !suite.directory.join(build).join("Dockerfile").is_file() => {
            let message = format!("there is no `Dockerfile` in `{}`", build.display());
            return Some(Wrong("build", message));
        }
        _ => {}
    }
    if container
        .cpus
        .is_some_and(|cpus| !cpus.is_finite() || cpus <= 0.0)
    {
        return Some(Wrong("cpus", "expected a number greater than 0".to_owned()));
    }
    if let Some(memory) = container
        .memory_mb
        .filter(|memory| *memory < LEAST_MEMORY_MB)
    {
        let message = format!("found {memory}, expected at least {LEAST_MEMORY_MB} megabytes");
        return Some(Wrong("memory_mb", message));
    }
    if let Some(workdir) = container
        .workdir
        .as_ref()
        .filter(|workdir| !workdir.starts_with('/'))
    {
        let message = format!("found `{workdir}`, expected an absolute path inside the container");
        return Some(Wrong("workdir", message));
    }
    for mount in &container.mounts {
        match parse_mount(mount, suite.directory) {
            Err(message) => return Some(Wrong("mounts", message)),
            Ok(mount) if !mount.source.exists() => {
                let message = format!("there is no `{}`", mount.source.display());
                return Some(Wrong("mounts", message));
            }
            Ok(_) => {}
        }
    }
    None
}

/// Mounts that would show an agent what it must not see.
pub(super) fn revealing_mounts(profile: &ProfileSuite, results: &Path) -> Vec<String> {
    let places: &SandboxPlaces = &profile.places;
    let results = std::path::absolute(results).unwrap_or_else(|_| results.to_owned());
    let of_modes = profile.modes.iter().map(|mode| &*mode.sandbox);
    let of_scenarios = profile
        .scenarios
        .iter()
        .filter_map(|scenario| scenario.sandbox.as_ref());
    let mut found = Vec::new();
    for sandbox in of_modes.chain(of_scenarios) {
        let Sandbox::Container(container) = sandbox else {
            continue;
        };
        for mount in &container.mounts {
            let Ok(parsed) = parse_mount(mount, &places.suite) else {
                continue;
            };
            let source = parsed.source.canonicalize().unwrap_or(parsed.source);
            let shows = |place: &Path| {
                let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
                place.starts_with(&source) || source.starts_with(&place)
            };
            let suite = places
                .suite
                .canonicalize()
                .unwrap_or_else(|_| places.suite.clone());
            let shows_suite = suite.starts_with(&source);
            let shows_answers = places.answers.iter().any(|place| shows(place)) || shows(&results);
            if shows_suite || shows_answers {
                let message = format!(
                    "the mount `{mount}` would show agents the suite, its checks or stored runs"
                );
                if !found.contains(&message) {
                    found.push(message);
                }
            }
        }
    }
    found
}
