//! The engine as its users meet it: plugins that note every call, and run directories on disk.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod concurrency;
mod properties;
mod resume;
mod scopes;
mod secrets;
mod secrets_change_nothing;
mod support;
mod tasks;
mod workspaces;
