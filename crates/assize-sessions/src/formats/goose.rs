//! goose: SQLite `sessions.db`. Newer versions keep the usage of every answer; older ones only sums per session, where input and output are
//! one number each.

use super::document::{Types, inside};
use super::{Head, LogFormat, Machine};
use crate::database::{Database, DatabaseError};
use crate::draft::{CallMarks, Detail, Draft, Tool, ToolEnd, Usage, What, identity, subject};
use crate::log::{LogFile, ReadError};
use assize_contracts::{TokenBreakdown, Usd};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct Goose;

const AGENT: &str = "goose";

impl LogFormat for Goose {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        match machine.variable("GOOSE_PATH_ROOT") {
            Some(root) if !root.is_empty() => vec![PathBuf::from(root).join("data/sessions")],
            _ => vec![
                machine
                    .directory("XDG_DATA_HOME", ".local/share")
                    .join("goose/sessions"),
            ],
        }
    }

    fn is_log_name(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == "sessions.db")
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        let has = |words: &[u8]| memchr::memmem::find(head.bytes, words).is_some();
        head.is_sqlite() && (has(b"accumulated_total_tokens") || has(b"accumulated_input_tokens"))
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        log.with_database(|database| read_sessions(database, detail, None))
    }

    fn read_session(&self, log: &LogFile, id: &str) -> Result<Vec<Draft>, ReadError> {
        log.with_database(|database| read_sessions(database, Detail::Full, Some(id)))
    }
}

/// The columns that are used, in this order. Versions differ in which of them they have.
const COLUMNS: [&str; 10] = [
    "id",
    "working_dir",
    "parent_session_id",
    "model_config_json",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
    "accumulated_total_tokens",
    "accumulated_cache_read_tokens",
    "accumulated_cache_write_tokens",
    "accumulated_cost",
];

fn read_sessions(
    database: &Database,
    detail: Detail,
    only: Option<&str>,
) -> Result<Vec<Draft>, DatabaseError> {
    let known = database.columns("sessions")?;
    let columns = COLUMNS.map(|name| match known.iter().any(|column| column == name) {
        true => name,
        false => "NULL",
    });
    let query = format!(
        "SELECT {} FROM sessions WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
        columns.join(", ")
    );
    let has_metadata = database
        .columns("messages")?
        .iter()
        .any(|column| column == "metadata_json");
    let metadata = if has_metadata {
        "metadata_json"
    } else {
        "NULL"
    };
    let connection = database.connection();
    let mut sessions = connection.prepare(&query)?;
    let mut messages = connection.prepare(&format!(
        "SELECT id, role, content_json, created_timestamp, {metadata} FROM messages WHERE session_id = ?1 ORDER BY created_timestamp, id"
    ))?;
    let mut rows = sessions.query([only])?;
    let mut drafts = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |column: usize| row.get::<_, Option<String>>(column).ok().flatten();
        let count = |column: usize| {
            let count: Option<i64> = row.get(column).ok().flatten();
            count.and_then(|count| u64::try_from(count).ok())
        };
        let mut draft = Draft::new(AGENT, detail);
        draft.id = text(0).unwrap_or_default();
        draft.origin.cwd = text(1);
        draft.parent = text(2).filter(|parent| *parent != draft.id);
        let model = text(3).and_then(|json| serde_json::from_str::<Value>(&json).ok());
        let model = model
            .and_then(|model| model["model_name"].as_str().map(str::to_owned))
            .unwrap_or_default();
        let mut found = messages.query([&draft.id])?;
        while let Some(row) = found.next()? {
            let text = |column: usize| row.get::<_, Option<String>>(column).ok().flatten();
            let message = Message {
                number: row.get(0).unwrap_or_default(),
                role: text(1).unwrap_or_default(),
                content: text(2).unwrap_or_default(),
                at: row
                    .get::<_, Option<f64>>(3)
                    .ok()
                    .flatten()
                    .map(crate::moment::of_number),
                metadata: text(4),
            };
            tell(&mut draft, &message, &model);
        }
        let sums = Sums {
            input: count(4),
            output: count(5),
            total: count(6),
            read: count(7),
            written: count(8),
            cost: row.get(9).ok().flatten(),
        };
        sums.add_to(&mut draft, &model);
        drafts.push(draft);
    }
    Ok(drafts)
}

