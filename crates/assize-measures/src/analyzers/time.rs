//! `time`: where the wall time went. Every moment is given to one part, so the parts add up to the whole; what the trace
//! does not time stays unattributed, and what it times only from one side is said to be a bound.

use super::TraceAnalyzer;
use super::findings::{Findings, percent};
use super::time_spans::{Part, Span, Timeline, is_duration};
use super::tool_name::tool_name;
use super::trace_view::FastMap;
use assize_contracts::{AnalysisResult, SessionTrace, TraceEvent};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Findings `time_wall`, `time_split`, `time_by_turn`, `time_in_tools` and `time_retries`, as far as the trace tells.
pub const TIME: TraceAnalyzer = TraceAnalyzer {
    name: "time",
    find: analyze,
};

/// How much of the wall time a part took.
struct Taken<'a> {
    part: Part<'a>,
    ms: f64,
    is_bound: bool,
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
    let turns = timeline.turns.iter().map(|turn| {
        let share = percent(share_of(turn.ms, wall));
        vec![turn.number.to_string(), format!("{:.0}", turn.ms), share]
    });
    findings.table("time_by_turn", &["turn", "ms", "share"], turns.collect());
    findings.into_result("time", summary(&taken, wall))
}

fn summary(taken: &[Taken<'_>], wall: f64) -> String {
    let seconds = wall / 1000.0;
    let longest = taken.iter().max_by(|a, b| a.ms.total_cmp(&b.ms));
    match longest.filter(|longest| longest.ms > 0.0) {
        None => format!("{seconds:.1} s, which the trace does not divide"),
        Some(longest) => {
            let most = if longest.is_bound { "at most " } else { "" };
            let share = percent(share_of(longest.ms, wall));
            format!("{seconds:.1} s, {most}{share} of it for {}", longest.part)
        }
    }
}

/// Each moment goes to the first active span: the model before tools, then whichever began first.
fn taken<'a>(spans: &[Span<'a>]) -> Vec<Taken<'a>> {
    let mut edges: Vec<(f64, bool, usize)> = Vec::with_capacity(spans.len() * 2);
    for (position, span) in spans.iter().enumerate() {
        edges.push((span.start, true, position));
        edges.push((span.end, false, position));
    }
    edges.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));

    let mut places: FastMap<&Part<'a>, usize> = FastMap::default();
    let mut taken: Vec<Taken<'a>> = Vec::new();
    let mut active: BTreeSet<(u8, usize)> = BTreeSet::new();
    let mut now = 0.0;
    for (at, is_start, position) in edges {
        if let Some(&(_, first)) = active.first() {
            let span = &spans[first];
            let place = *places.entry(&span.part).or_insert(taken.len());
            if place == taken.len() {
                taken.push(Taken {
                    part: span.part.clone(),
                    ms: 0.0,
                    is_bound: false,
                });
            }
            taken[place].ms += at - now;
            taken[place].is_bound |= span.is_bound;
        }
        now = at;
        let key = (spans[position].part.rank(), position);
        if is_start {
            active.insert(key);
        } else {
            active.remove(&key);
        }
    }
    taken.sort_by(|a, b| {
        (a.part.rank(), b.ms)
            .partial_cmp(&(b.part.rank(), a.ms))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    taken
}

/// Rounded such that the rows still add up to the whole.
fn split_rows(taken: &[Taken<'_>], wall: f64) -> Vec<Vec<String>> {
    let row = |part: String, ms: f64, bound: &str| {
        vec![
            part,
            format!("{ms:.0}"),
            percent(share_of(ms, wall)),
            bound.to_owned(),
        ]
    };
    let mut rest = wall;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for part in taken {
        let ms = part.ms.round();
        rest -= ms;
        rows.push(row(
            part.part.to_string(),
            ms,
            if part.is_bound { "at most" } else { "" },
        ));
    }
    let has_bounds = taken.iter().any(|part| part.is_bound);
    rows.push(row(
        "unattributed".to_owned(),
        rest,
        if has_bounds { "at least" } else { "" },
    ));
    rows
}

fn share_of(ms: f64, wall: f64) -> f64 {
    if wall > 0.0 { ms / wall } else { 0.0 }
}

/// How long tools ran by their own account. Calls that ran side by side are counted side by side.
fn tools(trace: &SessionTrace, findings: &mut Findings) {
    let mut places: FastMap<Cow<'_, str>, usize> = FastMap::default();
    let mut tools: Vec<(Cow<'_, str>, usize, f64)> = Vec::new();
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
        if !is_duration(duration.value()) {
            continue;
        }
        let name = tool_name(name, input);
        let place = *places.entry(name.clone()).or_insert(tools.len());
        if place == tools.len() {
            tools.push((name, 0, 0.0));
        }
        tools[place].1 += 1;
        tools[place].2 += duration.value();
    }
    if tools.is_empty() {
        return;
    }
    tools.sort_by(|a, b| b.2.total_cmp(&a.2));
    let rows = tools
        .into_iter()
        .map(|(name, calls, ms)| vec![name.into_owned(), calls.to_string(), format!("{ms:.0}")]);
    findings.table(
        "time_in_tools",
        &["tool", "calls timed", "ms"],
        rows.collect(),
    );
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
            json!([["grep", "1", "400"], ["read", "1", "300"]])
        );
        assert_eq!(
            TIME.find(&trace).summary,
            "3.0 s, at most 43.3% of it for tool read"
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
        assert_eq!(
            TIME.find(&trace).summary,
            "5.0 s, which the trace does not divide"
        );
    }

    #[test]
    fn times_that_run_backwards_are_left_out() {
        let trace = trace(vec![boundary(3), tool("a", 1000, Some(-50.0)), boundary(1)]);
        let turns = json!([["1", "2000", "100.0%"]]);
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
