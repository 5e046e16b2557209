//! The answer of a model, read off the wire in any of the APIs.

use crate::api::Api;
use crate::decode;
use crate::draft::Draft;
use crate::framing::Framing;
use assize_contracts::{TokenBreakdown, Usd};
use serde_json::Value;
use std::time::Duration;

/// The answer to one request, as far as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// The API it came through.
    pub api: Api,
    /// The HTTP status.
    pub status: u16,
    /// The model that answered, by the API's own word.
    pub model: Option<String>,
    /// Time, tokens and cost.
    pub usage: Usage,
    /// The API's own word for the reason the model stopped.
    pub stop_reason: Option<String>,
    /// Reasoning, text and tool calls, in the order they came.
    pub parts: Vec<Part>,
    /// The error, reported by the status or in the middle of a stream.
    pub error: Option<ApiError>,
    /// It came in pieces.
    pub streamed: bool,
    /// It came to its own end. A stream that was cut has no output count.
    pub complete: bool,
    /// The arrival of the first byte, since the start that the feeder counts from.
    pub first_byte_at: Option<Duration>,
    /// The arrival of the model's first output. Absent for plain answers, which come all at once.
    pub first_content_at: Option<Duration>,
    /// The parts that could not be read.
    pub flaws: Flaws,
}

/// The tokens and cost of an answer. All absent when the API did not report them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Five disjoint counts and their sums. An answer without an end has no count of output.
    pub tokens: TokenBreakdown,
    /// The counts that the API reported until the answer broke off: lower bounds. Absent for a whole answer.
    pub at_least: Option<TokenBreakdown>,
    /// The part of the cache writes that is kept for an hour and priced higher.
    pub cache_write_1h: Option<u64>,
    /// The class of service it was billed as.
    pub service_tier: Option<String>,
    /// The cost that the API reports.
    pub reported_cost: Option<Usd>,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The arrival of its first byte.
    pub at: Option<Duration>,
    /// The arrival of its last byte.
    pub ended: Option<Duration>,
    /// Its kind and content.
    pub content: Content,
}

/// The content of a piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Reasoning, or what the API shows of it.
    Reasoning(String),
    /// Text for the user.
    Text(String),
    /// A tool that is to be called.
    Tool(RequestedTool),
}

/// A tool call that a model asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedTool {
    /// The call's id. Gemini has none: results come in the order of the calls.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// Its arguments; the plain text where that is no JSON.
    pub arguments: Value,
    /// The API runs the tool itself, so no result will be sent to it.
    pub by_server: bool,
}

/// An error that an API reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The API's word for it, e.g. `rate_limit_error`.
    pub kind: Option<String>,
    /// Its text, cut to a length that can be shown.
    pub message: String,
}

/// The parts of an answer that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flaws {
    /// Events, or whole answers, that were too large.
    pub oversized: u64,
    /// Events that are not JSON.
    pub broken: u64,
    /// There was more output than is kept.
    pub truncated: bool,
    /// Token counts contradicted each other and were cut to fit.
    pub inconsistent_usage: bool,
}

impl ModelAnswer {
    /// The text for the user, all parts together.
    pub fn text(&self) -> String {
        let text = |part: &Part| match &part.content {
            Content::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(text).collect()
    }

    /// The tools that are to be called.
    pub fn tools(&self) -> impl Iterator<Item = &RequestedTool> {
        self.parts.iter().filter_map(|part| match &part.content {
            Content::Tool(tool) => Some(tool),
            _ => None,
        })
    }
}

/// Reads an answer from its bytes as they arrive.
///
/// Memory is bounded by a few times the largest event that is kept (8 MiB), whatever comes and however long it goes on.
#[derive(Debug)]
pub struct AnswerReader {
    framing: Framing,
    draft: Draft,
    first_byte_at: Option<Duration>,
}

impl AnswerReader {
    /// A reader for the body of an answer with this HTTP status. The body must not be compressed.
    pub fn new(api: Api, status: u16) -> Self {
        Self {
            framing: Framing::new(),
            draft: Draft::new(api, status),
            first_byte_at: None,
        }
    }

    /// Takes the next bytes. `at` is the time since a start of the caller's choice.
    pub fn feed(&mut self, bytes: &[u8], at: Duration) {
        if bytes.is_empty() {
            return;
        }
        self.first_byte_at.get_or_insert(at);
        self.draft.now = Some(at);
        let draft = &mut self.draft;
        self.framing.feed(bytes, |text| match parse(text) {
            Parsed::Value(value) => decode::event(draft, &value),
            Parsed::End => draft.end_of_stream(),
            Parsed::Broken => draft.flaws.broken += 1,
        });
    }

    /// True when the answer came to its own end.
    pub fn is_complete(&self) -> bool {
        self.draft.complete
    }

    /// Ends the reading and returns the answer so far.
    pub fn finish(mut self) -> ModelAnswer {
        let streamed = self.framing.is_stream();
        let draft = &mut self.draft;
        if !streamed {
            draft.now = None;
        }
        self.framing.finish(|text| match parse(text) {
            Parsed::Value(value) if streamed => decode::event(draft, &value),
            Parsed::Value(value) => decode::document(draft, &value),
            Parsed::End => draft.end_of_stream(),
            // A stream that was cut ends in half an event.
            Parsed::Broken => draft.flaws.broken += u64::from(!streamed),
        });
        self.draft.flaws.oversized += self.framing.oversized();
        let mut answer = self.draft.into_answer();
        answer.streamed = streamed;
        answer.first_byte_at = self.first_byte_at;
        answer
    }
}

enum Parsed {
    Value(Value),
    /// The mark that ends a Chat Completions stream.
    End,
    Broken,
}

fn parse(text: &[u8]) -> Parsed {
    match text.trim_ascii() {
        b"[DONE]" => Parsed::End,
        text => serde_json::from_slice(text).map_or(Parsed::Broken, Parsed::Value),
    }
}
