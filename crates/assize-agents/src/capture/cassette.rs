//! Exchanges on a tape: recorded while they pass, or played back instead of asking anybody.
//!
//! A cassette is a file of JSON lines. Entries carry the session they were recorded in (scenario, mode, model,
//! repetition), so that parallel trials play back the same however they interleave: within a session the how many-eth
//! request of a form gets the how many-eth answer to it.

use super::CaptureError;
use super::encoding::Decoded;
use super::normal_form::{KEY, Known, fingerprint, normal_form};
use crate::lock;
use assize_secrets::{Redactor, private_file_options, without_credentials};
use bytes::Bytes;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A line longer than this is no exchange.
const LONGEST_LINE: u64 = 256 << 20;

/// More than this of one answer is not recorded.
const MOST_RECORDED: usize = 64 << 20;

/// Answers say more about themselves than this, but agents need no more to read them.
const KEPT_HEADERS: [&str; 3] = ["content-type", "content-encoding", "retry-after"];

/// The suite's settings of a cassette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CassetteSettings {
    pub file: PathBuf,
    /// Record or play back.
    pub mode: CassetteMode,
    /// True when a request without a recorded answer is refused, rather than passed on.
    pub strict: bool,
    /// The speed of played answers.
    pub timing: CassetteTiming,
}

/// The direction in which a cassette is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CassetteMode {
    /// Exchanges are written to it.
    Record,
    /// Answers come from it.
    #[default]
    Replay,
}

/// The speed of played answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CassetteTiming {
    /// No time.
    #[default]
    Fast,
    /// As long as they took.
    Original,
}

/// A cassette in use.
pub struct Cassette {
    settings: CassetteSettings,
    recording: u64,
    tape: Tape,
}

enum Tape {
    Recording(Mutex<File>),
    Playing(HashMap<String, Vec<Arc<Entry>>>),
}

/// A cassette as one session uses it.
pub(super) struct SessionTape {
    cassette: Arc<Cassette>,
    label: String,
    /// The agent's working directory: part of what it sends, and different every time.
    workspace: Option<String>,
    played: Mutex<HashMap<String, usize>>,
}

/// One exchange. A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    /// The form of the line.
    assize_cassette: u32,
    /// Distinguishes one recording into the same file from another.
    recording: u64,
    session: String,
    method: String,
    path: String,
    fingerprint: String,
    /// In its normal form, for people who wonder why something does not match.
    request: Value,
    pub(super) status: u16,
    pub(super) headers: HashMap<String, String>,
    body: Body,
    /// The arrival of each piece, in milliseconds since the request, and its length in bytes.
    chunks: Vec<(u64, usize)>,
    /// The upstream broke off here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cut: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Body {
    Text(String),
    /// Content that is no text, in hexadecimal.
    Hex {
        hex: String,
    },
}

/// An answer while it is recorded.
pub(super) struct Take {
    entry: Entry,
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl Cassette {
    /// Opens the file for recording, or reads it for playing.
    pub fn open(settings: CassetteSettings) -> Result<Self, CaptureError> {
        let failed = |message: String| CaptureError::Cassette {
            file: settings.file.clone(),
            message,
        };
        let tape = match settings.mode {
            CassetteMode::Record => {
                // A resumed run adds to the recordings it has; a repeated request replaces its earlier recording.
                let file = private_file_options()
                    .create(true)
                    .append(true)
                    .open(&settings.file)
                    .map_err(|error| failed(error.to_string()))?;
                Tape::Recording(Mutex::new(file))
            }
            CassetteMode::Replay => Tape::Playing(read(&settings.file).map_err(failed)?),
        };
        Ok(Self {
            settings,
            recording: assize_contracts::unix_ms_now().unsigned_abs(),
            tape,
        })
    }

    /// True when answers come from the cassette.
    pub fn is_playing(&self) -> bool {
        matches!(self.tape, Tape::Playing(_))
    }

    pub(super) fn is_strict(&self) -> bool {
        self.settings.strict
    }
}

/// Reads a cassette and everything on it, for fuzzing.
pub(crate) fn play_all(bytes: &[u8]) {
    for entry in read_from(bytes)
        .into_iter()
        .flat_map(HashMap::into_values)
        .flatten()
    {
        let length: usize = entry.pieces().iter().map(|(_, piece)| piece.len()).sum();
        assert_eq!(length, entry.body.bytes().len(), "pieces make up the body");
    }
}

fn read(path: &Path) -> Result<HashMap<String, Vec<Arc<Entry>>>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    read_from(BufReader::new(file))
}

