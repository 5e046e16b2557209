//! Warnings before a run: prompts with names that nothing fills, and checks of tools that will not be observed.

use crate::suite::capture::{CaptureSpec, ProxySpec};
use assize_contracts::BaseScenario;
use assize_engine::{Mode, ProfileSuite};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names in braces that every prompt may have.
const FILLED: [&str; 2] = ["workspace", "iteration"];

/// Remarks about `{name}` in prompts, which agents would read unchanged.
pub(super) fn unfilled_names(scenarios: &[Arc<BaseScenario>]) -> Vec<String> {
    let remark = |scenario: &Arc<BaseScenario>| {
        let texts = std::iter::once(&scenario.prompt).chain(&scenario.turns);
        let names: BTreeSet<&str> = texts.flat_map(|text| names_in(text)).collect();
        let open: Vec<&str> = names
            .into_iter()
            .filter(|name| !FILLED.contains(name))
            .collect();
        let first = open.first()?;
        let all: Vec<String> = open.iter().map(|name| format!("`{{{name}}}`")).collect();
        Some(format!(
            "scenario `{}`: nothing fills {} in its prompt, so the agent reads it unchanged; \
             to fill it, add `vars: {{ {first}: [ … ] }}` to the scenario",
            scenario.id,
            all.join(" and ")
        ))
    };
    scenarios.iter().filter_map(remark).collect()
}

/// Names in single braces, as `vars` can have them. Code in a prompt rarely looks like that.
fn names_in(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (start, _) in text.match_indices('{') {
        let inside = &text[start + 1..];
        let Some(end) = inside.find('}') else {
            break;
        };
        let name = &inside[..end];
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(is_plain);
        let is_doubled = text[..start].ends_with(['{', '$']) || inside[end..].starts_with("}}");
        if is_name && !is_doubled {
            names.push(name);
        }
    }
    names
}

/// Remarks about checks of tools in modes whose program reports no tools and is not behind the proxy.
pub(super) fn unseen_tools(profile: &ProfileSuite, capture: Option<&CaptureSpec>) -> Vec<String> {
    let is_captured = capture.is_some_and(|capture| capture.proxy != ProxySpec::Off);
    let mut scenarios = profile.scenarios.iter();
    let checked = scenarios.find(|scenario| scenario.checks.iter().any(is_about_tools));
    let Some(scenario) = checked.filter(|_| !is_captured) else {
        return Vec::new();
    };
    let modes = profile.modes.iter().filter(|mode| reports_no_tools(mode));
    let modes: Vec<String> = modes.map(|mode| format!("`{}`", mode.name)).collect();
    if modes.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "scenario `{}` checks which tools are called, and the program of {} {} does not report them: its trials will be void; let it \
         print events (`output: events`), or read its traffic with `capture: {{ proxy: auto }}`",
        scenario.id,
        if modes.len() == 1 { "mode" } else { "modes" },
        modes.join(", ")
    )]
}

fn is_about_tools(check: &Value) -> bool {
    let inner = check.get("not").unwrap_or(check);
    inner.get("tool").is_some()
}

fn reports_no_tools(mode: &Mode) -> bool {
    let output = mode.overrides.get("output").and_then(Value::as_str);
    mode.provider == "command" && matches!(output, None | Some("text" | "json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_code() {
        assert_eq!(
            names_in("Use {lang} and {workspace}."),
            ["lang", "workspace"]
        );
        for code in [
            "fn f() { x }",
            "{\"a\": 1}",
            "${HOME}",
            "{{ name }}",
            "{{name}}",
            "{}",
            "{1}",
        ] {
            assert!(names_in(code).is_empty(), "{code}");
        }
    }
}
