//! Processor time and memory of programs: a second process of this program starts each, and is asked what its child used.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::ops::Add;
use std::path::Path;
use std::process::{Command, Stdio};

/// The resource use of a program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Seconds, user and system.
    pub(crate) cpu: f64,
    /// The most memory it had at once.
    pub(crate) peak_mb: f64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            peak_mb: self.peak_mb.max(other.peak_mb),
        }
    }
}

/// The run with the least processor time: others were disturbed.
pub(crate) fn best_of(times: usize, run: impl FnMut() -> Usage) -> Usage {
    let runs = std::iter::repeat_with(run).take(times);
    runs.min_by(|a, b| a.cpu.total_cmp(&b.cpu)).unwrap()
}

/// A program of the system.
pub(crate) fn plain(program: &str, arguments: &[&str]) -> Usage {
    of(Path::new("."), program, arguments)
}

/// A program in a directory. It must succeed.
pub(crate) fn of(directory: &Path, program: &str, arguments: &[&str]) -> Usage {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("--measure")
        .arg(program)
        .args(arguments)
        .current_dir(directory)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(output.status.success(), "{program} {arguments:?} failed");
    Usage {
        cpu: numbers[0],
        peak_mb: numbers[1],
    }
}

/// Runs a program and prints what it used.
pub(crate) fn measure_and_print(words: &[String]) {
    let status = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let cpu = used.user_time().num_microseconds() + used.system_time().num_microseconds();
    println!("{} {}", cpu as f64 / 1e6, used.max_rss() as f64 / 1024.0);
    std::process::exit(status.code().unwrap_or(1));
}

/// Processor time of this process and its threads so far, in seconds.
pub(crate) fn own_cpu() -> f64 {
    let used = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let cpu = used.user_time().num_microseconds() + used.system_time().num_microseconds();
    cpu as f64 / 1e6
}
