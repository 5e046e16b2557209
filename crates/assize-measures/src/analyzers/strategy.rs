//! `strategy`: how the agent goes about its task, as phases of thinking and acting.

use super::TraceAnalyzer;
use super::findings::Findings;
use super::same_calls::duplicates;
use super::trace_view::{
    Call, Unreported, calls, is_failure, known, reasoning_density, unreported_calls,
};
use assize_contracts::{AnalysisResult, SessionTrace, TraceEvent};

/// Findings `strategy_summary`, `strategy_steps`, `optimality_notes`. The first is left out where it depends on a tool call that did
/// not report its end.
pub const STRATEGY: TraceAnalyzer = TraceAnalyzer {
    name: "strategy",
    find: analyze,
};

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let density = reasoning_density(&trace.summary.total_tokens).unwrap_or(0.0);
    let calls = calls(trace);
    let strategy = known(trace, |unreported| strategy(&calls, density, unreported));
    let steps = phases(trace);
    let notes = notes(trace, &calls, density);
    let summary = format!(
        "Strategy: {}, {} phases, {} notes",
        strategy.unwrap_or("unknown"),
        steps.len(),
        notes.len()
    );

    let mut findings = Findings::default();
    if let Some(strategy) = strategy {
        findings.text("strategy_summary", strategy);
    }
    findings.list("strategy_steps", steps);
    findings.list("optimality_notes", notes);
    findings.into_result("strategy", summary)
}

fn strategy(calls: &[Call<'_>], density: f64, unreported: Unreported) -> &'static str {
    let has_failed = |call: &Call<'_>| call.has_failed(unreported);
    if uses_many_tools(calls) || density > 0.3 {
        "exploratory"
    } else if calls.len() <= 5 && duplicates(calls) == 0 && !calls.iter().any(has_failed) {
        "direct"
    } else {
        "iterative"
    }
}

fn uses_many_tools(calls: &[Call<'_>]) -> bool {
    let mut tools: Vec<&str> = Vec::with_capacity(6);
    calls.iter().any(|call| {
        if !tools.contains(&call.name) {
            tools.push(call.name);
        }
        tools.len() > 5
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Reasoning,
    Tools,
}

fn phases(trace: &SessionTrace) -> Vec<String> {
    let phases: Vec<Phase> = trace
        .events
        .iter()
        .filter_map(|event| match **event {
            TraceEvent::Reasoning { .. } => Some(Phase::Reasoning),
            TraceEvent::ToolCall { .. } => Some(Phase::Tools),
            _ => None,
        })
        .collect();
    phases
        .chunk_by(|a, b| a == b)
        .map(|phase| match phase[0] {
            Phase::Reasoning => format!("reasoning phase ({} events)", phase.len()),
            Phase::Tools => format!("tool execution phase ({} calls)", phase.len()),
        })
        .collect()
}

fn notes(trace: &SessionTrace, calls: &[Call<'_>], density: f64) -> Vec<String> {
    let mut notes = Vec::new();
    let failures = trace
        .events
        .iter()
        .filter(|event| is_failure(event, Unreported::Worked))
        .count();
    let at_least = match unreported_calls(trace) {
        0 => "",
        _ => "at least ",
    };
    let error_rate = failures as f64 / calls.len() as f64 * 100.0;
    if !calls.is_empty() && error_rate > 20.0 {
        notes.push(format!("High error rate ({at_least}{error_rate:.0}%)"));
    }
    if duplicates(calls) > 2 {
        notes.push("Many redundant calls".to_owned());
    }
    if density > 0.2 {
        notes.push("Strong reasoning foundation".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{call, failed_call, finding, thought, trace, unreported_call};
    use serde_json::json;

    fn strategy(trace: &SessionTrace, density: f64) -> &'static str {
        super::strategy(&calls(trace), density, Unreported::Worked)
    }

    #[test]
    fn phases_are_runs_of_thinking_and_acting() {
        let trace = trace(vec![
            thought("a"),
            thought("b"),
            call("bash", json!(1)),
            call("bash", json!(2)),
            thought("c"),
        ]);
        let steps = json!({"type": "list", "values": [
            "reasoning phase (2 events)", "tool execution phase (2 calls)", "reasoning phase (1 events)"
        ]});
        assert_eq!(finding(&STRATEGY, &trace, "strategy_steps"), Some(steps));
        assert_eq!(
            STRATEGY.find(&trace).summary,
            "Strategy: direct, 3 phases, 0 notes"
        );
    }

    #[test]
    fn failures_and_repeats_are_noted() {
        let calls = (0..4)
            .map(|_| failed_call("bash", json!("ls"), "no"))
            .collect();
        let notes =
            json!({"type": "list", "values": ["High error rate (100%)", "Many redundant calls"]});
        assert_eq!(
            finding(&STRATEGY, &trace(calls), "optimality_notes"),
            Some(notes)
        );
    }

    #[test]
    fn many_tools_are_exploration_and_few_straight_calls_are_direct() {
        let with_tools =
            |count: usize| trace((0..count).map(|n| call(&n.to_string(), json!(n))).collect());
        assert_eq!(strategy(&with_tools(6), 0.0), "exploratory");
        assert_eq!(strategy(&with_tools(5), 0.0), "direct");
        assert_eq!(strategy(&with_tools(0), 0.31), "exploratory");
        let changed = trace(vec![call("bash", json!("a")), call("bash", json!("b"))]);
        assert_eq!(strategy(&changed, 0.0), "direct");
        let failed = trace(vec![failed_call("bash", json!("a"), "no")]);
        assert_eq!(strategy(&failed, 0.0), "iterative");
    }

    #[test]
    fn calls_that_report_no_end_leave_the_strategy_unknown() {
        let unknown = trace(vec![
            unreported_call("bash", json!("a")),
            failed_call("bash", json!("b"), "no"),
            call("bash", json!("c")),
        ]);
        // One failure makes it iterative, whatever the others did.
        assert_eq!(
            STRATEGY.find(&unknown).summary,
            "Strategy: iterative, 1 phases, 1 notes"
        );
        let notes = finding(&STRATEGY, &unknown, "optimality_notes").unwrap();
        assert_eq!(notes["values"], json!(["High error rate (at least 33%)"]));
        let unknown = trace(vec![unreported_call("bash", json!("a"))]);
        let result = STRATEGY.find(&unknown);
        assert_eq!(result.summary, "Strategy: unknown, 1 phases, 0 notes");
        assert!(!result.findings.contains_key("strategy_summary"));
    }
}
