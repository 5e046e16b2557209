//! The `assize` program as it is shipped: the library with no plugins of one's own.

use std::process::ExitCode;

fn main() -> ExitCode {
    assize::main_with(assize_contracts::Plugins::new())
}
