//! The sessions that an export is about: trials of runs, and files.

use crate::cli::ExportArguments;
use crate::commands::{Obstructed, find_run, session_files};
use crate::terminal::warn;
use anyhow::{Context, Result, anyhow};
use assize_contracts::{CostSource, Plugins, ProfileRow, SessionTrace, Timestamp, TraceEvent};
use assize_engine::store::RunDirectory;
use assize_formats::{Session, Trial, UserMessage};
use assize_llm::Prices;
use assize_secrets::{Redactor, Secrets};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The sources of an export. Sessions are read one after another, so that only one is in memory.
pub(super) struct Sources<'a> {
    arguments: &'a ExportArguments,
    plugins: &'a Plugins,
    prices: Prices,
    redactor: Option<Redactor>,
}

/// Takes a session.
type Visit<'v> = &'v mut dyn FnMut(Session) -> Result<()>;

impl<'a> Sources<'a> {
    pub(super) fn of(arguments: &'a ExportArguments, plugins: &'a Plugins) -> Self {
        Self {
            arguments,
            plugins,
            prices: Prices::default(),
            redactor: arguments.redact.then(|| Redactor::new(&Secrets::default())),
        }
    }

    /// Calls `visit` with every session that is meant, and reports those that are missing.
    pub(super) fn each(&self, visit: Visit<'_>) -> Result<()> {
        let mut count = 0_u64;
        let mut priced = |mut session: Session| {
            count += 1;
            add_costs(&mut session.trace, &self.prices);
            if let Some(redactor) = &self.redactor {
                redact(&mut session, redactor);
            }
            visit(session)
        };
        match self.arguments.sources.as_slice() {
            [] => self.read("last", &mut priced)?,
            sources => {
                for source in sources {
                    self.read(source, &mut priced)?;
                }
            }
        }
        if count > 0 {
            return Ok(());
        }
        Err(Obstructed {
            message: "there is no session to export".to_owned(),
            hint: "traces are kept unless a suite says `output: { store_traces: false }`; `assize show` lists trials"
                .to_owned(),
        }
        .into())
    }

    /// A file, a directory with logs, `RUN/POSITION`, or a run.
    fn read(&self, source: &str, visit: Visit<'_>) -> Result<()> {
        let path = Path::new(source);
        if path.is_file() {
            return read_files(path, visit);
        }
        let place = &self.arguments.place;
        let (run, position) = source.rsplit_once('/').unwrap_or(("last", source));
        if !RunDirectory::is_run(path)
            && let Ok(position) = position.parse::<u64>()
        {
            let run = find_run(run, place, self.plugins)?;
            let row = run.row_at(position)?.ok_or_else(|| Obstructed {
                message: format!("run {} has no trial {position}", run.id()),
                hint: format!("`assize show {}` lists its trials", run.id()),
            })?;
            return visit_trial(&run, row, visit);
        }
        if !RunDirectory::is_run(path) && session_files::has_logs(path) {
            return read_files(path, visit);
        }
        let run = find_run(source, place, self.plugins)?;
        let is_chosen =
            |wanted: &[String], name: &String| wanted.is_empty() || wanted.contains(name);
        for row in run.rows()? {
            let row = row?;
            if is_chosen(&self.arguments.mode, &row.mode)
                && is_chosen(&self.arguments.scenario, &row.scenario_id)
            {
                visit_trial(&run, row, visit)?;
            }
        }
        Ok(())
    }
}

fn read_files(path: &Path, visit: Visit<'_>) -> Result<()> {
    // Only what reading fails with is about the file.
    let mut failed = None;
    let read = session_files::each(path, &mut |read| {
        for note in read.notes {
            warn(&format!("{}: {note}", path.display()));
        }
        visit(read.session).map_err(|error| {
            failed = Some(error);
            anyhow!("the session could not be written")
        })
    });
    match failed {
        Some(error) => Err(error),
        None => read.with_context(|| format!("cannot read `{}`", path.display())),
    }
}

