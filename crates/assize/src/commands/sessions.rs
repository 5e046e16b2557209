//! `assize sessions`: what the agents of this machine did and took, from the logs they keep.

mod costs;
mod grouping;
mod show;
pub(crate) mod span;

use crate::cli::SessionsArguments;
use crate::commands::{Obstructed, UsageError};
use crate::exit::Exit;
use crate::suite::suggest;
use crate::terminal::{plain, say, warn};
use anyhow::{Context as _, Result};
use assize_contracts::{unix_ms_now, with_causes};
use assize_llm::Prices;
use assize_sessions::{
    Index, Library, Machine, Progress, ReadError, Stamp, Unrecognized, Uses, find_below,
    find_on_machine, known_agents,
};
use costs::Costs;
use grouping::Account;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// A log that changed so recently may be in the middle of a line.
const LIVE: Duration = Duration::from_secs(60);

/// Fewer logs are read before a bar could be seen.
const FEW_LOGS: usize = 50;

pub(crate) fn sessions(arguments: &SessionsArguments) -> Result<Exit> {
    let since = arguments
        .since
        .as_deref()
        .map(span::beginning)
        .transpose()?;
    let until = arguments
        .until
        .as_deref()
        .map(span::beginning)
        .transpose()?;
    let index = || match arguments.no_index {
        true => Index::none(),
        false => index(),
    };
    let find = || find(&arguments.paths, &arguments.agent, since);
    let (paths, mut index) = rayon::join(find, index);
    let paths = paths?;
    let prices = match &arguments.prices {
        Some(path) => Prices::with_file(path)?,
        None => Prices::default(),
    };
    let library = read(paths, &mut index);
    let faults = faults(&library, &arguments.paths);
    if library.is_empty() && !arguments.paths.is_empty() {
        return Err(nothing_readable(&arguments.paths, &faults).into());
    }
    if let Err(error) = index.save() {
        warn(&format!(
            "the index of sessions cannot be written, so the next call reads all logs again: {error}"
        ));
    }
    let wanted = grouping::Wanted {
        agents: &arguments.agent,
        project: arguments.project.as_deref(),
        since,
        until,
    };
    let mut costs = Costs::new(&prices);
    if let Some(cache) = cache().filter(|_| !arguments.no_index && arguments.prices.is_none()) {
        costs = costs.kept_in(cache.join("sessions.rates"));
    }
    let account = Account::of(&Uses::of(&library), &arguments.by, &wanted, &mut costs);
    costs.keep();
    match arguments.json {
        true => show::print_json(&account, &faults, &prices)?,
        false if account.total.session_count == 0 => {
            say(nothing_matches(arguments));
            print_faults(&faults);
        }
        false => show::print_table(&account, &faults, &prices),
    }
    library.leave();
    Ok(Exit::Done)
}

/// Unusable parts of the logs.
pub(crate) struct Faults {
    pub(crate) flaws: assize_sessions::Flaws,
    /// The files with most unusable lines.
    pub(crate) worst: Vec<(PathBuf, u64)>,
    pub(crate) unreadable: Vec<(PathBuf, String)>,
}

/// Lines that an agent may be writing at this moment are no fault. Of files that are no logs, those count that were named.
fn faults(library: &Library, named: &[PathBuf]) -> Faults {
    let mut flaws = assize_sessions::Flaws::default();
    let mut worst: Vec<(PathBuf, u64)> = Vec::new();
    for (path, of_file) in Uses::of(library).flaws() {
        let mut of_file = *of_file;
        if of_file.unfinished_lines > 0 && is_live(path) {
            of_file.lines -= of_file.unfinished_lines.min(of_file.lines);
            of_file.unfinished_lines = 0;
        }
        flaws = flaws.plus(&of_file);
        if of_file.unusable_lines() > 0 {
            worst.push((path.to_owned(), of_file.unusable_lines()));
        }
    }
    worst.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let unreadable = library.unreadable().iter();
    Faults {
        flaws,
        worst,
        unreadable: unreadable
            .filter_map(|error| {
                let is_named = named.iter().any(|path| path == error.path());
                Some((error.path().to_owned(), fault(error, is_named)?))
            })
            .collect(),
    }
}

fn is_live(path: &Path) -> bool {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().map_or(true, |age| age < LIVE))
}

/// The message about a file that cannot be read. None for files of other programs that lie beside logs.
pub(crate) fn fault(error: &ReadError, is_named: bool) -> Option<String> {
    let ReadError::Unknown { path } = error else {
        return Some(with_causes(error));
    };
    // Documents of other programs are not looked into: logs are lines.
    let is_document = path.extension().is_some_and(|ending| ending == "json");
    if is_document && !is_named {
        return None;
    }
    let reason = Unrecognized::of(path).ok()?;
    let is_begun = reason == Unrecognized::HalfWritten && is_live(path);
    let is_fault = is_named || (reason.is_damage() && !is_begun);
    is_fault.then(|| format!("{error}: {reason}"))
}

/// The logs that are meant. Those of this machine that were not touched since are left out: nothing in them is newer. Logs that were
/// brought from elsewhere may have any time.
fn find(paths: &[PathBuf], agents: &[String], since: Option<i64>) -> Result<Vec<PathBuf>> {
    check_agents(agents)?;
    let mut found = match paths.is_empty() {
        true => find_on_machine(&machine(), agents),
        false => {
            for path in paths {
                std::fs::metadata(path)
                    .with_context(|| format!("cannot read `{}`", path.display()))?;
            }
            let mut found: Vec<PathBuf> = paths.iter().flat_map(|path| find_below(path)).collect();
            found.sort();
            found.dedup();
            found
        }
    };
    if found.is_empty() {
        return Err(nothing_found(paths, agents).into());
    }
    if let Some(since) = since.filter(|_| paths.is_empty()) {
        found.retain(|path| is_touched_since(path, since));
    }
    Ok(found)
}

