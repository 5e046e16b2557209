//! Measures a workspace by every method that works here, beside `cp -a` and `rm -r`: processor time of one attempt that
//! changes a file, over 1,000 files of 10 kilobytes. Run with `cargo bench -p assize-process --bench workspace`; the number
//! of files can be given as an argument.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

#[path = "shared/processor_time.rs"]
mod clock;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use assize_process::keeper;
use assize_process::workspace::{Layer, Method, Workspaces, enter_namespace};
use clock::used;

const ROUNDS: u32 = 5;

fn main() {
    keeper::main_if_asked();
    let root = tempfile::tempdir().unwrap();
    enter_namespace(root.path());
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let files = numbers.next_back().unwrap_or(1000);
    let template = root.path().join("template");
    fill(&template, files);
    let plain = measured(|| copy_and_remove(&template, &root.path().join("plain")));
    println!("{files} files: `cp -a` and `rm -r` take {plain:.2?} of processor time");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let workspaces = Workspaces::open(&root.path().join("work")).unwrap();
    for method in [
        Method::Overlay,
        Method::Reflink,
        Method::Recycle,
        Method::Copy,
    ] {
        let draft = workspaces.copy_of(&template).unwrap();
        match draft.into_layer(method) {
            Ok(layer) => {
                let layer = Arc::new(layer);
                let each = measured(|| runtime.block_on(attempt(&layer)));
                let ratio = each.as_secs_f64() / plain.as_secs_f64();
                println!("{:<8} {each:>9.2?}, {ratio:.3} of that", method.as_str());
            }
            Err(error) => println!("{:<8} {}", method.as_str(), error.explained()),
        }
    }
    keeper::shut_down();
}

/// From nothing to nothing, with one changed file in between.
async fn attempt(layer: &Arc<Layer>) {
    let workspace = layer.view().await.unwrap();
    fs::write(workspace.path().join("0/0"), "changed").unwrap();
    assert_eq!(workspace.changes().unwrap().len(), 1);
    workspace.remove().unwrap();
}

fn copy_and_remove(from: &Path, to: &Path) {
    for (program, arguments) in [
        ("cp", [Path::new("-a"), from, to].as_slice()),
        ("rm", &[Path::new("-r"), to]),
    ] {
        let status = Command::new(program).args(arguments).status();
        assert!(status.unwrap().success());
    }
}

fn fill(directory: &Path, files: u32) {
    for number in 0..files {
        let parent = directory.join((number / 100).to_string());
        fs::create_dir_all(&parent).unwrap();
        let content = number.to_le_bytes().repeat(2560);
        fs::write(parent.join(number.to_string()), content).unwrap();
    }
}

/// Processor time of one round, by this process and its children.
fn measured(mut work: impl FnMut()) -> Duration {
    work();
    let before = used();
    (0..ROUNDS).for_each(|_| work());
    (used() - before) / ROUNDS
}
