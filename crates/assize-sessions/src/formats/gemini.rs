//! Gemini CLI: `tmp/<project>/chats/session-*.jsonl`, older ones `.json` with `messages`. Records are applied in order: a message with a
//! known id replaces the earlier one, `$set` sets fields, `$rewindTo` takes messages back. Their tokens were spent nevertheless.

use super::document::{Inclusive, LARGEST_DOCUMENT, Types, joined_texts};
use super::{Head, LogFormat, Machine, has_ending};
use crate::draft::{CallMarks, Detail, Draft, Identity, ToolEnd, Usage, What, identity};
use crate::log::{Entry, LogFile, ReadError};
use crate::session::Flaws;
use assize_contracts::TokenBreakdown;
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub(crate) struct Gemini;

/// Ids of this length are unique everywhere.
const UUID_LENGTH: usize = 36;

impl LogFormat for Gemini {
    fn agent(&self) -> &'static str {
        "gemini"
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        let home = machine
            .variable("GEMINI_CLI_HOME")
            .map_or(machine.home.clone(), PathBuf::from);
        vec![home.join(".gemini/tmp")]
    }

    fn is_log_name(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_chat = name.starts_with("session-") || chat_of_subagent(path).is_some();
        is_chat && (name.ends_with(".jsonl") || name.ends_with(".json"))
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        let is_metadata =
            |line: &Value| line["sessionId"].is_string() && line["projectHash"].is_string();
        let is_answer = |line: &Value| {
            line["type"] == "gemini" && line["id"].is_string() && line["tokens"].is_object()
        };
        head.values()
            .any(|line| is_metadata(&line) || is_answer(&line))
            || head.begins_with_object_of(&["sessionId", "projectHash", "messages"])
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let mut draft = Draft::new(self.agent(), detail);
        let mut chat = Chat::default();
        let is_document = has_ending(log.path(), "json");
        if is_document {
            let text = log.document(LARGEST_DOCUMENT)?;
            match serde_json::from_slice(&text) {
                Ok(document) => chat.apply(&document, &mut draft),
                Err(_) => draft.flaws.broken_lines += 1,
            }
            draft.flaws.lines += 1;
        } else {
            log.each_line(|entry: Entry<'_>| {
                if let Some(record) = draft.flaws.value(entry) {
                    chat.apply(&record, &mut draft);
                }
            })?;
        }
        if draft.id.is_empty() {
            // Ids of messages are unique within a chat only.
            draft.id = log.path().display().to_string();
        }
        chat.belong_to(log.path());
        chat.add_to(&mut draft);
        Ok(vec![draft])
    }

    /// `session-<time>-<beginning of its id>.jsonl` has its sub-agents in the directory `<its id>`.
    fn companions(&self, path: &Path) -> Vec<PathBuf> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let Some((_, beginning)) = name.rsplit_once('-') else {
            return Vec::new();
        };
        let below = |directory: PathBuf| {
            let entries = std::fs::read_dir(directory).into_iter().flatten();
            entries.flatten().map(|entry| entry.path())
        };
        let Some(chats) = path.parent().filter(|_| !beginning.is_empty()) else {
            return Vec::new();
        };
        let of_session = |directory: &PathBuf| {
            let name = directory.file_name().unwrap_or_default();
            directory.is_dir() && name.to_string_lossy().starts_with(beginning)
        };
        let mut found: Vec<PathBuf> = below(chats.to_owned())
            .filter(of_session)
            .flat_map(below)
            .filter(|path| self.is_log_name(path))
            .collect();
        found.sort();
        found
    }
}

/// The session whose sub-agent has its chat here: `chats/<session>/<sub-agent>.jsonl`.
fn chat_of_subagent(path: &Path) -> Option<&str> {
    let directory = path.parent()?;
    let is_in_chats = directory.parent()?.file_name()? == "chats";
    directory.file_name()?.to_str().filter(|_| is_in_chats)
}

#[derive(Default)]
struct Chat {
    messages: Vec<Value>,
    /// Taken back by the user.
    rewound: Vec<Value>,
    parent: Option<String>,
    is_of_subagent: bool,
    /// Ids of messages that a compaction replaced others by. Gemini wrote them in the name of the user and the model.
    summaries: HashSet<String>,
    /// Ids of answers that a compaction left out.
    compacted: HashSet<String>,
    /// The times of compactions, as the log has them.
    compactions: Vec<Value>,
}

