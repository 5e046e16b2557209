//! Tasks from files: documents with a few, JSONL and CSV with as many as there are.
//!
//! Files are read once to check every task and to note where it lies; the task itself is read again when its trial
//! begins. A million tasks are a million offsets.

mod columns;
mod form;
mod intake;

use super::document::Document;
use super::file::TasksSpec;
use super::file_error::{FileError, Place};
use super::selection::TaskSelection;
use assize_contracts::{BoxError, ConfigError, Task};
use assize_engine::TaskSource;
use columns::{Columns, parse_record};
use form::Form;
use intake::Intake;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longer lines are no tasks.
const LONGEST_LINE: u64 = 16 << 20;

/// The request for tasks from files.
pub(super) struct Reading<'a> {
    pub(super) spec: &'a TasksSpec,
    pub(super) chosen: &'a TaskSelection,
    /// Ids that scenarios have.
    pub(super) taken: Vec<&'a str>,
    /// The seed of samples that name none.
    pub(super) seed: u64,
    /// The type of tasks that name none.
    pub(super) only_type: Option<&'a str>,
}

/// The chosen tasks of all files.
pub(super) struct DataSet {
    files: Vec<DataFile>,
    entries: Vec<Entry>,
    /// One per entry, or none when all are alike.
    priorities: Vec<i64>,
    hash: String,
    form: Form,
}

/// The position of a task.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// In bytes; the number of the task in a document.
    offset: u64,
    length: u32,
    file: u32,
}

enum DataFile {
    Document(Vec<Arc<Task>>),
    Lines(PathBuf, File),
    Csv(PathBuf, File, Columns),
}

/// Reads a file of tasks, then every task again from its place, for `fuzzing`.
pub(crate) fn read_every_task(path: &Path) -> Result<(), Vec<FileError>> {
    let reading = Reading {
        spec: &TasksSpec::default(),
        chosen: &TaskSelection::default(),
        taken: Vec::new(),
        seed: 1,
        only_type: Some("any"),
    };
    let set = DataSet::read(&[path.to_owned()], &reading, |_| Vec::new())?;
    for number in 0..set.len() {
        // The file may be read again only as it was when it was checked.
        let _ = set.load(number);
    }
    Ok(())
}

