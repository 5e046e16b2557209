//! `reasoning`: how much the agent thinks, when, and where it seems lost.

use super::TraceAnalyzer;
use super::findings::{Findings, percent};
use super::trace_view::{calls, reasoning_density};
use assize_contracts::{AnalysisResult, SessionTrace, TraceEvent};
use regex::Regex;
use std::sync::LazyLock;

/// Findings `reasoning_density`, `reasoning_per_tool_call`, `planning_quality`, `key_decisions`, `confusion_signals`.
pub const REASONING: TraceAnalyzer = TraceAnalyzer {
    name: "reasoning",
    find: analyze,
};

/// The length that is kept of a thought, in UTF-16 units as other profilers count.
const DECISION_LENGTH: usize = 50;

static CONFUSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("(?i-u)confused|unclear|not sure|don(?:'|\u{2019})t understand|retry|wrong")
        .expect("the pattern is valid")
});

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let tokens = &trace.summary.total_tokens;
    let density = reasoning_density(tokens);
    let per_call = tokens.reasoning.map(|reasoning| match calls(trace).len() {
        0 => 0.0,
        calls => reasoning as f64 / calls as f64,
    });
    let thoughts: Vec<&str> = thoughts(trace).collect();
    let confused = thoughts
        .iter()
        .filter(|thought| CONFUSION.is_match(thought))
        .map(|thought| beginning(thought))
        .collect::<Vec<_>>();
    let summary = format!(
        "Reasoning density: {}, {} reasoning events, {} confusion signals",
        density.map_or_else(|| "unknown".to_owned(), percent),
        thoughts.len(),
        confused.len()
    );

    let mut findings = Findings::default();
    findings.ratio(
        "reasoning_density",
        density,
        "reasoning tokens / total tokens",
    );
    findings.number("reasoning_per_tool_call", per_call, "tokens/tool_call");
    findings.text("planning_quality", planning_quality(trace));
    findings.list(
        "key_decisions",
        thoughts.iter().map(|thought| beginning(thought)).collect(),
    );
    findings.list("confusion_signals", confused);
    findings.into_result("reasoning", summary)
}

fn thoughts(trace: &SessionTrace) -> impl Iterator<Item = &str> {
    trace.events.iter().filter_map(|event| match &**event {
        TraceEvent::Reasoning { content, .. } => Some(content.as_str()),
        _ => None,
    })
}

/// `proactive`: thinks, then acts without thinking again. `reactive`: acts before it thinks. `mixed`: thinks between
/// its actions, or does neither.
fn planning_quality(trace: &SessionTrace) -> &'static str {
    let is_thought = |event: &TraceEvent| matches!(event, TraceEvent::Reasoning { .. });
    let mut steps = trace
        .events
        .iter()
        .map(AsRef::as_ref)
        .filter(|event| is_thought(event) || matches!(event, TraceEvent::ToolCall { .. }))
        .map(is_thought);
    match steps.next() {
        None => "mixed",
        Some(false) => "reactive",
        Some(true) => {
            let mut after_first_call = steps.skip_while(|thought| *thought).skip(1);
            let thinks_again = after_first_call.any(|thought| thought);
            if thinks_again && after_first_call.any(|thought| !thought) {
                "mixed"
            } else {
                "proactive"
            }
        }
    }
}

fn beginning(text: &str) -> String {
    // No character has more UTF-16 units than bytes, and ASCII has as many.
    if text.len() <= DECISION_LENGTH {
        return text.to_owned();
    }
    if text.as_bytes()[..DECISION_LENGTH].is_ascii() {
        return text[..DECISION_LENGTH].to_owned();
    }
    let mut units = 0;
    let end = text.char_indices().find(|(_, letter)| {
        units += letter.len_utf16();
        units > DECISION_LENGTH
    });
    text[..end.map_or(text.len(), |(end, _)| end)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{call, finding, thought, trace};
    use assize_contracts::TokenBreakdown;
    use serde_json::json;

    #[test]
    fn what_nobody_counted_is_not_found() {
        let mut trace = trace(vec![thought("hm"), call("bash", json!({}))]);
        assert_eq!(finding(&REASONING, &trace, "reasoning_density"), None);
        trace.summary.total_tokens = TokenBreakdown {
            reasoning: Some(25),
            total: Some(100),
            ..TokenBreakdown::default()
        };
        let density =
            json!({"type": "ratio", "value": 0.25, "label": "reasoning tokens / total tokens"});
        assert_eq!(
            finding(&REASONING, &trace, "reasoning_density"),
            Some(density)
        );
    }

    #[test]
    fn planning_is_seen_in_where_thoughts_stand() {
        let check = |steps: &str, expected: &str| {
            let event = |step| match step {
                't' => thought("hm"),
                _ => call("bash", json!({})),
            };
            let trace = trace(steps.chars().map(event).collect());
            assert_eq!(planning_quality(&trace), expected, "{steps}");
        };
        check("ttcc", "proactive");
        check("tcct", "proactive");
        check("tctc", "mixed");
        check("ctc", "reactive");
        check("", "mixed");
        check("t", "proactive");
    }

    #[test]
    fn long_thoughts_are_cut_and_confusion_is_noticed() {
        let long = "\u{1F914}".repeat(30) + " Hm, I am NOT SURE";
        let trace = trace(vec![thought(&long), thought("clear")]);
        let decisions = json!({"type": "list", "values": ["\u{1F914}".repeat(25), "clear"]});
        assert_eq!(
            finding(&REASONING, &trace, "key_decisions"),
            Some(decisions)
        );
        let confused = json!({"type": "list", "values": ["\u{1F914}".repeat(25)]});
        assert_eq!(
            finding(&REASONING, &trace, "confusion_signals"),
            Some(confused)
        );
    }
}
