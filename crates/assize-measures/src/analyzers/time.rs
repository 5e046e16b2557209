//! `time`: the use of the wall time. Every moment is given to one part, so the parts add up to the whole; time that the trace
//! does not cover stays unattributed, and time that is known only from one side is marked as a bound.

use super::TraceAnalyzer;
use super::findings::{Findings, percent};
use super::grouped::Grouped;
use super::time_spans::{Part, Span, Timeline, TurnTime, is_duration};
use super::tool_name::tool_name;
use assize_contracts::{AnalysisResult, SessionTrace, TraceEvent};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Findings `time_wall`, `time_split`, `time_by_turn`, `time_in_tools` and `time_retries`, as far as the trace has them.
pub const TIME: TraceAnalyzer = TraceAnalyzer {
    name: "time",
    find: analyze,
};

/// The share of the wall time that a part took.
#[derive(Default)]
struct Taken {
    ms: f64,
    is_bound: bool,
    /// Something else was going on meanwhile and got part of the time.
    is_shared: bool,
}

impl Taken {
    /// The meaning of the time: exact or an upper bound, and whether parts that ran beside it are left out.
    fn bound(&self) -> &'static str {
        match (self.is_bound, self.is_shared) {
            (false, _) => "",
            (true, false) => "at most",
            (true, true) => "alone, at most",
        }
    }
}

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let mut findings = Findings::default();
    tools(trace, &mut findings);
    let retries: Option<u32> = trace
        .model_calls
        .iter()
        .filter_map(|call| call.retries)
        .reduce(u32::saturating_add);
    findings.number("time_retries", retries.map(f64::from), "retries");

    let Some(timeline) = Timeline::of(trace) else {
        return findings.into_result("time", "the trace has no times".to_owned());
    };
    let wall = timeline.wall().round();
    let taken = taken(&timeline.spans);
    findings.number("time_wall", Some(wall), "ms");
    let headers = ["part", "ms", "share", "bound"];
    findings.table("time_split", &headers, split_rows(&taken, wall));
    if !timeline.turns.is_empty() {
        let turns = timeline.turns.iter().map(|turn| {
            let share = percent(share_of(turn.ms, wall));
            vec![turn.number.to_string(), format!("{:.0}", turn.ms), share]
        });
        findings.table("time_by_turn", &["turn", "ms", "share"], turns.collect());
    }
    findings.into_result("time", summary(&taken, &timeline.turns, wall))
}

