//! Qwen Code: `projects/<directory>/chats/<session>.jsonl`. Lines look like Claude Code's, messages like Gemini's, counts like OpenAI's.

use super::document::{Inclusive, Types};
use super::{Head, LogFormat, Machine, has_ending};
use crate::draft::{
    AgentPlace, CallMarks, CallPlace, Detail, Draft, Identity, ToolEnd, Usage, What, identity,
};
use crate::log::{Entry, LogFile, ReadError};
use crate::session::Flaws;
use serde_json::Value;
use std::collections::HashSet;
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
        let mut reader = Reader {
            models: models_of_subagent(log.path()),
            draft: Draft::new(self.agent(), detail),
            seen: HashSet::new(),
            last_answer: None,
            requests: Vec::new(),
        };
        log.each_line(|entry: Entry<'_>| {
            if let Some(line) = reader.draft.flaws.value(entry) {
                let is_new = line["uuid"]
                    .as_str()
                    .is_none_or(|uuid| reader.seen.insert(uuid.to_owned()));
                if is_new {
                    reader.take(&line);
                }
            }
        })?;
        reader.add_requests_without_answer(log.path());
        Ok(vec![reader.draft])
    }

    /// The chat of the session has the models of its sub-agents; which of these have logs of their own is for the chat to know.
    fn attachments(&self, path: &Path) -> Vec<PathBuf> {
        let directories = subagents_beside_chat(path).into_iter().flat_map(|all| {
            let own = all.join(path.file_stem().unwrap_or_default());
            [all, own]
        });
        chat_beside_subagent(path)
            .into_iter()
            .chain(directories)
            .collect()
    }

    /// `chats/<session>.jsonl` has its sub-agents in `subagents/<session>`.
    fn companions(&self, path: &Path) -> Vec<PathBuf> {
        let directory = subagents_beside_chat(path)
            .map(|directory| directory.join(path.file_stem().unwrap_or_default()));
        let entries = directory.and_then(|directory| std::fs::read_dir(directory).ok());
        let paths = entries.into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = paths.map(|entry| entry.path()).collect();
        found.retain(|path| self.is_log_name(path));
        found.sort();
        found
    }
}

/// `<project>/chats/<session>.jsonl`, for `<project>/subagents/<session>/agent-<id>.jsonl`.
fn chat_beside_subagent(path: &Path) -> Option<PathBuf> {
    let session = path.parent()?;
    let subagents = session.parent()?;
    let mut name = session.file_name()?.to_owned();
    name.push(".jsonl");
    let chat = subagents.parent()?.join("chats").join(name);
    (subagents.file_name()? == "subagents").then_some(chat)
}

/// `<project>/subagents`, for `<project>/chats/<session>.jsonl`.
fn subagents_beside_chat(path: &Path) -> Option<PathBuf> {
    let chats = path.parent()?;
    let subagents = chats.parent()?.join("subagents");
    (chats.file_name()? == "chats").then_some(subagents)
}

/// A request that succeeded, as the telemetry of a chat has it.
struct Request {
    uuid: String,
    identity: Identity,
    at: Option<i64>,
    model: String,
    counts: Counts,
    duration_ms: Option<f64>,
    ttft_ms: Option<f64>,
    subagent: Option<String>,
}

impl Request {
    fn of(line: &Value, at: Option<i64>, identity: Identity, types: &mut Types) -> Self {
        let event = &line["systemPayload"]["uiEvent"];
        let mut count = |key: &str| types.count(&event[key]);
        let counts = Counts {
            prompt: count("input_token_count"),
            completion: count("output_token_count"),
            thoughts: count("thoughts_token_count"),
            cached: count("cached_content_token_count"),
            total: count("total_token_count"),
        };
        Self {
            uuid: line["uuid"].as_str().unwrap_or_default().to_owned(),
            identity,
            at,
            model: types.text(&event["model"]).unwrap_or_default().to_owned(),
            counts,
            duration_ms: types.number(&event["duration_ms"]),
            ttft_ms: types.number(&event["ttft_ms"]),
            subagent: types.text(&event["subagent_id"]).map(str::to_owned),
        }
    }
}

const REQUEST: &str = "qwen-code.api_response";

/// The models that a sub-agent asked, with the total of each request. Only the chat of its session has them.
fn models_of_subagent(path: &Path) -> Vec<(Option<u64>, String)> {
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let (Some(chat), Some(id)) = (chat_beside_subagent(path), id.strip_prefix("agent-")) else {
        return Vec::new();
    };
    let mut models = Vec::new();
    let mut flaws = Flaws::default();
    // A chat that cannot be read is reported where it is read itself.
    let _ = LogFile::new(chat).each_line(|entry| {
        let Some(line) = flaws.value(entry) else {
            return;
        };
        let event = &line["systemPayload"]["uiEvent"];
        if event["event.name"] == REQUEST && event["subagent_id"] == id {
            let model = event["model"].as_str().unwrap_or_default().to_owned();
            models.push((event["total_token_count"].as_u64(), model));
        }
    });
    models
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    prompt: Option<u64>,
    completion: Option<u64>,
    thoughts: Option<u64>,
    cached: Option<u64>,
    total: Option<u64>,
}

