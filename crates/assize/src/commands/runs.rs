//! `assize runs`: list, show, remove and prune.

use crate::cli::{RunsAction, RunsArguments};
use crate::commands::containers;
use crate::commands::verdict::{self, Source, Wanted};
use crate::commands::{find_run, missing_run, results_dir, run::print_result};
use crate::exit::Exit;
use crate::terminal::{plain, print, print_hint, print_json, say};
use anyhow::Result;
use assize_contracts::Plugins;
use assize_engine::store::{self, RunDirectory, RunOverview, RunState};
use comfy_table::{Table, presets};
use serde_json::json;
use std::path::Path;

pub(crate) fn runs(arguments: &RunsArguments, plugins: &Plugins) -> Result<Exit> {
    let results = results_dir(&arguments.place, plugins)?;
    match &arguments.action {
        None => list(&results, arguments.json),
        Some(RunsAction::Show { id }) => {
            show(&find_run(id, &arguments.place, plugins)?, arguments.json)
        }
        Some(RunsAction::Rm { ids }) => {
            // All are looked up before any is removed, so that a typo removes nothing.
            // A suite names no run here: its name would remove the last run.
            let find = |id: &String| {
                let run = RunDirectory::find(&results, id);
                run.map_err(|error| missing_run(error, &arguments.place))
            };
            remove(ids.iter().map(find).collect::<Result<_>>()?)
        }
        Some(RunsAction::Prune { keep, dry_run }) => prune(&results, *keep, *dry_run),
    }
}

fn list(results: &Path, as_json: bool) -> Result<Exit> {
    let runs = store::overviews(results)?;
    if as_json {
        for run in &runs {
            print_json(overview(run).to_string());
        }
        return Ok(Exit::Done);
    }
    if runs.is_empty() {
        say(format!(
            "no runs in {}",
            plain(&results.display().to_string())
        ));
        print_hint("`assize run SUITE` makes one, `assize init demo` writes a suite to begin with");
        return Ok(Exit::Done);
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["Run", "Suite", "Started", "Modes", "Trials", "State"]);
    for run in &runs {
        table.add_row([
            run.run_id.clone(),
            plain(&run.name),
            run.created_at
                .as_str()
                .get(..16)
                .unwrap_or_default()
                .replace('T', " "),
            run.arms.to_string(),
            format!("{}/{}", run.done, run.planned),
            listed_state(run).to_owned(),
        ]);
    }
    print(table.to_string());
    Ok(Exit::Done)
}

fn overview(run: &RunOverview) -> serde_json::Value {
    json!({
        "runId": run.run_id,
        "name": run.name,
        "createdAt": run.created_at,
        "state": listed_state(run),
        "planned": run.planned,
        "done": run.done,
        "directory": run.path,
        "fingerprint": run.fingerprint,
    })
}

fn listed_state(run: &RunOverview) -> &'static str {
    match run.state {
        RunState::Complete => "complete",
        RunState::Incomplete => "incomplete",
        // A process may still write to it, so the lock is tried each time.
        RunState::Running => RunDirectory::open(&run.path).map_or("incomplete", |run| state(&run)),
    }
}

/// A run that is recorded as running, while no process holds its lock, was killed.
pub(super) fn state(run: &RunDirectory) -> &'static str {
    match run.manifest().state {
        RunState::Complete => "complete",
        RunState::Incomplete => "incomplete",
        RunState::Running if run.is_locked() => "running",
        RunState::Running => "incomplete",
    }
}

fn show(run: &RunDirectory, as_json: bool) -> Result<Exit> {
    if as_json {
        let mut shown = overview(&RunOverview::of(run)?);
        shown["manifest"] = serde_json::to_value(run.manifest())?;
        print_json(shown.to_string());
        return Ok(Exit::Done);
    }
    let manifest = run.manifest();
    let plan = &manifest.plan;
    let arms: Vec<String> = plan
        .arms
        .iter()
        .map(|arm| format!("{} ({})", arm.mode, arm.model))
        .collect();
    print(format!("run         {} ({})", run.id(), state(run)));
    print(format!("suite       {}", plain(&manifest.name)));
    print(format!("modes       {}", plain(&arms.join(", "))));
    print(format!("scenarios   {}", plain(&plan.scenarios.join(", "))));
    print(format!(
        "repetitions {}, order {}, seed {}",
        plan.repetitions,
        plan.order.as_str(),
        plan.seed
    ));
    print(format!("fingerprint {}", manifest.fingerprint));
    let source = Source::of_run(run)?;
    let summary = verdict::judge(&source, &source.gates()?, None, Wanted::default())?;
    print_result(&summary, run.path());
    Ok(Exit::Done)
}

fn remove(runs: Vec<RunDirectory>) -> Result<Exit> {
    for run in runs {
        let id = run.id().to_owned();
        run.remove()?;
        say(format!("removed {id}"));
    }
    Ok(Exit::Done)
}

fn prune(results: &Path, keep: usize, dry_run: bool) -> Result<Exit> {
    let mut runs = store::list(results)?;
    let old = runs.len().saturating_sub(keep);
    for run in runs.drain(..old).filter(|run| !run.is_locked()) {
        let id = run.id().to_owned();
        if dry_run {
            say(format!("would remove {id}"));
        } else {
            run.remove()?;
            say(format!("removed {id}"));
        }
    }
    if !dry_run {
        containers::sweep()?;
    }
    Ok(Exit::Done)
}
