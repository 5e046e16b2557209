//! Tools of servers and their results, in the form that models receive.

use crate::chat::tools::{LARGEST_TEXT, ToolOutput};
use crate::mcp::SEPARATOR;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};
use serde_json::{Value, json};

/// The least of what the APIs take.
const LONGEST_NAME: usize = 64;

pub(super) fn name_for_models(server: &str, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    let name = server.chars().chain(SEPARATOR.chars());
    name.chain(tool.chars().map(plain))
        .take(LONGEST_NAME)
        .collect()
}

/// The tool's schema; APIs also want to hear of what a tool without arguments does not have.
pub(super) fn parameters(schema: &JsonObject) -> Value {
    let mut schema = schema.clone();
    schema.entry("type").or_insert_with(|| json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// Content that is no text is only mentioned.
pub(super) fn returned(result: CallToolResult) -> ToolOutput {
    let has_text = |content: &ContentBlock| matches!(content, ContentBlock::Text(_));
    // Servers that know what is good for older clients repeat what is structured as text.
    let structured = match result.content.iter().any(has_text) {
        true => None,
        false => result.structured_content,
    };
    let texts = result.content.into_iter().map(shown);
    let texts: Vec<String> = texts
        .chain(structured.map(|value| value.to_string()))
        .collect();
    let has_failed = result.is_error == Some(true);
    ToolOutput {
        text: within(LARGEST_TEXT as usize, texts.join("\n")),
        error: has_failed.then(|| "the tool reports an error".to_owned()),
    }
}

fn shown(content: ContentBlock) -> String {
    let mentioned =
        |what: &str, base64: &str| format!("[{what}, {} bytes, not shown]", base64.len() / 4 * 3);
    match content {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => mentioned(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => mentioned(&audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, blob, .. } => mentioned(&uri, &blob),
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// The beginning of a text, and how much is missing.
pub(super) fn within(most: usize, mut text: String) -> String {
    let end = text.floor_char_boundary(most);
    if end < text.len() {
        let cut = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{cut} bytes cut]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_schema_says_that_there_are_no_arguments() {
        let bare = parameters(&JsonObject::new());
        assert_eq!(bare, json!({"type": "object", "properties": {}}));
    }

    proptest! {
        #[test]
        fn any_result_is_told_within_bounds(kind in "text|image|audio|resource|resource_link|new", text in ".{0,40}", times in 1_usize..5_000, failed in any::<bool>()) {
            let text = text.repeat(times);
            let resource = json!({"uri": text, "blob": text});
            let content = json!({"type": kind, "text": text, "data": text, "mimeType": text, "uri": text, "name": text, "resource": resource});
            let result = json!({"content": [content.clone(), content], "isError": failed, "structuredContent": text});
            if let Ok(result) = serde_json::from_value::<CallToolResult>(result) {
                let output = returned(result);
                prop_assert!(output.text.len() <= LARGEST_TEXT as usize + 40);
                prop_assert_eq!(output.error.is_some(), failed);
            }
        }

        #[test]
        fn names_are_what_every_api_takes(server in "[a-z][a-z0-9-]{0,31}", tool in ".{0,90}") {
            let name = name_for_models(&server, &tool);
            prop_assert!(name.len() <= LONGEST_NAME);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            let prefix = format!("{server}__");
            prop_assert!(name.starts_with(&prefix));
        }

        #[test]
        fn a_text_that_is_cut_keeps_its_beginning(text in ".{0,60}", most in 0_usize..60) {
            let cut = within(most, text.clone());
            prop_assert!(cut == text || cut.len() <= most + 20);
            prop_assert!(text.starts_with(&cut[..text.floor_char_boundary(most)]));
        }
    }
}
