//! What a workspace costs: copy, snapshot, looking for changes, storing them, removal, over 5000 files of 8 kilobytes.
//! Run with `cargo bench -p assize-process --bench workspace`.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use assize_process::workspace::{Limits, Snapshot, Workspaces, store};

fn main() {
    let root = tempfile::tempdir().unwrap();
    let template = root.path().join("template");
    fill(&template);
    let workspaces = Workspaces::open(&root.path().join("work")).unwrap();

    let workspace = timed("copy", || workspaces.copy_of(&template).unwrap());
    let before = timed("snapshot", || Snapshot::of(workspace.path()).unwrap());
    timed("changes, none", || {
        assert_eq!(before.changes(workspace.path()).unwrap(), []);
    });
    fill(&workspace.path().join("more"));
    let changes = timed("changes, 5000 files", || {
        before.changes(workspace.path()).unwrap()
    });
    let archive = root.path().join("changes.tar.zst");
    timed("store 5000 files", || {
        store(workspace.path(), &changes, &archive, Limits::default()).unwrap()
    });
    timed("remove", || workspace.remove().unwrap());
}

fn fill(directory: &Path) {
    for number in 0..5000_u32 {
        let parent = directory.join((number / 100).to_string());
        fs::create_dir_all(&parent).unwrap();
        fs::write(
            parent.join(number.to_string()),
            number.to_le_bytes().repeat(2048),
        )
        .unwrap();
    }
}

fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{name:<20} {:>8.1?}", start.elapsed());
    result
}
