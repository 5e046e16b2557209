//! Mode resolvers: from the name of a mode to its settings.

use crate::{BoxError, JsonMap};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Turns mode names into settings, for suites that only list names.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a mode resolver",
    note = "implement `ModeResolver` with `#[assize_contracts::async_trait]` above the impl"
)]
pub trait ModeResolver: Send + Sync {
    /// Called once per mode, one after another, before anything else of a run. An unknown name must be an error:
    /// it ends the run before a token is spent.
    async fn resolve(&self, mode: &str) -> Result<ModeConfig, BoxError>;
}

/// The settings of a mode.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ModeConfig {
    /// Variables for every process started for a session of the mode.
    pub environment: BTreeMap<String, String>,
    /// System instructions for the agent.
    pub system_instructions: String,
    /// Settings for the provider.
    pub provider_overrides: JsonMap,
}
