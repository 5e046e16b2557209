//! Adds up the tokens of all logs below a directory, for measurements of the readers alone:
//!
//!     cargo run --release -p assize-sessions --example read_logs -- DIRECTORY [INDEX]

use assize_contracts::TokenSum;
use assize_sessions::{Index, Library, Occurrence, Uses, find_below};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = arguments.first() else {
        return Err(std::io::Error::other("usage: read_logs DIRECTORY [INDEX]"));
    };
    let mut index = match arguments.get(1) {
        Some(path) => Index::open(Path::new(path)),
        None => Index::none(),
    };
    let begin = Instant::now();
    let paths = find_below(Path::new(directory));
    let found = begin.elapsed();
    let library = Library::read(paths, &mut index, &|_| ());
    let read = begin.elapsed();
    let (mut calls, mut sum) = (0_u64, TokenSum::default());
    Uses::of(&library).each(|_, occurrence| {
        if let Occurrence::Call(call) = occurrence {
            let of_call = TokenSum {
                tokens: call.tokens,
                at_least: None,
            };
            sum = if calls == 0 {
                of_call
            } else {
                sum.plus(&of_call)
            };
            calls += 1;
        }
    });
    let added = begin.elapsed();
    index.save()?;
    let tokens = sum.tokens;
    let mut out = std::io::stdout();
    writeln!(out, "{calls} calls, {tokens:?}")?;
    writeln!(
        out,
        "found {found:?}, read {read:?}, added up {added:?}, all {:?}",
        begin.elapsed()
    )
}
