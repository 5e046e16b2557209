//! Programs that a suite names beside its agents: commands of checks and of hooks. They run under the keeper like agents.

mod check_commands;
mod hook_commands;

pub(crate) use check_commands::KeptCommands;
pub(crate) use hook_commands::HookCommands;

use assize_process::{Error, Exit};
use std::time::Duration;

/// How a program that was not successful ended, in words.
fn ending(exit: &Exit, timeout: Duration) -> String {
    match (exit.stopped, exit.status) {
        (None, Some(status)) => format!("ended with {status}"),
        _ => format!("did not end within {} ms", timeout.as_millis()),
    }
}

/// The error with its cause and the way out, on one line.
fn explain(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        text.push_str(&format!(": {cause}"));
    }
    if let Some(hint) = error.hint() {
        text.push_str(&format!(" (hint: {hint})"));
    }
    text
}
