//! `tool-pattern`: which tools follow each other, what is called twice, and what is tried again after it failed.

use super::TraceAnalyzer;
use super::findings::Findings;
use super::grouped::{FastMap, tally};
use super::same_calls::first_equals;
use super::tool_name::tool_name;
use super::trace_view::{Call, Unreported, calls, known};
use assize_contracts::{AnalysisResult, SessionTrace};
use serde_json::Value;
use std::borrow::Cow;

/// Findings `tool_sequence`, `unique_tools_used`, `tool_call_patterns`, `redundant_calls`, `failed_then_retried`.
/// Shell calls are named by their command. The last one is left out where it depends on a tool call that did not report its end.
pub const TOOL_PATTERN: TraceAnalyzer = TraceAnalyzer {
    name: "tool-pattern",
    find: analyze,
};

/// The length of an input in a table.
const INPUT_LENGTH: usize = 100;

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let calls = calls(trace);
    let sequence: Vec<Cow<'_, str>> = calls
        .iter()
        .map(|call| tool_name(call.name, call.input))
        .collect();
    let tools = Tools::of(&sequence);
    let patterns = tools.patterns();
    let redundant = redundant_calls(&calls, &sequence);
    let retried = known(trace, |unreported| {
        tools.failed_then_retried(&calls, unreported)
    });
    let unique = tools.names.len();
    let retries = match &retried {
        Some(retried) => format!("{} retry patterns", retried.len()),
        None => "retry patterns unknown".to_owned(),
    };
    let summary = format!(
        "{} tool calls, {unique} unique tools, {} redundant patterns, {retries}",
        calls.len(),
        redundant.len(),
    );

    let mut findings = Findings::default();
    findings.count("unique_tools_used", unique, "tools");
    findings.table("tool_call_patterns", &["pattern", "count"], patterns);
    findings.table(
        "redundant_calls",
        &["tool", "input_hash", "count"],
        redundant,
    );
    if let Some(retried) = retried {
        findings.table("failed_then_retried", &["tool", "occurrences"], retried);
    }
    findings.list(
        "tool_sequence",
        sequence.into_iter().map(Cow::into_owned).collect(),
    );
    findings.into_result("tool-pattern", summary)
}

/// Tools by number in order of first use, so that texts are hashed once.
struct Tools<'a> {
    names: Vec<&'a str>,
    sequence: Vec<usize>,
}

impl<'a> Tools<'a> {
    fn of(sequence: &'a [Cow<'_, str>]) -> Self {
        let mut numbers: FastMap<&str, usize> = FastMap::default();
        let mut names: Vec<&str> = Vec::new();
        let mut number = |name: &'a Cow<'_, str>| {
            *numbers.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            })
        };
        let sequence = sequence.iter().map(&mut number).collect();
        Self { names, sequence }
    }

    fn patterns(&self) -> Vec<Vec<String>> {
        tally(self.sequence.windows(2).map(|pair| (pair[0], pair[1])))
            .into_iter()
            .map(|((first, second), count)| {
                let pattern = [self.names[first], self.names[second]].join(" -> ");
                vec![pattern, count.to_string()]
            })
            .collect()
    }

    /// Failed calls that the next one of the same tool follows. Calls of one answer run in parallel and repeat nothing.
    fn failed_then_retried(&self, calls: &[Call<'_>], unreported: Unreported) -> Vec<Vec<String>> {
        let is_parallel =
            |pair: &[Call<'_>]| pair[0].call_ref.is_some() && pair[0].call_ref == pair[1].call_ref;
        let retries = calls
            .windows(2)
            .zip(self.sequence.windows(2))
            .filter(|(calls, pair)| {
                calls[0].has_failed(unreported) && pair[0] == pair[1] && !is_parallel(calls)
            });
        tally(retries.map(|(_, pair)| pair[0]))
            .into_iter()
            .map(|(tool, count)| vec![self.names[tool].to_owned(), count.to_string()])
            .collect()
    }
}

fn redundant_calls(calls: &[Call<'_>], sequence: &[Cow<'_, str>]) -> Vec<Vec<String>> {
    let mut counts: Vec<usize> = vec![0; calls.len()];
    for first in first_equals(calls) {
        counts[first] += 1;
    }
    counts
        .into_iter()
        .enumerate()
        .filter(|(_, count)| *count > 1)
        .map(|(first, count)| {
            let input = describe(calls[first].input);
            vec![sequence[first].to_string(), input, count.to_string()]
        })
        .collect()
}

/// The input itself when it is short; else its beginning and a hash that distinguishes it from others.
fn describe(input: &Value) -> String {
    let text = input.to_string();
    if text.len() <= INPUT_LENGTH {
        return text;
    }
    let beginning = &text[..text.floor_char_boundary(INPUT_LENGTH)];
    format!("{beginning}… #{:016x}", fnv1a(text.as_bytes()))
}

/// Written out because it must be the same in every build: results are stored and compared.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{call, failed_call, finding, trace, unreported_call};
    use serde_json::json;

    fn rows(key: &str, trace: &SessionTrace) -> Value {
        finding(&TOOL_PATTERN, trace, key).unwrap()["rows"].take()
    }

    #[test]
    fn the_same_call_twice_is_redundant_and_a_failed_one_again_is_a_retry() {
        let push = || failed_call("bash", json!({"command": "git push"}), "no");
        let trace = trace(vec![push(), push(), call("bash", json!({"command": "ls"}))]);
        assert_eq!(
            rows("redundant_calls", &trace),
            json!([["git push", r#"{"command":"git push"}"#, "2"]])
        );
        assert_eq!(
            rows("failed_then_retried", &trace),
            json!([["git push", "1"]])
        );
        assert_eq!(
            rows("tool_call_patterns", &trace),
            json!([["git push -> git push", "1"], ["git push -> ls", "1"]])
        );
        assert_eq!(
            TOOL_PATTERN.find(&trace).summary,
            "3 tool calls, 2 unique tools, 1 redundant patterns, 1 retry patterns"
        );
    }

    #[test]
    fn calls_that_report_no_end_leave_retries_unknown() {
        let push = || unreported_call("bash", json!({"command": "git push"}));
        let result = TOOL_PATTERN.find(&trace(vec![push(), push()]));
        assert!(!result.findings.contains_key("failed_then_retried"));
        assert_eq!(
            result.summary,
            "2 tool calls, 1 unique tools, 1 redundant patterns, retry patterns unknown"
        );
        // Nothing of that tool follows.
        let once = trace(vec![call("read", json!("f")), push()]);
        assert_eq!(rows("failed_then_retried", &once), json!([]));
    }

    #[test]
    fn a_large_input_is_named_briefly() {
        let write = || call("Write", json!({"content": "é".repeat(5_000_000)}));
        let rows = rows("redundant_calls", &trace(vec![write(), write()]));
        assert!(rows[0][1].as_str().unwrap().len() < 150);
    }
}