impl Chat {
    fn apply(&mut self, record: &Value, draft: &mut Draft) {
        if let Some(fields) = record.get("$set") {
            self.set(fields, draft);
        } else if let Some(id) = record.get("$rewindTo") {
            self.rewind_to(id);
        } else if record["sessionId"].is_string() {
            draft.id = record["sessionId"].as_str().unwrap_or_default().to_owned();
            self.set(record, draft);
        } else if record["id"].is_string() {
            self.put(record.clone());
        } else {
            draft.flaws.wrong_types += 1;
        }
    }

    fn set(&mut self, fields: &Value, draft: &mut Draft) {
        let Some(fields) = fields.as_object() else {
            draft.flaws.wrong_types += 1;
            return;
        };
        if let Some(messages) = fields.get("messages") {
            match messages.as_array() {
                Some(messages) => {
                    self.note_compaction(messages);
                    messages.iter().cloned().for_each(|one| self.restore(one));
                }
                None => draft.flaws.wrong_types += 1,
            }
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        draft.origin.cwd = text("projectRoot")
            .or_else(|| text("cwd"))
            .or(draft.origin.cwd.take());
        self.parent = text("parentSessionId").or(self.parent.take());
        self.is_of_subagent |= text("kind").is_some_and(|kind| kind == "subagent");
    }

    /// Chats of sub-agents do not name their session; it is the directory they are in.
    fn belong_to(&mut self, path: &Path) {
        if self.is_of_subagent && self.parent.is_none() {
            self.parent = chat_of_subagent(path).map(str::to_owned);
        }
    }

    /// A resumed or compressed session sets its messages anew, without their counts. What was known of them stays, and so does what is left
    /// out: it was spent.
    fn restore(&mut self, message: Value) {
        let mut known = self.messages.iter().chain(&self.rewound);
        let has_as_much = |known: &Value| !known["tokens"].is_null() || message["tokens"].is_null();
        let is_known = known.any(|known| known["id"] == message["id"] && has_as_much(known));
        if !is_known {
            self.put(message);
        }
    }

    /// A compaction leaves out answers and puts messages in their place.
    fn note_compaction(&mut self, messages: &[Value]) {
        let is_listed = |id: &Value| messages.iter().any(|message| message["id"] == *id);
        let answers = self
            .messages
            .iter()
            .filter(|known| !known["tokens"].is_null());
        let left_out: Vec<String> = answers
            .filter(|known| !is_listed(&known["id"]))
            .filter_map(|known| known["id"].as_str().map(str::to_owned))
            .filter(|id| !self.compacted.contains(id))
            .collect();
        let is_known = |id: &Value| self.messages.iter().any(|known| known["id"] == *id);
        let new: Vec<&Value> = messages
            .iter()
            .filter(|message| message["tokens"].is_null() && !is_known(&message["id"]))
            .filter(|message| !is_about_session(&joined_texts(&message["content"])))
            .collect();
        if let (Some(first), false) = (new.first(), left_out.is_empty()) {
            self.compactions.push(first["timestamp"].clone());
            let ids = new.iter().filter_map(|message| message["id"].as_str());
            self.summaries.extend(ids.map(str::to_owned));
            self.compacted.extend(left_out);
        }
    }

    /// A message with a known id replaces the earlier one.
    fn put(&mut self, message: Value) {
        match self
            .messages
            .iter_mut()
            .rev()
            .find(|known| known["id"] == message["id"])
        {
            Some(known) => *known = message,
            None => self.messages.push(message),
        }
    }

    fn rewind_to(&mut self, id: &Value) {
        if let Some(place) = self
            .messages
            .iter()
            .position(|message| message["id"] == *id)
        {
            self.rewound.extend(self.messages.drain(place..));
        }
    }

    fn add_to(&self, draft: &mut Draft) {
        draft.parent = self.parent.clone();
        for time in &self.compactions {
            let at = Types::default().moment(time);
            draft.push(at, 0, What::Compaction);
        }
        for (message, is_rewound) in self
            .rewound
            .iter()
            .map(|message| (message, true))
            .chain(self.messages.iter().map(|message| (message, false)))
        {
            let mut types = Types::default();
            let at = types.moment(&message["timestamp"]);
            let id = message["id"].as_str().unwrap_or_default();
            match message["type"].as_str() {
                Some(_) if message["tokens"].is_null() && self.summaries.contains(id) => {}
                Some("gemini") => take_answer(draft, message, at, is_rewound, &mut types),
                Some("user") if !is_rewound => take_user(draft, message, at),
                Some("error") if !is_rewound => {
                    draft.push_error(at, &joined_texts(&message["content"]), true);
                }
                Some(_) => {}
                None => types.is_odd = true,
            }
            draft.flaws.wrong_types += u64::from(types.is_odd);
        }
    }
}

/// The first message, which Gemini writes itself.
fn is_about_session(text: &str) -> bool {
    text.starts_with("<session_context>")
}

fn take_user(draft: &mut Draft, message: &Value, at: Option<i64>) {
    let text = joined_texts(&message["content"]);
    if !is_about_session(&text) && !text.is_empty() {
        let text = draft.keep(&text);
        let identity = identity_of(draft, message);
        draft.push_known(identity, at, 0, What::Prompt(text));
    }
}

/// A chat that was loaded from a file (`--session-file`) begins with the messages of its original under their ids. Shorter ids are unique only
/// within their session.
fn identity_of(draft: &Draft, message: &Value) -> Identity {
    let id = message["id"].as_str().unwrap_or_default().as_bytes();
    match id.len() < UUID_LENGTH {
        true => identity(&[b"gemini", draft.id.as_bytes(), id]),
        false => identity(&[b"gemini", id]),
    }
}

fn take_answer(
    draft: &mut Draft,
    message: &Value,
    at: Option<i64>,
    is_rewound: bool,
    types: &mut Types,
) {
    let marks = CallMarks::of(identity_of(draft, message));
    let place = draft.call(marks, 0);
    let tokens = tokens(&message["tokens"], types, &mut draft.flaws);
    let model = types.text(&message["model"]).unwrap_or_default().to_owned();
    let usage = Usage::of(tokens);
    draft.take_usage(place, &model, usage);
    if let Some(call) = draft.calls.get_mut(place as usize) {
        call.api = Some("gemini");
        call.first = at;
        call.last = at;
        call.is_rewound = is_rewound;
    }
    for thought in types.list(&message["thoughts"]) {
        let part = |key: &str| thought[key].as_str().unwrap_or_default();
        let text = draft.keep(format!("{}\n{}", part("subject"), part("description")).trim());
        let at = types.moment(&thought["timestamp"]).or(at);
        draft.push(at, 0, What::Reasoning(text, Some(place)));
    }
    let text = joined_texts(&message["content"]);
    if !text.is_empty() {
        let text = draft.keep(&text);
        draft.push(at, 0, What::Text(text, Some(place)));
    }
    for call in types.list(&message["toolCalls"]) {
        take_tool(draft, call, place, at, types);
    }
}

/// Thoughts are beside the output. The cached part is inside the input where the total says so.
fn tokens(tokens: &Value, types: &mut Types, flaws: &mut Flaws) -> TokenBreakdown {
    let mut count = |key: &str| types.count(&tokens[key]);
    let (input, output, cached) = (count("input"), count("output"), count("cached"));
    let (thoughts, tool, total) = (count("thoughts"), count("tool"), count("total"));
    let sum = |counts: &[Option<u64>]| {
        let known = counts.iter().copied().flatten();
        known.fold(0_u64, u64::saturating_add)
    };
    let is_inside = total.is_none_or(|total| total == sum(&[input, output, thoughts, tool]));
    // Tokens that tools added to the prompt are input, too.
    let uncached = input.map(|input| input.saturating_add(tool.unwrap_or(0)));
    let counts = Inclusive {
        prompt: match is_inside {
            true => uncached,
            false => uncached.map(|count| count.saturating_add(cached.unwrap_or(0))),
        },
        completion: output.map(|output| output.saturating_add(thoughts.unwrap_or(0))),
        reasoning: thoughts,
        cache_read: cached,
        cache_write: None,
    };
    counts.tokens(flaws)
}

fn take_tool(draft: &mut Draft, call: &Value, place: u32, at: Option<i64>, types: &mut Types) {
    let id = types.text(&call["id"]).unwrap_or_default();
    let name = types.text(&call["name"]).unwrap_or_default();
    let input = call["args"].to_string();
    let tool = draft.tool_of(name, input.as_bytes(), Some(place));
    draft.begin_tool(id, at, 0, tool);
    if let Some(agent) = call["agentId"].as_str() {
        let kind = call["args"]["agent_name"].as_str();
        draft.note_agent(agent, kind, id);
    }
    let status = call["status"].as_str();
    let Some(status) = status else { return };
    let output = match draft.is_full() {
        true => output_of(&call["result"]),
        false => Value::Null,
    };
    let success = match status {
        "success" => Some(true),
        "error" | "cancelled" => Some(false),
        _ => None,
    };
    let end = ToolEnd {
        at: types.moment(&call["timestamp"]),
        error: (success == Some(false)).then(|| output.to_string()),
        output,
        success,
        duration_ms: None,
    };
    draft.end_tool(id, end);
}

/// `[{"functionResponse": {"response": {"output": …}}}]`
fn output_of(result: &Value) -> Value {
    let response = &result[0]["functionResponse"]["response"];
    let text = response.get("output").or_else(|| response.get("error"));
    text.unwrap_or(result).clone()
}
