//! A request to a model without its long texts: what a proxy wants to know of every one.

use crate::api::{Api, model_in_path};
use crate::decode::text_in;
use crate::request::{
    ToolResult, gemini_result, output, program_failed, text, tool_names, tools_in, words_in,
};
use crate::spans::Span;
use serde_json::Value;
use std::ops::Range;

/// The content of a request, as far as it can be read. The same as of a [`ModelRequest`](crate::ModelRequest), but results of tools are
/// only known by their places: each request repeats all of them, and hardly any is new.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestOutline {
    /// The model asked for.
    pub model: Option<String>,
    /// The number of tools that the model may use.
    pub tools: usize,
    /// The names of those tools, sorted.
    pub tool_names: Vec<String>,
    /// The opening of the conversation: user messages before the model's first answer.
    pub opening: String,
    /// Messages of other agents, where an API has such: the task of a subagent, or reports of subagents.
    pub from_agents: String,
    /// Results of tools, oldest first.
    pub tool_results: Vec<ResultInRequest>,
}

/// A result of a tool somewhere in a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultInRequest {
    /// The id of the call. Absent where results go by order.
    pub id: Option<String>,
    /// The tool's name, where the request has it.
    pub name: Option<String>,
    api: Api,
    place: Range<usize>,
}

impl ResultInRequest {
    /// Reads the result; `body` is that of the request.
    pub fn read(&self, body: &[u8]) -> ToolResult {
        let text = body.get(self.place.clone()).unwrap_or_default();
        let value: Value = serde_json::from_slice(text).unwrap_or_default();
        let plain = |output_of: &Value, is_error| ToolResult {
            id: self.id.clone(),
            name: self.name.clone(),
            output: output(output_of),
            is_error,
        };
        match self.api {
            Api::AnthropicMessages => {
                let is_error = value["is_error"].as_bool().unwrap_or(false);
                plain(&value["content"], Some(is_error))
            }
            Api::OpenAiChat => plain(&value["content"], None),
            Api::OpenAiResponses => plain(&value["output"], program_failed(&value)),
            Api::Gemini => gemini_result(&value),
        }
    }
}

impl RequestOutline {
    /// Looks through a request's body. Unreadable parts are absent.
    pub fn of(api: Api, path: &str, body: &[u8]) -> Self {
        let Some(whole) = Span::parse(body) else {
            return Self {
                model: model_in_path(path).map(Into::into),
                ..Self::default()
            };
        };
        // Google's code assistance wraps the same request.
        let request = match whole.get("request") {
            inner if inner.is_object() && api == Api::Gemini => inner,
            _ => &whole,
        };
        let tools = request.get("tools").read();
        let model = request.get("model").as_text();
        let mut outline = Self {
            model: model.as_deref().or(model_in_path(path)).map(str::to_owned),
            tools: tools_in(api, &tools),
            tool_names: tool_names(&tools),
            ..Self::default()
        };
        let mut reader = Reader {
            api,
            body,
            outline: &mut outline,
            is_opening: true,
        };
        match api {
            Api::AnthropicMessages => reader.read_anthropic(request),
            Api::OpenAiChat => reader.read_chat(request),
            Api::OpenAiResponses => reader.read_responses(request),
            Api::Gemini => reader.read_gemini(request),
        }
        outline
    }
}

struct Reader<'a> {
    api: Api,
    body: &'a [u8],
    outline: &'a mut RequestOutline,
    is_opening: bool,
}

impl Reader<'_> {
    fn read_anthropic(&mut self, request: &Span<'_>) {
        for message in request.get("messages").items() {
            let content = message.get("content");
            let is_user = message.get("role").is("user");
            self.is_opening &= is_user;
            self.add_opening(content);
            let blocks = content.items().iter();
            for block in blocks.filter(|block| block.get("type").is("tool_result")) {
                self.add_result(block, block.get("tool_use_id"), None);
            }
        }
    }

    fn read_chat(&mut self, request: &Span<'_>) {
        for message in request.get("messages").items() {
            let role = message.get("role").as_text();
            self.is_opening &= role.as_deref() != Some("assistant");
            match role.as_deref() {
                Some("user") => self.add_opening(message.get("content")),
                Some("tool" | "function") => {
                    self.add_result(
                        message,
                        message.get("tool_call_id"),
                        Some(message.get("name")),
                    );
                }
                _ => {}
            }
        }
    }

    fn read_responses(&mut self, request: &Span<'_>) {
        let input = request.get("input");
        if input.as_text().is_some() {
            self.add_opening(input);
        }
        for item in input.items() {
            let role = item.get("role").as_text();
            let is_asking = matches!(role.as_deref(), Some("system" | "developer" | "user"));
            self.is_opening &= is_asking;
            let is_result = || {
                let kind = item.get("type").as_text();
                kind.is_some_and(|kind| kind.ends_with("_output"))
            };
            match role.as_deref() {
                Some("user") => self.add_opening(item.get("content")),
                Some("developer") if item.get("type").is("additional_tools") => {
                    self.add_tools(&item.get("tools").read());
                }
                None if is_result() => self.add_result(item, item.get("call_id"), None),
                None if item.get("type").is("agent_message") => {
                    let words = words_in(&item.get("content").read());
                    self.outline.from_agents.push_str(&words);
                    self.outline.from_agents.push('\n');
                }
                _ => {}
            }
        }
    }

    fn read_gemini(&mut self, request: &Span<'_>) {
        for content in request.get("contents").items() {
            let parts = content.get("parts");
            let is_model = content.get("role").is("model");
            self.is_opening &= !is_model;
            self.add_opening(parts);
            let responses = parts
                .items()
                .iter()
                .map(|part| part.get("functionResponse"));
            for response in responses.filter(|response| response.is_object()) {
                self.add_result(response, response.get("id"), Some(response.get("name")));
            }
        }
    }

    /// Tools that are among the messages.
    fn add_tools(&mut self, tools: &Value) {
        self.outline.tools += tools_in(self.api, tools);
        self.outline.tool_names.extend(tool_names(tools));
        self.outline.tool_names.sort();
    }

    fn add_opening(&mut self, content: &Span<'_>) {
        if !self.is_opening {
            return;
        }
        let words = text_in(&content.read());
        if !words.is_empty() {
            self.outline.opening.push_str(&words);
            self.outline.opening.push('\n');
        }
    }

    fn add_result(&mut self, result: &Span<'_>, id: &Span<'_>, name: Option<&Span<'_>>) {
        let start = result.text.as_ptr() as usize - self.body.as_ptr() as usize;
        self.outline.tool_results.push(ResultInRequest {
            id: text(&id.read()),
            name: name.and_then(|name| text(&name.read())),
            api: self.api,
            place: start..start + result.text.len(),
        });
    }
}
