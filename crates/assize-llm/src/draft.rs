//! An answer in the making: what the decoders write into, within a budget.

use crate::answer::{ApiError, Content, Flaws, ModelAnswer, Part, RequestedTool, Usage};
use crate::api::Api;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// The most text that is kept of one answer.
const MAX_KEPT: usize = 8 << 20;
/// The most parts that are kept of one answer.
const MAX_PARTS: usize = 10_000;
/// The most that is kept of an error's text, a name or a reason.
const MAX_WORD: usize = 2 << 10;

/// Names a part while it grows: the API's indexes of it.
pub(crate) type Key = (u64, u64);

#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) api: Api,
    status: u16,
    /// The time of the bytes being read. Absent for plain answers.
    pub(crate) now: Option<Duration>,
    model: Option<String>,
    pub(crate) usage: Usage,
    stop_reason: Option<String>,
    parts: Vec<DraftPart>,
    by_key: HashMap<Key, usize>,
    kept: usize,
    error: Option<ApiError>,
    pub(crate) complete: bool,
    first_content_at: Option<Duration>,
    pub(crate) flaws: Flaws,
}

#[derive(Debug)]
struct DraftPart {
    at: Option<Duration>,
    ended: Option<Duration>,
    kind: Kind,
    text: String,
    arguments: Option<Value>,
}

/// The times at which a part was seen.
pub(crate) struct Seen {
    at: Option<Duration>,
    ended: Option<Duration>,
}

/// The kind of a part, before its text is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Reasoning,
    Text,
    Tool {
        id: Option<String>,
        name: String,
        by_server: bool,
    },
}

impl Kind {
    /// A tool call that an object describes.
    pub(crate) fn tool(object: &Value, id: &str, by_server: bool) -> Self {
        Self::Tool {
            id: object[id].as_str().map(shortened),
            name: object["name"].as_str().map(shortened).unwrap_or_default(),
            by_server,
        }
    }
}

impl Draft {
    pub(crate) fn new(api: Api, status: u16) -> Self {
        Self {
            api,
            status,
            now: None,
            model: None,
            usage: Usage::default(),
            stop_reason: None,
            parts: Vec::new(),
            by_key: HashMap::new(),
            kept: 0,
            error: None,
            complete: false,
            first_content_at: None,
            flaws: Flaws::default(),
        }
    }

    pub(crate) fn is_refused(&self) -> bool {
        !(200..300).contains(&self.status)
    }

    pub(crate) fn set_model(&mut self, value: &Value) {
        if let Some(model) = value.as_str().filter(|model| !model.is_empty()) {
            self.model = Some(shortened(model));
        }
    }

    pub(crate) fn set_stop_reason(&mut self, value: &Value) {
        if let Some(reason) = value.as_str() {
            self.stop_reason = Some(shortened(reason));
        }
    }

    pub(crate) fn set_error(&mut self, kind: Option<&str>, message: &str) {
        self.error.get_or_insert_with(|| ApiError {
            status: self.status,
            kind: kind.map(shortened),
            message: shortened(message),
        });
    }

    /// Completes the answer at the mark that ends a stream, unless no part of an answer came before it.
    pub(crate) fn end_of_stream(&mut self) {
        let has_usage = self.usage.tokens != Default::default();
        let has_output = !self.parts.is_empty() || self.stop_reason.is_some();
        self.complete |= has_output || has_usage || self.flaws.broken > 0;
    }

    pub(crate) fn has(&self, key: Key) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Begins a part, unless it has begun.
    pub(crate) fn open(&mut self, key: Key, kind: Kind) {
        if self.has(key) {
            return;
        }
        if self.parts.len() >= MAX_PARTS {
            self.flaws.truncated = true;
            return;
        }
        if matches!(kind, Kind::Tool { .. }) {
            self.see_content();
        }
        self.by_key.insert(key, self.parts.len());
        self.parts.push(DraftPart {
            at: self.now,
            ended: self.now,
            kind,
            text: String::new(),
            arguments: None,
        });
    }

    /// Adds text, or arguments as text, to a part that has begun.
    pub(crate) fn append(&mut self, key: Key, text: &str) {
        let Some(&place) = self.by_key.get(&key) else {
            return;
        };
        if text.is_empty() {
            return;
        }
        self.see_content();
        if self.kept + text.len() > MAX_KEPT {
            self.flaws.truncated = true;
            return;
        }
        self.kept += text.len();
        self.parts[place].ended = self.now;
        self.parts[place].text.push_str(text);
    }

