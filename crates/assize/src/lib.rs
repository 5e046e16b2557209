//! The `assize` program as a library, so that people can build their own with their plugins compiled in:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     assize::main_with(assize_contracts::Plugins::new())
//! }
//! ```
//!
//! Only this crate knows arguments, colors and environment variables; everything else is in the crates below it.

mod cli;
mod commands;
mod diagnostics;
mod exit;
#[doc(hidden)]
pub mod fuzzing;
mod private;
mod programs;
pub mod suite;
mod terminal;

use assize_contracts::Plugins;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command line with the built-ins and the given plugins.
pub fn main_with(plugins: Plugins) -> ExitCode {
    // First of all: this binary is also the keeper of every program that it starts.
    assize_process::keeper::main_if_asked();
    #[cfg(feature = "broken-decoders")]
    if std::env::var_os("ASSIZE_BREAK_DECODER").is_some() {
        assize_llm::testing::break_decoders();
    }
    // For `make chaos`: a clock that is set back and forth.
    if let Some(jump) = std::env::var("ASSIZE_CLOCK_JUMPS")
        .ok()
        .and_then(|ms| ms.parse().ok())
    {
        assize_contracts::let_clock_jump(jump);
    }
    terminal::decide_on_colors();
    let arguments = cli::parse();
    if arguments.command.is_to_serve() {
        return assize_plugins::serve("assize", env!("CARGO_PKG_VERSION"), |_| plugins.clone());
    }
    diagnostics::start(arguments.verbosity, arguments.command.makes_a_run());
    let plugins = built_in_plugins().and(plugins);
    let done = commands::run(arguments.command, &plugins);
    assize_process::keeper::shut_down();
    diagnostics::finish();
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            terminal::print_error(&error);
            exit::of_error(&error).into()
        }
    }
}

/// Everything that suites can name without any plugin.
pub fn built_in_plugins() -> Plugins {
    let checks = assize_measures::plugins_with_commands(Arc::new(programs::KeptCommands));
    assize_agents::plugins().and(checks)
}
