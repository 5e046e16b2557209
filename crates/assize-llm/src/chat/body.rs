//! Requests in the form of each API, and the model's answer as the next message.

use super::Answered;
use super::endpoint::Endpoint;
use super::message::{ChatRequest, FORM_TOOL, Message, ToolSpec};
use crate::answer::RequestedTool;
use crate::api::Api;
use serde_json::{Map, Value, json};

/// Anthropic demands a limit.
const DEFAULT_MAX_TOKENS: u32 = 8192;

pub(super) fn encode(endpoint: &Endpoint, request: &ChatRequest) -> Value {
    match endpoint.api {
        Api::AnthropicMessages => anthropic(request),
        Api::OpenAiChat => chat(request, endpoint),
        Api::OpenAiResponses => responses(request),
        Api::Gemini => gemini(request),
    }
}

/// The model's message, ready to be sent back to it.
pub(super) fn assistant(answered: &Answered, streamed: bool) -> Message {
    let raw = match (streamed, answered.answer.api) {
        (true, _) => Value::Null,
        (_, Api::AnthropicMessages) => answered.document()["content"].take(),
        (_, Api::OpenAiChat) => answered.document()["choices"][0]["message"].take(),
        (_, Api::OpenAiResponses) => answered.document()["output"].take(),
        (_, Api::Gemini) => answered.document()["candidates"][0]["content"].take(),
    };
    Message::Assistant {
        text: answered.answer.text(),
        tools: answered.answer.tools().cloned().collect(),
        raw: (!raw.is_null()).then_some(raw),
    }
}

fn anthropic(request: &ChatRequest) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            Message::User(text) => ("user", vec![json!({"type": "text", "text": text})]),
            Message::Assistant {
                raw: Some(Value::Array(blocks)),
                ..
            } => ("assistant", blocks.clone()),
            Message::Assistant { text, tools, .. } => ("assistant", anthropic_blocks(text, tools)),
            Message::ToolResult {
                id,
                output,
                is_error,
                ..
            } => (
                "user",
                vec![
                    json!({"type": "tool_result", "tool_use_id": id, "content": output, "is_error": is_error}),
                ],
            ),
        };
        add_parts(&mut messages, role, "content", blocks);
    }
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    let max_tokens = request.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    body.insert("max_tokens".into(), json!(max_tokens));
    insert(&mut body, "system", request.system.as_ref());
    insert(&mut body, "temperature", request.temperature);
    body.insert("messages".into(), json!(messages));
    let tool = |name: &str, description: &str, schema: &Value| json!({"name": name, "description": description, "input_schema": schema});
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|spec| tool(&spec.name, &spec.description, &spec.parameters))
        .collect();
    // A model that may use other tools cannot be made to use this one.
    if let Some(form) = request.output_schema.as_ref().filter(|_| tools.is_empty()) {
        tools.push(tool(
            FORM_TOOL,
            "Give the answer in this form.",
            &form.schema,
        ));
        body.insert(
            "tool_choice".into(),
            json!({"type": "tool", "name": FORM_TOOL}),
        );
    }
    insert(&mut body, "tools", (!tools.is_empty()).then_some(tools));
    insert(&mut body, "stream", request.stream.then_some(true));
    Value::Object(body)
}

fn anthropic_blocks(text: &str, tools: &[RequestedTool]) -> Vec<Value> {
    let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
    let tools = tools.iter().map(|tool| {
        json!({"type": "tool_use", "id": tool.id, "name": tool.name, "input": tool.arguments})
    });
    text.into_iter().chain(tools).collect()
}

