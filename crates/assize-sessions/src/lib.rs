//! Session logs that coding agents keep on disk, read to [`SessionTrace`](assize_contracts::SessionTrace): every token once, sub-agents
//! attributed, nothing unknown as zero. Logs are opened for reading only, and nothing leaves the machine.
//!
//! ```no_run
//! for session in assize_sessions::open("rollout.jsonl".as_ref())? {
//!     println!("{}: {} model calls", session.origin.agent, session.trace.model_calls.len());
//! }
//! # Ok::<(), assize_sessions::ReadError>(())
//! ```
//!
//! [`open`] is enough for one log or a few. For many, a [`Library`] reads what totals need and loads sessions one by one.

mod assemble;
mod database;
mod dedupe;
mod digest;
mod draft;
mod find;
mod formats;
pub mod fuzzing;
mod hidden;
mod index;
mod json;
mod library;
mod lines;
mod log;
mod moment;
mod redact;
mod session;
mod unrecognized;
mod uses;

pub use database::DatabaseError;
pub use find::{find_below, find_on_machine, known_agents};
pub use formats::Machine;
pub use index::{Index, Stamp};
pub use library::{Library, Progress, agent_of};
pub use log::ReadError;
pub use redact::{redact, redact_text, redact_trace};
pub use session::{Flaws, Origin, Prompt, Session, SubagentNote};
pub use unrecognized::Unrecognized;
pub use uses::{CallUse, Context, Occurrence, ToolUse, Uses};

use std::path::Path;

/// The sessions in a log, or in all logs below a directory, in the order of time. The form of a log is recognized by its content.
///
/// A session comes with its sub-agents. Records that several files hold, as resumed and forked sessions do, are in the
/// earliest session only.
/// Fails if `path` is a file that is no known log; below a directory such files are passed over.
pub fn open(path: &Path) -> Result<Vec<Session>, ReadError> {
    let mut library = Library::read(find_below(path), &mut Index::none(), &|_| ());
    if !path.is_dir()
        && let Some(error) = library.take_error_of(path)
    {
        return Err(error);
    }
    let mut sessions = Vec::new();
    for number in 0..library.len() {
        sessions.extend(library.load(number)?);
    }
    Ok(sessions)
}
