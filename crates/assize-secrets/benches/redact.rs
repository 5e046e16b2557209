//! Measures the cost of redaction: text without secrets, and with twenty of them.
#![expect(clippy::print_stdout, reason = "a benchmark tells its result")]

use assize_secrets::{Redactor, Secrets};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let line = "running 3 tests ... ok; see src/lib.rs:42 for the rest of what happened here\\n";
    let large = line.repeat(200 * 1024 / line.len());
    let row = line.repeat(2048 / line.len());
    for secrets in [0, 20] {
        let known = Secrets::default();
        for number in 0..secrets {
            let hash = number.to_string().repeat(9);
            known.add(
                format!("KEY_{number}"),
                format!("k{number}x{hash}Zk9x2LmQ8vTr4WpY"),
            );
        }
        let redactor = Redactor::new(&known);
        for (name, text) in [("2 KB", &row), ("200 KB", &large)] {
            let round = || {
                let started = Instant::now();
                for _ in 0..20 {
                    black_box(redactor.concerns(black_box(text.as_bytes())));
                }
                started.elapsed() / 20
            };
            // The fastest round is the one that was not disturbed.
            let each = (0..200).map(|_| round()).min().unwrap_or_default();
            println!("{secrets} secrets, {name}: {each:?}");
        }
    }
}
