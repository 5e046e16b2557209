//! A build without object stores says how to get one with them.

use super::Parts;
use crate::commands::Obstructed;
use anyhow::Result;
use assize_engine::{Event, Listener};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Uploads of a shard; there are none in this build.
pub(crate) enum Uploads {}

impl Uploads {
    pub(crate) fn new(_: &str, _: Arc<dyn Listener>) -> Result<Arc<Self>> {
        Err(missing())
    }

    pub(crate) fn fetch(_: &str, _: &assize_engine::ProfileSuite, _: &Path) -> Result<bool> {
        Err(missing())
    }

    pub(crate) fn finish(&self) -> Result<()> {
        match *self {}
    }
}

impl Listener for Uploads {
    fn on_event(&self, _: &Event<'_>) {
        match *self {}
    }
}

pub(crate) fn check() -> Result<()> {
    Err(missing())
}

pub(crate) fn download(_: &str, _: &Path) -> Result<TempDir> {
    Err(missing())
}

pub(crate) fn progress(_: &str) -> Result<Vec<Parts>> {
    Err(missing())
}

pub(crate) fn publish_round(_: &str, _: &[u8]) -> Result<()> {
    Err(missing())
}

pub(crate) fn round(_: &str) -> Result<Option<Vec<u8>>> {
    Err(missing())
}

fn missing() -> anyhow::Error {
    Obstructed {
        message: "this build of assize has no object stores".to_owned(),
        hint: "released programs have them; `cargo install assize --features object-store` builds one, or use a shared directory with --output"
            .to_owned(),
    }
    .into()
}
