//! The program as people use it, one module per command or group of commands.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod verdict;
