//! Kubernetes: one Indexed Job, one index per shard. Values of secrets are in a Secret that the user makes; the manifest names it.

use super::record::Submission;
use super::tool::Tool;
use super::{Activity, Job};
use crate::commands::UsageError;
use anyhow::{Context, Result};
use serde_json::{Value, json};

pub(super) const TEMPLATE: &str = include_str!("../../../templates/submit/kubernetes.yaml");
pub(super) const FILE: &str = "job.yaml";

/// The mount point of the volume with results.
pub(super) const RESULTS: &str = "/results";

/// The manifest. Values are written as JSON, which is YAML.
pub(super) fn render(job: &Job<'_>) -> Result<String> {
    let kubernetes = job.kubernetes;
    let Some(image) = &kubernetes.image else {
        return Err(UsageError {
            message: "Kubernetes needs an image with `assize`, the agents and the suite".to_owned(),
            hint: Some("name it with `--image registry/name:tag`".to_owned()),
        }
        .into());
    };
    let volume = match (&kubernetes.claim, &job.submission.results) {
        (Some(claim), _) => json!({ "persistentVolumeClaim": { "claimName": claim } }),
        (None, Some(_)) => json!({ "emptyDir": {} }),
        (None, None) => {
            return Err(UsageError {
                message: "the results of pods need a place that outlives them".to_owned(),
                hint: Some(
                    "name a shared volume with `--claim PVC`, or an object store with `--results s3://bucket/prefix`"
                        .to_owned(),
                ),
            }
            .into());
        }
    };
    let (key, volume) = match &volume {
        Value::Object(map) => map.iter().next().context("a volume has a kind")?,
        _ => unreachable!("a volume is an object"),
    };
    let mut values = job.values();
    values.set("name", json!(job_name(&job.submission.id)));
    values.set("parallelism", job.at_once.unwrap_or(job.submission.shards));
    values.set("image", json!(image));
    values.set("run_command", json!(job.run_command()));
    values.set("env_from", env_from(job.secret_name().as_deref()));
    values.set("volume", format!("{key}: {volume}"));
    values.fill(job.template, TEMPLATE)
}

/// Lines of the manifest, at the place where a container has them.
fn env_from(secret: Option<&str>) -> String {
    match secret {
        None => "          envFrom: []".to_owned(),
        Some(secret) => format!(
            "          envFrom:\n            - secretRef:\n                name: {}",
            json!(secret)
        ),
    }
}

/// Names of Kubernetes have lower-case letters, digits and hyphens, at most 63.
pub(super) fn job_name(id: &str) -> String {
    let plain = super::plain_name(id)
        .to_lowercase()
        .replace(['.', '_'], "-");
    let name: String = format!("assize-{plain}").chars().take(52).collect();
    name.trim_end_matches('-').to_owned()
}

/// The command that makes the Secret, with names and no values.
pub(super) fn secret_command(submission: &Submission, secret: &str) -> String {
    let literals: Vec<String> = submission
        .variables
        .iter()
        .map(|name| format!("--from-literal={name}=\"${name}\""))
        .collect();
    let namespace = submission.namespace.as_ref();
    let namespace = namespace.map_or_else(String::new, |name| format!(" --namespace {name}"));
    format!(
        "kubectl{namespace} create secret generic {secret} {}",
        literals.join(" ")
    )
}

fn kubectl(submission: &Submission) -> Tool {
    let tool = Tool::new("kubectl");
    match &submission.namespace {
        Some(namespace) => tool.arg("--namespace").arg(namespace),
        None => tool,
    }
}

pub(super) fn submit(submission: &Submission) -> Result<String> {
    let manifest = submission.directory.join(&submission.job_file);
    kubectl(submission)
        .args(["create", "--filename"])
        .arg(manifest)
        .output()?;
    Ok(job_name(&submission.id))
}

pub(super) fn activity(submission: &Submission) -> Result<Activity> {
    let Some(job) = &submission.job else {
        return Ok(Activity::default());
    };
    let found = kubectl(submission)
        .args(["get", "job", "--ignore-not-found", "--output=json"])
        .arg(job)
        .output()?;
    if found.trim().is_empty() {
        return Ok(Activity::default());
    }
    let found: Value = serde_json::from_str(&found).context("`kubectl get job` printed no JSON")?;
    let number = |key: &str| found["status"][key].as_u64().unwrap_or(0);
    let has_ended = found["status"]["conditions"]
        .as_array()
        .is_some_and(|conditions| {
            let is_end = |kind: &Value| kind == "Complete" || kind == "Failed";
            conditions
                .iter()
                .any(|condition| is_end(&condition["type"]) && condition["status"] == "True")
        });
    let ended = number("succeeded") + number("failed");
    let waiting = u64::from(submission.shards).saturating_sub(ended + number("active"));
    Ok(Activity {
        running: number("active"),
        waiting: if has_ended { 0 } else { waiting },
    })
}

pub(super) fn cancel(submission: &Submission) -> Result<()> {
    match &submission.job {
        None => Ok(()),
        Some(job) => kubectl(submission)
            .args(["delete", "job", "--ignore-not-found"])
            .arg(job)
            .output()
            .map(drop),
    }
}
