//! `assize try`: commands compared on one prompt. The command line becomes an experiment, which is run like any other.

mod experiment;
mod export;
mod measured;

use crate::cli::TryArguments;
use crate::commands::last_run::Remembering;
use crate::commands::open_page::open_page;
use crate::commands::run::{self, in_runtime};
use crate::commands::{UsageError, own_results_dir, preflight};
use crate::exit::Exit;
use crate::suite::{self, Selection};
use crate::terminal::{Progress, plain, say, warn};
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_engine::{Listener, ProfileSuiteResult, RunTarget};
use assize_report::{Summary, verdict_line};
use experiment::Experiment;
use measured::Measured;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn try_out(arguments: &TryArguments, plugins: &Plugins) -> Result<Exit> {
    let experiment = Experiment::new(arguments)?;
    for name in experiment.unset() {
        warn(&format!("`{name}` is not set, so no command gets it"));
    }
    let passed = experiment.passed();
    if !passed.is_empty() {
        say(format!("the commands get {}", plain(&passed.join(", "))));
    }
    refuse_missing_programs(&experiment, plugins)?;
    if let Some(directory) = &arguments.save {
        save(&experiment, directory)?;
    }
    if arguments.warmup > 0 && !warm_up(&experiment, arguments.warmup, plugins)? {
        return Ok(Exit::Incomplete);
    }
    let listener: Arc<dyn Listener> = match arguments.json {
        true => Arc::new(()),
        false => Arc::new(Progress::new(experiment.names())),
    };
    let results = own_results_dir();
    let listener = Arc::new(Remembering(listener));
    let result = carry_out(&experiment, None, results, listener, plugins)?;
    let run::Judged { summary, exit } = run::judge(&result, None)?;
    let measured = Measured::read(&experiment.names(), &result)?;
    export(arguments, &measured)?;
    match arguments.json {
        true => {
            print_json(&measured, &summary);
            run::print_voids(&result.voids);
        }
        false => run::print_result(&summary, &result.directory),
    }
    if arguments.open {
        open_page(&result.directory.join("report/report.html"));
    }
    if result.open > 0 {
        say(format!(
            "{} of {} trials are open",
            result.open,
            result.open + result.done
        ));
    }
    Ok(exit)
}

/// A command whose program is not there would only give void trials.
fn refuse_missing_programs(experiment: &Experiment, plugins: &Plugins) -> Result<()> {
    let suite = experiment
        .unwritten()
        .load(&Selection::default(), plugins)?;
    let obstacles = preflight::foresee(&suite);
    let Some(first) = obstacles.first() else {
        return Ok(());
    };
    let messages: Vec<&str> = obstacles
        .iter()
        .map(|found| found.message.as_str())
        .collect();
    let hint = match first.hint.starts_with("install it, or") {
        true => {
            "`-m` takes a command as you would type it here: -m 'claude -p {prompt}'".to_owned()
        }
        false => first.hint.clone(),
    };
    Err(UsageError {
        message: messages.join("; "),
        hint: Some(hint),
    }
    .into())
}

/// Runs every command beforehand; nothing of it is kept. Returns whether all of it was run.
fn warm_up(experiment: &Experiment, repetitions: u32, plugins: &Plugins) -> Result<bool> {
    say(format!("warming up: {repetitions} of each"));
    let home = assize_secrets::private_directory("assize-warm-up-")
        .context("cannot create a temporary directory")?;
    let results = home.path().join("runs");
    let quiet = Arc::new(());
    let warmed = carry_out(experiment, Some(repetitions), results, quiet, plugins)?;
    Ok(warmed.open == 0)
}

fn carry_out(
    experiment: &Experiment,
    repetitions: Option<u32>,
    results_dir: PathBuf,
    listener: Arc<dyn Listener>,
    plugins: &Plugins,
) -> Result<ProfileSuiteResult> {
    let selection = Selection {
        repetitions,
        results_dir: Some(results_dir.clone()),
        ..Selection::default()
    };
    let suite = experiment.unwritten().load(&selection, plugins)?;
    in_runtime(suite, RunTarget::New(results_dir), listener)
}

fn save(experiment: &Experiment, directory: &Path) -> Result<()> {
    if suite::FILE_NAMES
        .iter()
        .any(|name| directory.join(name).exists())
    {
        return Err(UsageError {
            message: format!("`{}` already has a suite", directory.display()),
            hint: Some("choose another directory for --save".to_owned()),
        }
        .into());
    }
    experiment.write(directory)?;
    say(plain(&format!(
        "saved; again with `assize run {}`",
        directory.display()
    )));
    Ok(())
}

fn export(arguments: &TryArguments, measured: &Measured) -> Result<()> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
    };
    if let Some(path) = &arguments.export_json {
        write(path, export::json(measured).to_string())?;
    }
    if let Some(path) = &arguments.export_markdown {
        write(path, export::markdown(measured))?;
    }
    Ok(())
}

/// The times of every run and the verdicts, as one object.
fn print_json(measured: &Measured, summary: &Summary) {
    let mut report = export::json(measured);
    let sentences: Vec<String> = match summary.nothing_worked() {
        Some(words) => vec![words.to_owned()],
        None => summary.decisive().map(verdict_line).collect(),
    };
    report["sentences"] = sentences.into();
    crate::terminal::print_json(report.to_string());
}
