//! One Harbor task, read and checked: its requirements, and those that are not supported.

use super::file::{
    EnvironmentPart, HealthcheckPart, MAIN_SERVICE, NetworkMode, TaskFile, VerifierMode,
    unknown_keys,
};
use crate::suite::document::Document;
use crate::suite::file_error::FileError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The deepest level below a directory at which tasks are looked for.
const DEEPEST: usize = 6;

/// An agent without a limit of its own may take this long, as in Harbor's registry.
const AGENT_LIMIT: Duration = Duration::from_secs(1800);

const VERIFIER_LIMIT: Duration = Duration::from_secs(600);
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// A task that can be run.
#[derive(Debug, Clone)]
pub(crate) struct HarborTask {
    pub(crate) directory: PathBuf,
    /// The name of its directory.
    pub(crate) id: String,
    /// `org/name`, or the id.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
    pub(crate) instruction: String,
    pub(crate) agent_limit: Duration,
    pub(crate) agent_user: Option<String>,
    /// The agent may reach its model alone.
    pub(crate) is_offline: bool,
    pub(crate) environment: HarborEnvironment,
    pub(crate) verifier: Verifier,
    pub(crate) solution_env: BTreeMap<String, String>,
    /// Paths that a separate verifier gets from the agent's container.
    pub(crate) artifacts: Vec<String>,
    /// Settings that are ignored without harm.
    pub(crate) remarks: Vec<String>,
}

/// The container of an agent or a verifier.
#[derive(Debug, Clone)]
pub(crate) struct HarborEnvironment {
    pub(crate) image: ImageOf,
    pub(crate) cpus: Option<f64>,
    pub(crate) memory_mb: Option<u64>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) workdir: Option<String>,
    pub(crate) skills_dir: Option<String>,
    pub(crate) healthcheck: Option<HealthcheckPart>,
}

/// The source of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImageOf {
    Named(String),
    Built { context: PathBuf, limit: Duration },
}

#[derive(Debug, Clone)]
pub(crate) struct Verifier {
    pub(crate) limit: Duration,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) user: Option<String>,
    pub(crate) place: VerifierPlace,
    pub(crate) collectors: Vec<Collector>,
}

/// The place where the tests of a task are run.
#[derive(Debug, Clone)]
pub(crate) enum VerifierPlace {
    /// In the agent's container, after the agent.
    Shared,
    /// In a container of its own, which gets the artifacts.
    Separate {
        environment: Box<HarborEnvironment>,
        /// The image holds the tests already.
        has_tests: bool,
        has_network: bool,
    },
}

/// A command that gathers artifacts in the agent's container.
#[derive(Debug, Clone)]
pub(crate) struct Collector {
    pub(crate) command: String,
    pub(crate) limit: Duration,
    pub(crate) user: Option<String>,
}

/// A requirement of a task that is not supported, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Keys in `task.toml`; empty for files.
    pub(crate) keys: Vec<&'static str>,
    pub(crate) message: String,
}

impl Refusal {
    fn new(keys: &[&'static str], message: impl Into<String>) -> Self {
        Self {
            keys: keys.to_vec(),
            message: message.into(),
        }
    }

    /// The refusal as an error in the task's file.
    pub(crate) fn error(&self, document: &Document) -> FileError {
        document
            .error(&self.keys, self.message.clone())
            .hint("`assize import harbor DIR` lists what each task asks for")
    }
}

/// The directories of tasks: the directory itself, or those below it. Sorted; hidden ones are skipped.
pub(crate) fn find(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    look(directory, DEEPEST, &mut found);
    found.sort();
    found
}

fn look(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if directory.join("task.toml").is_file() {
        found.push(directory.to_owned());
        return;
    }
    if depth == 0 {
        return;
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && !is_hidden {
            look(&entry.path(), depth - 1, found);
        }
    }
}

impl HarborTask {
    /// True if it has a reference solution.
    pub(crate) fn has_solution(&self) -> bool {
        self.directory.join("solution/solve.sh").is_file()
    }

