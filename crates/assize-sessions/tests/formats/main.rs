//! What every reader finds in logs of its agent: recordings, and the cases in which other tools count wrong.

mod claude_code;
mod codex;
mod support;
