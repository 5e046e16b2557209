//! `assize analyze`: explain stored sessions again, without any agent.

mod earlier;
#[cfg(feature = "sessions")]
mod logs;
mod panel;
mod show;

use crate::cli::AnalyzeArguments;
use crate::commands::show::show_timeline;
use crate::commands::{Obstructed, find_run, session_files};
use crate::exit::Exit;
use crate::terminal::{plain, print, say, warn};
use anyhow::{Context, Result};
use assize_contracts::{
    BaseScenario, Plugins, SCHEMA_VERSION, SessionAnalysisBundle, SessionTrace,
};
use assize_engine::store::{CellKey, RunDirectory, RunFile, TraceReader};
use earlier::Earlier;
use panel::{Explained, Panel};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use show::Overview;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Sessions that are worked on before any of them is shown; bounds what is held at once.
const BATCH: usize = 64;

/// The most sessions that are shown one by one; the overview and `--json` have them all.
const MOST_SHOWN: usize = 20;

/// A session, and what it is called in the output.
enum Session {
    File(PathBuf),
    Trial(PathBuf, CellKey),
    #[cfg(feature = "sessions")]
    Log(logs::LoggedSession),
}

pub(crate) fn analyze(arguments: &AnalyzeArguments, plugins: &Plugins) -> Result<Exit> {
    let suite = arguments.place.suite.as_deref();
    let panel = Panel::new(&arguments.analyzer, plugins, suite)?;
    let logs_panel = Panel::for_logs(&arguments.analyzer, plugins, suite)?;
    let mut unreadable = 0;
    for source in &arguments.sources {
        let path = Path::new(source);
        if path.exists() && !RunDirectory::is_run(path) {
            let Found { files, logs } = find(path, arguments)?;
            if files.is_empty() && logs.is_empty() {
                return Err(no_session(path).into());
            }
            unreadable += explain(&files, None, &panel, arguments, |_| Ok(()))?;
            unreadable += explain(&logs, None, &logs_panel, arguments, |_| Ok(()))?;
        } else {
            let run = find_run(source, &arguments.place, plugins)?;
            unreadable += analyze_run(&run, &panel, arguments)?;
        }
    }
    if unreadable > 0 {
        anyhow::bail!("{unreadable} of the sessions could not be read");
    }
    Ok(Exit::Done)
}

/// The sessions below a path: traces in Assize's own form, and logs of agents.
struct Found {
    files: Vec<Session>,
    logs: Vec<Session>,
}

#[cfg(feature = "sessions")]
fn find(path: &Path, arguments: &AnalyzeArguments) -> Result<Found> {
    let logs = logs::find(path, arguments)?;
    let mut files = files(path)?;
    files.retain(|file| !logs.paths.contains(file));
    let all = files.len();
    // Agents keep other documents beside their logs.
    if path.is_dir() && !logs.sessions.is_empty() {
        files.retain(|file| assize_sessions::agent_of(file).is_some());
    }
    if files.len() < all {
        say(format!(
            "JSON files beside the logs that are no sessions: {}",
            all - files.len()
        ));
    }
    Ok(Found {
        files: files.into_iter().map(Session::File).collect(),
        logs: logs.sessions.into_iter().map(Session::Log).collect(),
    })
}

#[cfg(not(feature = "sessions"))]
fn find(path: &Path, _: &AnalyzeArguments) -> Result<Found> {
    let is_log = path
        .extension()
        .is_some_and(|extension| extension != "json");
    if path.is_file() && is_log {
        return Err(super::without_sessions().into());
    }
    Ok(Found {
        files: files(path)?.into_iter().map(Session::File).collect(),
        logs: Vec::new(),
    })
}

fn no_session(path: &Path) -> Obstructed {
    Obstructed {
        message: format!(
            "there is no session in `{}`{}",
            path.display(),
            session_files::reason(path)
        ),
        hint: "sessions are traces of Assize (.json) and the logs that agents keep; `assize sessions` finds those of this machine".to_owned(),
    }
}

/// A file, or all JSON files below a directory, sorted.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        // Other names are logs of agents, or nothing.
        let is_trace = path.extension().is_none_or(|extension| extension == "json");
        return Ok(is_trace.then(|| path.to_owned()).into_iter().collect());
    }
    let mut found = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory)
            .with_context(|| format!("cannot read `{}`", directory.display()))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Explains every trial of a run that has a trace, and keeps the findings beside the rows, with those that other
/// analyzers made before.
fn analyze_run(run: &RunDirectory, panel: &Panel, arguments: &AnalyzeArguments) -> Result<u64> {
    let sessions: Vec<Session> = run
        .rows()?
        .map(|row| row.map(|row| Session::Trial(run.path().to_owned(), CellKey::of(&row))))
        .collect::<Result<_, _>>()?;
    let path = run.file(RunFile::Analysis);
    let mut earlier = Earlier::of(&path)?;
    let written = path.with_extension("tmp");
    let mut file = std::io::BufWriter::new(
        crate::private::file(&written)
            .with_context(|| format!("cannot write `{}`", written.display()))?,
    );
    let trials = Trials::of(run)?;
    let unreadable = explain(&sessions, Some(&trials), panel, arguments, |bundle| {
        let bundle = earlier.completed(bundle)?;
        serde_json::to_writer(&mut file, &bundle)?;
        Ok(file.write_all(b"\n")?)
    })?;
    earlier.copy_rest(&mut file)?;
    file.into_inner()?.sync_data()?;
    std::fs::rename(&written, &path)
        .with_context(|| format!("cannot replace `{}`", path.display()))?;
    say(format!(
        "findings kept in {}",
        plain(&path.display().to_string())
    ));
    Ok(unreadable)
}

