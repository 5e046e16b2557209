//! Digests of logs that were read before, so that the next call reads only what is new. It holds no text of any session.

use crate::database::beside;
use crate::digest::Digest;
use crate::formats::FORMATS;
use foldhash::HashMap;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Raised when readers find something else in the same log.
const VERSION: u32 = 3;

const MAGIC: &[u8; 8] = b"assizeSI";

/// The results of reading logs, by file.
#[derive(Debug, Default)]
pub struct Index {
    path: Option<PathBuf>,
    bytes: Vec<u8>,
    /// Where the record of a file stands.
    records: HashMap<String, Record>,
    /// Encoded records that are not in the file yet.
    fresh: Vec<(PathBuf, Entry)>,
}

#[derive(Debug, Clone)]
struct Record {
    stamp: Stamp,
    agent: String,
    begin: usize,
    length: usize,
}

#[derive(Debug)]
struct Entry {
    stamp: Stamp,
    agent: String,
    digests: Vec<u8>,
}

/// By what a changed file is recognized.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stamp {
    size: u64,
    modified: u64,
    created: u64,
    /// The same of what is read with it: a database's write-ahead log, the messages of a session.
    log: Option<(u64, u64)>,
}

impl Stamp {
    /// Looks at a file.
    pub fn of(path: &Path) -> Self {
        let (size, modified, created) = look(path).unwrap_or_default();
        let is_database = path
            .extension()
            .is_some_and(|extension| extension == "db" || extension == "sqlite");
        let beside = match is_database {
            true => vec![beside(path, "-wal")],
            false => FORMATS
                .iter()
                .filter(|format| format.is_log_name(path))
                .flat_map(|format| format.attachments(path))
                .collect(),
        };
        let seen = beside.iter().filter_map(|path| look(path));
        let log = seen
            .map(|(size, modified, _)| (size, modified))
            .reduce(|all, one| (all.0.saturating_add(one.0), all.1.max(one.1)));
        Self {
            size,
            modified,
            created,
            log,
        }
    }

    /// When the file, or what is read with it, was changed last, in milliseconds since 1970.
    pub fn changed_ms(&self) -> i64 {
        let of_log = self.log.map_or(0, |(_, modified)| modified);
        (self.modified.max(of_log) / 1_000_000) as i64
    }

    pub(crate) fn created(&self) -> u64 {
        self.created
    }
}

/// Size, time of change and time of creation, in nanoseconds since 1970.
fn look(path: &Path) -> Option<(u64, u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    let nanoseconds = |time: std::io::Result<SystemTime>| {
        let since_1970 = time.ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(since_1970.as_nanos() as u64)
    };
    let created = nanoseconds(metadata.created()).unwrap_or(0);
    Some((metadata.len(), nanoseconds(metadata.modified())?, created))
}

/// The head of a record in the file.
#[derive(Serialize, Deserialize)]
struct Heading<'a> {
    path: &'a str,
    agent: &'a str,
    stamp: Stamp,
    length: usize,
}

impl Index {
    /// An index that is not stored.
    pub fn none() -> Self {
        Self::default()
    }

    /// The index in a file. One that is damaged or of another version is as good as none.
    pub fn open(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_default();
        let mut index = Self {
            path: Some(path.to_owned()),
            ..Self::default()
        };
        index.records = headings(&bytes).unwrap_or_default();
        index.bytes = bytes;
        index
    }

    pub(crate) fn find(&self, path: &Path, stamp: &Stamp) -> Option<(&str, Vec<Digest>)> {
        let record = self
            .records
            .get(path.to_str()?)
            .filter(|record| record.stamp == *stamp)?;
        let bytes = self
            .bytes
            .get(record.begin..record.begin.checked_add(record.length)?)?;
        let digests = postcard::from_bytes(bytes).ok()?;
        Some((&record.agent, digests))
    }

    pub(crate) fn keep(&mut self, path: &Path, agent: &str, stamp: Stamp, digests: &[Digest]) {
        if self.path.is_none() || path.to_str().is_none() {
            return;
        }
        if let Ok(digests) = postcard::to_stdvec(digests) {
            let entry = Entry {
                stamp,
                agent: agent.to_owned(),
                digests,
            };
            self.fresh.push((path.to_owned(), entry));
        }
    }

    /// Writes what is new. Records of files that are gone are left behind.
    pub fn save(&mut self) -> std::io::Result<()> {
        let Some(path) = self.path.clone() else {
            return Ok(());
        };
        if self.fresh.is_empty() {
            return Ok(());
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        // A temporary file is for its user alone, and so is what it becomes.
        let file = tempfile::NamedTempFile::new_in(directory)?;
        let mut writer = std::io::BufWriter::new(file);
        writer.write_all(MAGIC)?;
        writer.write_all(&VERSION.to_le_bytes())?;
        for (path, entry) in &self.fresh {
            write_record(
                &mut writer,
                path,
                &entry.agent,
                &entry.stamp,
                &entry.digests,
            )?;
        }
        let fresh: std::collections::HashSet<&Path> =
            self.fresh.iter().map(|(path, _)| path.as_path()).collect();
        for (path, record) in &self.records {
            let path = Path::new(path);
            if !fresh.contains(path) && path.exists() {
                let digests = &self.bytes[record.begin..record.begin + record.length];
                write_record(&mut writer, path, &record.agent, &record.stamp, digests)?;
            }
        }
        let file = writer
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        file.persist(path)?;
        self.fresh.clear();
        Ok(())
    }
}

fn write_record(
    writer: &mut impl Write,
    path: &Path,
    agent: &str,
    stamp: &Stamp,
    digests: &[u8],
) -> std::io::Result<()> {
    let heading = Heading {
        path: path.to_str().unwrap_or_default(),
        agent,
        stamp: stamp.clone(),
        length: digests.len(),
    };
    let heading = postcard::to_stdvec(&heading).map_err(std::io::Error::other)?;
    writer.write_all(&(heading.len() as u32).to_le_bytes())?;
    writer.write_all(&heading)?;
    writer.write_all(digests)
}

/// Where every record stands. Nothing if the bytes end too early.
fn headings(bytes: &[u8]) -> Option<HashMap<String, Record>> {
    let rest = bytes
        .strip_prefix(MAGIC)?
        .strip_prefix(&VERSION.to_le_bytes())?;
    let mut at = bytes.len() - rest.len();
    let mut records = HashMap::default();
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        let begin = at + 4;
        let heading: Heading<'_> =
            postcard::from_bytes(bytes.get(begin..begin.checked_add(length)?)?).ok()?;
        let begin = begin + length;
        let end = begin
            .checked_add(heading.length)
            .filter(|end| *end <= bytes.len())?;
        let record = Record {
            stamp: heading.stamp,
            agent: heading.agent.to_owned(),
            begin,
            length: heading.length,
        };
        records.insert(heading.path.to_owned(), record);
        at = end;
    }
    Some(records)
}
