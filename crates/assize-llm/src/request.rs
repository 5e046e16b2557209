//! What an agent asks of a model.

use crate::api::{Api, model_in_path, streams_by_path};
use crate::decode::text_in;
use serde_json::{Value, json};

/// A request to a model, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// The model asked for.
    pub model: Option<String>,
    /// The answer is wanted in pieces.
    pub stream: bool,
    /// How many tools the model may use. Calls beside the task itself usually have none.
    pub tools: usize,
    /// Instructions.
    pub system: Option<String>,
    /// The text of every user message that has one, oldest first.
    pub user_texts: Vec<String>,
    /// Results of tools, oldest first: the whole conversation is sent each time.
    pub tool_results: Vec<ToolResult>,
}

/// What a tool returned, told to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The id of the call. Absent where results go by order, as with Gemini.
    pub id: Option<String>,
    /// The tool's name, where it is told.
    pub name: Option<String>,
    /// What it returned: a text, or whatever JSON was sent.
    pub output: Value,
    /// Whether the agent marked it as an error. Absent where the API has no such mark.
    pub is_error: Option<bool>,
}

impl ModelRequest {
    /// Reads a request's body. What cannot be read is absent.
    pub fn decode(api: Api, path: &str, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        // Google's code assistance wraps the same request.
        let body = match &body["request"] {
            inner @ Value::Object(_) if api == Api::Gemini => inner,
            _ => &body,
        };
        let mut request = Self {
            model: body["model"]
                .as_str()
                .or(model_in_path(path))
                .map(Into::into),
            stream: body["stream"].as_bool().unwrap_or(false) || streams_by_path(path),
            tools: tools_in(api, &body["tools"]),
            ..Self::default()
        };
        match api {
            Api::AnthropicMessages => request.read_anthropic(body),
            Api::OpenAiChat => request.read_chat(body),
            Api::OpenAiResponses => request.read_responses(body),
            Api::Gemini => request.read_gemini(body),
        }
        request
    }

    fn read_anthropic(&mut self, body: &Value) {
        self.add_system(&body["system"]);
        for message in list(&body["messages"]) {
            if message["role"] == "user" {
                self.add_user_text(&message["content"]);
            }
            let is_result = |block: &&Value| block["type"] == "tool_result";
            for block in list(&message["content"]).filter(is_result) {
                self.tool_results.push(ToolResult {
                    id: text(&block["tool_use_id"]),
                    name: None,
                    output: output(&block["content"]),
                    is_error: Some(block["is_error"].as_bool().unwrap_or(false)),
                });
            }
        }
    }

    fn read_chat(&mut self, body: &Value) {
        for message in list(&body["messages"]) {
            match message["role"].as_str() {
                Some("system" | "developer") => self.add_system(&message["content"]),
                Some("user") => self.add_user_text(&message["content"]),
                Some("tool" | "function") => self.tool_results.push(ToolResult {
                    id: text(&message["tool_call_id"]),
                    name: text(&message["name"]),
                    output: output(&message["content"]),
                    is_error: None,
                }),
                _ => {}
            }
        }
    }

    fn read_responses(&mut self, body: &Value) {
        self.add_system(&body["instructions"]);
        if body["input"].is_string() {
            self.add_user_text(&body["input"]);
        }
        for item in list(&body["input"]) {
            let is_result = item["type"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("_output"));
            match item["role"].as_str() {
                Some("system" | "developer") => self.add_system(&item["content"]),
                Some("user") => self.add_user_text(&item["content"]),
                None if is_result => self.tool_results.push(ToolResult {
                    id: text(&item["call_id"]),
                    name: None,
                    output: output(&item["output"]),
                    is_error: None,
                }),
                _ => {}
            }
        }
    }

    fn read_gemini(&mut self, body: &Value) {
        self.add_system(&body["systemInstruction"]["parts"]);
        self.add_system(&body["system_instruction"]["parts"]);
        for content in list(&body["contents"]) {
            if content["role"] != "model" {
                self.add_user_text(&content["parts"]);
            }
            let responses = list(&content["parts"]).map(|part| &part["functionResponse"]);
            for response in responses.filter(|response| response.is_object()) {
                self.tool_results.push(gemini_result(response));
            }
        }
    }

