//! The time of one trial, bar by bar: start-up, model calls with the wait for their first token, tools.

use super::escape::visible;
use assize_contracts::{Millis, SessionTrace, Timestamp, TraceEvent};
use serde::Serialize;

/// More bars than these are no picture; the first ones are kept.
const MOST_BARS: usize = 200;

/// The bars of a trial, from the moment it was given its task.
#[derive(Debug, Serialize)]
pub(crate) struct Waterfall {
    bars: Vec<Bar>,
    /// Milliseconds from the task to the end of the last bar, or to the end of the agent where that is known.
    length: f64,
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct Bar {
    is: &'static str,
    name: String,
    /// Milliseconds after the task was given.
    at: f64,
    ms: f64,
    /// Until the first token came, of a model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<f64>,
    /// It took at most that long.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    bound: bool,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// None where no times are known.
pub(crate) fn waterfall(trace: &SessionTrace) -> Option<Waterfall> {
    let mut bars: Vec<Bar> = models(trace).chain(tools(trace)).collect();
    if bars.is_empty() {
        return None;
    }
    let first = bars.iter().map(|bar| bar.at).fold(f64::INFINITY, f64::min);
    let task = trace.user_turns.first();
    let given = task.and_then(|turn| at(&turn.started_at));
    // Clocks of agents and of Assize may differ by a moment.
    let began = given.filter(|given| *given <= first).unwrap_or(first);
    for bar in &mut bars {
        bar.at -= began;
    }
    if let Some(startup) = given.map(|_| first - began).filter(|ms| *ms >= 1.0) {
        bars.push(Bar {
            is: "start",
            name: "start-up".to_owned(),
            at: 0.0,
            ms: startup,
            first: None,
            bound: false,
        });
    }
    bars.sort_by(|a, b| a.at.total_cmp(&b.at));
    let end = bars.iter().map(|bar| bar.at + bar.ms).fold(0.0, f64::max);
    let known: Vec<f64> = trace
        .user_turns
        .iter()
        .filter_map(|turn| Some(at(&turn.started_at)? - began + turn.duration_ms?.value()))
        .collect();
    let length = known.into_iter().fold(end, f64::max);
    let left_out = bars.len().saturating_sub(MOST_BARS);
    bars.truncate(MOST_BARS);
    Some(Waterfall {
        bars,
        length,
        left_out,
    })
}

fn at(timestamp: &Timestamp) -> Option<f64> {
    timestamp.unix_ms().map(|ms| ms as f64)
}

fn models(trace: &SessionTrace) -> impl Iterator<Item = Bar> {
    trace.model_calls.iter().filter_map(|call| {
        Some(Bar {
            is: if call.side { "side" } else { "model" },
            name: visible(&call.model),
            at: at(call.started_at.as_ref()?)?,
            ms: call.duration_ms?.value(),
            first: call.ttft_ms.map(|ms| ms.value()),
            bound: false,
        })
    })
}

fn tools(trace: &SessionTrace) -> impl Iterator<Item = Bar> {
    trace.events.iter().filter_map(|event| match &**event {
        TraceEvent::ToolCall {
            name, duration_ms, ..
        } => Some(Bar {
            is: "tool",
            name: visible(name),
            at: at(event.place()?.timestamp.as_ref()?)?,
            ms: duration_ms.map(Millis::value)?,
            first: None,
            bound: event.duration_is_bound(),
        }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bars_begin_with_the_task() {
        let trace: SessionTrace = serde_json::from_value(json!({
            "sessionId": "s",
            "events": [{"type": "tool_call", "name": "bash", "input": {}, "output": "", "durationMs": 500, "success": true,
                "timestamp": "2026-01-01T00:00:03.000Z", "durationIsBound": true}],
            "turns": [], "summary": {"totalTurns": 1, "totalToolCalls": 1, "totalTokens": {}, "totalDuration": null},
            "userTurns": [{"startedAt": "2026-01-01T00:00:00.000Z", "durationMs": 5000}],
            "modelCalls": [{"id": "call-1", "model": "m", "startedAt": "2026-01-01T00:00:01.000Z", "ttftMs": 200, "durationMs": 1500, "tokens": {}}],
        }))
        .unwrap();
        let found = serde_json::to_value(waterfall(&trace).unwrap()).unwrap();
        assert_eq!(
            found,
            json!({"length": 5000.0, "bars": [
                {"is": "start", "name": "start-up", "at": 0.0, "ms": 1000.0},
                {"is": "model", "name": "m", "at": 1000.0, "ms": 1500.0, "first": 200.0},
                {"is": "tool", "name": "bash", "at": 3000.0, "ms": 500.0, "bound": true},
            ]})
        );
    }

    #[test]
    fn without_times_there_is_none() {
        let trace =
            SessionTrace::from_events("s".into(), Vec::<TraceEvent>::new(), Default::default());
        assert!(waterfall(&trace).is_none());
    }
}
