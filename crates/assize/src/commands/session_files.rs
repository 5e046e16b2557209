//! Sessions in files: Assize's own traces, and those of other tools.

use anyhow::{Context, Result, bail};
use assize_contracts::SessionTrace;
use assize_formats::{Session, UserMessage, atif};
use serde_json::Value;
use std::path::Path;

/// A file that is larger is no session.
const LARGEST: u64 = 2 << 30;

/// A session, and what could not be read of it, in words.
pub(super) struct ReadSession {
    pub(super) session: Session,
    pub(super) notes: Vec<String>,
}

/// Reads the session in a file. The format is told by the content.
pub(super) fn read(path: &Path) -> Result<ReadSession> {
    let size = std::fs::metadata(path)?.len();
    if size > LARGEST {
        bail!(
            "the file has {} MB, expected at most {} MB",
            size >> 20,
            LARGEST >> 20
        );
    }
    read_text(&std::fs::read(path)?)
}

fn read_text(text: &[u8]) -> Result<ReadSession> {
    // Our own traces are the usual case and may be large: they are parsed once.
    let error = match serde_json::from_slice::<SessionTrace>(text) {
        Ok(trace) => return Ok(own(trace)),
        Err(error) => error,
    };
    let document = serde_json::from_slice::<Value>(text).ok();
    match document.filter(atif::is_atif) {
        Some(document) => {
            let atif::Imported { session, notes } = atif::read(document)?;
            Ok(ReadSession { session, notes })
        }
        None => Err(error).context("not a session trace"),
    }
}

fn own(trace: SessionTrace) -> ReadSession {
    let session = Session {
        user_messages: Vec::<UserMessage>::new(),
        trace,
        ..Session::default()
    };
    ReadSession {
        session,
        notes: Vec::new(),
    }
}
