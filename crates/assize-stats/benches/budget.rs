//! CPU seconds of the heavy functions against their budgets: `cargo bench -p assize-stats`. Exit code 1 over budget.
//! User and system time of all threads is counted, so more threads do not make anything look faster.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::hint::black_box;
use std::process::ExitCode;

use assize_stats::{
    BootstrapOptions, CompareOptions, Direction, Group, Metric, MetricKind, PermutationOptions,
    Statistic, bootstrap_ci, compare_groups, permutation_test,
};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::time::{ClockId, clock_gettime};

const METRICS: usize = 12;
const MODES: [&str; 3] = ["plain", "fast", "careful"];
const ROWS: usize = 50_000;

fn main() -> ExitCode {
    let mut report = Report { is_within: true };
    println!(
        "{:<44} {:>10} {:>10}",
        "10,000 resamples", "CPU s", "budget"
    );
    for (count, budget) in [(1_000, 0.025), (100_000, 2.5)] {
        let values = latencies(count, 1);
        report.line(&format!("bootstrap median, n = {count}"), budget, || {
            bootstrap_ci(&values, &BootstrapOptions::default())
        });
    }
    for (count, budget) in [(1_000, 0.02), (100_000, 3.5)] {
        let (a, b) = (latencies(count, 2), latencies(count, 3));
        report.line(
            &format!("permutation, n = {count} in each group"),
            budget,
            || permutation_test(&a, &b, &PermutationOptions::default()),
        );
    }
    for scenarios in [20, 500] {
        report.full_comparison(scenarios);
    }
    ExitCode::from(u8::from(!report.is_within))
}

struct Report {
    is_within: bool,
}

impl Report {
    fn line<T>(&mut self, name: &str, budget: f64, work: impl FnOnce() -> T) {
        let start = cpu_seconds();
        black_box(work());
        self.compare(name, cpu_seconds() - start, budget);
    }

    fn compare(&mut self, name: &str, measured: f64, budget: f64) {
        self.is_within &= measured <= budget;
        let mark = if measured <= budget { "" } else { "  OVER" };
        println!("{name:<44} {measured:>10.4} {budget:>10.3}{mark}");
    }

    /// 3 modes, 12 metrics, 50,000 rows, all three pairs of modes.
    fn full_comparison(&mut self, scenarios: usize) {
        let repetitions = ROWS / MODES.len() / scenarios;
        let names: Vec<String> = (0..scenarios)
            .map(|scenario| format!("scenario-{scenario}"))
            .collect();
        let columns: Vec<Vec<f64>> = (0..METRICS)
            .map(|metric| latencies(ROWS, 10 + metric as u64))
            .collect();
        let metric_names: Vec<String> = (0..METRICS)
            .map(|metric| format!("metric-{metric}"))
            .collect();
        let metrics: Vec<Metric<'_>> = metric_names
            .iter()
            .zip(&columns)
            .enumerate()
            .map(|(place, (name, column))| Metric {
                name,
                direction: Some(Direction::Lower),
                statistic: if place % 4 == 3 {
                    Statistic::Mean
                } else {
                    Statistic::Median
                },
                kind: MetricKind::Amount,
                is_primary: place < 2,
                groups: groups(column, &names, repetitions),
            })
            .collect();
        let options = CompareOptions {
            equivalence_margin: Some(0.05),
            ..CompareOptions::default()
        };
        let raw = (ROWS * METRICS * size_of::<f64>()) as f64 / 1e6;
        reset_peak_memory();
        let before = peak_megabytes();
        self.line(
            &format!("comparison, {scenarios} scenarios x {repetitions}"),
            12.0,
            || compare_groups(&metrics, &[], &options),
        );
        if let (Some(before), Some(after)) = (before, peak_megabytes()) {
            self.compare(
                &format!("  MB with raw values ({raw:.1})"),
                raw + after - before,
                2.0 * raw,
            );
        }
    }
}

fn groups<'a>(column: &'a [f64], names: &'a [String], repetitions: usize) -> Vec<Group<'a>> {
    let cells = MODES
        .iter()
        .flat_map(|mode| names.iter().map(move |name| (*mode, name.as_str())));
    cells
        .zip(column.chunks_exact(repetitions))
        .map(|((mode, scenario), values)| Group {
            mode,
            scenario: Some(scenario),
            values,
            cut: &[],
        })
        .collect()
}

/// Skewed values of about 100 to 1,000, like latencies.
fn latencies(count: usize, seed: u64) -> Vec<f64> {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let unit = |generator: &mut Xoshiro256PlusPlus| {
        (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count)
        .map(|_| 100.0 * libm::exp(unit(&mut generator) + unit(&mut generator)))
        .collect()
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Starts the peak anew where the system allows it.
fn reset_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak of the resident memory; absent where the system does not say.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<f64>()
        .ok()
        .map(|kilobytes| kilobytes / 1e3)
}
