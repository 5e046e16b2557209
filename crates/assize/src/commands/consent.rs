//! Asking before real money can be spent.

use crate::terminal::say;
use anyhow::Result;
use std::io::{IsTerminal, Write};

/// Asks whether to go on; only where a user can answer, else silence is consent, as scripts expect.
pub(super) fn is_given(explain: impl FnOnce() -> Result<String>) -> Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(true);
    }
    say(explain()?);
    write!(std::io::stderr(), "Go on? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
