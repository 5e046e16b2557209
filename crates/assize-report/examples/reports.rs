//! Counts how often whole reports claim a difference that does not exist, over simulated trials:
//! `cargo run --release -p assize-report --example reports -- --reports 1000 --seed 1 --binary target/release/assize`.
//! Every report is a file of rows that goes through `assize compare --json`; without `--binary` summaries are made as the
//! command makes them. Kinds near the limit are simulated again with fresh seeds. Prints a Markdown table;
//! docs/statistics.md carries one.
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

/// Above this share of false verdicts a kind is simulated again, with so many times as many reports.
const NEAR: f64 = 0.05;
const AGAIN: u64 = 4;

#[derive(Clone)]
struct Arguments {
    reports: u64,
    seed: u64,
    /// The program that the reports go through.
    binary: Option<String>,
    /// The commit the figures come from.
    commit: String,
    /// Kinds that are left out at the beginning, to go on with a study that was stopped.
    skip: usize,
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
    let through = match &arguments.binary {
        Some(_) => "through `assize compare --json`",
        None => "by the library alone",
    };
    println!(
        "{} reports of each kind, seed {}, {through}, at commit {}. Kinds above {:.0} % again with {} fresh reports.\n",
        arguments.reports,
        arguments.seed,
        arguments.commit,
        100.0 * NEAR,
        AGAIN * arguments.reports
    );
    println!("| report | modes | models | tasks x runs | reports that claim better or worse % |");
    println!("| --- | --- | --- | --- | --- |");
    for kind in KINDS.iter().skip(arguments.skip) {
        let mut share = claiming(kind, &arguments)?;
        let mut again = String::new();
        if share > NEAR && kind.effect == 0.0 {
            let fresh = Arguments {
                reports: AGAIN * arguments.reports,
                seed: arguments.seed + 1000,
                ..arguments.clone()
            };
            again = format!(" (first {:.1})", 100.0 * share);
            share = claiming(kind, &fresh)?;
        }
        println!(
            "| {} | {} | {} | {} x {} | {:.1}{again} |",
            kind.name,
            kind.modes,
            kind.models,
            kind.tasks,
            kind.runs,
            100.0 * share
        );
    }
    Ok(())
}

/// The share of reports with any better or worse outside the exploratory heading.
fn claiming(kind: &Kind, arguments: &Arguments) -> Result<f64, String> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let of_thread = |thread: u64| -> Result<u64, String> {
        let mut claims = 0;
        for report in (thread..arguments.reports).step_by(threads as usize) {
            let seed = arguments.seed.wrapping_mul(1_000_003).wrapping_add(report);
            let text = rows(kind, &mut Chance(seed));
            let verdicts = match &arguments.binary {
                Some(binary) => verdicts_of_command(binary, &text, thread)?,
                None => verdicts(&text)?,
            };
            let is_claim = |word: &String| word == "better" || word == "worse";
            claims += u64::from(verdicts.iter().any(is_claim));
        }
        Ok(claims)
    };
    let claims = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || of_thread(thread)))
            .collect();
        let joined = handles.into_iter().map(|handle| {
            let ended = handle.join();
            ended.unwrap_or_else(|_| Err("a thread panicked".to_owned()))
        });
        joined.sum::<Result<u64, String>>()
    })?;
    Ok(claims as f64 / arguments.reports as f64)
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

/// The same verdicts, as the command prints them.
fn verdicts_of_command(binary: &str, rows: &str, thread: u64) -> Result<Vec<String>, String> {
    let name = format!("assize-study-{}-{thread}.jsonl", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, rows).map_err(|error| error.to_string())?;
    let output = Command::new(binary)
        .arg("compare")
        .arg(&file)
        .arg("--json")
        .output();
    let removed = std::fs::remove_file(&file);
    let output = output.map_err(|error| format!("cannot start `{binary}`: {error}"))?;
    removed.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    experiment::declared_verdicts(&String::from_utf8_lossy(&output.stdout))
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        reports: 1000,
        seed: 1,
        binary: None,
        commit: "unknown".to_owned(),
        skip: 0,
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
            "--skip" => arguments.skip = number()? as usize,
            "--binary" => arguments.binary = Some(value),
            "--commit" => arguments.commit = value,
            _ => return Err(format!("unknown option `{word}`")),
        }
    }
    match arguments.reports {
        0 => Err("no reports".to_owned()),
        _ => Ok(arguments),
    }
}
