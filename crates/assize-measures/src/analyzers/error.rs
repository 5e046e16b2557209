//! `error`: the errors of a session, and the agent's reaction to each.

use super::TraceAnalyzer;
use super::findings::Findings;
use super::trace_view::{Unreported, calls, is_failure, is_progress, known, unreported_calls};
use assize_contracts::{AnalysisResult, SessionTrace, TraceEvent};
use regex::RegexSet;
use std::sync::{Arc, LazyLock};

/// Findings `errors_encountered`, `error_types`, `recovery_patterns`, `error_cascades`, `wasted_turns_from_errors`. Tables are of
/// reported errors; numbers are left out where a tool call that did not report its end may change them.
pub const ERROR: TraceAnalyzer = TraceAnalyzer {
    name: "error",
    find: analyze,
};

/// The types of errors and their signs; the first that fits counts.
#[rustfmt::skip]
const TYPES: [(&str, &str); 5] = [
    ("rate_limit", r"rate[ _-]?limit|too many requests|quota|\b429\b|overloaded"),
    ("auth", concat!(
        r"\b(re)?auth[nz]?\b|authenti|authori[sz]|permission|forbidden|credential|api[ _-]?key|\b40[13]\b",
        r"|(access|bearer|expired|invalid|missing|refresh)[ _-]token|token (has |is )?(expired|invalid|missing)",
    )),
    ("not_found", r"not found|no such|does not exist|\b404\b|enoent"),
    ("timeout", r"time[ -]?out|timed out|deadline exceeded"),
    ("parse_error", r"unexpected (token|end)|\bpars(e|ing|er)|syntax|json|decode error"),
];
const UNKNOWN: usize = TYPES.len();
const PATTERNS: [&str; 4] = ["retry", "alternative", "tool_followup", "give_up"];

/// Messages can be whole outputs of programs; the error is at their beginning or end.
const MESSAGE_PART: usize = 4096;

static SIGNS: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(TYPES.map(|(_, signs)| format!("(?i-u){signs}"))).expect("the patterns are valid")
});

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let failures = |unreported| {
        let events = trace.events.iter();
        events.filter(move |event| is_failure(event, unreported))
    };
    let errors = known(trace, |unreported| failures(unreported).count());
    let mut types = [0; TYPES.len() + 1];
    for event in failures(Unreported::Worked) {
        types[type_of(event)] += 1;
    }
    let names = TYPES.map(|(name, _)| name).into_iter().chain(["unknown"]);
    let cascades = known(trace, |unreported| cascades(trace, unreported));
    let cascades = cascades.map(|lengths| lengths.len());
    let wasted = known(trace, |unreported| wasted_turns(trace, unreported));

    let mut findings = Findings::default();
    findings.known_count("errors_encountered", errors, "errors");
    findings.table("error_types", &["type", "count"], rows(names, &types));
    let recovery = rows(PATTERNS, &recovery(&trace.events));
    findings.table("recovery_patterns", &["pattern", "count"], recovery);
    findings.known_count("error_cascades", cascades, "cascades");
    findings.known_count("wasted_turns_from_errors", wasted, "turns");
    let summary = match (errors, cascades, wasted) {
        (Some(errors), Some(cascades), Some(wasted)) => {
            format!("{errors} errors, {cascades} cascades, {wasted} wasted turns")
        }
        _ => {
            let errors = match failures(Unreported::Worked).count() {
                0 => "an unknown number of errors".to_owned(),
                reported => format!("at least {reported} errors"),
            };
            let (unreported, calls) = (unreported_calls(trace), calls(trace).len());
            format!("{errors}: {unreported} of {calls} tool calls did not report how they ended")
        }
    };
    findings.into_result("error", summary)
}

fn rows<'a>(names: impl IntoIterator<Item = &'a str>, counts: &[usize]) -> Vec<Vec<String>> {
    names
        .into_iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| vec![name.to_owned(), count.to_string()])
        .collect()
}

fn type_of(event: &TraceEvent) -> usize {
    let message = match event {
        TraceEvent::Error { message, .. } => message,
        TraceEvent::ToolCall {
            error: Some(message),
            ..
        } => message,
        _ => return UNKNOWN,
    };
    let sign_in = |part: &str| SIGNS.matches(part).iter().next();
    let head = &message[..message.floor_char_boundary(MESSAGE_PART)];
    let tail = &message[message.ceil_char_boundary(message.len().saturating_sub(MESSAGE_PART))..];
    sign_in(head).or_else(|| sign_in(tail)).unwrap_or(UNKNOWN)
}

