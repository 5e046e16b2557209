//! `assize baseline`: runs kept under a name. A baseline is a run directory without traces, so it can be compared,
//! reported and committed like one, and outlives the run it was made of.

use crate::cli::{Against, BaselineAction, BaselineArguments, Where};
use crate::commands::run::print_result;
use crate::commands::verdict::{self, Source};
use crate::commands::{Obstructed, UsageError, missing_run, results_dir};
use crate::exit::Exit;
use crate::private;
use crate::terminal::{plain, print, say};
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_engine::store::{self, RunDirectory, RunFile, RunState};
use assize_secrets::private_directory_in;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The directory of baselines among the runs. It holds no manifest, so it is no run itself.
const DIRECTORY: &str = "baselines";

/// The prefix of directories until they are whole.
const UNFINISHED: &str = ".set-";

/// The files that make a run comparable; traces and reports stay behind.
const FILES: [RunFile; 2] = [RunFile::Manifest, RunFile::Rows];

pub(crate) fn baseline(arguments: &BaselineArguments, plugins: &Plugins) -> Result<Exit> {
    let results = results_dir(&arguments.place, plugins)?;
    match &arguments.action {
        BaselineAction::Set { name, run } => {
            let found = RunDirectory::find(&results, run);
            let found = found.map_err(|error| missing_run(error, &arguments.place))?;
            set(&results, name, &found)
        }
        BaselineAction::List => list(&results, arguments.json),
        BaselineAction::Show { name } => show(&results, name, arguments.json),
        BaselineAction::Rm { names } => remove(&results, names),
    }
}

/// The rows that the command line wants to compare with.
pub(crate) fn find(against: &Against, place: &Where, plugins: &Plugins) -> Result<Option<Source>> {
    let Some(name) = &against.baseline else {
        return Ok(None);
    };
    let source = Source::find(name, place, plugins);
    let explained = |error: anyhow::Error| {
        match error.is::<Obstructed>() {
        true => Obstructed {
            message: format!("there is no baseline or run `{}`", plain(name)),
            hint: "`assize baseline list` shows the baselines there are; `assize baseline set NAME RUN` keeps a run as one"
                .to_owned(),
        }
        .into(),
        false => error.context(format!("cannot read the baseline `{}`", plain(name))),
    }
    };
    source.map(Some).map_err(explained)
}

/// The baseline of that name, if there is one.
pub(super) fn kept(results: &Path, name: &str) -> Option<RunDirectory> {
    let path = path(results, name).ok()?;
    RunDirectory::open(&path).ok()
}

fn set(results: &Path, name: &str, run: &RunDirectory) -> Result<Exit> {
    let path = path(results, name)?;
    if run.is_locked() {
        return Err(UsageError::new(format!("run {} is still under way", run.id())).into());
    }
    let rows = run.file(RunFile::Rows);
    if std::fs::metadata(&rows).map_or(0, |rows| rows.len()) == 0 {
        return Err(UsageError::new(format!("run {} has no trial", run.id())).into());
    }
    let parent = results.join(DIRECTORY);
    let cannot = || format!("cannot write `{}`", path.display());
    private::directory(&parent).with_context(cannot)?;
    // Beside its place first, so that other processes never see half a baseline.
    let unfinished = private_directory_in(&parent, UNFINISHED).with_context(cannot)?;
    for file in FILES {
        std::fs::copy(run.file(file), file.within(unfinished.path())).with_context(cannot)?;
    }
    let replaced = path.exists();
    put(unfinished, &path).with_context(cannot)?;
    remove_unfinished(&parent);
    let was = if replaced { " now" } else { "" };
    say(format!("baseline {name} is{was} run {}", run.id()));
    if run.manifest().state != RunState::Complete {
        say("its run is incomplete: trials that are missing there cannot be compared with");
    }
    Ok(Exit::Done)
}