fn read_from(mut lines: impl BufRead) -> Result<HashMap<String, Vec<Arc<Entry>>>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    for number in 1.. {
        let mut line = Vec::new();
        let mut limited = std::io::Read::take(&mut lines, LONGEST_LINE);
        let read = limited.read_until(b'\n', &mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let entry: Entry = serde_json::from_slice(&line)
            .map_err(|error| format!("line {number} is no recorded exchange: {error}"))?;
        if entry.assize_cassette != 1 {
            let found = entry.assize_cassette;
            return Err(format!("line {number} has version {found}, expected 1"));
        }
        entries.push(entry);
    }
    Ok(latest(entries))
}

/// The last recording of each session, by request.
fn latest(entries: Vec<Entry>) -> HashMap<String, Vec<Arc<Entry>>> {
    let mut last: HashMap<String, u64> = HashMap::new();
    for entry in &entries {
        let known = last.entry(entry.session.clone()).or_default();
        *known = entry.recording.max(*known);
    }
    let mut alike: HashMap<String, Vec<Arc<Entry>>> = HashMap::new();
    for entry in entries {
        if last[&entry.session] == entry.recording {
            let same = alike.entry(entry.fingerprint.clone()).or_default();
            same.push(Arc::new(entry));
        }
    }
    alike
}

impl SessionTape {
    pub(super) fn new(cassette: Arc<Cassette>, label: String, workspace: Option<String>) -> Self {
        Self {
            cassette,
            label,
            workspace,
            played: Mutex::default(),
        }
    }

    pub(super) fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    pub(super) fn is_playing(&self) -> bool {
        self.cassette.is_playing()
    }

    pub(super) fn is_strict(&self) -> bool {
        self.cassette.is_strict()
    }

    /// The recorded answer to a request. The session's own recording goes first; a session that was not recorded takes
    /// from the others.
    pub(super) fn answer(&self, request: &TapedRequest) -> Option<Arc<Entry>> {
        let Tape::Playing(entries) = &self.cassette.tape else {
            return None;
        };
        let alike = entries.get(&request.fingerprint)?;
        let is_own = |entry: &&Arc<Entry>| entry.session == self.label;
        let own: Vec<&Arc<Entry>> = alike.iter().filter(is_own).collect();
        let candidates = match own.is_empty() {
            true => alike.iter().collect(),
            false => own,
        };
        let mut played = lock(&self.played);
        let times = played.entry(request.fingerprint.clone()).or_default();
        let entry = candidates.get(*times).map(|entry| Arc::clone(entry));
        *times += 1;
        entry
    }

    /// Begins to record an answer.
    pub(super) fn take(
        &self,
        request: &TapedRequest,
        status: u16,
        headers: &HeaderMap,
    ) -> Option<Take> {
        if self.is_playing() {
            return None;
        }
        let kept = KEPT_HEADERS.iter().filter_map(|name| {
            let value = headers.get(*name)?.to_str().ok()?;
            Some(((*name).to_owned(), value.to_owned()))
        });
        Some(Take {
            entry: Entry {
                assize_cassette: 1,
                recording: self.cassette.recording,
                session: self.label.clone(),
                method: request.method.clone(),
                path: request.path.clone(),
                fingerprint: request.fingerprint.clone(),
                request: request.form.clone(),
                status,
                headers: kept.collect(),
                body: Body::Text(String::new()),
                chunks: Vec::new(),
                cut: false,
            },
            bytes: Vec::new(),
            is_too_long: false,
        })
    }