fn visit_trial(run: &RunDirectory, row: ProfileRow, visit: Visit<'_>) -> Result<()> {
    match run.trace(&row)? {
        Some(trace) => visit(session_of(run, row, trace)),
        None => {
            warn(&format!(
                "{} · {} · {} #{} has no trace and is left out",
                row.scenario_id, row.mode, row.model, row.iteration
            ));
            Ok(())
        }
    }
}

fn session_of(run: &RunDirectory, row: ProfileRow, trace: SessionTrace) -> Session {
    let manifest = run.manifest();
    let scenario = manifest
        .suite
        .get("scenarios")
        .and_then(|all| all.get(&row.scenario_id));
    let version = manifest
        .provenance
        .get("agents")
        .and_then(|agents| agents.get(&row.provider)?.get("version"));
    let text_of = |key: &str| {
        let text = scenario.and_then(|scenario| scenario.get(key)?.as_str());
        text.unwrap_or_default().to_owned()
    };
    Session {
        user_messages: user_messages(scenario, &trace, &row),
        trace,
        agent_name: row.provider.clone(),
        agent_version: version.and_then(Value::as_str).map(str::to_owned),
        model: Some(row.model.clone()),
        trial: Some(Trial {
            suite: manifest.name.clone(),
            description: text_of("description"),
            row,
        }),
    }
}

/// The prompt and the further turns, with the times of sending.
fn user_messages(
    scenario: Option<&Value>,
    trace: &SessionTrace,
    row: &ProfileRow,
) -> Vec<UserMessage> {
    let Some(scenario) = scenario else {
        return Vec::new();
    };
    let prompt = scenario.get("prompt").and_then(Value::as_str);
    let turns = scenario.get("turns").and_then(Value::as_array);
    let turns = turns.into_iter().flatten().filter_map(Value::as_str);
    let sent = |number: usize| -> Option<Timestamp> {
        let turn = trace
            .user_turns
            .get(number)
            .map(|turn| turn.started_at.clone());
        turn.or_else(|| (number == 0).then(|| row.started_at.clone()))
    };
    let message = |(number, text): (usize, &str)| UserMessage {
        text: text.to_owned(),
        at: sent(number),
    };
    prompt
        .into_iter()
        .chain(turns)
        .enumerate()
        .map(message)
        .collect()
}

/// Prices calls that have no cost of their own.
fn add_costs(trace: &mut SessionTrace, prices: &Prices) {
    for call in trace
        .model_calls
        .iter_mut()
        .filter(|call| call.cost_usd.is_none())
    {
        let cost = prices
            .of_call(call)
            .and_then(|cost| cost.breakdown.total_usd);
        if !call.is_refused() && cost.is_some() {
            call.cost_usd = cost;
            call.cost_source = Some(CostSource::Computed);
        }
    }
}

/// Removes what looks like a key from every text of the session.
fn redact(session: &mut Session, redactor: &Redactor) {
    for message in &mut session.user_messages {
        message.text = session_files::without_secrets(&message.text, redactor);
    }
    let trace = &mut session.trace;
    if let Some(answer) = &mut trace.answer {
        redactor.clean(answer);
    }
    // Turns share their events.
    trace.turns.clear();
    for event in &mut trace.events {
        match Arc::make_mut(event) {
            TraceEvent::Reasoning { content, .. } | TraceEvent::TextOutput { content, .. } => {
                redactor.clean(content);
            }
            TraceEvent::ToolCall {
                input,
                output,
                error,
                ..
            } => {
                redactor.clean_value(input);
                redactor.clean_value(output);
                error.iter_mut().for_each(|error| redactor.clean(error));
            }
            TraceEvent::Error { message, .. } => redactor.clean(message),
            TraceEvent::TurnBoundary { .. } => {}
        }
    }
    #[cfg(feature = "sessions")]
    assize_sessions::redact_trace(trace);
}
