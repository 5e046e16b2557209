//! The output of a plugin besides its answers: stderr, log and progress notifications, stray prints. Bounded.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A log does not grow beyond this.
const LARGEST_LOG: usize = 4 << 20;
/// Bytes kept until the run directory is there.
const LARGEST_BEGINNING: usize = 64 << 10;
const LONGEST_LINE: usize = 4096;

/// Takes secrets out of a line.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The log of one plugin. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct PluginLog(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The output that came before there was a file.
    beginning: Vec<u8>,
    file: Option<File>,
    written: usize,
    redact: Option<Redact>,
}

impl PluginLog {
    /// From now on into a file, beginning with what was said before.
    pub(crate) fn write_to(&self, path: &Path, redact: Redact) -> std::io::Result<()> {
        let mut state = self.state();
        let mut file = File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let beginning = std::mem::take(&mut state.beginning);
        file.write_all(redact(&String::from_utf8_lossy(&beginning)).as_bytes())?;
        state.file = Some(file);
        state.redact = Some(redact);
        Ok(())
    }

    /// One line, marked with where it comes from.
    pub(crate) fn line(&self, origin: &str, text: &str) {
        let mut state = self.state();
        let limit = match state.file {
            Some(_) => LARGEST_LOG,
            None => LARGEST_BEGINNING,
        };
        if state.written >= limit {
            return;
        }
        let text = match &state.redact {
            Some(redact) => shortened(&redact(text.trim_end())),
            // The rest of a secret at the cut is found later, by the mark.
            None => shortened(text.trim_end()),
        };
        let mut line = format!("{origin}: {text}\n");
        state.written += line.len();
        if state.written >= limit {
            line.push_str("assize: the log is full, the rest is left out\n");
        }
        // A log that cannot be written must not stop a run.
        let _ = match &mut state.file {
            Some(file) => file.write_all(line.as_bytes()),
            None => state.beginning.write_all(line.as_bytes()),
        };
    }

    /// The last lines that were kept in memory, for error messages at the start.
    pub(crate) fn last_words(&self) -> Option<String> {
        let state = self.state();
        let text = String::from_utf8_lossy(&state.beginning);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(6)..].join("\n");
        (!last.is_empty()).then_some(last)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_LINE);
    let mark = if end < text.len() { "…" } else { "" };
    format!("{}{mark}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_ends_in_a_bounded_file_without_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.log");
        let log = PluginLog::default();
        log.line("stderr", "the word is hunter22");
        log.write_to(
            &path,
            Arc::new(|text| text.replace("hunter22", "[redacted]")),
        )
        .unwrap();
        for _ in 0..100_000 {
            log.line("stderr", &"hunter22 ".repeat(10));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.len() < LARGEST_LOG + 2 * LONGEST_LINE,
            "{}",
            text.len()
        );
        assert!(!text.contains("hunter22") && text.contains("the log is full"));
    }
}
