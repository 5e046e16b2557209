//! The request of an agent to a model.

use crate::api::{Api, model_in_path, streams_by_path};
use crate::decode::text_in;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// The lines in which Gemini CLI puts an exit code: before a signal, processes in the background, their group and a closing mark.
const LAST_LINES: usize = 6;

/// A request to a model, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// The model asked for.
    pub model: Option<String>,
    /// The answer is wanted in pieces.
    pub stream: bool,
    /// The number of tools that the model may use. Calls beside the task itself usually have none.
    pub tools: usize,
    /// The names of those tools, sorted. Tools that an API has built in have none.
    pub tool_names: Vec<String>,
    /// The opening of the conversation: user messages before the model's first answer.
    pub opening: String,
    /// Messages of other agents, where an API has such: the task of a subagent, or reports of subagents.
    pub from_agents: String,
    /// Instructions.
    pub system: Option<String>,
    /// The text of every user message that has one, oldest first.
    pub user_texts: Vec<String>,
    /// Results of tools, oldest first: the whole conversation is sent each time.
    pub tool_results: Vec<ToolResult>,
}

/// The result of a tool, as the model receives it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The id of the call. Absent where results go by order, as with Gemini.
    pub id: Option<String>,
    /// The tool's name, where the request has it.
    pub name: Option<String>,
    /// The result: a text, or whatever JSON was sent.
    pub output: Value,
    /// True when the agent marked it as an error. Absent where the API has no such mark.
    pub is_error: Option<bool>,
}

