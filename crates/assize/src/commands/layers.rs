//! Readies this process for workspaces that are layers, while it still has a single thread.

use crate::cli::{Command, RunArguments, Where};
use crate::commands::results_dir;
use crate::commands::run::suite_path;
use crate::suite;
use assize_contracts::Plugins;
use assize_engine::store::RunDirectory;
use assize_process::workspace::{default_root, enter_namespace};
use std::path::PathBuf;

/// Moves to a mount namespace of its own, if the command is going to make workspaces and layers work here.
pub(super) fn prepare(command: &Command, plugins: &Plugins) {
    let makes_workspaces = match command {
        Command::Run(arguments) => {
            !arguments.dry_run && suite::has_layers(&path(arguments, plugins))
        }
        Command::Plan(arguments) => {
            let path = arguments.path.clone().unwrap_or_else(|| ".".into());
            (arguments.pilot.is_some() || arguments.aa) && suite::has_layers(&path)
        }
        Command::Try(arguments) => arguments.workspace.is_some(),
        _ => false,
    };
    if makes_workspaces && let Ok(root) = default_root() {
        enter_namespace(&root);
    }
}

/// The suite: as given, or the one of the run that is resumed, or the one that is here.
fn path(arguments: &RunArguments, plugins: &Plugins) -> PathBuf {
    let recorded = || {
        let place = Where {
            suite: None,
            output: arguments.output.clone(),
        };
        let runs = results_dir(&place, plugins).ok()?;
        let run = RunDirectory::find(&runs, arguments.resume.as_deref()?).ok()?;
        Some(suite_path(None, &run))
    };
    let given = arguments.path.clone();
    given.or_else(recorded).unwrap_or_else(|| ".".into())
}
