//! Measures the speed of reading rows and of summarizing many: CPU time against the budgets.
//!
//! `cargo bench -p assize-report`, on a quiet machine.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark may panic and prints its table"
)]

use assize_report::{Analysis, SummaryBuilder};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::fmt::Write;

fn main() {
    println!("{:<46} {:>14} {:>14}", "", "measured", "budget");
    let text = rows(50_000);
    let megabytes = text.len() as f64 / 1e6;
    let mut best = f64::MAX;
    let mut builder = SummaryBuilder::default();
    for _ in 0..3 {
        builder = SummaryBuilder::default();
        best = best.min(cpu(|| builder.read(text.as_bytes(), None).unwrap()));
    }
    line(
        &format!("reading {megabytes:.0} MB of rows"),
        &format!("{:.0} MB/s", megabytes / best),
        "400 MB/s",
    );
    let analysis = Analysis::default();
    let used = cpu(|| drop(builder.finish(&analysis).unwrap()));
    line(
        "summary of 50,000 rows, 10,000 resamples",
        &format!("{used:.1} s"),
        "15 s",
    );
}

/// Three modes, ten scenarios, twelve metrics and a tool record now and then, as agents leave them.
fn rows(count: u64) -> String {
    let mut text = String::new();
    for number in 0..count {
        let size = 1_000 + number * 7_919 % 997;
        let record = |call: u64| {
            json!({
                "name": "bash", "category": "shell", "durationMs": call * 13, "success": true,
                "input": {"command": "cargo test --workspace -- --nocapture"},
                "output": "test result: ok. 41 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n".repeat(2),
            })
        };
        let mode = ["plain", "docs", "memory"][(number % 3) as usize];
        let row = json!({
            "schemaVersion": 1, "runId": "20261116-000000-abcd", "scenarioId": format!("scenario-{}", number / 3 % 10),
            "mode": mode, "model": "m", "iteration": number / 30,
            "startedAt": "2026-11-16T00:00:00.000Z", "completedAt": "2026-11-16T00:00:01.000Z",
            "success": number % 5 > 0, "outcome": if number % 5 > 0 { "pass" } else { "fail" },
            "tokens": {"input": size, "output": size / 9, "total": size + size / 9, "active": size},
            "timing": {"wallMs": size * 3, "segments": []}, "cost": {"totalUsd": size as f64 / 1e5}, "costSource": "reported",
            "toolCalls": {"total": 6, "byCategory": {"shell": 6}, "failed": 0, "retried": 0, "errorRate": 0.0,
                "records": (0..6).map(record).collect::<Vec<_>>()},
            "checkpointDetails": [{"id": "tests", "description": "the tests pass", "passed": true}],
            "completionReason": "stop", "agentTurns": 4, "sessionId": format!("s-{number}"), "extensions": {"mine": size % 17},
        });
        writeln!(text, "{row}").unwrap();
    }
    text
}

/// CPU seconds of this process, all threads.
fn cpu(work: impl FnOnce()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let start = now();
    work();
    now() - start
}

fn line(what: &str, measured: &str, budget: &str) {
    println!("{what:<46} {measured:>14} {budget:>14}");
}
