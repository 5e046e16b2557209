//! Bodies that property tests and fuzz targets share: whatever a crash left behind, it is repaired or refused.

use crate::store::{RecordIds, RunFile, repair};
use std::path::Path;

/// Repairs a run directory whose files hold these bytes. A second repair must find nothing more to do.
pub fn run_directory(directory: &Path, rows: &[u8], index: &[u8]) {
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.join(name), bytes);
    let _ = std::fs::create_dir_all(directory.join("traces"));
    let written =
        write(RunFile::Rows.name(), rows).and_then(|()| write("traces/index.jsonl", index));
    if written.is_err() {
        return;
    }
    let ids = RecordIds::new("run", 0);
    let Ok(done) = repair(directory, ids.clone()) else {
        return;
    };
    let again = repair(directory, ids.clone()).expect("what was repaired stays repaired");
    assert!(done == again, "a second repair finds other rows");
}
