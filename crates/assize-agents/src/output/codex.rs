//! Codex' `exec --json`. Its lines carry no times and no model.

use super::story::{LlmFailure, Story, ToolEnd};
use super::{count, text};
use assize_contracts::TokenBreakdown;
use serde_json::{Value, json};

pub(super) fn read(event: &Value, at: Option<i64>, story: &mut Story) {
    let item = &event["item"];
    match text(event, &["type"]).unwrap_or_default() {
        "thread.started" => story.session = text(event, &["thread_id"]).map(str::to_owned),
        "item.started" if is_tool(item) => begin(item, at, story),
        "item.completed" => completed(item, at, story),
        "error" => {
            let message = text(event, &["message"]).unwrap_or("an error without a message");
            story.complain(message, true, at);
        }
        "turn.completed" => {
            used(&event["usage"], story);
            story.is_done = true;
        }
        "turn.failed" => failed(
            text(event, &["error", "message"]).unwrap_or_default(),
            at,
            story,
        ),
        _ => {}
    }
}

/// Begins a notice about a model that Codex has no entry for, which it reports as an error and works on.
const UNKNOWN_MODEL: &str = "Model metadata for ";

fn is_tool(item: &Value) -> bool {
    let others = ["reasoning", "agent_message", "error", "todo_list", ""];
    !others.contains(&text(item, &["type"]).unwrap_or_default())
}

fn completed(item: &Value, at: Option<i64>, story: &mut Story) {
    let content = text(item, &["text"]).unwrap_or_default();
    match text(item, &["type"]).unwrap_or_default() {
        "reasoning" => story.think(content, at),
        "agent_message" => {
            // Every message is whole; the last one is the answer.
            story.answer.clear();
            story.add_text(content, at);
        }
        "error" => match text(item, &["message"]).unwrap_or_default() {
            notice if notice.starts_with(UNKNOWN_MODEL) => {}
            message => story.complain(message, true, at),
        },
        _ if is_tool(item) => end(item, at, story),
        _ => {}
    }
}

fn begin(item: &Value, at: Option<i64>, story: &mut Story) {
    let kind = text(item, &["type"]).unwrap_or_default();
    let (name, input) = match kind {
        "command_execution" => (kind.to_owned(), json!({"command": item["command"]})),
        "mcp_tool_call" => {
            let part = |key| text(item, &[key]).unwrap_or("unknown");
            let name = format!("{}.{}", part("server"), part("tool"));
            (name, item["arguments"].clone())
        }
        "file_change" => (kind.to_owned(), json!({"changes": item["changes"]})),
        "web_search" => (kind.to_owned(), json!({"query": item["query"]})),
        _ => (kind.to_owned(), Value::Null),
    };
    story.begin_tool(text(item, &["id"]).unwrap_or_default(), &name, input, at);
}

fn end(item: &Value, at: Option<i64>, story: &mut Story) {
    let id = text(item, &["id"]).unwrap_or_default();
    // Some items are reported only when they are over.
    if !story.is_open(id) {
        begin(item, None, story);
    }
    let status = text(item, &["status"]).unwrap_or_default();
    if status == "declined" {
        return story.deny_tool(id, "", &Value::Null, at);
    }
    let exit_code = item["exit_code"].as_i64();
    let success = match (status, exit_code) {
        (_, Some(code)) => Some(code == 0),
        ("completed", None) => Some(true),
        ("failed", None) => Some(false),
        _ => None,
    };
    let error = match (success, exit_code) {
        (Some(false), Some(code)) => Some(format!("exit code {code}")),
        (Some(false), None) => Some(
            text(item, &["error", "message"])
                .unwrap_or("the tool failed")
                .to_owned(),
        ),
        _ => None,
    };
    let output = match item.get("aggregated_output") {
        Some(output) => output.clone(),
        None => item["result"].clone(),
    };
    let end = ToolEnd {
        output,
        success,
        error,
        duration_ms: None,
    };
    story.end_tool(id, end, at);
}

/// `input_tokens` is all input, `output_tokens` holds reasoning.
fn used(usage: &Value, story: &mut Story) {
    let cache_read = count(usage, &["cached_input_tokens"]);
    let cache_write = count(usage, &["cache_write_input_tokens"]);
    let cached = cache_read
        .unwrap_or(0)
        .saturating_add(cache_write.unwrap_or(0));
    let reasoning = count(usage, &["reasoning_output_tokens"]);
    let visible = |output: u64| output.saturating_sub(reasoning.unwrap_or(0));
    let tokens = TokenBreakdown {
        input: count(usage, &["input_tokens"]).map(|input| input.saturating_sub(cached)),
        output: count(usage, &["output_tokens"]).map(visible),
        reasoning,
        cache_read,
        cache_write,
        ..TokenBreakdown::default()
    };
    // A continued session counts from its beginning.
    let tokens = story
        .earlier
        .map_or(tokens, |earlier| since(&earlier, tokens));
    story.add_usage("unknown", tokens, None);
}

fn since(earlier: &TokenBreakdown, sum: TokenBreakdown) -> TokenBreakdown {
    let minus = |sum: Option<u64>, earlier: Option<u64>| {
        sum.map(|sum| sum.saturating_sub(earlier.unwrap_or(0)))
    };
    TokenBreakdown {
        input: minus(sum.input, earlier.input),
        output: minus(sum.output, earlier.output),
        reasoning: minus(sum.reasoning, earlier.reasoning),
        cache_read: minus(sum.cache_read, earlier.cache_read),
        cache_write: minus(sum.cache_write, earlier.cache_write),
        ..TokenBreakdown::default()
    }
}

/// A turn fails when the LLM does; other errors have their own words.
fn failed(message: &str, at: Option<i64>, story: &mut Story) {
    let status = message
        .split_once("status ")
        .or_else(|| message.split_once("status: "))
        .and_then(|(_, rest)| rest.get(..3)?.parse().ok());
    let words = [
        "stream disconnected",
        "high demand",
        "error sending request",
    ];
    if status.is_some() || words.iter().any(|word| message.contains(word)) {
        let message = message.to_owned();
        story.llm_failure = Some(LlmFailure { status, message });
    } else {
        story.complain(message, false, at);
    }
}
