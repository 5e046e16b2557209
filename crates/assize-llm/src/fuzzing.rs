//! Bodies that property tests and fuzz targets share: whatever comes over the wire, there is an answer, and how the bytes
//! were cut on their way does not matter.

use crate::{
    AnswerReader, Api, Content, ModelAnswer, ModelRequest, RequestOutline, SseReader, ToolResult,
    ask_for_usage,
};
use std::time::Duration;

/// Reads bytes as an answer of every API, as a request to it, and as plain events.
pub fn wire(bytes: &[u8]) {
    for api in Api::ALL {
        for status in [200, 500] {
            let whole = read(api, status, [bytes]);
            let cut = read(api, status, bytes.chunks(7));
            assert!(whole == cut, "cutting the bytes changed the answer");
            bounded(&whole, bytes.len());
        }
        outlined(api, "/v1/messages", bytes);
    }
    if let Some(asked) = ask_for_usage(Api::OpenAiChat, bytes) {
        assert_eq!(ask_for_usage(Api::OpenAiChat, &asked), None);
    }
    small_events(bytes);
}

/// Reads bytes as a file of prices.
pub fn prices(bytes: &[u8]) {
    let _ = crate::prices::parse_file(bytes);
}

/// An outline agrees with reading the whole request, wherever that can be read.
pub fn outlined(api: Api, path: &str, bytes: &[u8]) {
    let request = ModelRequest::decode(api, path, bytes);
    let outline = RequestOutline::of(api, path, bytes);
    let results = outline.tool_results.iter();
    let results: Vec<ToolResult> = results.map(|result| result.read(bytes)).collect();
    if serde_json::from_slice::<serde_json::Value>(bytes).is_err() {
        return;
    }
    assert_eq!(outline.model, request.model);
    assert_eq!(outline.tools, request.tools);
    assert_eq!(outline.tool_names, request.tool_names);
    assert_eq!(outline.opening, request.opening);
    assert_eq!(outline.from_agents, request.from_agents);
    assert_eq!(results, request.tool_results);
}

fn read<'a>(api: Api, status: u16, chunks: impl IntoIterator<Item = &'a [u8]>) -> ModelAnswer {
    let mut reader = AnswerReader::new(api, status);
    for chunk in chunks {
        reader.feed(chunk, Duration::ZERO);
    }
    reader.finish()
}

/// No more comes out than went in.
fn bounded(answer: &ModelAnswer, size: usize) {
    let length = |content: &Content| match content {
        Content::Reasoning(text) | Content::Text(text) => text.len(),
        Content::Tool(tool) => tool.name.len(),
    };
    let kept: usize = answer.parts.iter().map(|part| length(&part.content)).sum();
    assert!(kept <= size, "{kept} bytes out of {size}");
}

fn small_events(bytes: &[u8]) {
    const LIMIT: usize = 16;
    let mut reader = SseReader::new(LIMIT);
    for chunk in bytes.chunks(3) {
        reader.feed(chunk, |event| assert!(event.data.len() <= LIMIT));
    }
}
