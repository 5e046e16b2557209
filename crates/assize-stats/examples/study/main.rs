//! Measures how often success intervals hold the truth, how often verdicts are false, and how often they are found, over a grid of
//! sizes and truths; the same for voids, limits, margins and rare counts:
//! `cargo run --release -p assize-stats --example study -- --simulations 3000 --seed 1`.
//! Prints Markdown tables; `docs/statistics.md` carries them. Cells near a limit are simulated again with fresh seeds.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its result"
)]

mod bounds;
mod chance;
mod counts;
mod grid;
mod limits;
mod truth;

use std::process::ExitCode;

/// The simulations to run.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    /// Data sets per cell.
    pub(crate) simulations: u64,
    pub(crate) seed: u64,
}

fn main() -> ExitCode {
    match arguments(std::env::args().skip(1)) {
        Ok(arguments) => {
            print(&arguments);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}\nhint: study [--simulations N] [--seed S]");
            ExitCode::FAILURE
        }
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        simulations: 3_000,
        seed: 1,
    };
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse().ok());
        let value = value.ok_or_else(|| format!("`{word}` needs a whole number"))?;
        match word.as_str() {
            "--simulations" => arguments.simulations = value,
            "--seed" => arguments.seed = value,
            _ => return Err(format!("unknown option `{word}`")),
        }
    }
    match arguments.simulations {
        0 => Err("no simulations".to_owned()),
        _ => Ok(arguments),
    }
}

fn print(arguments: &Arguments) {
    let error = 100.0 * libm::sqrt(0.05 * 0.95 / arguments.simulations as f64);
    println!(
        "{} data sets per cell, seed {}; standard error near 5 % or 95 %: {error:.1} points.\n",
        arguments.simulations, arguments.seed
    );
    grid::print_differences(arguments);
    grid::print_rates(arguments);
    bounds::print_suite(arguments);
    bounds::print_margins(arguments);
    bounds::print_voids(arguments);
    limits::print_times(arguments);
    limits::print_tokens(arguments);
    counts::print_counts(arguments);
}
