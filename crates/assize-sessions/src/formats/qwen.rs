//! Qwen Code: `projects/<directory>/chats/<session>.jsonl`. Lines look like Claude Code's, messages like Gemini's, counts like OpenAI's.

use super::document::{Inclusive, Types};
use super::{Head, LogFormat, Machine, has_ending};
use crate::draft::{CallMarks, Detail, Draft, ToolEnd, Usage, What, identity};
use crate::log::{Entry, LogFile, ReadError};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct Qwen;

impl LogFormat for Qwen {
    fn agent(&self) -> &'static str {
        "qwen"
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        let home = machine.directory("QWEN_HOME", ".qwen");
        vec![home.join("projects"), home.join("tmp")]
    }

    fn is_log_name(&self, path: &Path) -> bool {
        has_ending(path, "jsonl")
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        head.lines().take(50).any(|line| {
            let Ok(line) = serde_json::from_slice::<Value>(line) else {
                return false;
            };
            line["sessionId"].is_string()
                && line["uuid"].is_string()
                && (line["message"]["parts"].is_array() || line["systemPayload"].is_object())
        })
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let mut draft = Draft::new(self.agent(), detail);
        let mut seen = std::collections::HashSet::new();
        log.each_line(|entry: Entry<'_>| {
            if let Some(line) = draft.flaws.value(entry) {
                let is_new = line["uuid"]
                    .as_str()
                    .is_none_or(|uuid| seen.insert(uuid.to_owned()));
                if is_new {
                    take(&mut draft, &line);
                }
            }
        })?;
        Ok(vec![draft])
    }
}

fn take(draft: &mut Draft, line: &Value) {
    let mut types = Types::default();
    let at = types.moment(&line["timestamp"]);
    if let Some(session) = types.text(&line["sessionId"])
        && draft.id != session
    {
        draft.id = session.to_owned();
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    draft.origin.cwd = draft.origin.cwd.take().or_else(|| text(&line["cwd"]));
    draft.origin.git_branch = draft
        .origin
        .git_branch
        .take()
        .or_else(|| text(&line["gitBranch"]));
    draft.origin.agent_version = text(&line["version"]).or(draft.origin.agent_version.take());
    let uuid = line["uuid"]
        .as_str()
        .map_or(0, |uuid| identity(&[b"qwen", uuid.as_bytes()]));
    match line["type"].as_str() {
        Some("user") => {
            let text = texts(&line["message"]["parts"]);
            if !text.is_empty() {
                let text = draft.keep(&text);
                draft.push_known(uuid, at, 0, What::Prompt(text));
            }
        }
        Some("assistant") => take_answer(draft, line, uuid, at, &mut types),
        Some("tool_result") => take_result(draft, line, at),
        Some("system") => take_system(draft, line, at, uuid),
        _ => {}
    }
    draft.flaws.wrong_types += u64::from(types.is_odd);
}

fn texts(parts: &Value) -> String {
    let parts = parts.as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    texts.join("\n")
}

fn take_answer(draft: &mut Draft, line: &Value, uuid: u64, at: Option<i64>, types: &mut Types) {
    let marks = CallMarks::of(uuid);
    let place = draft.call(marks, 0);
    let usage = &line["usageMetadata"];
    let mut count = |key: &str| types.count(&usage[key]);
    let (prompt, completion) = (count("promptTokenCount"), count("candidatesTokenCount"));
    let (thoughts, total) = (count("thoughtsTokenCount"), count("totalTokenCount"));
    // Thoughts are inside the output, unless the total says otherwise.
    let sum = |counts: &[Option<u64>]| {
        let counts: Option<Vec<u64>> = counts.iter().copied().collect();
        counts.map(|counts| counts.into_iter().fold(0, u64::saturating_add))
    };
    let is_beside = total.is_some()
        && thoughts.is_some_and(|count| count > 0)
        && total == sum(&[prompt, completion, thoughts]);
    let counts = Inclusive {
        prompt,
        completion: match is_beside {
            true => sum(&[completion, thoughts]),
            false => completion,
        },
        reasoning: thoughts,
        cache_read: count("cachedContentTokenCount"),
        cache_write: None,
    };
    let usage = Usage::of(counts.tokens(&mut draft.flaws));
    let model = types.text(&line["model"]).unwrap_or_default().to_owned();
    draft.take_usage(place, &model, usage);
    if let Some(call) = draft.calls.get_mut(place as usize) {
        call.first = at;
        call.last = at;
    }
    for part in types.list(&line["message"]["parts"]) {
        if let Some(text) = part["text"].as_str() {
            let text = draft.keep(text);
            let what = match part["thought"] == true {
                true => What::Reasoning(text, Some(place)),
                false => What::Text(text, Some(place)),
            };
            draft.push(at, 0, what);
        } else if part["functionCall"].is_object() {
            let call = &part["functionCall"];
            let name = call["name"].as_str().unwrap_or_default();
            let input = call["args"].to_string();
            let tool = draft.tool_of(name, input.as_bytes(), Some(place));
            draft.begin_tool(call["id"].as_str().unwrap_or_default(), at, 0, tool);
        }
    }
}

fn take_result(draft: &mut Draft, line: &Value, at: Option<i64>) {
    let result = &line["toolCallResult"];
    let response = &line["message"]["parts"][0]["functionResponse"];
    let id = result["callId"].as_str().or(response["id"].as_str());
    let Some(id) = id else { return };
    let success = result["status"].as_str().map(|status| status == "success");
    let output = match draft.is_full() {
        true => {
            let response = &response["response"];
            let text = response.get("output").or_else(|| response.get("error"));
            text.unwrap_or(response).clone()
        }
        false => Value::Null,
    };
    let end = ToolEnd {
        at,
        error: (success == Some(false)).then(|| output.to_string()),
        output,
        success,
        duration_ms: None,
    };
    draft.end_tool(id, end);
}

fn take_system(draft: &mut Draft, line: &Value, at: Option<i64>, uuid: u64) {
    let event = &line["systemPayload"]["uiEvent"];
    match (line["subtype"].as_str(), event["event.name"].as_str()) {
        (Some("chat_compression"), _) => draft.push_known(uuid, at, 0, What::Compaction),
        (Some("ui_telemetry"), Some("qwen-code.api_error")) => {
            let message = draft.keep(
                event["error_message"]
                    .as_str()
                    .unwrap_or("the API returned an error"),
            );
            draft.push_known(
                uuid,
                at,
                0,
                What::Error {
                    message,
                    is_recoverable: true,
                },
            );
        }
        _ => {}
    }
}
