//! The sessions that an export is about: trials of runs, and files.

use crate::cli::ExportArguments;
use crate::commands::{Obstructed, find_run, session_files};
use anyhow::{Context, Result};
use assize_contracts::{CostSource, Plugins, ProfileRow, SessionTrace, Timestamp, TraceEvent};
use assize_engine::store::RunDirectory;
use assize_formats::{Session, Trial, UserMessage};
use assize_llm::Prices;
use assize_secrets::{Redactor, Secrets};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Sessions, and what is missing, in words.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) sessions: Vec<Session>,
    pub(super) notes: Vec<String>,
}

impl Chosen {
    pub(super) fn of(arguments: &ExportArguments, plugins: &Plugins) -> Result<Self> {
        let mut chosen = Self::default();
        let last = ["last".to_owned()];
        let sources = match arguments.sources.as_slice() {
            [] => &last[..],
            sources => sources,
        };
        for source in sources {
            chosen.add(source, arguments, plugins)?;
        }
        if chosen.sessions.is_empty() {
            return Err(Obstructed {
                message: "there is no session to export".to_owned(),
                hint: "traces are kept unless a suite says `output: { store_traces: false }`; `assize show` lists trials"
                    .to_owned(),
            }
            .into());
        }
        let prices = Prices::default();
        let redactor = arguments.redact.then(|| Redactor::new(&Secrets::default()));
        for session in &mut chosen.sessions {
            add_costs(&mut session.trace, &prices);
            if let Some(redactor) = &redactor {
                redact(session, redactor);
            }
        }
        Ok(chosen)
    }

    /// A file, `RUN/POSITION`, or a run.
    fn add(&mut self, source: &str, arguments: &ExportArguments, plugins: &Plugins) -> Result<()> {
        let path = Path::new(source);
        if path.is_file() {
            let read =
                session_files::read(path).with_context(|| format!("cannot read `{source}`"))?;
            self.notes.extend(
                read.notes
                    .into_iter()
                    .map(|note| format!("{source}: {note}")),
            );
            self.sessions.push(read.session);
            return Ok(());
        }
        let (run, position) = source.rsplit_once('/').unwrap_or(("last", source));
        if !RunDirectory::is_run(path)
            && let Ok(position) = position.parse::<u64>()
        {
            let run = find_run(run, &arguments.place, plugins)?;
            let row = run.row_at(position)?.ok_or_else(|| Obstructed {
                message: format!("run {} has no trial {position}", run.id()),
                hint: format!("`assize show {}` lists its trials", run.id()),
            })?;
            return self.add_trial(&run, row);
        }
        let run = find_run(source, &arguments.place, plugins)?;
        for row in run.rows()? {
            let row = row?;
            let is_chosen =
                |wanted: &[String], name: &String| wanted.is_empty() || wanted.contains(name);
            // Both sides of a difference are needed.
            let is_wanted = is_chosen(&arguments.mode, &row.mode)
                && is_chosen(&arguments.scenario, &row.scenario_id);
            if is_wanted {
                self.add_trial(&run, row)?;
            }
        }
        Ok(())
    }

    fn add_trial(&mut self, run: &RunDirectory, row: ProfileRow) -> Result<()> {
        match run.trace(&row)? {
            Some(trace) => self.sessions.push(session_of(run, row, trace)),
            None => self.notes.push(format!(
                "{} · {} · {} #{} has no trace and is left out",
                row.scenario_id, row.mode, row.model, row.iteration
            )),
        }
        Ok(())
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
        redactor.clean(&mut message.text);
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
}
