//! From JSON of the four APIs to one form of answer: an event of a stream, or a whole answer.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use crate::api::Api;
use crate::context_overflow::overflow_kind;
use crate::draft::Draft;
use serde_json::Value;

/// Reads one event of a stream.
pub(crate) fn event(draft: &mut Draft, event: &Value) {
    if draft.is_refused() {
        return error(draft, event);
    }
    match draft.api {
        Api::AnthropicMessages => anthropic::event(draft, event),
        Api::OpenAiChat => chat::event(draft, event),
        Api::OpenAiResponses => responses::event(draft, event),
        Api::Gemini => gemini::event(draft, event),
    }
}

/// Reads a whole plain answer.
pub(crate) fn document(draft: &mut Draft, document: &Value) {
    if draft.is_refused() {
        return error(draft, document);
    }
    match draft.api {
        Api::AnthropicMessages => anthropic::document(draft, document),
        Api::OpenAiChat => chat::document(draft, document),
        Api::OpenAiResponses => responses::document(draft, document),
        Api::Gemini => gemini::event(draft, document),
    }
}

/// All four put the error under `error`, as an object or a plain text.
fn error(draft: &mut Draft, body: &Value) {
    let error = match &body["error"] {
        Value::Null => body,
        error => error,
    };
    let words = ["type", "status", "code"];
    let given = || words.iter().filter_map(|word| error[*word].as_str());
    let kind = overflow_kind(given()).or_else(|| given().next());
    let texts = [&error["message"], error, &body["message"], &body["detail"]];
    if let Some(message) = texts.into_iter().find_map(Value::as_str) {
        draft.set_error(kind, message);
    } else if kind.is_some() {
        draft.set_error(kind, "no message");
    }
}

/// The elements of a list; none for anything else.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The text in content that is a string or a list of parts with texts.
pub(crate) fn text_in(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part["text"].as_str()))
            .collect(),
        _ => String::new(),
    }
}
