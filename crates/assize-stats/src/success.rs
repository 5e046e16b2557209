//! Success over tasks: passed among judged trials per task and mode. Pooled counts are never compared.
//!
//! `population` speaks about new tasks like these, `suite` about exactly these, `margin` holds both against margins and
//! thresholds, and `voids` bounds what the trials that could not be judged might change.

mod margin;
mod population;
mod suite;
mod voids;

use crate::error::{StatsError, same_length};
use crate::proportion::Tally;

pub use margin::{
    SuccessGate, SuccessMargin, SuccessMarginOptions, success_gate, success_margin,
    tasks_for_margin,
};
pub use population::{SuccessDifference, SuccessRate, success_difference, success_rate};
pub(crate) use population::{TaskDifferences, chance_inside, per_task_variance};
pub(crate) use suite::suite_sides;
pub use suite::{SuiteDifference, SuiteRate, suite_difference, suite_rate};
pub(crate) use voids::{TallyCase, VoidCases, Voided};
pub use voids::{VoidCheck, void_check};

/// The tasks that have judged trials of both modes.
#[derive(Clone, Debug, Default)]
pub(crate) struct MatchedTallies {
    pub(crate) a: Vec<Tally>,
    pub(crate) b: Vec<Tally>,
}

impl MatchedTallies {
    /// Task `s` of `a` belongs to task `s` of `b`.
    pub(crate) fn new(a: &[Tally], b: &[Tally]) -> Result<Self, StatsError> {
        same_length(a.len(), b.len())?;
        let judged = |(a, b): &(&Tally, &Tally)| a.trials() > 0 && b.trials() > 0;
        let (a, b) = a.iter().zip(b).filter(judged).unzip();
        Ok(Self { a, b })
    }

    pub(crate) fn tasks(&self) -> usize {
        self.a.len()
    }
}

/// The share of passed trials of each task that has any.
fn rates(tallies: &[Tally]) -> Vec<f64> {
    tallies.iter().filter_map(|tally| tally.rate()).collect()
}

/// The plain mean of the tasks' rates; none without tasks.
pub(crate) fn mean_rate(tallies: &[Tally]) -> Option<f64> {
    let rates = rates(tallies);
    (!rates.is_empty()).then(|| crate::sample::sum(rates.iter().copied()) / rates.len() as f64)
}
