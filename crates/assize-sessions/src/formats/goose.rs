//! goose: SQLite `sessions.db`. Newer versions keep the usage of every answer; older ones only sums per session, where input and output are
//! one number each.

use super::document::{Inclusive, Types};
use super::{Head, LogFormat, Machine};
use crate::database::{Database, DatabaseError};
use crate::draft::{CallMarks, Detail, Draft, ToolEnd, Usage, What, identity};
use crate::log::{LogFile, ReadError};
use crate::session::Flaws;
use assize_contracts::{TokenBreakdown, Usd};
use rusqlite::Row;
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

    /// Only databases have the form.
    fn recognizes(&self, _: &Head<'_>) -> bool {
        false
    }

    fn recognizes_database(&self, database: &Database) -> bool {
        let has_sums = ["accumulated_total_tokens", "accumulated_input_tokens"]
            .iter()
            .any(|column| database.has_columns("sessions", &["id", column]));
        has_sums && database.has_columns("messages", &["session_id", "role", "content_json"])
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        log.with_database(|database| read_sessions(database, detail, None))
    }

    fn read_session(&self, log: &LogFile, id: &str) -> Result<Vec<Draft>, ReadError> {
        log.with_database(|database| read_sessions(database, Detail::Full, Some(id)))
    }
}

/// The columns of sessions that are used, in this order. Versions differ in which of them they have.
const SESSION: [&str; 12] = [
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
    "session_type",
    "name",
];

const MESSAGE: [&str; 6] = [
    "id",
    "role",
    "content_json",
    "created_timestamp",
    "metadata_json",
    "message_id",
];

/// Newer versions keep a row for every request here, also for summaries of compactions, which no message has.
const LEDGER: [&str; 8] = [
    "created_timestamp",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost",
    "is_compaction",
];

/// The columns for a query, with `NULL` for those that this version lacks.
fn columns(database: &Database, table: &str, wanted: &[&str]) -> Result<String, DatabaseError> {
    let known = database.columns(table)?;
    let present = |name: &&str| match known.iter().any(|column| column == name) {
        true => (*name).to_owned(),
        false => "NULL".to_owned(),
    };
    Ok(wanted.iter().map(present).collect::<Vec<_>>().join(", "))
}

fn text(row: &Row<'_>, column: usize) -> Option<String> {
    row.get(column).ok().flatten()
}

fn count(row: &Row<'_>, column: usize) -> Option<u64> {
    let count: Option<i64> = row.get(column).ok().flatten();
    count.and_then(|count| u64::try_from(count).ok())
}

fn moment(row: &Row<'_>, column: usize) -> Option<i64> {
    let number: Option<f64> = row.get(column).ok().flatten();
    number.and_then(crate::moment::of_number)
}

fn read_sessions(
    database: &Database,
    detail: Detail,
    only: Option<&str>,
) -> Result<Vec<Draft>, DatabaseError> {
    let connection = database.connection();
    let mut sessions = connection.prepare(&format!(
        "SELECT {} FROM sessions WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
        columns(database, "sessions", &SESSION)?
    ))?;
    let mut messages = connection.prepare(&format!(
        "SELECT {} FROM messages WHERE session_id = ?1 ORDER BY created_timestamp, id",
        columns(database, "messages", &MESSAGE)?
    ))?;
    let mut ledger = match database.has_columns("usage_ledger", &["session_id"]) {
        true => Some(connection.prepare(&format!(
            "SELECT {} FROM usage_ledger WHERE session_id = ?1 ORDER BY id",
            columns(database, "usage_ledger", &LEDGER)?
        ))?),
        false => None,
    };
    let mut rows = sessions.query([only])?;
    let mut drafts = Vec::new();
    while let Some(row) = rows.next()? {
        let mut draft = Draft::new(AGENT, detail);
        draft.id = text(row, 0).unwrap_or_default();
        draft.origin.cwd = text(row, 1);
        draft.parent = text(row, 2).filter(|parent| *parent != draft.id);
        if let (Some("sub_agent"), Some(name)) = (text(row, 10).as_deref(), text(row, 11)) {
            draft.name_child(&name);
        }
        let model = text(row, 3).and_then(|json| serde_json::from_str::<Value>(&json).ok());
        let model = model
            .and_then(|model| model["model_name"].as_str().map(str::to_owned))
            .unwrap_or_default();
        let mut found = messages.query([&draft.id])?;
        while let Some(row) = found.next()? {
            let message = Message {
                number: row.get(0).unwrap_or_default(),
                role: text(row, 1).unwrap_or_default(),
                content: text(row, 2).unwrap_or_default(),
                at: moment(row, 3),
                metadata: text(row, 4),
                id: text(row, 5),
            };
            take_message(&mut draft, &message, &model, ledger.is_some());
        }
        if let Some(ledger) = &mut ledger {
            let mut unexplained = Ledger::of(&draft);
            let mut found = ledger.query([&draft.id])?;
            while let Some(row) = found.next()? {
                unexplained.take(&mut draft, row, &model);
            }
        }
        let sums = Sums {
            input: count(row, 4),
            output: count(row, 5),
            total: count(row, 6),
            read: count(row, 7),
            written: count(row, 8),
            cost: row.get(9).ok().flatten(),
        };
        sums.add_to(&mut draft, &model);
        drafts.push(draft);
    }
    Ok(drafts)
}

