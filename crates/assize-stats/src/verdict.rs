//! The words of a comparison.

use serde::Serialize;

use crate::task_t::ROUNDING;

/// The result of comparing A with B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A is better: the interval excludes no difference and the adjusted p-value is small.
    Better,
    /// A is worse, by the same measure.
    Worse,
    /// A is lower, among metrics that were not declared to decide by.
    Lower,
    /// A is higher, among metrics that were not declared to decide by.
    Higher,
    /// The difference is shown to be smaller than the margin.
    Equivalent,
    /// The data fit both; never to be read as "no difference".
    Inconclusive,
    /// There is no meaningful comparison; `reason` says why.
    NotComparable,
}

impl Verdict {
    /// The word for an interval of A minus B where higher is better.
    pub(crate) fn of_interval(lower: Option<f64>, upper: Option<f64>) -> Self {
        match (lower, upper) {
            (Some(lower), _) if lower > ROUNDING => Self::Better,
            (_, Some(upper)) if upper < -ROUNDING => Self::Worse,
            _ => Self::Inconclusive,
        }
    }
}
