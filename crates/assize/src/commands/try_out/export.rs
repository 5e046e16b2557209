//! Results in the forms that people know from hyperfine.

use super::measured::{CommandRuns, Measured};
use serde_json::{Value, json};

/// Times in seconds; a missing measurement is null.
pub(super) fn json(measured: &Measured) -> Value {
    json!({"results": measured.commands.iter().map(result).collect::<Vec<_>>()})
}

fn result(command: &CommandRuns) -> Value {
    let time = command.time();
    let seconds = |value: Option<f64>| value.map(|milliseconds| milliseconds / 1e3);
    let of_time = |part: fn(&assize_stats::Description) -> f64| seconds(time.as_ref().map(part));
    let times: Vec<f64> = command
        .wall_ms
        .iter()
        .map(|milliseconds| milliseconds / 1e3)
        .collect();
    json!({
        "command": command.name,
        "mean": of_time(|time| time.mean),
        "stddev": of_time(|time| time.stddev).filter(|_| times.len() > 1),
        "median": of_time(|time| time.median),
        "min": of_time(|time| time.min),
        "max": of_time(|time| time.max),
        "times": times,
        "parameters": {},
        "passed": command.passed,
        "failed": command.failed,
        "void": command.void,
        "tokens": command.tokens,
        "cost_usd": command.cost_usd,
    })
}

/// A table with times in milliseconds, relative to the fastest mean.
pub(super) fn markdown(measured: &Measured) -> String {
    let means = measured
        .commands
        .iter()
        .filter_map(|command| Some(command.time()?.mean));
    let fastest = means.fold(f64::INFINITY, f64::min);
    let mut table = "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative | Success |\n|:---|---:|---:|---:|---:|---:|\n".to_owned();
    for command in &measured.commands {
        let name = command.name.replace('|', "\\|").replace('`', "'");
        let success = format!("{}/{}", command.passed, command.passed + command.failed);
        let numbers = match command.time() {
            Some(time) => format!(
                "{:.1} ± {:.1} | {:.1} | {:.1} | {:.2}",
                time.mean,
                time.stddev,
                time.min,
                time.max,
                time.mean / fastest
            ),
            None => "unknown | unknown | unknown | unknown".to_owned(),
        };
        table.push_str(&format!("| `{name}` | {numbers} | {success} |\n"));
    }
    table
}
