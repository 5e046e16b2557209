//! `assize try`: commands compared on one prompt, without a suite file.

mod experiment;
mod export;
mod live;
mod measured;
mod sentence;

use crate::cli::TryArguments;
use crate::commands::UsageError;
use crate::commands::run::in_runtime;
use crate::exit::Exit;
use crate::suite::{self, Selection};
use crate::terminal::{plain, print, say, warn};
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_engine::{Listener, ProfileSuiteResult, RunTarget};
use console::style;
use experiment::Experiment;
use live::Live;
use measured::Measured;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn try_out(arguments: &TryArguments, plugins: &Plugins) -> Result<Exit> {
    let experiment = Experiment::new(arguments)?;
    let home = tempfile::tempdir().context("cannot create a temporary directory")?;
    experiment.write(home.path())?;
    if let Some(directory) = &arguments.save {
        save(&experiment, directory)?;
    }
    if arguments.warmup > 0 {
        say(format!("warming up: {} of each", arguments.warmup));
        let warmed = run(home.path(), Some(arguments.warmup), Arc::new(()), plugins)?;
        if warmed.open > 0 {
            return Ok(Exit::Incomplete);
        }
    }
    let live = Arc::new(Live::new(&experiment.names()));
    let result = run(home.path(), None, live, plugins)?;
    let measured = Measured::read(&experiment.names(), &result)?;
    export(arguments, &measured)?;
    show(arguments, &measured)?;
    Ok(if result.open > 0 {
        Exit::Incomplete
    } else {
        Exit::Done
    })
}

/// Runs the suite as it was written; the rows stay in the temporary directory.
fn run(
    home: &Path,
    repetitions: Option<u32>,
    listener: Arc<dyn Listener>,
    plugins: &Plugins,
) -> Result<ProfileSuiteResult> {
    let selection = Selection {
        repetitions,
        ..Selection::default()
    };
    let suite = suite::load(home, &selection, plugins)?;
    let target = RunTarget::New(suite.results_dir.clone());
    in_runtime(suite, target, listener)
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

/// What each command took, then one line for every question.
fn show(arguments: &TryArguments, measured: &Measured) -> Result<()> {
    let sentences = sentence::sentences(measured)?;
    if arguments.json {
        let mut report = export::json(measured);
        report["sentences"] = sentences.into();
        print(report.to_string());
        return Ok(());
    }
    for command in &measured.commands {
        print(style(plain(&command.name)).bold().to_string());
        for line in command.lines() {
            print(format!("  {}", plain(&line)));
        }
    }
    print("");
    for sentence in &sentences {
        print(plain(sentence));
    }
    for remark in measured.remarks() {
        warn(&remark);
    }
    Ok(())
}
