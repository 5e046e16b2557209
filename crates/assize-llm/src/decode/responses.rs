//! OpenAI Responses.

use super::{list, text_in};
use crate::draft::{Draft, Key, Kind};
use crate::usage::{read_openai, read_service_tier};
use serde_json::Value;

pub(super) fn event(draft: &mut Draft, event: &Value) {
    let item = event["output_index"].as_u64().unwrap_or(0);
    match event["type"].as_str() {
        Some("response.created" | "response.in_progress") => {
            draft.set_model(&event["response"]["model"]);
        }
        Some("response.output_item.added") => open_item(draft, item, &event["item"]),
        Some("response.output_item.done") => complete_item(draft, item, &event["item"]),
        Some("response.output_text.delta" | "response.refusal.delta") => {
            extend(draft, (item, part(event)), Kind::Text, event);
        }
        Some(
            "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary.delta",
        ) => extend(draft, (item, part(event)), Kind::Reasoning, event),
        Some(
            "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.mcp_call_arguments.delta",
        ) => draft.append((item, 0), event["delta"].as_str().unwrap_or_default()),
        Some("response.completed" | "response.incomplete" | "response.failed") => {
            end(draft, &event["response"]);
        }
        Some("error") => super::error(draft, event),
        _ => {}
    }
}

pub(super) fn document(draft: &mut Draft, response: &Value) {
    end(draft, response);
    draft.complete &= response["output"].is_array();
}

/// The final form of the whole response, with everything in it once more.
fn end(draft: &mut Draft, response: &Value) {
    draft.set_model(&response["model"]);
    read_service_tier(draft, &response["service_tier"]);
    read_openai(draft, &response["usage"]);
    draft.set_stop_reason(&response["status"]);
    draft.set_stop_reason(&response["incomplete_details"]["reason"]);
    if !response["error"].is_null() {
        super::error(draft, response);
    }
    if list(&response["output"]).next().is_some() {
        let times = draft.start_over();
        for (place, item) in list(&response["output"]).enumerate() {
            complete_item(draft, place as u64, item);
        }
        draft.date_parts(times);
    }
    draft.complete = true;
}

fn part(event: &Value) -> u64 {
    ["content_index", "summary_index"]
        .iter()
        .find_map(|name| event[*name].as_u64())
        .unwrap_or(0)
}

fn extend(draft: &mut Draft, key: Key, kind: Kind, event: &Value) {
    draft.open(key, kind);
    draft.append(key, event["delta"].as_str().unwrap_or_default());
}

/// Texts are opened by their first piece; a tool call has its name in the item.
fn open_item(draft: &mut Draft, place: u64, item: &Value) {
    if let Some(kind) = tool_in(item) {
        draft.open((place, 0), kind);
    }
}

/// Replaces what came in pieces by the whole item. Texts that were read are left as they are.
fn complete_item(draft: &mut Draft, place: u64, item: &Value) {
    if let Some(kind) = tool_in(item) {
        let key = (place, 0);
        draft.open(key, kind);
        let arguments = ["arguments", "input", "action"];
        let arguments = arguments.iter().find_map(|name| item.get(*name));
        if let Some(arguments) = arguments.filter(|arguments| !is_empty(arguments)) {
            draft.set_arguments(key, arguments);
        }
        return;
    }
    let (kind, texts) = match item["type"].as_str() {
        Some("message") => (Kind::Text, &item["content"]),
        Some("reasoning") if is_empty(&item["summary"]) => (Kind::Reasoning, &item["content"]),
        Some("reasoning") => (Kind::Reasoning, &item["summary"]),
        _ => return,
    };
    for (index, part) in list(texts).enumerate() {
        let key = (place, index as u64);
        if !draft.has(key) {
            draft.open(key, kind.clone());
            let text = part["text"].as_str().or_else(|| part["refusal"].as_str());
            draft.append(key, text.unwrap_or_default());
        }
    }
    // Some compatible services send plain text.
    if texts.is_string() && !draft.has((place, 0)) {
        draft.open((place, 0), kind);
        draft.append((place, 0), &text_in(texts));
    }
}

fn tool_in(item: &Value) -> Option<Kind> {
    match item["type"].as_str()? {
        "function_call" | "custom_tool_call" => Some(Kind::tool(item, "call_id", false)),
        "mcp_call" => Some(Kind::tool(item, "id", true)),
        // These have no name besides their type.
        kind @ ("local_shell_call" | "shell_call" | "apply_patch_call" | "computer_call") => {
            Some(Kind::Tool {
                id: item["call_id"].as_str().map(crate::draft::shortened),
                name: kind.trim_end_matches("_call").to_owned(),
                by_server: false,
            })
        }
        kind @ ("web_search_call"
        | "file_search_call"
        | "code_interpreter_call"
        | "image_generation_call") => Some(Kind::Tool {
            id: item["id"].as_str().map(crate::draft::shortened),
            name: kind.trim_end_matches("_call").to_owned(),
            by_server: true,
        }),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        _ => false,
    }
}
