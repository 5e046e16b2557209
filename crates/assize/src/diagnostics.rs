//! The log of what the program is doing, for the question why. Off unless `-v`, `ASSIZE_LOG` or `output.log_level` asks for it.
//!
//! A run's log is `log.jsonl` in its directory, one JSON object per line, without secrets. Other commands log to stderr.

use crate::terminal::{say, warn};
use assize_contracts::Timestamp;
use assize_engine::store::RunFile;
use assize_secrets::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The environment variable that names a level.
const VARIABLE: &str = "ASSIZE_LOG";

/// Lines kept until the run has a directory.
const MOST_WAITING: usize = 10_000;

/// The amount that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Errors only.
    Error,
    /// Also what may be a mistake.
    Warn,
    /// Also programs that start and end, retries, restarts and repairs: `-v`.
    Info,
    /// Also requests, trials and commits: `-vv`.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    fn parse(word: &str) -> Option<Self> {
        Self::deserialize(Value::from(word.to_ascii_lowercase())).ok()
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::Off => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

static SINK: Mutex<Sink> = Mutex::new(Sink::Terminal);

/// Set where the command line or the environment names a level; a suite's level then gives way.
static LEVEL: OnceLock<LogLevel> = OnceLock::new();

/// The destination of lines.
enum Sink {
    Terminal,
    /// To the directory that the run will have.
    Waiting(Vec<Value>),
    File(File, Box<Redactor>),
}

/// Starts logging as the command line says, else the environment. `has_run` is whether the command makes a run.
pub(crate) fn start(verbosity: u8, has_run: bool) {
    if has_run {
        *sink() = Sink::Waiting(Vec::new());
    }
    let level = match verbosity {
        0 => from_environment(),
        1 => Some(LogLevel::Info),
        _ => Some(LogLevel::Debug),
    };
    if let Some(level) = level {
        let _ = LEVEL.set(level);
        subscribe(level);
    }
}

fn from_environment() -> Option<LogLevel> {
    let word = std::env::var(VARIABLE)
        .ok()
        .filter(|word| !word.is_empty())?;
    let level = LogLevel::parse(&word);
    if level.is_none() {
        warn(&format!(
            "{VARIABLE} is `{word}`, expected off, error, warn, info, debug or trace"
        ));
    }
    level
}

/// Starts logging as a suite says, unless the command line or the environment said otherwise.
pub(crate) fn start_for_suite(level: Option<LogLevel>) {
    if let Some(level) = level.filter(|_| LEVEL.get().is_none()) {
        subscribe(level);
    }
}

/// Nothing is subscribed while the level is off, so that log calls cost one comparison.
fn subscribe(level: LogLevel) {
    if level != LogLevel::Off {
        // Fails only where a program that embeds this one subscribed before: its subscriber stays.
        let _ = tracing::subscriber::set_global_default(Log(level.filter()));
    }
}

/// Writes the log into a run's directory from now on.
pub(crate) fn keep_in(directory: &Path, redactor: impl FnOnce() -> Redactor) {
    if LevelFilter::current() == LevelFilter::OFF {
        return;
    }
    let path = RunFile::Log.within(directory);
    let mut options = assize_secrets::private_file_options();
    match options.create(true).append(true).open(&path) {
        Ok(file) => {
            let new = Sink::File(file, Box::new(redactor()));
            let before = std::mem::replace(&mut *sink(), new);
            if let Sink::Waiting(lines) = before {
                lines.into_iter().for_each(write);
            }
        }
        Err(error) => warn(&format!("the log cannot be written: {error}")),
    }
}

/// Shows what was logged for a run that never had a directory.
pub(crate) fn finish() {
    let before = std::mem::replace(&mut *sink(), Sink::Terminal);
    if let Sink::Waiting(lines) = before {
        lines.into_iter().for_each(write);
    }
}

fn sink() -> std::sync::MutexGuard<'static, Sink> {
    SINK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(line: Value) {
    match &mut *sink() {
        Sink::Terminal => say(line.to_string()),
        Sink::Waiting(lines) if lines.len() < MOST_WAITING => lines.push(line),
        Sink::Waiting(_) => {}
        Sink::File(file, redactor) => {
            let mut bytes = without_secrets(line, redactor).to_string().into_bytes();
            bytes.push(b'\n');
            // A log that cannot be written must not end a run.
            let _ = file.write_all(&bytes);
        }
    }
}

/// A line without secrets. When, how bad and where are Assize's own words.
fn without_secrets(mut line: Value, redactor: &Redactor) -> Value {
    for (key, value) in line.as_object_mut().into_iter().flatten() {
        if !matches!(key.as_str(), "at" | "level" | "target") {
            redactor.clean_value(value);
        }
    }
    line
}

/// Turns the events of Assize's own crates into lines.
struct Log(LevelFilter);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.0 && metadata.target().starts_with("assize")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0)
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_millis() as i64);
        let mut fields = Fields(Map::new());
        let head = [
            ("at", Timestamp::from_unix_ms(now).to_string()),
            ("level", metadata.level().as_str().to_ascii_lowercase()),
            ("target", metadata.target().to_owned()),
        ];
        for (name, value) in head {
            fields.0.insert(name.to_owned(), value.into());
        }
        event.record(&mut fields);
        write(Value::Object(fields.0));
    }

    // Assize logs events only.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0
            .insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}
