//! `skills`: whether the skills on trial were offered and used, when, and what their text took.

use crate::skill_use::SkillUse;
use assize_contracts::{
    BaseScenario, BoxError, Collector, CustomMetric, MetricValue, PromptResult, SessionTrace,
    Timestamp, async_trait,
};
use std::collections::BTreeMap;

/// Names of a suite's skills. Every mode is looked at, also those that have none of them: there they must not be seen.
#[derive(Debug, Clone, Default)]
pub struct SkillsCollector {
    /// Skills on trial.
    pub on_trial: Vec<String>,
    /// Skills installed beside them.
    pub neighbours: Vec<String>,
    /// Skills of every mode that are on trial there.
    pub installed: BTreeMap<String, Vec<String>>,
    /// Scenarios that say whether a skill should be used.
    pub should_trigger: BTreeMap<String, bool>,
}

#[async_trait]
impl Collector for SkillsCollector {
    fn id(&self) -> &str {
        "skills"
    }

    async fn collect(
        &self,
        result: &PromptResult,
        scenario: &BaseScenario,
        mode: &str,
        trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        Ok(self.metrics(result, &scenario.id, mode, trace))
    }
}

impl SkillsCollector {
    fn metrics(
        &self,
        result: &PromptResult,
        scenario: &str,
        mode: &str,
        trace: Option<&SessionTrace>,
    ) -> Vec<CustomMetric> {
        let uses = |names: &[String]| -> Vec<SkillUse<'_>> {
            let each = |name: &String| SkillUse::of(name, trace, Some(result));
            names.iter().map(each).collect()
        };
        let found = uses(&self.on_trial);
        let is_used = any(found.iter().map(SkillUse::is_used));
        let Some(is_used) = is_used else {
            return Vec::new();
        };
        let first = found.iter().filter_map(SkillUse::first);
        let first = first.min_by_key(|use_| (use_.at_ms, use_.turn));
        let offered = any(found.iter().map(|skill| Some(skill.on_wire?.offered)));
        let count = found
            .iter()
            .try_fold(0, |sum, skill| Some(sum + skill.count()?));
        let text: Option<u64> = found
            .iter()
            .filter(|skill| skill.is_used() == Some(true))
            .try_fold(0, |sum, skill| Some(sum + skill.text_tokens()?));
        let agreed = all(found.iter().map(SkillUse::is_agreed));
        let neighbours = any(uses(&self.neighbours).iter().map(SkillUse::is_used));
        let is_installed = self
            .installed
            .get(mode)
            .is_some_and(|names| !names.is_empty());
        let should = self.should_trigger.get(scenario).copied();
        let should = should.filter(|_| is_installed);
        let mut metrics = Vec::new();
        let mut add = |name: &'static str, value: Option<f64>, unit: &'static str| {
            metrics.extend(value.and_then(|value| CustomMetric::number(name, value, unit)));
        };
        add("skill_activated", Some(share(is_used)), "ratio");
        add("skill_offered", offered.map(share), "ratio");
        add(
            "skill_activations",
            count.map(|count| count as f64),
            "count",
        );
        let turn = first.as_ref().and_then(|first| first.turn);
        add(
            "skill_activation_turn",
            turn.map(|turn| turn as f64),
            "count",
        );
        let since_start = first
            .as_ref()
            .and_then(|first| Some((first.at_ms? - started_ms(trace?)?).max(0) as f64));
        add("skill_time_to_activation_ms", since_start, "ms");
        let tokens = first.as_ref().and_then(|first| first.tokens_before);
        add(
            "skill_tokens_to_activation",
            tokens.map(|tokens| tokens as f64),
            "tokens",
        );
        let text = text.filter(|_| is_used);
        add(
            "skill_text_tokens",
            text.map(|tokens| tokens as f64),
            "tokens",
        );
        add("skill_detectors_agree", agreed.map(share), "ratio");
        add("skill_should_trigger", should.map(share), "ratio");
        let is_right = should.map(|should| share(should == is_used));
        add("skill_trigger_correct", is_right, "ratio");
        if !self.neighbours.is_empty() {
            add("skill_neighbour_activated", neighbours.map(share), "ratio");
        }
        if let Some(first) = first {
            let user = match first.agent {
                None => "main agent".to_owned(),
                Some(agent) => format!("subagent {agent}"),
            };
            metrics.push(text_metric("skill_activated_in", user));
        }
        let all = || self.on_trial.iter().chain(&self.neighbours);
        let each = |name: &String| SkillUse::of(name, trace, Some(result));
        let used = names_that(all().map(|name| (name, each(name).is_used())));
        metrics.extend(used.map(|names| text_metric("skills_used", names)));
        let is_offered = |name| Some(each(name).on_wire?.offered);
        let offered = names_that(all().map(|name| (name, is_offered(name))));
        metrics.extend(offered.map(|names| text_metric("skills_offered", names)));
        metrics
    }
}