    /// Reads a task. `Err` holds all its mistakes and unsupported requirements.
    pub(crate) fn read(directory: &Path) -> Result<(Self, Document), Vec<FileError>> {
        let document = Document::read(&directory.join("task.toml")).map_err(|found| vec![found])?;
        let file: TaskFile = document.read_as(&[]).map_err(|found| vec![found])?;
        let reader = Reader {
            directory,
            file: &file,
            task: document.value(),
        };
        let mut refusals = reader.refusals();
        match reader.task(&mut refusals) {
            Some(task) if refusals.is_empty() => Ok((task, document)),
            _ => Err(refusals
                .iter()
                .map(|refusal| refusal.error(&document))
                .collect()),
        }
    }
}

struct Reader<'a> {
    directory: &'a Path,
    file: &'a TaskFile,
    task: &'a Value,
}

impl Reader<'_> {
    fn task(&self, refusals: &mut Vec<Refusal>) -> Option<HarborTask> {
        let file = self.file;
        let absolute = std::path::absolute(self.directory).ok()?;
        let id = id_of(&absolute);
        let info = file.task.clone().unwrap_or_default();
        let instruction = self.instruction(refusals);
        let environment = self.environment(
            &["environment"],
            &file.environment,
            &absolute.join("environment"),
            refusals,
        );
        let verifier = self.verifier(&absolute, environment.as_ref(), refusals);
        let solution_env = resolved(&file.solution.env, &["solution", "env"], refusals);
        Some(HarborTask {
            name: match info.name.is_empty() {
                true => id.clone(),
                false => info.name,
            },
            id,
            description: info.description,
            tags: self.tags(&info.keywords),
            instruction: instruction?,
            agent_limit: seconds(file.agent.timeout_sec, AGENT_LIMIT),
            agent_user: file.agent.user.as_ref().map(|user| user.as_text()),
            is_offline: self.agent_network() == NetworkMode::NoNetwork,
            environment: environment?,
            verifier: verifier?,
            solution_env,
            artifacts: self.artifacts(),
            remarks: self.remarks(),
            directory: absolute,
        })
    }

    fn instruction(&self, refusals: &mut Vec<Refusal>) -> Option<String> {
        match std::fs::read_to_string(self.directory.join("instruction.md")) {
            Ok(text) if !text.trim().is_empty() => Some(without_canary(&text)),
            Ok(_) => {
                refusals.push(Refusal::new(&[], "`instruction.md` is empty"));
                None
            }
            // A task of steps has its instructions elsewhere, and is refused for that.
            Err(_) if !self.file.steps.is_empty() => None,
            Err(error) => {
                let message = format!("`instruction.md` cannot be read: {error}");
                refusals.push(Refusal::new(&[], message));
                None
            }
        }
    }

    fn tags(&self, keywords: &[String]) -> Vec<String> {
        let metadata = &self.file.metadata;
        let listed = metadata.get("tags").and_then(Value::as_array);
        let listed = listed.into_iter().flatten().filter_map(Value::as_str);
        let single = ["category", "difficulty"];
        let single = single.iter().filter_map(|key| metadata.get(*key)?.as_str());
        let mut tags: Vec<String> = keywords.to_vec();
        tags.extend(listed.chain(single).map(str::to_owned));
        let mut seen = std::collections::BTreeSet::new();
        tags.retain(|tag| seen.insert(tag.clone()));
        tags
    }

    /// The network while the agent works: its own, else the environment's.
    fn agent_network(&self) -> NetworkMode {
        let own = self.file.agent.network_mode;
        own.unwrap_or_else(|| self.file.environment.network())
    }

    fn environment(
        &self,
        keys: &[&'static str],
        part: &EnvironmentPart,
        context: &Path,
        refusals: &mut Vec<Refusal>,
    ) -> Option<HarborEnvironment> {
        let image = match &part.docker_image {
            Some(image) => Some(ImageOf::Named(image.clone())),
            None if context.join("Dockerfile").is_file() => Some(ImageOf::Built {
                context: context.to_owned(),
                limit: seconds(part.build_timeout_sec, BUILD_LIMIT),
            }),
            None => None,
        };
        if image.is_none() && !has_compose(context) {
            let message = "found neither `docker_image` nor `environment/Dockerfile`";
            refusals.push(Refusal::new(keys, message));
        }
        let memory_mb = part.memory().unwrap_or_else(|message| {
            refusals.push(Refusal::new(&[keys, &["memory"]].concat(), message));
            None
        });
        if part
            .cpus
            .is_some_and(|cpus| !cpus.is_finite() || cpus <= 0.0)
        {
            let message = "found no positive number of processors";
            refusals.push(Refusal::new(&[keys, &["cpus"]].concat(), message));
        }
        Some(HarborEnvironment {
            image: image?,
            cpus: part.cpus,
            memory_mb,
            env: resolved(&part.env, &[keys, &["env"]].concat(), refusals),
            workdir: part.workdir.clone(),
            skills_dir: part.skills_dir.clone(),
            healthcheck: part.healthcheck.clone(),
        })
    }

    fn verifier(
        &self,
        directory: &Path,
        agents: Option<&HarborEnvironment>,
        refusals: &mut Vec<Refusal>,
    ) -> Option<Verifier> {
        let part = &self.file.verifier;
        let collectors = part.collect.iter().map(|collect| Collector {
            command: collect.command.clone(),
            limit: seconds(collect.timeout_sec, Duration::from_secs(60)),
            user: collect.user.as_ref().map(|user| user.as_text()),
        });
        Some(Verifier {
            limit: seconds(part.timeout_sec, VERIFIER_LIMIT),
            env: resolved(&part.env, &["verifier", "env"], refusals),
            user: part.user.as_ref().map(|user| user.as_text()),
            place: match self.is_separate() {
                false => VerifierPlace::Shared,
                true => self.separate(directory, agents, refusals)?,
            },
            collectors: collectors.collect(),
        })
    }

    fn is_separate(&self) -> bool {
        let part = &self.file.verifier;
        let implied = part.environment.is_some().then_some(VerifierMode::Separate);
        part.environment_mode.or(implied) == Some(VerifierMode::Separate)
    }

    /// The image of a separate verifier: its own, one that holds the tests, or the agent's once more.
    fn separate(
        &self,
        directory: &Path,
        agents: Option<&HarborEnvironment>,
        refusals: &mut Vec<Refusal>,
    ) -> Option<VerifierPlace> {
        let own = self.file.verifier.environment.as_ref();
        let keys = ["verifier", "environment"];
        let tests = directory.join("tests");
        let image = match own.and_then(|own| own.docker_image.clone()) {
            Some(image) => Some(ImageOf::Named(image)),
            None if tests.join("Dockerfile").is_file() => Some(ImageOf::Built {
                context: tests,
                limit: seconds(own.and_then(|own| own.build_timeout_sec), BUILD_LIMIT),
            }),
            None => None,
        };
        let part = own.unwrap_or(&self.file.environment);
        let memory_mb = part.memory().unwrap_or_else(|message| {
            refusals.push(Refusal::new(&keys, message));
            None
        });
        let network = self.file.verifier.network_mode;
        Some(VerifierPlace::Separate {
            has_tests: image.is_some(),
            has_network: network.unwrap_or_else(|| part.network()) == NetworkMode::Public,
            environment: Box::new(HarborEnvironment {
                image: match image {
                    Some(image) => image,
                    None => agents?.image.clone(),
                },
                cpus: part.cpus,
                memory_mb,
                env: resolved(&part.env, &keys, refusals),
                workdir: part.workdir.clone(),
                skills_dir: None,
                healthcheck: part.healthcheck.clone(),
            }),
        })
    }

    /// The paths published by convention, then those that the task names.
    fn artifacts(&self) -> Vec<String> {
        let mut sources = vec!["/logs/artifacts".to_owned()];
        for artifact in &self.file.artifacts {
            let source = artifact.source().trim_end_matches('/').to_owned();
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(storage) = self.file.environment.storage_mb {
            remarks.push(format!(
                "`storage_mb = {storage}` is not enforced: engines limit disks only with some file systems"
            ));
        }
        let mut keys = ["schema_version", "version"].iter();
        let version = keys.find_map(|key| self.task.get(key)?.as_str());
        if let Some(version) = version.filter(|version| is_newer(version)) {
            let (major, minor) = NEWEST_SCHEMA;
            remarks.push(format!(
                "its schema {version} is newer than {major}.{minor}, by which it is read"
            ));
        }
        let unknown = unknown_keys(self.task);
        if !unknown.is_empty() {
            remarks.push(format!("ignored keys: {}", unknown.join(", ")));
        }
        remarks
    }

    /// All requirements of a task that are not supported here.
    fn refusals(&self) -> Vec<Refusal> {
        let file = self.file;
        let mut refusals = refused_in(&["environment"], &file.environment);
        if let Some(own) = &file.verifier.environment {
            refusals.extend(refused_in(&["verifier", "environment"], own));
        }
        if !file.steps.is_empty() {
            let message = "tasks of several steps cannot be run";
            refusals.push(Refusal::new(&["steps"], message));
        }
        refusals.extend(self.refused_compose_files());
        refusals.extend(self.refused_networks());
        refusals.extend(self.refused_services());
        refusals.extend(self.refused_artifacts());
        if self.directory.join("trajectory.json").is_file() {
            let message =
                "a session that was begun elsewhere (`trajectory.json`) cannot be continued";
            refusals.push(Refusal::new(&[], message));
        }
        let verifier = file.verifier.environment.as_ref();
        let brings_tests = verifier.is_some_and(|own| own.docker_image.is_some());
        let has_tests = brings_tests || self.directory.join("tests/test.sh").is_file();
        if !has_tests && file.steps.is_empty() {
            refusals.push(Refusal::new(&[], "there is no `tests/test.sh`"));
        }
        refusals
    }

    fn refused_compose_files(&self) -> impl Iterator<Item = Refusal> {
        let parts = [("environment", "environment"), ("tests", "verifier")];
        let composed = parts
            .into_iter()
            .filter(|(part, _)| has_compose(&self.directory.join(part)));
        composed.map(|(part, name)| {
            let message = format!(
                "the {name} is a compose file of several services (`{part}/docker-compose.yaml`), which cannot be run"
            );
            Refusal::new(&[], message)
        })
    }

    fn refused_networks(&self) -> Vec<Refusal> {
        let file = self.file;
        let networks = [
            ("agent", file.agent.network_mode),
            ("verifier", file.verifier.network_mode),
        ];
        let limited = networks
            .into_iter()
            .filter(|(_, network)| *network == Some(NetworkMode::Allowlist));
        let mut refusals: Vec<Refusal> = limited
            .map(|(part, _)| Refusal::new(&[part, "network_mode"], ALLOWLIST))
            .collect();
        let own = file.verifier.network_mode;
        if !self.is_separate() && own.is_some() && own != Some(self.agent_network()) {
            let message = "a verifier in the agent's container has the agent's network; expected the same, or `environment_mode = \"separate\"`";
            refusals.push(Refusal::new(&["verifier", "network_mode"], message));
        }
        refusals
    }

    fn refused_services(&self) -> impl Iterator<Item = Refusal> {
        let file = self.file;
        let services = file.artifacts.iter().map(|artifact| artifact.service());
        let collecting = file.verifier.collect.iter();
        let services = services.chain(collecting.map(|collect| collect.service.as_deref()));
        let others = services.flatten().filter(|name| *name != MAIN_SERVICE);
        others.map(|service| {
            let message = format!(
                "the task names the service `{service}`, and tasks of several services cannot be run"
            );
            Refusal::new(&[], message)
        })
    }

    fn refused_artifacts(&self) -> impl Iterator<Item = Refusal> {
        let is_refused = |source: &&str| {
            let path = Path::new(source);
            let climbs = path.components().any(|part| part.as_os_str() == "..");
            !path.is_absolute() || climbs
        };
        let sources = self.file.artifacts.iter().map(|artifact| artifact.source());
        sources.filter(is_refused).map(|source| {
            let message = format!(
                "found the artifact `{source}`, expected an absolute path inside the container"
            );
            Refusal::new(&["artifacts"], message)
        })
    }
}

const ALLOWLIST: &str =
    "`allowlist` is not supported: a container has the engine's network, its model alone, or none";

fn refused_in(keys: &[&'static str], part: &EnvironmentPart) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut refuse = |key: &'static str, message: &str| {
        refusals.push(Refusal::new(&[keys, &[key]].concat(), message));
    };
    if part.gpus.is_some_and(|gpus| gpus > 0) {
        refuse("gpus", "tasks that need a GPU cannot be run");
    }
    if part
        .gpu_types
        .as_ref()
        .is_some_and(|types| !types.is_empty())
    {
        refuse("gpu_types", "tasks that need a GPU cannot be run");
    }
    if part.tpu.is_some() {
        refuse("tpu", "tasks that need a TPU cannot be run");
    }
    if part
        .os
        .as_ref()
        .is_some_and(|os| os.to_lowercase() != "linux")
    {
        refuse("os", "only tasks for Linux can be run");
    }
    if !part.mcp_servers.is_empty() {
        refuse(
            "mcp_servers",
            "MCP servers of tasks cannot be started; modes may have their own (`mcp_servers` of the provider)",
        );
    }
    if part.network_mode == Some(NetworkMode::Allowlist) {
        refuse("network_mode", ALLOWLIST);
    }
    refusals
}

fn has_compose(directory: &Path) -> bool {
    let names = ["docker-compose.yaml", "docker-compose.yml", "compose.yaml"];
    names.iter().any(|name| directory.join(name).is_file())
}

fn seconds(given: Option<f64>, usual: Duration) -> Duration {
    let given = given.filter(|seconds| *seconds > 0.0);
    let given = given.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    given.unwrap_or(usual)
}

/// The name of the directory, as ids of scenarios are written.
fn id_of(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c) => c,
        _ => '-',
    };
    name.chars().map(plain).collect()
}

