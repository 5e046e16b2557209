//! The proxy as an agent and its LLM API see it: real sockets on the loopback, only the answers are made up.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod bytes;
mod cassette;
mod hostile;
mod properties;
mod recording;
mod support;
