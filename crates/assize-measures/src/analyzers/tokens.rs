//! `tokens`: what drives the input up, how much of it came from a cache, and what each model call cost.

use super::TraceAnalyzer;
use super::findings::{Findings, percent, share};
use super::grouped::{FastMap, Grouped};
use super::tool_name::tool_name;
use assize_contracts::{AnalysisResult, ModelCall, SessionTrace, TokenBreakdown, TraceEvent};
use serde_json::Value;
use std::borrow::Cow;
use std::io;

/// Findings `tokens_cache_hit_rate`, `tokens_by_call`, `tokens_input_growth`, `tokens_growth_by_tool` and
/// `tokens_tool_output`, as far as the trace has them.
pub const TOKENS: TraceAnalyzer = TraceAnalyzer {
    name: "tokens",
    find: analyze,
};

/// The output of a tool.
#[derive(Default)]
struct ToolOutput {
    calls: usize,
    bytes: usize,
    /// An estimate of the input tokens that its output added to later calls.
    growth: f64,
}

type Outputs<'a> = Vec<(Cow<'a, str>, ToolOutput)>;

fn analyze(trace: &SessionTrace) -> AnalysisResult {
    let calls: Vec<&ModelCall> = trace.model_calls.iter().filter(|call| !call.side).collect();
    let hit_rate = cache_hit_rate(&trace.summary.total_tokens);
    let growth = input_growth(&calls);
    let outputs = tool_outputs(trace, &calls);

    let mut findings = Findings::default();
    findings.ratio(
        "tokens_cache_hit_rate",
        hit_rate,
        "cache reads / input tokens",
    );
    findings.number("tokens_input_growth", growth, "tokens");
    if !calls.is_empty() {
        let headers = [
            "call",
            "turn",
            "input",
            "grown by",
            "output",
            "cache hits",
            "USD",
        ];
        findings.table("tokens_by_call", &headers, call_rows(trace, &calls));
    }
    let bytes: usize = outputs.iter().map(|(_, output)| output.bytes).sum();
    if bytes > 0 {
        let row = |(tool, output): &(Cow<'_, str>, ToolOutput)| {
            let share = share(output.bytes, bytes).map_or_else(String::new, percent);
            vec![
                tool.to_string(),
                output.calls.to_string(),
                output.bytes.to_string(),
                share,
            ]
        };
        let rows = outputs.iter().map(row).collect();
        findings.table(
            "tokens_tool_output",
            &["tool", "calls", "bytes", "share"],
            rows,
        );
    }
    let grown = outputs.iter().filter(|(_, output)| output.growth >= 0.5);
    let row = |(tool, output): &(Cow<'_, str>, ToolOutput)| {
        vec![tool.to_string(), format!("{:.0}", output.growth)]
    };
    let rows: Vec<Vec<String>> = grown.map(row).collect();
    if !rows.is_empty() {
        findings.table(
            "tokens_growth_by_tool",
            &["tool", "input tokens, at most"],
            rows,
        );
    }
    findings.into_result("tokens", summary(hit_rate, growth, &outputs, bytes))
}

fn summary(
    hit_rate: Option<f64>,
    growth: Option<f64>,
    outputs: &Outputs<'_>,
    bytes: usize,
) -> String {
    let mut parts = vec![match hit_rate {
        Some(rate) => format!("{} of the input from a cache", percent(rate)),
        None => "cache use unknown".to_owned(),
    }];
    parts.extend(growth.map(|growth| format!("input grew by {growth:.0} tokens")));
    parts.extend(outputs.first().and_then(|(tool, largest)| {
        let share = percent(share(largest.bytes, bytes)?);
        Some(format!("{share} of tool output from {tool}"))
    }));
    parts.join(", ")
}

/// All input of a call, cached or not. Absent when the uncached part was not counted.
fn input_of(tokens: &TokenBreakdown) -> Option<u64> {
    let cached = [tokens.cache_read, tokens.cache_write]
        .into_iter()
        .flatten();
    Some(cached.fold(tokens.input?, u64::saturating_add))
}

fn cache_hit_rate(tokens: &TokenBreakdown) -> Option<f64> {
    let (read, input) = (tokens.cache_read?, input_of(tokens)?);
    (input > 0).then(|| read as f64 / input as f64)
}