/// Puts a directory in its place. One that is there is exchanged for it in one step, so that there is always one of both.
fn put(new: TempDir, path: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    if path.exists() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new.path(), CWD, path, RenameFlags::EXCHANGE).is_ok() {
            // The old one is removed with the value.
            return Ok(());
        }
    }
    if path.exists() {
        std::fs::remove_dir_all(path)?;
    }
    std::fs::rename(new.keep(), path)
}

/// Removes what a `baseline set` that was killed has left.
fn remove_unfinished(parent: &Path) {
    const LONGEST: Duration = Duration::from_secs(600);
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|found| found.modified());
        let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LONGEST));
        if is_old && entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn list(results: &Path, as_json: bool) -> Result<Exit> {
    let mut baselines = store::list(&results.join(DIRECTORY))?;
    baselines.retain(|baseline| {
        let name = baseline.path().file_name().unwrap_or_default();
        !name.to_string_lossy().starts_with(UNFINISHED)
    });
    if baselines.is_empty() && !as_json {
        say("no baselines; `assize baseline set NAME` keeps the last run as one");
    }
    for baseline in &baselines {
        let name = baseline
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let manifest = baseline.manifest();
        print(match as_json {
            true => overview(baseline).to_string(),
            false => format!(
                "{}  run {} of {}",
                plain(&name),
                baseline.id(),
                plain(&manifest.name)
            ),
        });
    }
    Ok(Exit::Done)
}

fn overview(baseline: &RunDirectory) -> serde_json::Value {
    let manifest = baseline.manifest();
    let name = baseline.path().file_name().unwrap_or_default();
    json!({
        "name": name.to_string_lossy(),
        "runId": baseline.id(),
        "suite": manifest.name,
        "createdAt": manifest.created_at,
        "planned": manifest.plan.cells(),
        "fingerprint": manifest.fingerprint,
        "directory": baseline.path(),
    })
}

fn show(results: &Path, name: &str, as_json: bool) -> Result<Exit> {
    let baseline = open(results, name)?;
    if as_json {
        print(overview(&baseline).to_string());
        return Ok(Exit::Done);
    }
    print(format!("baseline    {}", plain(name)));
    print(format!("run         {}", baseline.id()));
    print(format!("suite       {}", plain(&baseline.manifest().name)));
    print(format!("fingerprint {}", baseline.manifest().fingerprint));
    let source = Source::of_run(&baseline)?;
    let summary = verdict::summarize(std::slice::from_ref(&source), &source.analysis)?;
    print_result(&summary, baseline.path());
    Ok(Exit::Done)
}

fn remove(results: &Path, names: &[String]) -> Result<Exit> {
    // All are looked up before any is removed, so that a typo removes nothing.
    let found: Result<Vec<RunDirectory>> = names.iter().map(|name| open(results, name)).collect();
    for baseline in found? {
        let path = baseline.path().to_owned();
        std::fs::remove_dir_all(&path)
            .with_context(|| format!("cannot remove `{}`", path.display()))?;
    }
    say(format!("removed {}", plain(&names.join(", "))));
    Ok(Exit::Done)
}

fn open(results: &Path, name: &str) -> Result<RunDirectory> {
    let path = path(results, name)?;
    if !path.exists() {
        return Err(UsageError {
            message: format!("there is no baseline `{name}`"),
            hint: Some("`assize baseline list` shows those there are".to_owned()),
        }
        .into());
    }
    Ok(RunDirectory::open(&path)?)
}

fn path(results: &Path, name: &str) -> Result<PathBuf, UsageError> {
    match is_name(name) {
        true => Ok(results.join(DIRECTORY).join(name)),
        false => Err(UsageError {
            message: format!("found the name `{name}`, expected letters, digits, `.`, `_` and `-`"),
            hint: None,
        }),
    }
}

/// Names become directories, so they hold nothing that could lead elsewhere.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    (1..=100).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('.')
}