/// Requests that no message shows.
struct Ledger {
    /// The counts of messages that no row of the ledger was found for yet.
    shown: Vec<TokenBreakdown>,
    rows: u64,
    /// Messages show the compactions.
    has_compactions: bool,
}

impl Ledger {
    fn of(draft: &Draft) -> Self {
        Self {
            shown: draft.calls.iter().map(|call| call.tokens).collect(),
            rows: 0,
            has_compactions: draft
                .items
                .iter()
                .any(|item| matches!(item.what, What::Compaction)),
        }
    }

    fn take(&mut self, draft: &mut Draft, row: &Row<'_>, model: &str) {
        self.rows += 1;
        let counts = Inclusive {
            prompt: count(row, 2),
            completion: count(row, 3),
            cache_read: count(row, 4),
            cache_write: count(row, 5),
            reasoning: None,
        };
        let tokens = counts.tokens(&mut Flaws::default());
        if let Some(place) = self.shown.iter().position(|shown| *shown == tokens) {
            self.shown.swap_remove(place);
            return;
        }
        if tokens == TokenBreakdown::default().with_totals() {
            return;
        }
        let id = identity(&[
            b"goose ledger",
            draft.id.as_bytes(),
            &self.rows.to_le_bytes(),
        ]);
        let place = draft.new_call(CallMarks::of(id), 0);
        let model = text(row, 1).unwrap_or_else(|| model.to_owned());
        draft.take_usage(place, &model, Usage::of(tokens));
        let cost: Option<f64> = row.get(6).ok().flatten();
        let at = moment(row, 0);
        let is_compaction = count(row, 7) == Some(1);
        if is_compaction && !self.has_compactions {
            draft.push(at, 0, What::Compaction);
        }
        if let Some(call) = draft.calls.get_mut(place as usize) {
            call.first = at;
            call.last = at;
            call.is_side = is_compaction;
            call.reported_cost = cost.filter(|cost| *cost > 0.0).and_then(Usd::new);
        }
    }
}

struct Message {
    number: i64,
    role: String,
    content: String,
    at: Option<i64>,
    metadata: Option<String>,
    /// Copies in forks have the same.
    id: Option<String>,
}

fn take_message(draft: &mut Draft, message: &Message, model: &str, has_ledger: bool) {
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
    let identity_of = |what: &[u8], draft: &Draft| match &message.id {
        Some(id) => identity(&[b"goose", what, id.as_bytes()]),
        None => {
            let number = message.number.to_le_bytes();
            identity(&[b"goose", what, draft.id.as_bytes(), &number])
        }
    };
    let at = message.at;
    // Versions with a ledger note the model of every answer. A message without one is goose's own: "Compaction complete".
    let is_own_words = has_ledger && metadata["inference"].is_null() && metadata["usage"].is_null();
    if message.role == "assistant" && is_own_words {
        // Nobody served it.
    } else if message.role == "assistant" {
        let marks = CallMarks::of(identity_of(b"call", draft));
        let place = draft.call(marks, 0);
        take_usage_of(draft, place, &metadata, model, at, &mut types);
        for part in &parts {
            take_part(draft, part, Some(place), at);
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
            take_part(draft, part, None, at);
        }
    }
    draft.flaws.wrong_types += u64::from(types.is_odd);
}

fn take_usage_of(
    draft: &mut Draft,
    place: u32,
    metadata: &Value,
    model: &str,
    at: Option<i64>,
    types: &mut Types,
) {
    let usage = &metadata["usage"];
    let mut count = |key: &str| types.count(&usage[key]);
    let counts = Inclusive {
        prompt: count("inputTokens"),
        completion: count("outputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheWriteTokens"),
        reasoning: None,
    };
    let usage_of_call = Usage::of(counts.tokens(&mut draft.flaws));
    let (duration, ttft) = (
        types.number(&usage["elapsedMs"]),
        types.number(&usage["timeToFirstTokenMs"]),
    );
    let cost = types.number(&usage["cost"]).filter(|cost| *cost > 0.0);
    let model = metadata["inference"]["requestedModel"]
        .as_str()
        .unwrap_or(model)
        .to_owned();
    draft.take_usage(place, &model, usage_of_call);
    if let Some(call) = draft.calls.get_mut(place as usize) {
        call.first = at;
        call.last = at;
        call.duration_ms = duration;
        call.ttft_ms = ttft;
        call.reported_cost = cost.and_then(Usd::new);
    }
}

fn take_part(draft: &mut Draft, part: &Value, place: Option<u32>, at: Option<i64>) {
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
            let tool = draft.tool_of(&tool_name(name, part), input.as_bytes(), place);
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
        let at = draft.items.iter().filter_map(|item| item.at).max();
        draft.forget_calls();
        let marks = CallMarks::of(identity(&[b"goose sums", draft.id.as_bytes()]));
        let place = draft.new_call(marks, 0);
        let counts = Inclusive {
            prompt: self.input,
            completion: self.output,
            cache_read: self.read,
            cache_write: self.written,
            reasoning: None,
        };
        let usage = Usage::of(counts.tokens(&mut draft.flaws));
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
