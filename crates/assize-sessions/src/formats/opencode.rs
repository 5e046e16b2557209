//! opencode: SQLite `opencode*.db` with `session`, `message` and `part`; older sessions as JSON files under `storage`. Sessions with a
//! parent are sub-agents. A fork copies the messages of its original and gives them ids of its own.

use super::document::Types;
use super::{Head, LogFormat, Machine, has_ending};
use crate::database::{Database, DatabaseError};
use crate::draft::{CallMarks, Detail, Draft, Identity, ToolEnd, Usage, What, identity};
use crate::log::{LogFile, ReadError};
use assize_contracts::{TokenBreakdown, Usd};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct Opencode;

const AGENT: &str = "opencode";

/// Larger files of the JSON storage are not read.
const LARGEST_FILE: u64 = 64 << 20;

impl LogFormat for Opencode {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        let data = machine
            .directory("XDG_DATA_HOME", ".local/share")
            .join("opencode");
        let own = machine.variable("OPENCODE_DATA_DIR").map(PathBuf::from);
        vec![own.unwrap_or(data)]
    }

    fn is_log_name(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_database = name.starts_with("opencode") && name.ends_with(".db");
        let is_session = name.starts_with("ses_")
            && name.ends_with(".json")
            && path.components().any(|part| part.as_os_str() == "session");
        is_database || is_session
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        const FIELDS: [&str; 4] = ["id", "directory", "projectID", "time"];
        // In lines of other programs the words may stand anywhere.
        let is_line = head.lines().next().and_then(super::fields_of);
        match is_line {
            Some(fields) => super::has_all(&fields, &FIELDS),
            None => head.begins_with_object_of(&FIELDS),
        }
    }

    fn recognizes_database(&self, database: &Database) -> bool {
        database.has_columns("session", &["id"])
            && database.has_columns("message", &["id", "session_id", "data"])
            && database.has_columns("part", &["message_id", "data"])
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        match is_json(log.path()) {
            true => read_storage(log, detail),
            false => log.with_database(|database| read_sessions(database, detail, None)),
        }
    }

    /// Messages and parts of a session in the older storage.
    fn attachments(&self, path: &Path) -> Vec<PathBuf> {
        let id = path.file_stem().and_then(|stem| stem.to_str());
        let (Some(storage), Some(id)) = (storage_of(path).filter(|_| is_json(path)), id) else {
            return Vec::new();
        };
        let files = |directory: PathBuf| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect()
        };
        let messages = files(storage.join("message").join(id));
        let parts = messages.iter().filter_map(|message| {
            let id = message.file_stem()?;
            Some(files(storage.join("part").join(id)))
        });
        let parts: Vec<PathBuf> = parts.flatten().collect();
        [messages, parts].concat()
    }

    fn read_session(&self, log: &LogFile, id: &str) -> Result<Vec<Draft>, ReadError> {
        match is_json(log.path()) {
            true => read_storage(log, Detail::Full),
            false => log.with_database(|database| read_sessions(database, Detail::Full, Some(id))),
        }
    }
}

fn is_json(path: &Path) -> bool {
    has_ending(path, "json")
}

/// The facts about a session that its messages need.
#[derive(Clone, Copy)]
struct SessionFacts {
    /// Milliseconds since 1970.
    created: Option<i64>,
}

