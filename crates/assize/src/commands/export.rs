//! `assize export`: sessions and trials in the formats of other tools.

mod send;
mod sessions;

use crate::cli::{DialectArgument, ExportArguments, WeightArgument};
use crate::commands::{Obstructed, UsageError};
use crate::exit::Exit;
use crate::suite::suggest;
use crate::terminal::{plain, print, say, warn};
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_formats::folded::{self, Stacks, Weight};
use assize_formats::{FORMATS, Format, NoTimes, Session, atif, chrome, otlp, speedscope};
use serde_json::json;
use sessions::Chosen;
use std::io::Write;
use std::path::Path;

pub(crate) fn export(arguments: &ExportArguments, plugins: &Plugins) -> Result<Exit> {
    let Some(name) = &arguments.format else {
        list(arguments.json);
        return Ok(Exit::Done);
    };
    let format = Format::named(name).ok_or_else(|| unknown_format(name))?;
    check(format, arguments)?;
    let chosen = Chosen::of(arguments, plugins)?;
    for note in &chosen.notes {
        warn(note);
    }
    let written = match format.name {
        "atif" => export_atif(&chosen.sessions, arguments),
        "otlp" => export_otlp(&chosen.sessions, arguments),
        "chrome" => export_whole(chrome::write(&chosen.sessions), arguments),
        "speedscope" => export_whole(speedscope::write(&chosen.sessions), arguments),
        _ => export_folded(&chosen.sessions, arguments),
    };
    written.map_err(explain_missing_times)?;
    Ok(Exit::Done)
}

fn unknown_format(name: &str) -> UsageError {
    let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    UsageError {
        message: format!("unknown format `{name}`"),
        hint: suggest(name, &known),
    }
}

/// The formats, and what is lost in each of them.
fn list(is_json: bool) {
    for format in FORMATS {
        if is_json {
            print(
                json!({
                    "name": format.name, "title": format.title, "ending": format.ending, "reads": format.is_read,
                    "writes": true, "losses": format.losses,
                })
                .to_string(),
            );
            continue;
        }
        print(format!("{:11} {}", format.name, format.title));
        for loss in format.losses {
            print(format!("{:11}   lost: {loss}", ""));
        }
    }
}

/// Refuses flags that mean nothing for the format, before anything is read.
fn check(format: &Format, arguments: &ExportArguments) -> Result<(), UsageError> {
    let is_otlp = format.name == "otlp";
    let given = [
        ("--endpoint", arguments.endpoint.is_some(), is_otlp),
        ("--header", !arguments.header.is_empty(), is_otlp),
        ("--dialect", arguments.dialect.is_some(), is_otlp),
        ("--content", arguments.content, is_otlp),
        ("--by", arguments.by.is_some(), format.name == "folded"),
        (
            "--diff",
            !arguments.diff.is_empty(),
            format.name == "folded",
        ),
    ];
    match given
        .into_iter()
        .find(|(_, is_given, fits)| *is_given && !fits)
    {
        Some((flag, ..)) => Err(UsageError {
            message: format!("`{flag}` has no meaning for the format `{}`", format.name),
            hint: Some("`assize export --help` says which flag belongs to which format".to_owned()),
        }),
        None => Ok(()),
    }
}

fn explain_missing_times(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<NoTimes>() {
        Some(missing) => Obstructed {
            message: missing.to_string(),
            hint: "`atif`, and `folded --by tokens` or `--by cost`, need no times".to_owned(),
        }
        .into(),
        None => error,
    }
}

/// One document per session: a file, files in a directory, or lines.
fn export_atif(sessions: &[Session], arguments: &ExportArguments) -> Result<()> {
    match (sessions, &arguments.out) {
        ([session], out) => write_out(out.as_deref(), &pretty(&atif::write(session))?),
        (sessions, None) => {
            let lines = sessions
                .iter()
                .map(|session| format!("{}\n", atif::write(session)));
            write_out(None, &lines.collect::<String>())
        }
        (sessions, Some(directory)) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot create `{}`", directory.display()))?;
            for (number, session) in sessions.iter().enumerate() {
                let path = directory.join(format!("{}.atif.json", file_stem(session, number)));
                write_out(Some(&path), &pretty(&atif::write(session))?)?;
            }
            Ok(())
        }
    }
}

/// A name that sorts like the plan. Names of scenarios may not be fit for files.
fn file_stem(session: &Session, number: usize) -> String {
    match &session.trial {
        Some(trial) => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let name = |text: &str| -> String {
                text.chars()
                    .map(|c| if is_plain(c) { c } else { '_' })
                    .take(60)
                    .collect()
            };
            let position = trial.row.position.unwrap_or(number as u64);
            let (scenario, mode) = (name(&trial.row.scenario_id), name(&trial.row.mode));
            format!("{position:04}-{scenario}-{mode}")
        }
        None => format!("{number:04}"),
    }
}

