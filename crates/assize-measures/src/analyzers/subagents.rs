//! `subagents`: the work of each agent, where a trace distinguishes its agents.

use super::TraceAnalyzer;
use super::findings::{Findings, percent, share};
use super::grouped::{FastMap, Grouped};
use super::trace_view::{Unreported, is_failure, is_unreported};
use assize_contracts::{AnalysisResult, ModelCall, SessionTrace, TokenSum, TraceEvent};
use std::collections::BTreeSet;

/// Findings `subagents_count`, `subagents_share`, `subagents_tokens` and `subagents_work`, with a row for the main agent; none
/// where the trace names no subagents.
pub const SUBAGENTS: TraceAnalyzer = TraceAnalyzer {
    name: "subagents",
    find: analyze,
};

#[derive(Default)]
struct Work<'a> {
    events: usize,
    calls: usize,
    failures: usize,
    /// Tool calls that did not report how they ended.
    unreported: usize,
    model_calls: BTreeSet<&'a str>,
}

/// The main agent's name in tables.
const MAIN: &str = "main agent";

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let work = work_by_agent(trace);
    let mut findings = Findings::default();
    if work.is_empty() {
        return findings.into_result("subagents", "the trace names no subagents".to_owned());
    }
    let calls: FastMap<&str, &ModelCall> = trace
        .model_calls
        .iter()
        .map(|call| (call.id.as_str(), call))
        .collect();
    let subagents = || work.iter().filter(|(agent, _)| *agent != MAIN);
    let events: usize = subagents().map(|(_, work)| work.events).sum();
    let events_share = share(events, trace.events.len());
    let tokens = subagents().map(|(_, work)| work.tokens(&calls).tokens.total);
    let tokens = tokens.reduce(|sum, next| Some(sum?.saturating_add(next?)));
    let rows = work
        .iter()
        .map(|(agent, work)| work.row(agent, &calls))
        .collect();
    let count = subagents().count();
    let headers = ["agent", "events", "tool calls", "failures", "tokens"];
    findings.count("subagents_count", count, "agents");
    let tokens = tokens.flatten().map(|tokens| tokens as f64);
    findings.number("subagents_tokens", tokens, "tokens");
    findings.ratio("subagents_share", events_share, "subagents' / all events");
    findings.table("subagents_work", &headers, rows);
    let events_share = events_share.map_or_else(String::new, percent);
    let summary = format!("{count} subagents, {events_share} of all events");
    findings.into_result("subagents", summary)
}

/// Empty where no subagent is named, else with the main agent. Calls beside the task belong to no agent.
fn work_by_agent(trace: &SessionTrace) -> Vec<(&str, Work<'_>)> {
    let in_events = trace.events.iter().filter_map(|event| event.place());
    let mut named = in_events.filter_map(|place| place.agent_id.as_deref());
    let mut of_calls = trace
        .model_calls
        .iter()
        .filter_map(|call| call.agent_id.as_deref());
    if named.next().or_else(|| of_calls.next()).is_none() {
        return Vec::new();
    }
    let mut agents: Grouped<&str, Work<'_>> = Grouped::new();
    for event in &trace.events {
        if matches!(**event, TraceEvent::TurnBoundary { .. }) {
            continue;
        }
        let place = event.place();
        let agent = place.and_then(|place| place.agent_id.as_deref());
        let work = agents.of(agent.unwrap_or(MAIN));
        work.events += 1;
        work.calls += usize::from(matches!(**event, TraceEvent::ToolCall { .. }));
        work.failures += usize::from(is_failure(event, Unreported::Worked));
        work.unreported += usize::from(is_unreported(event));
        work.model_calls
            .extend(place.and_then(|place| place.call_ref.as_deref()));
    }
    let names_agents = trace.model_calls.iter().any(|call| call.agent_id.is_some());
    let calls = trace.model_calls.iter().filter(|call| !call.side);
    for call in calls.filter(|_| names_agents) {
        let work = agents.of(call.agent_id.as_deref().unwrap_or(MAIN));
        work.model_calls.insert(&call.id);
    }
    agents.groups
}

impl Work<'_> {
    fn row(&self, agent: &str, calls: &FastMap<&str, &ModelCall>) -> Vec<String> {
        let sum = self.tokens(calls);
        let known = sum.at_least.and_then(|known| known.total);
        let tokens = match (sum.tokens.total, known) {
            (Some(total), _) => total.to_string(),
            (None, Some(known)) if known > 0 => format!("at least {known}"),
            _ => "unknown".to_owned(),
        };
        let failures = match (self.unreported, self.failures) {
            (0, failures) => failures.to_string(),
            (_, 0) => "unknown".to_owned(),
            (_, failures) => format!("at least {failures}"),
        };
        vec![
            agent.to_owned(),
            self.events.to_string(),
            self.calls.to_string(),
            failures,
            tokens,
        ]
    }

    /// Known when the agent's events or calls name it, and each call was counted.
    fn tokens(&self, calls: &FastMap<&str, &ModelCall>) -> TokenSum {
        let own = self
            .model_calls
            .iter()
            .filter_map(|call| calls.get(call).copied());
        TokenSum::of_calls(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{
        call, failed_call, finding, model_call, placed, thought, trace, unreported_call,
    };
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
                ["main agent", "1", "0", "0", "unknown"],
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
    fn tokens_are_shown_by_agent_where_calls_name_theirs() {
        let by = |id: &str, agent: Option<&str>| ModelCall {
            agent_id: agent.map(str::to_owned),
            ..model_call(id, 100, 20)
        };
        let mut trace = trace(vec![thought("delegate")]);
        let cut = ModelCall {
            tokens: assize_contracts::TokenBreakdown {
                input: Some(7),
                ..Default::default()
            },
            ..by("m4", Some("b"))
        };
        let side = ModelCall {
            side: true,
            ..model_call("m5", 1000, 1000)
        };
        trace.model_calls = vec![
            by("m1", None),
            by("m2", Some("a")),
            by("m3", Some("a")),
            cut,
            side,
        ];
        assert_eq!(
            finding(&SUBAGENTS, &trace, "subagents_work").unwrap()["rows"],
            json!([
                ["main agent", "1", "0", "0", "120"],
                ["a", "0", "0", "0", "240"],
                ["b", "0", "0", "0", "at least 7"]
            ])
        );
    }

    #[test]
    fn failures_of_agents_whose_tools_report_no_end_are_unknown() {
        let by = |event, agent: &str| {
            let agent_id = Some(agent.to_owned());
            let place = EventPlace {
                agent_id,
                ..EventPlace::default()
            };
            placed(event, place)
        };
        let trace = trace(vec![
            by(unreported_call("bash", json!("a")), "a"),
            by(unreported_call("bash", json!("a")), "b"),
            by(failed_call("bash", json!("b"), "no"), "b"),
            by(call("bash", json!("b")), "c"),
        ]);
        let work = finding(&SUBAGENTS, &trace, "subagents_work").unwrap();
        let failures = |row: usize| work["rows"][row][3].clone();
        assert_eq!([0, 1, 2].map(failures), ["unknown", "at least 1", "0"]);
    }

    #[test]
    fn a_trace_without_subagents_says_so() {
        let result = SUBAGENTS.find(&trace(vec![thought("alone")]));
        assert!(result.findings.is_empty());
        assert_eq!(result.summary, "the trace names no subagents");
    }
}