fn text_metric(name: &str, text: String) -> CustomMetric {
    CustomMetric {
        name: name.to_owned(),
        value: MetricValue::Text(text),
        unit: "".into(),
        better: None,
        label: None,
        kind: assize_contracts::MetricKind::Plain,
    }
}

/// The names of those for which it holds, or `none`. Unknown where it is unknown for one of them.
fn names_that<'a>(all: impl Iterator<Item = (&'a String, Option<bool>)>) -> Option<String> {
    let mut names = Vec::new();
    for (name, holds) in all {
        if holds? {
            names.push(name.as_str());
        }
    }
    names.sort_unstable();
    Some(match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    })
}

fn share(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// True as soon as one holds; unknown while one that is unknown might.
fn any(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let values: Vec<Option<bool>> = values.collect();
    match values.contains(&Some(true)) {
        true => Some(true),
        false if values.is_empty() || values.contains(&None) => None,
        false => Some(false),
    }
}

fn all(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(values.map(|value| value.map(|holds| !holds))).map(|broken| !broken)
}

/// The time of the first message to the agent.
fn started_ms(trace: &SessionTrace) -> Option<i64> {
    let first_turn = trace.user_turns.first().map(|turn| &turn.started_at);
    let first_event = || trace.events.iter().find_map(|event| event.timestamp());
    first_turn.or_else(first_event).and_then(Timestamp::unix_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{PromptMetrics, TokenBreakdown, TraceEvent};
    use serde_json::json;
    use std::sync::Arc;

    fn found(mode: &str, scenario: &str, skill: &str) -> BTreeMap<String, String> {
        let collector = SkillsCollector {
            on_trial: vec!["review".to_owned()],
            neighbours: vec!["pdf".to_owned()],
            installed: BTreeMap::from([("with".to_owned(), vec!["review".to_owned()])]),
            should_trigger: BTreeMap::from([("s".to_owned(), true), ("t".to_owned(), false)]),
        };
        let events: Vec<Arc<TraceEvent>> = serde_json::from_value(json!([
            {"type": "turn_boundary", "turnNumber": 0, "timestamp": "2026-01-01T00:00:00.000Z"},
            {"type": "tool_call", "name": "Skill", "input": {"skill": skill}, "output": "", "timestamp": "2026-01-01T00:00:02.000Z"},
        ]))
        .unwrap();
        let trace = SessionTrace::from_events("s".to_owned(), events, TokenBreakdown::default());
        let result = PromptResult {
            metrics: PromptMetrics {
                tool_calls: Some(Vec::new()),
                ..PromptMetrics::default()
            },
            ..PromptResult::default()
        };
        let metrics = collector.metrics(&result, scenario, mode, Some(&trace));
        let shown = |metric: CustomMetric| match metric.value {
            MetricValue::Number(number) => (metric.name, number.value().to_string()),
            MetricValue::Text(text) => (metric.name, text),
        };
        metrics.into_iter().map(shown).collect()
    }

    #[test]
    fn a_use_is_measured_where_and_when_it_happened() {
        let found = found("with", "s", "review");
        assert_eq!(found["skill_activated"], "1");
        assert_eq!(found["skill_activation_turn"], "1");
        assert_eq!(found["skill_time_to_activation_ms"], "2000");
        assert_eq!(found["skill_activated_in"], "main agent");
        assert_eq!(found["skill_trigger_correct"], "1");
        assert_eq!(found["skills_used"], "review");
        assert!(!found.contains_key("skill_offered"), "nothing was captured");
        assert!(!found.contains_key("skills_offered"));
        assert!(!found.contains_key("skill_text_tokens"));
    }

    #[test]
    fn a_neighbour_instead_is_told_apart() {
        let found = found("with", "t", "pdf");
        assert_eq!(found["skill_activated"], "0");
        assert_eq!(found["skill_neighbour_activated"], "1");
        assert_eq!(found["skills_used"], "pdf");
        assert_eq!(found["skill_trigger_correct"], "1");
    }

    #[test]
    fn a_mode_without_the_skill_can_trigger_nothing() {
        let found = found("without", "s", "other");
        assert_eq!(found["skill_activated"], "0");
        assert_eq!(found["skills_used"], "none");
        assert!(!found.contains_key("skill_trigger_correct"));
    }
}