fn pretty(document: &serde_json::Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

/// JSON lines, one session per line, or requests to a collector.
fn export_otlp(sessions: &[Session], arguments: &ExportArguments) -> Result<()> {
    let options = otlp::Options {
        dialect: match arguments.dialect {
            None | Some(DialectArgument::V141) => otlp::Dialect::V1_41,
            Some(DialectArgument::Latest) => otlp::Dialect::Latest,
            Some(DialectArgument::Openinference) => otlp::Dialect::OpenInference,
        },
        has_content: arguments.content,
        ..otlp::Options::default()
    };
    let spans: Vec<otlp::ResourceSpans> = sessions
        .iter()
        .map(|session| otlp::spans(session, &options))
        .collect::<Result<_, _>>()?;
    if let Some(endpoint) = &arguments.endpoint {
        let sent = send::send(endpoint, &arguments.header, &spans)?;
        say(plain(&format!(
            "{sent} spans of {} sessions sent to {endpoint}",
            spans.len()
        )));
        return Ok(());
    }
    let line = |session: &otlp::ResourceSpans| {
        format!("{}\n", otlp::to_json(std::slice::from_ref(session)))
    };
    write_out(
        arguments.out.as_deref(),
        &spans.iter().map(line).collect::<String>(),
    )
}

fn export_whole(
    document: Result<serde_json::Value, NoTimes>,
    arguments: &ExportArguments,
) -> Result<()> {
    write_out(arguments.out.as_deref(), &format!("{}\n", document?))
}

fn export_folded(sessions: &[Session], arguments: &ExportArguments) -> Result<()> {
    let weight = match arguments.by {
        None | Some(WeightArgument::Tokens) => Weight::Tokens,
        Some(WeightArgument::Time) => Weight::Time,
        Some(WeightArgument::Cost) => Weight::Cost,
    };
    let text = match arguments.diff.as_slice() {
        [before, after] => {
            let side = |mode: &String| -> Result<Stacks> {
                let stacks = stacks(
                    sessions.iter().filter(|session| is_of_mode(session, mode)),
                    weight,
                    false,
                )?;
                match stacks.sessions {
                    0 => Err(no_such_mode(sessions, mode).into()),
                    _ => Ok(stacks),
                }
            };
            folded::difference(&side(before)?, &side(after)?)
        }
        _ => stacks(sessions.iter(), weight, true)?.lines(),
    };
    if text.is_empty() {
        return Err(Obstructed {
            message: "there is nothing to fold: the number is unknown for every call".to_owned(),
            hint: "`--by tokens`, `--by time` and `--by cost` need what their names say".to_owned(),
        }
        .into());
    }
    write_out(arguments.out.as_deref(), &text)
}

fn stacks<'s>(
    sessions: impl Iterator<Item = &'s Session>,
    weight: Weight,
    has_turns: bool,
) -> Result<Stacks> {
    let mut stacks = Stacks::default();
    for session in sessions {
        stacks.add(session, weight, has_turns)?;
    }
    if stacks.unknown > 0 {
        warn(&format!(
            "{} model calls are left out, because their number is unknown",
            stacks.unknown
        ));
    }
    Ok(stacks)
}

fn is_of_mode(session: &Session, mode: &str) -> bool {
    session
        .trial
        .as_ref()
        .is_some_and(|trial| trial.row.mode == mode)
}

fn no_such_mode(sessions: &[Session], mode: &str) -> UsageError {
    let modes: std::collections::BTreeSet<&str> = sessions
        .iter()
        .filter_map(|session| Some(session.trial.as_ref()?.row.mode.as_str()))
        .collect();
    let modes: Vec<&str> = modes.into_iter().collect();
    UsageError {
        message: format!("no session is of the mode `{mode}`"),
        hint: match modes.is_empty() {
            true => Some("--diff compares two modes of a run".to_owned()),
            false => suggest(mode, &modes),
        },
    }
}

/// Writes to a file, or to stdout.
fn write_out(path: Option<&Path>, text: &str) -> Result<()> {
    match path {
        Some(path) => {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)
                    .with_context(|| format!("cannot create `{}`", parent.display()))?;
            }
            std::fs::write(path, text)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
            say(plain(&path.display().to_string()));
        }
        None => {
            // A reader that has gone away is no error.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
        }
    }
    Ok(())
}
