//! The program as people use it: one module per command or concern.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod documents;
mod programs;
mod sandbox;
mod try_commands;
mod workspaces;
