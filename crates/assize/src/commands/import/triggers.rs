//! Trigger files: `[{ "query": …, "should_trigger": true }]`.

use super::cases::{Cases, read_value};
use super::evals_json::skill_above;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn read(path: &Path) -> Result<Cases> {
    let value = read_value(path)?;
    let list = value.as_array().or_else(|| {
        let keys = ["queries", "triggers", "evals", "cases"];
        keys.iter().find_map(|key| value.get(key)?.as_array())
    });
    let mut cases = Cases {
        skill: skill_above(path),
        ..Cases::default()
    };
    for (number, entry) in list.into_iter().flatten().enumerate() {
        let place = format!("query {}", number + 1);
        let query = ["query", "prompt", "input"]
            .iter()
            .find_map(|key| entry.get(key)?.as_str());
        let should = ["should_trigger", "shouldTrigger", "expected"]
            .iter()
            .find_map(|key| entry.get(key)?.as_bool());
        let Some(query) = query.filter(|query| !query.trim().is_empty()) else {
            cases.left_out(&place, "it has no `query`");
            continue;
        };
        let mut scenario = json!({
            "id": format!("trigger-{}", number + 1),
            "prompt": query,
            "workspace": {},
        });
        match should {
            Some(should) => scenario["should_trigger"] = should.into(),
            None => cases.left_out(&place, "`should_trigger` is not true or false"),
        }
        let known = [
            "query",
            "prompt",
            "input",
            "should_trigger",
            "shouldTrigger",
            "expected",
            "id",
        ];
        for key in entry.as_object().into_iter().flat_map(|map| map.keys()) {
            if !known.contains(&key.as_str()) {
                cases.left_out(&place, format!("`{key}` has no equivalent"));
            }
        }
        if let Some(id) = entry.get("id").and_then(Value::as_str) {
            scenario["id"] = id.into();
        }
        cases.scenarios.push(scenario);
    }
    let keys = value.as_object().into_iter().flat_map(|map| map.keys());
    for key in keys {
        let known = ["skill_name", "queries", "triggers", "evals", "cases"];
        if !known.contains(&key.as_str()) {
            cases.left_out("the file", format!("`{key}` has no equivalent"));
        }
    }
    cases.name_apart();
    Ok(cases)
}