    /// Writes what was recorded, without secrets.
    pub(super) fn keep(
        &self,
        take: Take,
        is_cut: bool,
        redactor: &Redactor,
    ) -> std::io::Result<()> {
        let Tape::Recording(file) = &self.cassette.tape else {
            return Ok(());
        };
        if take.is_too_long {
            return Ok(());
        }
        let Take {
            mut entry, bytes, ..
        } = take;
        entry.body = Body::of(bytes);
        entry.cut = is_cut;
        entry.clean(redactor);
        let mut line = serde_json::to_string(&entry)?;
        line.push('\n');
        lock(file).write_all(line.as_bytes())
    }

    /// Waits until a piece of a recorded answer is due.
    pub(super) async fn wait_for(&self, due: Duration, elapsed: Duration) {
        if self.cassette.settings.timing == CassetteTiming::Original {
            tokio::time::sleep(due.saturating_sub(elapsed)).await;
        }
    }
}

/// A request as cassettes know it.
#[derive(Debug, Clone)]
pub(super) struct TapedRequest {
    method: String,
    path: String,
    form: Value,
    fingerprint: String,
}

impl TapedRequest {
    pub(super) fn new(method: &str, path: &str, body: &[u8], known: &Known<'_>) -> Self {
        let path = without_credentials(path);
        let form = normal_form(body, known);
        let fingerprint = fingerprint(method, &path, &form);
        Self {
            method: method.to_owned(),
            fingerprint: blake3::Hash::from(fingerprint).to_hex().to_string(),
            path,
            form,
        }
    }
}

impl Take {
    pub(super) fn push(&mut self, bytes: &Bytes, at: Duration) {
        if self.bytes.len() + bytes.len() > MOST_RECORDED {
            self.is_too_long = true;
            self.bytes = Vec::new();
        }
        if !self.is_too_long {
            self.bytes.extend_from_slice(bytes);
            self.entry.chunks.push((at.as_millis() as u64, bytes.len()));
        }
    }
}

impl Entry {
    /// Removes secrets from requests and answers. Content that is still compressed is stored uncompressed instead.
    fn clean(&mut self, redactor: &Redactor) {
        for text in [&mut self.path]
            .into_iter()
            .chain(self.headers.values_mut())
        {
            *text = redactor.text_with(text, KEY).into_owned();
        }
        redactor.clean_value_with(&mut self.request, KEY);
        if matches!(self.body, Body::Hex { .. })
            && let Some(decoded) = self.decoded()
        {
            self.headers.remove("content-encoding");
            self.chunks = self
                .chunks
                .last()
                .map(|(at, _)| (*at, decoded.len()))
                .into_iter()
                .collect();
            self.body = Body::Text(decoded);
        }
        if let Body::Text(text) = &mut self.body {
            *text = redactor.text_with(text, KEY).into_owned();
        }
    }

    fn decoded(&self) -> Option<String> {
        let encoding = self.headers.get("content-encoding")?;
        let mut decoded = Decoded::new(Some(encoding), Vec::new());
        decoded.take(&self.body.bytes());
        let (bytes, error) = decoded.finish();
        String::from_utf8(bytes.filter(|_| error.is_none())?).ok()
    }

    /// The pieces of the answer and when each is due.
    pub(super) fn pieces(&self) -> Vec<(Duration, Bytes)> {
        let mut bytes = self.body.bytes();
        let mut pieces: Vec<(Duration, Bytes)> = self
            .chunks
            .iter()
            .map(|(at, length)| {
                let piece = bytes.split_to((*length).min(bytes.len()));
                (Duration::from_millis(*at), piece)
            })
            .collect();
        // The text may have been edited without counting.
        if !bytes.is_empty() {
            let at = pieces.last().map_or(Duration::ZERO, |(at, _)| *at);
            pieces.push((at, bytes));
        }
        pieces
    }
}

impl Body {
    fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(
            |error| {
                let bytes = error.into_bytes();
                let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
                Self::Hex { hex: hex.collect() }
            },
            Self::Text,
        )
    }

    fn bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            Self::Hex { hex } => {
                let digits =
                    |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
                hex.as_bytes().chunks(2).filter_map(digits).collect()
            }
        }
    }
}
