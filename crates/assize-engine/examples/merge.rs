//! Merges the runs below directories, for measuring it alone: `cargo run --release -p assize-engine --example merge -- OUT DIR…`

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example shows what it got"
)]

use assize_engine::store::{merge, runs_below};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let Some(out) = arguments.next() else {
        return ExitCode::from(2);
    };
    match merge_all(&out, arguments) {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn merge_all(
    out: &Path,
    directories: impl Iterator<Item = PathBuf>,
) -> Result<String, assize_engine::store::StoreError> {
    let mut runs = Vec::new();
    for directory in directories {
        runs.append(&mut runs_below(&directory)?);
    }
    let merged = merge(&runs, out)?;
    let (rows, planned) = (merged.rows, merged.planned);
    Ok(format!("{} runs, {rows} of {planned} rows", runs.len()))
}
