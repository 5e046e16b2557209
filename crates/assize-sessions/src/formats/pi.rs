//! pi: `sessions/--<directory>--/<time>_<id>.jsonl`. A tree of entries; forks copy entries of the session they come from, with their ids.

use super::document::{Types, joined_texts};
use super::{Head, LogFormat, Machine, has_ending};
use crate::draft::{CallMarks, Detail, Draft, ToolEnd, Usage, What, identity};
use crate::log::{Entry, LogFile, ReadError};
use assize_contracts::{TokenBreakdown, Usd};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct Pi;

impl LogFormat for Pi {
    fn agent(&self) -> &'static str {
        "pi"
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        vec![
            machine
                .directory("PI_CODING_AGENT_DIR", ".pi/agent")
                .join("sessions"),
        ]
    }

    fn is_log_name(&self, path: &Path) -> bool {
        has_ending(path, "jsonl")
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        let is_head = |line: &Value| {
            line["type"] == "session" && line["id"].is_string() && !line["timestamp"].is_null()
        };
        let is_entry = |line: &Value| {
            line["type"] == "message"
                && line["message"]["role"].is_string()
                && line["id"].is_string()
                && line.get("parentId").is_some()
        };
        head.values().any(|line| is_head(&line) || is_entry(&line))
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let mut draft = Draft::new(self.agent(), detail);
        log.each_line(|entry| take(&mut draft, entry))?;
        Ok(vec![draft])
    }
}

fn take(draft: &mut Draft, entry: Entry<'_>) {
    let Some(line) = draft.flaws.value(entry) else {
        return;
    };
    let mut types = Types::default();
    let at = types.moment(&line["timestamp"]);
    match line["type"].as_str() {
        Some("session") => take_head(draft, &line, &mut types),
        Some("message") => take_message(draft, &line, at, &mut types),
        Some("compaction") => {
            let id = entry_identity(&line);
            draft.push_known(id, at, 0, What::Compaction);
        }
        _ => types.is_odd |= !line["type"].is_string(),
    }
    draft.flaws.wrong_types += u64::from(types.is_odd);
}

fn take_head(draft: &mut Draft, line: &Value, types: &mut Types) {
    draft.id = types.text(&line["id"]).unwrap_or_default().to_owned();
    draft.origin.cwd = types.text(&line["cwd"]).map(str::to_owned);
    draft.origin.format_version = types
        .count(&line["version"])
        .map(|version| version.to_string());
    draft.origin.continued_from = types.text(&line["parentSession"]).map(str::to_owned);
}

/// Short ids are unique within a tree only; the time distinguishes trees.
fn entry_identity(line: &Value) -> u64 {
    let part = |key: &str| line[key].as_str().unwrap_or_default().as_bytes().to_vec();
    identity(&[b"pi", &part("id"), &part("timestamp")])
}

fn take_message(draft: &mut Draft, line: &Value, at: Option<i64>, types: &mut Types) {
    let message = &line["message"];
    let id = entry_identity(line);
    match message["role"].as_str() {
        Some("user") => {
            let text = draft.keep(&joined_texts(&message["content"]));
            draft.push_known(id, at, 0, What::Prompt(text));
        }
        Some("assistant") => take_answer(draft, message, id, at, types),
        Some("toolResult") => {
            let is_error = types.flag(&message["isError"]).unwrap_or(false);
            let output = draft.keep(&joined_texts(&message["content"]));
            let call = types.text(&message["toolCallId"]).unwrap_or_default();
            let end = ToolEnd {
                at,
                error: is_error.then(|| output.clone()),
                output: Value::String(output),
                success: Some(!is_error),
                duration_ms: types.number(&message["durationMs"]),
            };
            draft.end_tool(call, end);
        }
        _ => {}
    }
}

fn take_answer(draft: &mut Draft, message: &Value, id: u64, at: Option<i64>, types: &mut Types) {
    let marks = CallMarks::of(id);
    let place = draft.call(marks, 0);
    let usage = &message["usage"];
    // Newer versions count reasoning apart; it is inside the output nevertheless.
    let reasoning = types.count(&usage["reasoning"]);
    let completion = types.count(&usage["output"]);
    let output = completion.map(|count| count.saturating_sub(reasoning.unwrap_or(0)));
    let tokens = TokenBreakdown {
        input: types.count(&usage["input"]),
        output,
        reasoning: reasoning.map(|count| count.min(completion.unwrap_or(count))),
        cache_read: types.count(&usage["cacheRead"]),
        cache_write: types.count(&usage["cacheWrite"]),
        ..TokenBreakdown::default()
    };
    let model = types.text(&message["model"]).unwrap_or_default().to_owned();
    let usage_of_call = Usage::of(tokens);
    draft.take_usage(place, &model, usage_of_call);
    let started = types.moment(&message["timestamp"]);
    let cost = types
        .number(&usage["cost"]["total"])
        .filter(|cost| *cost > 0.0);
    let stop = types.text(&message["stopReason"]).map(str::to_owned);
    let error = types.text(&message["errorMessage"]).map(str::to_owned);
    let is_full = draft.is_full();
    if let Some(call) = draft.calls.get_mut(place as usize) {
        call.started = started;
        call.first = at;
        call.last = at;
        call.reported_cost = cost.and_then(Usd::new);
        call.stop_reason = stop;
        call.id = message["responseId"]
            .as_str()
            .filter(|_| is_full)
            .map(str::to_owned);
        call.duration_ms = started
            .zip(at)
            .map(|(start, end)| end.saturating_sub(start).max(0) as f64);
    }
    for block in types.list(&message["content"]) {
        match block["type"].as_str() {
            Some("text") => {
                let text = draft.keep(types.text(&block["text"]).unwrap_or_default());
                draft.push(at, 0, What::Text(text, Some(place)));
            }
            Some("thinking") => {
                let text = draft.keep(types.text(&block["thinking"]).unwrap_or_default());
                draft.push(at, 0, What::Reasoning(text, Some(place)));
            }
            Some("toolCall") => {
                let name = types.text(&block["name"]).unwrap_or_default();
                let input = block["arguments"].to_string();
                let tool = draft.tool_of(name, input.as_bytes(), Some(place));
                draft.begin_tool(types.text(&block["id"]).unwrap_or_default(), at, 0, tool);
            }
            _ => {}
        }
    }
    if let Some(message) = error {
        draft.push_error(at, &message, true);
    }
}