fn chat(request: &ChatRequest, endpoint: &Endpoint) -> Value {
    let mut messages = Vec::new();
    if let Some(system) = &request.system {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.extend(request.messages.iter().map(chat_message));
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("messages".into(), json!(messages));
    // OpenAI renamed it and refuses the old name; everyone else knows only that.
    let limit = match endpoint.base_url.contains("openai.com") {
        true => "max_completion_tokens",
        false => "max_tokens",
    };
    insert(&mut body, limit, request.max_output_tokens);
    insert(&mut body, "temperature", request.temperature);
    if let Some(form) = &request.output_schema {
        let schema = json!({"name": form.name, "schema": form.schema, "strict": true});
        body.insert(
            "response_format".into(),
            json!({"type": "json_schema", "json_schema": schema}),
        );
    }
    let tool = |spec: &ToolSpec| {
        json!({"type": "function", "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        }})
    };
    insert_tools(&mut body, request.tools.iter().map(tool));
    if request.stream {
        body.insert("stream".into(), json!(true));
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    Value::Object(body)
}

fn chat_message(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({"role": "user", "content": text}),
        Message::Assistant {
            raw: Some(raw @ Value::Object(_)),
            ..
        } => raw.clone(),
        Message::Assistant { text, tools, .. } => {
            let mut message = json!({"role": "assistant", "content": text});
            if !tools.is_empty() {
                let call = |tool: &RequestedTool| {
                    let function = json!({"name": tool.name, "arguments": argument_text(tool)});
                    json!({"id": tool.id, "type": "function", "function": function})
                };
                message["tool_calls"] = tools.iter().map(call).collect();
            }
            message
        }
        Message::ToolResult { id, output, .. } => {
            json!({"role": "tool", "tool_call_id": id, "content": output})
        }
    }
}

fn responses(request: &ChatRequest) -> Value {
    let mut input = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(text) => input.push(json!({"role": "user", "content": text})),
            Message::Assistant {
                raw: Some(Value::Array(items)),
                ..
            } => input.extend(items.clone()),
            Message::Assistant { text, tools, .. } => {
                if !text.is_empty() {
                    input.push(json!({"role": "assistant", "content": text}));
                }
                input.extend(tools.iter().map(|tool| {
                    json!({
                        "type": "function_call",
                        "call_id": tool.id,
                        "name": tool.name,
                        "arguments": argument_text(tool),
                    })
                }));
            }
            Message::ToolResult { id, output, .. } => {
                input
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    insert(&mut body, "instructions", request.system.as_ref());
    body.insert("input".into(), json!(input));
    body.insert("store".into(), json!(false));
    // Without storage, reasoning can only be continued when it comes along.
    body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    insert(&mut body, "max_output_tokens", request.max_output_tokens);
    insert(&mut body, "temperature", request.temperature);
    if let Some(form) = &request.output_schema {
        let format = json!({
            "type": "json_schema",
            "name": form.name,
            "schema": form.schema,
            "strict": true,
        });
        body.insert("text".into(), json!({"format": format}));
    }
    let tool = |spec: &ToolSpec| {
        json!({
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
            "strict": false,
        })
    };
    insert_tools(&mut body, request.tools.iter().map(tool));
    insert(&mut body, "stream", request.stream.then_some(true));
    Value::Object(body)
}

fn gemini(request: &ChatRequest) -> Value {
    let mut contents: Vec<Value> = Vec::new();
    for message in &request.messages {
        let (role, parts) = gemini_parts(message);
        add_parts(&mut contents, role, "parts", parts);
    }
    let mut config = Map::new();
    insert(&mut config, "maxOutputTokens", request.max_output_tokens);
    insert(&mut config, "temperature", request.temperature);
    if let Some(form) = &request.output_schema {
        config.insert("responseMimeType".into(), json!("application/json"));
        config.insert("responseJsonSchema".into(), form.schema.clone());
    }
    let mut body = Map::new();
    let system = request.system.as_ref();
    insert(
        &mut body,
        "systemInstruction",
        system.map(|text| json!({"parts": [{"text": text}]})),
    );
    body.insert("contents".into(), json!(contents));
    if !request.tools.is_empty() {
        let declare = |spec: &ToolSpec| {
            json!({
                "name": spec.name,
                "description": spec.description,
                "parametersJsonSchema": spec.parameters,
            })
        };
        let declarations: Value = request.tools.iter().map(declare).collect();
        body.insert(
            "tools".into(),
            json!([{"functionDeclarations": declarations}]),
        );
    }
    insert(
        &mut body,
        "generationConfig",
        (!config.is_empty()).then_some(config),
    );
    Value::Object(body)
}

/// Adds the parts of a message under a key. Roles must alternate, so that results of parallel calls share one message.
fn add_parts(messages: &mut Vec<Value>, role: &str, key: &str, mut parts: Vec<Value>) {
    match messages.last_mut().filter(|last| last["role"] == role) {
        Some(last) => {
            if let Some(known) = last[key].as_array_mut() {
                known.append(&mut parts);
            }
        }
        None => messages.push(json!({"role": role, key: parts})),
    }
}

/// The role of a message, and its parts.
fn gemini_parts(message: &Message) -> (&'static str, Vec<Value>) {
    match message {
        Message::User(text) => ("user", vec![json!({"text": text})]),
        Message::Assistant {
            raw: Some(raw @ Value::Object(_)),
            ..
        } => {
            let parts = raw["parts"].as_array().cloned();
            ("model", parts.unwrap_or_default())
        }
        Message::Assistant { text, tools, .. } => {
            let text = (!text.is_empty()).then(|| json!({"text": text}));
            let call = |tool: &RequestedTool| json!({"functionCall": {"name": tool.name, "args": tool.arguments}});
            let parts = text.into_iter().chain(tools.iter().map(call));
            ("model", parts.collect())
        }
        Message::ToolResult {
            name,
            output,
            is_error,
            ..
        } => {
            let field = if *is_error { "error" } else { "output" };
            let response = json!({"name": name, "response": {field: output}});
            ("user", vec![json!({"functionResponse": response})])
        }
    }
}

fn insert(body: &mut Map<String, Value>, name: &str, value: Option<impl serde::Serialize>) {
    if let Some(value) = value {
        body.insert(name.into(), json!(value));
    }
}

fn insert_tools(body: &mut Map<String, Value>, tools: impl Iterator<Item = Value>) {
    let tools: Vec<Value> = tools.collect();
    insert(body, "tools", (!tools.is_empty()).then_some(tools));
}

fn argument_text(tool: &RequestedTool) -> String {
    match &tool.arguments {
        Value::String(text) => text.clone(),
        arguments => arguments.to_string(),
    }
}
