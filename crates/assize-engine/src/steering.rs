//! Looks at a run while it grows: at whole rounds the caller may decide that arms are done.

use crate::plan::Arm;
use std::path::Path;

/// Decides at declared looks which arms continue.
pub trait Steering: Send + Sync {
    /// The numbers of complete rounds at which it looks, rising. A round is every scenario once in every arm.
    fn looks(&self) -> Vec<u32>;

    /// Called when every block of so many rounds is done and on disk, also for looks of earlier starts of the run. May read files
    /// and take its time; no trial runs meanwhile.
    fn look(&self, directory: &Path, rounds: u32) -> Look;
}

/// The outcome of a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Arms of which nothing more is started.
    pub stopped: Vec<StoppedArm>,
    /// A line about it for people. Absent for looks of earlier starts.
    pub text: Option<String>,
}

/// An arm that is done before its last repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedArm {
    pub arm: Arm,
    /// Repetitions it has.
    pub after: u32,
}
