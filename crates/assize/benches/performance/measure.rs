//! Processor time and memory of programs: a second process of this program starts each, and is asked what its child used.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::ops::Add;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

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

/// The processor time that a program and its descendants had used at some moments.
pub(crate) struct Samples(Vec<(SystemTime, f64)>);

impl Samples {
    /// Runs a program, which must succeed, and looks at it every few milliseconds.
    pub(crate) fn of(directory: &Path, program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut samples = Vec::new();
        let status = loop {
            samples.push((SystemTime::now(), ticks_of_tree(child.id())));
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        assert!(status.success(), "{program} {arguments:?} failed");
        let seconds = samples
            .into_iter()
            .map(|(at, used)| (at, used as f64 / 100.0));
        Self(seconds.collect())
    }

    /// The seconds used between two moments.
    pub(crate) fn between(&self, from: SystemTime, to: SystemTime) -> f64 {
        let until = |moment| {
            let before = self.0.iter().take_while(|(at, _)| *at <= moment);
            before.last().map_or(0.0, |(_, used)| *used)
        };
        until(to) - until(from)
    }
}

/// Of a process and its descendants, the dead included, in hundredths of a second, the unit of `/proc`.
fn ticks_of_tree(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is a name in parentheses, which may hold anything.
    let rest = stat.rsplit(") ").next().unwrap_or_default();
    let own: u64 = rest
        .split(' ')
        .skip(11)
        .take(4)
        .filter_map(|number| number.parse::<u64>().ok())
        .sum();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lists = tasks.into_iter().flatten().flatten();
    let lists = lists.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: u64 = lists
        .map(|list| {
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.map(ticks_of_tree).sum::<u64>()
        })
        .sum();
    own + children
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