/// Lines at the beginning that mark training data are not part of the task.
fn without_canary(text: &str) -> String {
    let is_canary = |line: &str| {
        let line = line.trim();
        line.is_empty()
            || ((line.starts_with('#') || line.starts_with("<!--"))
                && line.to_lowercase().contains("canary"))
    };
    let lines: Vec<&str> = text.lines().skip_while(|line| is_canary(line)).collect();
    lines.join("\n").trim_end().to_owned()
}

/// Variables with `${NAME}` and `${NAME:-default}` replaced from the environment of Assize.
fn resolved(
    variables: &BTreeMap<String, String>,
    keys: &[&'static str],
    refusals: &mut Vec<Refusal>,
) -> BTreeMap<String, String> {
    let lookup = |name: &str| std::env::var(name).ok();
    let mut filled = BTreeMap::new();
    for (name, value) in variables {
        match fill(value, lookup) {
            Ok(value) => drop(filled.insert(name.clone(), value)),
            Err(message) => refusals.push(Refusal::new(keys, format!("`{name}`: {message}"))),
        }
    }
    filled
}

fn fill(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, after) = after.split_once('}').ok_or("`${` is never closed")?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let value = lookup(name).or_else(|| default.map(str::to_owned));
        filled.push_str(before);
        filled.push_str(&value.ok_or_else(|| {
            format!("the environment variable `{name}` is not set, and the task names no default")
        })?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The newest version of the format that is known here.
const NEWEST_SCHEMA: (u32, u32) = (1, 4);

fn is_newer(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>());
    let mut part = || parts.next().and_then(Result::ok);
    let found = (part(), part().unwrap_or(0));
    found
        .0
        .is_some_and(|major| (major, found.1) > NEWEST_SCHEMA)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let usual = [
            ("instruction.md", "Do it."),
            ("environment/Dockerfile", "FROM x"),
            ("tests/test.sh", "#!/bin/sh"),
        ];
        for (name, content) in usual.iter().chain(files) {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        directory
    }

    fn refused(files: &[(&str, &str)]) -> Vec<String> {
        let directory = written(files);
        let errors = HarborTask::read(directory.path()).unwrap_err();
        errors.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn what_cannot_be_had_is_refused_by_name() {
        for (task, part) in [
            ("[environment]\ngpus = 1", "GPU"),
            (
                "[environment.tpu]\ntype = \"v6e\"\ntopology = \"2x4\"",
                "TPU",
            ),
            ("[environment]\nos = \"windows\"", "Linux"),
            ("[environment]\nnetwork_mode = \"allowlist\"", "allowlist"),
            (
                "[verifier]\nnetwork_mode = \"no-network\"",
                "agent's network",
            ),
            ("[[steps]]\nname = \"one\"", "several steps"),
            (
                "artifacts = [{ source = \"/x\", service = \"db\" }]",
                "`db`",
            ),
            ("artifacts = [\"../x\"]", "absolute path"),
            (
                "[[environment.mcp_servers]]\nname = \"x\"\nurl = \"http://x\"",
                "MCP",
            ),
            (
                "[environment.env]\nA = \"${ASSIZE_TEST_UNSET}\"",
                "ASSIZE_TEST_UNSET",
            ),
        ] {
            let messages = refused(&[("task.toml", task)]);
            assert!(
                messages.iter().any(|said| said.contains(part)),
                "{task}: {messages:?}"
            );
        }
        let compose = [("task.toml", ""), ("environment/docker-compose.yaml", "")];
        assert!(refused(&compose)[0].contains("several services"));
    }

    #[test]
    fn a_task_is_read_with_its_defaults() {
        let task = "[agent]\ntimeout_sec = 2.5\n[environment]\nmemory = \"2G\"\nallow_internet = false\n\
            [environment.env]\nA = \"x${ASSIZE_TEST_UNSET:-y}z\"\n[metadata]\ntags = [\"a\"]\ndifficulty = \"easy\"";
        let directory = written(&[
            ("task.toml", task),
            (
                "instruction.md",
                "<!-- harbor-canary GUID 1 -->\n\nDo it.\n",
            ),
        ]);
        let (task, _) = HarborTask::read(directory.path()).unwrap();
        assert_eq!(task.agent_limit, Duration::from_millis(2500));
        assert_eq!(task.environment.memory_mb, Some(2048));
        assert_eq!(task.environment.env["A"], "xyz");
        assert!(task.is_offline);
        assert_eq!(task.instruction, "Do it.");
        assert_eq!(task.tags, ["a", "easy"]);
        assert!(matches!(task.verifier.place, VerifierPlace::Shared));
    }

    #[test]
    fn an_environment_of_its_own_makes_the_verifier_separate() {
        let directory = written(&[(
            "task.toml",
            "artifacts = [\"/app/out/\"]\n[verifier.environment]\ncpus = 1",
        )]);
        let (task, _) = HarborTask::read(directory.path()).unwrap();
        let VerifierPlace::Separate {
            has_tests,
            environment,
            ..
        } = &task.verifier.place
        else {
            panic!("it is shared");
        };
        assert!(!has_tests);
        assert_eq!(environment.image, task.environment.image);
        assert_eq!(task.artifacts, ["/logs/artifacts", "/app/out"]);
    }

    #[test]
    fn tasks_are_found_below_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "b/task.toml",
            "a/deep/task.toml",
            ".hidden/task.toml",
            "a/deep/inner/task.toml",
        ] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = find(directory.path());
        let found: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(directory.path()).unwrap())
            .collect();
        assert_eq!(found, [Path::new("a/deep"), Path::new("b")]);
    }
}
