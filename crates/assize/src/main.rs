//! The `assize` program as it is shipped: the library with no plugins of one's own.

use std::process::ExitCode;

// A trial is a few hundred small allocations, some dropped on another thread: half of its cost with the system's allocator.
// Without huge pages, which would double the memory of a small program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    assize::main_with(assize_contracts::Plugins::new())
}
