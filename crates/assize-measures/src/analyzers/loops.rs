//! `loops`: tool calls that go round in circles, and the turn after which nothing new was tried.

use super::TraceAnalyzer;
use super::findings::Findings;
use super::same_calls::first_equals;
use super::tool_name::tool_name;
use super::trace_view::{Call, Unreported, calls, known};
use assize_contracts::{AnalysisResult, SessionTrace, TraceEvent};

/// Findings `loops_cycles` and, where progress is known to have stopped, `loops_calls_without_progress` and `loops_last_progress_turn`.
pub const LOOPS: TraceAnalyzer = TraceAnalyzer {
    name: "loops",
    find: analyze,
};

/// The longest cycle looked for.
const CYCLE_LENGTH: usize = 24;
/// A test run twice is no loop.
const REPEATS: usize = 3;

/// Calls that repeat the same few, one after the other.
struct Cycle {
    start: usize,
    end: usize,
    length: usize,
}

/// The end of a session in which nothing was called that was new and worked.
#[derive(PartialEq)]
struct Standstill {
    calls: usize,
    /// The last call before it. Absent if the whole session is one.
    last_progress: Option<usize>,
}

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let calls = calls(trace);
    let turns = turns_of_calls(trace);
    let firsts = first_equals(&calls);
    let cycles = cycles(&firsts);
    let standstill = known(trace, |unreported| standstill(&calls, &firsts, unreported));

    let mut findings = Findings::default();
    let rows = cycles
        .iter()
        .map(|cycle| cycle.row(&calls, &turns))
        .collect();
    findings.table(
        "loops_cycles",
        &["cycle", "repeats", "from turn", "to turn"],
        rows,
    );
    let ending = match standstill {
        None => "whether new things worked is unknown".to_owned(),
        Some(None) => "new things tried until the end".to_owned(),
        Some(Some(Standstill {
            calls,
            last_progress,
        })) => {
            let turn = last_progress.and_then(|last| turns[last]);
            findings.count("loops_calls_without_progress", calls, "tool calls");
            findings.number(
                "loops_last_progress_turn",
                turn.map(|turn| turn as f64),
                "turn",
            );
            format!("nothing new in the last {calls} tool calls")
        }
    };
    findings.into_result("loops", format!("{} loops, {ending}", cycles.len()))
}

/// Cycles in the sequence of calls, at their shortest where several lengths fit.
fn cycles(firsts: &[usize]) -> Vec<Cycle> {
    let mut cycles = Vec::new();
    let mut is_covered = vec![false; firsts.len()];
    for length in 1..=CYCLE_LENGTH.min(firsts.len()) {
        let mut start = 0;
        for end in length..=firsts.len() {
            if end < firsts.len() && firsts[end] == firsts[end - length] {
                continue;
            }
            let is_loop = end - start >= REPEATS * length;
            if is_loop && !(is_covered[start] && is_covered[end - 1]) {
                is_covered[start..end].fill(true);
                cycles.push(Cycle { start, end, length });
            }
            start = end + 1 - length;
        }
    }
    cycles.sort_unstable_by_key(|cycle| cycle.start);
    cycles
}

impl Cycle {
    fn row(&self, calls: &[Call<'_>], turns: &[Option<u64>]) -> Vec<String> {
        let names: Vec<_> = calls[self.start..self.start + self.length]
            .iter()
            .map(|call| tool_name(call.name, call.input))
            .collect();
        let repeats = (self.end - self.start) / self.length;
        let turn = |call: usize| turns[call].map_or_else(String::new, |turn| turn.to_string());
        vec![
            names.join(" -> "),
            repeats.to_string(),
            turn(self.start),
            turn(self.end - 1),
        ]
    }
}

fn standstill(calls: &[Call<'_>], firsts: &[usize], unreported: Unreported) -> Option<Standstill> {
    let is_new = |position: &usize| {
        firsts[*position] == *position && !calls[*position].has_failed(unreported)
    };
    let last_progress = (0..calls.len()).rev().find(is_new);
    let calls = calls.len() - last_progress.map_or(0, |last| last + 1);
    (calls >= REPEATS).then_some(Standstill {
        calls,
        last_progress,
    })
}

fn turns_of_calls(trace: &SessionTrace) -> Vec<Option<u64>> {
    let mut turn = None;
    let mut turns = Vec::new();
    for event in &trace.events {
        match **event {
            TraceEvent::TurnBoundary { turn_number, .. } => turn = Some(turn_number),
            TraceEvent::ToolCall { .. } => turns.push(turn),
            _ => {}
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{boundary, call, finding, trace, unreported_call};
    use serde_json::json;

    fn check(calls: &str, expected: &[(usize, usize, usize)]) {
        let ids: Vec<usize> = calls
            .chars()
            .map(|letter| calls.find(letter).unwrap())
            .collect();
        let found: Vec<(usize, usize, usize)> = cycles(&ids)
            .iter()
            .map(|cycle| (cycle.start, cycle.end, cycle.length))
            .collect();
        assert_eq!(found, expected, "{calls}");
    }

    #[test]
    fn cycles_are_found_once_and_at_their_shortest() {
        check("abc", &[]);
        check("aab", &[]);
        check("aaaaaab", &[(0, 6, 1)]);
        check("xababab", &[(1, 7, 2)]);
        check("abcabcabcabx", &[(0, 11, 3)]);
        check("aaabbb", &[(0, 3, 1), (3, 6, 1)]);
        check("", &[]);
    }

    #[test]
    fn the_turn_where_progress_stopped_is_named() {
        let mut events = vec![boundary(0), call("edit", json!(1)), boundary(1)];
        events.extend((0..5).map(|_| call("bash", json!("pytest"))));
        let trace = trace(events);
        let row = json!([["pytest", "5", "1", "1"]]);
        assert_eq!(
            finding(&LOOPS, &trace, "loops_cycles").unwrap()["rows"],
            row
        );
        let turn = finding(&LOOPS, &trace, "loops_last_progress_turn").unwrap();
        assert_eq!(turn["value"], json!(1));
        assert_eq!(
            LOOPS.find(&trace).summary,
            "1 loops, nothing new in the last 4 tool calls"
        );
    }

    #[test]
    fn a_session_that_goes_on_has_not_stopped() {
        let trace = trace((0..9).map(|n| call("edit", json!(n))).collect());
        assert_eq!(
            LOOPS.find(&trace).summary,
            "0 loops, new things tried until the end"
        );
        assert_eq!(finding(&LOOPS, &trace, "loops_last_progress_turn"), None);
    }

    #[test]
    fn calls_that_report_no_end_may_have_been_progress() {
        let unreported = |count: i32| (0..count).map(|n| unreported_call("edit", json!(n)));
        assert_eq!(
            LOOPS.find(&trace(unreported(9).collect())).summary,
            "0 loops, whether new things worked is unknown"
        );
        let mut events: Vec<_> = unreported(9).collect();
        events.push(call("bash", json!("pytest")));
        assert_eq!(
            LOOPS.find(&trace(events)).summary,
            "0 loops, new things tried until the end"
        );
    }
}
