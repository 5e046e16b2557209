//! The sum of a program's own output: events in order, the answer, the usage it reports, its end.

use super::{Line, OutputForm};
use assize_contracts::{
    CostBreakdown, CostSource, EventPlace, Millis, ModelCall, ProviderError, Timestamp,
    TokenBreakdown, ToolCallRecord, TraceEvent, Usd,
};
use assize_llm::mentions_context_overflow;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// The length shown of a line that is no event.
const EXCERPT: usize = 200;

/// The result of one prompt, as the program reports it.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) events: Vec<Arc<TraceEvent>>,
    /// The text since the last tool call.
    pub(crate) answer: String,
    pub(crate) tokens: Option<TokenBreakdown>,
    /// The usage of earlier prompts of the session, as the program reports it. Some include it in their later sums.
    pub(crate) earlier: Option<TokenBreakdown>,
    pub(crate) cost: CostBreakdown,
    pub(crate) model_calls: Vec<ModelCall>,
    /// The first error that the program did not recover from.
    pub(crate) fatal: Option<String>,
    /// The LLM, and not the agent, is why it ended.
    pub(crate) llm_failure: Option<LlmFailure>,
    /// The program's name for its session, to continue it.
    pub(crate) session: Option<String>,
    /// The program said that it came to the end of its turn.
    pub(crate) is_done: bool,
    /// The program used up the turns it was allowed.
    pub(crate) is_at_limit: bool,
    /// The subagent that the events are about. Its text is no answer to the user.
    pub(super) agent: Option<String>,
    /// Answers of the main agent's model that the program reported one by one, earlier prompts included.
    pub(crate) answers: u64,
    /// The program's id of the answer that is being read.
    pub(super) answer_id: Option<String>,
    /// The time of the last event that is not the end of a tool call.
    pub(super) since: Option<i64>,
    form: OutputForm,
    /// The calls of tools that have not ended, by the program's ids.
    open: HashMap<String, OpenCall>,
    strange: Strange,
}

/// An agent's report about an LLM that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LlmFailure {
    /// Absent when the agent does not report it, or nothing was answered.
    pub(crate) status: Option<u16>,
    pub(crate) message: String,
}

impl LlmFailure {
    /// Nothing was learnt about the agent, unless it sent more than the model can read.
    pub(crate) fn error(&self) -> ProviderError {
        if mentions_context_overflow(&self.message) {
            return ProviderError::agent(self.message.clone()).with_code("context_overflow");
        }
        let (code, failure) = match self.status {
            Some(status) => (
                format!("llm_{status}"),
                format!("the LLM answered {status}"),
            ),
            None => ("llm_failed".to_owned(), "the LLM failed".to_owned()),
        };
        ProviderError::service(format!("{failure}: {}", self.message)).with_code(code)
    }
}

/// The end of a tool call.
#[derive(Default)]
pub(crate) struct ToolEnd {
    pub(crate) output: Value,
    pub(crate) success: Option<bool>,
    pub(crate) error: Option<String>,
    /// As the program measured it. The time between two lines is no bound: programs may report late that a tool began.
    pub(crate) duration_ms: Option<f64>,
}

struct OpenCall {
    event: usize,
}

/// Lines that are no events.
#[derive(Default)]
struct Strange {
    count: u64,
    first: String,
}

impl Story {
    pub(crate) fn new(form: OutputForm) -> Self {
        Self {
            form,
            ..Self::default()
        }
    }

    /// Takes one line. `at` is when it came, where that is known.
    pub(crate) fn take(&mut self, line: &str, at: Option<i64>) {
        if line.trim().is_empty() {
            return;
        }
        let form = self.form;
        let understood =
            serde_json::from_str(line).map_or(Line::Strange, |event| form.read(event, at, self));
        if understood == Line::Strange {
            if self.strange.count == 0 {
                self.strange.first = line.chars().take(EXCERPT).collect();
            }
            self.strange.count += 1;
        }
    }

    /// One sentence about the lines that were no events.
    pub(crate) fn complaint(&self) -> Option<String> {
        let Strange { count, first } = &self.strange;
        (*count > 0).then(|| format!("{count} lines are no events, the first is: {first}"))
    }

    /// Every tool call, in the order in which they began.
    pub(crate) fn tool_calls(&self) -> Vec<ToolCallRecord> {
        let record = |event: &Arc<TraceEvent>| event.tool_call_record();
        self.events.iter().filter_map(record).collect()
    }

    /// Begins an answer of the main agent's model, which is a turn, unless the same one goes on.
    pub(super) fn begin_answer(&mut self, id: Option<&str>, at: Option<i64>) {
        if self.agent.is_some() || (id.is_some() && self.answer_id.as_deref() == id) {
            return;
        }
        self.answer_id = id.map(str::to_owned);
        if let Some(at) = at {
            self.push(TraceEvent::TurnBoundary {
                turn_number: self.answers,
                timestamp: Timestamp::from_unix_ms(at),
            });
            self.answers += 1;
        }
    }

    pub(super) fn add_text(&mut self, text: &str, at: Option<i64>) {
        if text.is_empty() {
            return;
        }
        if self.agent.is_none() {
            self.answer.push_str(text);
        }
        let context = self.place(at, None);
        self.push(TraceEvent::TextOutput {
            content: text.to_owned(),
            token_count: None,
            context,
        });
    }

    /// Continues the last text, where agents report it in pieces.
    pub(crate) fn extend_text(&mut self, text: &str, at: Option<i64>) {
        let last = self.events.last_mut().map(Arc::make_mut);
        match last {
            Some(TraceEvent::TextOutput { content, .. }) => {
                content.push_str(text);
                self.answer.push_str(text);
            }
            _ => self.add_text(text, at),
        }
    }