struct Message {
    number: i64,
    role: String,
    content: String,
    at: Option<i64>,
    metadata: Option<String>,
}

fn tell(draft: &mut Draft, message: &Message, model: &str) {
    draft.flaws.lines += 1;
    let Ok(Value::Array(parts)) = serde_json::from_str(&message.content) else {
        draft.flaws.broken_lines += 1;
        return;
    };
    let metadata = message
        .metadata
        .as_deref()
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .unwrap_or_default();
    let mut types = Types::default();
    let identity_of = |what: &[u8], draft: &Draft| {
        identity(&[
            b"goose",
            what,
            draft.id.as_bytes(),
            &message.number.to_le_bytes(),
        ])
    };
    let at = message.at;
    if message.role == "assistant" {
        let marks = CallMarks {
            request: identity_of(b"call", draft),
            ..CallMarks::default()
        };
        let place = draft.call(marks, 0);
        tell_usage(draft, place, &metadata, model, at, &mut types);
        for part in &parts {
            tell_part(draft, part, Some(place), at);
        }
    } else {
        let texts: Vec<&str> = parts
            .iter()
            .filter(|part| part["type"] == "text")
            .filter_map(|part| part["text"].as_str())
            .collect();
        let is_of_user = metadata["userVisible"] != false;
        if !texts.is_empty() && is_of_user {
            let text = draft.keep(&texts.join("\n"));
            let identity = identity_of(b"prompt", draft);
            draft.push_known(identity, at, 0, What::Prompt(text));
        }
        for part in &parts {
            tell_part(draft, part, None, at);
        }
    }
    draft.flaws.wrong_types += u64::from(types.is_odd);
}

fn tell_usage(
    draft: &mut Draft,
    place: u32,
    metadata: &Value,
    model: &str,
    at: Option<i64>,
    types: &mut Types,
) {
    let usage = &metadata["usage"];
    let mut count = |key: &str| types.count(&usage[key]);
    let (prompt, output) = (count("inputTokens"), count("outputTokens"));
    let (read, written) = (count("cacheReadTokens"), count("cacheWriteTokens"));
    let tokens = tokens(draft, prompt, output, read, written);
    let (duration, ttft) = (
        types.number(&usage["elapsedMs"]),
        types.number(&usage["timeToFirstTokenMs"]),
    );
    let cost = types.number(&usage["cost"]).filter(|cost| *cost > 0.0);
    let model = metadata["inference"]["requestedModel"]
        .as_str()
        .unwrap_or(model)
        .to_owned();
    draft.take_usage(place, &model, tokens);
    if let Some(call) = draft.calls.get_mut(place as usize) {
        call.first = at;
        call.last = at;
        call.duration_ms = duration;
        call.ttft_ms = ttft;
        call.reported_cost = cost.and_then(Usd::new);
    }
}

/// Input is one number, cached or not.
fn tokens(
    draft: &mut Draft,
    prompt: Option<u64>,
    output: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
) -> Usage {
    let (input, is_contradiction) = inside(
        prompt,
        read.unwrap_or(0).saturating_add(written.unwrap_or(0)),
    );
    draft.flaws.contradictions += u64::from(is_contradiction);
    let tokens = TokenBreakdown {
        input,
        output,
        cache_read: read,
        cache_write: written,
        ..TokenBreakdown::default()
    };
    Usage {
        tokens: tokens.with_totals(),
        cache_write_1h: None,
    }
}

