//! The example that compares three agents, with the scripted LLM in place of theirs.

use crate::offline::{LLM, Offline, lines, repository};

pub(crate) fn three_agents_come_to_a_verdict() {
    let example = repository().join("examples/agents");
    let read = |name: &str| std::fs::read_to_string(example.join(name)).unwrap();
    let upstream =
        format!("capture: {{ upstream: {{ anthropic: '{LLM}', openai: '{LLM}/v1' }} }}\n");
    let offline = Offline::new(&[
        ("assize.yaml", &(read("assize.yaml") + &upstream)),
        (
            "scenarios/write-a-file.yaml",
            &read("scenarios/write-a-file.yaml"),
        ),
        ("workspace/README.md", &read("workspace/README.md")),
    ]);
    let output = offline.command(&[
        "env",
        "ANTHROPIC_API_KEY=none",
        "OPENAI_API_KEY=none",
        env!("CARGO_BIN_EXE_assize"),
        "run",
        "--yes",
        "--repetitions",
        "2",
    ]);
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let rows = lines(&offline.run_directory().join("rows.jsonl"));
    assert_eq!(rows.len(), 6, "{said}");
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    for mode in ["codex", "opencode"] {
        assert!(
            said.contains("against claude-code") && said.contains(&format!("{mode}: ")),
            "{said}"
        );
    }
}
