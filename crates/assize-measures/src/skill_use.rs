//! The skills that a session used, from two sources: the agent's own tool calls, and the capture of every skill on the wire.
//!
//! Only a call that loads a skill counts, wherever it is in the session: other calls before it mean nothing, and those of
//! subagents count like those of the main agent.

use assize_contracts::{PromptResult, SessionTrace, SkillSighting, Timestamp, TraceEvent};
use serde_json::Value;

/// Arguments that name the skill.
const NAME_KEYS: [&str; 6] = ["skill", "name", "skill_name", "skillName", "command", "id"];

/// One skill in one session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SkillUse<'a> {
    /// Loads that the agent's tool calls show. `None` where the calls are unknown.
    pub(crate) by_tools: Option<Vec<Activation>>,
    /// Loads that requests show. `None` where nothing was captured, or the skill was not looked for.
    pub(crate) on_wire: Option<&'a SkillSighting>,
}

/// One time that a skill was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Activation {
    /// Model answers of the main agent up to it, its own included.
    pub(crate) turn: Option<u64>,
    /// Milliseconds since 1970.
    pub(crate) at_ms: Option<i64>,
    pub(crate) tokens_before: Option<u64>,
    /// The subagent that used it. Absent for the main agent.
    pub(crate) agent: Option<String>,
}

impl<'a> SkillUse<'a> {
    /// Looks for a skill in a session. `result` shows whether tool calls are known at all.
    pub(crate) fn of(
        name: &str,
        trace: Option<&'a SessionTrace>,
        result: Option<&PromptResult>,
    ) -> Self {
        let reports_tools = result.is_none_or(|result| result.metrics.tool_calls.is_some());
        let mut sightings = trace.iter().flat_map(|trace| &trace.skills);
        let on_wire = sightings.find(|sighting| sighting.name == name);
        let mut by_tools = trace.map(|trace| tool_activations(name, trace));
        // Agents have skills of their own. One that was never offered and never loaded was another of that name.
        if on_wire.is_some_and(|sighting| !sighting.offered && sighting.loads.is_empty()) {
            by_tools = by_tools.map(|_| Vec::new());
        }
        Self {
            // A call that was seen proves itself.
            by_tools: by_tools.filter(|found| reports_tools || !found.is_empty()),
            on_wire,
        }
    }

    /// True when the skill was used; `None` where neither source knows.
    pub(crate) fn is_used(&self) -> Option<bool> {
        let by_tools = self.by_tools.as_ref().map(|found| !found.is_empty());
        let on_wire = self.on_wire.map(|sighting| !sighting.loads.is_empty());
        match (by_tools, on_wire) {
            (None, None) => None,
            (tools, wire) => Some(tools == Some(true) || wire == Some(true)),
        }
    }

    /// True when both sources agree; `None` where only one of them knows.
    pub(crate) fn is_agreed(&self) -> Option<bool> {
        let is_quiet = self.by_tools.as_ref()?.is_empty();
        Some(is_quiet == self.on_wire?.loads.is_empty())
    }

    /// The number of uses: calls, and conversations that only the wire shows.
    pub(crate) fn count(&self) -> Option<u64> {
        self.is_used()?;
        let by_tools = self.by_tools.as_ref().map_or(0, Vec::len);
        let on_wire = self.on_wire.map_or(0, |sighting| sighting.loads.len());
        Some(by_tools.max(on_wire) as u64)
    }

    /// The first use, with what either source knows of it.
    pub(crate) fn first(&self) -> Option<Activation> {
        let wire = self.on_wire.and_then(|sighting| sighting.loads.first());
        let wire = wire.map(|load| Activation {
            turn: Some(load.turns_before),
            at_ms: load.timestamp.as_ref().and_then(Timestamp::unix_ms),
            tokens_before: load.tokens_before,
            agent: load.agent_id.clone(),
        });
        let tool = self.by_tools.as_ref().and_then(|found| found.first());
        match (tool, wire) {
            (Some(tool), Some(wire)) => Some(Activation {
                turn: tool.turn.or(wire.turn),
                at_ms: tool.at_ms.or(wire.at_ms),
                tokens_before: wire.tokens_before.or(tool.tokens_before),
                agent: tool.agent.clone().or(wire.agent),
            }),
            (tool, wire) => wire.or_else(|| tool.cloned()),
        }
    }

