//! Digests of logs that were read before, so that the next call reads only what is new. It holds no text of any session.

use crate::database::beside;
use crate::digest::Digest;
use crate::draft::{Identity, identity};
use crate::formats::{FORMATS, LogFormat, has_ending};
use foldhash::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Raised when readers find something else in the same log.
const VERSION: u32 = 5;

const MAGIC: &[u8; 8] = b"assizeSI";

/// The results of reading logs, by file.
#[derive(Default)]
pub struct Index {
    path: Option<PathBuf>,
    /// Relative paths begin here.
    here: PathBuf,
    bytes: Vec<u8>,
    /// Records by the numbers of their paths.
    records: HashMap<Identity, Record>,
    /// Encoded records that are not in the file yet.
    fresh: Vec<(PathBuf, Entry)>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} files in {:?}", self.records.len(), self.path)
    }
}

/// What is known of a file, and where it stands in the index.
pub(crate) struct Record {
    pub(crate) format: &'static dyn LogFormat,
    pub(crate) stamp: Stamp,
    path: Range<usize>,
    digests: Range<usize>,
    sum: u64,
}

struct Entry {
    agent: &'static str,
    stamp: Stamp,
    digests: Vec<u8>,
}

/// By what a changed file is recognized.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stamp {
    file: Look,
    /// The same of what is read with it: a database's write-ahead log, the messages of a session.
    log: Option<Look>,
}

/// What a file system says about a file, times in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Look {
    size: u64,
    modified: u64,
    created: u64,
    /// The last change of the file or of what is said about it, which no program can set back. 0 where systems have no such time.
    touched: u64,
    number: u64,
}

impl Stamp {
    /// Looks at a file, whatever log it may be.
    pub fn of(path: &Path) -> Self {
        let formats = FORMATS.iter().filter(|format| format.is_log_name(path));
        Self::with(path, formats.copied())
    }

    /// Looks at a log of a known form.
    pub(crate) fn of_log(path: &Path, format: &'static dyn LogFormat) -> Self {
        Self::with(path, std::iter::once(format))
    }

    fn with(path: &Path, formats: impl Iterator<Item = &'static dyn LogFormat>) -> Self {
        let is_database = has_ending(path, "db") || has_ending(path, "sqlite");
        let beside = match is_database {
            true => vec![beside(path, "-wal")],
            false => formats
                .flat_map(|format| format.attachments(path))
                .collect(),
        };
        let seen = beside.iter().filter_map(|path| Look::at(path));
        Self {
            file: Look::at(path).unwrap_or_default(),
            log: seen.reduce(Look::and),
        }
    }

    /// When the file, or what is read with it, was changed last, in milliseconds since 1970.
    pub fn changed_ms(&self) -> i64 {
        let of_log = self.log.map_or(0, |log| log.modified);
        (self.file.modified.max(of_log) / 1_000_000) as i64
    }

    pub(crate) fn created(&self) -> u64 {
        self.file.created
    }
}

impl Look {
    fn at(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let nanoseconds = |time: std::io::Result<SystemTime>| {
            let since_1970 = time.ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some(since_1970.as_nanos() as u64)
        };
        let (touched, number) = beyond_reach(&metadata);
        Some(Self {
            size: metadata.len(),
            modified: nanoseconds(metadata.modified())?,
            created: nanoseconds(metadata.created()).unwrap_or(0),
            touched,
            number,
        })
    }

    /// Several files together.
    fn and(self, other: Self) -> Self {
        Self {
            size: self.size.saturating_add(other.size),
            modified: self.modified.max(other.modified),
            created: self.created.max(other.created),
            touched: self.touched.max(other.touched),
            number: self.number.wrapping_add(other.number),
        }
    }
}

/// The time of the last change and the number of a file. Programs that replace a file may give it the old size and time, but not these.
#[cfg(unix)]
fn beyond_reach(metadata: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    let nanoseconds = u64::try_from(metadata.ctime_nsec()).unwrap_or(0);
    let touched = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds);
    (touched, metadata.ino())
}

#[cfg(not(unix))]
fn beyond_reach(_: &std::fs::Metadata) -> (u64, u64) {
    (0, 0)
}

