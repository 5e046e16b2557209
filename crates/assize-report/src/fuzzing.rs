//! Bodies that property tests and fuzz targets share: whatever rows and gates say, there is an answer and no panic.

use crate::{Analysis, Gate, SummaryBuilder, read_rows};

/// Reads bytes as rows and summarizes those that are some.
pub fn rows(bytes: &[u8]) {
    let mut builder = SummaryBuilder::default();
    let mut rows = 0_u64;
    let read = read_rows(bytes, |row| {
        rows += 1;
        builder.add_bytes(row, None).map(drop)
    });
    assert!(builder.trials() <= rows);
    if read.is_ok() && rows > 0 {
        let _ = builder.finish(&Analysis::default());
    }
}

/// Reads bytes as a gate. An error must have a text.
pub fn gates(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = text.parse::<Gate>() {
        assert!(!error.to_string().is_empty());
    }
}
