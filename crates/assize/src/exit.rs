//! Exit codes. They are part of the public interface.

use crate::suite::SuiteError;
use assize_report::ReportError;
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; agents that fail their checks are results, not errors.
    Done = 0,
    /// The run could not be done or read.
    Error = 1,
    /// Wrong flags, or a suite that does not check.
    Usage = 2,
    /// Cells are open: interrupted, or stopped early. Resume continues.
    Incomplete = 5,
    /// Interrupted twice.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The exit code of an error.
pub(crate) fn of_error(error: &anyhow::Error) -> Exit {
    let is_baseline = matches!(error.downcast_ref(), Some(ReportError::Baseline { .. }));
    if error.is::<SuiteError>() || error.is::<crate::commands::UsageError>() || is_baseline {
        Exit::Usage
    } else {
        Exit::Error
    }
}