    /// Continues the last thought, where agents report it in pieces.
    pub(crate) fn think_more(&mut self, text: &str, at: Option<i64>) {
        match self.events.last_mut().map(Arc::make_mut) {
            Some(TraceEvent::Reasoning { content, .. }) => content.push_str(text),
            _ => self.think(text, at),
        }
    }

    pub(super) fn think(&mut self, text: &str, at: Option<i64>) {
        if text.is_empty() {
            return;
        }
        let context = self.place(at, None);
        self.push(TraceEvent::Reasoning {
            content: text.to_owned(),
            duration_ms: None,
            token_count: None,
            context,
        });
    }

    pub(crate) fn begin_tool(&mut self, id: &str, name: &str, input: Value, at: Option<i64>) {
        if self.agent.is_none() {
            self.answer.clear();
        }
        let call = OpenCall {
            event: self.events.len(),
        };
        self.open.insert(id.to_owned(), call);
        let context = self.place(at, Some(id));
        self.push(TraceEvent::ToolCall {
            name: name.to_owned(),
            input,
            output: Value::Null,
            duration_ms: None,
            success: None,
            error: None,
            context,
        });
    }

    /// True when a call was reported, ended or not.
    pub(crate) fn knows_tool(&self, id: &str) -> bool {
        self.events.iter().any(|event| has_call_id(event, id))
    }

    /// Puts in what a call turned out to be given.
    pub(crate) fn set_input(&mut self, id: &str, given: Value) {
        let call = self.open.get(id).map(|call| call.event);
        let event = call.and_then(|event| self.events.get_mut(event));
        if let Some(TraceEvent::ToolCall { input, .. }) = event.map(Arc::make_mut) {
            *input = given;
        }
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// Completes a call. An end without a beginning is ignored.
    pub(crate) fn end_tool(&mut self, id: &str, end: ToolEnd, at: Option<i64>) {
        let Some(call) = self.open.remove(id) else {
            return;
        };
        let event = self.events.get_mut(call.event).map(Arc::make_mut);
        if let Some(TraceEvent::ToolCall {
            output,
            duration_ms,
            success,
            error,
            context,
            ..
        }) = event
        {
            if let Some(place) = context {
                place.ended_ms = at;
            }
            *output = end.output;
            *success = end.success;
            *error = end.error;
            *duration_ms = millis(end.duration_ms);
        }
    }

    /// Opens the calls again that ended at this moment or later: they were ended with the program, and
    /// its report about them only shows that.
    pub(crate) fn forget_ends_since(&mut self, moment: i64) {
        for event in &mut self.events {
            let TraceEvent::ToolCall {
                context: Some(place),
                ..
            } = &**event
            else {
                continue;
            };
            if place.ended_ms.is_none_or(|ended| ended < moment) {
                continue;
            }
            if let TraceEvent::ToolCall {
                output,
                duration_ms,
                success,
                error,
                context: Some(place),
                ..
            } = Arc::make_mut(event)
            {
                place.ended_ms = None;
                (*output, *duration_ms) = (Value::Null, None);
                (*success, *error) = (None, None);
            }
        }
    }

    /// Marks a call that was not allowed, whether or not it seems to have ended.
    pub(crate) fn deny_tool(&mut self, id: &str, name: &str, input: &Value, at: Option<i64>) {
        let has_id = |event: &TraceEvent| has_call_id(event, id);
        if !self.knows_tool(id) {
            self.begin_tool(id, name, input.clone(), at);
        }
        self.open.remove(id);
        let call = self.events.iter_mut().rev().find(|event| has_id(event));
        if let Some(TraceEvent::ToolCall { success, error, .. }) = call.map(Arc::make_mut) {
            *success = Some(false);
            *error = Some("denied: it was not allowed by the suite's permissions".to_owned());
        }
    }

    pub(super) fn complain(&mut self, message: &str, recoverable: bool, at: Option<i64>) {
        if !recoverable && self.fatal.is_none() {
            self.fatal = Some(message.to_owned());
        }
        self.push(TraceEvent::Error {
            message: message.to_owned(),
            recoverable,
            context: self.place(at, None),
        });
    }

    /// The usage of one or several calls of a model; several add up.
    pub(super) fn add_usage(&mut self, model: &str, tokens: TokenBreakdown, cost_usd: Option<f64>) {
        let tokens = tokens.with_totals();
        let cost_usd = cost_usd.filter(|cost| *cost >= 0.0).and_then(Usd::new);
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
            model: model.to_owned(),
            tokens,
            cost_usd,
            cost_source: cost_usd.map(|_| CostSource::Reported),
            ..ModelCall::default()
        });
    }

    pub(super) fn push(&mut self, event: TraceEvent) {
        self.events.push(Arc::new(event));
    }

    pub(super) fn place(&self, at: Option<i64>, call_id: Option<&str>) -> Option<Box<EventPlace>> {
        let place = EventPlace {
            timestamp: at.map(Timestamp::from_unix_ms),
            call_id: call_id.map(str::to_owned),
            agent_id: self.agent.clone(),
            parent_event_id: self.agent.clone(),
            ..EventPlace::default()
        };
        (place != EventPlace::default()).then(|| Box::new(place))
    }
}

fn has_call_id(event: &TraceEvent, id: &str) -> bool {
    let TraceEvent::ToolCall { context, .. } = event else {
        return false;
    };
    let call_id = context.as_ref().and_then(|place| place.call_id.as_deref());
    call_id == Some(id)
}

/// A length of time that makes sense.
pub(super) fn millis(ms: Option<f64>) -> Option<Millis> {
    ms.filter(|ms| *ms >= 0.0).and_then(Millis::new)
}
