//! The results of every reader on logs of its agent: recordings, and the cases in which other tools count wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod claude_code;
mod codex;
mod hostile;
mod others;
mod support;