/// The reaction to each reported failure: the same tool, another one, any tool after an error without one, or none at all.
fn recovery(events: &[Arc<TraceEvent>]) -> [usize; PATTERNS.len()] {
    let mut counts = [0; PATTERNS.len()];
    let mut next_tool: Option<&str> = None;
    for event in events.iter().rev() {
        let tool = match &**event {
            TraceEvent::ToolCall { name, .. } => Some(name.as_str()),
            _ => None,
        };
        if is_failure(event, Unreported::Worked) {
            let pattern = match (tool, next_tool) {
                (Some(tool), Some(next)) if tool == next => 0,
                (Some(_), Some(_)) => 1,
                (None, Some(_)) => 2,
                (_, None) => 3,
            };
            counts[pattern] += 1;
        }
        next_tool = tool.or(next_tool);
    }
    counts
}

/// The lengths of all runs of two and more failures with nothing between them that worked. Thoughts and new turns do not end
/// a cascade.
fn cascades(trace: &SessionTrace, unreported: Unreported) -> Vec<usize> {
    let mut streaks = vec![0];
    for event in &trace.events {
        if is_failure(event, unreported) {
            *streaks.last_mut().expect("there is always one") += 1;
        } else if is_progress(event, unreported) {
            streaks.push(0);
        }
    }
    streaks.retain(|length| *length >= 2);
    streaks
}

fn wasted_turns(trace: &SessionTrace, unreported: Unreported) -> usize {
    let is_wasted = |events: &[Arc<TraceEvent>]| {
        events.iter().any(|event| is_failure(event, unreported))
            && !events.iter().any(|event| is_progress(event, unreported))
    };
    trace
        .turns
        .iter()
        .filter(|turn| is_wasted(&turn.events))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{
        boundary, call, error, failed_call, finding, thought, trace, unreported_call,
    };
    use serde_json::json;

    #[test]
    fn errors_are_typed_by_what_they_say() {
        for (message, expected) in [
            ("auth token expired", "auth"),
            ("permission denied", "auth"),
            ("HTTP 401", "auth"),
            ("file not found", "not_found"),
            ("404 page", "not_found"),
            ("request timeout", "timeout"),
            ("the command timed out", "timeout"),
            ("JSON parse failed", "parse_error"),
            ("Unexpected token < in input", "parse_error"),
            ("syntax error in input", "parse_error"),
            ("429 Too Many Requests", "rate_limit"),
            ("something weird happened", "unknown"),
            ("the author left", "unknown"),
            ("invalid token in JSON body: HTTP 401", "auth"),
        ] {
            let types = finding(&ERROR, &trace(vec![error(message)]), "error_types").unwrap();
            assert_eq!(types["rows"], json!([[expected, "1"]]), "{message}");
        }
    }

    #[test]
    fn what_follows_a_failure_is_its_recovery() {
        let trace = trace(vec![
            failed_call("bash", json!("a"), "no"),
            thought("again"),
            failed_call("bash", json!("a"), "no"),
            call("read", json!("f")),
            error("something broke"),
            call("read", json!("g")),
            error("the end"),
        ]);
        let recovery = finding(&ERROR, &trace, "recovery_patterns").unwrap();
        assert_eq!(
            recovery["rows"],
            json!([
                ["retry", "1"],
                ["alternative", "1"],
                ["tool_followup", "1"],
                ["give_up", "1"]
            ])
        );
    }

    #[test]
    fn turns_without_any_success_are_wasted_and_failures_in_a_row_cascade() {
        let failure = || failed_call("bash", json!("a"), "no");
        let trace = trace(vec![
            boundary(0),
            thought("hm"),
            failure(),
            boundary(1),
            failure(),
            call("bash", json!("b")),
            boundary(2),
            failure(),
        ]);
        assert_eq!(
            ERROR.find(&trace).summary,
            "3 errors, 1 cascades, 2 wasted turns"
        );
    }

    #[test]
    fn calls_that_report_no_end_leave_the_number_of_errors_unknown() {
        let result = ERROR.find(&trace(vec![
            boundary(0),
            failed_call("bash", json!("a"), "no"),
            boundary(1),
            unreported_call("bash", json!("b")),
        ]));
        assert_eq!(
            result.summary,
            "at least 1 errors: 1 of 2 tool calls did not report how they ended"
        );
        let keys: Vec<&String> = result.findings.keys().collect();
        assert_eq!(keys, ["error_types", "recovery_patterns"]);
        let result = ERROR.find(&trace(vec![unreported_call("bash", json!("b"))]));
        assert_eq!(
            result.summary,
            "an unknown number of errors: 1 of 1 tool calls did not report how they ended"
        );
    }
}
