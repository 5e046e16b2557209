//! Plans, schedules and records trials: plan → schedule → trial → store. Never prints; progress goes out as events.
//!
//! Read in this order: `suite` is the input of a run, `plan` turns it into cells, `schedule` works through them,
//! `trial` does one with an agent and `task` one with a capability, `store` keeps the result. [`run_profile_suite`] is the way in.

mod budget;
mod event;
mod plan;
mod random;
mod shard;
mod suite;

mod guard;
mod hooks;
mod instances;
mod preflight;
mod schedule;
mod steering;
mod task;
mod trial;
mod voids;
mod watch;
mod workspace;

#[doc(hidden)]
pub mod fuzzing;
mod profile;
mod rescore;
pub mod store;

pub use budget::{Amounts, BudgetStop, Ledger, dearest_block};
pub use event::{Event, Listener, TrialBrief};
pub use plan::{Arm, Cell, Order, Plan, PlanError, Subjects};
pub use profile::{
    EngineError, ProfileSuiteResult, RunTarget, earlier_runs, run_profile_suite, runs_like,
};
pub use rescore::{Keeping, Rescored, score_again};
pub use shard::{Round, Shard, ShardError, ShardPlan};
pub use steering::{Look, Steering, StoppedArm};
pub use suite::{After, Execution, KeepWorkspace, Mode, Output, ProfileSuite};
pub use task::{
    Condition, DeclaredSchemas, TaskSet, TaskSource, UsedEvaluator, UsedRunner, check_flow,
    config_hash,
};
pub use voids::VoidReason;
