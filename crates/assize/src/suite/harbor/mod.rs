//! Harbor tasks: directories with a `task.toml`, run as scenarios as they are.

mod file;
mod scenario;
mod task;

pub(crate) use scenario::{of_environment, scenario};
pub(crate) use task::{HarborEnvironment, HarborTask, ImageOf, VerifierPlace, find};