/// From the first to the last call that counted.
fn input_growth(calls: &[&ModelCall]) -> Option<f64> {
    let inputs: Vec<u64> = calls
        .iter()
        .filter_map(|call| input_of(&call.tokens))
        .collect();
    match inputs.as_slice() {
        [first, .., last] => Some(*last as f64 - *first as f64),
        _ => None,
    }
}

/// A line per call: the turn it belongs to, and how much more input it had than the last call that counted.
fn call_rows(trace: &SessionTrace, calls: &[&ModelCall]) -> Vec<Vec<String>> {
    let turns = turns_of_calls(trace);
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let mut before: Option<u64> = None;
    let row = |(number, call): (usize, &&ModelCall)| {
        let tokens = &call.tokens;
        let input = input_of(tokens);
        let grown = input
            .zip(before)
            .map(|(now, before)| now as i128 - before as i128);
        before = input.or(before);
        // Traces that do not say which call an event is from have a turn for every call, or none.
        let turn = turns.get(call.id.as_str()).copied();
        let in_place = || {
            let turn = trace.turns.get(number).map(|turn| turn.number);
            turn.filter(|_| turns.is_empty() && trace.turns.len() == calls.len())
        };
        let output = tokens
            .output
            .map(|output| output.saturating_add(tokens.reasoning.unwrap_or(0)));
        vec![
            (number + 1).to_string(),
            known(turn.or_else(in_place).map(|turn| turn.to_string())),
            known(input.map(|input| input.to_string())),
            grown.map(|grown| grown.to_string()).unwrap_or_default(),
            known(output.map(|output| output.to_string())),
            known(cache_hit_rate(tokens).map(percent)),
            known(call.cost_usd.map(|cost| cost.value().to_string())),
        ]
    };
    calls.iter().enumerate().map(row).collect()
}

/// By call id: the turn of its first event.
fn turns_of_calls(trace: &SessionTrace) -> FastMap<&str, u64> {
    let mut turns = FastMap::default();
    let mut turn = None;
    for event in &trace.events {
        if let TraceEvent::TurnBoundary { turn_number, .. } = **event {
            turn = Some(turn_number);
        }
        let call = event.place().and_then(|place| place.call_ref.as_deref());
        if let Some((call, turn)) = call.zip(turn) {
            turns.entry(call).or_insert(turn);
        }
    }
    turns
}

/// The tools that were called, the largest output first.
fn tool_outputs<'a>(trace: &'a SessionTrace, calls: &[&ModelCall]) -> Outputs<'a> {
    let growth = growth_after(calls);
    let mut outputs: Grouped<Cow<'a, str>, ToolOutput> = Grouped::new();
    // By model call: which tools it called, and how much they gave back.
    let mut fed: Grouped<&str, Vec<(usize, usize)>> = Grouped::new();
    for event in &trace.events {
        let TraceEvent::ToolCall {
            name,
            input,
            output,
            ..
        } = &**event
        else {
            continue;
        };
        let bytes = json_length(output);
        let position = outputs.position(tool_name(name, input));
        outputs.groups[position].1.calls += 1;
        outputs.groups[position].1.bytes += bytes;
        if let Some(call) = event.place().and_then(|place| place.call_ref.as_deref()) {
            fed.of(call).push((position, bytes));
        }
    }
    let mut outputs = outputs.groups;
    for (call, tools) in fed.groups {
        let Some(grown) = growth.get(call) else {
            continue;
        };
        let all: usize = tools.iter().map(|(_, bytes)| bytes).sum();
        for (position, bytes) in tools {
            outputs[position].1.growth += grown * share(bytes, all).unwrap_or(0.0);
        }
    }
    outputs.sort_by_key(|(_, output)| std::cmp::Reverse(output.bytes));
    outputs
}

