//! Gemini CLI's `--output-format stream-json`.

use super::story::{LlmFailure, Story, ToolEnd};
use super::{count, text};
use assize_contracts::{Timestamp, TokenBreakdown};
use serde_json::Value;

/// The beginning of its report of an LLM that failed.
const API_ERROR: &str = "[API Error";

pub(super) fn read(event: &Value, at: Option<i64>, story: &mut Story) {
    let stamped =
        text(event, &["timestamp"]).and_then(|time| Timestamp::from(time.to_owned()).unix_ms());
    let at = stamped.or(at);
    let content = text(event, &["content"]).unwrap_or_default();
    let id = text(event, &["tool_id"]).unwrap_or_default();
    match text(event, &["type"]).unwrap_or_default() {
        "init" => story.session = text(event, &["session_id"]).map(str::to_owned),
        "message" if text(event, &["role"]) == Some("assistant") => story.extend_text(content, at),
        "tool_use" => {
            let name = text(event, &["tool_name"]).unwrap_or("unknown");
            story.begin_tool(id, name, event["parameters"].clone(), at);
        }
        "tool_result" => {
            let success = match text(event, &["status"]) {
                Some("success") => Some(true),
                Some(_) => Some(false),
                None => None,
            };
            let error = text(event, &["error", "message"]).map(str::to_owned);
            let end = ToolEnd {
                output: event["output"].clone(),
                success,
                error: error.filter(|_| success == Some(false)),
                duration_ms: None,
            };
            story.end_tool(id, end, at);
        }
        "error" => story.complain(text(event, &["message"]).unwrap_or_default(), true, at),
        "result" => ended(event, at, story),
        _ => {}
    }
}

fn ended(event: &Value, at: Option<i64>, story: &mut Story) {
    for (model, stats) in event["stats"]["models"].as_object().into_iter().flatten() {
        used(model, stats, story);
    }
    let message = text(event, &["error", "message"]).unwrap_or_default();
    match text(event, &["status"]) {
        Some("success") => story.is_done = true,
        _ if message.starts_with(API_ERROR) => {
            story.complain(message, true, at);
            let code = message.split_once("\"code\":").map(|(_, rest)| rest);
            let digits = code.and_then(|rest| rest.get(..3)?.parse().ok());
            story.llm_failure = Some(LlmFailure {
                status: digits,
                message: message.to_owned(),
            });
        }
        _ => story.complain(
            match message {
                "" => "the agent ended with an error of its own",
                message => message,
            },
            false,
            at,
        ),
    }
}

/// `input` is what no cache held; thoughts are in none of the parts, only in the total.
fn used(model: &str, stats: &Value, story: &mut Story) {
    let field = |key| count(stats, &[key]);
    let parts = field("input_tokens").zip(field("output_tokens"));
    let thoughts = field("total_tokens")
        .zip(parts)
        .map(|(total, (input, output))| total.saturating_sub(input).saturating_sub(output));
    if field("total_tokens") == Some(0) {
        return;
    }
    let tokens = TokenBreakdown {
        input: field("input"),
        output: field("output_tokens"),
        reasoning: thoughts,
        cache_read: field("cached"),
        ..TokenBreakdown::default()
    };
    story.add_usage(model, tokens, None);
}
