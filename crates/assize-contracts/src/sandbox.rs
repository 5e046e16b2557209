//! The wall around an agent: what a suite, mode or scenario asks for, and what one session is given.

use serde::de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The wall around the agent of a trial. In files a name, or a name with settings: `guard`, `none`,
/// `{ guard: { network: model } }`, `{ container: { image: … } }`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Sandbox {
    /// Rules of the kernel around the agent's processes.
    Guard(Guard),
    /// A container of an image.
    Container(Box<Container>),
    /// No wall: the agent can do what its user can.
    None,
}

/// Settings of `guard`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Guard {
    /// `open` (default), or `model`: TCP connections only to the capture proxy and to servers that the suite names.
    #[serde(skip_serializing_if = "GuardNetwork::is_open")]
    pub network: GuardNetwork,
    /// Files and directories that the agent must not read, besides the suite's own. Relative to the suite.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<PathBuf>,
    /// Files and directories below hidden ones that the agent may read all the same. Relative to the suite.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<PathBuf>,
}

/// The TCP connections that `guard` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GuardNetwork {
    /// All of them.
    #[default]
    Open,
    /// Those to the capture proxy's port and to loopback servers that the suite names.
    Model,
}

impl GuardNetwork {
    /// True if every connection is allowed.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }
}

/// Settings of `container`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Container {
    /// The image. Either this or `build`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A directory with a Dockerfile to build the image from. Relative to the suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<PathBuf>,
    /// The program that runs containers. Default: the first that works.
    #[serde(skip_serializing_if = "ContainerEngine::is_auto")]
    pub engine: ContainerEngine,
    /// The most processors it may use; fractions are possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// The most memory it may use, in megabytes.
    #[serde(alias = "memoryMb", skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// `open` (default), `model` or `none`.
    #[serde(skip_serializing_if = "ContainerNetwork::is_open")]
    pub network: ContainerNetwork,
    /// Directories of the host inside the container: `HOST:CONTAINER`, or `HOST:CONTAINER:ro`. Relative to the suite.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    /// The user inside, by name or `UID:GID`. Default: the image's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The directory inside in which programs start where the scenario has no workspace. Default: the image's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Variables of everything inside, over the image's own. The mode's variables go before them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// A directory inside whose skills the agent is given, where its kind of agent looks for them.
    #[serde(alias = "skillsDir", skip_serializing_if = "Option::is_none")]
    pub skills_dir: Option<String>,
    /// Lines for the shell inside that are run as root before the agent starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// A command that must succeed inside before the agent starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthcheck: Option<Healthcheck>,
    /// Add the agent to the image where it is missing, as `assize image build` does. Default: false.
    #[serde(alias = "installAgent", skip_serializing_if = "std::ops::Not::not")]
    pub install_agent: bool,
    /// Time limit for building the image, in milliseconds. Default: 1800000.
    #[serde(alias = "buildTimeoutMs", skip_serializing_if = "Option::is_none")]
    pub build_timeout_ms: Option<u64>,
}

/// A command that says whether a container is ready, tried again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Healthcheck {
    /// A line for the shell inside. Exit code 0 means ready.
    pub command: String,
    /// The time between two tries. Default: 5000.
    #[serde(default = "five_seconds", alias = "intervalMs")]
    pub interval_ms: u64,
    /// The time for one try. Default: 30000.
    #[serde(default = "thirty_seconds", alias = "timeoutMs")]
    pub timeout_ms: u64,
    /// Failures in this time after the start do not count. Default: 0.
    #[serde(default, alias = "startPeriodMs")]
    pub start_period_ms: u64,
    /// The time between two tries in that period. Default: 5000.
    #[serde(default = "five_seconds", alias = "startIntervalMs")]
    pub start_interval_ms: u64,
    /// The failures in a row after which the container counts as broken. Default: 3.
    #[serde(default = "three")]
    pub retries: u32,
}

fn five_seconds() -> u64 {
    5_000
}

fn thirty_seconds() -> u64 {
    30_000
}

fn three() -> u32 {
    3
}

/// The program that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContainerEngine {
    /// The first of the others that works.
    #[default]
    Auto,
    /// `docker`.
    Docker,
    /// `podman`.
    Podman,
    /// `nerdctl`.
    Nerdctl,
}

impl ContainerEngine {
    /// True if the suite leaves the choice to Assize.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The network of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContainerNetwork {
    /// The engine's own.
    #[default]
    Open,
    /// None but the capture proxy.
    Model,
    /// None at all.
    None,
}

impl ContainerNetwork {
    /// True if the container has the engine's own network.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::Guard(Guard::default())
    }
}

impl Sandbox {
    /// The names in files.
    pub const NAMES: [&'static str; 3] = ["guard", "container", "none"];

    /// The name in files: `guard`, `container` or `none`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Guard(_) => "guard",
            Self::Container(_) => "container",
            Self::None => "none",
        }
    }
}

/// A name with its settings, as it is written.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct DetailedSandbox {
    /// Rules of the kernel around the agent's processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guard: Option<Guard>,
    /// A container of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    container: Option<Container>,
}

impl Serialize for Sandbox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let settings = |guard, container| DetailedSandbox { guard, container };
        match self {
            Self::None => serializer.serialize_str(self.name()),
            Self::Guard(guard) if *guard == Guard::default() => {
                serializer.serialize_str(self.name())
            }
            Self::Guard(guard) => settings(Some(guard.clone()), None).serialize(serializer),
            Self::Container(container) => {
                settings(None, Some(Container::clone(container))).serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Sandbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SandboxVisitor)
    }
}

struct SandboxVisitor;

