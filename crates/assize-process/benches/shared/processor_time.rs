//! Processor time, for benchmarks of work that is done by other processes.

use nix::sys::resource::{UsageWho, getrusage};
use std::time::Duration;

/// The time that this process and its children have used.
pub(crate) fn used() -> Duration {
    let of = |who| {
        let usage = getrusage(who).unwrap();
        [usage.user_time(), usage.system_time()]
            .map(|time| Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000))
            .into_iter()
            .sum::<Duration>()
    };
    of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN)
}
