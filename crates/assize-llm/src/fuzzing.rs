//! Bodies that property tests and fuzz targets share: whatever comes over the wire, there is an answer, and how the bytes
//! were cut on their way does not matter.

use crate::{AnswerReader, Api, Content, ModelAnswer, ModelRequest, SseReader, ask_for_usage};
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
        ModelRequest::decode(api, "/v1/messages", bytes);
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
