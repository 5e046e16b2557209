//! Measures by simulation how often intervals hold the truth and how often tests raise false alarms:
//! `cargo run --release -p assize-stats --example coverage -- --simulations 4000 --seed 1`.
//! Prints a Markdown table; `docs/statistics.md` carries one.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its result"
)]

mod latency;
mod outcomes;
mod studies;
mod world;

use std::process::ExitCode;

use rayon::prelude::*;
use studies::{Claim, STUDIES, Study};
use world::{DESIGNS, Design, World};

struct Arguments {
    simulations: u64,
    seed: u64,
}

fn main() -> ExitCode {
    match arguments(std::env::args().skip(1)) {
        Ok(arguments) => {
            print_table(&arguments);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}\nhint: coverage [--simulations N] [--seed S]");
            ExitCode::FAILURE
        }
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        simulations: 2_000,
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
    if arguments.simulations == 0 {
        Err("no simulations".to_owned())
    } else {
        Ok(arguments)
    }
}

fn print_table(arguments: &Arguments) {
    let error = 100.0 * libm::sqrt(0.05 * 0.95 / arguments.simulations as f64);
    println!(
        "{} simulations per cell, seed {}; Monte-Carlo standard error near 5 % or 95 %: {error:.1} points.\n",
        arguments.simulations, arguments.seed
    );
    let heads: Vec<String> = DESIGNS
        .iter()
        .map(|design| format!("{} x {}", design.scenarios, design.repetitions))
        .collect();
    println!(
        "| data | method | measured | ideal | {} |",
        heads.join(" | ")
    );
    println!("| --- | --- | --- | --- |{}", " --- |".repeat(heads.len()));
    for study in STUDIES {
        let cells: Vec<Vec<f64>> = DESIGNS
            .iter()
            .map(|&design| shares(study, design, arguments))
            .collect();
        for (place, method) in study.methods.iter().enumerate() {
            let numbers: Vec<String> = cells
                .iter()
                .map(|cell| format!("{:.1}", 100.0 * cell[place]))
                .collect();
            let (measured, ideal) = match method.claim {
                Claim::Coverage => ("coverage %", "95"),
                Claim::FalseAlarm => ("false alarm %", "at most 5"),
            };
            println!(
                "| {} | {} | {measured} | {ideal} | {} |",
                study.data,
                method.name,
                numbers.join(" | ")
            );
        }
    }
}

/// For each method of a study, in what share of the simulations its claim came out.
fn shares(study: &Study, design: Design, arguments: &Arguments) -> Vec<f64> {
    let count = |simulation: u64| -> Vec<u64> {
        let mut world = World::new(arguments.seed, study.data, simulation);
        (study.simulate)(&mut world, design)
            .into_iter()
            .map(u64::from)
            .collect()
    };
    let add = |left: Vec<u64>, right: Vec<u64>| {
        left.iter()
            .zip(&right)
            .map(|(left, right)| left + right)
            .collect()
    };
    let totals = (0..arguments.simulations)
        .into_par_iter()
        .map(count)
        .reduce(|| vec![0; study.methods.len()], add);
    totals
        .into_iter()
        .map(|total| total as f64 / arguments.simulations as f64)
        .collect()
}