fn read_sessions(
    database: &Database,
    detail: Detail,
    only: Option<&str>,
) -> Result<Vec<Draft>, DatabaseError> {
    let columns = database.columns("session")?;
    let column = |name: &'static str| match columns.iter().any(|column| column == name) {
        true => name,
        false => "NULL",
    };
    let query = format!(
        "SELECT id, {}, {}, {}, {created} FROM session WHERE ?1 IS NULL OR id = ?1 ORDER BY {created}, id",
        column("parent_id"),
        column("directory"),
        column("version"),
        created = column("time_created")
    );
    let connection = database.connection();
    let mut sessions = connection.prepare(&query)?;
    let mut messages = connection
        .prepare("SELECT id, data, time_created FROM message WHERE session_id = ?1 ORDER BY time_created, id")?;
    let mut parts = connection.prepare(
        "SELECT data, time_created FROM part WHERE message_id = ?1 ORDER BY time_created, id",
    )?;
    let mut rows = sessions.query([only])?;
    let mut drafts = Vec::new();
    while let Some(row) = rows.next()? {
        let mut draft = Draft::new(AGENT, detail);
        draft.id = text_of(row, 0);
        draft.parent = row.get(1).ok().flatten();
        draft.origin.cwd = row.get(2).ok().flatten();
        draft.origin.agent_version = row.get(3).ok().flatten();
        let facts = SessionFacts {
            created: row.get(4).ok().flatten(),
        };
        let mut found = messages.query([&draft.id])?;
        while let Some(row) = found.next()? {
            let id = text_of(row, 0);
            let created: Option<i64> = row.get(2).ok();
            let Some(message) = parsed(&mut draft, &text_of(row, 1)) else {
                continue;
            };
            let mut contents = Vec::new();
            let mut found = parts.query([&id])?;
            while let Some(row) = found.next()? {
                let created: Option<i64> = row.get(1).ok();
                if let Some(part) = parsed(&mut draft, &text_of(row, 0)) {
                    contents.push((part, created));
                }
            }
            let record = Record {
                id: &id,
                message: &message,
                parts: &contents,
                created,
            };
            take_record(&mut draft, facts, &record);
        }
        drafts.push(draft);
    }
    Ok(drafts)
}

/// A text, also where the column holds something else.
fn text_of(row: &rusqlite::Row<'_>, column: usize) -> String {
    match row.get_ref(column) {
        Ok(rusqlite::types::ValueRef::Text(text) | rusqlite::types::ValueRef::Blob(text)) => {
            String::from_utf8_lossy(text).into_owned()
        }
        Ok(rusqlite::types::ValueRef::Integer(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn parsed(draft: &mut Draft, text: &str) -> Option<Value> {
    draft.flaws.lines += 1;
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(_) => {
            draft.flaws.broken_lines += 1;
            None
        }
    }
}

/// `storage/session/<project>/<id>.json`, `storage/message/<session>/<id>.json`, `storage/part/<message>/<id>.json`
fn read_storage(log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
    let mut draft = Draft::new(AGENT, detail);
    let text = log.document(LARGEST_FILE)?;
    let Some(session) = parsed(&mut draft, &String::from_utf8_lossy(&text)) else {
        return Ok(vec![draft]);
    };
    let field = |key: &str| session[key].as_str().map(str::to_owned);
    draft.id = field("id").unwrap_or_default();
    draft.parent = field("parentID");
    draft.origin.cwd = field("directory");
    draft.origin.agent_version = field("version");
    let facts = SessionFacts {
        created: session["time"]["created"].as_i64(),
    };
    let Some(storage) = storage_of(log.path()) else {
        return Ok(vec![draft]);
    };
    // Ids become parts of paths only if they are names.
    if !is_name(&draft.id) {
        return Ok(vec![draft]);
    }
    let mut messages = Vec::new();
    for message in documents(&storage.join("message").join(&draft.id), &mut draft) {
        let created = message["time"]["created"].as_i64();
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        messages.push((created, id, message));
    }
    messages.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    for (created, id, message) in messages {
        let mut contents = Vec::new();
        if is_name(&id) {
            for part in documents(&storage.join("part").join(&id), &mut draft) {
                contents.push((part, None));
            }
            contents
                .sort_by(|a: &(Value, Option<i64>), b| a.0["id"].as_str().cmp(&b.0["id"].as_str()));
        }
        let record = Record {
            id: &id,
            message: &message,
            parts: &contents,
            created,
        };
        take_record(&mut draft, facts, &record);
    }
    Ok(vec![draft])
}

/// The directory `storage` above a session's file.
fn storage_of(path: &Path) -> Option<&Path> {
    path.ancestors()
        .find(|path| path.file_name().is_some_and(|name| name == "session"))?
        .parent()
}

fn is_name(id: &str) -> bool {
    !id.is_empty()
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn documents(directory: &Path, draft: &mut Draft) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_small = entry
            .metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST_FILE);
        if !is_json(&path) || !is_small {
            continue;
        }
        if let Ok(text) = std::fs::read(&path) {
            found.extend(parsed(draft, &String::from_utf8_lossy(&text)));
        }
    }
    found
}

/// A message with its parts.
struct Record<'a> {
    id: &'a str,
    message: &'a Value,
    /// With the time of their rows, where they are rows.
    parts: &'a [(Value, Option<i64>)],
    created: Option<i64>,
}

