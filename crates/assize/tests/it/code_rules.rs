//! Rules of the code that no type keeps.

use std::path::{Path, PathBuf};

/// The Rust files below `src` of a crate.
fn sources(name: &str) -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut open = vec![crates.join(name).join("src")];
    let mut found = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "{name}");
    found
}

const CRATES: [&str; 12] = [
    "assize",
    "assize-agents",
    "assize-contracts",
    "assize-engine",
    "assize-formats",
    "assize-llm",
    "assize-measures",
    "assize-plugins",
    "assize-process",
    "assize-report",
    "assize-sessions",
    "assize-stats",
];

/// Lines outside comments that hold one of these texts, in the crates and files that must not.
fn found(texts: &[&str], is_allowed: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for path in CRATES.iter().flat_map(|name| sources(name)) {
        if is_allowed(&path) {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let lines = source.lines().enumerate();
        let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
        let wrong = code.filter(|(_, line)| texts.iter().any(|text| line.contains(text)));
        found.extend(
            wrong.map(|(number, line)| {
                format!("{}:{}: {}", path.display(), number + 1, line.trim())
            }),
        );
    }
    found
}

#[test]
fn the_environment_is_read_by_the_program_and_by_one_file_below_it() {
    let readers = ["env::var(", "env::var_os(", "env::vars(", "env::vars_os("];
    let found = found(&readers, |path| {
        path.ends_with("assize-process/src/environment.rs")
            || path
                .to_string_lossy()
                .contains("crates/assize/../assize/src/")
    });
    assert_eq!(found, [""; 0]);
}

/// `tempfile` leaves them as open as the umask does.
#[test]
fn temporary_directories_are_made_by_the_file_that_keeps_others_out() {
    let mut found = found(&["tempdir()", "tempdir_in("], |_| false);
    // Those of tests.
    found.retain(|line| !line.contains("unwrap()"));
    assert_eq!(found, [""; 0]);
}

#[test]
fn files_of_a_run_are_named_in_one_place() {
    let names = [
        "\"manifest.json\"",
        "\"rows.jsonl\"",
        "\"runs.jsonl\"",
        "\"scores.jsonl\"",
        "\"analysis.jsonl\"",
        "\"superseded.jsonl\"",
        "\"warmup.jsonl\"",
        "\"log.jsonl\"",
    ];
    let found = found(&names, |path| path.ends_with("store/run_file.rs"));
    assert_eq!(found, [""; 0]);
}

#[test]
fn the_name_of_success_is_compared_by_its_constant() {
    let texts = ["== \"success\"", "!= \"success\""];
    let statuses = ["formats/qwen.rs"];
    let found = found(&texts, |path| {
        statuses.iter().any(|file| path.ends_with(file))
    });
    assert_eq!(found, [""; 0]);
}