impl<'de> Visitor<'de> for SandboxVisitor {
    type Value = Sandbox;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`guard`, `none`, or `{ container: { image: … } }`")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Sandbox, E> {
        match name {
            "guard" => Ok(Sandbox::default()),
            "none" => Ok(Sandbox::None),
            "container" => Err(E::custom(
                "a container needs an image, expected `{ container: { image: … } }`",
            )),
            other => Err(E::unknown_variant(other, &Sandbox::NAMES)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, items: A) -> Result<Sandbox, A::Error> {
        let settings = DetailedSandbox::deserialize(MapAccessDeserializer::new(items))?;
        match (settings.guard, settings.container) {
            (Some(guard), None) => Ok(Sandbox::Guard(guard)),
            (None, Some(container)) => Ok(Sandbox::Container(Box::new(container))),
            _ => Err(A::Error::custom(
                "expected one of `guard` and `container` with its settings",
            )),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Sandbox {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sandbox".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let settings = generator.subschema_for::<DetailedSandbox>();
        schemars::json_schema!({
            "description": "The wall around the agent of a trial: `guard`, `none`, or a name with settings.",
            "oneOf": [{ "enum": ["guard", "none"] }, settings],
        })
    }
}

/// The extent to which a suite's sandbox surrounds the agents of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandboxing {
    /// There is no agent that could do anything: sessions are made up or played back.
    NoProcess,
    /// The provider puts [`CreateSessionParams::sandbox`](crate::CreateSessionParams::sandbox) around its agents.
    Kept,
    /// The provider starts its agents by means of its own, which no wall reaches.
    OutOfReach,
}

/// The wall of a mode, as in a run's manifest (`provenance.sandbox`) and in its report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WallRecord {
    /// The mode.
    pub mode: String,
    /// The scenario, where it has a wall of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// The wall that was in effect: `guard`, `container` or `none`, whatever was asked for.
    pub sandbox: String,
    /// The same with its limits, for people.
    pub words: String,
    /// The version of Landlock's interface, for `guard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// A sentence about what the wall could not keep agents from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
}

/// Places of a run that matter to its walls. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxPlaces {
    /// The suite's directory. Paths in [`Guard`] and [`Container`] are relative to it.
    pub suite: PathBuf,
    /// Hidden from every agent: the suite's directory, run directories, baselines.
    pub hidden: Vec<PathBuf>,
    /// Shown all the same: tools of the user that lie in hidden places.
    pub shown: Vec<PathBuf>,
    /// Never shown to an agent, whatever the suite says: scenarios, files of checks, expected answers, stored runs.
    pub answers: Vec<PathBuf>,
}

/// The wall of one session: what the suite asks for, and the places of this run and session that it depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSandbox {
    /// As the suite, mode or scenario says it.
    pub sandbox: Arc<Sandbox>,
    /// The same for all sessions of a run.
    pub places: Arc<SandboxPlaces>,
    /// Absolute paths that belong to this trial alone and may be changed: the place of its workspace. Empty without one.
    pub writable: Vec<PathBuf>,
    /// Loopback ports that stay reachable where the network is limited: the capture proxy's, and those of servers that
    /// the suite names.
    pub ports: Vec<u16>,
    /// The way from a container to the capture proxy. Absent where the session is not captured.
    pub door: Option<ModelDoor>,
    /// The run, for labels of containers.
    pub run: Arc<str>,
}

/// The way from a container to the capture proxy: a port on the container's loopback, and the Unix socket it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDoor {
    /// The port, as in base URLs.
    pub port: u16,
    /// The socket on this machine.
    pub socket: PathBuf,
}

/// A container in which an agent works, as its engine knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerHandle {
    /// The engine's program.
    pub engine: String,
    /// The container's name.
    pub name: String,
}

impl ContainerHandle {
    /// The key under which session handles carry it.
    pub const KEY: &'static str = "container";
}

impl SessionSandbox {
    /// True if rules of the kernel go around the agent's processes.
    pub fn is_guard(&self) -> bool {
        matches!(*self.sandbox, Sandbox::Guard(_))
    }
}

impl Default for SessionSandbox {
    /// No wall.
    fn default() -> Self {
        Self {
            sandbox: Arc::new(Sandbox::None),
            places: Arc::default(),
            writable: Vec::new(),
            ports: Vec::new(),
            door: None,
            run: Arc::from(""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: Value) -> Result<Sandbox, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_alone_means_its_defaults() {
        assert_eq!(read(json!("guard")), Ok(Sandbox::default()));
        assert_eq!(read(json!("none")), Ok(Sandbox::None));
        assert_eq!(read(json!({"guard": {}})), Ok(Sandbox::default()));
    }

    #[test]
    fn settings_come_back_as_they_were_written() {
        for written in [
            json!("guard"),
            json!("none"),
            json!({"guard": {"network": "model", "hide": ["../x"], "show": ["bin"]}}),
            json!({"container": {"image": "debian:12", "engine": "podman", "cpus": 1.5, "memory_mb": 512,
                "network": "none", "mounts": ["data:/data:ro"], "user": "1000:1000"}}),
        ] {
            let sandbox = read(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(sandbox).unwrap(), written);
        }
    }

    #[test]
    fn what_is_no_sandbox_is_refused() {
        for (written, expected) in [
            (
                json!("gaurd"),
                "expected one of `guard`, `container`, `none`",
            ),
            (json!("container"), "needs an image"),
            (json!({}), "expected one of"),
            (json!({"guard": {}, "container": {}}), "expected one of"),
            (json!({"guard": {"network": "none"}}), "unknown variant"),
            (json!({"guard": {"hidden": []}}), "unknown field"),
            (json!(3), "invalid type"),
        ] {
            let message = read(written).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