    /// Estimated tokens of its text in the first request that holds it.
    pub(crate) fn text_tokens(&self) -> Option<u64> {
        self.on_wire?.loads.first()?.text_tokens
    }
}

/// Names of all skills that tool calls load, whatever they are.
pub(crate) fn loaded_by_tools(trace: &SessionTrace) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for event in &trace.events {
        if let Some(name) = loaded_name(event)
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

fn tool_activations(name: &str, trace: &SessionTrace) -> Vec<Activation> {
    let mut turns = 0;
    let mut has_turns = false;
    let mut found = Vec::new();
    for event in &trace.events {
        if matches!(**event, TraceEvent::TurnBoundary { .. }) {
            turns += 1;
            has_turns = true;
        }
        if !is_load(event, name) {
            continue;
        }
        let place = event.place();
        found.push(Activation {
            turn: has_turns.then_some(turns),
            at_ms: event.timestamp().and_then(Timestamp::unix_ms),
            tokens_before: place
                .and_then(|place| place.call_ref.as_deref())
                .and_then(|call| tokens_until(trace, call)),
            agent: place.and_then(|place| place.agent_id.clone()),
        });
    }
    found
}

/// Tokens of all model calls up to one, its own included.
fn tokens_until(trace: &SessionTrace, call: &str) -> Option<u64> {
    let place = trace
        .model_calls
        .iter()
        .position(|known| known.id == call)?;
    trace.model_calls[..=place]
        .iter()
        .filter(|call| !call.is_refused())
        .try_fold(0, |sum, call| Some(sum + call.tokens.total?))
}

/// A call of a tool for skills with this name, or one that reads the skill's own file. A call that failed loads nothing.
fn is_load(event: &TraceEvent, name: &str) -> bool {
    if let Some(loaded) = loaded_name(event) {
        return loaded == name;
    }
    let TraceEvent::ToolCall {
        input,
        success,
        name: tool,
        ..
    } = event
    else {
        return false;
    };
    *success != Some(false) && !writes(tool) && mentions(input, &format!("{name}/SKILL.md"), 0)
}

/// The skill that a tool for skills is called with. Skills of plugins come after the plugin's name.
fn loaded_name(event: &TraceEvent) -> Option<&str> {
    let TraceEvent::ToolCall {
        name,
        input,
        success,
        ..
    } = event
    else {
        return None;
    };
    let is_for_skills = name.to_ascii_lowercase().contains("skill");
    if !is_for_skills || *success == Some(false) {
        return None;
    }
    let named = NAME_KEYS.iter().find_map(|key| input.get(key)?.as_str());
    let named = named.or_else(|| input.as_str())?;
    let last = named.trim().trim_start_matches('/').rsplit(':').next()?;
    (!last.is_empty()).then_some(last)
}

/// Tools that change files: an agent that writes a skill does not use it.
fn writes(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["write", "edit", "patch", "replace", "create"]
        .iter()
        .any(|word| tool.contains(word))
}

/// A path somewhere in a value: `view/SKILL.md` is not in `review/SKILL.md`.
fn mentions(value: &Value, path: &str, depth: usize) -> bool {
    match value {
        Value::String(text) => text.match_indices(path).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            !before.is_some_and(|before| before.is_alphanumeric() || "-_.".contains(before))
        }),
        Value::Array(items) if depth < 8 => {
            items.iter().any(|item| mentions(item, path, depth + 1))
        }
        Value::Object(map) if depth < 8 => map.values().any(|item| mentions(item, path, depth + 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{SkillLoad, TokenBreakdown};
    use serde_json::json;

    fn trace(events: Value) -> SessionTrace {
        let events: Vec<std::sync::Arc<TraceEvent>> = serde_json::from_value(events).unwrap();
        SessionTrace::from_events("s".to_owned(), events, TokenBreakdown::default())
    }

    fn used(name: &str, events: Value) -> Option<bool> {
        let trace = trace(events);
        SkillUse::of(name, Some(&trace), None).is_used()
    }

    #[test]
    fn every_agents_own_way_is_recognized() {
        for (tool, input) in [
            ("Skill", json!({"skill": "review"})),
            ("Skill", json!({"skill": "team:review", "args": "x"})),
            ("Skill", json!({"command": "review"})),
            ("skill", json!({"name": "review"})),
            ("skills", json!({"skill": "review"})),
            ("activate_skill", json!({"name": "review"})),
            ("skills__loadSkill", json!({"name": "review"})),
            (
                "exec_command",
                json!({"cmd": "cat /home/.agents/skills/review/SKILL.md"}),
            ),
            ("read", json!({"filePath": "/h/skills/review/SKILL.md"})),
        ] {
            let call = json!([{"type": "tool_call", "name": tool, "input": input, "output": ""}]);
            assert_eq!(used("review", call.clone()), Some(true), "{tool} {input}");
            assert_eq!(used("view", call), Some(false), "{tool} {input}");
        }
    }

    #[test]
    fn other_calls_before_it_do_not_hide_a_use_and_subagents_count() {
        let events = json!([
            {"type": "turn_boundary", "turnNumber": 0, "timestamp": "2026-01-01T00:00:00.000Z"},
            {"type": "tool_call", "name": "Bash", "input": {"command": "ls"}, "output": ""},
            {"type": "turn_boundary", "turnNumber": 1, "timestamp": "2026-01-01T00:00:01.000Z"},
            {"type": "tool_call", "name": "Skill", "input": {"skill": "review"}, "output": "", "agentId": "sub-1"},
        ]);
        let trace = trace(events);
        let first = SkillUse::of("review", Some(&trace), None).first().unwrap();
        assert_eq!(first.turn, Some(2));
        assert_eq!(first.agent.as_deref(), Some("sub-1"));
    }

    #[test]
    fn a_failed_load_and_a_written_skill_are_no_use() {
        let failed = json!([{"type": "tool_call", "name": "skill", "input": {"name": "review"}, "output": "", "success": false}]);
        assert_eq!(used("review", failed), Some(false));
        let written = json!([{"type": "tool_call", "name": "Write", "input": {"file_path": ".claude/skills/review/SKILL.md"}, "output": ""}]);
        assert_eq!(used("review", written), Some(false));
    }

    #[test]
    fn a_skill_of_the_agents_own_with_the_same_name_is_another_one() {
        let call = json!([{"type": "tool_call", "name": "Skill", "input": {"skill": "review"}, "output": ""}]);
        let mut trace = trace(call);
        trace.skills = vec![SkillSighting {
            name: "review".to_owned(),
            ..SkillSighting::default()
        }];
        let found = SkillUse::of("review", Some(&trace), None);
        assert_eq!(
            (found.is_used(), found.is_agreed()),
            (Some(false), Some(true))
        );
    }

    #[test]
    fn either_source_is_enough_and_none_is_unknown() {
        let mut silent = trace(json!([]));
        let result = PromptResult::default();
        let of = |trace: &SessionTrace| {
            let found = SkillUse::of("review", Some(trace), Some(&result));
            (found.is_used(), found.is_agreed())
        };
        assert_eq!(of(&silent), (None, None));
        silent.skills = vec![SkillSighting {
            name: "review".to_owned(),
            offered: true,
            loads: Vec::new(),
        }];
        assert_eq!(of(&silent), (Some(false), None));
        silent.skills[0].loads.push(SkillLoad::default());
        assert_eq!(of(&silent), (Some(true), None));
        let reported = PromptResult {
            metrics: assize_contracts::PromptMetrics {
                tool_calls: Some(Vec::new()),
                ..Default::default()
            },
            ..PromptResult::default()
        };
        let found = SkillUse::of("review", Some(&silent), Some(&reported));
        assert_eq!(
            (found.is_used(), found.is_agreed()),
            (Some(true), Some(false))
        );
    }
}
