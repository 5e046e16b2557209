//! `efficiency`: how many turns brought the session forward, and how much was done twice.

use super::TraceAnalyzer;
use super::findings::{Findings, percent, share};
use super::same_calls::duplicates;
use super::trace_view::{Unreported, backtracking, calls, is_progress, known};
use assize_contracts::{AnalysisResult, SessionTrace};

/// Findings `total_turns`, `productive_turns`, `wasted_turns`, `turn_efficiency`, `information_redundancy`,
/// `backtracking_events`. Those about productive turns are left out where that depends on a tool call that did not report its end.
pub const EFFICIENCY: TraceAnalyzer = TraceAnalyzer {
    name: "efficiency",
    find: analyze,
};

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let calls = calls(trace);
    let backtracking = backtracking(&calls);
    let redundancy = share(duplicates(&calls), calls.len());
    let mut findings = Findings::default();
    let turns = if trace.turns.is_empty() {
        // The trace counts turns without saying what happened in them.
        let total = trace.summary.total_turns;
        findings.number("total_turns", total.map(|total| total as f64), "turns");
        match total {
            Some(total) => format!("{total} turns"),
            None => "an unknown number of turns".to_owned(),
        }
    } else {
        describe_turns(trace, &mut findings)
    };
    findings.ratio(
        "information_redundancy",
        redundancy,
        "duplicate / total tool calls",
    );
    findings.count("backtracking_events", backtracking, "events");
    findings.into_result(
        "efficiency",
        format!("{turns}, {backtracking} calls with changed input to the same tool"),
    )
}

fn describe_turns(trace: &SessionTrace, findings: &mut Findings) -> String {
    let total = trace.turns.len();
    findings.count("total_turns", total, "turns");
    let Some(productive) = known(trace, |unreported| productive_turns(trace, unreported)) else {
        return format!("{total} turns, an unknown number of them productive");
    };
    let efficiency = productive as f64 / total as f64;
    findings.count("productive_turns", productive, "turns");
    findings.count("wasted_turns", total - productive, "turns");
    findings.ratio(
        "turn_efficiency",
        Some(efficiency),
        "productive / total turns",
    );
    format!(
        "{productive}/{total} productive turns ({} efficiency)",
        percent(efficiency)
    )
}

fn productive_turns(trace: &SessionTrace, unreported: Unreported) -> usize {
    let turns = trace.turns.iter();
    let productive = turns.filter(|turn| {
        turn.events
            .iter()
            .any(|event| is_progress(event, unreported))
    });
    productive.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{
        boundary, call, failed_call, finding, said, thought, trace, unreported_call,
    };
    use serde_json::json;

    #[test]
    fn a_turn_of_failures_and_thoughts_is_wasted() {
        let trace = trace(vec![
            boundary(0),
            thought("hm"),
            failed_call("bash", json!("a"), "no"),
            boundary(1),
            call("bash", json!("b")),
            call("bash", json!("b")),
        ]);
        let result = EFFICIENCY.find(&trace);
        assert_eq!(
            result.summary,
            "1/2 productive turns (50.0% efficiency), 1 calls with changed input to the same tool"
        );
        let redundancy = finding(&EFFICIENCY, &trace, "information_redundancy").unwrap();
        assert_eq!(redundancy["value"], json!(1.0 / 3.0));
    }

    #[test]
    fn a_turn_of_calls_that_report_no_end_is_neither_productive_nor_wasted() {
        let unknown = trace(vec![boundary(0), unreported_call("bash", json!("a"))]);
        let result = EFFICIENCY.find(&unknown);
        assert_eq!(
            result.summary,
            "1 turns, an unknown number of them productive, 0 calls with changed input to the same tool"
        );
        let keys: Vec<&String> = result.findings.keys().collect();
        assert_eq!(
            keys,
            [
                "backtracking_events",
                "information_redundancy",
                "total_turns"
            ]
        );

        let with_text = vec![
            boundary(0),
            said("I look."),
            unreported_call("bash", json!("a")),
        ];
        let productive = finding(&EFFICIENCY, &trace(with_text), "productive_turns").unwrap();
        assert_eq!(productive["value"], 1.0);
    }

    #[test]
    fn an_empty_trace_has_no_efficiency() {
        let result = EFFICIENCY.find(&SessionTrace::default());
        assert_eq!(
            result.summary,
            "an unknown number of turns, 0 calls with changed input to the same tool"
        );
        assert!(!result.findings.contains_key("turn_efficiency"));
        assert!(!result.findings.contains_key("information_redundancy"));
    }
}
