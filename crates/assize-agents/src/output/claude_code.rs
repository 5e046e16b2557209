//! Claude Code's `--output-format stream-json`, and agents that copy it.

use super::story::{LlmFailure, Story, ToolEnd};
use super::{count, text};
use assize_contracts::TokenBreakdown;
use serde_json::Value;

/// The meaning of `input_tokens`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Only what was neither read from a cache nor written to one.
    Anthropic,
    /// All input.
    OpenAi,
}

/// Texts of this model are written by the program itself.
const NO_MODEL: &str = "<synthetic>";

pub(super) fn read(event: &Value, at: Option<i64>, story: &mut Story, counting: Counting) {
    if let Some(session) = text(event, &["session_id"]) {
        story.session = Some(session.to_owned());
    }
    story.agent = text(event, &["parent_tool_use_id"]).map(str::to_owned);
    match text(event, &["type"]) {
        Some("assistant") if text(event, &["message", "model"]) != Some(NO_MODEL) => {
            // Qwen Code gives every part of an answer an id of its own.
            if let (id @ Some(_), Counting::Anthropic) = (text(event, &["message", "id"]), counting)
            {
                story.begin_answer(id, at);
            }
            blocks(event).for_each(|block| take_block(block, at, story));
        }
        Some("user") => blocks(event).for_each(|block| answered(block, at, story)),
        Some("system") if text(event, &["subtype"]) == Some("api_retry") => {
            let message = match count(event, &["error_status"]) {
                Some(status) => format!("the LLM answered {status}, the agent tries again"),
                None => "the LLM did not answer, the agent tries again".to_owned(),
            };
            story.complain(&message, true, at);
        }
        Some("result") => ended(event, at, story, counting),
        _ => {}
    }
    story.agent = None;
}

fn blocks(event: &Value) -> impl Iterator<Item = &Value> {
    let content = super::at(event, &["message", "content"]);
    content.and_then(Value::as_array).into_iter().flatten()
}

fn take_block(block: &Value, at: Option<i64>, story: &mut Story) {
    match text(block, &["type"]) {
        Some("text") => story.add_text(text(block, &["text"]).unwrap_or_default(), at),
        Some("thinking") => story.think(text(block, &["thinking"]).unwrap_or_default(), at),
        Some("tool_use") => {
            let id = text(block, &["id"]).unwrap_or_default();
            let name = text(block, &["name"]).unwrap_or("unknown");
            story.begin_tool(id, name, block["input"].clone(), at);
        }
        _ => {}
    }
}

fn answered(block: &Value, at: Option<i64>, story: &mut Story) {
    if text(block, &["type"]) != Some("tool_result") {
        return;
    }
    let is_error = block["is_error"].as_bool().unwrap_or(false);
    let output = &block["content"];
    let end = ToolEnd {
        success: Some(!is_error),
        error: is_error.then(|| output.as_str().unwrap_or("the tool failed").to_owned()),
        output: output.clone(),
        duration_ms: None,
    };
    story.end_tool(text(block, &["tool_use_id"]).unwrap_or_default(), end, at);
}

fn ended(event: &Value, at: Option<i64>, story: &mut Story, counting: Counting) {
    for denial in event["permission_denials"].as_array().into_iter().flatten() {
        let id = text(denial, &["tool_use_id"]).unwrap_or_default();
        let name = text(denial, &["tool_name"]).unwrap_or("unknown");
        story.deny_tool(id, name, &denial["tool_input"], at);
    }
    used(event, story, counting);
    // Qwen Code reports its own errors elsewhere.
    let result = text(event, &["result"]).or_else(|| text(event, &["error", "message"]));
    let result = result.unwrap_or_default();
    let status = count(event, &["api_error_status"]).and_then(|status| u16::try_from(status).ok());
    let is_error = event["is_error"].as_bool().unwrap_or(false);
    match text(event, &["subtype"]) {
        _ if is_error && (status.is_some() || result.starts_with("API Error")) => {
            story.complain(result, true, at);
            let message = result.to_owned();
            story.llm_failure = Some(LlmFailure { status, message });
        }
        Some("error_max_turns") => story.is_at_limit = true,
        Some("success") if !is_error => {
            story.is_done = true;
            story.answer = result.to_owned();
        }
        subtype => {
            let message = match result {
                "" => format!("the agent ended with `{}`", subtype.unwrap_or("an error")),
                result => result.to_owned(),
            };
            story.complain(&message, false, at);
        }
    }
}

/// `modelUsage` knows of every model and of requests that were repeated; `usage` leaves some out. In a session that goes
/// on, newer versions include earlier prompts in it, and report separately what came since.
fn used(event: &Value, story: &mut Story, counting: Counting) {
    let since = event["model_usage_since_last_result"].as_object();
    let models = since.or_else(|| event["modelUsage"].as_object());
    let models = models.into_iter().flatten();
    let before = story.model_calls.len();
    for (model, usage) in models {
        let tokens = TokenBreakdown {
            input: count(usage, &["inputTokens"]),
            output: count(usage, &["outputTokens"]),
            cache_read: count(usage, &["cacheReadInputTokens"]),
            cache_write: count(usage, &["cacheCreationInputTokens"]),
            ..TokenBreakdown::default()
        };
        story.add_usage(model, tokens, usage["costUSD"].as_f64());
    }
    let usage = &event["usage"];
    let is_nothing = count(usage, &["input_tokens"]).unwrap_or(0) == 0
        && count(usage, &["output_tokens"]).unwrap_or(0) == 0;
    if story.model_calls.len() > before || is_nothing {
        return;
    }
    let cache_read = count(usage, &["cache_read_input_tokens"]);
    let cache_write = count(usage, &["cache_creation_input_tokens"]);
    let cached = cache_read
        .unwrap_or(0)
        .saturating_add(cache_write.unwrap_or(0));
    let input = count(usage, &["input_tokens"]);
    let tokens = TokenBreakdown {
        input: match counting {
            Counting::Anthropic => input,
            Counting::OpenAi => input.map(|input| input.saturating_sub(cached)),
        },
        output: count(usage, &["output_tokens"]),
        cache_read,
        cache_write,
        ..TokenBreakdown::default()
    };
    story.add_usage("unknown", tokens, event["total_cost_usd"].as_f64());
}
