//! One test binary, with a module per concern.
#![expect(clippy::unwrap_used, reason = "tests")]

mod chat;
mod hostile;
mod properties;
mod recordings;
