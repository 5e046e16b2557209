//! Rows for other programs: a flat table and a JSON array, written while the rows are read.

use crate::{ReportError, Row};
use assize_contracts::Catalog;
use serde_json::Value;
use std::io::Write;

/// Columns of every table, in this order; behind them come the extensions by name.
const COLUMNS: [(&str, &str); 39] = [
    ("run_id", "/runId"),
    ("scenario_id", "/scenarioId"),
    ("mode", "/mode"),
    ("model", "/model"),
    ("iteration", "/iteration"),
    ("started_at", "/startedAt"),
    ("completed_at", "/completedAt"),
    ("success", "/success"),
    ("timing_wall_ms", "/timing/wallMs"),
    ("tokens_input", "/tokens/input"),
    ("tokens_output", "/tokens/output"),
    ("tokens_reasoning", "/tokens/reasoning"),
    ("tokens_cache_read", "/tokens/cacheRead"),
    ("tokens_cache_write", "/tokens/cacheWrite"),
    ("tokens_total", "/tokens/total"),
    ("tokens_active", "/tokens/active"),
    ("tool_calls_total", "/toolCalls/total"),
    ("tool_calls_failed", "/toolCalls/failed"),
    ("tool_calls_retried", "/toolCalls/retried"),
    ("tool_calls_error_rate", "/toolCalls/errorRate"),
    ("cost_total_usd", "/cost/totalUsd"),
    ("cost_input_usd", "/cost/inputUsd"),
    ("cost_output_usd", "/cost/outputUsd"),
    ("cost_reasoning_usd", "/cost/reasoningUsd"),
    ("checkpoints_passed", "/checkpointsPassed"),
    ("checkpoints_total", "/checkpointsTotal"),
    ("output_valid", "/outputValid"),
    ("provider", "/provider"),
    ("session_id", "/sessionId"),
    ("agent_turns", "/agentTurns"),
    ("completion_reason", "/completionReason"),
    ("outcome", "/outcome"),
    ("error_code", "/errorCode"),
    ("error", "/error"),
    ("cost_source", "/costSource"),
    ("censored", "/censored"),
    ("replayed", "/replayed"),
    ("simulated", "/simulated"),
    ("position", "/position"),
];

/// Extensions beyond these have no column; they are in `results.json`. Plugins may name any number.
const MOST_COLUMNS: usize = 1_000;

/// Writes `results.csv`. What was not measured is an empty cell.
pub struct CsvWriter<W: Write> {
    table: csv::Writer<W>,
    extensions: Vec<String>,
    catalog: Catalog,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the heading: names, and behind those of metrics that are not built in the unit. Extensions that only repeat a column
    /// are left out.
    pub fn new(out: W, extensions: &[String], catalog: &Catalog) -> Result<Self, ReportError> {
        let is_column = |name: &str| {
            let is_fixed = COLUMNS.iter().any(|(column, _)| *column == name);
            is_fixed || catalog.metric(name).field().is_some()
        };
        let further = extensions.iter().filter(|name| !is_column(name));
        let extensions: Vec<String> = further.take(MOST_COLUMNS).cloned().collect();
        let names = COLUMNS.iter().map(|(name, _)| (*name).to_owned());
        let names = names.chain(extensions.iter().map(|name| heading(name, catalog)));
        let mut table = csv::Writer::from_writer(out);
        table
            .write_record(names.map(|name| text_cell(&name)))
            .map_err(write_error)?;
        Ok(Self {
            table,
            extensions,
            catalog: catalog.clone(),
        })
    }

    /// Writes one row; `json` is the text that `row` was read from.
    pub fn write(&mut self, row: &Row<'_>, json: &[u8]) -> Result<(), ReportError> {
        let value: Value = serde_json::from_slice(json).unwrap_or(Value::Null);
        let is_unknown = |name: &str, value: &Value| {
            let is_zero = value.as_f64() == Some(0.0);
            is_zero
                && (row.is_unmeasured() && is_measured(name)
                    || row.has_unpriced_tokens() && self.catalog.metric(name).is_session_cost())
        };
        let cell = |name: &str, value: Option<&Value>| match value {
            Some(value) if !is_unknown(name, value) => cell(value),
            _ => String::new(),
        };
        let fixed = COLUMNS
            .iter()
            .map(|(name, path)| cell(name, value.pointer(path)));
        let extensions = value.get("extensions");
        let further = self.extensions.iter();
        let further = further.map(|name| cell(name, extensions.and_then(|all| all.get(name))));
        let cells = fixed.chain(further);
        self.table.write_record(cells).map_err(write_error)
    }

    /// Writes what is buffered and returns the writer.
    pub fn finish(self) -> Result<W, ReportError> {
        let finished = self.table.into_inner();
        finished.map_err(|error| ReportError::Write(error.into_error()))
    }
}

/// `answer_bytes (bytes)`. Built-in metrics keep their names, which other programs look for.
fn heading(name: &str, catalog: &Catalog) -> String {
    let metric = catalog.metric(name);
    match metric.is_built_in() || metric.unit.is_empty() {
        true => name.to_owned(),
        false => format!("{name} ({})", metric.unit),
    }
}

