//! Helpers of the tests: shell programs that carry a mark in their environment, and a look at which are alive.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use assize_process::{Command, Signal};

/// Long enough for a loaded machine; nothing waits for it unless something is broken.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A mark that every descendant carries, wherever it hides.
pub(crate) struct Mark(pub(crate) String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ))
    }

    /// A shell script with this mark.
    pub(crate) fn shell(&self, script: &str) -> Command {
        Command::from_argv(["sh", "-c", script], "/tmp")
            .pass_env("PATH")
            .env("ASSIZE_MARK", &self.0)
            .polite(Signal::SIGTERM, Duration::from_millis(300))
    }

    /// The living processes with this mark.
    pub(crate) fn living(&self) -> Vec<i32> {
        let mark = format!("ASSIZE_MARK={}\0", self.0);
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            environment(*pid)
                .windows(mark.len())
                .any(|part| part == mark.as_bytes())
        })
        .collect()
    }

    /// Waits until at least this many live.
    pub(crate) fn await_living(&self, count: usize) {
        await_true(
            || self.living().len() >= count,
            "not enough processes came to life",
        );
    }

    pub(crate) fn assert_gone(&self) {
        assert_eq!(self.living(), Vec::<i32>::new());
    }
}

pub(crate) fn await_true(condition: impl Fn() -> bool, otherwise: &str) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{otherwise}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Empty for a zombie.
fn environment(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}
