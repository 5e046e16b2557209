//! OpenAI Chat Completions, and the variations of those who imitate it.

use super::{list, text_in};
use crate::draft::{Draft, Key, Kind};
use crate::usage::{read_openai, read_service_tier};
use serde_json::Value;

/// Tool calls have indexes of their own.
const TOOLS: u64 = 1;
/// The only call of the API before it had lists of tools.
const FUNCTION: Key = (2, 0);

pub(super) fn event(draft: &mut Draft, chunk: &Value) {
    read(draft, chunk, "delta");
    // Some servers send the error itself.
    if !chunk["error"].is_null() || chunk["object"] == "error" {
        super::error(draft, chunk);
    }
}

pub(super) fn document(draft: &mut Draft, completion: &Value) {
    read(draft, completion, "message");
    draft.complete = completion["choices"].is_array();
    if !completion["error"].is_null() || completion["object"] == "error" {
        super::error(draft, completion);
    }
}

fn read(draft: &mut Draft, chunk: &Value, content: &str) {
    draft.set_model(&chunk["model"]);
    read_service_tier(draft, &chunk["service_tier"]);
    read_openai(draft, &chunk["usage"]);
    // Further choices are alternatives; the agent goes on with the first.
    let is_first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
    for choice in list(&chunk["choices"]).filter(is_first) {
        read_message(draft, &choice[content]);
        if choice["finish_reason"].is_string() {
            draft.set_stop_reason(&choice["finish_reason"]);
            draft.complete = true;
        }
    }
}

fn read_message(draft: &mut Draft, message: &Value) {
    let names = ["reasoning_content", "reasoning", "reasoning_text"];
    let reasoning = names.iter().find_map(|name| message[*name].as_str());
    draft.append_to_last(Kind::Reasoning, reasoning.unwrap_or_default());
    for part in list(&message["content"]) {
        draft.append_to_last(Kind::Reasoning, &text_in(&part["thinking"]));
    }
    draft.append_to_last(Kind::Text, &text_in(&message["content"]));
    draft.append_to_last(Kind::Text, message["refusal"].as_str().unwrap_or_default());
    for (place, call) in list(&message["tool_calls"]).enumerate() {
        let index = call["index"].as_u64().unwrap_or(place as u64);
        read_call(draft, (TOOLS, index), call);
    }
    if message["function_call"].is_object() {
        read_function(draft, FUNCTION, None, &message["function_call"]);
    }
}

fn read_call(draft: &mut Draft, key: Key, call: &Value) {
    let function = match &call["custom"] {
        Value::Object(_) => &call["custom"],
        _ => &call["function"],
    };
    read_function(draft, key, call["id"].as_str(), function);
}

fn read_function(draft: &mut Draft, key: Key, id: Option<&str>, function: &Value) {
    let name = function["name"].as_str();
    draft.open(
        key,
        Kind::Tool {
            id: None,
            name: String::new(),
            by_server: false,
        },
    );
    draft.name_tool(key, id.filter(|id| !id.is_empty()), name);
    match &function["arguments"] {
        Value::String(text) => draft.append(key, text),
        Value::Null => draft.append(key, function["input"].as_str().unwrap_or_default()),
        // Some services send them as JSON.
        arguments => draft.set_arguments(key, arguments),
    }
}
