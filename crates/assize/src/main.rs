//! The `assize` program as it is shipped: the library with no plugins of one's own.

use std::process::ExitCode;

// A trial is a few hundred small allocations, over a third of its instructions with the system's allocator.
// Without huge pages, which nearly double the memory of a small program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    assize::main_with(assize_contracts::Plugins::new())
}
