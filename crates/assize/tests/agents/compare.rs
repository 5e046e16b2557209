//! The comparison that the README shows, with the scripted LLM in place of the agents' own.

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