impl DataSet {
    /// Reads and checks all tasks. `examine` looks at each one that is chosen.
    pub(super) fn read(
        paths: &[PathBuf],
        reading: &Reading<'_>,
        examine: impl Fn(&Task) -> Vec<ConfigError>,
    ) -> Result<Self, Vec<FileError>> {
        let form = Form::new(reading);
        let mut intake = Intake::new(reading, &examine);
        let mut files = Vec::new();
        for path in paths {
            let number = files.len() as u32;
            let extension = path.extension().and_then(|extension| extension.to_str());
            let read = match extension {
                Some("jsonl" | "ndjson") => read_lines(path, number, &form, &mut intake),
                Some("csv") => read_csv(path, number, b',', reading, &form, &mut intake),
                Some("tsv") => read_csv(path, number, b'\t', reading, &form, &mut intake),
                _ => read_document(path, number, &form, &mut intake),
            };
            match read {
                Ok(file) => files.push(file),
                Err(error) => intake.errors.push(error),
            }
        }
        let taken = intake.finish();
        let mut set = Self {
            files,
            entries: taken.entries,
            priorities: taken.priorities,
            hash: taken.hash,
            form,
        };
        let mut errors = taken.errors;
        if errors.is_empty() {
            errors.extend(taken.twins.iter().flat_map(|twin| set.explain_twin(*twin)));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if taken.is_sampled {
            set.hash = set.hash_again().map_err(|error| vec![error])?;
        }
        Ok(set)
    }

    pub(super) fn count(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    fn task(&self, entry: &Entry) -> Result<Arc<Task>, BoxError> {
        match &self.files[entry.file as usize] {
            DataFile::Document(tasks) => Ok(Arc::clone(&tasks[entry.offset as usize])),
            DataFile::Lines(path, file) => {
                let bytes = read_again(file, entry)?;
                let task = self.form.parse(&bytes, path);
                task.map(Arc::new).map_err(|found| found.message.into())
            }
            DataFile::Csv(path, file, columns) => {
                let bytes = read_again(file, entry)?;
                let record = parse_record(&bytes, columns.delimiter)?;
                let task = self.form.of_value(columns.object(&record)?, path);
                task.map(Arc::new).map_err(|found| found.message.into())
            }
        }
    }

    fn path(&self, file: u32) -> Option<&Path> {
        match &self.files[file as usize] {
            DataFile::Document(_) => None,
            DataFile::Lines(path, _) | DataFile::Csv(path, ..) => Some(path),
        }
    }

    /// Explains which tasks have an id whose hash came twice.
    fn explain_twin(&self, hash: u64) -> Vec<FileError> {
        let mut first: Option<String> = None;
        let mut errors = Vec::new();
        for entry in &self.entries {
            let Ok(task) = self.task(entry) else { continue };
            if intake::hash_of(task.id()) != hash {
                continue;
            }
            if first.as_deref() == Some(task.id()) {
                let message = format!("the task id `{}` is given twice", task.id());
                let path = self.path(entry.file).unwrap_or(Path::new("tasks"));
                errors.push(FileError::new(path, message).at(self.place_of(entry)));
            }
            first.get_or_insert_with(|| task.id().to_owned());
        }
        errors
    }

    /// The line of an entry, for those who must look at it.
    fn place_of(&self, entry: &Entry) -> Option<Place> {
        let file = File::open(self.path(entry.file)?).ok()?;
        let mut before = BufReader::new(file).take(entry.offset);
        let mut line = 1;
        loop {
            let buffer = before.fill_buf().ok()?;
            if buffer.is_empty() {
                return Some(Place { line, column: 1 });
            }
            line += buffer.iter().filter(|byte| **byte == b'\n').count() as u64;
            let length = buffer.len();
            before.consume(length);
        }
    }

    fn hash_again(&self) -> Result<String, FileError> {
        let mut hasher = blake3::Hasher::new();
        for entry in &self.entries {
            let task = self.task(entry).map_err(|error| {
                let path = self.path(entry.file).unwrap_or(Path::new("tasks"));
                FileError::new(path, format!("cannot be read again: {error}"))
            })?;
            intake::hash_task(&mut hasher, &task);
        }
        Ok(intake::hex(&hasher))
    }
}

impl TaskSource for DataSet {
    fn len(&self) -> u32 {
        self.count()
    }

    fn load(&self, number: u32) -> Result<Arc<Task>, BoxError> {
        match self.entries.get(number as usize) {
            Some(entry) => self.task(entry),
            None => Err("there is no such task".into()),
        }
    }

    fn priorities(&self) -> &[i64] {
        &self.priorities
    }
}

fn read_again(file: &File, entry: &Entry) -> Result<Vec<u8>, BoxError> {
    let mut bytes = vec![0; entry.length as usize];
    file.read_exact_at(&mut bytes, entry.offset)?;
    Ok(bytes)
}

/// One task, a list of tasks, or a list under the key `tasks`.
fn read_document(
    path: &Path,
    number: u32,
    form: &Form,
    intake: &mut Intake<'_>,
) -> Result<DataFile, FileError> {
    let document = Document::read(path).map_err(|error| match error.hint {
        Some(_) => error.hint("many tasks belong into a file of lines, `.jsonl` or `.csv`"),
        None => error,
    })?;
    let value = document.value().clone();
    let (items, outer): (Vec<_>, Vec<&str>) = match value {
        serde_json::Value::Array(items) => (items, vec![]),
        serde_json::Value::Object(mut map) if map.get("tasks").is_some_and(|v| v.is_array()) => {
            if let Some(other) = map.keys().find(|key| *key != "tasks") {
                let message = format!("found `{other}` beside the list `tasks`");
                return Err(document.error(&[other], message));
            }
            match map.remove("tasks") {
                Some(serde_json::Value::Array(items)) => (items, vec!["tasks"]),
                _ => (Vec::new(), vec![]),
            }
        }
        single => (vec![single], vec![]),
    };
    let is_list = document.value().is_array() || !outer.is_empty();
    let mut tasks = Vec::with_capacity(items.len());
    for (place, item) in items.into_iter().enumerate() {
        let keys = |path: &[String]| {
            let outer = outer.iter().map(|key| (*key).to_owned());
            let number = is_list.then(|| place.to_string());
            let keys = outer.chain(number).chain(path.iter().cloned());
            keys.collect::<Vec<String>>()
        };
        let in_file = |found: ConfigError| {
            let keys = keys(&found.path);
            let error = document.explain(&keys, &found.message, &[]);
            error.with_hint(found.hint)
        };
        match form.of_value(item, path) {
            Ok(task) => {
                let entry = Entry {
                    offset: tasks.len() as u64,
                    length: 0,
                    file: number,
                };
                intake.offer(&task, entry, in_file);
                tasks.push(Arc::new(task));
            }
            Err(found) => {
                let found = in_file(found);
                intake.errors.push(found);
            }
        }
    }
    Ok(DataFile::Document(tasks))
}

/// One task per line.
fn read_lines(
    path: &Path,
    number: u32,
    form: &Form,
    intake: &mut Intake<'_>,
) -> Result<DataFile, FileError> {
    let unreadable =
        |error: std::io::Error| FileError::new(path, format!("cannot be read: {error}"));
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(unreadable)?);
    let (mut offset, mut line_number) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = (&mut reader).take(LONGEST_LINE + 1);
        let length = limited.read_until(b'\n', &mut line).map_err(unreadable)? as u64;
        if length == 0 || intake.is_full() {
            break;
        }
        line_number += 1;
        let place = Some(Place {
            line: line_number,
            column: 1,
        });
        if length > LONGEST_LINE {
            let message = format!("the line is longer than {LONGEST_LINE} bytes");
            return Err(FileError::new(path, message).at(place));
        }
        let start = offset;
        offset += length;
        let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if text.trim_ascii().is_empty() {
            continue;
        }
        let entry = Entry {
            offset: start + (line.len() - text.len()) as u64,
            length: text.len() as u32,
            file: number,
        };
        let in_file = |found: ConfigError| FileError::in_task(path, place, found);
        match form.parse(text, path) {
            Ok(task) => intake.offer(&task, entry, in_file),
            Err(found) => intake.errors.push(in_file(found)),
        }
    }
    let file = File::open(path).map_err(unreadable)?;
    Ok(DataFile::Lines(path.to_owned(), file))
}

