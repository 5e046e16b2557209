//! How often whole reports claim a difference that does not exist, over simulated trials:
//! `cargo run --release -p assize-report --example study -- --reports 400 --seed 1 [--binary target/release/assize --through 20]`.
//! Verdicts are read from summaries made as `assize compare` makes them; with `--binary`, some reports of each kind also go
//! through the command, and its verdicts must be the same. Prints a Markdown table; docs/statistics.md carries one.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its result"
)]

#[path = "../tests/study/experiment.rs"]
mod experiment;

use assize_report::{Analysis, SummaryBuilder};
use experiment::{Chance, KINDS, Kind, rows};
use std::process::{Command, ExitCode};

struct Arguments {
    reports: u64,
    seed: u64,
    /// The program that some reports go through.
    binary: Option<String>,
    through: u64,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments = arguments(std::env::args().skip(1))?;
    println!(
        "{} reports of each kind, seed {}.\n",
        arguments.reports, arguments.seed
    );
    println!("| report | modes | models | tasks x runs | reports that claim better or worse % |");
    println!("| --- | --- | --- | --- | --- |");
    for kind in &KINDS {
        let mut claims = 0;
        for report in 0..arguments.reports {
            let seed = arguments.seed.wrapping_mul(1_000_003).wrapping_add(report);
            let text = rows(kind, &mut Chance(seed));
            let verdicts = verdicts(&text)?;
            if report < arguments.through
                && let Some(binary) = &arguments.binary
            {
                check_command(binary, &text, &verdicts)?;
            }
            claims += u64::from(
                verdicts
                    .iter()
                    .any(|word| word == "better" || word == "worse"),
            );
        }
        print_line(kind, claims, arguments.reports);
    }
    Ok(())
}

fn print_line(kind: &Kind, claims: u64, reports: u64) {
    println!(
        "| {} | {} | {} | {} x {} | {:.1} |",
        kind.name,
        kind.modes,
        kind.models,
        kind.tasks,
        kind.runs,
        100.0 * claims as f64 / reports as f64
    );
}

/// The verdicts outside the exploratory heading, in the order of the report.
fn verdicts(rows: &str) -> Result<Vec<String>, String> {
    let mut builder = SummaryBuilder::default();
    let read = builder.read(rows.as_bytes(), None);
    read.map_err(|error| error.to_string())?;
    // Verdicts rest on closed forms: resampling only makes the intervals of pooled numbers.
    let analysis = Analysis {
        resamples: 1,
        ..Analysis::default()
    };
    let summary = builder
        .finish(&analysis)
        .map_err(|error| error.to_string())?;
    let words = summary.decisive().map(|found| {
        let word = serde_json::to_value(found.verdict()).ok();
        let word = word.and_then(|word| word.as_str().map(str::to_owned));
        word.ok_or_else(|| "a verdict is no word".to_owned())
    });
    words.collect()
}

/// The command must come to the same verdicts.
fn check_command(binary: &str, rows: &str, expected: &[String]) -> Result<(), String> {
    let file = std::env::temp_dir().join(format!("assize-study-{}.jsonl", std::process::id()));
    std::fs::write(&file, rows).map_err(|error| error.to_string())?;
    let output = Command::new(binary)
        .arg("compare")
        .arg(&file)
        .arg("--json")
        .output()
        .map_err(|error| format!("cannot start `{binary}`: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found = Vec::new();
    for line in text.lines() {
        let comparison: serde_json::Value =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        if comparison["exploratory"] == false {
            found.push(comparison["verdict"].as_str().unwrap_or("").to_owned());
        }
    }
    match found == expected {
        true => Ok(()),
        false => Err(format!(
            "`{binary} compare` says {found:?}, expected {expected:?}"
        )),
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        reports: 400,
        seed: 1,
        binary: None,
        through: 20,
    };
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("`{word}` needs a value"))?;
        let number = || {
            value
                .parse()
                .map_err(|_| format!("`{word}` needs a whole number"))
        };
        match word.as_str() {
            "--reports" => arguments.reports = number()?,
            "--seed" => arguments.seed = number()?,
            "--through" => arguments.through = number()?,
            "--binary" => arguments.binary = Some(value),
            _ => return Err(format!("unknown option `{word}`")),
        }
    }
    match arguments.reports {
        0 => Err("no reports".to_owned()),
        _ => Ok(arguments),
    }
}
