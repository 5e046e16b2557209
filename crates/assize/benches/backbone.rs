//! Measures a trial whose agent costs nothing: CPU time (user + system) and memory, against the budgets.
//!
//! `cargo bench --bench backbone`, on a quiet machine; only some parts: `-- trial traces waiting version`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark may panic and prints its table"
)]

use assize::suite::Selection;
use assize_engine::{RunTarget, run_profile_suite};
use nix::sys::resource::{UsageWho, getrusage};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

// As in the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    println!("{:<46} {:>12} {:>12}", "", "measured", "budget");
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let wanted = |part: &str| asked.is_empty() || asked.iter().any(|word| word == part);
    if wanted("tasks") {
        tasks(100_000);
        forget_peak_memory();
    }
    if wanted("trial") {
        overhead("trial, trace not stored", false, &[500, 2_500], 20.0);
    }
    if wanted("traces") {
        overhead("trial, every trace stored", true, &[500], 100.0);
    }
    if wanted("waiting") {
        waiting();
    }
    if wanted("version") {
        version();
    }
}

fn suite(latency_ms: u32, store_traces: bool) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write =
        |name: String, text: String| std::fs::write(directory.path().join(name), text).unwrap();
    let provider = format!(
        "{{ uses: simulated, latency_ms: {latency_ms}, tool_calls: 10, events: 50, turns: 4 }}"
    );
    write(
        "assize.yaml".into(),
        format!(
            "provider: {provider}\nmodes: {{ a: {{}}, b: {{}} }}\nscenarios: {{ paths: ['s*.yaml'] }}\n\
             execution: {{ warmup: false }}\noutput: {{ store_traces: {store_traces} }}\n"
        ),
    );
    for number in 0..10 {
        let checks = "[ { output: { contains: done } } ]";
        write(
            format!("s{number}.yaml"),
            format!("id: s{number}\nprompt: do it\nchecks: {checks}\n"),
        );
    }
    directory
}

/// Trials alone, in this process: loading, planning and everything up to the last durable row, without the closing report.
fn overhead(name: &str, store_traces: bool, repetitions: &[u32], budget: f64) {
    for count in repetitions {
        let directory = suite(0, store_traces);
        let used = cpu(|| run(directory.path(), *count));
        let trials = f64::from(*count) * 20.0;
        let each = used.as_secs_f64() * 1e6 / trials;
        line(
            &format!("{name}, {trials} trials"),
            &format!("{each:.1} µs"),
            &format!("{budget} µs"),
        );
        line(
            "  peak memory",
            &format!("{} MB", peak_memory_mb()),
            "50 MB",
        );
    }
}

/// Not from `getrusage`, which counts what the process that started this one had.
fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

/// So that what comes next has a peak of its own.
fn forget_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn run(directory: &Path, repetitions: u32) {
    let selection = Selection {
        repetitions: Some(repetitions),
        ..Selection::default()
    };
    let suite = assize::suite::load(directory, &selection, &assize::built_in_plugins()).unwrap();
    let target = RunTarget::New(suite.results_dir);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let running = run_profile_suite(
        suite.profile,
        target,
        Arc::new(()),
        CancellationToken::new(),
    );
    assert_eq!(runtime.block_on(running).unwrap().open, 0);
}

/// 5,000 sessions in flight at once, each waiting 100 ms.
fn waiting() {
    let suite = suite(100, false);
    let started = Instant::now();
    assize(suite.path(), &["run", "-q", "-n", "250", "-j", "5000"]);
    let wall = started.elapsed().as_secs_f64();
    let run = std::fs::read_dir(suite.path().join(".assize/runs"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let rows = std::fs::read_to_string(run.join("rows.jsonl")).unwrap();
    let mut lateness: Vec<f64> = rows
        .lines()
        .map(|row| {
            serde_json::from_str::<serde_json::Value>(row).unwrap()["timing"]["wallMs"]
                .as_f64()
                .unwrap()
                - 100.0
        })
        .collect();
    lateness.sort_by(f64::total_cmp);
    line(
        "5,000 sessions of 100 ms at once, wall",
        &format!("{wall:.2} s"),
        "1 s",
    );
    line(
        "  median lateness",
        &format!("{:.1} ms", lateness[lateness.len() / 2]),
        "5 ms",
    );
}

fn version() {
    let here = Path::new(".");
    let started = Instant::now();
    for _ in 0..100 {
        assize(here, &["--version"]);
    }
    line(
        "assize --version",
        &format!("{:.1} ms", started.elapsed().as_secs_f64() * 10.0),
        "3 ms",
    );
}

fn assize(directory: &Path, arguments: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_assize"))
        .args(arguments)
        .current_dir(directory)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

fn cpu(work: impl FnOnce()) -> Duration {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        let time = usage.user_time() + usage.system_time();
        Duration::new(
            time.tv_sec().unsigned_abs(),
            time.tv_usec().unsigned_abs() as u32 * 1000,
        )
    };
    let before = used();
    work();
    used() - before
}

fn line(name: &str, measured: &str, budget: &str) {
    println!("{name:<46} {measured:>12} {budget:>12}");
}

/// Atomic tasks through an instant runner with three evaluators, streamed from a file of lines.
fn tasks(count: u32) {
    use std::fmt::Write as _;
    let directory = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for number in 0..count {
        let _ = writeln!(
            lines,
            "{{\"id\":\"task-{number}\",\"input\":\"book a flight to city {number}\",\"expected\":{{\"intent\":\"book_flight\",\"confidence\":0.9}}}}"
        );
    }
    std::fs::write(directory.path().join("tasks.jsonl"), lines).unwrap();
    std::fs::write(
        directory.path().join("assize.yaml"),
        "modes: { table: {} }\ntasks: { paths: [tasks.jsonl] }\n\
         runners: [ { id: table, uses: rules, type: intent, config: { rules: [ { when: { contains: flight }, output: { intent: book_flight, confidence: 0.95 } } ] } } ]\n\
         evaluators: [ { id: exact, uses: exact, config: { path: intent } }, { id: sure, uses: threshold, config: { path: confidence, at_least: 0.9 } }, { id: speed, uses: latency } ]\n\
         execution: { warmup: false }\n",
    )
    .unwrap();
    let used = cpu(|| run(directory.path(), 1));
    let each = used.as_secs_f64() * 1e6 / f64::from(count);
    line(
        &format!("task with three evaluators, {count} tasks"),
        &format!("{each:.1} µs"),
        "25 µs",
    );
    line(
        "  peak memory",
        &format!("{} MB", peak_memory_mb()),
        "60 MB",
    );
}
