//! Slurm: one array, one element per shard.

use super::record::Submission;
use super::tool::{Tool, is_missing};
use super::{Activity, Job};
use anyhow::{Context, Result};
use std::fmt::Write;

pub(super) const TEMPLATE: &str = include_str!("../../../templates/submit/slurm.sh");
pub(super) const FILE: &str = "job.sh";

/// The job file.
pub(super) fn render(job: &Job<'_>) -> Result<String> {
    let mut values = job.values();
    let at_once = job.at_once.map(|most| format!("%{most}"));
    values.set("name", super::plain_name(&job.submission.id));
    values.set("at_once", at_once.unwrap_or_default());
    values.set("directory", job.submission.directory.display());
    let environment = job.submission.environment_file().display().to_string();
    values.set("environment_file", super::quoted(&environment)?);
    values.set("run_command", super::joined(&job.run_command())?);
    values.fill(job.template, TEMPLATE)
}

/// Submits the array, or only some of its elements again.
pub(super) fn submit(submission: &Submission, only: Option<&[u32]>) -> Result<String> {
    let script = submission.directory.join(&submission.job_file);
    let mut sbatch = Tool::new("sbatch").within(&submission.directory);
    sbatch = sbatch.arg("--parsable");
    if let Some(shards) = only {
        sbatch = sbatch.arg(format!("--array={}", ranges(shards)));
    }
    let answer = sbatch.arg(script).output()?;
    // `123` or `123;cluster`.
    let id = answer.trim().split(';').next().unwrap_or_default();
    let id: u64 = id.parse().with_context(|| {
        format!(
            "`sbatch` answered `{}`, expected the id of a job",
            answer.trim()
        )
    })?;
    Ok(id.to_string())
}

/// The number of elements that wait and run. Those that have ended are no longer listed.
pub(super) fn activity(submission: &Submission) -> Result<Activity> {
    let Some(job) = &submission.job else {
        return Ok(Activity::default());
    };
    let listed = Tool::new("squeue")
        .args(["--noheader", "--array", "--format=%T", "--jobs"])
        .arg(job)
        .output();
    let listed = match listed {
        Ok(listed) => listed,
        // A job that ended some time ago is forgotten.
        Err(error) if error.to_string().contains("Invalid job id") => String::new(),
        Err(error) => return Err(error),
    };
    let mut activity = Activity::default();
    for state in listed.lines() {
        match state.trim() {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "SUSPENDED" => activity.waiting += 1,
            "" => {}
            _ => activity.running += 1,
        }
    }
    Ok(activity)
}

pub(super) fn cancel(submission: &Submission) -> Result<()> {
    let Some(job) = &submission.job else {
        return Ok(());
    };
    match Tool::new("scancel").arg(job).output() {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Err(error),
        // It has ended already.
        Err(error) if error.to_string().contains("Invalid job id") => Ok(()),
        Err(error) => Err(error),
    }
}

/// `1-3,7` for 1, 2, 3 and 7.
fn ranges(numbers: &[u32]) -> String {
    let mut text = String::new();
    for range in numbers.chunk_by(|a, b| a + 1 == *b) {
        let (first, last) = (range[0], range[range.len() - 1]);
        let separator = if text.is_empty() { "" } else { "," };
        let written = match first == last {
            true => write!(text, "{separator}{first}"),
            false => write!(text, "{separator}{first}-{last}"),
        };
        written.expect("a string takes every text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn elements_are_written_as_slurm_reads_them() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
        assert_eq!(ranges(&[4]), "4");
    }
}