fn write_error(error: csv::Error) -> ReportError {
    ReportError::Write(error.into())
}

/// Columns that another profiler fills with zeros when it measured nothing.
fn is_measured(name: &str) -> bool {
    let identifies = [
        "iteration",
        "checkpoints_passed",
        "checkpoints_total",
        "position",
    ];
    !identifies.contains(&name)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text_cell(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => text_cell(&value.to_string()),
    }
}

/// Text that a spreadsheet shows and does not compute. A quote mark stands before every beginning of a formula: at the start of the
/// cell, and behind `;` and tabs, at which some spreadsheets split cells.
fn text_cell(text: &str) -> String {
    const BEGINNINGS: [char; 8] = [
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ];
    let mut cell = String::with_capacity(text.len() + 1);
    if text.starts_with(['\t', '\r', '\n']) {
        cell.push('\'');
    }
    let mut is_start = true;
    for letter in text.chars() {
        if is_start && BEGINNINGS.contains(&letter) {
            cell.push('\'');
        }
        match letter {
            '\n' | '\t' => cell.push(letter),
            // A terminal would obey them, and spreadsheets show nothing of them.
            letter if letter.is_control() => cell.extend(letter.escape_default()),
            letter => cell.push(letter),
        }
        is_start = matches!(letter, ';' | '\t');
    }
    cell
}

/// Writes `results.json`: the rows as they are, as one array.
pub struct JsonArrayWriter<W> {
    out: W,
    is_empty: bool,
}

impl<W: Write> JsonArrayWriter<W> {
    /// Begins the array.
    pub fn new(mut out: W) -> Result<Self, ReportError> {
        out.write_all(b"[").map_err(ReportError::Write)?;
        Ok(Self {
            out,
            is_empty: true,
        })
    }

    /// Writes one row as it stands.
    pub fn write(&mut self, json: &[u8]) -> Result<(), ReportError> {
        let before: &[u8] = if self.is_empty { b"\n" } else { b",\n" };
        self.is_empty = false;
        self.out
            .write_all(before)
            .and_then(|()| self.out.write_all(json))
            .map_err(ReportError::Write)
    }

    /// Ends the array and hands the writer back.
    pub fn finish(mut self) -> Result<W, ReportError> {
        self.out.write_all(b"\n]\n").map_err(ReportError::Write)?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(json: &str, extensions: &[&str]) -> Vec<String> {
        let extensions: Vec<String> = extensions.iter().map(|&name| name.to_owned()).collect();
        let mut writer = CsvWriter::new(Vec::new(), &extensions, &Catalog::default()).unwrap();
        writer
            .write(&Row::parse(json.as_bytes()).unwrap(), json.as_bytes())
            .unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn formulas_are_text() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("-x", "'-x"),
            ("a;=1+1\t@x", "a;'=1+1\t'@x"),
            ("\n=1", "'\n=1"),
            ("plain - text", "plain - text"),
        ] {
            assert_eq!(text_cell(text), expected);
        }
        assert_eq!(cell(&serde_json::json!(-3)), "-3");
    }

    #[test]
    fn any_text_comes_back_from_a_cell() {
        let text = "a,\"b\"\r\n; c";
        let json =
            serde_json::json!({"scenarioId": text, "mode": "m", "iteration": 0, "success": true});
        let json = json.to_string();
        let mut writer = CsvWriter::new(Vec::new(), &[], &Catalog::default()).unwrap();
        let row = Row::parse(json.as_bytes()).unwrap();
        writer.write(&row, json.as_bytes()).unwrap();
        let bytes = writer.finish().unwrap();
        let mut reader = csv::Reader::from_reader(&*bytes);
        assert_eq!(&reader.records().next().unwrap().unwrap()[1], text);
    }

    #[test]
    fn unknown_measurements_are_empty_cells() {
        let json = r#"{"scenarioId":"s","mode":"=m","iteration":0,"success":false,"tokens":{"total":0},"timing":{"wallMs":0},
            "cost":{"totalUsd":0},"extensions":{"x":0,"label":"y"}}"#.replace('\n', "");
        let lines = table(&json, &["label", "tokens_total", "x"]);
        assert!(lines[0].starts_with("run_id,scenario_id,mode,model,iteration,"));
        assert!(lines[0].ends_with(",position,label,x"));
        assert!(lines[1].starts_with(",s,'=m,,0,,,false,,,"), "{}", lines[1]);
        assert!(lines[1].ends_with(",y,"), "{}", lines[1]);
    }

    #[test]
    fn an_array_of_rows_is_json_with_and_without_rows() {
        let empty = JsonArrayWriter::new(Vec::new()).unwrap().finish().unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&empty).unwrap(),
            serde_json::json!([])
        );
        let mut writer = JsonArrayWriter::new(Vec::new()).unwrap();
        writer.write(b"{}").unwrap();
        writer.write(b"{}").unwrap();
        let two = writer.finish().unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&two).unwrap(),
            serde_json::json!([{}, {}])
        );
    }
}
