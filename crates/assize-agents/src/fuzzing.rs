//! Bodies that property tests and fuzz targets share: whatever agents print or send, there is a story and no panic.

use crate::mcp::McpServers;
use crate::output::{OutputForm, Story};
use serde_json::Value;

/// Reads bytes as what every kind of agent prints.
pub fn agent_output(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for form in [
        OutputForm::Text,
        OutputForm::Events,
        OutputForm::ClaudeCode,
        OutputForm::QwenCode,
        OutputForm::Codex,
        OutputForm::Opencode,
        OutputForm::Gemini,
    ] {
        let mut story = Story::new(form);
        for (number, line) in text.lines().enumerate() {
            story.take(line, (number % 3 > 0).then_some(number as i64));
        }
        let _ = (story.complaint(), story.tool_calls());
    }
}

/// Reads every line as a message of an agent that speaks ACP.
pub fn acp(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(message) = serde_json::from_slice::<Value>(line) {
            crate::acp::read_message(&message);
        }
    }
}

/// Reads bytes as settings of MCP servers.
pub fn mcp(bytes: &[u8]) {
    let Ok(servers) = serde_json::from_slice::<McpServers>(bytes) else {
        return;
    };
    if servers.check().is_ok() {
        let place = std::path::Path::new("/nowhere");
        let _ = servers.for_session(place, place);
    }
}

/// Reads every line as a message of an MCP server, and all of them as events that carry such messages.
#[cfg(feature = "mcp")]
pub fn mcp_messages(bytes: &[u8]) {
    crate::chat::hear(bytes);
}

/// Reads bytes as a cassette, and plays what is on it.
pub fn cassettes(bytes: &[u8]) {
    crate::capture::play_all(bytes);
}