/// Explains sessions on all cores, shows them in order, and returns how many could not be read.
fn explain(
    sessions: &[Session],
    trials: Option<&Trials>,
    panel: &Panel,
    arguments: &AnalyzeArguments,
    mut keep: impl FnMut(&SessionAnalysisBundle) -> Result<()>,
) -> Result<u64> {
    let mut unreadable = 0;
    let mut overview = Overview::default();
    for batch in sessions.chunks(BATCH) {
        let explained: Vec<Result<Option<ExplainedSession>>> = batch
            .par_iter()
            .map(|session| session.explain(trials, panel, arguments.timeline))
            .collect();
        for (session, explained) in batch.iter().zip(explained) {
            match explained {
                Ok(Some(ExplainedSession {
                    bundle,
                    errors,
                    trace,
                })) => {
                    keep(&bundle)?;
                    let name = session.name();
                    for error in errors {
                        warn(&format!("{name}: {error}"));
                    }
                    if arguments.json {
                        print(as_json(&name, &bundle)?);
                    } else {
                        if sessions.len() <= MOST_SHOWN {
                            show::print_session(&name, &bundle);
                            if let Some(trace) = &trace {
                                print("  timeline");
                                show_timeline(trace, show::LONGEST);
                            }
                        }
                        overview.add(&bundle);
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    unreadable += 1;
                    warn(&format!("{}: {error:#}", session.name()));
                }
            }
        }
    }
    overview.print();
    Ok(unreadable)
}

impl Session {
    /// The path as it was given, or the trial's place in its run.
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            #[cfg(feature = "sessions")]
            Self::Log(session) => session.name(),
            Self::Trial(run, key) => {
                let CellKey {
                    scenario_id,
                    mode,
                    model,
                    iteration,
                } = key;
                format!(
                    "{}: {scenario_id} · {mode} · {model} #{iteration}",
                    run.display()
                )
            }
        }
    }

    /// The findings of the analyzers. Empty for a trial without a trace.
    fn explain(
        &self,
        trials: Option<&Trials>,
        panel: &Panel,
        timeline: bool,
    ) -> Result<Option<ExplainedSession>> {
        #[cfg(feature = "sessions")]
        if let Self::Log(session) = self {
            return session.explain(panel, timeline);
        }
        let unknown = || Cow::Owned(BaseScenario::new("", ""));
        let mut notes = Vec::new();
        let (trace, scenario, key): (SessionTrace, _, _) = match (self, trials) {
            (Self::Trial(_, key), Some(trials)) => {
                let Some(trace) = trials.traces.trace(key)? else {
                    return Ok(None);
                };
                let scenario = trials.scenarios.get(&key.scenario_id).map(Cow::Borrowed);
                (trace, scenario.unwrap_or_else(unknown), Some(key))
            }
            (Self::File(path), _) => {
                let read = session_files::read(path)?;
                notes = read.notes;
                (read.session.trace, unknown(), None)
            }
            _ => return Ok(None),
        };
        let mode = key.map_or("", |key| &key.mode);
        let Explained { results, errors } = panel.explain(&trace, &scenario, mode);
        notes.extend(errors);
        let bundle = SessionAnalysisBundle {
            schema_version: Some(SCHEMA_VERSION),
            session_id: trace.session_id.clone(),
            scenario_id: key.map(|key| key.scenario_id.clone()).unwrap_or_default(),
            mode: mode.to_owned(),
            model: key.map(|key| key.model.clone()).unwrap_or_default(),
            iteration: key.map(|key| key.iteration),
            results,
        };
        Ok(Some(ExplainedSession {
            bundle,
            errors: notes,
            trace: timeline.then_some(trace),
        }))
    }
}

/// The explanation of a session.
struct ExplainedSession {
    bundle: SessionAnalysisBundle,
    /// Unreadable parts of it, and errors of analyzers that failed.
    errors: Vec<String>,
    /// The trace, where its timeline is wanted.
    trace: Option<SessionTrace>,
}

/// The stored data of a run's trials.
struct Trials {
    traces: TraceReader,
    /// The scenarios as they were run.
    scenarios: BTreeMap<String, BaseScenario>,
}

impl Trials {
    fn of(run: &RunDirectory) -> Result<Self> {
        let scenarios = run.manifest().suite.get("scenarios");
        let read = |(id, scenario): (&String, &Value)| {
            let scenario = BaseScenario::deserialize(scenario).ok()?;
            Some((id.clone(), scenario))
        };
        let scenarios = scenarios.and_then(Value::as_object).into_iter().flatten();
        Ok(Self {
            traces: run.traces()?,
            scenarios: scenarios.filter_map(read).collect(),
        })
    }
}

fn as_json(name: &str, bundle: &SessionAnalysisBundle) -> Result<String> {
    let mut value = serde_json::to_value(bundle)?;
    value["source"] = name.into();
    Ok(value.to_string())
}
