//! Plans, schedules and records trials: plan → schedule → trial → store. Never prints; progress goes out as events.
//!
//! Read in this order: `suite` says what a run needs, `plan` turns it into cells, `schedule` works through them,
//! `trial` does one, `store` keeps the result. [`run_profile_suite`] is the way in.

mod event;
mod plan;
mod random;
mod suite;

mod guard;
mod hooks;
mod instances;
mod schedule;
mod trial;
mod workspace;

#[doc(hidden)]
pub mod fuzzing;
mod profile;
pub mod store;

pub use event::{Caution, Event, Listener, TrialBrief};
pub use plan::{Arm, Cell, Order, Plan, PlanError};
pub use profile::{EngineError, ProfileSuiteResult, RunTarget, run_profile_suite};
pub use suite::{Execution, KeepWorkspace, Mode, Output, ProfileSuite};
