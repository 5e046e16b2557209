//! The suite's settings of the capture proxy.

use assize_agents::capture::{CassetteMode, CassetteSettings, CassetteTiming, Service};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Settings of the capture.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CaptureSpec {
    /// The use of the proxy by sessions. Default: auto.
    pub proxy: ProxySpec,
    /// The addresses of the APIs. Default: a base-URL variable of the mode or of the environment, else the real ones.
    pub upstream: UpstreamSpec,
    /// Exchanges on file: recorded, or played back instead of asking anybody.
    pub cassette: Option<CassetteSpec>,
}

/// The use of the proxy by sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProxySpec {
    /// All live sessions get it; one that does not use it is measured by what the agent reports.
    #[default]
    Auto,
    /// All live sessions get it, and one that does not use it is void.
    On,
    /// No session gets it.
    Off,
}

/// Base URLs of APIs, as in an agent's own settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamSpec {
    /// Of Anthropic, without `/v1`.
    pub anthropic: Option<String>,
    /// Of OpenAI, with `/v1`.
    pub openai: Option<String>,
    /// Of Gemini, without `/v1beta`.
    pub gemini: Option<String>,
}

/// A file of exchanges.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CassetteSpec {
    /// The file, relative to the suite.
    pub file: PathBuf,
    /// `record` or `replay`. Default: replay.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub mode: CassetteMode,
    /// Refuse requests that were not recorded, rather than pass them on. Default: true.
    #[serde(default = "yes")]
    pub strict: bool,
    /// `fast` or `original`. Default: fast.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub timing: CassetteTiming,
}

fn yes() -> bool {
    true
}

impl UpstreamSpec {
    /// The given addresses, by service.
    pub(crate) fn given(&self) -> BTreeMap<Service, String> {
        let all = [
            (Service::Anthropic, &self.anthropic),
            (Service::OpenAi, &self.openai),
            (Service::Gemini, &self.gemini),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(service, url)| Some((service, url.clone()?)))
            .collect()
    }
}

impl CassetteSpec {
    /// The same with its file in its place.
    pub(crate) fn settings(&self, directory: &Path) -> CassetteSettings {
        CassetteSettings {
            file: directory.join(&self.file),
            mode: self.mode,
            strict: self.strict,
            timing: self.timing,
        }
    }
}
