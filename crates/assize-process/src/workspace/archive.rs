//! Changes on disk: a `.tar.zst` that any tar opens. `changes.json` says what happened to which path, `files/` holds
//! what is new or different. Bringing it back is in `restore.rs`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, EntryType, Header};

use super::look::open;
use super::snapshot::{Change, ChangeKind, Node};
use crate::error::{Error, Result};

pub(super) const INDEX: &str = "changes.json";
pub(super) const FILES: &str = "files";

/// An index larger than this is not one of ours.
pub(super) const LONGEST_INDEX: u64 = 1 << 30;

/// The largest amounts that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A larger file is left out.
    pub file: u64,
    /// Once the files together would exceed this, further ones are left out.
    pub total: u64,
    /// Paths beyond this are left out.
    pub paths: usize,
}

impl Default for Limits {
    /// 16 megabytes a file, 256 in all, of at most 100,000 paths.
    fn default() -> Self {
        Self {
            file: 16 << 20,
            total: 256 << 20,
            paths: 100_000,
        }
    }
}

/// Removes from the content or the name of a file what must not be stored.
pub type Clean<'a> = &'a dyn Fn(Vec<u8>) -> Vec<u8>;

/// The content of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes in stored files, before compression.
    pub bytes: u64,
    /// Changed files whose content is not in the archive: beyond the limits, or unreadable.
    pub left_out: Vec<PathBuf>,
}

/// The content of `changes.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct Index {
    changes: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    path: String,
    /// The exact bytes of a path that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<Vec<u8>>,
    kind: ChangeKind,
    node: Node,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// True when `files/` has it.
    is_stored: bool,
}

/// Writes the changes of `directory` to `archive`, by way of a neighbouring file so that a torn one never has its name.
pub fn store(
    directory: &Path,
    changes: &[Change],
    archive: &Path,
    limits: Limits,
) -> Result<Stored> {
    store_clean(directory, changes, archive, (limits, &|content| content))
}

