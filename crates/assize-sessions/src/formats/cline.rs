//! Cline: `data/sessions/<id>/<id>.messages.json`, one document per session. Sub-agents have documents of their own beside it. A fork begins
//! with the messages of its original, with their ids. A compaction leaves the messages as they are and has a document of its own.

use super::document::{Inclusive, LARGEST_DOCUMENT, Types, joined_texts};
use super::{Head, LogFormat, Machine};
use crate::draft::{CallMarks, Detail, Draft, ToolEnd, Usage, What, identity};
use crate::log::{LogFile, ReadError};
use assize_contracts::Usd;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct Cline;

/// Larger files beside the messages are not read.
const LARGEST_NEIGHBOUR: u64 = 32 << 20;

impl LogFormat for Cline {
    fn agent(&self) -> &'static str {
        "cline"
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        vec![
            machine
                .directory("CLINE_DATA_DIR", ".cline/data")
                .join("sessions"),
        ]
    }

    fn is_log_name(&self, path: &Path) -> bool {
        path.to_string_lossy().ends_with(".messages.json")
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        head.begins_with_object_of(&["version", "messages", "sessionId", "agent"])
    }

    /// The session's own file beside its messages, and its last compaction.
    fn attachments(&self, path: &Path) -> Vec<PathBuf> {
        [SESSION, COMPACTION]
            .iter()
            .filter_map(|ending| neighbour(path, ending))
            .collect()
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let mut draft = Draft::new(self.agent(), detail);
        let text = log.document(LARGEST_DOCUMENT)?;
        draft.flaws.lines = 1;
        match serde_json::from_slice::<Value>(&text) {
            Ok(document) => take_document(&mut draft, &document, log.path()),
            Err(_) => draft.flaws.broken_lines = 1,
        }
        Ok(vec![draft])
    }
}

fn take_document(draft: &mut Draft, document: &Value, path: &Path) {
    let mut types = Types::default();
    draft.id = types
        .text(&document["sessionId"])
        .map_or_else(|| path.display().to_string(), str::to_owned);
    draft.origin.format_version = types
        .count(&document["version"])
        .map(|version| version.to_string());
    draft.origin.agent_version = document["origin"]["version"].as_str().map(str::to_owned);
    let session = neighbour_document(path, SESSION);
    draft.origin.cwd = ["cwd", "workspaceRoot"]
        .iter()
        .find_map(|key| document[*key].as_str().map(str::to_owned))
        .or_else(|| {
            let cwd = session["cwd"].as_str();
            cwd.or(session["workspace_root"].as_str())
                .map(str::to_owned)
        });
    let fork = &session["metadata"]["fork"];
    draft.origin.continued_from = fork["forkedFromSessionId"].as_str().map(str::to_owned);
    let forked = Types::default().moment(&fork["forkedAt"]);
    let origin = &document["origin"];
    draft.parent = ["parentThreadId", "parentSessionId"]
        .iter()
        .find_map(|key| origin[*key].as_str().map(str::to_owned));
    if draft.parent.is_some() {
        draft.name_child(document["agent"].as_str().unwrap_or("subagent"));
    }
    draft.flaws.wrong_types += u64::from(types.is_odd);
    let messages = match document["messages"].as_array() {
        Some(messages) => messages.as_slice(),
        None => {
            draft.flaws.wrong_types += 1;
            return;
        }
    };
    take_compaction(draft, path);
    for (number, message) in messages.iter().enumerate() {
        draft.flaws.lines += 1;
        let mut types = Types::default();
        let at = types.moment(&message["ts"]);
        let marks = marks_of(draft, (number, message), at, forked);
        match message["role"].as_str() {
            Some("user") => take_user(draft, message, (marks, at), &mut types),
            Some("assistant") => take_answer(draft, message, (marks, at), &mut types),
            Some(_) => {}
            None => types.is_odd = true,
        }
        draft.flaws.wrong_types += u64::from(types.is_odd);
    }
}

const SESSION: &str = ".json";

const COMPACTION: &str = ".compaction.json";

/// Another file of the same session: `<id>` and an ending.
fn neighbour(path: &Path, ending: &str) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(".messages.json")?;
    Some(path.with_file_name(format!("{name}{ending}")))
}

/// `null` where there is none, or it is too large to be one.
fn neighbour_document(path: &Path, ending: &str) -> Value {
    let read = || {
        let beside = neighbour(path, ending)?;
        let is_small = std::fs::metadata(&beside).ok()?.len() <= LARGEST_NEIGHBOUR;
        let text = std::fs::read(beside).ok().filter(|_| is_small)?;
        serde_json::from_slice(&text).ok()
    };
    read().unwrap_or_default()
}

