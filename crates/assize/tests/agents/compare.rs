//! The comparisons that the README shows, with the scripted LLM in place of the agents' own.

use crate::agents::{CLAUDE_CODE, SCENARIO, first_block};
use crate::offline::repository;

pub(crate) fn three_agents_come_to_a_verdict() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let (_, shown) = readme.split_once("Real agents are compared").unwrap();
    let suite = first_block(shown);
    assert!(suite.lines().count() <= 10, "{suite}");
    let offline = CLAUDE_CODE.suite(SCENARIO);
    offline.write("assize.yaml", &suite);
    let rows = offline.run(&["--repetitions", "2"]);
    assert_eq!(rows.len(), 6, "{rows:#?}");
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    let said = offline.assize(&["compare"]);
    for mode in ["codex", "opencode"] {
        assert!(
            said.contains("against claude-code") && said.contains(&format!("{mode}: ")),
            "{said}"
        );
    }
}

/// The five commands of the first hour, in a repository whose tests fail until a file is written.
pub(crate) fn two_agents_on_ones_own_repository() {
    let offline = CLAUDE_CODE.suite(SCENARIO);
    for left_over in ["assize.yaml", "scenarios/s.yaml"] {
        std::fs::remove_file(offline.path(left_over)).unwrap();
    }
    offline.write("Makefile", "test:\n\tgrep hi out.txt\n");
    let commit = "git init -q . && git add Makefile workspace && \
                  git -c user.name=n -c user.email=n@example.org commit -qm first";
    assert!(offline.command(&["sh", "-c", commit]).status.success());
    let said = offline.assize(&["init", "--agent", "claude-code", "--agent", "codex"]);
    assert!(said.contains("make test"), "{said}");
    // The newest Codex gives its own default model tools that run JavaScript, which the scripted LLM does not write.
    let (plain, named) = ("uses: codex", "uses: codex, model: gpt-5.1-codex");
    let suite = offline.read("assize.yaml");
    assert!(suite.contains(plain), "{suite}");
    offline.write("assize.yaml", &suite.replace(plain, named));
    let said = offline.assize(&["check"]);
    assert!(!said.contains("error"), "{said}");
    let rows = offline.run(&["--repetitions", "2"]);
    assert_eq!(rows.len(), 4, "{rows:#?}");
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    let said = offline.assize(&["compare"]);
    assert!(said.contains("codex against claude-code"), "{said}");
    let said = offline.assize(&["show", "last/0"]);
    assert!(
        said.contains("+++ b/out.txt") && said.contains("`make test` exits with 0"),
        "{said}"
    );
}