/// The same with `clean` applied to the content and the path of every file.
pub fn store_clean(
    directory: &Path,
    changes: &[Change],
    archive: &Path,
    (limits, clean): (Limits, Clean<'_>),
) -> Result<Stored> {
    let unfinished = archive.with_extension("unfinished");
    let stored = write(directory, changes, &unfinished, (limits, clean))
        .map_err(Error::file("write", archive))?;
    fs::rename(&unfinished, archive).map_err(Error::file("write", archive))?;
    Ok(stored)
}

fn write(
    directory: &Path,
    changes: &[Change],
    archive: &Path,
    (limits, clean): (Limits, Clean<'_>),
) -> io::Result<Stored> {
    let chosen = Chosen::new(directory, changes, (limits, clean));
    let encoder = zstd::Encoder::new(BufWriter::new(private(archive)?), 3)?;
    let mut tar = Builder::new(encoder);
    let index = serde_json::to_vec_pretty(&chosen.index)?;
    tar.append_data(
        &mut header(EntryType::Regular, index.len() as u64),
        INDEX,
        index.as_slice(),
    )?;
    for path in &chosen.paths {
        append(&mut tar, directory, path, (limits.file, clean))?;
    }
    tar.into_inner()?.finish()?.into_inner()?.sync_all()?;
    Ok(chosen.stored)
}

/// A new file that only this user may read: it holds whatever the agent wrote.
fn private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

/// The files to store, decided before the first byte is written: the index comes first.
struct Chosen {
    index: Index,
    paths: Vec<PathBuf>,
    stored: Stored,
}

impl Chosen {
    fn new(directory: &Path, changes: &[Change], (limits, clean): (Limits, Clean<'_>)) -> Self {
        let mut chosen = Self {
            index: Index {
                changes: Vec::new(),
            },
            paths: Vec::new(),
            stored: Stored::default(),
        };
        for change in changes {
            let is_stored = chosen.has_room_for(directory, change, limits);
            if is_stored {
                chosen.stored.bytes += change.size.unwrap_or_default();
                chosen.paths.push(change.path.clone());
            } else if change.kind != ChangeKind::Deleted {
                chosen.stored.left_out.push(change.path.clone());
            }
            let path = cleaned(&change.path, clean);
            chosen
                .index
                .changes
                .push(Record::of(change, &path, is_stored));
        }
        chosen
    }

    fn has_room_for(&self, directory: &Path, change: &Change, limits: Limits) -> bool {
        let size = change.size.unwrap_or_default();
        let is_within = size <= limits.file
            && self.stored.bytes + size <= limits.total
            && self.paths.len() < limits.paths;
        let is_readable =
            || change.node != Node::File || open(&directory.join(&change.path)).is_ok();
        change.kind != ChangeKind::Deleted
            && change.node != Node::Other
            && is_within
            && is_readable()
    }
}

fn append(
    tar: &mut Builder<impl Write>,
    directory: &Path,
    path: &Path,
    (limit, clean): (u64, Clean<'_>),
) -> io::Result<()> {
    let source = directory.join(path);
    let metadata = fs::symlink_metadata(&source)?;
    let name = Path::new(FILES).join(cleaned(path, clean));
    let mut header = header(EntryType::Regular, 0);
    header.set_mode(metadata.mode() & 0o777);
    header.set_mtime(metadata.mtime().max(0) as u64);
    if metadata.is_symlink() {
        header.set_entry_type(EntryType::Symlink);
        let target = cleaned(&fs::read_link(&source)?, clean);
        tar.append_link(&mut header, name, target)
    } else if metadata.is_dir() {
        header.set_entry_type(EntryType::Directory);
        tar.append_data(&mut header, name, io::empty())
    } else {
        let mut content = Vec::new();
        open(&source)?.take(limit).read_to_end(&mut content)?;
        let content = clean(content);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, content.as_slice())
    }
}

/// Names are text from outside, too.
fn cleaned(path: &Path, clean: Clean<'_>) -> PathBuf {
    let bytes = clean(path.as_os_str().as_bytes().to_vec());
    std::ffi::OsString::from_vec(bytes).into()
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header
}

impl Record {
    fn of(change: &Change, path: &Path, is_stored: bool) -> Self {
        let path_bytes = path
            .to_str()
            .is_none()
            .then(|| path.as_os_str().as_bytes().to_vec());
        Self {
            path: path.to_string_lossy().into_owned(),
            path_bytes,
            kind: change.kind,
            node: change.node,
            size: change.size,
            is_stored,
        }
    }

    fn path(&self) -> PathBuf {
        match &self.path_bytes {
            Some(bytes) => std::ffi::OsString::from_vec(bytes.clone()).into(),
            None => (&self.path).into(),
        }
    }
}

/// A change as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChange {
    /// Relative to the workspace.
    pub path: PathBuf,
    /// The kind of change.
    pub kind: ChangeKind,
    /// Its present or former state.
    pub node: Node,
    /// The new content of a file. Absent when it is not stored or longer than was asked for.
    pub content: Option<Vec<u8>>,
}

/// Reads an archive without unpacking it. Files of more than `longest` bytes come without their content.
pub fn read_changes(archive: &Path, longest: u64) -> Result<Vec<StoredChange>> {
    let read_error = || Error::file("read", archive);
    let file = File::open(archive).map_err(read_error())?;
    let mut tar = Archive::new(zstd::Decoder::new(file).map_err(read_error())?);
    let mut changes: Vec<StoredChange> = Vec::new();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for (number, entry) in tar.entries().map_err(read_error())?.enumerate() {
        let mut entry = entry.map_err(read_error())?;
        if number == 0 {
            let index: Index = serde_json::from_reader((&mut entry).take(LONGEST_INDEX))
                .map_err(io::Error::other)
                .map_err(read_error())?;
            changes = index.changes.iter().map(StoredChange::of).collect();
            let numbered = changes.iter().enumerate();
            places = numbered
                .map(|(place, change)| (change.path.clone(), place))
                .collect();
            continue;
        }
        let path = entry.path().map_err(read_error())?.into_owned();
        let found = path
            .strip_prefix(FILES)
            .ok()
            .and_then(|path| changes.get_mut(*places.get(path)?));
        if let Some(change) = found.filter(|change| change.node == Node::File)
            && entry.size() <= longest
        {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(read_error())?;
            change.content = Some(content);
        }
    }
    Ok(changes)
}

impl StoredChange {
    fn of(record: &Record) -> Self {
        Self {
            path: record.path(),
            kind: record.kind,
            node: record.node,
            content: None,
        }
    }
}

impl Index {
    pub(super) fn deleted(&self) -> Vec<PathBuf> {
        self.paths(|record| record.kind == ChangeKind::Deleted)
    }

    pub(super) fn left_out(&self) -> Vec<PathBuf> {
        self.paths(|record| record.kind != ChangeKind::Deleted && !record.is_stored)
    }

    fn paths(&self, filter: impl Fn(&&Record) -> bool) -> Vec<PathBuf> {
        self.changes
            .iter()
            .filter(filter)
            .map(Record::path)
            .collect()
    }
}