fn is_touched_since(path: &Path, since: i64) -> bool {
    Stamp::of(path).changed_ms() >= since
}

fn check_agents(agents: &[String]) -> Result<()> {
    let known = known_agents();
    for agent in agents {
        if !known.contains(&agent.as_str()) {
            return Err(UsageError {
                message: format!("no reader for the logs of `{agent}`"),
                hint: suggest(agent, &known).or_else(|| {
                    Some(format!(
                        "agents whose logs can be read: {}",
                        known.join(", ")
                    ))
                }),
            }
            .into());
        }
    }
    Ok(())
}

fn nothing_found(paths: &[PathBuf], agents: &[String]) -> Obstructed {
    let what = match (paths, agents) {
        ([], []) => {
            "the agents of this machine keep no session logs where they usually do".to_owned()
        }
        ([], agents) => format!(
            "there are no session logs of {} where they usually are",
            agents.join(", ")
        ),
        (paths, _) => {
            let paths: Vec<String> = paths
                .iter()
                .map(|path| format!("`{}`", path.display()))
                .collect();
            format!("there is no session log in {}", paths.join(", "))
        }
    };
    Obstructed {
        message: what,
        hint: format!(
            "name a log or a directory: `assize sessions PATH`; logs of {} are known",
            known_agents().join(", ")
        ),
    }
}

/// The reason why nothing is shown, with the filters that left it out.
fn nothing_matches(arguments: &SessionsArguments) -> String {
    let agents = arguments.agent.iter().map(|agent| ("--agent", agent));
    let project = arguments.project.iter().map(|text| ("--project", text));
    let since = arguments.since.iter().map(|span| ("--since", span));
    let until = arguments.until.iter().map(|span| ("--until", span));
    let filters = agents.chain(project).chain(since).chain(until);
    let filters: Vec<String> = filters
        .map(|(flag, value)| format!("`{flag} {}`", plain(value)))
        .collect();
    match filters.as_slice() {
        [] => "there are logs, but no session in them".to_owned(),
        filters => format!("no session matches {}", filters.join(" and ")),
    }
}

/// The error for paths that were read and hold no session.
fn nothing_readable(paths: &[PathBuf], faults: &Faults) -> Obstructed {
    let nothing = nothing_found(paths, &[]);
    match faults.unreadable.as_slice() {
        [(_, message)] => Obstructed {
            message: message.clone(),
            ..nothing
        },
        _ => {
            print_faults(faults);
            nothing
        }
    }
}

/// The directories in which agents keep their logs, as the environment has them.
pub(crate) fn machine() -> Machine {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let variables = Machine::VARIABLES.iter();
    let variables =
        variables.filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    Machine {
        home,
        variables: variables.collect(),
    }
}

/// The directory in the user's cache. Without a home there is none.
fn cache() -> Option<PathBuf> {
    let directory = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = directory("XDG_CACHE_HOME").or_else(|| Some(directory("HOME")?.join(".cache")));
    Some(cache?.join("assize"))
}

/// The index in the user's cache.
pub(crate) fn index() -> Index {
    match cache() {
        Some(cache) => Index::open(&cache.join("sessions.index")),
        None => Index::none(),
    }
}

/// Reads logs and shows how far it is, where that takes long enough to be seen.
pub(crate) fn read(paths: Vec<PathBuf>, index: &mut Index) -> Library {
    let is_seen = console::Term::stderr().features().is_attended() && paths.len() > FEW_LOGS;
    if !is_seen {
        return Library::read(paths, index, &|_| ());
    }
    let bar = ProgressBar::new(paths.len() as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} logs")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    let bar = Mutex::new(bar);
    let library = Library::read(paths, index, &|progress: Progress| {
        // Drawing must not hold up reading.
        if let Ok(bar) = bar.try_lock() {
            bar.set_position(progress.files as u64);
        }
    });
    if let Ok(bar) = bar.lock() {
        bar.finish_and_clear();
    }
    library
}

/// Warns once and in short about unreadable parts.
pub(crate) fn print_faults(faults: &Faults) {
    let flaws = &faults.flaws;
    let count = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let said: Vec<String> = [
        count(flaws.broken_lines, "not JSON"),
        count(flaws.wrong_types, "with values of wrong types"),
        count(flaws.too_long, "too long"),
        count(flaws.unfinished_lines, "half written"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !said.is_empty() {
        say(format!(
            "{} of {} lines could not be used, or not wholly: {}",
            flaws.unusable_lines(),
            flaws.lines,
            said.join(", ")
        ));
        for (path, count) in faults.worst.iter().take(3) {
            say(format!(
                "  {count} in {}",
                plain(&path.display().to_string())
            ));
        }
    }
    if flaws.doubtful_calls > 0 {
        say(format!(
            "{} model calls broke off before their output was counted: their tokens are too low",
            flaws.doubtful_calls
        ));
    }
    if flaws.contradictions > 0 {
        say(format!(
            "{} model calls have counts that contradict each other; parts were limited to their whole",
            flaws.contradictions
        ));
    }
    // A message names its file.
    for (_, message) in faults.unreadable.iter().take(5) {
        warn(message);
    }
    if faults.unreadable.len() > 5 {
        warn(&format!(
            "and {} more files that cannot be read",
            faults.unreadable.len() - 5
        ));
    }
}

/// The present, for spans of time.
pub(crate) fn now() -> i64 {
    unix_ms_now()
}
