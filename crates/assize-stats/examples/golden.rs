//! Evaluates every case of a golden file: `cargo run --release -p assize-stats --example golden -- FILE`.
//! One line per case, a last line with the counts, exit code 1 if any failed. Cases of functions that were replaced are left out.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its result"
)]

#[path = "../tests/golden/cases.rs"]
mod cases;

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args()
        .nth(1)
        .ok_or_else(|| "usage: golden FILE".to_owned())
        .and_then(|file| run(&file))
    {
        Ok(failed) => ExitCode::from(u8::from(failed > 0)),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str) -> Result<usize, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read `{file}`: {error}"))?;
    let outcomes = cases::run(&text)?;
    let (mut failed, mut left_out) = (0, 0);
    for outcome in &outcomes {
        match (&outcome.failure, outcome.replaced_by) {
            (Some(failure), _) => {
                failed += 1;
                println!("FAIL {} {failure}", outcome.id);
            }
            (None, Some(successor)) => {
                left_out += 1;
                println!("left out {} (replaced by `{successor}`)", outcome.id);
            }
            (None, None) => println!("ok {}", outcome.id),
        }
    }
    let passed = outcomes.len() - failed - left_out;
    println!("{passed} passed, {failed} failed, {left_out} left out");
    Ok(failed)
}