/// By call id: how much more input the next call that counted had, less what the call itself put out. An upper bound of
/// what its tools added, because users and harnesses add text too.
fn growth_after<'a>(calls: &[&'a ModelCall]) -> FastMap<&'a str, f64> {
    let counted = |call: &&&ModelCall| input_of(&call.tokens).is_some_and(|input| input > 0);
    let counted: Vec<&ModelCall> = calls.iter().filter(counted).copied().collect();
    counted
        .windows(2)
        .filter_map(|pair| {
            let (before, after) = (&pair[0].tokens, &pair[1].tokens);
            let grown = input_of(after)?.checked_sub(input_of(before)?)?;
            let grown = grown.saturating_sub(before.output.unwrap_or(0));
            Some((pair[0].id.as_str(), grown as f64))
        })
        .collect()
}

/// Bytes of a value as the model sees it: a text as it is, anything else as JSON.
fn json_length(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    match value {
        Value::Null => 0,
        Value::String(text) => text.len(),
        other => {
            let mut counter = Counter(0);
            // Writing to a counter cannot fail.
            serde_json::to_writer(&mut counter, other).map_or(0, |()| counter.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzers::testing::{boundary, call, finding, model_call, placed, trace};
    use assize_contracts::EventPlace;
    use serde_json::json;

    fn returning(name: &str, bytes: usize, model_call: &str) -> TraceEvent {
        let place = EventPlace {
            call_ref: Some(model_call.to_owned()),
            ..EventPlace::default()
        };
        let mut event = placed(call(name, json!(bytes)), place);
        if let TraceEvent::ToolCall { output, .. } = &mut event {
            *output = Value::from("x".repeat(bytes));
        }
        event
    }

    #[test]
    fn growth_is_shared_among_the_tools_that_fed_it() {
        let mut trace = trace(vec![
            returning("read", 300, "m1"),
            returning("grep", 100, "m1"),
            returning("read", 50, "m2"),
        ]);
        trace.model_calls = vec![
            model_call("m1", 1000, 100),
            model_call("m2", 1500, 10),
            model_call("m3", 1400, 10),
        ];
        let rows = |key| finding(&TOKENS, &trace, key).unwrap()["rows"].take();
        assert_eq!(
            rows("tokens_growth_by_tool"),
            json!([["read", "300"], ["grep", "100"]])
        );
        assert_eq!(
            rows("tokens_tool_output"),
            json!([["read", "2", "350", "77.8%"], ["grep", "1", "100", "22.2%"]])
        );
        assert_eq!(
            rows("tokens_by_call")[1],
            json!(["2", "unknown", "1500", "500", "10", "0.0%", "unknown"])
        );
        assert_eq!(
            TOKENS.find(&trace).summary,
            "cache use unknown, input grew by 400 tokens, 77.8% of tool output from read"
        );
    }

    #[test]
    fn calls_stand_in_their_turns_and_a_failed_request_hides_no_growth() {
        let mut trace = trace(vec![
            boundary(0),
            returning("read", 300, "m1"),
            boundary(1),
            returning("grep", 100, "m3"),
        ]);
        let failed = ModelCall {
            status: Some(529),
            tokens: TokenBreakdown::default(),
            ..model_call("m2", 0, 0)
        };
        trace.model_calls = vec![
            model_call("m1", 1000, 100),
            failed,
            model_call("m3", 1500, 10),
        ];
        let rows = |key| finding(&TOKENS, &trace, key).unwrap()["rows"].take();
        let columns = |row: usize| {
            let row = rows("tokens_by_call")[row].take();
            json!([row[1], row[2], row[3]])
        };
        assert_eq!(columns(0), json!(["0", "1000", ""]));
        assert_eq!(columns(1), json!(["unknown", "unknown", ""]));
        assert_eq!(columns(2), json!(["1", "1500", "500"]));
        assert_eq!(rows("tokens_growth_by_tool"), json!([["read", "400"]]));
    }

    #[test]
    fn what_nobody_counted_is_not_found() {
        let result = TOKENS.find(&SessionTrace::default());
        assert!(result.findings.is_empty());
        assert_eq!(result.summary, "cache use unknown");
    }

    #[test]
    fn cache_reads_are_a_share_of_all_input() {
        let tokens = TokenBreakdown {
            input: Some(20),
            cache_read: Some(75),
            cache_write: Some(5),
            ..TokenBreakdown::default()
        };
        assert_eq!(cache_hit_rate(&tokens), Some(0.75));
        assert_eq!(cache_hit_rate(&TokenBreakdown::default()), None);
    }
}
