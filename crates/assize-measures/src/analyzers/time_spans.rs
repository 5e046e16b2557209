//! The timed parts of a trace, as spans on one clock. Clocks may jump and providers may err: spans that end before they begin
//! are left out.

use super::grouped::FastMap;
use super::tool_name::tool_name;
use assize_contracts::{Millis, ModelCall, SessionTrace, Timestamp, TraceEvent, UserTurn};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Thirty years, in milliseconds. A longer duration was not measured.
const LONGEST: f64 = 1e12;

/// True when this is a plausible duration, in milliseconds.
pub(super) fn is_duration(ms: f64) -> bool {
    (0.0..LONGEST).contains(&ms)
}

/// The activity of a moment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Part<'a> {
    FirstToken,
    Generation,
    /// A model call without the time of its first token.
    ModelCall,
    FailedRequest,
    Tool(Cow<'a, str>),
    /// From the user's message, which starts the program, to the first request to a model.
    StartUp,
    /// From the last thing that happened until the agent gave the word back.
    WindDown,
}

impl Part<'_> {
    /// The precedence of a part when several are active.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::FirstToken => 0,
            Self::Generation => 1,
            Self::ModelCall => 2,
            Self::FailedRequest => 3,
            Self::Tool(_) => 4,
            Self::StartUp => 5,
            Self::WindDown => 6,
        }
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstToken => f.write_str("waiting for the first token"),
            Self::Generation => f.write_str("generation"),
            Self::ModelCall => f.write_str("model calls"),
            Self::FailedRequest => f.write_str("failed requests"),
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::StartUp => f.write_str("start-up of the agent"),
            Self::WindDown => f.write_str("ending of the agent"),
        }
    }
}

/// A stretch of time, in milliseconds since the session began.
pub(super) struct Span<'a> {
    pub(super) part: Part<'a>,
    pub(super) start: f64,
    pub(super) end: f64,
    /// The end is only the next thing known to have happened, to us or to whoever wrote the trace.
    pub(super) is_bound: bool,
}

pub(super) struct TurnTime {
    pub(super) number: u64,
    pub(super) ms: f64,
}

pub(super) struct Timeline<'a> {
    pub(super) spans: Vec<Span<'a>>,
    pub(super) turns: Vec<TurnTime>,
    start: f64,
    end: f64,
}

impl<'a> Timeline<'a> {
    /// `None` when the trace has no times at all.
    pub(super) fn of(trace: &'a SessionTrace) -> Option<Self> {
        let times: Vec<Option<f64>> = trace
            .events
            .iter()
            .map(|event| at(event.timestamp()))
            .collect();
        let first_tools = first_tools(trace);
        let mut spans: Vec<Span<'a>> = trace
            .model_calls
            .iter()
            .flat_map(|call| model_spans(call, first_tools.get(call.id.as_str()).copied()))
            .collect();
        spans.extend(tool_spans(trace, &times));
        let of_agent = agent_spans(trace, &times, &spans);
        spans.extend(of_agent);
        spans.retain(|span| is_duration(span.end - span.start));
        spans.sort_by(|a, b| a.start.total_cmp(&b.start));

        let known = || times.iter().copied().flatten();
        let starts = known().chain(spans.iter().map(|span| span.start));
        let ends = known().chain(spans.iter().map(|span| span.end));
        let total = trace
            .summary
            .total_duration
            .map(Millis::value)
            .filter(|total| is_duration(*total));
        let Some(start) = starts.reduce(f64::min) else {
            let end = total?;
            return Some(Self {
                spans,
                turns: Vec::new(),
                start: 0.0,
                end,
            });
        };
        // The summary may know of an end that no event has.
        let end = ends.fold(start + total.unwrap_or(0.0), f64::max);
        let turns = turn_times(trace, &times, end);
        Some(Self {
            spans,
            turns,
            start,
            end,
        })
    }

    pub(super) fn wall(&self) -> f64 {
        self.end - self.start
    }
}

fn at(timestamp: Option<&Timestamp>) -> Option<f64> {
    Some(timestamp?.unix_ms()? as f64)
}

/// The earliest start of the first tool of each answer, by the calls' ids. Agents may run it before the answer has ended.
fn first_tools(trace: &SessionTrace) -> FastMap<&str, f64> {
    let mut first: FastMap<&str, f64> = FastMap::default();
    let is_tool = |event: &&Arc<TraceEvent>| matches!(***event, TraceEvent::ToolCall { .. });
    for event in trace.events.iter().filter(is_tool) {
        let call_ref = event.place().and_then(|place| place.call_ref.as_deref());
        if let Some((call, time)) = call_ref.zip(at(event.timestamp())) {
            let known = first.entry(call).or_insert(time);
            *known = known.min(time);
        }
    }
    first
}