impl Record<'_> {
    /// The same in a fork, which keeps times, texts and counts and gives new ids.
    fn content_identity(&self) -> Identity {
        let message = self.message;
        let of_message = ["role", "time", "modelID", "providerID", "tokens"];
        let mut seen: Vec<String> = of_message.map(|key| message[key].to_string()).into();
        for (part, _) in self.parts {
            let is_text = part["type"] == "text";
            let mark = if is_text {
                &part["text"]
            } else {
                &part["callID"]
            };
            seen.push(mark.to_string());
        }
        let seen: Vec<&[u8]> = seen.iter().map(String::as_bytes).collect();
        identity(&seen)
    }
}

fn take_record(draft: &mut Draft, session: SessionFacts, record: &Record<'_>) {
    let mut types = Types::default();
    let at = types
        .moment(&record.message["time"]["created"])
        .or(record.created);
    match record.message["role"].as_str() {
        Some("user") => take_user(draft, record, at),
        Some("assistant") => {
            // A message that is older than its session was copied into it.
            let is_copy = at
                .zip(session.created)
                .is_some_and(|(at, created)| at < created);
            take_answer(draft, record, is_copy, at, &mut types);
        }
        _ => types.is_odd = true,
    }
    draft.flaws.wrong_types += u64::from(types.is_odd);
}

fn take_user(draft: &mut Draft, record: &Record<'_>, at: Option<i64>) {
    let parts = record.parts;
    let identity = record.content_identity();
    let is_compaction = parts.iter().any(|(part, _)| part["type"] == "compaction");
    if is_compaction {
        draft.push_known(identity, at, 0, What::Compaction);
        return;
    }
    let texts = parts
        .iter()
        .filter(|(part, _)| part["type"] == "text" && part["synthetic"] != true);
    let texts: Vec<&str> = texts
        .filter_map(|(part, _)| part["text"].as_str())
        .collect();
    if !texts.is_empty() {
        let text = draft.keep(&texts.join("\n"));
        draft.push_known(identity, at, 0, What::Prompt(text));
    }
}

fn take_answer(
    draft: &mut Draft,
    record: &Record<'_>,
    is_copy: bool,
    at: Option<i64>,
    types: &mut Types,
) {
    let Record { id, message, .. } = *record;
    let kind = message["agent"].as_str().or(message["mode"].as_str());
    if let (Some(_), Some(kind)) = (&draft.parent, kind) {
        draft.name_child(kind);
    }
    let content = record.content_identity();
    let marks = CallMarks {
        request: match is_copy {
            true => content,
            false => identity(&[b"opencode", id.as_bytes()]),
        },
        message: content,
        may_repeat: is_copy,
        output: -1,
    };
    let place = draft.call(marks, 0);
    let cost = types.number(&message["cost"]).filter(|cost| *cost > 0.0);
    let tokens = counts(&message["tokens"], types);
    let is_interrupted = is_interrupted(message, &tokens);
    // Older versions make several requests for one message, which has the counts of the last.
    let tokens = match sum_of_steps(record.parts, types) {
        Some(sum) if sum.total >= tokens.total => sum,
        _ if is_interrupted => TokenBreakdown::default(),
        _ => tokens,
    };
    let model = types
        .text(&message["modelID"])
        .unwrap_or_default()
        .to_owned();
    draft.take_usage(place, &model, Usage::of(tokens));
    let ended = types.moment(&message["time"]["completed"]);
    let stop = message["finish"].as_str().map(str::to_owned);
    let status = message["error"]["data"]["statusCode"]
        .as_u64()
        .and_then(|status| u16::try_from(status).ok());
    let is_full = draft.is_full();
    if let Some(call) = draft.calls.get_mut(place as usize) {
        call.id = is_full.then(|| id.to_owned());
        call.started = at;
        call.first = at;
        call.last = ended;
        call.reported_cost = cost.and_then(Usd::new);
        call.stop_reason = stop;
        call.status = status;
        call.is_side = message["summary"] == true && message["mode"] == "compaction";
    }
    for (part, created) in record.parts {
        take_part(draft, part, place, created.or(at), types);
    }
    if let Some(name) = message["error"]["name"].as_str() {
        let text = message["error"]["data"]["message"]
            .as_str()
            .unwrap_or_default();
        draft.push_error(ended.or(at), &format!("{name}: {text}"), false);
    }
}

