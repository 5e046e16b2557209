//! In place of `servers.rs` in a build without the feature `mcp`, where the settings refuse every server.

use super::tools::ToolOutput;
use crate::mcp;
use assize_contracts::ProviderError;
use assize_llm::ToolSpec;
use assize_process::Command;
use serde_json::Value;
use std::time::Duration;

pub(super) struct Servers;

impl Servers {
    pub(super) async fn open(
        _: Vec<mcp::Server>,
        _: impl Fn(&str) -> Command,
        _: Duration,
    ) -> Result<Self, ProviderError> {
        Ok(Self)
    }

    /// Cannot look: agents with a client of their own find out themselves.
    pub(super) async fn try_out(
        _: Vec<mcp::Server>,
        _: impl Fn(&str) -> Command,
        _: Duration,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    pub(super) fn has(&self, _: &str) -> bool {
        false
    }

    pub(super) async fn call(&self, name: &str, _: &Value) -> ToolOutput {
        ToolOutput::failed(format!("there is no tool `{name}`"))
    }

    pub(super) async fn close(self) {}
}
