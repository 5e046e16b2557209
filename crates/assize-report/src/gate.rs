//! Gates: sentences such as `success >= 0.9` that a run must be shown to fulfil.
//!
//! `parse` reads them, `judge` holds trials against them, `plan` says beforehand whether enough trials are planned.

mod estimate;
mod judge;
mod parse;
mod plan;
mod result;
mod side;

pub use judge::{GateContext, Planned, PlannedArm, Reference, judge_gates};
pub use parse::GateError;
pub use plan::Shortfall;
pub use result::{GateMeasure, GateResult, gate_bounds_note, gates_note, worst};

use assize_contracts::Catalog;
use assize_stats::{Relation, Scope, Statistic};

/// One sentence, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    text: String,
    pub(crate) subject: Subject,
    pub(crate) relation: Relation,
    pub(crate) bound: Bound,
    /// The modes it speaks about. Default: all of them.
    pub modes: Option<Vec<String>>,
}

/// The quantity that is compared with the bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Subject {
    /// The share of judged trials that pass.
    Success,
    /// The chance that one of so many tries passes.
    PassAt(u64),
    /// The chance that all of so many tries pass.
    PassHat(u64),
    /// A metric; without a statistic, the suite's.
    Metric {
        name: String,
        /// The position of the name in the sentence, in characters from 1.
        column: usize,
        statistic: Option<Statistic>,
    },
}

/// The limit that the subject is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    Number(f64),
    /// The baseline times this.
    Times(f64),
    /// The baseline plus this, in the metric's unit (1 for 100 points of a rate).
    Plus(f64),
}

impl Gate {
    /// The sentence as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True when the gate needs something to compare with.
    pub fn needs_baseline(&self) -> bool {
        !matches!(self.bound, Bound::Number(_))
    }

    /// The tasks that its bounds apply to, where gates on success apply to `wanted`. Chances of several tries have bounds for new
    /// tasks only.
    pub(crate) fn scope(&self, wanted: Scope) -> Scope {
        match &self.subject {
            Subject::Success => wanted,
            Subject::PassAt(_) | Subject::PassHat(_) => Scope::Population,
            Subject::Metric { .. } => Scope::Suite,
        }
    }

    /// The metric it is about; none for success and what follows from it.
    pub fn metric(&self) -> Option<&str> {
        match &self.subject {
            Subject::Metric { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The error of a gate whose metric is none of those that exist.
    pub fn unknown_metric<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> GateError {
        let Subject::Metric { name, column, .. } = &self.subject else {
            return GateError::new(&self.text, 1, "this is no metric");
        };
        let error = GateError::new(&self.text, *column, format!("unknown metric `{name}`"));
        error.nearest(name, std::iter::once("success").chain(known))
    }
}

impl Subject {
    /// A share between 0 and 1 by its nature.
    pub(crate) fn is_rate(&self, catalog: &Catalog) -> bool {
        match self {
            Self::Success | Self::PassAt(_) | Self::PassHat(_) => true,
            Self::Metric { name, .. } => {
                let metric = catalog.metric(name);
                metric.is_ratio() && metric.field().is_some()
            }
        }
    }

    /// Perhaps a share: nothing is known about the unit of a metric that is not built in before it was measured.
    pub(crate) fn may_be_rate(&self, catalog: &Catalog) -> bool {
        match self {
            Self::Metric { name, .. } => {
                let metric = catalog.metric(name);
                metric.is_ratio() || metric.unit.is_empty()
            }
            _ => true,
        }
    }
}
