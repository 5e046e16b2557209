//! A trace as the page's trial view needs it: turn by turn, long texts cut, within a number of bytes.

use super::escape::visible;
use super::waterfall::{Waterfall, waterfall};
use assize_contracts::{ModelCall, SessionTrace, TraceEvent};
use serde::Serialize;
use serde_json::Value;

/// Characters that a text is cut to, from generous to stingy, until the trace fits.
const LENGTHS: [usize; 6] = [100_000, 20_000, 6_000, 2_000, 600, 200];

/// Bytes of JSON around the texts of an event.
const FRAME: usize = 80;

/// The part of a trace that the page embeds.
#[derive(Debug, Serialize)]
struct Shown {
    turns: Vec<TurnShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waterfall: Option<Waterfall>,
    /// Events that were left out in the middle.
    #[serde(skip_serializing_if = "is_zero")]
    dropped: usize,
    /// Texts that were cut.
    #[serde(skip_serializing_if = "is_zero")]
    cut: usize,
}

#[derive(Debug, Default, Serialize)]
struct TurnShown {
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    /// All input, cached or not, and all output of the turn's model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    events: Vec<EventShown>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
enum EventShown {
    Thought {
        text: TextShown,
        #[serde(skip_serializing_if = "Option::is_none")]
        ms: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    Text {
        text: TextShown,
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    Call {
        tool: String,
        input: TextShown,
        output: TextShown,
        #[serde(skip_serializing_if = "Option::is_none")]
        ms: Option<f64>,
        /// The time is an upper bound.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        bound: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        ok: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<TextShown>,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    Error {
        text: TextShown,
        recoverable: bool,
    },
}

/// A text, or its beginning and how many bytes it had.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum TextShown {
    Whole(String),
    Beginning { text: String, of: usize },
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The trace as JSON of at most about so many bytes.
pub(crate) fn compact(trace: &SessionTrace, most: usize) -> String {
    for length in LENGTHS {
        if estimate(trace, length) > most && length != LENGTHS[LENGTHS.len() - 1] {
            continue;
        }
        let json = encode(trace, length, usize::MAX);
        if json.len() <= most {
            return json;
        }
    }
    let shortest = LENGTHS[LENGTHS.len() - 1];
    let mut events = (most / (shortest + FRAME)).clamp(8, trace.events.len().max(8));
    loop {
        let json = encode(trace, shortest, events);
        if json.len() <= most || events <= 8 {
            return json;
        }
        events /= 2;
    }
}

fn estimate(trace: &SessionTrace, length: usize) -> usize {
    let of = |text: &str| text.len().min(length);
    let of_value = |value: &Value| match value {
        Value::Null => 0,
        Value::String(text) => of(text),
        other => of(&other.to_string()),
    };
    let event = |event: &TraceEvent| match event {
        TraceEvent::Reasoning { content, .. } | TraceEvent::TextOutput { content, .. } => {
            of(content)
        }
        TraceEvent::ToolCall { input, output, .. } => of_value(input) + of_value(output),
        TraceEvent::Error { message, .. } => of(message),
        TraceEvent::TurnBoundary { .. } => 0,
    };
    trace.events.iter().map(|found| event(found) + FRAME).sum()
}

/// With texts of at most `length` characters, and `most` events: half from the beginning, half from the end.
fn encode(trace: &SessionTrace, length: usize, most: usize) -> String {
    let total = trace.events.len();
    let dropped = total.saturating_sub(most);
    let gap = (total - dropped) / 2..(total - dropped) / 2 + dropped;
    let mut cutter = Cutter { length, cut: 0 };
    let mut turns: Vec<TurnShown> = vec![TurnShown::default()];
    let mut boundaries = 0;
    for (place, event) in trace.events.iter().enumerate() {
        if let TraceEvent::TurnBoundary { .. } = &**event {
            turns.push(turn(trace, boundaries));
            boundaries += 1;
        } else if !gap.contains(&place)
            && let (Some(turn), Some(shown)) = (turns.last_mut(), cutter.event(event))
        {
            turn.events.push(shown);
        }
    }
    // There is usually nothing before the first boundary.
    turns.retain(|turn| turn.number.is_some() || !turn.events.is_empty());
    let shown = Shown {
        turns,
        waterfall: waterfall(trace),
        dropped,
        cut: cutter.cut,
    };
    serde_json::to_string(&shown).unwrap_or_else(|_| "{\"turns\":[]}".to_owned())
}

/// The heading of a turn.
fn turn(trace: &SessionTrace, place: usize) -> TurnShown {
    let Some(turn) = trace.turns.get(place) else {
        return TurnShown {
            number: Some(place as u64),
            ..TurnShown::default()
        };
    };
    let calls = calls_of_turn(trace, place);
    let sum = |of: fn(&ModelCall) -> Option<u64>| -> Option<u64> {
        let sum = calls.iter().map(|call| of(call)).sum::<Option<u64>>();
        sum.filter(|_| !calls.is_empty())
    };
    TurnShown {
        number: Some(turn.number),
        ms: turn.duration_ms.map(|ms| ms.value()),
        input: sum(input_of),
        output: sum(output_of),
        events: Vec::new(),
    }
}

/// The calls that a turn's events name, or the one in its place where there are as many calls as turns.
fn calls_of_turn(trace: &SessionTrace, place: usize) -> Vec<&ModelCall> {
    let Some(turn) = trace.turns.get(place) else {
        return Vec::new();
    };
    let names = |event: &TraceEvent| event.place()?.call_ref.clone();
    let named: Vec<String> = turn
        .events
        .iter()
        .filter_map(|event| names(event))
        .collect();
    let main: Vec<&ModelCall> = main_calls(trace).collect();
    match (named.is_empty(), main.len() == trace.turns.len()) {
        (false, _) => main
            .into_iter()
            .filter(|call| named.contains(&call.id))
            .collect(),
        (true, true) => main.get(place).copied().into_iter().collect(),
        (true, false) => Vec::new(),
    }
}

/// Calls that belong to the task itself.
pub(crate) fn main_calls(trace: &SessionTrace) -> impl Iterator<Item = &ModelCall> {
    trace.model_calls.iter().filter(|call| !call.side)
}

/// All input of a call, cached or not. Absent when the uncached part was not counted.
pub(crate) fn input_of(call: &ModelCall) -> Option<u64> {
    let cached = [call.tokens.cache_read, call.tokens.cache_write];
    let cached = cached.into_iter().flatten();
    Some(cached.fold(call.tokens.input?, u64::saturating_add))
}

fn output_of(call: &ModelCall) -> Option<u64> {
    let reasoning = call.tokens.reasoning.unwrap_or(0);
    Some(call.tokens.output?.saturating_add(reasoning))
}

struct Cutter {
    length: usize,
    cut: usize,
}

impl Cutter {
    fn event(&mut self, event: &TraceEvent) -> Option<EventShown> {
        let agent = |context: &assize_contracts::EventContext| {
            let agent = context.as_ref()?.agent_id.as_deref()?;
            Some(visible(agent))
        };
        Some(match event {
            TraceEvent::Reasoning {
                content,
                duration_ms,
                token_count,
                context,
            } => EventShown::Thought {
                text: self.text(content),
                ms: duration_ms.map(|ms| ms.value()),
                tokens: *token_count,
                agent: agent(context),
            },
            TraceEvent::TextOutput {
                content,
                token_count,
                context,
            } => EventShown::Text {
                text: self.text(content),
                tokens: *token_count,
                agent: agent(context),
            },
            TraceEvent::ToolCall {
                name,
                input,
                output,
                duration_ms,
                success,
                error,
                context,
            } => EventShown::Call {
                tool: visible(name),
                input: self.value(input),
                output: self.value(output),
                ms: duration_ms.map(|ms| ms.value()),
                bound: event.duration_is_bound(),
                ok: *success,
                error: error.as_deref().map(|error| self.text(error)),
                agent: agent(context),
            },
            TraceEvent::Error {
                message,
                recoverable,
                ..
            } => EventShown::Error {
                text: self.text(message),
                recoverable: *recoverable,
            },
            TraceEvent::TurnBoundary { .. } => return None,
        })
    }

    fn value(&mut self, value: &Value) -> TextShown {
        match value {
            Value::Null => TextShown::Whole(String::new()),
            Value::String(text) => self.text(text),
            other => {
                let text = serde_json::to_string_pretty(other);
                self.text(&text.unwrap_or_default())
            }
        }
    }

    fn text(&mut self, text: &str) -> TextShown {
        match text.char_indices().nth(self.length) {
            Some((end, _)) => {
                self.cut += 1;
                TextShown::Beginning {
                    text: visible(&text[..end]),
                    of: text.len(),
                }
            }
            None => TextShown::Whole(visible(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::{Timestamp, TokenBreakdown};

    fn trace(events: usize, text: &str) -> SessionTrace {
        let boundary = TraceEvent::TurnBoundary {
            turn_number: 0,
            timestamp: Timestamp::from_unix_ms(0),
        };
        let call = |number: usize| TraceEvent::ToolCall {
            name: "bash".into(),
            input: serde_json::json!({"command": format!("step {number}")}),
            output: text.into(),
            duration_ms: None,
            success: Some(true),
            error: None,
            context: None,
        };
        let events = std::iter::once(boundary).chain((0..events).map(call));
        SessionTrace::from_events("s".into(), events.collect(), TokenBreakdown::default())
    }

    fn check(events: usize, text: &str, most: usize) -> Value {
        let json = compact(&trace(events, text), most);
        assert!(json.len() <= most, "{} bytes of {most}", json.len());
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_small_trace_is_kept_whole() {
        let shown = check(3, "fine", 10_000);
        assert_eq!(shown["turns"][0]["events"].as_array().unwrap().len(), 3);
        assert_eq!(shown["turns"][0]["events"][0]["output"], "fine");
        assert!(shown.get("cut").is_none() && shown.get("dropped").is_none());
    }

    #[test]
    fn long_texts_are_cut_and_say_how_long_they_were() {
        let shown = check(3, &"x".repeat(50_000), 30_000);
        let output = &shown["turns"][0]["events"][0]["output"];
        assert_eq!(output["of"], 50_000);
        assert_eq!(shown["cut"], 3);
    }

    #[test]
    fn of_endless_traces_the_beginning_and_the_end_are_kept() {
        let shown = check(5_000, "\u{1b}[2J<b>", 40_000);
        let events = shown["turns"][0]["events"].as_array().unwrap();
        let input = |event: &Value| event["input"].to_string();
        assert!(input(&events[0]).contains("step 0"));
        assert!(input(events.last().unwrap()).contains("step 4999"));
        assert!(shown["dropped"].as_u64().unwrap() > 4_000);
    }
}