fn summary(taken: &[(&Part<'_>, Taken)], turns: &[TurnTime], wall: f64) -> String {
    let seconds = wall / 1000.0;
    let longest = taken.iter().max_by(|(_, a), (_, b)| a.ms.total_cmp(&b.ms));
    let longest_turn = turns.iter().max_by(|a, b| a.ms.total_cmp(&b.ms));
    match (
        longest.filter(|(_, longest)| longest.ms > 0.0),
        longest_turn,
    ) {
        (Some((part, longest)), _) => {
            let bound = longest.bound();
            let space = if bound.is_empty() { "" } else { " " };
            let share = percent(share_of(longest.ms, wall));
            format!("{seconds:.1} s, {bound}{space}{share} of it for {part}")
        }
        (None, Some(turn)) => {
            let share = percent(share_of(turn.ms, wall));
            format!("{seconds:.1} s, {share} of it in turn {}", turn.number)
        }
        (None, None) => format!("{seconds:.1} s, which the trace does not divide"),
    }
}

/// Each moment goes to the first active span: the model before tools, then whichever began first.
fn taken<'a>(spans: &'a [Span<'_>]) -> Vec<(&'a Part<'a>, Taken)> {
    let starts = spans.iter().map(|span| span.start).enumerate();
    let ends = spans.iter().map(|span| span.end).enumerate();
    let mut edges: Vec<(usize, f64)> = starts.chain(ends).collect();
    edges.sort_by(|a, b| a.1.total_cmp(&b.1));

    let mut parts: Grouped<&Part<'_>, Taken> = Grouped::new();
    let mut given = vec![0.0; spans.len()];
    let mut active: BTreeSet<(u8, usize)> = BTreeSet::new();
    let mut now = 0.0;
    for (position, at) in edges {
        if let Some(&(_, first)) = active.first() {
            let taken = parts.of(&spans[first].part);
            taken.ms += at - now;
            taken.is_bound |= spans[first].is_bound;
            given[first] += at - now;
        }
        now = at;
        // The first edge of a span is its start, the second its end.
        let key = (spans[position].part.rank(), position);
        if !active.remove(&key) {
            active.insert(key);
        }
    }
    for (span, given) in spans.iter().zip(given) {
        // Ends of spans are rounded up to a millisecond.
        let is_part = span.end - span.start - given > 2.0;
        parts.of(&span.part).is_shared |= is_part;
    }
    let mut taken = parts.groups;
    taken.retain(|(_, taken)| taken.ms > 0.0 || !taken.is_shared);
    taken.sort_by(|(part, a), (other, b)| {
        let by_rank = part.rank().cmp(&other.rank());
        by_rank.then(b.ms.total_cmp(&a.ms))
    });
    taken
}

/// Cut to whole milliseconds, so that the rows still add up to the whole and the rest is never less than nothing.
fn split_rows(taken: &[(&Part<'_>, Taken)], wall: f64) -> Vec<Vec<String>> {
    let row = |part: String, ms: f64, bound: &str| {
        let share = percent(share_of(ms, wall));
        vec![part, format!("{ms:.0}"), share, bound.to_owned()]
    };
    let mut rest = wall;
    let mut rows: Vec<Vec<String>> = Vec::with_capacity(taken.len() + 1);
    for (part, taken) in taken {
        let bound = taken.bound();
        rows.push(row(part.to_string(), taken.ms.floor(), bound));
        rest -= taken.ms.floor();
    }
    let has_bounds = taken.iter().any(|(_, taken)| taken.is_bound);
    let bound = if has_bounds { "at least" } else { "" };
    rows.push(row("unattributed".to_owned(), rest, bound));
    rows
}

fn at_most(is_bound: bool) -> &'static str {
    if is_bound { "at most" } else { "" }
}

fn share_of(ms: f64, wall: f64) -> f64 {
    if wall > 0.0 { ms / wall } else { 0.0 }
}

/// The time that tools ran by their own account. Calls that ran side by side are counted side by side.
#[derive(Default)]
struct ToolTime {
    calls: usize,
    ms: f64,
    is_bound: bool,
}

fn tools(trace: &SessionTrace, findings: &mut Findings) {
    let mut tools: Grouped<Cow<'_, str>, ToolTime> = Grouped::new();
    for event in &trace.events {
        let TraceEvent::ToolCall {
            name,
            input,
            duration_ms: Some(duration),
            ..
        } = &**event
        else {
            continue;
        };
        if is_duration(duration.value()) {
            let time = tools.of(tool_name(name, input));
            time.calls += 1;
            time.ms += duration.value();
            time.is_bound |= event.duration_is_bound();
        }
    }
    let mut tools = tools.groups;
    // Some agents write 0 for what they do not time.
    if tools.iter().all(|(_, time)| time.ms == 0.0) {
        return;
    }
    tools.sort_by(|(_, a), (_, b)| b.ms.total_cmp(&a.ms));
    let row = |(name, time): (Cow<'_, str>, ToolTime)| {
        vec![
            name.into_owned(),
            time.calls.to_string(),
            format!("{:.0}", time.ms),
            at_most(time.is_bound).to_owned(),
        ]
    };
    let rows = tools.into_iter().map(row).collect();
    let headers = ["tool", "calls timed", "ms", "bound"];
    findings.table("time_in_tools", &headers, rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{boundary, call, finding, model_call, placed, trace};
    use assize_contracts::{EventPlace, Millis, ModelCall, Timestamp};
    use serde_json::json;

    fn tool(name: &str, start: i64, duration: Option<f64>) -> TraceEvent {
        let place = EventPlace {
            timestamp: Some(Timestamp::from_unix_ms(start)),
            ..EventPlace::default()
        };
        let mut event = placed(call(name, json!(start)), place);
        if let TraceEvent::ToolCall { duration_ms, .. } = &mut event {
            *duration_ms = duration.and_then(Millis::new);
        }
        event
    }

    fn model(start: i64, first: Option<f64>, duration: f64) -> ModelCall {
        ModelCall {
            started_at: Some(Timestamp::from_unix_ms(start)),
            ttft_ms: first.and_then(Millis::new),
            duration_ms: Millis::new(duration),
            ..model_call("m", 1, 1)
        }
    }

    #[test]
    fn the_parts_add_up_to_the_whole() {
        let mut trace = trace(vec![
            boundary(0),
            tool("read", 400, Some(300.0)),
            tool("grep", 500, Some(400.0)),
            tool("read", 2000, None),
            boundary(3),
        ]);
        trace.model_calls = vec![model(0, Some(100.0), 300.0), model(900, None, 600.0)];
        assert_eq!(
            finding(&TIME, &trace, "time_split").unwrap()["rows"],
            json!([
                ["waiting for the first token", "100", "3.3%", ""],
                ["generation", "200", "6.7%", ""],
                ["model calls", "600", "20.0%", ""],
                ["tool read", "1300", "43.3%", "at most"],
                ["tool grep", "200", "6.7%", ""],
                ["unattributed", "600", "20.0%", "at least"],
            ])
        );
        assert_eq!(
            finding(&TIME, &trace, "time_in_tools").unwrap()["rows"],
            json!([["grep", "1", "400", ""], ["read", "1", "300", ""]])
        );
        assert_eq!(
            TIME.find(&trace).summary,
            "3.0 s, at most 43.3% of it for tool read"
        );
    }

    #[test]
    fn a_tool_timed_from_outside_took_at_most_that() {
        let mut event = tool("bash", 100, Some(900.0));
        if let TraceEvent::ToolCall { context, .. } = &mut event {
            context.as_mut().unwrap().duration_is_bound = true;
        }
        let trace = trace(vec![boundary(0), event, boundary(1)]);
        assert_eq!(
            finding(&TIME, &trace, "time_split").unwrap()["rows"],
            json!([
                ["tool bash", "900", "90.0%", "at most"],
                ["unattributed", "100", "10.0%", "at least"],
            ])
        );
        assert_eq!(
            finding(&TIME, &trace, "time_in_tools").unwrap()["rows"],
            json!([["bash", "1", "900", "at most"]])
        );
        assert_eq!(
            TIME.find(&trace).summary,
            "1.0 s, at most 90.0% of it for tool bash"
        );
    }

    #[test]
    fn starting_and_ending_the_agent_are_parts_of_their_own() {
        let mut event = tool("bash", 2_000, Some(1_000.0));
        if let TraceEvent::ToolCall { context, .. } = &mut event {
            let place = context.as_mut().unwrap();
            place.duration_is_bound = true;
            place.call_ref = Some("m".to_owned());
        }
        let mut trace = trace(vec![event]);
        let seen = |start: i64| ModelCall {
            api: Some("openai-chat".to_owned()),
            ..model(start, Some(100.0), 600.0)
        };
        // The tool was asked for 100 ms before the answer ended, and may have begun then.
        trace.model_calls = vec![seen(1_500), seen(3_000)];
        trace.model_calls[1].id = "n".to_owned();
        trace.user_turns = vec![assize_contracts::UserTurn {
            started_at: Timestamp::from_unix_ms(500),
            duration_ms: Millis::new(3_500.0),
        }];
        assert_eq!(
            finding(&TIME, &trace, "time_split").unwrap()["rows"],
            json!([
                ["waiting for the first token", "200", "5.7%", ""],
                ["generation", "900", "25.7%", ""],
                ["tool bash", "1000", "28.6%", "at most"],
                ["start-up of the agent", "1000", "28.6%", ""],
                ["ending of the agent", "400", "11.4%", ""],
                ["unattributed", "0", "0.0%", "at least"],
            ])
        );
    }

    #[test]
    fn a_tool_beside_others_is_told_apart_from_its_own_time() {
        let bound = |name: &str| {
            let mut event = tool(name, 100, Some(800.0));
            if let TraceEvent::ToolCall { context, .. } = &mut event {
                context.as_mut().unwrap().duration_is_bound = true;
            }
            event
        };
        let mut trace = trace(vec![boundary(0), bound("task"), boundary(1)]);
        trace.model_calls = vec![model(200, None, 500.0)];
        assert_eq!(
            finding(&TIME, &trace, "time_split").unwrap()["rows"][1],
            json!(["tool task", "300", "30.0%", "alone, at most"])
        );
    }

    #[test]
    fn turns_without_times_inside_still_have_their_length() {
        let mut trace = trace(vec![boundary(0), call("bash", json!(1)), boundary(2)]);
        trace.summary.total_duration = Millis::new(5000.0);
        let turns = json!([["0", "2000", "40.0%"], ["2", "3000", "60.0%"]]);
        assert_eq!(
            finding(&TIME, &trace, "time_by_turn").unwrap()["rows"],
            turns
        );
        assert_eq!(TIME.find(&trace).summary, "5.0 s, 60.0% of it in turn 2");
    }

    #[test]
    fn events_out_of_order_are_put_in_order_and_negative_times_left_out() {
        let trace = trace(vec![boundary(3), tool("a", 1000, Some(-50.0)), boundary(1)]);
        let turns = json!([["1", "2000", "100.0%"], ["3", "0", "0.0%"]]);
        assert_eq!(
            finding(&TIME, &trace, "time_by_turn").unwrap()["rows"],
            turns
        );
        assert_eq!(finding(&TIME, &trace, "time_in_tools"), None);
    }

    #[test]
    fn a_trace_without_times_says_so() {
        let result = TIME.find(&trace(vec![call("bash", json!(1))]));
        assert!(result.findings.is_empty());
        assert_eq!(result.summary, "the trace has no times");
    }
}
