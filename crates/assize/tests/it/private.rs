//! The files of runs cannot be read by other users of the machine.

use crate::llm::{AGENT, Llm};
use crate::sandbox::Sandbox;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
fn everything_a_run_writes_is_its_owners_alone() {
    let llm = Llm::new();
    let suite = format!(
        "provider: {{ uses: command, command: [python3, '{{suite}}/agent.py'] }}\n\
         modes: {{ plain: {{}}, other: {{}} }}\nscenarios: {{ paths: [s.yaml] }}\n\
         output: {{ keep_workspace: all, log_level: debug }}\n\
         capture: {{ upstream: {{ anthropic: '{}' }}, cassette: {{ file: c.jsonl, mode: record }} }}\n",
        llm.url
    );
    let sandbox = Sandbox::new(&[
        ("assize.yaml", &suite),
        (
            "s.yaml",
            "id: s\nprompt: Do it\nworkspace: {}\nchecks:\n  - output: { contains: done }\n",
        ),
        ("agent.py", AGENT),
    ]);
    sandbox.run(&[]);
    let run = sandbox.last_run();
    for name in [
        "rows.jsonl",
        "manifest.json",
        "log.jsonl",
        "traces/traces.zst",
        "traces/index.jsonl",
    ] {
        assert!(run.join(name).exists(), "{name}");
    }
    // Commands that write into a run, and those that make another of it.
    for arguments in [
        "compare last",
        "analyze last",
        "report last",
        "baseline set kept",
        "score last --yes",
        "run -q --skip-warmup --shard 1/1 --output shards --results file://STORE",
        "merge shards --out merged",
        "compare merged",
        "report merged",
    ] {
        let store = sandbox.path("store").display().to_string();
        let arguments = arguments.replace("STORE", &store);
        sandbox.done(&arguments.split(' ').collect::<Vec<_>>());
    }
    for file in ["looks.jsonl", "analysis.jsonl", "report/report.html"] {
        assert!(run.join(file).exists(), "{file}");
    }
    check(&sandbox.path(".assize"));
    check(&sandbox.path("shards"));
    check(&sandbox.path("merged"));
    check(&sandbox.path("store"));
    let cassette = mode_of(&sandbox.path("c.jsonl"));
    assert_eq!(cassette, 0o600, "{cassette:o}");
    let upstream = format!("anthropic={}", llm.url);
    sandbox.done(&[
        "record",
        "--upstream",
        &upstream,
        "--",
        "python3",
        "agent.py",
    ]);
    check(&sandbox.path(".assize/recordings"));
}

fn check(directory: &Path) {
    let mode = mode_of(directory);
    assert_eq!(mode, 0o700, "{} {mode:o}", directory.display());
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check(&path);
            continue;
        }
        let mode = mode_of(&path);
        assert_eq!(mode & 0o077, 0, "{} {mode:o}", path.display());
    }
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
