//! Logs made for a test, and the numbers of a session in a form that is easy to compare.

use assize_contracts::{SessionTrace, TokenSum, TraceEvent};
use assize_sessions::Session;
use std::path::{Path, PathBuf};

/// A recording of a real agent.
pub(crate) fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/logs")
        .join(name)
}

/// A directory with these files.
pub(crate) struct Logs(tempfile::TempDir);

impl Logs {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let logs = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            logs.write(name, text.as_bytes());
        }
        logs
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn open(&self) -> Vec<Session> {
        assize_sessions::open(self.0.path()).unwrap()
    }

    /// The only session.
    pub(crate) fn session(&self) -> Session {
        let mut sessions = self.open();
        assert_eq!(sessions.len(), 1);
        sessions.remove(0)
    }
}

/// Uncached input, cache reads, cache writes, output, reasoning.
pub(crate) type Classes = [Option<u64>; 5];

pub(crate) fn classes(trace: &SessionTrace) -> Classes {
    let tokens = TokenSum::of_calls(&trace.model_calls).tokens;
    [
        tokens.input,
        tokens.cache_read,
        tokens.cache_write,
        tokens.output,
        tokens.reasoning,
    ]
}

/// The same over sessions.
pub(crate) fn all_classes(sessions: &[Session]) -> Classes {
    let calls = sessions
        .iter()
        .flat_map(|session| &session.trace.model_calls);
    let tokens = TokenSum::of_calls(calls).tokens;
    [
        tokens.input,
        tokens.cache_read,
        tokens.cache_write,
        tokens.output,
        tokens.reasoning,
    ]
}

/// The events in a few words each.
pub(crate) fn outline(trace: &SessionTrace) -> Vec<String> {
    let words = |event: &TraceEvent| match event {
        TraceEvent::Reasoning { .. } => "reasoning".to_owned(),
        TraceEvent::ToolCall { name, success, .. } => {
            let outcome = match success {
                Some(true) => "ok",
                Some(false) => "failed",
                None => "unknown",
            };
            format!("{name} {outcome}")
        }
        TraceEvent::TextOutput { content, .. } => format!("text {content}"),
        TraceEvent::TurnBoundary { turn_number, .. } => format!("turn {turn_number}"),
        TraceEvent::Error { message, .. } => format!("error {message}"),
    };
    trace.events.iter().map(|event| words(event)).collect()
}