    fn add_system(&mut self, content: &Value) {
        let text = text_in(content);
        if text.is_empty() {
            return;
        }
        match &mut self.system {
            Some(system) => {
                system.push_str("\n\n");
                system.push_str(&text);
            }
            None => self.system = Some(text),
        }
    }

    fn add_user_text(&mut self, content: &Value) {
        let text = text_in(content);
        if !text.is_empty() {
            self.user_texts.push(text);
        }
    }
}

/// The same request, also asking for usage: for a Chat Completions stream that does not. Absent when there is nothing to
/// add.
///
/// Every other byte of the body stays as it is, unless it already has stream options.
pub fn ask_for_usage(api: Api, body: &[u8]) -> Option<Vec<u8>> {
    if api != Api::OpenAiChat {
        return None;
    }
    let mut request: Value = serde_json::from_slice(body).ok()?;
    let asks = request["stream_options"]["include_usage"] == true;
    if request["stream"] != true || asks {
        return None;
    }
    if request["stream_options"].is_object() {
        request["stream_options"]["include_usage"] = json!(true);
        return serde_json::to_vec(&request).ok();
    }
    if request.get("stream_options").is_some() {
        request["stream_options"] = json!({"include_usage": true});
        return serde_json::to_vec(&request).ok();
    }
    let after_brace = body.iter().position(|&byte| byte == b'{')? + 1;
    let option = br#""stream_options":{"include_usage":true},"#;
    Some([&body[..after_brace], option, &body[after_brace..]].concat())
}

fn tools_in(api: Api, tools: &Value) -> usize {
    match api {
        Api::Gemini => list(tools)
            .map(|tool| list(&tool["functionDeclarations"]).count().max(1))
            .sum(),
        _ => list(tools).count(),
    }
}

fn gemini_result(response: &Value) -> ToolResult {
    let returned = &response["response"];
    let error = &returned["error"];
    let is_plain = returned.as_object().is_some_and(|object| object.len() == 1);
    ToolResult {
        id: text(&response["id"]),
        name: text(&response["name"]),
        output: match () {
            () if is_plain && !error.is_null() => error.clone(),
            () if is_plain && !returned["output"].is_null() => returned["output"].clone(),
            () => returned.clone(),
        },
        is_error: Some(!error.is_null()),
    }
}

/// A text where all parts are texts, else the parts.
fn output(content: &Value) -> Value {
    let is_text = |part: &Value| part["text"].is_string();
    match content {
        Value::Array(parts) if parts.iter().all(is_text) => Value::String(text_in(content)),
        other => other.clone(),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(Into::into)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_asked_for_without_touching_other_bytes() {
        let body = br#" { "stream": true, "temperature":1.0, "big": 1e400 }"#;
        // Not JSON that can be held, so nothing is promised about it.
        assert_eq!(ask_for_usage(Api::OpenAiChat, body), None);
        let body = br#" { "stream": true, "temperature":1.0 }"#;
        assert_eq!(
            ask_for_usage(Api::OpenAiChat, body).unwrap(),
            br#" {"stream_options":{"include_usage":true}, "stream": true, "temperature":1.0 }"#
        );
    }

    #[test]
    fn usage_is_asked_for_only_where_it_is_missing() {
        let check = |body: &str, expected: Option<&str>| {
            let asked = ask_for_usage(Api::OpenAiChat, body.as_bytes());
            assert_eq!(asked.as_deref(), expected.map(str::as_bytes), "{body}");
        };
        check(r#"{"stream":false}"#, None);
        check(
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            None,
        );
        check(
            r#"{"stream":true,"stream_options":{"x":1}}"#,
            Some(r#"{"stream":true,"stream_options":{"x":1,"include_usage":true}}"#),
        );
        check(
            r#"{"stream":true,"stream_options":null}"#,
            Some(r#"{"stream":true,"stream_options":{"include_usage":true}}"#),
        );
        assert_eq!(
            ask_for_usage(Api::OpenAiResponses, br#"{"stream":true}"#),
            None
        );
    }

    #[test]
    fn what_is_no_request_has_nothing_in_it() {
        for api in Api::ALL {
            let request = ModelRequest::decode(api, "/v1/x", b"[half a");
            assert_eq!(request, ModelRequest::default());
        }
    }
}
