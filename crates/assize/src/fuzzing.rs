//! Bodies that property tests and fuzz targets share: whatever a file contains, there is an answer and no panic.

use crate::suite::{Document, ScenarioFile, SuiteFile, read_every_task};
use std::path::Path;

/// Reads bytes as a suite and as a scenario, in every format.
pub fn suite_files(bytes: &[u8]) {
    for name in ["fuzz.yaml", "fuzz.toml", "fuzz.json"] {
        match Document::parse(Path::new(name), bytes) {
            Ok(document) => {
                explained(document.read_as::<SuiteFile>(&[]).err());
                explained(document.read_as::<ScenarioFile>(&[]).err());
            }
            Err(error) => explained(Some(error)),
        }
    }
}

/// Reads bytes as tasks, in every format of data sets.
pub fn data_sets(directory: &Path, bytes: &[u8]) {
    for name in ["tasks.jsonl", "tasks.csv", "tasks.yaml", "tasks.json"] {
        let file = directory.join(name);
        if std::fs::write(&file, bytes).is_ok() {
            // A message shows the file's path, which is not the data's.
            let _ = read_every_task(&file);
        }
    }
}

/// Reads every line as a request to `assize mcp`.
pub fn mcp_requests(root: &Path, bytes: &[u8]) {
    crate::commands::read_mcp_requests(root, bytes);
}

/// An error can always be shown, on a terminal and without harm.
fn explained(error: Option<crate::suite::FileError>) {
    let Some(error) = error else { return };
    let text = error.to_string();
    assert!(text.starts_with("fuzz."), "{text}");
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
        "{text:?}"
    );
}
