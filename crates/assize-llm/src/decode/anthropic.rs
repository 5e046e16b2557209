//! Anthropic Messages.

use super::list;
use crate::draft::{Draft, Kind};
use crate::usage::read_anthropic;
use serde_json::Value;

pub(super) fn event(draft: &mut Draft, event: &Value) {
    match event["type"].as_str() {
        Some("message_start") => {
            draft.set_model(&event["message"]["model"]);
            read_anthropic(draft, &event["message"]["usage"], false);
        }
        Some("content_block_start") => open_block(draft, index(event), &event["content_block"]),
        Some("content_block_delta") => extend_block(draft, index(event), &event["delta"]),
        Some("message_delta") => {
            draft.set_stop_reason(&event["delta"]["stop_reason"]);
            read_anthropic(draft, &event["usage"], true);
        }
        Some("message_stop") => draft.complete = true,
        Some("error") => super::error(draft, event),
        // Some gateways answer a request for a stream with a whole message as one event.
        Some("message") => document(draft, event),
        _ => {}
    }
}

pub(super) fn document(draft: &mut Draft, message: &Value) {
    if message["type"] == "error" {
        return super::error(draft, message);
    }
    draft.set_model(&message["model"]);
    draft.set_stop_reason(&message["stop_reason"]);
    read_anthropic(draft, &message["usage"], true);
    for (place, block) in list(&message["content"]).enumerate() {
        open_block(draft, place as u64, block);
    }
    draft.complete = message["content"].is_array();
}

fn index(event: &Value) -> u64 {
    event["index"].as_u64().unwrap_or(0)
}

fn open_block(draft: &mut Draft, index: u64, block: &Value) {
    let key = (index, 0);
    match block["type"].as_str() {
        Some("text") => {
            draft.open(key, Kind::Text);
            draft.append(key, block["text"].as_str().unwrap_or_default());
        }
        Some("thinking") => {
            draft.open(key, Kind::Reasoning);
            draft.append(key, block["thinking"].as_str().unwrap_or_default());
        }
        Some(kind @ ("tool_use" | "server_tool_use" | "mcp_tool_use")) => {
            draft.open(key, Kind::tool(block, "id", kind != "tool_use"));
            // A stream opens with an empty object and sends the arguments as text.
            if block["input"]
                .as_object()
                .is_some_and(|input| !input.is_empty())
            {
                draft.set_arguments(key, &block["input"]);
            }
        }
        _ => {}
    }
}

fn extend_block(draft: &mut Draft, index: u64, delta: &Value) {
    let field = match delta["type"].as_str() {
        Some("text_delta") => "text",
        Some("thinking_delta") => "thinking",
        Some("input_json_delta") => "partial_json",
        _ => return,
    };
    draft.append((index, 0), delta[field].as_str().unwrap_or_default());
}