/// The time of the program itself before its first request and after its last work, per message of the user. Only where
/// requests were seen: otherwise the start of its work is unknown.
fn agent_spans<'a>(
    trace: &SessionTrace,
    times: &[Option<f64>],
    spans: &[Span<'a>],
) -> Vec<Span<'a>> {
    // A title may be asked for while the agent still starts.
    let is_main = |call: &&ModelCall| call.is_seen() && !call.side;
    let seen = trace.model_calls.iter().filter(is_main);
    let requests: Vec<f64> = seen
        .filter_map(|call| at(call.started_at.as_ref()))
        .collect();
    let span = |part, start, end| Span {
        part,
        start,
        end,
        is_bound: false,
    };
    let of_turn = |turn: &UserTurn| {
        let start = at(Some(&turn.started_at))?;
        let end = start + turn.duration_ms?.value();
        let is_in = |time: &f64| (start..=end).contains(time);
        let first = requests.iter().copied().filter(is_in).reduce(f64::min)?;
        let ends = spans.iter().map(|span| span.end);
        let known = times.iter().copied().flatten().chain(ends);
        let last = known.filter(is_in).fold(first, f64::max);
        Some([
            span(Part::StartUp, start, first),
            span(Part::WindDown, last, end),
        ])
    };
    trace
        .user_turns
        .iter()
        .filter_map(of_turn)
        .flatten()
        .collect()
}

fn model_spans<'a>(call: &ModelCall, first_tool: Option<f64>) -> Vec<Span<'a>> {
    let span = |part, start, end| Span {
        part,
        start,
        end,
        is_bound: false,
    };
    let Some((start, duration)) = at(call.started_at.as_ref()).zip(call.duration_ms) else {
        return Vec::new();
    };
    let end = start + duration.value();
    // Time in which a tool may already run counts as the tool's, so that it stays an upper bound.
    let end = first_tool.map_or(end, |tool| tool.min(end).max(start));
    let first = call
        .ttft_ms
        .map(|ttft| start + ttft.value())
        .filter(|first| (start..=end).contains(first));
    match first {
        _ if call.status.is_some_and(|status| status >= 400) => {
            vec![span(Part::FailedRequest, start, end)]
        }
        Some(first) => vec![
            span(Part::FirstToken, start, first),
            span(Part::Generation, first, end),
        ],
        None => vec![span(Part::ModelCall, start, end)],
    }
}

fn tool_spans<'a>(trace: &'a SessionTrace, times: &[Option<f64>]) -> Vec<Span<'a>> {
    // Events may be out of order, so what comes next is looked up among all times.
    let mut sorted: Vec<f64> = times.iter().copied().flatten().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let next_after = |start: f64| {
        sorted
            .get(sorted.partition_point(|time| *time <= start))
            .copied()
    };
    trace
        .events
        .iter()
        .zip(times)
        .filter_map(|(event, start)| {
            let TraceEvent::ToolCall {
                name,
                input,
                duration_ms,
                ..
            } = &**event
            else {
                return None;
            };
            let start = (*start)?;
            let end = match duration_ms {
                Some(duration) => start + duration.value(),
                None => next_after(start)?,
            };
            Some(Span {
                part: Part::Tool(tool_name(name, input)),
                start,
                end,
                is_bound: duration_ms.is_none() || event.duration_is_bound(),
            })
        })
        .collect()
}

/// From each boundary to the next in time, the last one to the end.
fn turn_times(trace: &SessionTrace, times: &[Option<f64>], end: f64) -> Vec<TurnTime> {
    let mut boundaries: Vec<(u64, f64)> = trace
        .events
        .iter()
        .zip(times)
        .filter_map(|(event, time)| match **event {
            TraceEvent::TurnBoundary { turn_number, .. } => Some((turn_number, (*time)?)),
            _ => None,
        })
        .collect();
    boundaries.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let ends = boundaries
        .iter()
        .skip(1)
        .map(|(_, start)| *start)
        .chain([end]);
    boundaries
        .iter()
        .zip(ends)
        .map(|(&(number, start), end)| TurnTime {
            number,
            ms: end - start,
        })
        .filter(|turn| is_duration(turn.ms))
        .collect()
}