impl ModelRequest {
    /// Reads a request's body. Unreadable parts are absent.
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
            tool_names: tool_names(&body["tools"]),
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
        let mut is_opening = true;
        for message in list(&body["messages"]) {
            is_opening &= message["role"] == "user";
            if message["role"] == "user" {
                self.add_user_text(&message["content"], is_opening);
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
        let mut is_opening = true;
        for message in list(&body["messages"]) {
            is_opening &= message["role"] != "assistant";
            match message["role"].as_str() {
                Some("system" | "developer") => self.add_system(&message["content"]),
                Some("user") => self.add_user_text(&message["content"], is_opening),
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
            self.add_user_text(&body["input"], true);
        }
        let mut is_opening = true;
        for item in list(&body["input"]) {
            let roles = [Some("system"), Some("developer"), Some("user")];
            is_opening &= roles.contains(&item["role"].as_str());
            let is_result = item["type"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("_output"));
            match item["role"].as_str() {
                // Codex offers tools among the messages to models that write programs which call them.
                Some("developer") if item["type"] == "additional_tools" => {
                    self.tools += tools_in(Api::OpenAiResponses, &item["tools"]);
                    self.tool_names.extend(tool_names(&item["tools"]));
                    self.tool_names.sort();
                }
                Some("system" | "developer") => self.add_system(&item["content"]),
                Some("user") => self.add_user_text(&item["content"], is_opening),
                None if is_result => self.tool_results.push(ToolResult {
                    id: text(&item["call_id"]),
                    name: None,
                    output: output(&item["output"]),
                    is_error: program_failed(item),
                }),
                None if item["type"] == "agent_message" => {
                    self.from_agents.push_str(&words_in(&item["content"]));
                    self.from_agents.push('\n');
                }
                _ => {}
            }
        }
    }

    fn read_gemini(&mut self, body: &Value) {
        self.add_system(&body["systemInstruction"]["parts"]);
        self.add_system(&body["system_instruction"]["parts"]);
        let mut is_opening = true;
        for content in list(&body["contents"]) {
            is_opening &= content["role"] != "model";
            if content["role"] != "model" {
                self.add_user_text(&content["parts"], is_opening);
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

    fn add_user_text(&mut self, content: &Value, is_opening: bool) {
        let text = text_in(content);
        if text.is_empty() {
            return;
        }
        if is_opening {
            self.opening.push_str(&text);
            self.opening.push('\n');
        }
        self.user_texts.push(text);
    }
}

/// True when requests to this API may have to be changed to report usage.
pub fn may_lack_usage(api: Api) -> bool {
    api == Api::OpenAiChat
}

/// The same request, also asking for usage: for a Chat Completions stream that does not. Absent when there is nothing to
/// add.
///
/// Every other byte of the body stays as it is, unless it already has stream options.
pub fn ask_for_usage(api: Api, body: &[u8]) -> Option<Vec<u8>> {
    if !may_lack_usage(api) {
        return None;
    }
    // A list of the same values would be read as well.
    if !body.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let asked: StreamKeys = serde_json::from_slice(body).ok()?;
    let asks = |options: &Value| options["include_usage"] == true;
    if asked.stream != true || asked.stream_options.as_ref().is_some_and(asks) {
        return None;
    }
    let Some(mut options) = asked.stream_options else {
        let after_brace = body.iter().position(|&byte| byte == b'{')? + 1;
        let option = br#""stream_options":{"include_usage":true},"#;
        return Some([&body[..after_brace], option, &body[after_brace..]].concat());
    };
    match options.is_object() {
        true => options["include_usage"] = json!(true),
        false => options = json!({"include_usage": true}),
    }
    let mut request: Value = serde_json::from_slice(body).ok()?;
    request["stream_options"] = options;
    serde_json::to_vec(&request).ok()
}

/// The keys of a request about its stream; everything else is skipped.
#[derive(Deserialize)]
struct StreamKeys {
    #[serde(default)]
    stream: Value,
    /// Null is not the same as missing.
    #[serde(default, deserialize_with = "present")]
    stream_options: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

pub(crate) fn tools_in(api: Api, tools: &Value) -> usize {
    match api {
        Api::Gemini => list(tools)
            .map(|tool| list(&tool["functionDeclarations"]).count().max(1))
            .sum(),
        _ => list(tools).count(),
    }
}

/// Names are in the tool itself, under `function`, or in groups of tools.
pub(crate) fn tool_names(tools: &Value) -> Vec<String> {
    let own = |tool: &Value| {
        let named = [
            &tool["name"],
            &tool["function"]["name"],
            &tool["custom"]["name"],
        ];
        named.into_iter().find_map(text)
    };
    let grouped = |tool: &Value| {
        let groups = ["functionDeclarations", "tools"];
        let groups = groups
            .into_iter()
            .flat_map(|group| list(&tool[group]).cloned().collect::<Vec<_>>());
        groups.collect::<Vec<Value>>()
    };
    let all = list(tools).flat_map(|tool| {
        let inner = grouped(tool);
        own(tool)
            .into_iter()
            .chain(inner.iter().filter_map(own).collect::<Vec<_>>())
    });
    let mut names: Vec<String> = all.collect();
    names.sort();
    names
}

pub(crate) fn gemini_result(response: &Value) -> ToolResult {
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
        is_error: Some(!error.is_null() || has_exit_code(response)),
    }
}

/// True if a program that the model wrote has failed, by Codex's report of its end. Absent for other tools.
pub(crate) fn program_failed(result: &Value) -> Option<bool> {
    let report = result["output"][0]["text"].as_str()?;
    match result["type"] == "custom_tool_call_output" {
        true if report.starts_with("Script failed\n") => Some(true),
        true if report.starts_with("Script completed\n") => Some(false),
        _ => None,
    }
}

/// Gemini CLI reports a failed command to the model in the last lines of its output.
fn has_exit_code(response: &Value) -> bool {
    if response["name"] != "run_shell_command" {
        return false;
    }
    let output = response["response"]["output"].as_str().unwrap_or_default();
    let mut last = output.lines().rev().take(LAST_LINES);
    let output = output.trim_start_matches("<untrusted_context>\n");
    output.starts_with("Output:")
        && last.any(|line| {
            let code = line.strip_prefix("Exit Code: ");
            code.is_some_and(|code| code != "0" && code != "(none)")
        })
}

/// A text where all parts are texts, else the parts.
pub(crate) fn output(content: &Value) -> Value {
    let is_text = |part: &Value| part["text"].is_string();
    match content {
        Value::Array(parts) if parts.iter().all(is_text) => Value::String(text_in(content)),
        other => other.clone(),
    }
}

/// Text of a message from one agent to another. An encrypted part is included as it was sent.
pub(crate) fn words_in(content: &Value) -> String {
    let words = list(content).map(|part| match &part["encrypted_content"] {
        Value::String(sealed) => sealed.as_str(),
        _ => part["text"].as_str().unwrap_or_default(),
    });
    words.collect()
}

pub(crate) fn text(value: &Value) -> Option<String> {
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
        assert!(ask_for_usage(Api::OpenAiChat, body).is_some());
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
    fn a_command_of_gemini_failed_when_its_output_ends_in_an_exit_code() {
        let is_error = |name: &str, output: &str| {
            let response = json!({"name": name, "response": {"output": output}});
            gemini_result(&response).is_error
        };
        let failed = "Output: two\nExit Code: 3\nProcess Group PGID: 7";
        assert_eq!(is_error("run_shell_command", failed), Some(true));
        let marked = format!("<untrusted_context>\n{failed}\n</untrusted_context>");
        assert_eq!(is_error("run_shell_command", &marked), Some(true));
        assert_eq!(is_error("read_file", failed), Some(false));
        let early = "Output: Exit Code: 3\nExit Code: 3\n1\n2\n3\n4\n5\n6";
        assert_eq!(is_error("run_shell_command", early), Some(false));
        assert_eq!(is_error("run_shell_command", "Output: hi"), Some(false));
    }

    #[test]
    fn a_conversation_opens_with_what_the_user_says_before_the_first_answer() {
        let body = json!({"messages": [
            {"role": "system", "content": "S"}, {"role": "user", "content": "one"}, {"role": "user", "content": "two"},
            {"role": "assistant", "content": "ok"}, {"role": "user", "content": "three"}],
            "tools": [{"type": "function", "function": {"name": "b"}}, {"type": "function", "function": {"name": "a"}}]});
        let request = ModelRequest::decode(Api::OpenAiChat, "/", body.to_string().as_bytes());
        assert_eq!(request.opening, "one\ntwo\n");
        assert_eq!(request.tool_names, ["a", "b"]);
    }

    #[test]
    fn tools_may_stand_among_the_messages() {
        let body = json!({"input": [
            {"type": "additional_tools", "role": "developer", "tools": [
                {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}]},
            {"type": "message", "role": "user", "content": "one"}]});
        let body = body.to_string();
        let request = ModelRequest::decode(Api::OpenAiResponses, "/", body.as_bytes());
        assert_eq!(request.tool_names, ["exec", "functions"]);
        assert_eq!((request.tools, request.opening.as_str()), (1, "one\n"));
        let outline = crate::RequestOutline::of(Api::OpenAiResponses, "/", body.as_bytes());
        assert_eq!(outline.tool_names, request.tool_names);
        assert_eq!((outline.tools, outline.opening), (1, request.opening));
    }

    #[test]
    fn a_program_that_the_model_wrote_tells_how_it_ended() {
        let is_error = |report: &str| {
            let body = json!({"input": [{"type": "custom_tool_call_output", "call_id": "c",
                "output": [{"type": "input_text", "text": report}, {"type": "input_text", "text": "more"}]}]});
            let body = body.to_string();
            let request = ModelRequest::decode(Api::OpenAiResponses, "/", body.as_bytes());
            let outline = crate::RequestOutline::of(Api::OpenAiResponses, "/", body.as_bytes());
            let read = outline.tool_results[0].read(body.as_bytes());
            assert_eq!(read, request.tool_results[0]);
            read.is_error
        };
        assert_eq!(
            is_error("Script failed\nWall time 0.0 seconds\nOutput:\n"),
            Some(true)
        );
        assert_eq!(
            is_error("Script completed\nWall time 0.2 seconds\nOutput:\n"),
            Some(false)
        );
        assert_eq!(is_error("Script running with cell ID 3\n"), None);
        assert_eq!(is_error("a patch"), None);
    }

    #[test]
    fn agents_talk_to_each_other_among_the_messages() {
        let body = json!({"input": [
            {"type": "message", "role": "user", "content": "one"},
            {"type": "agent_message", "author": "/root", "recipient": "/root/helper", "content": [
                {"type": "input_text", "text": "Payload:\n"}, {"type": "encrypted_content", "encrypted_content": "Do it."}]}]});
        let body = body.to_string();
        let request = ModelRequest::decode(Api::OpenAiResponses, "/", body.as_bytes());
        let outline = crate::RequestOutline::of(Api::OpenAiResponses, "/", body.as_bytes());
        assert_eq!(request.from_agents, "Payload:\nDo it.\n");
        assert_eq!(outline.from_agents, request.from_agents);
        assert_eq!(
            (request.opening, outline.opening),
            ("one\n".into(), "one\n".into())
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
