//! opencode's `run --format json`: one line per step, part and tool call, with times of its own.

use super::story::{LlmFailure, Story, ToolEnd};
use super::{count, text};
use assize_contracts::TokenBreakdown;
use serde_json::Value;

pub(super) fn read(event: &Value, at: Option<i64>, story: &mut Story) {
    if let Some(session) = text(event, &["sessionID"]) {
        story.session = Some(session.to_owned());
    }
    let part = &event["part"];
    let at = event["timestamp"].as_i64().or(at);
    match text(event, &["type"]).unwrap_or_default() {
        "step_start" => story.begin_answer(None, at),
        "text" => {
            let since = part["time"]["start"].as_i64().or(at);
            story.add_text(text(part, &["text"]).unwrap_or_default(), since);
        }
        "reasoning" => {
            let since = part["time"]["start"].as_i64().or(at);
            story.think(text(part, &["text"]).unwrap_or_default(), since);
        }
        "tool_use" => tool(part, at, story),
        "step_finish" => {
            used(part, story);
            story.is_done = text(part, &["reason"]) != Some("tool-calls");
        }
        "error" => failed(&event["error"], at, story),
        _ => {}
    }
}

fn tool(part: &Value, at: Option<i64>, story: &mut Story) {
    let id = text(part, &["callID"]).unwrap_or_default();
    let name = text(part, &["tool"]).unwrap_or("unknown");
    let state = &part["state"];
    let (start, end) = (
        state["time"]["start"].as_i64(),
        state["time"]["end"].as_i64(),
    );
    story.begin_tool(id, name, state["input"].clone(), start.or(at));
    let error = text(state, &["error"]);
    if error.is_some_and(|error| error.contains("rejected permission") || error.contains("denied"))
    {
        return story.deny_tool(id, name, &Value::Null, at);
    }
    let exit = state["metadata"]["exit"].as_i64();
    let success = match (text(state, &["status"]), exit) {
        (Some("error"), _) => Some(false),
        (_, Some(code)) => Some(code == 0),
        (Some("completed"), None) => Some(true),
        _ => None,
    };
    let failure = match (error, exit) {
        (Some(error), _) => Some(error.to_owned()),
        (None, Some(code)) if code != 0 => Some(format!("exit code {code}")),
        _ => None,
    };
    let end = ToolEnd {
        output: state["output"].clone(),
        success,
        error: failure,
        duration_ms: end
            .zip(start)
            .map(|(end, start)| end.saturating_sub(start) as f64),
    };
    story.end_tool(id, end, None);
}

/// `input` is what no cache held, `output` leaves reasoning out.
fn used(part: &Value, story: &mut Story) {
    let tokens = TokenBreakdown {
        input: count(part, &["tokens", "input"]),
        output: count(part, &["tokens", "output"]),
        reasoning: count(part, &["tokens", "reasoning"]),
        cache_read: count(part, &["tokens", "cache", "read"]),
        cache_write: count(part, &["tokens", "cache", "write"]),
        ..TokenBreakdown::default()
    };
    // A model without a price in its configuration costs it nothing, which is no price.
    let cost = part["cost"].as_f64().filter(|cost| *cost > 0.0);
    story.add_usage("unknown", tokens, cost);
}

fn failed(error: &Value, at: Option<i64>, story: &mut Story) {
    let name = text(error, &["name"]).unwrap_or("an error without a name");
    let message = text(error, &["data", "message"]).unwrap_or(name).to_owned();
    if name == "APIError" {
        let status =
            count(error, &["data", "statusCode"]).and_then(|code| u16::try_from(code).ok());
        story.complain(&message, true, at);
        story.llm_failure = Some(LlmFailure { status, message });
    } else {
        story.complain(&message, false, at);
    }
}
