//! Errors between a file of rows and a summary.

use assize_stats::StatsError;
use thiserror::Error;

/// The reason why there is no summary. Weak data is no error: it gives cautions.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The caller's reader broke.
    #[error("cannot read")]
    Read(#[source] std::io::Error),
    /// The caller's writer broke.
    #[error("cannot write")]
    Write(#[source] std::io::Error),
    /// Something that is not the row of a trial.
    #[error("row {number}: {reason}")]
    Row {
        /// Its number, counted from 1.
        number: u64,
        reason: String,
    },
    /// The baseline that was asked for is none of the modes.
    #[error("unknown baseline `{found}` (modes here: {})", known.join(", "))]
    Baseline {
        /// The name given.
        found: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// An option of the analysis that has no meaning.
    #[error("the analysis cannot be done")]
    Analysis(#[from] StatsError),
}
