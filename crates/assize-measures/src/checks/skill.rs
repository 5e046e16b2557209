//! `skill`: which skills were used, wherever in the session and by whichever of its agents.

use super::check::{Look, Seen, Sentence, Subject};
use crate::skill_use::{SkillUse, loaded_by_tools};
use crate::spec::{Spec, quoted};
use assize_contracts::ConfigError;
use serde_json::Value;

pub(super) const KEYS: [&str; 3] = ["used", "unused", "within_turns"];

const USE_UNKNOWN: &str = "it is unknown which skills were used; \
    let the agent report its calls (`output: events`) or read its traffic (`capture`)";

pub(super) struct SkillCheck {
    names: Vec<String>,
    is_used: bool,
    within_turns: Option<u64>,
    written: Value,
}

impl SkillCheck {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let fields = spec.fields(&KEYS)?;
        let within = fields.get("within_turns");
        let within_turns = within.as_ref().map(Spec::count).transpose()?;
        let (names, is_used) = match (fields.get("used"), fields.get("unused")) {
            (Some(used), None) => (used.texts()?, true),
            (None, Some(unused)) => {
                if let Some(within) = within {
                    return Err(within.error("`within_turns` belongs to `used`"));
                }
                (unused.texts()?, false)
            }
            _ => return Err(spec.nothing_asked(&KEYS[..2])),
        };
        Ok(Self {
            names,
            is_used,
            within_turns,
            written: spec.value.clone(),
        })
    }

    pub(super) fn sentence(&self) -> Sentence {
        let verb = match (self.names.len(), self.is_used) {
            (1, true) => "is used",
            (1, false) => "is not used",
            (_, true) => "are used",
            (_, false) => "are not used",
        };
        let within = self
            .within_turns
            .map_or_else(String::new, |turns| format!(" within {turns} turns"));
        let word = if self.names.len() == 1 {
            "skill"
        } else {
            "skills"
        };
        Sentence {
            label: format!("skill-{}", if self.is_used { "used" } else { "unused" }),
            words: format!("{word} {} {verb}{within}", quoted(&self.names)),
            expected: self.written.clone(),
        }
    }

    pub(super) fn look(&self, subject: &Subject<'_>) -> Look {
        let trace = subject.context.trace.as_deref();
        let result = subject.context.result.as_deref();
        let mut used: Vec<String> = trace.map(loaded_by_tools).unwrap_or_default();
        let mut holds = true;
        for name in &self.names {
            let found = SkillUse::of(name, trace, result);
            let is_used = found.is_used().ok_or(USE_UNKNOWN)?;
            if is_used && !used.contains(name) {
                used.push(name.clone());
            }
            holds &= match (self.is_used, self.within_turns) {
                (false, _) => !is_used,
                (true, None) => is_used,
                (true, Some(turns)) => {
                    let turn = found.first().and_then(|first| first.turn);
                    is_used && turn.ok_or("the turns of the session were not counted")? <= turns
                }
            };
        }
        used.truncate(super::NAMED);
        Ok(Seen::new(holds, Value::from(used)))
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{answering, scenario, score_of};
    use assize_contracts::{PromptResult, SessionTrace, TokenBreakdown, TraceEvent};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn check(skill: Value, expected: Result<bool, &str>) {
        let events: Vec<Arc<TraceEvent>> = serde_json::from_value(json!([
            {"type": "turn_boundary", "turnNumber": 0, "timestamp": "2026-01-01T00:00:00.000Z"},
            {"type": "tool_call", "name": "Bash", "input": {"command": "ls"}, "output": ""},
            {"type": "turn_boundary", "turnNumber": 1, "timestamp": "2026-01-01T00:00:01.000Z"},
            {"type": "tool_call", "name": "Skill", "input": {"skill": "review"}, "output": ""},
        ]))
        .unwrap();
        let trace = SessionTrace::from_events("s".to_owned(), events, TokenBreakdown::default());
        let mut context = answering("");
        context.trace = Some(Arc::new(trace));
        let mut result = PromptResult::default();
        result.metrics.tool_calls = Some(Vec::new());
        context.result = Some(Arc::new(result));
        let result = score_of(&scenario(json!([{"skill": skill}])), &context);
        match expected {
            Ok(success) => assert_eq!((result.success, result.error), (success, None)),
            Err(error) => assert!(result.error.unwrap().contains(error)),
        }
    }

    #[test]
    fn a_used_skill_is_found_and_another_is_not() {
        check(json!({"used": "review"}), Ok(true));
        check(json!({"used": ["review", "pdf"]}), Ok(false));
        check(json!({"unused": "pdf"}), Ok(true));
        check(json!({"unused": "review"}), Ok(false));
        check(json!({"used": "review", "within_turns": 2}), Ok(true));
        check(json!({"used": "review", "within_turns": 1}), Ok(false));
    }

    #[test]
    fn what_nobody_saw_is_neither() {
        let mut context = answering("");
        context.result = Some(Arc::new(PromptResult::default()));
        let result = score_of(&scenario(json!([{"skill": {"used": "a"}}])), &context);
        assert!(!result.success && result.error.unwrap().contains("it is unknown which skills"));
    }
}
