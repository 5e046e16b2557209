//! Invalid and hostile answers: read as far as they go, at bounded memory.

use assize_llm::{AnswerReader, Api, ModelAnswer};
use std::time::Duration;

const CHAT: Api = Api::OpenAiChat;

fn read<'a>(api: Api, status: u16, chunks: impl IntoIterator<Item = &'a [u8]>) -> ModelAnswer {
    let mut reader = AnswerReader::new(api, status);
    for chunk in chunks {
        reader.feed(chunk, Duration::from_millis(5));
    }
    reader.finish()
}

#[test]
fn half_a_json_is_a_broken_answer_and_a_broken_event_is_left_out() {
    let answer = read(CHAT, 200, [br#"{"model":"m","choices":[{"mess"#.as_slice()]);
    assert_eq!(answer.flaws.broken, 1);
    assert!(!answer.complete && answer.model.is_none());

    let stream = b"data: {\"model\":\"m\"}\n\ndata: {oops\n\ndata: [DONE]\n\n";
    let answer = read(CHAT, 200, [stream.as_slice()]);
    assert_eq!(answer.flaws.broken, 1);
    assert_eq!(answer.model.as_deref(), Some("m"));
    assert!(answer.complete);
}

#[test]
fn the_end_of_a_stream_without_an_answer_is_no_answer() {
    let empty = read(CHAT, 200, [b"data: [DONE]\n\n".as_slice()]);
    assert!(!empty.complete && empty.error.is_none());
    let failed = b"data: {\"object\":\"error\",\"message\":\"out of memory\",\"code\":500}\n\ndata: [DONE]\n\n";
    let failed = read(CHAT, 200, [failed.as_slice()]);
    assert_eq!(failed.error.unwrap().message, "out of memory");
}

#[test]
fn a_huge_event_is_skipped() {
    let chunk = vec![b'x'; 1 << 20];
    let mut chunks: Vec<&[u8]> = vec![b"data: \""];
    chunks.extend(std::iter::repeat_n(chunk.as_slice(), 50));
    chunks.push(b"\"\n\ndata: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n");
    let answer = read(CHAT, 200, chunks);
    assert_eq!(answer.flaws.oversized, 1);
    assert_eq!(answer.usage.tokens.total, Some(7));
}

#[test]
fn a_huge_plain_answer_is_unknown() {
    let chunk = vec![b' '; 1 << 20];
    let mut chunks: Vec<&[u8]> = vec![b"{"];
    chunks.extend(std::iter::repeat_n(chunk.as_slice(), 50));
    chunks.push(br#""usage":{"prompt_tokens":3}}"#);
    let answer = read(CHAT, 200, chunks);
    assert_eq!(answer.flaws.oversized, 1);
    assert_eq!(answer.usage.tokens.input, None);
}

#[test]
fn of_an_endless_stream_only_so_much_is_kept() {
    let text = "x".repeat(100_000);
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let mut reader = AnswerReader::new(CHAT, 200);
    for _ in 0..200 {
        reader.feed(event.as_bytes(), Duration::ZERO);
    }
    let answer = reader.finish();
    assert!(answer.flaws.truncated && !answer.complete);
    let length = answer.text().len();
    assert!((8_000_000..=8 << 20).contains(&length), "{length}");
}

#[test]
fn a_million_tool_calls_are_not_kept() {
    let mut reader = AnswerReader::new(CHAT, 200);
    for index in 0..20_000 {
        let event = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"name\":\"f\"}}}}]}}}}]}}\n\n"
        );
        reader.feed(event.as_bytes(), Duration::ZERO);
    }
    let answer = reader.finish();
    assert!(answer.flaws.truncated);
    assert_eq!(answer.tools().count(), 10_000);
}

#[test]
fn errors_are_read_in_every_form() {
    let check = |api, status, body: &str, kind: Option<&str>, message: &str| {
        let error = read(api, status, [body.as_bytes()]).error.unwrap();
        assert_eq!(
            (error.kind.as_deref(), error.message.as_str()),
            (kind, message)
        );
    };
    check(
        CHAT,
        429,
        r#"{"error":{"message":"slow down","type":"rate_limit"}}"#,
        Some("rate_limit"),
        "slow down",
    );
    check(
        CHAT,
        400,
        r#"{"error":"no such model"}"#,
        None,
        "no such model",
    );
    check(CHAT, 422, r#"{"detail":"bad"}"#, None, "bad");
    check(
        CHAT,
        502,
        "<html>bad gateway</html>",
        None,
        "HTTP status 502",
    );
    check(CHAT, 503, "", None, "HTTP status 503");
    let list = r#"[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]"#;
    check(Api::Gemini, 503, list, Some("UNAVAILABLE"), "busy");
    let event = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    check(
        Api::AnthropicMessages,
        200,
        event,
        Some("overloaded_error"),
        "busy",
    );
    let event = "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"oh\"}}}\n\n";
    check(Api::OpenAiResponses, 200, event, Some("server_error"), "oh");
    let long = format!(r#"{{"error":"{}"}}"#, "é".repeat(10_000));
    let error = read(CHAT, 500, [long.as_bytes()]).error.unwrap();
    assert!(error.message.chars().count() < 3000);
}

#[test]
fn gemini_streams_an_array_when_not_asked_for_events() {
    let body = br#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}
,
{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],
 "usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"totalTokenCount":12}}
]"#;
    for size in [1, 1000] {
        let answer = read(Api::Gemini, 200, body.chunks(size));
        assert!(answer.streamed && answer.complete);
        assert_eq!(answer.text(), "ab");
        assert_eq!(answer.usage.tokens.total, Some(12));
        assert!(answer.first_content_at.is_some());
    }
}

#[test]
fn a_responses_stream_that_was_cut_keeps_what_came() {
    let stream = b"data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\"}}\n\n\
data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{\\\"a\\\":1}\"}\n\n\
data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"content_index\":0,\"delta\":\"hal\"}\n\ndata: {\"ty";
    let answer = read(Api::OpenAiResponses, 200, [stream.as_slice()]);
    assert!(!answer.complete);
    assert_eq!(answer.text(), "hal");
    let tool = answer.tools().next().unwrap();
    assert_eq!(
        (tool.name.as_str(), tool.arguments["a"].as_u64()),
        ("f", Some(1))
    );
}
