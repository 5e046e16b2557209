//! `assize doctor` with the real agents.

use crate::offline::{Offline, has_own_programs};
use serde_json::Value;

pub(crate) fn installed_agents_are_reached_through_the_proxy() {
    let said = Offline::new(&[]).assize(&["doctor", "--json", "claude-code", "codex", "gemini"]);
    let lines = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    for finding in lines {
        assert_eq!(finding["reached"], true, "{finding:#}");
        let is_pinned = finding["version"] == finding["testedVersion"];
        assert!(is_pinned || has_own_programs(), "{finding:#}");
        assert_eq!(finding["keySet"], Value::Null, "{finding:#}");
    }
}
