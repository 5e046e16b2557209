//! The `assize` program as it is shipped: the library with no plugins of one's own.

use std::process::ExitCode;

// Trials are built on one thread and dropped on another, which the system's allocator pays dearly for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    assize::main_with(assize_contracts::Plugins::new())
}