    /// Text of a kind that continues the part before it, if that is of the same kind.
    pub(crate) fn append_to_last(&mut self, kind: Kind, text: &str) {
        if text.is_empty() {
            return;
        }
        let continues = self.parts.last().is_some_and(|part| part.kind == kind);
        let place = self.parts.len() - usize::from(continues);
        // Indexes of the APIs are small, so these keys are free.
        let key = (u64::MAX, place as u64);
        self.open(key, kind);
        self.append(key, text);
    }

    /// A whole tool call.
    pub(crate) fn push_tool(&mut self, kind: Kind, arguments: &Value) {
        let key = (u64::MAX, self.parts.len() as u64);
        self.open(key, kind);
        self.set_arguments(key, arguments);
    }

    /// Arguments that came as JSON, or as text that holds JSON.
    pub(crate) fn set_arguments(&mut self, key: Key, arguments: &Value) {
        let Some(&place) = self.by_key.get(&key) else {
            return;
        };
        self.kept -= self.parts[place].text.len();
        self.parts[place].text.clear();
        match arguments {
            Value::Null => {}
            Value::String(text) => self.append(key, text),
            value => {
                let size = value.to_string().len();
                if self.kept + size > MAX_KEPT {
                    self.flaws.truncated = true;
                } else {
                    self.kept += size;
                    self.parts[place].arguments = Some(value.clone());
                }
            }
        }
    }

    /// Adds the id and name that a tool call's first piece lacked.
    pub(crate) fn name_tool(&mut self, key: Key, new_id: Option<&str>, new_name: Option<&str>) {
        let Some(&place) = self.by_key.get(&key) else {
            return;
        };
        if let Kind::Tool { id, name, .. } = &mut self.parts[place].kind {
            if id.is_none() {
                *id = new_id.map(shortened);
            }
            if name.is_empty() {
                *name = new_name.map(shortened).unwrap_or_default();
            }
        }
    }

    /// Forgets the parts, because the whole answer follows once more.
    pub(crate) fn start_over(&mut self) -> Vec<Seen> {
        self.by_key.clear();
        self.kept = 0;
        let parts = std::mem::take(&mut self.parts);
        let seen = |part: DraftPart| Seen {
            at: part.at,
            ended: part.ended,
        };
        parts.into_iter().map(seen).collect()
    }

    /// Gives the parts the times at which they were seen before.
    pub(crate) fn date_parts(&mut self, times: Vec<Seen>) {
        for (part, seen) in self.parts.iter_mut().zip(times) {
            (part.at, part.ended) = (seen.at, seen.ended);
        }
    }

    pub(crate) fn into_answer(mut self) -> ModelAnswer {
        if self.is_refused() && self.error.is_none() {
            let status = self.status;
            self.set_error(None, &format!("HTTP status {status}"));
        }
        if !self.complete {
            self.usage.at_least = Some(self.usage.tokens.known());
            self.usage.tokens.output = None;
            self.usage.tokens.reasoning = None;
        }
        #[cfg(feature = "broken-decoders")]
        crate::testing::miscount(&mut self.usage.tokens);
        self.usage.tokens = self.usage.tokens.with_totals();
        ModelAnswer {
            api: self.api,
            status: self.status,
            model: self.model,
            usage: self.usage,
            stop_reason: self.stop_reason,
            parts: self.parts.into_iter().filter_map(finished).collect(),
            error: self.error,
            streamed: false,
            complete: self.complete,
            first_byte_at: None,
            first_content_at: self.first_content_at,
            flaws: self.flaws,
        }
    }

    fn see_content(&mut self) {
        if self.first_content_at.is_none() {
            self.first_content_at = self.now;
        }
    }
}

/// A part without any text is none, except for a tool call.
fn finished(part: DraftPart) -> Option<Part> {
    let content = match part.kind {
        Kind::Reasoning => (!part.text.is_empty()).then_some(Content::Reasoning(part.text))?,
        Kind::Text => (!part.text.is_empty()).then_some(Content::Text(part.text))?,
        Kind::Tool {
            id,
            name,
            by_server,
        } => Content::Tool(RequestedTool {
            id,
            name,
            arguments: part.arguments.unwrap_or_else(|| arguments_in(part.text)),
            by_server,
        }),
    };
    Some(Part {
        at: part.at,
        ended: part.ended,
        content,
    })
}

fn arguments_in(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Default::default());
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// The start of a text that is only to be shown.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_WORD) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
