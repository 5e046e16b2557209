//! From stored trials to what people read. No IO, and never sees the engine.

mod summary;

pub use summary::{ArmSummary, RunSummary, Values};
