//! Programs that a suite names beside its agents: commands of checks and of hooks. They run under the keeper like agents.

mod check_commands;
pub(crate) mod harbor;
mod hook_commands;

pub(crate) use check_commands::KeptCommands;
pub(crate) use hook_commands::HookCommands;