impl Counts {
    /// Thoughts are inside the output, unless the total says otherwise.
    fn usage(self, flaws: &mut Flaws) -> Usage {
        let sum = |counts: &[Option<u64>]| {
            let counts: Option<Vec<u64>> = counts.iter().copied().collect();
            counts.map(|counts| counts.into_iter().fold(0, u64::saturating_add))
        };
        let is_beside = self.total.is_some()
            && self.thoughts.is_some_and(|count| count > 0)
            && self.total == sum(&[self.prompt, self.completion, self.thoughts]);
        let counts = Inclusive {
            prompt: self.prompt,
            completion: match is_beside {
                true => sum(&[self.completion, self.thoughts]),
                false => self.completion,
            },
            reasoning: self.thoughts,
            cache_read: self.cached,
            cache_write: None,
        };
        Usage::of(counts.tokens(flaws))
    }
}

/// An answer whose further lines belong to the same call.
struct LastAnswer {
    uuid: String,
    place: CallPlace,
}

struct Reader {
    draft: Draft,
    seen: HashSet<String>,
    last_answer: Option<LastAnswer>,
    /// Requests whose answer was not found yet.
    requests: Vec<Request>,
    /// Of the sub-agent whose log this is.
    models: Vec<(Option<u64>, String)>,
}

impl Reader {
    fn take(&mut self, line: &Value) {
        let mut types = Types::default();
        let draft = &mut self.draft;
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
        let agent = match line["agentId"].as_str() {
            Some(id) if line["isSidechain"] == true => {
                let kind = line["agentName"].as_str();
                // `<kind>-<tool call>`
                let call = kind.and_then(|kind| id.strip_prefix(kind)?.strip_prefix('-'));
                draft.note_agent(id, kind, call.unwrap_or_default());
                draft.agent(id)
            }
            _ => 0,
        };
        let uuid = line["uuid"]
            .as_str()
            .map_or(0, |uuid| identity(&[b"qwen", uuid.as_bytes()]));
        match line["type"].as_str() {
            Some("user") => {
                let text = texts(&line["message"]["parts"]);
                if !text.is_empty() {
                    let text = draft.keep(&text);
                    draft.push_known(uuid, at, agent, What::Prompt(text));
                }
            }
            Some("assistant") => self.take_answer(line, uuid, at, agent, &mut types),
            Some("tool_result") => take_result(draft, line, at),
            Some("system") => self.take_system(line, at, uuid, &mut types),
            _ => {}
        }
        self.draft.flaws.wrong_types += u64::from(types.is_odd);
    }

    /// The call of a line. Answers of sub-agents have their usage and their tool calls in lines that follow each other.
    fn call_of(&mut self, line: &Value, uuid: Identity, agent: AgentPlace) -> CallPlace {
        let has_usage = line["usageMetadata"].is_object();
        let before = self.last_answer.take();
        let continued = before.filter(|before| !has_usage && line["parentUuid"] == before.uuid);
        let place = match continued {
            Some(before) => before.place,
            None => self.draft.call(CallMarks::of(uuid), agent),
        };
        self.last_answer = line["uuid"].as_str().map(|uuid| LastAnswer {
            uuid: uuid.to_owned(),
            place,
        });
        place
    }

    /// The request of an answer: the line before it, or one with the same counts.
    fn request_of(&mut self, line: &Value, counts: Counts) -> Option<Request> {
        let parent = line["parentUuid"].as_str();
        let is_parent = |request: &Request| parent == Some(request.uuid.as_str());
        let mut requests = self.requests.iter();
        let place = requests
            .rposition(is_parent)
            .or_else(|| self.requests.iter().position(|one| one.counts == counts))?;
        Some(self.requests.remove(place))
    }

    fn take_usage(&mut self, place: CallPlace, line: &Value, agent: AgentPlace, types: &mut Types) {
        let usage = &line["usageMetadata"];
        let mut count = |key: &str| types.count(&usage[key]);
        let counts = Counts {
            prompt: count("promptTokenCount"),
            completion: count("candidatesTokenCount"),
            thoughts: count("thoughtsTokenCount"),
            cached: count("cachedContentTokenCount"),
            total: count("totalTokenCount"),
        };
        let request = match agent {
            0 => self.request_of(line, counts),
            _ => None,
        };
        let model = match types.text(&line["model"]) {
            Some(model) => model.to_owned(),
            None => self.model_of_subagent(counts.total),
        };
        let usage = counts.usage(&mut self.draft.flaws);
        self.draft.take_usage(place, &model, usage);
        let call = self.draft.calls.get_mut(place as usize);
        if let (Some(call), Some(request)) = (call, request) {
            call.duration_ms = request.duration_ms;
            call.ttft_ms = request.ttft_ms;
        }
    }

