//! The contracts of `assize-contracts` served by programs in any language.
//!
//! A plugin program reads requests from stdin and writes answers to stdout: JSON-RPC 2.0, one message per line
//! (`docs/plugin-protocol.md`). [`PluginHost`] starts such programs under the keeper and turns what they serve into
//! [`Plugins`](assize_contracts::Plugins); [`serve`] is the other side, for plugins written in Rust.
//!
//! A program that crashes, hangs, floods or talks nonsense fails the calls it owes an answer to, and is started again
//! up to a limit; nothing else is harmed.

pub mod conformance;
mod connection;
mod contracts;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod limits;
mod log;
mod program;
pub mod protocol;
mod serve;
mod wire;

pub use error::{CallError, StartError};
pub use host::{PluginHost, Unstarted};
pub use limits::{CALL_KINDS, CallKind, CallLimits};
pub use log::Redact;
pub use program::{DEFAULT_RESTARTS, PluginProgram, PluginSpec, Transport};
pub use serve::serve;
