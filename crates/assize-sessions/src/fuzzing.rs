//! Bodies that property tests and fuzz targets share: whatever a log holds, there is an answer, it is bounded by the log,
//! and reading it for
//! totals and reading it whole count the same.

use crate::database::{Database, DatabaseError};
use crate::digest::Digest;
use crate::draft::{Detail, What};
use crate::formats::{FORMATS, Head};
use crate::log::LogFile;
use rusqlite::types::Value as Cell;
use serde_json::Value;
use std::path::Path;

/// A letter that stands before the rows of a table, the table, and its columns.
type Table = (u8, &'static str, &'static str);

const OPENCODE: &[Table] = &[
    (
        b's',
        "session",
        "id, parent_id, directory, version, time_created",
    ),
    (b'm', "message", "id, session_id, data, time_created"),
    (b'p', "part", "id, message_id, data, time_created"),
];

const GOOSE: &[Table] = &[
    (
        b's',
        "sessions",
        "id, working_dir, parent_session_id, model_config_json, accumulated_input_tokens, accumulated_output_tokens, accumulated_total_tokens, \
         accumulated_cache_read_tokens, accumulated_cache_write_tokens, accumulated_cost, session_type, name",
    ),
    (
        b'm',
        "messages",
        "id, session_id, role, content_json, created_timestamp, metadata_json, message_id",
    ),
    (
        b'u',
        "usage_ledger",
        "id, session_id, created_timestamp, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, is_compaction",
    ),
];

/// Reads bytes as a log of every agent that keeps texts.
pub fn logs(bytes: &[u8]) {
    for (number, _) in FORMATS.iter().enumerate() {
        log_of(number, bytes);
    }
}

/// Reads bytes as a log of one agent, by its place among the known ones.
pub fn log_of(format: usize, bytes: &[u8]) {
    let Some(format) = FORMATS.get(format) else {
        return;
    };
    let path = Path::new("rollout-fuzzed.jsonl");
    let _ = format.recognizes(&Head { bytes });
    let log = match format.agent() {
        "opencode" => database(OPENCODE, bytes),
        "goose" => database(GOOSE, bytes),
        _ => Ok(LogFile::of_text(path, bytes)),
    };
    let Ok(log) = log else { return };
    let (Ok(mut brief), Ok(mut full)) = (
        format.read(&log, Detail::Totals),
        format.read(&log, Detail::Full),
    ) else {
        return;
    };
    let length = bytes.len();
    for draft in &full {
        assert!(
            draft.items.len() <= length && draft.calls.len() <= length,
            "more events than bytes"
        );
        let texts: usize = draft.items.iter().map(text_length).sum();
        // An escape of six bytes may become three.
        assert!(
            texts <= length.saturating_mul(4) + 1000,
            "more text than the log has"
        );
    }
    let digests = |drafts: &mut Vec<crate::draft::Draft>| {
        drafts.iter_mut().map(Digest::of).collect::<Vec<_>>()
    };
    assert!(
        digests(&mut brief) == digests(&mut full),
        "totals depend on the texts"
    );
}

/// A database with the rows that the lines stand for: the letter of a table and a JSON array of its columns. What is no text and no number becomes its
/// text. Files of databases are SQLite's to read.
fn database(tables: &[Table], bytes: &[u8]) -> Result<LogFile, DatabaseError> {
    let path = Path::new("fuzzed.db");
    let database = Database::in_memory(path)?;
    let connection = database.connection();
    for (_, name, columns) in tables {
        connection.execute_batch(&format!("CREATE TABLE {name} ({columns})"))?;
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some((letter, row)) = line.split_first() else {
            continue;
        };
        let table = tables.iter().find(|(of, _, _)| of == letter);
        let Some((_, name, columns)) = table else {
            continue;
        };
        if let Ok(Value::Array(mut row)) = serde_json::from_slice(row) {
            let count = columns.split(',').count();
            row.resize(count, Value::Null);
            let places = vec!["?"; count].join(", ");
            let mut insertion =
                connection.prepare(&format!("INSERT INTO {name} VALUES ({places})"))?;
            insertion.execute(rusqlite::params_from_iter(row.into_iter().map(cell)))?;
        }
    }
    Ok(LogFile::of_database(path, database))
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::String(text) => Cell::Text(text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cell::Integer(whole),
            (None, real) => real.map_or(Cell::Null, Cell::Real),
        },
        value => Cell::Text(value.to_string()),
    }
}

/// The number of formats.
pub fn formats() -> usize {
    FORMATS.len()
}

fn text_length(item: &crate::draft::Item) -> usize {
    match &item.what {
        What::Prompt(text) | What::Reasoning(text, _) | What::Text(text, _) => text.len(),
        What::Error { message, .. } => message.len(),
        What::Tool(_) | What::Compaction => 0,
    }
}