fn tell_part(draft: &mut Draft, part: &Value, place: Option<u32>, at: Option<i64>) {
    match part["type"].as_str() {
        Some("text") if place.is_some() => {
            let text = draft.keep(part["text"].as_str().unwrap_or_default());
            draft.push(at, 0, What::Text(text, place));
        }
        Some("thinking" | "reasoning") => {
            let text = part["thinking"]
                .as_str()
                .or(part["text"].as_str())
                .unwrap_or_default();
            let text = draft.keep(text);
            draft.push(at, 0, What::Reasoning(text, place));
        }
        Some("toolRequest") => {
            let call = &part["toolCall"]["value"];
            let name = call["name"].as_str().unwrap_or_default();
            let input = call["arguments"].to_string();
            let subject = subject(name, input.as_bytes()).map(|subject| draft.names.of(&subject));
            let tool = Tool {
                name: draft.names.of(&tool_name(name, part)),
                subject,
                call: place,
                input: draft.keep_value(input.as_bytes()),
                ..Tool::default()
            };
            draft.begin_tool(part["id"].as_str().unwrap_or_default(), at, 0, tool);
        }
        Some("toolResponse") => end_tool(draft, part, at),
        Some("conversationCompacted" | "summarizationRequested" | "contextLengthExceeded") => {
            draft.push(at, 0, What::Compaction);
        }
        _ => {}
    }
}

/// `server__tool` of an extension that is not goose's own is a tool of an MCP server.
fn tool_name(name: &str, part: &Value) -> String {
    let extension = part["_meta"]["goose_extension"].as_str();
    match (extension, name.split_once("__")) {
        (Some(extension), Some((server, tool))) if extension == server => {
            format!("mcp__{server}__{tool}")
        }
        _ => name.to_owned(),
    }
}

fn end_tool(draft: &mut Draft, part: &Value, at: Option<i64>) {
    let result = &part["toolResult"];
    let value = &result["value"];
    let exit = value["structuredContent"]["exit_code"].as_i64();
    let success = match (result["status"].as_str(), value["isError"].as_bool()) {
        (Some("error"), _) | (_, Some(true)) => Some(false),
        (Some("success"), _) => Some(exit.is_none_or(|code| code == 0)),
        _ => None,
    };
    let output = match draft.is_full() {
        true => Value::String(super::document::joined_texts(&value["content"])),
        false => Value::Null,
    };
    let error = result["error"].as_str().map(|error| draft.keep(error));
    let end = ToolEnd {
        at,
        output,
        success,
        error,
        duration_ms: None,
    };
    draft.end_tool(part["id"].as_str().unwrap_or_default(), end);
}

/// The session's own sums.
struct Sums {
    input: Option<u64>,
    output: Option<u64>,
    total: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    cost: Option<f64>,
}

impl Sums {
    /// Sessions of older versions have nothing else: the sums are one call.
    fn add_to(&self, draft: &mut Draft, model: &str) {
        let has_usage = draft.calls.iter().any(|call| call.tokens.output.is_some());
        if has_usage || (self.input.is_none() && self.output.is_none() && self.total.is_none()) {
            return;
        }
        for item in &mut draft.items {
            match &mut item.what {
                What::Reasoning(_, call) | What::Text(_, call) => *call = None,
                What::Tool(tool) => tool.call = None,
                _ => {}
            }
        }
        let at = draft.items.iter().filter_map(|item| item.at).max();
        draft.calls.clear();
        let marks = CallMarks {
            request: identity(&[b"goose sums", draft.id.as_bytes()]),
            ..CallMarks::default()
        };
        let place = draft.new_call(marks, 0);
        let usage = tokens(draft, self.input, self.output, self.read, self.written);
        draft.take_usage(place, model, usage);
        if let Some(call) = draft.calls.get_mut(place as usize) {
            if call.tokens.total.is_none() {
                call.tokens.total = self.total;
            }
            call.first = at;
            call.reported_cost = self.cost.filter(|cost| *cost > 0.0).and_then(Usd::new);
        }
    }
}
