//! Sessions in files: Assize's own traces, ATIF, and the logs that agents keep.

use anyhow::{Context, Result, anyhow, bail};
use assize_contracts::SessionTrace;
use assize_formats::{Session, atif};
use assize_secrets::Redactor;
use serde_json::Value;
use std::path::Path;

/// A document that is larger is no session. Logs are read line by line and may have any size.
const LARGEST: u64 = 2 << 30;

/// A session, and what its file says beside it.
#[derive(Default)]
pub(super) struct ReadSession {
    pub(super) session: Session,
    pub(super) origin: Origin,
    /// Unreadable parts, in words.
    pub(super) notes: Vec<String>,
}

/// The place where a session worked. Unknown for documents, which do not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) directory: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) commit: Option<String>,
}

/// Reads the session in a file. The format is recognized by the content; logs are not read as a whole, so that what looks like one is
/// tried as one first.
pub(super) fn read(path: &Path) -> Result<ReadSession> {
    let is_document = path.extension().is_some_and(|ending| ending == "json");
    if !is_document && let Some(log) = read_log(path) {
        return Ok(log);
    }
    let error = match read_document(path) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // A document that says what it is, is no log.
    let is_refused = error.downcast_ref::<atif::AtifError>().is_some();
    let log = match is_document && !is_refused {
        true => read_log(path),
        false => None,
    };
    log.ok_or_else(|| about(path, error))
}

/// The error about a file that is no session: for one that is no document, it says what the file is instead.
fn about(path: &Path, error: anyhow::Error) -> anyhow::Error {
    let is_document = path.extension().is_some_and(|ending| ending == "json");
    match reason(path).strip_prefix(": ") {
        Some(reason) if !is_document => anyhow!("{reason}"),
        _ => error,
    }
}

/// The reason why no reader recognizes a file, as the end of a sentence. Empty for directories.
#[cfg(feature = "sessions")]
pub(super) fn reason(path: &Path) -> String {
    let is_unknown = !path.is_dir() && assize_sessions::agent_of(path).is_none();
    let reason = is_unknown.then(|| assize_sessions::Unrecognized::of(path).ok());
    reason
        .flatten()
        .map_or(String::new(), |reason| format!(": {reason}"))
}

/// Always empty: logs are not read without the feature `sessions`.
#[cfg(not(feature = "sessions"))]
pub(super) fn reason(_: &Path) -> String {
    String::new()
}

fn read_document(path: &Path) -> Result<ReadSession> {
    let size = std::fs::metadata(path)?.len();
    if size > LARGEST {
        bail!(
            "the file has {} MB, expected at most {} MB",
            size >> 20,
            LARGEST >> 20
        );
    }
    let text = std::fs::read(path)?;
    // Our own traces are the usual case and may be large: they are parsed once.
    let error = match serde_json::from_slice::<SessionTrace>(&text) {
        Ok(trace) => return Ok(own(trace)),
        Err(error) => error,
    };
    let document = serde_json::from_slice::<Value>(&text).ok();
    match document.filter(atif::is_atif) {
        Some(document) => {
            let atif::Imported { session, notes } = atif::read(document)?;
            Ok(ReadSession {
                session,
                notes,
                ..ReadSession::default()
            })
        }
        None => Err(error).context("not a session trace"),
    }
}

fn own(trace: SessionTrace) -> ReadSession {
    let session = Session {
        trace,
        ..Session::default()
    };
    ReadSession {
        session,
        ..ReadSession::default()
    }
}

/// Calls `visit` with every session in a file, or in the logs below a directory, one after another: only one is in memory.
pub(super) fn each(path: &Path, visit: &mut dyn FnMut(ReadSession) -> Result<()>) -> Result<()> {
    let is_document = path.extension().is_some_and(|ending| ending == "json");
    if is_document && let Ok(read) = read_document(path) {
        return visit(read);
    }
    if each_of_log(path, visit)? > 0 {
        return Ok(());
    }
    match path.is_dir() {
        true => Ok(()),
        false => visit(read_document(path).map_err(|error| about(path, error))?),
    }
}

/// True for a directory with files that may be logs.
#[cfg(feature = "sessions")]
pub(super) fn has_logs(path: &Path) -> bool {
    path.is_dir() && !assize_sessions::find_below(path).is_empty()
}

/// Always false: logs are not read without the feature `sessions`.
#[cfg(not(feature = "sessions"))]
pub(super) fn has_logs(_: &Path) -> bool {
    false
}

/// The first session in an agent's log. None for files that are no log.
#[cfg(feature = "sessions")]
fn read_log(path: &Path) -> Option<ReadSession> {
    let library = library(path);
    for number in 0..library.len() {
        let Some(log) = library.load(number).ok()? else {
            continue;
        };
        let mut read = of_log(log);
        let others = library.len() - number - 1;
        if others > 0 {
            read.notes.push(format!(
                "{others} more sessions are in the file; this is the first"
            ));
        }
        return Some(read);
    }
    None
}

#[cfg(not(feature = "sessions"))]
fn read_log(_: &Path) -> Option<ReadSession> {
    None
}

/// Returns the number of sessions that were visited.
#[cfg(feature = "sessions")]
fn each_of_log(path: &Path, visit: &mut dyn FnMut(ReadSession) -> Result<()>) -> Result<usize> {
    let library = library(path);
    let mut count = 0;
    for number in 0..library.len() {
        if let Some(log) = library.load(number)? {
            count += 1;
            visit(of_log(log))?;
        }
    }
    Ok(count)
}

#[cfg(not(feature = "sessions"))]
fn each_of_log(_: &Path, _: &mut dyn FnMut(ReadSession) -> Result<()>) -> Result<usize> {
    Ok(0)
}

/// A text without what looks like a key, and without what only its name shows to be a secret, such as `password=…`.
pub(super) fn without_secrets(text: &str, redactor: &Redactor) -> String {
    let text = redactor.text(text);
    // Names of secrets are known to the feature `sessions`.
    #[cfg(feature = "sessions")]
    let text = assize_sessions::redact_text(&text);
    text.into_owned()
}

#[cfg(feature = "sessions")]
fn library(path: &Path) -> assize_sessions::Library {
    use assize_sessions::{Index, Library, find_below};
    Library::read(find_below(path), &mut Index::none(), &|_| ())
}

#[cfg(feature = "sessions")]
fn of_log(log: assize_sessions::Session) -> ReadSession {
    use assize_contracts::Timestamp;
    use assize_formats::UserMessage;
    let unusable = log.flaws.unusable_lines();
    let notes = (unusable > 0).then(|| format!("{unusable} lines could not be read"));
    let message = |prompt: &assize_sessions::Prompt| UserMessage {
        text: prompt.text.clone(),
        at: prompt.at_ms.map(Timestamp::from_unix_ms),
    };
    ReadSession {
        session: Session {
            model: log.model().map(str::to_owned),
            user_messages: log.prompts.iter().map(message).collect(),
            agent_name: log.origin.agent,
            agent_version: log.origin.agent_version,
            trace: log.trace,
            trial: None,
        },
        origin: Origin {
            directory: log.origin.cwd,
            branch: log.origin.git_branch,
            commit: log.origin.git_commit,
        },
        notes: notes.into_iter().collect(),
    }
}
