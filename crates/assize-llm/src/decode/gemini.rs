//! Gemini `generateContent`. A chunk of a stream has the same form as a whole answer.

use super::list;
use crate::draft::{Draft, Kind};
use crate::usage::read_gemini;
use serde_json::Value;

pub(super) fn event(draft: &mut Draft, chunk: &Value) {
    // Google's code assistance wraps the same answer.
    let chunk = match &chunk["response"] {
        Value::Object(_) => &chunk["response"],
        _ => chunk,
    };
    if !chunk["error"].is_null() {
        super::error(draft, chunk);
    }
    draft.set_model(&chunk["modelVersion"]);
    read_gemini(draft, &chunk["usageMetadata"]);
    let is_first = |candidate: &&Value| candidate["index"].as_u64().unwrap_or(0) == 0;
    for candidate in list(&chunk["candidates"]).filter(is_first) {
        for part in list(&candidate["content"]["parts"]) {
            read_part(draft, part);
        }
        end_with(draft, &candidate["finishReason"]);
    }
    end_with(draft, &chunk["promptFeedback"]["blockReason"]);
}

fn read_part(draft: &mut Draft, part: &Value) {
    let call = &part["functionCall"];
    if call.is_object() {
        draft.push_tool(Kind::tool(call, "id", false), &call["args"]);
        return;
    }
    let kind = match part["thought"].as_bool() {
        Some(true) => Kind::Reasoning,
        _ => Kind::Text,
    };
    draft.append_to_last(kind, part["text"].as_str().unwrap_or_default());
}

fn end_with(draft: &mut Draft, reason: &Value) {
    if reason.is_string() {
        draft.set_stop_reason(reason);
        draft.complete = true;
    }
}