    fn model_of_subagent(&self, total: Option<u64>) -> String {
        let same = self.models.iter().find(|(known, _)| *known == total);
        let model = same.or(self.models.first()).map(|(_, model)| model.clone());
        model.unwrap_or_default()
    }

    fn take_answer(
        &mut self,
        line: &Value,
        uuid: Identity,
        at: Option<i64>,
        agent: AgentPlace,
        types: &mut Types,
    ) {
        let place = self.call_of(line, uuid, agent);
        self.take_usage(place, line, agent, types);
        let draft = &mut self.draft;
        if let Some(call) = draft.calls.get_mut(place as usize) {
            call.first = call.first.or(at);
            call.last = at;
        }
        for part in types.list(&line["message"]["parts"]) {
            if let Some(text) = part["text"].as_str() {
                let text = draft.keep(text);
                let what = match part["thought"] == true {
                    true => What::Reasoning(text, Some(place)),
                    false => What::Text(text, Some(place)),
                };
                draft.push(at, agent, what);
            } else if part["functionCall"].is_object() {
                let call = &part["functionCall"];
                let name = call["name"].as_str().unwrap_or_default();
                let input = call["args"].to_string();
                let tool = draft.tool_of(name, input.as_bytes(), Some(place));
                draft.begin_tool(call["id"].as_str().unwrap_or_default(), at, agent, tool);
            }
        }
    }

    fn take_system(&mut self, line: &Value, at: Option<i64>, uuid: Identity, types: &mut Types) {
        let event = &line["systemPayload"]["uiEvent"];
        let draft = &mut self.draft;
        match (line["subtype"].as_str(), event["event.name"].as_str()) {
            (Some("chat_compression"), _) => draft.push_known(uuid, at, 0, What::Compaction),
            (Some("ui_telemetry"), Some(REQUEST)) => {
                self.requests.push(Request::of(line, at, uuid, types));
            }
            (Some("ui_telemetry"), Some("qwen-code.api_error")) => {
                let message = event["error_message"].as_str();
                let message = draft.keep(message.unwrap_or("the API returned an error"));
                let what = What::Error {
                    message,
                    is_recoverable: true,
                };
                draft.push_known(uuid, at, 0, what);
            }
            _ => {}
        }
    }

    /// Requests that no answer shows, as for the summary of a compaction, were spent, too. Those of sub-agents are in their own logs.
    fn add_requests_without_answer(&mut self, path: &Path) {
        let subagents = logs_of_subagents(path);
        for request in std::mem::take(&mut self.requests) {
            let own_log = |id: &String| subagents.contains(&format!("agent-{id}.jsonl"));
            if request.subagent.as_ref().is_some_and(own_log) {
                continue;
            }
            let agent = request.subagent.map_or(0, |id| self.draft.agent(&id));
            let place = self.draft.new_call(CallMarks::of(request.identity), agent);
            let usage = request.counts.usage(&mut self.draft.flaws);
            self.draft.take_usage(place, &request.model, usage);
            if let Some(call) = self.draft.calls.get_mut(place as usize) {
                call.first = request.at;
                call.last = request.at;
                call.duration_ms = request.duration_ms;
                call.ttft_ms = request.ttft_ms;
                call.is_side = true;
            }
        }
    }
}

/// The names of the logs of all sub-agents of a project: forks of a session name sub-agents of the session they come from.
fn logs_of_subagents(path: &Path) -> HashSet<String> {
    let names = |directory: PathBuf| {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.flatten().map(|entry| entry.path())
    };
    let sessions = subagents_beside_chat(path).into_iter().flat_map(names);
    let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    sessions.flat_map(names).filter_map(name).collect()
}

fn texts(parts: &Value) -> String {
    let parts = parts.as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    texts.join("\n")
}

fn take_result(draft: &mut Draft, line: &Value, at: Option<i64>) {
    let result = &line["toolCallResult"];
    let response = &line["message"]["parts"][0]["functionResponse"];
    let id = result["callId"].as_str().or(response["id"].as_str());
    let Some(id) = id else { return };
    // Sub-agents write no status; a failed call has an error in place of an output.
    let success = match result["status"].as_str() {
        Some(status) => Some(status == "success"),
        None if response["response"].get("error").is_some() => Some(false),
        None if response["response"].get("output").is_some() => Some(true),
        None => None,
    };
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
        duration_ms: result["durationMs"].as_f64(),
    };
    draft.end_tool(id, end);
}
