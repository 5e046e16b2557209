//! The keys of a `task.toml`, schema 1.4 and the spellings of earlier ones. Unknown keys are ignored, as Harbor does;
//! [`unknown_keys`] lists them.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A task's settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TaskFile {
    pub(crate) task: Option<TaskInfo>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) agent: AgentPart,
    pub(crate) verifier: VerifierPart,
    pub(crate) environment: EnvironmentPart,
    pub(crate) solution: SolutionPart,
    pub(crate) steps: Vec<Value>,
    pub(crate) artifacts: Vec<Artifact>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TaskInfo {
    /// `org/name`.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) keywords: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentPart {
    pub(crate) timeout_sec: Option<f64>,
    pub(crate) user: Option<User>,
    pub(crate) network_mode: Option<NetworkMode>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VerifierPart {
    pub(crate) timeout_sec: Option<f64>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) user: Option<User>,
    pub(crate) network_mode: Option<NetworkMode>,
    pub(crate) environment_mode: Option<VerifierMode>,
    pub(crate) environment: Option<EnvironmentPart>,
    pub(crate) collect: Vec<Collect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VerifierMode {
    Shared,
    Separate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NetworkMode {
    NoNetwork,
    Public,
    Allowlist,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EnvironmentPart {
    pub(crate) build_timeout_sec: Option<f64>,
    pub(crate) docker_image: Option<String>,
    pub(crate) os: Option<String>,
    pub(crate) cpus: Option<f64>,
    pub(crate) memory_mb: Option<u64>,
    /// An earlier spelling: `2G`.
    pub(crate) memory: Option<String>,
    pub(crate) storage_mb: Option<u64>,
    pub(crate) gpus: Option<u64>,
    pub(crate) gpu_types: Option<Vec<String>>,
    pub(crate) tpu: Option<Value>,
    pub(crate) mcp_servers: Vec<Value>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) skills_dir: Option<String>,
    pub(crate) healthcheck: Option<HealthcheckPart>,
    pub(crate) workdir: Option<String>,
    pub(crate) network_mode: Option<NetworkMode>,
    /// An earlier spelling of `network_mode`.
    pub(crate) allow_internet: Option<bool>,
}

impl EnvironmentPart {
    /// The network of the environment: public by default.
    pub(crate) fn network(&self) -> NetworkMode {
        self.network_mode.unwrap_or(match self.allow_internet {
            Some(false) => NetworkMode::NoNetwork,
            _ => NetworkMode::Public,
        })
    }

    /// The memory in megabytes, in either spelling.
    pub(crate) fn memory(&self) -> Result<Option<u64>, String> {
        match (&self.memory_mb, &self.memory) {
            (Some(memory), _) => Ok(Some(*memory)),
            (None, None) => Ok(None),
            (None, Some(text)) => megabytes(text)
                .map(Some)
                .ok_or_else(|| format!("found `{text}`, expected a size such as `512M` or `2G`")),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct HealthcheckPart {
    pub(crate) command: String,
    #[serde(default = "five")]
    pub(crate) interval_sec: f64,
    #[serde(default = "thirty")]
    pub(crate) timeout_sec: f64,
    #[serde(default)]
    pub(crate) start_period_sec: f64,
    #[serde(default = "five")]
    pub(crate) start_interval_sec: f64,
    #[serde(default = "three")]
    pub(crate) retries: u32,
}

fn three() -> u32 {
    3
}

fn five() -> f64 {
    5.0
}

fn thirty() -> f64 {
    30.0
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SolutionPart {
    pub(crate) env: BTreeMap<String, String>,
}

/// A user by name or number.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum User {
    Name(String),
    Number(u64),
}

impl User {
    pub(crate) fn as_text(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// A path that goes from the agent's container to a separate verifier.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Artifact {
    Path(String),
    Entry(ArtifactEntry),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ArtifactEntry {
    source: String,
    #[serde(default)]
    service: Option<String>,
}

impl Artifact {
    pub(crate) fn source(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Entry(entry) => &entry.source,
        }
    }

    pub(crate) fn service(&self) -> Option<&str> {
        match self {
            Self::Path(_) => None,
            Self::Entry(entry) => entry.service.as_deref(),
        }
    }
}

/// A command that gathers artifacts before a separate verifier.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Collect {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) service: Option<String>,
    #[serde(default)]
    pub(crate) timeout_sec: Option<f64>,
    #[serde(default)]
    pub(crate) user: Option<User>,
}

/// The service that the agent works in.
pub(crate) const MAIN_SERVICE: &str = "main";

fn megabytes(text: &str) -> Option<u64> {
    let text = text.trim().to_uppercase();
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: f64 = number.trim().parse().ok().filter(|number| *number > 0.0)?;
    match unit {
        "G" => Some((number * 1024.0) as u64),
        "M" => Some(number as u64),
        "K" => Some((number / 1024.0) as u64),
        _ => None,
    }
}

const ENVIRONMENT: &[&str] = &[
    "build_timeout_sec",
    "docker_image",
    "os",
    "cpus",
    "memory_mb",
    "memory",
    "storage_mb",
    "storage",
    "gpus",
    "gpu_types",
    "tpu",
    "mcp_servers",
    "env",
    "skills_dir",
    "healthcheck",
    "workdir",
    "network_mode",
    "allowed_hosts",
    "allow_internet",
];

/// Unknown keys, by their place.
pub(crate) fn unknown_keys(task: &Value) -> Vec<String> {
    let known: [(&str, &[&str]); 8] = [
        (
            "",
            &[
                "schema_version",
                "version",
                "task",
                "metadata",
                "verifier",
                "agent",
                "environment",
                "solution",
                "source",
                "multi_step_reward_strategy",
                "multi_step_reward_mode",
                "steps",
                "artifacts",
            ],
        ),
        (
            "/task",
            &["name", "version", "description", "authors", "keywords"],
        ),
        (
            "/agent",
            &["timeout_sec", "user", "network_mode", "allowed_hosts"],
        ),
        (
            "/verifier",
            &[
                "timeout_sec",
                "env",
                "user",
                "network_mode",
                "allowed_hosts",
                "environment_mode",
                "environment",
                "collect",
            ],
        ),
        ("/environment", ENVIRONMENT),
        ("/verifier/environment", ENVIRONMENT),
        ("/solution", &["env"]),
        (
            "/environment/healthcheck",
            &[
                "command",
                "interval_sec",
                "timeout_sec",
                "start_period_sec",
                "start_interval_sec",
                "retries",
            ],
        ),
    ];
    let mut unknown = Vec::new();
    for (place, keys) in known {
        let table = task.pointer(place).and_then(Value::as_object);
        for key in table.into_iter().flat_map(Map::keys) {
            if !keys.contains(&key.as_str()) {
                let place = place.trim_start_matches('/').replace('/', ".");
                let dot = if place.is_empty() { "" } else { "." };
                unknown.push(format!("{place}{dot}{key}"));
            }
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_of_earlier_versions_are_read() {
        for (text, expected) in [
            ("2G", Some(2048)),
            ("512M", Some(512)),
            ("1.5g", Some(1536)),
            ("2048K", Some(2)),
            ("", None),
            ("G", None),
            ("2T", None),
            ("-1G", None),
            ("é", None),
        ] {
            assert_eq!(megabytes(text), expected, "{text}");
        }
    }

    #[test]
    fn the_network_of_earlier_versions_is_read() {
        let network = |value: Value| {
            let part: EnvironmentPart = serde_json::from_value(value).unwrap();
            part.network()
        };
        assert_eq!(network(json!({})), NetworkMode::Public);
        assert_eq!(
            network(json!({"allow_internet": false})),
            NetworkMode::NoNetwork
        );
        let both = json!({"allow_internet": false, "network_mode": "public"});
        assert_eq!(network(both), NetworkMode::Public);
    }

    #[test]
    fn keys_that_nobody_knows_are_named_with_their_place() {
        let task = json!({"version": "1.0", "environment": {"cpus": 1, "disk": 3}, "x": 1});
        assert_eq!(unknown_keys(&task), ["x", "environment.disk"]);
    }
}
