//! Measures the cost of the keeper: the same program started plainly by tokio and under a keeper, one by one and 500 at once; time and
//! processor time. Run with `cargo bench -p assize-process`.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

#[path = "shared/processor_time.rs"]
mod clock;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assize_process::workspace::{Scratch, ScratchRoom};
use assize_process::{Command, Guard, Surroundings, keeper, raise_open_files};
use clock::used;
use tokio::task::JoinSet;

const ROUNDS: usize = 300;
const AT_ONCE: usize = 500;

fn main() {
    keeper::main_if_asked();
    raise_open_files().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        processor_time().await;
        if std::env::args().any(|argument| argument == "--short") {
            return;
        }
        one_by_one().await;
        many_at_once().await;
    });
}

/// Processor time of one start by this process, its keepers and the program.
async fn processor_time() {
    let (guard, _room) = (guard(), ScratchRoom::open().unwrap());
    for name in ["plain", "kept", "kept, cgroup", "kept, guarded"] {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let before = used();
            for _ in 0..ROUNDS {
                let command = command("/bin/true", &[]);
                match name {
                    "plain" => run_plainly("/bin/true", &[]).await,
                    "kept" => run_kept(command.without_cgroup()).await,
                    "kept, cgroup" => run_kept(command).await,
                    _ => run_guarded(command.without_cgroup(), &guard).await,
                }
            }
            // What keepers used is known when they have ended.
            keeper::shut_down();
            best = best.min((used() - before) / ROUNDS as u32);
        }
        println!("{name:<13} {best:>8.2?} of processor time");
    }
}

/// In a directory of its own, as trials are.
async fn run_guarded(command: Command, guard: &Guard) {
    let mut scratch = Scratch::new().unwrap();
    scratch.allow_reuse();
    let guard = Guard {
        writable: vec![scratch.path().to_owned()],
        ..guard.clone()
    };
    run_kept(command.guarded(guard)).await;
}

/// Start to end of `/bin/true`, the three ways in turn so that all see the same load.
async fn one_by_one() {
    let (mut plain, mut kept, mut kept_in_cgroup) = (Vec::new(), Vec::new(), Vec::new());
    let (mut guarded, guard) = (Vec::new(), guard());
    for _ in 0..ROUNDS {
        plain.push(timed(run_plainly("/bin/true", &[])).await);
        kept.push(timed(run_kept(command("/bin/true", &[]).without_cgroup())).await);
        kept_in_cgroup.push(timed(run_kept(command("/bin/true", &[]))).await);
        let command = command("/bin/true", &[]).without_cgroup();
        guarded.push(timed(run_guarded(command, &guard)).await);
    }
    let plain = show("plain", plain, None);
    let kept = show("kept", kept, Some(plain));
    show("kept, cgroup", kept_in_cgroup, Some(plain));
    show("kept, guarded", guarded, Some(kept));
    println!("the guard has {} rules", guard.surroundings.readable.len());
}

/// Hides a directory deep below the current one, as the guard of a suite does.
fn guard() -> Guard {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Guard {
        surroundings: Arc::new(Surroundings::without(&[
            here.join("crates/assize/tests"),
            std::env::temp_dir().join("assize-0"),
        ])),
        ..Guard::default()
    }
}

/// From nothing to the end of 500 programs that all sleep for two seconds.
async fn many_at_once() {
    for name in ["plain", "kept", "kept, cgroup"] {
        let start = Instant::now();
        let mut all = JoinSet::new();
        for _ in 0..AT_ONCE {
            match name {
                "plain" => all.spawn(run_plainly("/bin/sleep", &["2"])),
                "kept" => all.spawn(run_kept(command("/bin/sleep", &["2"]).without_cgroup())),
                _ => all.spawn(run_kept(command("/bin/sleep", &["2"]))),
            };
        }
        all.join_all().await;
        let overhead = start.elapsed() - Duration::from_secs(2);
        let each = overhead / AT_ONCE as u32;
        println!(
            "{AT_ONCE} at once, {name:<13} {overhead:>8.1?} beyond their two seconds, {each:.2?} each"
        );
    }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    Command::new(program, "/").args(arguments)
}

async fn run_kept(command: Command) {
    assert!(command.run_to_end().await.unwrap().exit.is_success());
}

async fn run_plainly(program: &'static str, arguments: &'static [&'static str]) {
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null());
    assert!(command.output().await.unwrap().status.success());
}

async fn timed(work: impl Future<Output = ()>) -> Duration {
    let start = Instant::now();
    work.await;
    start.elapsed()
}

/// Prints and returns the median.
fn show(name: &str, mut times: Vec<Duration>, plain: Option<Duration>) -> Duration {
    times.sort();
    let (median, slow) = (times[times.len() / 2], times[times.len() * 95 / 100]);
    let over = plain.map_or(String::new(), |plain| {
        format!(", {:.2?} over plain", median.saturating_sub(plain))
    });
    println!("{name:<13} median {median:>8.2?}, 95th percentile {slow:>8.2?}{over}");
    median
}
