//! Bodies that property tests and fuzz targets share: whatever a crash left behind, it is repaired or refused.

use crate::store::{RecordIds, RunDirectory, RunFile, repair};
use std::path::Path;

/// Repairs a run directory whose files hold these bytes. A second repair must find nothing more to do.
pub fn run_directory(directory: &Path, rows: &[u8], index: &[u8], pack: &[u8]) {
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.join(name), bytes);
    let _ = std::fs::create_dir_all(directory.join("traces"));
    let written = write(RunFile::Rows.name(), rows)
        .and_then(|()| write("traces/index.jsonl", index))
        .and_then(|()| write("traces/traces.zst", pack));
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

/// Opens a run whose manifest, rows, trace index and trace pack hold these bytes, and reads all there is.
pub fn stored_run(directory: &Path, manifest: &[u8], records: &[u8], index: &[u8], pack: &[u8]) {
    let _ = std::fs::create_dir_all(RunFile::Traces.within(directory));
    let files = [
        (RunFile::Manifest.name(), manifest),
        (RunFile::Rows.name(), records),
        (RunFile::RunRecords.name(), records),
        (RunFile::Scores.name(), records),
        ("traces/index.jsonl", index),
        ("traces/traces.zst", pack),
    ];
    for (name, bytes) in files {
        if std::fs::write(directory.join(name), bytes).is_err() {
            return;
        }
    }
    let Ok(run) = RunDirectory::open(directory) else {
        return;
    };
    let manifest = run.manifest();
    let _ = (
        manifest.catalog(),
        manifest.plan.cells(),
        manifest.reading(),
    );
    let _ = (run.counts(), run.traces().map(|traces| traces.is_empty()));
    // Twice: the second time from the index that the first has made.
    for position in [0, 1, 0, 1] {
        if let Ok(Some(row)) = run.row_at(position) {
            let _ = (run.trace(&row), run.run_record(&row), run.scores(&row));
        }
    }
}