/// The head of a record in the file.
#[derive(Serialize, Deserialize)]
struct Heading<'a> {
    path: &'a str,
    agent: &'a str,
    stamp: Stamp,
    length: usize,
    /// Of the digests, so that damage is noticed.
    sum: u64,
}

fn sum_of(digests: &[u8]) -> u64 {
    identity(&[b"digests", digests])
}

fn number_of(path: &str) -> Identity {
    identity(&[b"path", path.as_bytes()])
}

impl Index {
    /// An index that is not stored.
    pub fn none() -> Self {
        Self::default()
    }

    /// The index in a file. One that is damaged or of another version is as good as none.
    pub fn open(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_default();
        Self {
            path: Some(path.to_owned()),
            here: std::env::current_dir().unwrap_or_default(),
            records: records(&bytes).unwrap_or_default(),
            bytes,
            fresh: Vec::new(),
        }
    }

    /// The same path from everywhere.
    fn absolute<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        match path.is_absolute() {
            true => Cow::Borrowed(path),
            false => Cow::Owned(self.here.join(path)),
        }
    }

    pub(crate) fn find(&self, path: &Path) -> Option<&Record> {
        if self.records.is_empty() {
            return None;
        }
        let path = self.absolute(path);
        let path = path.to_str()?;
        let record = self.records.get(&number_of(path))?;
        (self.bytes[record.path.clone()] == *path.as_bytes()).then_some(record)
    }

    /// The content of a record. Absent where it is damaged.
    pub(crate) fn digests(&self, record: &Record) -> Option<Vec<Digest>> {
        let bytes = &self.bytes[record.digests.clone()];
        (sum_of(bytes) == record.sum)
            .then(|| postcard::from_bytes(bytes).ok())
            .flatten()
    }

    pub(crate) fn keep(
        &mut self,
        path: &Path,
        agent: &'static str,
        stamp: Stamp,
        digests: &[Digest],
    ) {
        let path = self.absolute(path);
        if self.path.is_none() || path.to_str().is_none() {
            return;
        }
        if let Ok(digests) = postcard::to_stdvec(digests) {
            let entry = Entry {
                agent,
                stamp,
                digests,
            };
            self.fresh.push((path.into_owned(), entry));
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
        let mut fresh: HashSet<Identity> = HashSet::default();
        for (path, entry) in &self.fresh {
            let path = path.to_str().unwrap_or_default();
            fresh.insert(number_of(path));
            write_record(&mut writer, path, entry.agent, &entry.stamp, &entry.digests)?;
        }
        for (number, record) in &self.records {
            let path = std::str::from_utf8(&self.bytes[record.path.clone()]).unwrap_or_default();
            let is_damaged = sum_of(&self.bytes[record.digests.clone()]) != record.sum;
            if !fresh.contains(number) && !is_damaged && Path::new(path).exists() {
                let digests = &self.bytes[record.digests.clone()];
                let agent = record.format.agent();
                write_record(&mut writer, path, agent, &record.stamp, digests)?;
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
    path: &str,
    agent: &str,
    stamp: &Stamp,
    digests: &[u8],
) -> std::io::Result<()> {
    let heading = Heading {
        path,
        agent,
        stamp: stamp.clone(),
        length: digests.len(),
        sum: sum_of(digests),
    };
    let heading = postcard::to_stdvec(&heading).map_err(std::io::Error::other)?;
    writer.write_all(&(heading.len() as u32).to_le_bytes())?;
    writer.write_all(&heading)?;
    writer.write_all(digests)
}

/// The place of every record. `None` if the bytes end too early.
fn records(bytes: &[u8]) -> Option<HashMap<Identity, Record>> {
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
        // The path is a part of the bytes.
        let path = heading.path.as_ptr().addr() - bytes.as_ptr().addr();
        let mut formats = FORMATS.iter();
        if let Some(&format) = formats.find(|format| format.agent() == heading.agent) {
            let record = Record {
                format,
                stamp: heading.stamp,
                path: path..path + heading.path.len(),
                digests: begin..end,
                sum: heading.sum,
            };
            records.insert(number_of(heading.path), record);
        }
        at = end;
    }
    Some(records)
}
