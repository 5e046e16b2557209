//! Events in Assize's own form, for programs that are written for it.

use super::Line;
use super::story::{Story, millis};
use assize_contracts::{EventPlace, Millis, Timestamp, TokenBreakdown, TraceEvent};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ProgramEvent {
    Text {
        text: String,
    },
    ToolCall {
        name: String,
        #[serde(default)]
        input: Value,
        #[serde(default)]
        output: Value,
        #[serde(default)]
        success: Option<bool>,
        #[serde(default)]
        duration_ms: Option<f64>,
        #[serde(default)]
        error: Option<String>,
    },
    Usage(Usage),
    Error {
        message: String,
        #[serde(default)]
        recoverable: bool,
    },
}

/// The usage of one or several calls of a model; several events add up.
#[derive(Debug, Deserialize)]
struct Usage {
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    cost_usd: Option<f64>,
    model: Option<String>,
}

pub(super) fn read(event: Value, at: Option<i64>, story: &mut Story) -> Line {
    let Ok(event) = serde_json::from_value(event) else {
        return Line::Strange;
    };
    match event {
        ProgramEvent::Text { text } => story.add_text(&text, at),
        ProgramEvent::ToolCall {
            name,
            input,
            output,
            success,
            duration_ms,
            error,
        } => {
            story.answer.clear();
            let (began, took, is_bound) = times(story, at, duration_ms);
            let context = EventPlace {
                timestamp: began.map(Timestamp::from_unix_ms),
                duration_is_bound: is_bound,
                ..EventPlace::default()
            };
            story.push(TraceEvent::ToolCall {
                name,
                input,
                output,
                duration_ms: took,
                success,
                error,
                context: Some(Box::new(context)),
            });
            return Line::Understood;
        }
        ProgramEvent::Usage(usage) => {
            let tokens = TokenBreakdown {
                input: usage.input,
                output: usage.output,
                reasoning: usage.reasoning,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
                ..TokenBreakdown::default()
            };
            let model = usage.model.as_deref().unwrap_or("unknown");
            story.add_usage(model, tokens, usage.cost_usd);
        }
        ProgramEvent::Error {
            message,
            recoverable,
        } => story.complain(&message, recoverable, at),
    }
    story.since = at;
    Line::Understood
}

/// The start and duration of a call, and whether it is a bound. A call is reported when it is over; one without a
/// duration began at the earliest when the program last reported something else.
fn times(
    story: &Story,
    over: Option<i64>,
    duration_ms: Option<f64>,
) -> (Option<i64>, Option<Millis>, bool) {
    if let Some(took) = millis(duration_ms) {
        let began = over.and_then(|over| over.checked_sub(took.value() as i64));
        return (began.filter(|began| *began >= 0), Some(took), false);
    }
    match over.zip(story.since) {
        Some((over, since)) => {
            let took = millis(Some(over.saturating_sub(since) as f64));
            (Some(since), took, took.is_some())
        }
        None => (None, None, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputForm;
    use assize_contracts::Usd;

    fn story(lines: &[&str]) -> Story {
        let mut story = Story::new(OutputForm::Events);
        for line in lines {
            story.take(line, Some(0));
        }
        story
    }

    #[test]
    fn every_kind_of_event_is_understood() {
        let story = story(&[
            r#"{"type":"text","text":"Looking."}"#,
            r#"{"type":"tool_call","name":"sh","input":{"c":1},"output":"x","success":true,"duration_ms":12.5}"#,
            r#"{"type":"text","text":"Do"}"#,
            r#"{"type":"text","text":"ne."}"#,
            r#"{"type":"error","message":"slow","recoverable":true}"#,
            r#"{"type":"usage","input":10,"output":5,"cache_read":3,"cost_usd":0.5,"model":"m"}"#,
            r#"{"type":"usage","input":1,"output":1,"cache_read":0,"cost_usd":0.25}"#,
        ]);
        assert_eq!((story.answer.as_str(), story.events.len()), ("Done.", 5));
        assert_eq!(story.tool_calls()[0].duration_ms, Millis::new(12.5));
        let tokens = story.tokens.unwrap();
        assert_eq!((tokens.total, tokens.active), (Some(20), Some(17)));
        assert_eq!(story.cost.total_usd, Usd::new(0.75));
        assert_eq!((story.fatal.as_deref(), story.complaint()), (None, None));
        assert_eq!(story.model_calls.len(), 2);
    }

    #[test]
    fn a_call_began_before_it_was_reported() {
        let timed = |line: &str| {
            let mut story = Story::new(OutputForm::Events);
            story.take(r#"{"type":"text","text":"Looking."}"#, Some(1_000));
            story.take(line, Some(4_000));
            let call = story.events.pop().unwrap();
            let began = call.timestamp().and_then(Timestamp::unix_ms);
            let took = call.tool_call_record().unwrap().duration_ms;
            (began, took, call.duration_is_bound())
        };
        assert_eq!(
            timed(r#"{"type":"tool_call","name":"sh","duration_ms":500}"#),
            (Some(3_500), Millis::new(500.0), false)
        );
        assert_eq!(
            timed(r#"{"type":"tool_call","name":"sh"}"#),
            (Some(1_000), Millis::new(3_000.0), true)
        );
        assert_eq!(
            timed(r#"{"type":"tool_call","name":"sh","duration_ms":1e300}"#),
            (None, Millis::new(1e300), false)
        );
    }

    #[test]
    fn a_count_that_one_call_does_not_tell_is_unknown() {
        let story = story(&[
            r#"{"type":"usage","input":1,"output":1,"cost_usd":1}"#,
            r#"{"type":"usage","output":1}"#,
        ]);
        assert_eq!(story.tokens.unwrap().input, None);
        assert_eq!(story.cost.total_usd, None);
    }

    #[test]
    fn lines_that_are_no_events_are_counted_and_the_rest_is_kept() {
        let story = story(&[
            "",
            "starting…",
            r#"{"type":"song"}"#,
            r#"{"type":"text","text":"x"}"#,
            "[1]",
        ]);
        assert_eq!(story.answer, "x");
        assert_eq!(
            story.complaint().unwrap(),
            "3 lines are no events, the first is: starting…"
        );
    }

    #[test]
    fn the_first_fatal_error_counts() {
        let story = story(&[
            r#"{"type":"error","message":"no key"}"#,
            r#"{"type":"error","message":"gone","recoverable":false}"#,
        ]);
        assert_eq!(story.fatal.as_deref(), Some("no key"));
    }
}
