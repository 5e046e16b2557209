//! One module per command; each reads as a recipe.

mod analyze;
mod baseline;
mod check;
mod compare;
mod consent;
mod doctor;
mod estimate;
mod gate;
mod github;
mod history;
mod init;
mod layers;
mod mcp;
mod pages;
mod plugins;
mod preflight;
mod proxy;
mod record;
mod report;
mod run;
mod runs;
mod schema;
mod score;
mod show;
mod show_task;
mod try_out;
mod verdict;

pub(crate) use preflight::PreflightError;

use crate::cli::{Arguments, Command, Where};
use crate::exit::Exit;
use crate::suite;
use anyhow::Result;
use assize_contracts::Plugins;
use assize_plugins::PluginHost;
use clap::CommandFactory;
use std::path::{Path, PathBuf};

/// Does what the command line says.
pub(crate) fn run(command: Command, plugins: &Plugins) -> Result<Exit> {
    layers::prepare(&command, plugins);
    match command {
        Command::Try(arguments) => try_out::try_out(&arguments, plugins),
        Command::Init(arguments) => init::init(&arguments),
        Command::Check(arguments) => check::check(&arguments, plugins),
        Command::Run(arguments) => run::run(&arguments, plugins),
        Command::Runs(arguments) => runs::runs(&arguments, plugins),
        Command::Show(arguments) => show::show(&arguments, plugins),
        Command::Report(arguments) => report::report(&arguments, plugins),
        Command::Compare(arguments) => compare::compare(&arguments, plugins),
        Command::History(arguments) => history::history(&arguments, plugins),
        Command::Gate(arguments) => gate::gate(&arguments, plugins),
        Command::Baseline(arguments) => baseline::baseline(&arguments, plugins),
        Command::Record(arguments) => record::record(&arguments),
        Command::Proxy(arguments) => proxy::proxy(&arguments),
        Command::Analyze(arguments) => analyze::analyze(&arguments, plugins),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Plugins(arguments) => plugins::plugins(&arguments, plugins),
        Command::Score(arguments) => score::score(&arguments, plugins),
        Command::Mcp(arguments) => mcp::mcp(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Completions { shell } => {
            let mut command = Arguments::command();
            clap_complete::generate(shell, &mut command, "assize", &mut std::io::stdout());
            Ok(Exit::Done)
        }
    }
}

/// The command line makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct UsageError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Starts the plugin programs of the suite that was given, or of the one that is here.
fn plugin_programs(suite: Option<&Path>) -> Result<Option<PluginHost>> {
    let path = match suite {
        Some(path) => path,
        None if suite::find(Path::new(".")).is_ok() => Path::new("."),
        None => return Ok(None),
    };
    Ok(suite::start_programs(path)?)
}

/// The directory that holds the runs: as given, or the suite's, or the usual one here.
fn results_dir(place: &Where, _: &Plugins) -> Result<PathBuf> {
    if let Some(output) = &place.output {
        return Ok(output.clone());
    }
    match &place.suite {
        Some(path) => Ok(suite::configured_results_dir(path)?),
        // A suite here may keep its runs elsewhere; one that is broken must not keep people from their runs.
        None => Ok(suite::configured_results_dir(Path::new("."))
            .unwrap_or_else(|_| PathBuf::from(".assize/runs"))),
    }
}
