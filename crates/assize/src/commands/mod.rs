//! One module per command; each reads as a recipe.

mod analyze;
mod baseline;
mod budget;
mod changes;
mod check;
mod compare;
mod consent;
mod containers;
mod doctor;
mod estimate;
mod export;
mod gate;
mod github;
mod history;
mod image;
mod import;
#[cfg(feature = "sessions")]
mod imported;
mod init;
mod init_agent;
mod init_git;
mod init_session;
mod instructions;
mod last_run;
mod layers;
mod looks;
mod mcp;
mod merge;
mod noise;
mod open_page;
mod oracle;
mod pages;
mod plan;
mod plugins;
mod preflight;
mod project_tests;
mod proxy;
mod record;
mod report;
mod repository;
mod results;
mod rounds;
mod run;
mod runs;
mod schema;
mod score;
mod session_files;
#[cfg(feature = "sessions")]
mod sessions;
mod shards;
mod show;
mod show_run;
mod show_task;
mod skill;
mod submit;
mod try_out;
mod verdict;
mod yaml_text;

pub(crate) use mcp::read_requests as read_mcp_requests;
pub(crate) use preflight::PreflightError;

use crate::cli::{Arguments, Command, Where};
use crate::exit::Exit;
use crate::suite;
use crate::terminal::{plain, say};
use anyhow::Result;
use assize_contracts::Plugins;
use assize_engine::store::{self, RunDirectory, RunFile, StoreError};
use assize_plugins::PluginHost;
use clap::CommandFactory;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Does what the command line says.
pub(crate) fn run(command: Command, plugins: &Plugins) -> Result<Exit> {
    layers::prepare(&command, plugins);
    match command {
        Command::Try(arguments) => try_out::try_out(&arguments, plugins),
        Command::Init(arguments) => init::init(&arguments),
        Command::Check(arguments) => check::check(&arguments, plugins),
        Command::Plan(arguments) => plan::plan(&arguments, plugins),
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
        #[cfg(feature = "sessions")]
        Command::Sessions(arguments) => sessions::sessions(&arguments),
        #[cfg(not(feature = "sessions"))]
        Command::Sessions(_) => Err(without_sessions().into()),
        Command::Analyze(arguments) => analyze::analyze(&arguments, plugins),
        Command::Export(arguments) => export::export(&arguments, plugins),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Plugins(arguments) => plugins::plugins(&arguments, plugins),
        Command::Score(arguments) => score::score(&arguments, plugins),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Submit(arguments) => submit::submit(&arguments, plugins),
        Command::Import(arguments) => import::import(&arguments),
        Command::Skill(arguments) => skill::skill(&arguments, plugins),
        Command::Instructions(arguments) => instructions::instructions(&arguments, plugins),
        Command::Mcp(arguments) => mcp::mcp(&arguments),
        Command::Image(arguments) => image::image(&arguments),
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

/// Something could not be done, and this is the way out.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Obstructed {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// A build that reads no logs says how to get one that does.
#[cfg(not(feature = "sessions"))]
fn without_sessions() -> Obstructed {
    Obstructed {
        message: "this program was built without the readers of session logs".to_owned(),
        hint:
            "released programs have them; from source: `cargo install assize --features sessions`"
                .to_owned(),
    }
}

/// The directory that holds the runs: as given, or the suite's, or the usual one here, or that of the last run.
fn results_dir(place: &Where, _: &Plugins) -> Result<PathBuf> {
    static SAID: Once = Once::new();
    if let Some(given) = given_results(place)? {
        return Ok(given);
    }
    let (results, remembered) = usual_results();
    if let Some(run) = remembered {
        SAID.call_once(|| {
            let path = run.path().display();
            say(plain(&format!(
                "there is no suite here; the last run is meant:\n  {path}"
            )));
        });
    }
    Ok(results)
}

/// The directory in which a command that needs no suite keeps its runs.
fn own_results_dir() -> PathBuf {
    results_here()
}

fn given_results(place: &Where) -> Result<Option<PathBuf>> {
    match (&place.output, &place.suite) {
        (Some(output), _) => Ok(Some(output.clone())),
        (None, Some(path)) => Ok(Some(suite::configured_results_dir(path)?)),
        (None, None) => Ok(None),
    }
}

/// A suite here may keep its runs elsewhere; one that is broken must not keep people from their runs.
fn results_here() -> PathBuf {
    let configured = suite::configured_results_dir(Path::new("."));
    configured.unwrap_or_else(|_| PathBuf::from(".assize/runs"))
}

/// The runs of what is here; where there is nothing, those among which the last run is, and that run.
fn usual_results() -> (PathBuf, Option<RunDirectory>) {
    let here = results_here();
    let is_here = suite::find(Path::new(".")).is_ok() || store::has_runs(&here);
    let remembered = if is_here { None } else { last_run::recall() };
    match remembered {
        Some(run) => {
            let results = run.path().parent().unwrap_or(Path::new("."));
            (results.to_owned(), Some(run))
        }
        None => (here, None),
    }
}

/// A run by its id, a part of it, `last`, its directory, or the suite whose last run is meant.
fn find_run(id: &str, place: &Where, plugins: &Plugins) -> Result<RunDirectory> {
    if let Some(results) = results_of_suite(id) {
        return RunDirectory::find(&results, "last").map_err(|error| missing_run(error, place));
    }
    let results = results_dir(place, plugins)?;
    RunDirectory::find(&results, id).map_err(|error| missing_run(error, place))
}

/// The runs of a suite that is named where a run is expected, as in `assize show demo`.
fn results_of_suite(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_suite_file = || {
        let name = path.file_name().and_then(|name| name.to_str());
        path.is_file() && name.is_some_and(|name| suite::FILE_NAMES.contains(&name))
    };
    let is_suite = (path.is_dir() && suite::find(path).is_ok()) || is_suite_file();
    let results = is_suite.then(|| suite::configured_results_dir(path).ok())?;
    results.filter(|_| !RunFile::Manifest.within(path).exists())
}

fn is_name_of_missing_file(name: &str) -> bool {
    let path = Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("json" | "jsonl" | "zst" | "db")) && !path.exists()
}

/// Says how to list the runs of the place that was looked into, or that there is none yet.
fn missing_run(error: StoreError, place: &Where) -> anyhow::Error {
    let StoreError::NotFound { directory, id } = &error else {
        return error.into();
    };
    if is_name_of_missing_file(id) {
        return Obstructed {
            message: format!("there is no file `{id}`, and no run of that name"),
            hint: "runs are named by their id, a part of it, or `last`; `assize runs` lists them"
                .to_owned(),
        }
        .into();
    }
    let mut flags = String::new();
    for (flag, path) in [("--suite", &place.suite), ("--output", &place.output)] {
        if let Some(path) = path {
            flags.push_str(&format!(" {flag} {}", path.display()));
        }
    }
    let has_runs = store::has_runs(directory);
    Obstructed {
        message: match has_runs {
            true => error.to_string(),
            false => format!("there are no runs in `{}`", directory.display()),
        },
        hint: match has_runs {
            true => format!("`assize runs{flags}` lists the runs there are"),
            false => {
                "`assize run SUITE` makes one; `--suite PATH` names the suite whose runs are meant"
                    .to_owned()
            }
        },
    }
    .into()
}
