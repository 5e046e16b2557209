//! `assize import harbor DIR`: the Harbor tasks of a directory, what each requires, and which of it is not supported.

use crate::cli::ImportArguments;
use crate::commands::UsageError;
use crate::exit::Exit;
use crate::suite::FileError;
use crate::suite::harbor::{HarborTask, ImageOf, VerifierPlace, find};
use crate::terminal::{plain, print, print_json, say};
use anyhow::{Context, Result};
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A task that was looked at.
struct Found {
    directory: PathBuf,
    read: Result<HarborTask, Vec<FileError>>,
}

pub(super) fn import(arguments: &ImportArguments) -> Result<Exit> {
    let directories = find(&arguments.path);
    if directories.is_empty() {
        return Err(UsageError {
            message: format!("there is no Harbor task in `{}`", arguments.path.display()),
            hint: Some("a task is a directory with `task.toml`".to_owned()),
        }
        .into());
    }
    let found: Vec<Found> = directories
        .into_iter()
        .map(|directory| Found {
            read: HarborTask::read(&directory).map(|(task, _)| task),
            directory,
        })
        .collect();
    match arguments.json {
        true => found
            .iter()
            .for_each(|found| print_json(found.to_json().to_string())),
        false => show(&found),
    }
    if let Some(directory) = &arguments.save {
        save(directory, &arguments.path)?;
    }
    let is_whole = found.iter().all(|found| found.read.is_ok());
    Ok(if is_whole { Exit::Done } else { Exit::Usage })
}

impl Found {
    fn name(&self) -> String {
        let name = self.directory.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn to_json(&self) -> Value {
        match &self.read {
            Ok(task) => json!({
                "id": task.id,
                "name": task.name,
                "directory": task.directory,
                "agentTimeoutMs": task.agent_limit.as_millis() as u64,
                "verifierTimeoutMs": task.verifier.limit.as_millis() as u64,
                "image": image(task),
                "cpus": task.environment.cpus,
                "memoryMb": task.environment.memory_mb,
                "network": network(task),
                "verifier": verifier(task),
                "hasHealthcheck": task.environment.healthcheck.is_some(),
                "hasSolution": task.has_solution(),
                "tags": task.tags,
                "remarks": task.remarks,
            }),
            Err(errors) => json!({
                "id": self.name(),
                "directory": self.directory,
                "refused": errors.iter().map(|error| error.message.clone()).collect::<Vec<_>>(),
            }),
        }
    }
}

fn show(found: &[Found]) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "Task", "Agent", "Tests", "Image", "CPUs", "Memory", "Network", "Verifier", "Oracle",
    ]);
    for task in found.iter().filter_map(|found| found.read.as_ref().ok()) {
        let environment = &task.environment;
        let unlimited = || "–".to_owned();
        table.add_row([
            plain(&task.id),
            in_words(task.agent_limit),
            in_words(task.verifier.limit),
            plain(&image(task)),
            environment
                .cpus
                .map_or_else(unlimited, |cpus| cpus.to_string()),
            environment
                .memory_mb
                .map_or_else(unlimited, |memory| format!("{memory} MB")),
            network(task).to_owned(),
            verifier(task).to_owned(),
            (if task.has_solution() { "yes" } else { "no" }).to_owned(),
        ]);
    }
    if found.iter().any(|found| found.read.is_ok()) {
        print(table.to_string());
    }
    for found in found {
        match &found.read {
            Ok(task) => {
                for remark in &task.remarks {
                    say(plain(&format!("{}: {remark}", task.id)));
                }
            }
            Err(errors) => {
                for error in errors {
                    say(plain(&format!(
                        "{} cannot be run: {}",
                        found.name(),
                        error.message
                    )));
                }
            }
        }
    }
}

fn in_words(limit: Duration) -> String {
    match limit.as_secs_f64() {
        seconds if seconds >= 120.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{seconds:.0} s"),
    }
}

fn image(task: &HarborTask) -> String {
    match &task.environment.image {
        ImageOf::Named(name) => name.clone(),
        ImageOf::Built { .. } => "Dockerfile".to_owned(),
    }
}

fn network(task: &HarborTask) -> &'static str {
    if task.is_offline { "model" } else { "open" }
}

fn verifier(task: &HarborTask) -> &'static str {
    match task.verifier.place {
        VerifierPlace::Shared => "shared",
        VerifierPlace::Separate { .. } => "separate",
    }
}

/// Writes a suite of the tasks, unless there is one.
fn save(directory: &Path, tasks: &Path) -> Result<()> {
    let file = directory.join("assize.yaml");
    if file.exists() {
        return Err(UsageError {
            message: format!("`{}` exists already", file.display()),
            hint: Some("name another directory".to_owned()),
        }
        .into());
    }
    let tasks = std::path::absolute(tasks)?;
    let text = format!(
        "version: 1\nprovider: {{ uses: claude-code }}   # any agent that has a recipe, `acp` or `command`\npermissions: {{ auto_approve: true }}\n\
         modes:\n  plain: {{}}\nscenarios:\n  harbor: [{}]\nexecution: {{ repetitions: 3, concurrency: 2, warmup: false }}\n",
        Value::String(tasks.to_string_lossy().into_owned())
    );
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&file, text))
        .with_context(|| format!("cannot write `{}`", file.display()))?;
    say(plain(&format!(
        "wrote {}; `assize check --oracle {}` proves its tasks",
        file.display(),
        directory.display()
    )));
    Ok(())
}
