//! CSV: which column goes where in a task.

use crate::suite::file::{ColumnKind, ColumnSpec, TypedColumn};
use assize_contracts::JsonMap;
use csv::StringRecord;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of a task.
const FIELDS: [&str; 8] = [
    "id",
    "name",
    "type",
    "input",
    "expected",
    "context",
    "metadata",
    "extensions",
];

/// The fields that columns go to.
pub(super) struct Columns {
    pub(super) delimiter: u8,
    fields: Vec<Field>,
}

struct Field {
    path: Vec<String>,
    column: usize,
    kind: ColumnKind,
}

impl Columns {
    /// As the mapping says; without one, columns are named for their place in a task.
    pub(super) fn new(
        header: &StringRecord,
        mapping: &BTreeMap<String, ColumnSpec>,
        delimiter: u8,
    ) -> Result<Self, String> {
        let as_named = || {
            let column = |name: &str| (name.to_owned(), ColumnSpec::Name(name.to_owned()));
            header.iter().map(column).collect()
        };
        let mapping = match mapping.is_empty() {
            true => &as_named(),
            false => mapping,
        };
        let fields = mapping
            .iter()
            .map(|(target, spec)| field(header, target, spec));
        Ok(Self {
            delimiter,
            fields: fields.collect::<Result<_, _>>()?,
        })
    }

    /// The task in a record. Empty cells are left out.
    pub(super) fn object(&self, record: &StringRecord) -> Result<Value, String> {
        let mut task = JsonMap::new();
        for field in &self.fields {
            let text = record.get(field.column).unwrap_or_default();
            if text.is_empty() {
                continue;
            }
            let value = field.read(text)?;
            put(&mut task, &field.path, value)
                .ok_or_else(|| format!("two columns go to `{}`", field.path.join(".")))?;
        }
        Ok(Value::Object(task))
    }
}

fn field(header: &StringRecord, target: &str, spec: &ColumnSpec) -> Result<Field, String> {
    let path: Vec<String> = target.split('.').map(str::to_owned).collect();
    if !FIELDS.contains(&&*path[0]) || path.iter().any(String::is_empty) {
        return Err(format!(
            "found `{target}`, expected a place in a task such as `id` or `input.text` (a `mapping` says which column goes where)"
        ));
    }
    let usual = match target {
        "metadata.priority" | "metadata.timeout" => ColumnKind::Number,
        "metadata.tags" => ColumnKind::List,
        _ => ColumnKind::Text,
    };
    let (name, kind) = match spec {
        ColumnSpec::Name(name) => (name, usual),
        ColumnSpec::Typed(TypedColumn { column, kind }) => (column, *kind),
    };
    let column = header.iter().position(|known| known == name);
    Ok(Field {
        column: column.ok_or_else(|| format!("there is no column `{name}` for `{target}`"))?,
        path,
        kind,
    })
}

impl Field {
    fn read(&self, text: &str) -> Result<Value, String> {
        let wrong =
            |what: &str| format!("`{}`: found `{text}`, expected {what}", self.path.join("."));
        match self.kind {
            ColumnKind::Text => Ok(text.into()),
            ColumnKind::List => Ok(text.split(',').map(|part| part.trim()).collect()),
            ColumnKind::Boolean => match text.trim() {
                "true" => Ok(true.into()),
                "false" => Ok(false.into()),
                _ => Err(wrong("`true` or `false`")),
            },
            ColumnKind::Number => {
                let number: Value =
                    serde_json::from_str(text.trim()).map_err(|_| wrong("a number"))?;
                number
                    .is_number()
                    .then_some(number)
                    .ok_or_else(|| wrong("a number"))
            }
            ColumnKind::Json => serde_json::from_str(text).map_err(|_| wrong("JSON")),
        }
    }
}

fn put(map: &mut JsonMap, path: &[String], value: Value) -> Option<()> {
    let (name, rest) = path.split_first()?;
    if rest.is_empty() {
        return map.insert(name.clone(), value).is_none().then_some(());
    }
    let inner = map
        .entry(name.clone())
        .or_insert_with(|| Value::Object(JsonMap::new()));
    put(inner.as_object_mut()?, rest, value)
}

/// One record out of its bytes.
pub(super) fn parse_record(bytes: &[u8], delimiter: u8) -> Result<StringRecord, csv::Error> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(bytes);
    let mut record = StringRecord::new();
    reader.read_record(&mut record)?;
    Ok(record)
}
