//! `skills`: use and offer of the skills on trial, the time of the first use, and the tokens of their text.

use crate::skill_use::SkillUse;
use assize_contracts::{
    BaseScenario, BoxError, Collector, CustomMetric, MetricValue, PromptResult, SessionTrace,
    Timestamp, async_trait,
};
use std::collections::BTreeMap;

/// Names of a suite's skills. Modes without a skill are measured, too: it must not show up there.
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
        let on_trial = uses(&self.on_trial);
        let neighbours = uses(&self.neighbours);
        let Some(is_used) = any(on_trial.iter().map(SkillUse::is_used)) else {
            return Vec::new();
        };
        let mut metrics = totals(&on_trial, is_used);
        metrics.extend(first_activation(&on_trial, trace));
        metrics.extend(self.trigger(is_used, scenario, mode));
        let neighbour = any(neighbours.iter().map(SkillUse::is_used));
        metrics.extend(number(
            "skill_neighbour_activated",
            neighbour.map(share),
            "ratio",
        ));
        metrics.extend(self.names(&[on_trial, neighbours].concat()));
        metrics
    }

    /// Right where the skill was used and should be, or was not and should not. Unknown in modes without the skill.
    fn trigger(&self, is_used: bool, scenario: &str, mode: &str) -> Vec<CustomMetric> {
        let installed = self.installed.get(mode);
        let is_installed = installed.is_some_and(|names| !names.is_empty());
        let should = self.should_trigger.get(scenario).copied();
        let should = should.filter(|_| is_installed);
        let is_right = should.map(|should| share(should == is_used));
        let metrics = [
            number("skill_should_trigger", should.map(share), "ratio"),
            number("skill_trigger_correct", is_right, "ratio"),
        ];
        metrics.into_iter().flatten().collect()
    }

    /// The skills that were used and those that were offered.
    fn names(&self, uses: &[SkillUse<'_>]) -> Vec<CustomMetric> {
        let names = || self.on_trial.iter().chain(&self.neighbours).zip(uses);
        let is_offered = |skill: &SkillUse<'_>| Some(skill.on_wire?.offered);
        let used = names_that(names().map(|(name, skill)| (name, skill.is_used())));
        let offered = names_that(names().map(|(name, skill)| (name, is_offered(skill))));
        let used = used.map(|names| text_metric("skills_used", names));
        let offered = offered.map(|names| text_metric("skills_offered", names));
        used.into_iter().chain(offered).collect()
    }
}

/// The metrics of all skills on trial together.
fn totals(on_trial: &[SkillUse<'_>], is_used: bool) -> Vec<CustomMetric> {
    let offered = any(on_trial.iter().map(|skill| Some(skill.on_wire?.offered)));
    let mut counts = on_trial.iter().map(SkillUse::count);
    let count: Option<u64> = counts.try_fold(0, |sum, count| Some(sum + count?));
    let mut texts = on_trial
        .iter()
        .filter(|skill| skill.is_used() == Some(true))
        .map(SkillUse::text_tokens);
    let text: Option<u64> = texts.try_fold(0, |sum, tokens| Some(sum + tokens?));
    let text = text.filter(|_| is_used);
    let agreed = all(on_trial.iter().map(SkillUse::is_agreed));
    let metrics = [
        number("skill_activated", Some(share(is_used)), "ratio"),
        number("skill_offered", offered.map(share), "ratio"),
        number(
            "skill_activations",
            count.map(|count| count as f64),
            "count",
        ),
        number(
            "skill_text_tokens",
            text.map(|tokens| tokens as f64),
            "tokens",
        ),
        number("skill_detectors_agree", agreed.map(share), "ratio"),
    ];
    metrics.into_iter().flatten().collect()
}

/// The metrics of the first use of a skill on trial. Empty where none was used.
fn first_activation(on_trial: &[SkillUse<'_>], trace: Option<&SessionTrace>) -> Vec<CustomMetric> {
    let first = on_trial.iter().filter_map(SkillUse::first);
    let Some(first) = first.min_by_key(|first| (first.at_ms, first.turn)) else {
        return Vec::new();
    };
    let after_start = |at_ms: i64| Some((at_ms - started_ms(trace?)?).max(0) as f64);
    let after_start = first.at_ms.and_then(after_start);
    let turn = first.turn.map(|turn| turn as f64);
    let tokens = first.tokens_before.map(|tokens| tokens as f64);
    let agent = match first.agent {
        None => "main agent".to_owned(),
        Some(agent) => format!("subagent {agent}"),
    };
    let metrics = [
        number("skill_activation_turn", turn, "count"),
        number("skill_time_to_activation_ms", after_start, "ms"),
        number("skill_tokens_to_activation", tokens, "tokens"),
        Some(text_metric("skill_activated_in", agent)),
    ];
    metrics.into_iter().flatten().collect()
}

fn number(name: &str, value: Option<f64>, unit: &'static str) -> Option<CustomMetric> {
    CustomMetric::number(name, value?, unit)
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
