//! Errors of the caller. Weak data is no error: it gives a flagged or absent number and a warning.

use thiserror::Error;

/// Input that has no meaning, as opposed to data that allows no conclusion.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum StatsError {
    /// A confidence level, error rate or power outside the open unit interval.
    #[error("level {found} is not between 0 and 1")]
    LevelOutOfRange {
        /// The rejected number.
        found: f64,
    },
    /// Two lists that belong together differ in length.
    #[error("lists that belong together have {left} and {right} items")]
    LengthMismatch {
        /// Items of the first list.
        left: usize,
        /// Items of the second list.
        right: usize,
    },
    /// More successes than trials.
    #[error("{successes} successes in {trials} trials")]
    SuccessesExceedTrials {
        /// Counted successes.
        successes: u64,
        /// Counted trials.
        trials: u64,
    },
    /// A bounded method met a value outside of its bounds.
    #[error("value {found} is not between 0 and 1")]
    ValueOutsideUnit {
        /// The rejected number.
        found: f64,
    },
    /// A margin, variance or effect that must be a finite number of at least zero.
    #[error("`{name}` is {found}, expected a finite number of at least 0")]
    NotNonNegative {
        /// The option's name.
        name: &'static str,
        /// The rejected number.
        found: f64,
    },
    /// The bounds of an equivalence test are not in order.
    #[error("low {low} is not below high {high}")]
    EmptyRange {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
}

/// Accepts a finite number of at least zero.
pub(crate) fn non_negative(name: &'static str, found: f64) -> Result<f64, StatsError> {
    if found.is_finite() && found >= 0.0 {
        Ok(found)
    } else {
        Err(StatsError::NotNonNegative { name, found })
    }
}

/// Accepts two lists of the same length.
pub(crate) fn same_length(left: usize, right: usize) -> Result<(), StatsError> {
    if left == right {
        Ok(())
    } else {
        Err(StatsError::LengthMismatch { left, right })
    }
}