/// The summary that stands for earlier messages. A session keeps the last one.
fn take_compaction(draft: &mut Draft, path: &Path) {
    let compaction = neighbour_document(path, COMPACTION);
    let messages = compaction["messages"].as_array();
    for message in messages.map_or(&[][..], Vec::as_slice) {
        let about = &message["metadata"];
        if about["kind"] == "compaction_summary" {
            let at = Types::default().moment(&about["generatedAt"]);
            // Forks copy it with another id of the session.
            let (time, summary) = (
                about["generatedAt"].to_string(),
                about["summary"].to_string(),
            );
            let id = identity(&[b"cline compaction", time.as_bytes(), summary.as_bytes()]);
            draft.push_known(id, at, 0, What::Compaction);
        }
    }
}

/// By what a message is recognized: by itself, and in forks, which keep ids and times.
fn marks_of(
    draft: &Draft,
    (number, message): (usize, &Value),
    at: Option<i64>,
    forked: Option<i64>,
) -> CallMarks {
    let id = message["id"].as_str().filter(|id| !id.is_empty());
    let time = message["ts"].to_string();
    let content = identity(&[b"cline", id.unwrap_or_default().as_bytes(), time.as_bytes()]);
    let within = id.map_or(number.to_string(), str::to_owned);
    let own = identity(&[b"cline call", draft.id.as_bytes(), within.as_bytes()]);
    let is_copy = id.is_some() && at.zip(forked).is_some_and(|(at, forked)| at <= forked);
    CallMarks {
        request: if is_copy { content } else { own },
        message: content,
        may_repeat: is_copy,
        output: -1,
    }
}

fn take_user(
    draft: &mut Draft,
    message: &Value,
    (marks, at): (CallMarks, Option<i64>),
    types: &mut Types,
) {
    let mut has_result = false;
    for block in message["content"].as_array().map_or(&[][..], Vec::as_slice) {
        if block["type"] != "tool_result" {
            continue;
        }
        has_result = true;
        let is_error = types.flag(&block["is_error"]).unwrap_or(false);
        let failed = block["content"]
            .as_array()
            .is_some_and(|parts| parts.iter().any(|part| part["success"] == false));
        let success = !is_error && !failed;
        let output = match draft.is_full() {
            true => block["content"].clone(),
            false => Value::Null,
        };
        let end = ToolEnd {
            at,
            error: (!success).then(|| output.to_string()),
            output,
            success: Some(success),
            duration_ms: None,
        };
        draft.end_tool(block["tool_use_id"].as_str().unwrap_or_default(), end);
    }
    let text = joined_texts(&message["content"]);
    if !has_result && !text.is_empty() {
        let text = draft.keep(without_frame(&text));
        draft.push_known(marks.message, at, 0, What::Prompt(text));
    }
}

/// `<user_input mode="act">…</user_input>`
fn without_frame(text: &str) -> &str {
    let inner = text
        .strip_prefix("<user_input")
        .and_then(|rest| rest.split_once('>'));
    let inner = inner.and_then(|(_, rest)| rest.trim_end().strip_suffix("</user_input>"));
    inner.unwrap_or(text)
}

fn take_answer(
    draft: &mut Draft,
    message: &Value,
    (marks, at): (CallMarks, Option<i64>),
    types: &mut Types,
) {
    let place = draft.call(marks, 0);
    let metrics = &message["metrics"];
    let mut count = |key: &str| types.count(&metrics[key]);
    // The input holds what came from the cache, the output the reasoning, which is not counted apart.
    let counts = Inclusive {
        prompt: count("inputTokens"),
        completion: count("outputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheWriteTokens"),
        reasoning: None,
    };
    let usage = Usage::of(counts.tokens(&mut draft.flaws));
    let cost = types.number(&metrics["cost"]).filter(|cost| *cost > 0.0);
    let model = message["modelInfo"]["id"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    draft.take_usage(place, &model, usage);
    if let Some(call) = draft.calls.get_mut(place as usize) {
        call.first = at;
        call.last = at;
        call.reported_cost = cost.and_then(Usd::new);
    }
    for block in types.list(&message["content"]) {
        let what = match block["type"].as_str() {
            Some("text") => What::Text(
                draft.keep(block["text"].as_str().unwrap_or_default()),
                Some(place),
            ),
            Some("thinking") => What::Reasoning(
                draft.keep(block["thinking"].as_str().unwrap_or_default()),
                Some(place),
            ),
            Some("tool_use") => {
                let name = block["name"].as_str().unwrap_or_default();
                let input = block["input"].to_string();
                let tool = draft.tool_of(name, input.as_bytes(), Some(place));
                draft.begin_tool(block["id"].as_str().unwrap_or_default(), at, 0, tool);
                continue;
            }
            _ => continue,
        };
        draft.push(at, 0, what);
    }
}
