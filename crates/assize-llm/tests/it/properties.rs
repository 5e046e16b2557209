//! Any bytes may come over the wire.

use assize_llm::fuzzing;
use proptest::prelude::*;
use serde_json::{Map, Value};

/// JSON made of the words that the four APIs are made of, so that much of it nearly fits.
fn nearly_an_event() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "message",
        "model",
        "usage",
        "content",
        "content_block",
        "delta",
        "index",
        "text",
        "thinking",
        "partial_json",
        "input",
        "name",
        "id",
        "stop_reason",
        "choices",
        "tool_calls",
        "function",
        "arguments",
        "reasoning_content",
        "finish_reason",
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "cached_tokens",
        "response",
        "output",
        "output_index",
        "item",
        "summary",
        "call_id",
        "status",
        "error",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "thought",
        "usageMetadata",
        "promptTokenCount",
        "cachedContentTokenCount",
        "thoughtsTokenCount",
        "messages",
        "role",
        "stream",
        "stream_options",
        "tool_use_id",
        "contents",
        "functionResponse",
        "input_tokens",
        "output_tokens",
    ]);
    let texts = prop::sample::select(vec![
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "text_delta",
        "input_json_delta",
        "tool_use",
        "text",
        "error",
        "user",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "function_call",
        "reasoning",
        "message",
        "tool",
        "STOP",
        "{\"a\":1}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..10).prop_map(|pairs| {
                let map: Map<String, Value> =
                    pairs.into_iter().map(|(k, v)| (k.into(), v)).collect();
                Value::from(map)
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzzing::wire(&bytes);
    }

    #[test]
    fn any_lines_have_an_answer(text in "((data|event|id): ?[a-z{}\\[\\]\":,0-9]{0,12}|[ \u{feff}]|\r\n|\r|\n){0,40}") {
        fuzzing::wire(text.as_bytes());
    }

    #[test]
    fn nearly_right_events_have_an_answer(events in prop::collection::vec(nearly_an_event(), 0..6)) {
        let stream: String = events.iter().map(|event| format!("data: {event}\r\n\r\n")).collect();
        fuzzing::wire(stream.as_bytes());
        fuzzing::wire(Value::from(events.clone()).to_string().as_bytes());
        for event in events {
            fuzzing::wire(event.to_string().as_bytes());
        }
    }
}
