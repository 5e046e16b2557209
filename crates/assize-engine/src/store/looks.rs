//! `looks.jsonl`: every state of a run's data at which verdicts were shown. Append-only, beside the manifest.

use super::RunFile;
use super::error::{StoreError, io};
use assize_contracts::LookRecord;
use assize_secrets::private_file_options;
use std::io::Write;
use std::path::Path;

/// The looks at a run so far, in order. Lines that cannot be read are left out: a torn one is counted by the next look.
pub fn read_looks(run: &Path) -> Vec<LookRecord> {
    let text = std::fs::read(RunFile::Looks.within(run)).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// Adds a look. One write of one line, so that looks of several processes at once do not mix.
pub fn append_look(run: &Path, look: &LookRecord) -> Result<(), StoreError> {
    let path = RunFile::Looks.within(run);
    let mut line = serde_json::to_vec(look).expect("a look is plain data");
    line.push(b'\n');
    let mut file = private_file_options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(io("open", &path))?;
    // A line that a crash has torn must not take this one with it.
    if !ends_with_line(&path) {
        line.insert(0, b'\n');
    }
    file.write_all(&line).map_err(io("write", &path))?;
    file.sync_data().map_err(io("write", &path))
}

fn ends_with_line(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    text.last().is_none_or(|last| *last == b'\n')
}
