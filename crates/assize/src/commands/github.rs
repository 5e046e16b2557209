//! The page of a GitHub job: what a run came to, where people look first.

use crate::terminal::warn;
use anyhow::{Context, Result};
use assize_report::{Summary, render_job_summary};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// GitHub drops all of a step's summary when it is longer than this.
const MOST: u64 = 1 << 20;

/// Half of it is more than anybody reads, and leaves room for others in the same step.
const OURS: usize = 512 << 10;

/// Appends to the job's page when run in a GitHub workflow. A page that cannot be written costs no run.
pub(super) fn append_job_summary(summary: &Summary, title: &str) {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return;
    };
    if let Err(error) = append(summary, title, Path::new(&path)) {
        warn(&format!("the job summary could not be written: {error:#}"));
    }
}

fn append(summary: &Summary, title: &str, path: &Path) -> Result<()> {
    let cannot = || format!("cannot write `{}`", path.display());
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(cannot)?;
    let there = file.metadata().with_context(cannot)?.len();
    let room = usize::try_from(MOST.saturating_sub(there)).unwrap_or(usize::MAX);
    let text = render_job_summary(summary, title, room.min(OURS));
    file.write_all(text.as_bytes()).with_context(cannot)
}
