//! Measures the operations that people wait for, in processor time, memory and bytes, against the budgets; where a plain
//! way exists, also as a ratio to it.
//!
//! `make bench` measures every line with a release build and keeps the table in docs/performance.md. `--check` is for tests: only
//! the cheap lines, with small fixtures, and only what does not depend on how the program was built or on who else uses the
//! machine (ratios of processor time, bytes); it fails at twice a budget. A word as argument picks the lines that hold it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark may panic and prints its table"
)]

#[path = "performance/fixtures.rs"]
mod fixtures;
#[path = "performance/measure.rs"]
mod measure;
#[path = "performance/proxy.rs"]
mod proxy;
#[path = "performance/table.rs"]
mod table;

use fixtures::Suite;
use measure::{Usage, best_of, plain};
use std::path::Path;
use table::{Line, Table};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--measure") {
        return measure::measure_and_print(&arguments[1..]);
    }
    let is_check = arguments.iter().any(|argument| argument == "--check");
    let words = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'));
    let mut table = Table::new(is_check, words.cloned().collect());
    starts(&mut table);
    workspaces(&mut table);
    redaction(&mut table);
    trials(&mut table);
    reports(&mut table);
    lookups(&mut table);
    tasks(&mut table);
    proxied(&mut table);
    table.finish(arguments.iter().any(|argument| argument == "--write"));
}

/// Programs that do nothing, under a keeper.
fn starts(table: &mut Table) {
    let (name, guarding) = ("start of a program", "guard, per start");
    if !table.wants(name) && !table.wants(guarding) {
        return;
    }
    let count = if table.is_check { 40 } else { 200 };
    let reference = best_of(3, || {
        plain(
            "sh",
            &[
                "-c",
                &format!("for i in $(seq {count}); do /bin/true; done"),
            ],
        )
    });
    let [each, unguarded] =
        [Suite::of_programs(None), Suite::of_unguarded_programs()].map(|suite| {
            let [one, all] = [1, count].map(|count| best_of(3, || suite.run(count)).cpu);
            (all - one) / f64::from(count - 1)
        });
    let plainly = reference.cpu / f64::from(count);
    // Of a debug build most is the trial around the program.
    let ratio = if cfg!(debug_assertions) {
        6.0
    } else {
        0.0018 / 0.0007
    };
    table.add(
        Line::new(name, &format!("`command: [true]`, {count} trials"))
            .cpu(each, 0.0018)
            .beside("plain spawn", each / plainly, ratio),
    );
    let guard = (each - unguarded).max(0.0);
    table.add(Line::new(guarding, "the same, beyond `sandbox: none`").cpu(guard, 0.001));
}

/// Attempts that change nothing in a workspace, beside `cp -a` and `rm -r`.
fn workspaces(table: &mut Table) {
    let name = "workspace `from:` 1,000 files, 10 MB";
    if table.wants(name) {
        let suite = Suite::of_programs(Some(&|at: &Path| fixtures::files(at, 1_000, 10_000)));
        workspace(table, name, &suite, 0.010, 0.010 / 0.29);
    }
    let name = "workspace `from:` 50,000 files, 317 MB";
    if !table.is_check && table.wants(name) {
        let suite = Suite::of_programs(Some(&|at: &Path| fixtures::files(at, 50_000, 6_340)));
        workspace(table, name, &suite, 0.060, 0.060 / 18.5);
    }
    let name = "workspace `git:` of 500 MB";
    if !table.is_check && table.wants(name) {
        let suite = Suite::of_repository(500);
        workspace(table, name, &suite, 0.060, 0.060 / 0.56);
    }
}

fn workspace(table: &mut Table, name: &str, suite: &Suite, budget: f64, ratio: f64) {
    let source = suite.source();
    let copy = suite.path().join("copied");
    let reference = best_of(2, || {
        let (from, to) = (source.to_str().unwrap(), copy.to_str().unwrap());
        plain("cp", &["-a", from, to]) + plain("rm", &["-r", to])
    });
    let bare = Suite::of_programs(None);
    let rounds = 40;
    let [bare, attempt] = [&bare, suite].map(|suite| {
        let cpu = best_of(2, || Usage {
            cpu: suite.cpu_of_attempt(rounds),
            ..Usage::default()
        });
        cpu.cpu
    });
    let each = (attempt - bare).max(0.0);
    let ratio = if cfg!(debug_assertions) {
        0.25
    } else {
        ratio.max(0.05)
    };
    table.add(
        Line::new(name, "every attempt, without its program")
            .cpu(each, budget)
            .beside("`cp -a` and `rm -r`", each / reference.cpu, ratio),
    );
}

/// Trials whose agent prints much, with secrets that are looked for in it and without.
fn redaction(table: &mut Table) {
    let name = "redaction";
    if table.is_check || !table.wants(name) {
        return;
    }
    let count = 60;
    let suites = [0, 20].map(|secrets| Suite::of_output(200_000, secrets));
    let [start_without, start_with] = best_in_turns(&suites, |suite| suite.run(1));
    let [all_without, all_with] = best_in_turns(&suites, |suite| suite.run(count));
    let per_trial = |all: f64, start: f64| (all - start) / f64::from(count - 1);
    let without = per_trial(all_without, start_without);
    let with = per_trial(all_with, start_with);
    table.add(
        Line::new(name, "200 KB of output, 20 secrets")
            .cpu((with - without).max(0.0), 0.03 * without)
            .shown_beside("without secrets", with / without),
    );
}

