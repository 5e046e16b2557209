//! `assize export`: sessions and trials in the formats of other tools.

mod out;
mod send;
mod sessions;

use crate::cli::{DialectArgument, ExportArguments, WeightArgument};
use crate::commands::{Obstructed, UsageError};
use crate::exit::Exit;
use crate::suite::suggest;
use crate::terminal::{plain, print, say, warn};
use anyhow::Result;
use assize_contracts::Plugins;
use assize_formats::folded::{self, Stacks, Weight};
use assize_formats::{FORMATS, Format, NoTimes, Session, atif, chrome, otlp, speedscope};
use out::Out;
use send::Sender;
use serde_json::json;
use sessions::Sources;
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) fn export(arguments: &ExportArguments, plugins: &Plugins) -> Result<Exit> {
    let Some(name) = &arguments.format else {
        list(arguments.json);
        return Ok(Exit::Done);
    };
    let format = Format::named(name).ok_or_else(|| unknown_format(name))?;
    check(format, arguments)?;
    let sources = Sources::of(arguments, plugins);
    let written = match format.name {
        "atif" => export_atif(&sources, arguments),
        "otlp" => export_otlp(&sources, arguments),
        "chrome" => export_chrome(&sources, arguments),
        "speedscope" => export_speedscope(&sources, arguments),
        _ => export_folded(&sources, arguments),
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

/// One document per session: a file, files in a directory, or lines. Which of them is known when a second session comes.
fn export_atif(sources: &Sources<'_>, arguments: &ExportArguments) -> Result<()> {
    let mut first: Option<Session> = None;
    let mut several = Several {
        directory: arguments.out.as_deref(),
        count: 0,
    };
    sources.each(&mut |session| {
        if several.count == 0 && first.is_none() {
            first = Some(session);
            return Ok(());
        }
        if let Some(first) = first.take() {
            several.write(&first)?;
        }
        several.write(&session)
    })?;
    match first {
        Some(only) => Out::write(arguments.out.as_deref(), &pretty(&atif::write(&only))?),
        None => Ok(()),
    }
}

/// Documents of several sessions: files in a directory, or lines on stdout.
struct Several<'a> {
    directory: Option<&'a Path>,
    count: usize,
}

impl Several<'_> {
    fn write(&mut self, session: &Session) -> Result<()> {
        let document = atif::write(session);
        let number = self.count;
        self.count += 1;
        match self.directory {
            None => Out::write(None, &format!("{document}\n")),
            Some(directory) => {
                let path = directory.join(format!("{}.atif.json", file_stem(session, number)));
                Out::write(Some(&path), &pretty(&document)?)
            }
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
fn export_otlp(sources: &Sources<'_>, arguments: &ExportArguments) -> Result<()> {
    let options = otlp::Options {
        dialect: match arguments.dialect {
            None | Some(DialectArgument::V141) => otlp::Dialect::V1_41,
            Some(DialectArgument::Latest) => otlp::Dialect::Latest,
            Some(DialectArgument::Openinference) => otlp::Dialect::OpenInference,
        },
        has_content: arguments.content,
        ..otlp::Options::default()
    };
    let mut sessions = WithTimes::default();
    if let Some(endpoint) = &arguments.endpoint {
        let mut sender = Sender::new(endpoint, &arguments.header)?;
        sources.each(
            &mut |session| match sessions.take(otlp::spans(&session, &options), &session) {
                Some(spans) => sender.add(spans),
                None => Ok(()),
            },
        )?;
        sender.flush()?;
        let count = sessions.finish()?;
        say(plain(&format!(
            "{} spans of {count} sessions sent to {endpoint}",
            sender.sent
        )));
        return Ok(());
    }
    let mut out = Out::open(arguments.out.as_deref())?;
    sources.each(
        &mut |session| match sessions.take(otlp::spans(&session, &options), &session) {
            Some(spans) => out.add(&format!("{}\n", otlp::to_json(&[spans]))),
            None => Ok(()),
        },
    )?;
    sessions.finish()?;
    out.finish()
}

fn export_chrome(sources: &Sources<'_>, arguments: &ExportArguments) -> Result<()> {
    let mut document = chrome::Document::default();
    let mut out = Out::open(arguments.out.as_deref())?;
    write_sessions(sources, &mut out, |session| document.add(session))?;
    out.add(document.end())?;
    out.finish()
}

fn export_speedscope(sources: &Sources<'_>, arguments: &ExportArguments) -> Result<()> {
    let mut document = speedscope::Document::default();
    let mut out = Out::open(arguments.out.as_deref())?;
    write_sessions(sources, &mut out, |session| document.add(session))?;
    out.add(&document.end())?;
    out.finish()
}

/// Writes the text of every session that has times.
fn write_sessions(
    sources: &Sources<'_>,
    out: &mut Out,
    mut text_of: impl FnMut(&Session) -> Result<String, NoTimes>,
) -> Result<()> {
    let mut sessions = WithTimes::default();
    sources.each(
        &mut |session| match sessions.take(text_of(&session), &session) {
            Some(text) => out.add(&text),
            None => Ok(()),
        },
    )?;
    sessions.finish()?;
    Ok(())
}

/// Sessions for a format that needs times. Those without any are left out, which is an error only if there are no others.
#[derive(Default)]
struct WithTimes {
    count: usize,
    missing: Option<NoTimes>,
}

impl WithTimes {
    fn take<T>(&mut self, made: Result<T, NoTimes>, session: &Session) -> Option<T> {
        match made {
            Ok(made) => {
                self.count += 1;
                Some(made)
            }
            Err(error) => {
                warn(&format!(
                    "the session `{}` has no times and is left out",
                    session.trace.session_id
                ));
                self.missing = Some(error);
                None
            }
        }
    }

    fn finish(self) -> Result<usize, NoTimes> {
        match (self.count, self.missing) {
            (0, Some(missing)) => Err(missing),
            (count, _) => Ok(count),
        }
    }
}

fn export_folded(sources: &Sources<'_>, arguments: &ExportArguments) -> Result<()> {
    let weight = match arguments.by {
        None | Some(WeightArgument::Tokens) => Weight::Tokens,
        Some(WeightArgument::Time) => Weight::Time,
        Some(WeightArgument::Cost) => Weight::Cost,
    };
    let text = match arguments.diff.as_slice() {
        [before, after] => difference(sources, weight, before, after)?,
        _ => {
            let mut stacks = Stacks::default();
            let mut sessions = WithTimes::default();
            sources.each(&mut |session| {
                sessions.take(stacks.add(&session, weight, true), &session);
                Ok(())
            })?;
            sessions.finish()?;
            warn_of_unknown(&stacks);
            stacks.lines()
        }
    };
    if text.is_empty() {
        return Err(Obstructed {
            message: "there is nothing to fold: the number is unknown for every call".to_owned(),
            hint: "`--by tokens`, `--by time` and `--by cost` need what their names say".to_owned(),
        }
        .into());
    }
    Out::write(arguments.out.as_deref(), &text)
}

/// Both modes at once, because sessions are read only once.
fn difference(sources: &Sources<'_>, weight: Weight, before: &str, after: &str) -> Result<String> {
    let mut sides = [(before, Stacks::default()), (after, Stacks::default())];
    let mut modes: BTreeSet<String> = BTreeSet::new();
    let mut sessions = WithTimes::default();
    sources.each(&mut |session| {
        let mode = session.trial.as_ref().map(|trial| trial.row.mode.clone());
        for (wanted, stacks) in &mut sides {
            if mode.as_deref() == Some(*wanted) {
                sessions.take(stacks.add(&session, weight, false), &session);
            }
        }
        modes.extend(mode);
        Ok(())
    })?;
    for (wanted, stacks) in &sides {
        if !modes.contains(*wanted) {
            return Err(no_such_mode(&modes, wanted).into());
        }
        if stacks.sessions == 0 && stacks.unknown > 0 {
            return Err(Obstructed {
                message: format!("the number is unknown for every call of the mode `{wanted}`"),
                hint: "`--by tokens`, `--by time` and `--by cost` need what their names say"
                    .to_owned(),
            }
            .into());
        }
        warn_of_unknown(stacks);
    }
    sessions.finish()?;
    let [(_, before), (_, after)] = &sides;
    Ok(folded::difference(before, after))
}

fn warn_of_unknown(stacks: &Stacks) {
    if stacks.unknown > 0 {
        warn(&format!(
            "{} model calls are left out, because their number is unknown",
            stacks.unknown
        ));
    }
}

fn no_such_mode(modes: &BTreeSet<String>, mode: &str) -> UsageError {
    let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
    UsageError {
        message: format!("no session is of the mode `{mode}`"),
        hint: match modes.is_empty() {
            true => Some("--diff compares two modes of a run".to_owned()),
            false => suggest(mode, &modes),
        },
    }
}
