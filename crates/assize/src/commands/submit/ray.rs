//! Ray: a driver of the Python kit with one task per shard. It goes on when the command has ended, and writes what comes back.

use super::record::Submission;
use super::{Activity, Job};
use crate::commands::Obstructed;
use anyhow::{Context, Result};
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

pub(super) const TEMPLATE: &str = include_str!("../../../../../sdk/python/assize/ray_shards.py");
pub(super) const FILE: &str = "ray_shards.py";
const SETTINGS: &str = "ray.json";
const LOG: &str = "driver.log";

/// The driver. It is the same for all jobs and reads its settings from a file beside it.
pub(super) fn render(job: &Job<'_>) -> Result<String> {
    match job.template {
        None => Ok(TEMPLATE.to_owned()),
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the template `{}`", path.display())),
    }
}

/// The settings of the driver.
pub(super) fn settings(job: &Job<'_>) -> String {
    let submission = job.submission;
    let settings = json!({
        "address": job.ray_address,
        "command": job.run_command(),
        "shards": submission.shards,
        "atOnce": job.at_once,
        "attempts": job.attempts,
        "cpus": job.cpus,
        "memoryMb": job.memory_mb,
        "environmentFile": submission.environment_file(),
        "results": submission.shards_directory(),
        "uploads": submission.results.is_some(),
        "roundFile": submission.has_rounds.then(|| submission.round_file()),
    });
    format!("{settings:#}\n")
}

pub(super) fn write_settings(job: &Job<'_>) -> Result<()> {
    job.submission
        .write_file(SETTINGS, settings(job).as_bytes())
}

/// Starts the driver in a session of its own, so that it outlives the terminal. It does shards that are done no second time.
pub(super) fn submit(submission: &Submission) -> Result<String> {
    let python = submission
        .python
        .clone()
        .unwrap_or_else(|| "python3".into());
    let log = submission.logs().join(LOG);
    let log =
        crate::private::file(&log).with_context(|| format!("cannot write `{}`", log.display()))?;
    let mut driver = Command::new(&python);
    driver
        .arg(submission.directory.join(&submission.job_file))
        .arg(submission.directory.join(SETTINGS))
        .current_dir(&submission.directory)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    for name in ["PATH", "HOME", "USER", "LANG", "RAY_ADDRESS", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            driver.env(name, value);
        }
    }
    let started = driver.spawn().map_err(|error| Obstructed {
        message: format!("cannot start `{}`: {error}", python.display()),
        hint: "name a Python that has Ray (`pip install ray`) with `--python PATH`".to_owned(),
    })?;
    Ok(started.id().to_string())
}

/// The driver lives as long as tasks wait or run.
pub(super) fn activity(submission: &Submission) -> Result<Activity> {
    Ok(Activity {
        running: u64::from(driver(submission).is_some()),
        waiting: 0,
    })
}

/// The process of the driver, unless it has ended and its number belongs to another.
fn driver(submission: &Submission) -> Option<i32> {
    let number: i32 = submission.job.as_ref()?.parse().ok()?;
    let arguments = std::fs::read(format!("/proc/{number}/cmdline")).ok()?;
    let settings = submission.directory.join(SETTINGS);
    let settings = settings.as_os_str().as_encoded_bytes();
    let is_it = arguments
        .split(|byte| *byte == 0)
        .any(|part| part == settings);
    is_it.then_some(number)
}

/// Ends the driver, which ends its tasks.
pub(super) fn cancel(submission: &Submission) -> Result<()> {
    let Some(number) = driver(submission) else {
        return Ok(());
    };
    let pid = rustix::process::Pid::from_raw(number).context("a process has a number")?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        .with_context(|| format!("cannot end the driver, process {number}"))?;
    for _ in 0..100 {
        if driver(submission).is_none() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Err(Obstructed {
        message: format!("the driver, process {number}, does not end"),
        hint: format!(
            "look into {}, or end it with `kill -9 {number}`",
            submission.logs().join(LOG).display()
        ),
    }
    .into())
}