/// The least processor time of each of two. They take turns, because their difference is smaller than what the machine's speed drifts.
fn best_in_turns<T>(both: &[T; 2], run: impl Fn(&T) -> Usage) -> [f64; 2] {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..20 {
        for (one, best) in both.iter().zip(&mut best) {
            *best = best.min(run(one).cpu);
        }
    }
    best
}

/// Instant trials with their closing pages, and what they leave on disk.
fn trials(table: &mut Table) {
    let name = "`run` with closing pages";
    if !table.wants(name) && !table.wants("disk per trial") {
        return;
    }
    let count: u32 = if table.is_check { 500 } else { 10_000 };
    let suite = Suite::of_trials();
    let used = suite.assize(&["run", "-q", "-n", &(count / 20).to_string()]);
    table.add(
        Line::new(name, &format!("{count} instant trials")).cpu(used.cpu / f64::from(count), 45e-6),
    );
    let bytes = fixtures::bytes_of_rows_and_tables(&suite.last_run()) as f64 / f64::from(count);
    if !table.is_check {
        table.add(Line::new("disk per trial", "rows, index and pages").bytes(bytes, 2_300.0));
    }
}

/// Pages of stored runs.
fn reports(table: &mut Table) {
    let name = "`report`, all formats";
    if table.is_check || !table.wants(name) {
        return;
    }
    for (traces, what, budget) in [
        (false, "50,000 rows", 2.0),
        (true, "50,000 rows with traces", 3.0),
    ] {
        let suite = Suite::of_traced_trials(traces);
        suite.assize(&["run", "-q", "-n", "2500"]);
        let used = best_of(2, || suite.assize(&["report", "last"]));
        table.add(Line::new(name, what).cpu(used.cpu, budget));
    }
}

/// Commands that look at little of much.
fn lookups(table: &mut Table) {
    if table.wants("`show` of one trial") {
        let (few, many) = if table.is_check {
            (20, 6_000)
        } else {
            (20, 50_000)
        };
        let [small, large] = [few, many].map(|trials: u32| {
            let suite = Suite::of_trials();
            suite.assize(&["run", "-q", "-n", &(trials / 20).to_string()]);
            let last = format!("last/{}", trials - 1);
            best_of(3, || suite.assize(&["show", &last]))
        });
        table.add(
            Line::new("`show` of one trial", &format!("the last of {many}"))
                .cpu(large.cpu, 0.010)
                .beside(&format!("in a run of {few}"), large.cpu / small.cpu, 1.5),
        );
    }
    if table.wants("`runs`") {
        let (rows, runs) = if table.is_check {
            (3_000, 5)
        } else {
            (20, 1_000)
        };
        let many = Suite::of_trials();
        many.assize(&["run", "-q", "-n", &(rows / 20).to_string()]);
        let few = Suite::of_trials();
        few.assize(&["run", "-q", "-n", "1"]);
        for suite in [&many, &few] {
            suite.copy_last_run(runs);
            suite.assize(&["runs"]);
        }
        let [many, few] = [&many, &few].map(|suite| best_of(3, || suite.assize(&["runs"])));
        table.add(
            Line::new("`runs`", &format!("{runs} runs of {rows} trials"))
                .cpu(many.cpu, 0.050)
                .beside("runs of 20 trials", many.cpu / few.cpu, 1.5),
        );
    }
}

/// A million tasks of one trial each.
fn tasks(table: &mut Table) {
    let name = "`compare`";
    if !table.wants(name) && !table.wants("`run` of tasks") && !table.wants("`show` of one task") {
        return;
    }
    let count = if table.is_check { 6_000 } else { 1_000_000 };
    let suite = Suite::of_tasks(count);
    let ran = suite.assize(&["run", "-q", "-n", "1"]);
    let compared = best_of(2, || suite.assize(&["compare", "last"]));
    let what = format!("{count} tasks in one mode");
    if table.is_check {
        // The cost of a few tasks is the program's own, and that of the thousand that are listed one by one.
        let few = Suite::of_tasks(2_000);
        few.assize(&["run", "-q", "-n", "1"]);
        let few = few.assize(&["compare", "last"]);
        let each = (compared.peak_mb - few.peak_mb).max(0.0) * 1e6 / f64::from(count - 2_000);
        table.add(Line::new(name, &format!("{what}, each")).bytes(each, 1_000.0));
        return;
    }
    table.add(
        Line::new(name, &what)
            .cpu(compared.cpu, 4.0)
            .memory(compared.peak_mb, 200.0),
    );
    table.add(Line::new("`run` of tasks", &what).memory(ran.peak_mb, 300.0));
    let last = format!("last/{}", count - 1);
    let shown = best_of(3, || suite.assize(&["show", &last]));
    table.add(
        Line::new("`show` of one task", &format!("the last of {count}")).cpu(shown.cpu, 0.020),
    );
}

/// A long conversation through the proxy.
fn proxied(table: &mut Table) {
    let name = "proxy, request of 2 MB";
    if !table.wants(name) {
        return;
    }
    let rounds = if table.is_check { 5 } else { 50 };
    let [direct, through] = proxy::requests(rounds);
    table.add(
        Line::new(name, &format!("{rounds} requests, beyond the direct one"))
            .cpu((through - direct).max(0.0), 0.003)
            .shown_beside("direct request", through / direct),
    );
}