/// One task per record, its fields in columns.
fn read_csv(
    path: &Path,
    number: u32,
    delimiter: u8,
    reading: &Reading<'_>,
    form: &Form,
    intake: &mut Intake<'_>,
) -> Result<DataFile, FileError> {
    let unreadable =
        |error: std::io::Error| FileError::new(path, format!("cannot be read: {error}"));
    let wrong = |error: csv::Error| {
        let place = error.position().map(|position| Place {
            line: position.line(),
            column: 1,
        });
        FileError::new(path, error.to_string()).at(place)
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .from_reader(File::open(path).map_err(unreadable)?);
    let header = reader.headers().map_err(wrong)?.clone();
    let columns = Columns::new(&header, &reading.spec.mapping, delimiter).map_err(|message| {
        let known: Vec<&str> = header.iter().collect();
        let hint = format!("its columns are {}", super::file_error::listed(&known));
        FileError::new(path, message).hint(hint)
    })?;
    let mut record = csv::StringRecord::new();
    loop {
        let position = reader.position().clone();
        if intake.is_full() || !reader.read_record(&mut record).map_err(wrong)? {
            break;
        }
        let start = record.position().unwrap_or(&position).clone();
        let place = Some(Place {
            line: start.line(),
            column: 1,
        });
        let entry = Entry {
            offset: start.byte(),
            length: (reader.position().byte() - start.byte()) as u32,
            file: number,
        };
        let in_file = |found: ConfigError| FileError::in_task(path, place, found);
        let object = columns
            .object(&record)
            .map_err(|message| ConfigError::at([""; 0], message));
        match object.and_then(|object| form.of_value(object, path)) {
            Ok(task) => intake.offer(&task, entry, in_file),
            Err(found) => intake.errors.push(in_file(found)),
        }
    }
    let file = File::open(path).map_err(unreadable)?;
    Ok(DataFile::Csv(path.to_owned(), file, columns))
}

#[cfg(test)]
mod tests;
