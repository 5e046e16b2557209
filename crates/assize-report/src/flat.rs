//! Rows for other programs: a flat table and a JSON array, written while the rows are read.

use crate::escape::is_hidden;
use crate::row::{COLUMNS, Shown};
use crate::scalar::Scalar;
use crate::{ReportError, Row};
use assize_contracts::Catalog;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write;

/// Extensions beyond these have no column; they are in `results.json`. Plugins may name any number.
const MOST_COLUMNS: usize = 1_000;

/// Writes `results.csv`. A missing measurement is an empty cell.
pub struct CsvWriter<W: Write> {
    table: csv::Writer<W>,
    /// The columns of every table, then the extensions.
    columns: Vec<Column>,
    /// The number that is being written.
    number: String,
}

struct Column {
    name: String,
    /// Another profiler fills it with zeros when it measured nothing.
    is_measured: bool,
    /// A cost of the session, which is unknown where tokens were not priced.
    is_cost: bool,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the heading: names, and behind those of metrics that are not built in the unit. Extensions that only repeat a column
    /// are left out.
    pub fn new(out: W, extensions: &[String], catalog: &Catalog) -> Result<Self, ReportError> {
        let is_column =
            |name: &str| COLUMNS.contains(&name) || catalog.metric(name).field().is_some();
        let further = extensions.iter().filter(|name| !is_column(name));
        let extensions: Vec<&str> = further.take(MOST_COLUMNS).map(String::as_str).collect();
        let names = COLUMNS.iter().map(|name| (*name).to_owned());
        let names = names.chain(extensions.iter().map(|name| heading(name, catalog)));
        let mut table = csv::Writer::from_writer(out);
        table
            .write_record(names.map(|name| text_cell(&name).into_owned()))
            .map_err(write_error)?;
        let column = |name: &str| Column {
            name: name.to_owned(),
            is_measured: is_measured(name),
            is_cost: catalog.metric(name).is_session_cost(),
        };
        let columns = COLUMNS.iter().chain(&extensions);
        let columns = columns.map(|name| column(name)).collect();
        Ok(Self {
            table,
            columns,
            number: String::new(),
        })
    }

