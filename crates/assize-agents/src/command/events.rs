//! Events that a program tells about itself, one JSON object per line.

use assize_contracts::{
    CostBreakdown, CostSource, EventPlace, Millis, ModelCall, Timestamp, TokenBreakdown,
    ToolCallRecord, TraceEvent, Usd,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// How much of a line that is no event is shown.
const EXCERPT: usize = 200;

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

/// What one or several calls of a model took; several events add up.
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

/// What the events of one prompt come to.
#[derive(Default)]
pub(super) struct Told {
    pub(super) events: Vec<Arc<TraceEvent>>,
    /// The text since the last tool call.
    pub(super) answer: String,
    pub(super) tool_calls: Vec<ToolCallRecord>,
    pub(super) tokens: Option<TokenBreakdown>,
    pub(super) cost: CostBreakdown,
    pub(super) model_calls: Vec<ModelCall>,
    /// The first error that the program did not recover from.
    pub(super) fatal: Option<String>,
    strange: Strange,
}

/// Lines that are no events.
#[derive(Default)]
struct Strange {
    count: u64,
    first: String,
}

impl Told {
    /// Takes one line. `at` is when it came, where that is known.
    pub(super) fn take(&mut self, line: &str, at: Option<i64>) {
        if line.trim().is_empty() {
            return;
        }
        match serde_json::from_str(line) {
            Ok(event) => self.record(event, at),
            Err(_) => {
                if self.strange.count == 0 {
                    self.strange.first = line.chars().take(EXCERPT).collect();
                }
                self.strange.count += 1;
            }
        }
    }

    /// One sentence about the lines that were no events.
    pub(super) fn complaint(&self) -> Option<String> {
        let Strange { count, first } = &self.strange;
        (*count > 0).then(|| format!("{count} lines are no events, the first is: {first}"))
    }

    fn record(&mut self, event: ProgramEvent, at: Option<i64>) {
        let context = at.map(|at| {
            Box::new(EventPlace {
                timestamp: Some(Timestamp::from_unix_ms(at)),
                ..EventPlace::default()
            })
        });
        let event = match event {
            ProgramEvent::Text { text } => {
                self.answer.push_str(&text);
                TraceEvent::TextOutput {
                    content: text,
                    token_count: None,
                    context,
                }
            }
            ProgramEvent::ToolCall {
                name,
                input,
                output,
                success,
                duration_ms,
                error,
            } => {
                self.answer.clear();
                let duration_ms = duration_ms.filter(|ms| *ms >= 0.0).and_then(Millis::new);
                self.tool_calls.push(ToolCallRecord {
                    category: name.clone(),
                    name: name.clone(),
                    success,
                    duration_ms,
                    error: error.clone(),
                });
                TraceEvent::ToolCall {
                    name,
                    input,
                    output,
                    duration_ms,
                    success,
                    error,
                    context,
                }
            }
            ProgramEvent::Usage(usage) => return self.add_usage(usage),
            ProgramEvent::Error {
                message,
                recoverable,
            } => {
                if !recoverable && self.fatal.is_none() {
                    self.fatal = Some(message.clone());
                }
                TraceEvent::Error {
                    message,
                    recoverable,
                    context,
                }
            }
        };
        self.events.push(Arc::new(event));
    }

    fn add_usage(&mut self, usage: Usage) {
        let tokens = TokenBreakdown {
            input: usage.input,
            output: usage.output,
            reasoning: usage.reasoning,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            ..TokenBreakdown::default()
        }
        .with_totals();
        let cost_usd = usage
            .cost_usd
            .filter(|cost| *cost >= 0.0)
            .and_then(Usd::new);
        let cost = CostBreakdown {
            total_usd: cost_usd,
            ..CostBreakdown::default()
        };
        self.cost = match self.tokens {
            None => cost,
            Some(_) => self.cost.plus(&cost),
        };
        self.tokens = Some(self.tokens.map_or(tokens, |so_far| so_far.plus(&tokens)));
        self.model_calls.push(ModelCall {
            id: (self.model_calls.len() + 1).to_string(),
            model: usage.model.unwrap_or_else(|| "unknown".to_owned()),
            api: None,
            side: false,
            started_at: None,
            ttft_ms: None,
            duration_ms: None,
            tokens,
            cost_usd,
            cost_source: cost_usd.map(|_| CostSource::Reported),
            stop_reason: None,
            status: None,
            retries: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Told {
        let mut told = Told::default();
        for line in lines {
            told.take(line, Some(0));
        }
        told
    }

    #[test]
    fn every_kind_of_event_is_understood() {
        let told = told(&[
            r#"{"type":"text","text":"Looking."}"#,
            r#"{"type":"tool_call","name":"sh","input":{"c":1},"output":"x","success":true,"duration_ms":12.5}"#,
            r#"{"type":"text","text":"Do"}"#,
            r#"{"type":"text","text":"ne."}"#,
            r#"{"type":"error","message":"slow","recoverable":true}"#,
            r#"{"type":"usage","input":10,"output":5,"cache_read":3,"cost_usd":0.5,"model":"m"}"#,
            r#"{"type":"usage","input":1,"output":1,"cache_read":0,"cost_usd":0.25}"#,
        ]);
        assert_eq!((told.answer.as_str(), told.events.len()), ("Done.", 5));
        assert_eq!(told.tool_calls[0].duration_ms, Millis::new(12.5));
        let tokens = told.tokens.unwrap();
        assert_eq!((tokens.total, tokens.active), (Some(20), Some(17)));
        assert_eq!(told.cost.total_usd, Usd::new(0.75));
        assert_eq!((told.fatal.as_deref(), told.complaint()), (None, None));
        assert_eq!(told.model_calls.len(), 2);
    }

    #[test]
    fn a_count_that_one_call_does_not_tell_is_unknown() {
        let told = told(&[
            r#"{"type":"usage","input":1,"output":1,"cost_usd":1}"#,
            r#"{"type":"usage","output":1}"#,
        ]);
        assert_eq!(told.tokens.unwrap().input, None);
        assert_eq!(told.cost.total_usd, None);
    }

    #[test]
    fn lines_that_are_no_events_are_counted_and_the_rest_is_kept() {
        let told = told(&[
            "",
            "starting…",
            r#"{"type":"song"}"#,
            r#"{"type":"text","text":"x"}"#,
            "[1]",
        ]);
        assert_eq!(told.answer, "x");
        assert_eq!(
            told.complaint().unwrap(),
            "3 lines are no events, the first is: starting…"
        );
    }

    #[test]
    fn the_first_fatal_error_counts() {
        let told = told(&[
            r#"{"type":"error","message":"no key"}"#,
            r#"{"type":"error","message":"gone","recoverable":false}"#,
        ]);
        assert_eq!(told.fatal.as_deref(), Some("no key"));
    }
}
