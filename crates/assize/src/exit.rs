//! Exit codes. They are part of the public interface.

use crate::suite::SuiteError;
use assize_report::{GateError, GateResult, ReportError, worst};
use assize_stats::GateVerdict;
use std::process::ExitCode;

/// The exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; agents that fail their checks are results, not errors.
    Done,
    /// The run could not be done or read.
    Error,
    /// Wrong flags, or a suite that does not check.
    Usage,
    /// A gate failed.
    GateFailed,
    /// A gate is neither shown to hold nor to fail.
    GateInconclusive,
    /// Cells are open: interrupted, or stopped early. Resume continues.
    Incomplete,
    /// Interrupted twice.
    Interrupted,
    /// As the command that was recorded ended.
    Recorded(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Error => 1,
            Self::Usage => 2,
            Self::GateFailed => 3,
            Self::GateInconclusive => 4,
            Self::Incomplete => 5,
            Self::Interrupted => 130,
            Self::Recorded(code) => code,
        }
    }

    /// The exit code of gates: that of the worst.
    pub(crate) fn of_gates(gates: &[GateResult]) -> Self {
        match worst(gates) {
            None | Some(GateVerdict::Pass) => Self::Done,
            Some(GateVerdict::Fail) => Self::GateFailed,
            Some(GateVerdict::Inconclusive) => Self::GateInconclusive,
        }
    }
}

/// The exit code of an error.
pub(crate) fn of_error(error: &anyhow::Error) -> Exit {
    let is_gate = error.is::<GateError>();
    let is_baseline = matches!(error.downcast_ref(), Some(ReportError::Baseline { .. }));
    if error.is::<SuiteError>()
        || error.is::<crate::commands::UsageError>()
        || is_baseline
        || is_gate
    {
        Exit::Usage
    } else {
        Exit::Error
    }
}
