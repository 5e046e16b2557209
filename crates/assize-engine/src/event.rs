//! Events of a run. Terminal, JSON lines and files read the same events.

use assize_contracts::{Caution, JsonMap, Outcome, ProfileRow, Usd};
use serde::{Serialize, Serializer};
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
        scenario_id: &'a str,
        mode: &'a str,
        model: &'a str,
        /// Its repetition.
        iteration: i64,
    },
    /// A trial is done and safely on disk.
    TrialFinished {
        /// The part that progress shows.
        #[serde(skip)]
        trial: &'a TrialBrief,
        /// The row as it was stored: JSON, secrets removed. In JSON its fields are beside `event`.
        #[serde(flatten, serialize_with = "as_fields")]
        json: &'a [u8],
    },
    /// A trial was cut off and stays open.
    TrialCancelled {
        /// Place in the plan.
        position: Option<u64>,
    },
    /// A call into a plugin is still under way. Sent every ten seconds.
    Waiting {
        /// The pending call: `hook beforeScenario`, `scorer tests`, `provider agent init`.
        call: &'a str,
        /// For how long.
        seconds: u64,
    },
    /// The warm-up is over; the trials that count begin.
    WarmupFinished,
    /// A declared look at the run.
    Looked {
        /// Rounds that are complete.
        rounds: u32,
        /// The outcome, for people.
        text: &'a str,
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

/// The fields of a JSON object.
fn as_fields<S: Serializer>(json: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let fields: JsonMap = serde_json::from_slice(json).map_err(serde::ser::Error::custom)?;
    fields.serialize(serializer)
}

/// A finished trial in brief.
#[derive(Debug, Clone)]
pub struct TrialBrief {
    /// Place in the plan.
    pub position: Option<u64>,
    pub mode: String,
    pub outcome: Outcome,
    /// Tokens it used.
    pub tokens_total: Option<u64>,
    pub cost_usd: Option<Usd>,
    /// Tokens that are known in any case, where their total is not.
    pub tokens_at_least: Option<u64>,
    /// The cost of those tokens.
    pub cost_at_least_usd: Option<Usd>,
}

impl TrialBrief {
    pub(crate) fn of(row: &ProfileRow) -> Self {
        Self {
            position: row.position,
            mode: row.mode.clone(),
            outcome: row.outcome.unwrap_or(Outcome::Void),
            tokens_total: row.tokens.total,
            cost_usd: row.cost.total_usd,
            tokens_at_least: row.tokens_at_least.and_then(|known| known.total),
            cost_at_least_usd: row.cost_at_least_usd,
        }
    }
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
