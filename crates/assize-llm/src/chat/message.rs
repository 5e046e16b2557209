//! Messages to and from a model, the same for every API.

use crate::answer::{ModelAnswer, RequestedTool};
use serde_json::Value;
use std::time::Duration;

/// A conversation, to be continued by the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatRequest {
    /// The model to ask.
    pub model: String,
    /// Instructions.
    pub system: Option<String>,
    /// The conversation so far, ending with the user or with tool results.
    pub messages: Vec<Message>,
    /// Tools it may ask for.
    pub tools: Vec<ToolSpec>,
    /// The form the answer must have. Not every endpoint can enforce it, so check what comes.
    pub output_schema: Option<OutputSchema>,
    /// The most tokens of output. Absent: the service's own limit (8192 for Anthropic, which demands one).
    pub max_output_tokens: Option<u32>,
    /// Randomness. Absent: the service's own; several models accept nothing else.
    pub temperature: Option<f64>,
    /// Ask for the answer in pieces, so that the time of the first one is known.
    pub stream: bool,
}

impl ChatRequest {
    /// The same schema, written into the prompt instead of the request. `None` when there is no schema.
    pub(super) fn with_schema_in_words(&self) -> Option<Self> {
        let schema = &self.output_schema.as_ref()?.schema;
        let wish = format!(
            "Answer with one JSON document that fits this JSON Schema, and with nothing else:\n{schema}"
        );
        let system = match &self.system {
            Some(system) => format!("{system}\n\n{wish}"),
            None => wish,
        };
        Some(Self {
            system: Some(system),
            output_schema: None,
            ..self.clone()
        })
    }
}

/// One step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A message of the user.
    User(String),
    /// A message of the model; take it from [`ChatAnswer::message`].
    Assistant {
        /// Its text.
        text: String,
        /// The tools it asked for.
        tools: Vec<RequestedTool>,
        /// The same in the API's own form, which may hold more: signatures of reasoning that must go back unchanged.
        raw: Option<Value>,
    },
    /// The result of a tool.
    ToolResult {
        /// The call's id. Absent with Gemini, where results go by order.
        id: Option<String>,
        /// The tool's name.
        name: String,
        /// Result.
        output: String,
        /// True when the tool failed.
        is_error: bool,
    },
}

/// A tool that the model may ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// Its purpose, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// The form an answer must have.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSchema {
    /// A short name, letters and underscores.
    pub name: String,
    /// JSON Schema. For OpenAI every property must be required and none else allowed.
    pub schema: Value,
}

/// An answer and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatAnswer {
    /// The answer as read off the wire: parts, tokens, stop reason.
    pub answer: ModelAnswer,
    /// The answer as the next message of the conversation.
    pub message: Message,
    /// Time from sending the request to the end of the answer, of the last try.
    pub duration: Duration,
    /// Time spent before the last try.
    pub waited: Duration,
    /// Number of retries.
    pub retries: u32,
}

impl ChatAnswer {
    /// The text; where a form was asked of Anthropic, the JSON in that form.
    pub fn text(&self) -> String {
        let text = self.answer.text();
        match self.answer.tools().find(|tool| tool.name == FORM_TOOL) {
            Some(form) => form.arguments.to_string(),
            None => text,
        }
    }
}

/// Anthropic's models fill in forms as arguments of a tool that they are made to call.
pub(crate) const FORM_TOOL: &str = "answer_in_form";