fn counts(tokens: &Value, types: &mut Types) -> TokenBreakdown {
    let counts = TokenBreakdown {
        input: types.count(&tokens["input"]),
        output: types.count(&tokens["output"]),
        reasoning: types.count(&tokens["reasoning"]),
        cache_read: types.count(&tokens["cache"]["read"]),
        cache_write: types.count(&tokens["cache"]["write"]),
        ..TokenBreakdown::default()
    };
    counts.with_totals()
}

/// The sum over the requests of a message. Absent where its parts contain none.
fn sum_of_steps(parts: &[(Value, Option<i64>)], types: &mut Types) -> Option<TokenBreakdown> {
    let steps = parts
        .iter()
        .filter(|(part, _)| part["type"] == "step-finish" && part["tokens"].is_object());
    let steps: Vec<TokenBreakdown> = steps
        .map(|(part, _)| counts(&part["tokens"], types))
        .collect();
    let sum = |class: fn(&TokenBreakdown) -> Option<u64>| {
        let mut all = steps.iter().map(class);
        all.try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)))
    };
    let tokens = TokenBreakdown {
        input: sum(|tokens| tokens.input),
        output: sum(|tokens| tokens.output),
        reasoning: sum(|tokens| tokens.reasoning),
        cache_read: sum(|tokens| tokens.cache_read),
        cache_write: sum(|tokens| tokens.cache_write),
        ..TokenBreakdown::default()
    };
    (!steps.is_empty()).then(|| tokens.with_totals())
}

/// A message that never ended has zeros where counts would be.
fn is_interrupted(message: &Value, tokens: &TokenBreakdown) -> bool {
    let is_zero = tokens.input.unwrap_or(0) == 0
        && tokens.output.unwrap_or(0) == 0
        && tokens.cache_read.unwrap_or(0) == 0;
    is_zero && message["finish"].is_null() && message["error"]["data"]["statusCode"].is_null()
}

fn take_part(draft: &mut Draft, part: &Value, place: u32, at: Option<i64>, types: &mut Types) {
    let started = types.moment(&part["time"]["start"]).or(at);
    match part["type"].as_str() {
        Some("text") if part["synthetic"] != true => {
            let text = draft.keep(part["text"].as_str().unwrap_or_default());
            draft.push(started, 0, What::Text(text, Some(place)));
        }
        Some("reasoning") => {
            let text = draft.keep(part["text"].as_str().unwrap_or_default());
            draft.push(started, 0, What::Reasoning(text, Some(place)));
        }
        Some("tool") => take_tool(draft, part, place, at, types),
        Some("retry") => {
            let message = part["error"]["data"]["message"].as_str();
            draft.push_error(started, message.unwrap_or("the agent tried again"), true);
        }
        _ => {}
    }
}

fn take_tool(draft: &mut Draft, part: &Value, place: u32, at: Option<i64>, types: &mut Types) {
    let state = &part["state"];
    let name = types.text(&part["tool"]).unwrap_or_default();
    let id = types.text(&part["callID"]).unwrap_or_default();
    let input = state["input"].to_string();
    let started = types.moment(&state["time"]["start"]).or(at);
    let tool = draft.tool_of(name, input.as_bytes(), Some(place));
    draft.begin_tool(id, started, 0, tool);
    let ended = types.moment(&state["time"]["end"]);
    let success = match (state["status"].as_str(), state["metadata"]["exit"].as_i64()) {
        (Some("completed"), Some(exit)) => Some(exit == 0),
        (Some("completed"), None) => Some(true),
        (Some("error"), _) => Some(false),
        _ => return,
    };
    let output = match draft.is_full() {
        true => state
            .get("output")
            .or_else(|| state.get("error"))
            .cloned()
            .unwrap_or_default(),
        false => Value::Null,
    };
    let end = ToolEnd {
        at: ended,
        error: state["error"].as_str().map(|error| draft.keep(error)),
        output,
        success,
        duration_ms: started
            .zip(ended)
            .map(|(start, end)| end.saturating_sub(start).max(0) as f64),
    };
    draft.end_tool(id, end);
}