    /// Writes one row.
    pub fn write(&mut self, row: &Row<'_>) -> Result<(), ReportError> {
        let (unmeasured, unpriced) = (row.is_unmeasured(), row.has_unpriced_tokens());
        let is_unknown = |column: &Column, value: &Shown<'_>| {
            (unmeasured && column.is_measured || unpriced && column.is_cost) && value.is_zero()
        };
        let (fixed, further) = self.columns.split_at(COLUMNS.len());
        let fixed = fixed.iter().zip(row.columns());
        let further = further.iter().map(|column| {
            let value = row.extension(&column.name);
            (column, value.map_or(Shown::Nothing, Shown::Value))
        });
        for (column, value) in fixed.chain(further) {
            let text = match is_unknown(column, &value) {
                true => Cow::Borrowed(""),
                false => cell(value, &mut self.number),
            };
            self.table.write_field(&*text).map_err(write_error)?;
        }
        let end: [&[u8]; 0] = [];
        self.table.write_record(end).map_err(write_error)
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

/// The text of a cell. Numbers are written into `number`.
fn cell<'a>(value: Shown<'a>, number: &'a mut String) -> Cow<'a, str> {
    let mut shown = |value: &dyn std::fmt::Display| {
        number.clear();
        // Writing to a string cannot fail.
        let _ = write!(number, "{value}");
    };
    match value {
        Shown::Nothing | Shown::Value(Scalar::Nothing) => return Cow::Borrowed(""),
        Shown::Bool(true) | Shown::Value(Scalar::Bool(true)) => return Cow::Borrowed("true"),
        Shown::Bool(false) | Shown::Value(Scalar::Bool(false)) => return Cow::Borrowed("false"),
        Shown::Integer(value) => shown(&value),
        Shown::Value(Scalar::Number(value)) => shown(value),
        Shown::Text(text) => return text_cell(text),
        Shown::Value(Scalar::Text(text)) => return text_cell(text),
        Shown::Value(Scalar::Json(value)) => {
            return Cow::Owned(text_cell(&value.to_string()).into_owned());
        }
    }
    Cow::Borrowed(number)
}

/// Text that a spreadsheet shows and does not compute. A quote mark precedes every beginning of a formula: at the start of the
/// cell, and behind `;` and tabs, at which some spreadsheets split cells.
fn text_cell(text: &str) -> Cow<'_, str> {
    const BEGINNINGS: [char; 8] = [
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ];
    // Nearly all cells hold nothing but these.
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b" ._:/".contains(&byte);
    if text.bytes().all(|byte| is_harmless(byte) || byte == b'-') && !text.starts_with('-') {
        return Cow::Borrowed(text);
    }
    let may_split = |letter| matches!(letter, ';' | '\t');
    let is_plain = !text.starts_with(BEGINNINGS) && !text.starts_with(['\r', '\n']);
    if is_plain && !text.contains(|letter: char| may_split(letter) || is_hidden(letter)) {
        return Cow::Borrowed(text);
    }
    let mut cell = String::with_capacity(text.len() + 1);
    if text.starts_with(['\t', '\r', '\n']) {
        cell.push('\'');
    }
    let mut is_start = true;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if is_start && BEGINNINGS.contains(&letter) {
            cell.push('\'');
        }
        match letter {
            '\n' | '\t' => cell.push(letter),
            '\r' if letters.peek() == Some(&'\n') => cell.push(letter),
            // A terminal would obey them, and spreadsheets show nothing of them.
            letter if is_hidden(letter) => cell.extend(letter.escape_default()),
            letter => cell.push(letter),
        }
        is_start = may_split(letter);
    }
    Cow::Owned(cell)
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

    /// Writes one row.
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
        writer.write(&Row::parse(json.as_bytes()).unwrap()).unwrap();
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
        let number = Scalar::Number((-3).into());
        assert_eq!(cell(Shown::Value(&number), &mut String::new()), "-3");
    }

    #[test]
    fn any_text_comes_back_from_a_cell() {
        let text = "a,\"b\"\n; c";
        let json =
            serde_json::json!({"scenarioId": text, "mode": "m", "iteration": 0, "success": true});
        let json = json.to_string();
        let mut writer = CsvWriter::new(Vec::new(), &[], &Catalog::default()).unwrap();
        let row = Row::parse(json.as_bytes()).unwrap();
        writer.write(&row).unwrap();
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
        assert!(lines[0].ends_with(",cost_at_least_usd,label,x"));
        assert!(lines[1].starts_with(",s,'=m,,0,,,false,,,"), "{}", lines[1]);
        assert!(lines[1].ends_with(",y,"), "{}", lines[1]);
    }

    #[test]
    fn values_stand_in_cells_as_they_stand_in_the_row() {
        let json = r#"{"scenarioId":"s","mode":"m","iteration":-3,"success":true,"provider":{"a":[1,null]},"position":7,
            "tokens":null,"timing":{"wallMs":5.0},"cost":{"totalUsd":1e-7,"inputUsd":null},"error":["x"],"agentTurns":18446744073709551615,
            "extensions":{"twice":1,"list":[1, 2.50],"twice":true,"nothing":null,"text":"a\u0041"}}"#.replace('\n', "");
        let lines = table(&json, &["list", "nothing", "text", "twice"]);
        let mut reader = csv::Reader::from_reader(lines[1].as_bytes());
        let cells = reader.headers().unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = |path: &str| match value.pointer(path) {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        for (name, path) in [
            ("iteration", "/iteration"),
            ("success", "/success"),
            ("timing_wall_ms", "/timing/wallMs"),
            ("tokens_input", "/tokens/input"),
            ("cost_total_usd", "/cost/totalUsd"),
            ("cost_input_usd", "/cost/inputUsd"),
            ("provider", "/provider"),
            ("agent_turns", "/agentTurns"),
            ("error", "/error"),
            ("position", "/position"),
            ("list", "/extensions/list"),
            ("nothing", "/extensions/nothing"),
            ("text", "/extensions/text"),
            ("twice", "/extensions/twice"),
        ] {
            let place = lines[0].split(',').position(|known| known == name).unwrap();
            assert_eq!(&cells[place], expected(path), "{name}");
        }
    }

    #[test]
    fn an_array_of_rows_is_json_with_and_without_rows() {
        let empty = JsonArrayWriter::new(Vec::new()).unwrap().finish().unwrap();
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&empty).unwrap(),
            serde_json::json!([])
        );
        let mut writer = JsonArrayWriter::new(Vec::new()).unwrap();
        writer.write(b"{}").unwrap();
        writer.write(b"{}").unwrap();
        let two = writer.finish().unwrap();
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&two).unwrap(),
            serde_json::json!([{}, {}])
        );
    }
}
