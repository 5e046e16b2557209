//! `subagents`: who did what, where a trace tells its agents apart.

use super::TraceAnalyzer;
use super::findings::{Findings, percent, share};
use super::grouped::{FastMap, Grouped};
use super::trace_view::is_failure;
use assize_contracts::{AnalysisResult, SessionTrace, TraceEvent};
use std::collections::BTreeSet;

/// Findings `subagents_count`, `subagents_share` and `subagents_work`; none where the trace names no subagents.
pub const SUBAGENTS: TraceAnalyzer = TraceAnalyzer {
    name: "subagents",
    find: analyze,
};

#[derive(Default)]
struct Work<'a> {
    events: usize,
    calls: usize,
    failures: usize,
    model_calls: BTreeSet<&'a str>,
}

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let work = work_by_agent(trace);
    let mut findings = Findings::default();
    if work.is_empty() {
        return findings.into_result("subagents", "the trace names no subagents".to_owned());
    }
    let tokens: FastMap<&str, Option<u64>> = trace
        .model_calls
        .iter()
        .map(|call| (call.id.as_str(), call.tokens.total))
        .collect();
    let events: usize = work.iter().map(|(_, work)| work.events).sum();
    let events_share = share(events, trace.events.len());
    let rows = work
        .iter()
        .map(|(agent, work)| work.row(agent, &tokens))
        .collect();
    let headers = ["agent", "events", "tool calls", "failures", "tokens"];
    findings.count("subagents_count", work.len(), "agents");
    findings.ratio("subagents_share", events_share, "subagents' / all events");
    findings.table("subagents_work", &headers, rows);
    let events_share = events_share.map_or_else(String::new, percent);
    let summary = format!("{} subagents, {events_share} of all events", work.len());
    findings.into_result("subagents", summary)
}

fn work_by_agent(trace: &SessionTrace) -> Vec<(&str, Work<'_>)> {
    let mut agents: Grouped<&str, Work<'_>> = Grouped::new();
    for event in &trace.events {
        let place = event.place();
        let Some((place, agent)) =
            place.and_then(|place| Some((place, place.agent_id.as_deref()?)))
        else {
            continue;
        };
        let work = agents.of(agent);
        work.events += 1;
        work.calls += usize::from(matches!(**event, TraceEvent::ToolCall { .. }));
        work.failures += usize::from(is_failure(event));
        work.model_calls.extend(place.call_ref.as_deref());
    }
    agents.groups
}

impl Work<'_> {
    fn row(&self, agent: &str, tokens: &FastMap<&str, Option<u64>>) -> Vec<String> {
        let tokens = self.tokens(tokens).map(|tokens| tokens.to_string());
        vec![
            agent.to_owned(),
            self.events.to_string(),
            self.calls.to_string(),
            self.failures.to_string(),
            tokens.unwrap_or_else(|| "unknown".to_owned()),
        ]
    }

    /// Known when the agent's events name their model calls, and each of them counted.
    fn tokens(&self, tokens: &FastMap<&str, Option<u64>>) -> Option<u64> {
        self.model_calls.first()?;
        self.model_calls.iter().try_fold(0_u64, |sum, call| {
            let tokens = tokens.get(call).copied().flatten()?;
            Some(sum.saturating_add(tokens))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{call, finding, model_call, placed, thought, trace};
    use assize_contracts::EventPlace;
    use serde_json::json;

    #[test]
    fn work_is_shown_by_agent() {
        let by = |agent: &str, call: Option<&str>| EventPlace {
            agent_id: Some(agent.to_owned()),
            call_ref: call.map(str::to_owned),
            ..EventPlace::default()
        };
        let mut trace = trace(vec![
            thought("delegate"),
            placed(call("Read", json!(1)), by("explorer", Some("m1"))),
            placed(call("Read", json!(2)), by("explorer", Some("m1"))),
            placed(thought("hm"), by("writer", None)),
        ]);
        trace.model_calls = vec![model_call("m1", 100, 20)];
        assert_eq!(
            finding(&SUBAGENTS, &trace, "subagents_work").unwrap()["rows"],
            json!([
                ["explorer", "2", "2", "0", "120"],
                ["writer", "1", "0", "0", "unknown"]
            ])
        );
        assert_eq!(
            SUBAGENTS.find(&trace).summary,
            "2 subagents, 75.0% of all events"
        );
    }

    #[test]
    fn a_trace_without_subagents_says_so() {
        let result = SUBAGENTS.find(&trace(vec![thought("alone")]));
        assert!(result.findings.is_empty());
        assert_eq!(result.summary, "the trace names no subagents");
    }
}
