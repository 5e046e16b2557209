//! Bodies that property tests and fuzz targets share: whatever a log holds, there is an answer, it is bounded by the log, and reading it for
//! totals and reading it whole count the same.

use crate::digest::Digest;
use crate::draft::{Detail, What};
use crate::formats::{FORMATS, Head};
use crate::log::LogFile;
use std::path::Path;

/// Reads bytes as a log of every agent that keeps texts.
pub fn logs(bytes: &[u8]) {
    for (number, _) in FORMATS.iter().enumerate() {
        log_of(number, bytes);
    }
}

/// Reads bytes as a log of one agent, by its place among the known ones.
pub fn log_of(format: usize, bytes: &[u8]) {
    let Some(format) = FORMATS.get(format) else {
        return;
    };
    let path = Path::new("rollout-fuzzed.jsonl");
    let _ = format.recognizes(&Head { bytes });
    // Databases are SQLite's to read.
    if bytes.starts_with(b"SQLite") || matches!(format.agent(), "opencode" | "goose") {
        return;
    }
    let log = LogFile::of_text(path, bytes);
    let (Ok(mut brief), Ok(mut full)) = (
        format.read(&log, Detail::Totals),
        format.read(&log, Detail::Full),
    ) else {
        return;
    };
    let length = bytes.len();
    for draft in &full {
        assert!(
            draft.items.len() <= length && draft.calls.len() <= length,
            "more events than bytes"
        );
        let texts: usize = draft.items.iter().map(text_length).sum();
        // An escape of six bytes may become three.
        assert!(
            texts <= length.saturating_mul(4) + 1000,
            "more text than the log has"
        );
    }
    let digests = |drafts: &mut Vec<crate::draft::Draft>| {
        drafts.iter_mut().map(Digest::of).collect::<Vec<_>>()
    };
    assert!(
        digests(&mut brief) == digests(&mut full),
        "totals depend on the texts"
    );
}

/// The number of formats.
pub fn formats() -> usize {
    FORMATS.len()
}

fn text_length(item: &crate::draft::Item) -> usize {
    match &item.what {
        What::Prompt(text) | What::Reasoning(text, _) | What::Text(text, _) => text.len(),
        What::Error { message, .. } => message.len(),
        What::Tool(_) | What::Compaction => 0,
    }
}
