//! What a run tells while it goes on. Terminal, JSON lines and files are readers of the same events.

use assize_contracts::{Outcome, ProfileRow, Usd};
use serde::Serialize;
use std::path::Path;

/// Something that happened in a run.
#[derive(Debug, Serialize)]
#[serde(
    tag = "event",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run directory exists and trials are about to start.
    RunStarted {
        /// The run's id.
        run_id: &'a str,
        /// Where it is kept.
        directory: &'a Path,
        /// Trials in the plan.
        cells: u64,
        /// Trials already there from before.
        done: u64,
    },
    /// A trial begins.
    CellStarted {
        /// Place in the plan; absent for the warm-up.
        position: Option<u64>,
        /// Its scenario.
        scenario_id: &'a str,
        /// Its mode.
        mode: &'a str,
        /// Its model.
        model: &'a str,
        /// Its repetition.
        iteration: i64,
    },
    /// A trial is done and safely on disk.
    TrialFinished {
        /// What progress needs to know of it.
        #[serde(skip)]
        trial: &'a TrialBrief,
        /// The row as it was stored: JSON, secrets removed.
        #[serde(skip)]
        json: &'a [u8],
    },
    /// A trial was cut off and stays open.
    TrialCancelled {
        /// Place in the plan.
        position: Option<u64>,
    },
    /// Something that weakens the result.
    Caution(&'a Caution),
    /// Nothing more will happen.
    RunFinished {
        /// The run's id.
        run_id: &'a str,
        /// Trials on disk.
        done: u64,
        /// Trials not done.
        open: u64,
    },
}

/// A finished trial in brief.
#[derive(Debug, Clone)]
pub struct TrialBrief {
    /// Place in the plan.
    pub position: Option<u64>,
    /// Its mode.
    pub mode: String,
    /// What it taught.
    pub outcome: Outcome,
    /// Tokens it used.
    pub tokens_total: Option<u64>,
    /// What it cost.
    pub cost_usd: Option<Usd>,
}

impl TrialBrief {
    pub(crate) fn of(row: &ProfileRow) -> Self {
        Self {
            position: row.position,
            mode: row.mode.clone(),
            outcome: row.outcome.unwrap_or(Outcome::Void),
            tokens_total: row.tokens.total,
            cost_usd: row.cost.total_usd,
        }
    }
}

/// What makes a number weak, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caution {
    /// A word for machines.
    pub code: String,
    /// One sentence.
    pub text: String,
    /// What it is about: a metric, a hook, a mode.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// Hears every event of a run, from several threads at once. Must be quick.
pub trait Listener: Send + Sync {
    /// Called for each event.
    fn on_event(&self, event: &Event<'_>);
}

/// Hears nothing.
impl Listener for () {
    fn on_event(&self, _: &Event<'_>) {}
}
