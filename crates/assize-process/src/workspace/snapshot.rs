//! The content of a directory at one moment, and its changes since.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::copy::is_kept_apart;
use super::look::{LeftOut, Look};
use crate::error::{Error, Result};

/// Every path below a directory with size, mode, times and a hash of its content.
#[derive(Debug, Clone)]
pub struct Snapshot {
    taken: SystemTime,
    entries: BTreeMap<PathBuf, Entry>,
}

/// One difference between a snapshot and the directory as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the directory. Chosen by the program: never join it to another directory unchecked.
    pub path: PathBuf,
    /// The kind of change.
    pub kind: ChangeKind,
    /// Its present state; the former one, if it was deleted.
    pub node: Node,
    /// Its size now, in bytes. Absent for what is not a file, and for the deleted.
    pub size: Option<u64>,
}

/// The changes in a directory, as far as it was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// The differences, by path.
    pub changes: Vec<Change>,
    /// Files that were not looked at.
    pub left_out: LeftOut,
}

/// The kind of change of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// Its content, kind or mode is another.
    Modified,
    /// It is no longer there.
    Deleted,
}

/// The type of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// A regular file.
    File,
    Directory,
    /// A symbolic link, not followed.
    Symlink,
    /// A socket, pipe or device.
    Other,
}

/// A path at the moment of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) node: Node,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) modified: (i64, i64),
    /// Set by the system on every change and by nothing else.
    pub(super) changed: (i64, i64),
    pub(super) inode: u64,
    /// Absent for directories, for what cannot be read, and for what need not be.
    pub(super) hash: Option<blake3::Hash>,
}

/// The treatment of files that a snapshot does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewFiles {
    /// They are read, because a later look will compare them.
    Hashed,
    /// Being new says enough.
    Unread,
}

impl Snapshot {
    /// Reads the whole directory. Unreadable files are recorded without content.
    pub fn of(directory: &Path) -> Result<Self> {
        Self::of_each(directory, |_, _| {})
    }

    /// The same; `visit` is called for every path in it.
    pub(super) fn of_each(directory: &Path, visit: impl Fn(&Path, &Metadata)) -> Result<Self> {
        let taken = SystemTime::now();
        let look = Look::default();
        let entries = walk(
            directory,
            Path::new(""),
            &look,
            |relative, path, metadata| {
                visit(relative, metadata);
                hash(path, metadata, &look)
            },
        )?;
        Ok(Self { taken, entries })
    }

    /// The snapshot of a directory that workspaces are copied from, without what is not copied.
    pub fn of_source(directory: &Path) -> Result<Self> {
        let mut snapshot = Self::of(directory)?;
        snapshot.entries.retain(|path, _| !is_kept_apart(path));
        Ok(snapshot)
    }

    /// The snapshot of a directory with nothing in it: everything there now counts as added.
    pub fn empty() -> Self {
        Self {
            taken: UNIX_EPOCH,
            entries: BTreeMap::new(),
        }
    }

    /// The same for directories with the same content and modes, whenever and wherever they were read.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (path, entry) in &self.entries {
            let path = path.as_os_str().as_bytes();
            hasher.update(&(path.len() as u64).to_le_bytes());
            hasher.update(path);
            hasher.update(&[entry.node as u8]);
            hasher.update(&entry.mode.to_le_bytes());
            let content = entry.hash.map_or([0; 32], |hash| *hash.as_bytes());
            hasher.update(&content);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when the directory was empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The changes in `directory` until now, by path. Only files that the system marks as touched are read again.
    pub fn changes(&self, directory: &Path) -> Result<Vec<Change>> {
        self.look(directory, &|| false).map(|looked| looked.changes)
    }

    /// The same with what was left out, because there is too much of it or because `stop` returned true.
    pub fn look(&self, directory: &Path, stop: &dyn Fn() -> bool) -> Result<Looked> {
        let look = Look::until(stop);
        let now = self.walk_again(directory, Path::new(""), NewFiles::Unread, &look)?;
        // Paths that were not found in time may still be there.
        let is_gone = |path: &&PathBuf| look.is_whole() && !now.contains_key(*path);
        let gone = self.entries.keys().filter(is_gone);
        let gone = gone.map(|path| (path, None));
        let now = now.iter().map(|(path, entry)| (path, Some(entry)));
        Ok(Looked {
            changes: self.changes_among(gone.chain(now)),
            left_out: look.left_out(),
        })
    }

    /// The changes among these paths, where `None` stands for one that is gone.
    pub(super) fn changes_among<'a>(
        &self,
        now: impl Iterator<Item = (&'a PathBuf, Option<&'a Entry>)>,
    ) -> Vec<Change> {
        let change =
            |(path, now): (&'a PathBuf, Option<&'a Entry>)| match (self.entries.get(path), now) {
                (Some(before), None) => Some(Change::of(path, before, ChangeKind::Deleted)),
                (None, Some(now)) => Some(Change::of(path, now, ChangeKind::Added)),
                (Some(before), Some(now)) if before.differs(now) => {
                    Some(Change::of(path, now, ChangeKind::Modified))
                }
                _ => None,
            };
        let mut changes: Vec<Change> = now.filter_map(change).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    /// The same content in another directory, which must be a copy: only inodes and times are read.
    pub(super) fn of_copy(&self, directory: &Path) -> Result<Self> {
        let taken = SystemTime::now();
        let look = Look::default();
        let entries = walk(
            directory,
            Path::new(""),
            &look,
            |relative, path, metadata| {
                let known = self.entries.get(relative);
                // Git writes down the inodes of the files it knows, so its index is another one in every copy.
                let known = known.filter(|_| !relative.ends_with(".git/index"));
                known.map_or_else(|| hash(path, metadata, &look), |entry| entry.hash)
            },
        )?;
        Ok(Self { taken, entries })
    }

    /// The directory as it is now. Only files that were touched since are read.
    pub(super) fn of_now(&self, directory: &Path) -> Result<Self> {
        let taken = SystemTime::now();
        let look = Look::default();
        let entries = self.walk_again(directory, Path::new(""), NewFiles::Hashed, &look)?;
        Ok(Self { taken, entries })
    }

    /// The snapshot after these paths were looked at again.
    pub(super) fn updated(&self, now: impl IntoIterator<Item = (PathBuf, Option<Entry>)>) -> Self {
        self.clone().into_updated(now)
    }

    /// As [`updated`](Self::updated), without a copy of it all.
    pub(super) fn into_updated(
        mut self,
        now: impl IntoIterator<Item = (PathBuf, Option<Entry>)>,
    ) -> Self {
        self.taken = SystemTime::now();
        for (path, entry) in now {
            match entry {
                Some(entry) => self.entries.insert(path, entry),
                None => self.entries.remove(&path),
            };
        }
        self
    }

    pub(super) fn entry(&self, path: &Path) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// A path and everything below it, in order.
    pub(super) fn below<'a>(
        &'a self,
        path: &'a Path,
    ) -> impl Iterator<Item = (&'a PathBuf, &'a Entry)> {
        let from = (std::ops::Bound::Included(path), std::ops::Bound::Unbounded);
        let entries = self.entries.range::<Path, _>(from);
        entries.take_while(move |(found, _)| found.starts_with(path))
    }

    /// One path as it is now. `None` if it is gone.
    pub(super) fn look_again(
        &self,
        relative: &Path,
        path: &Path,
        new_files: NewFiles,
        look: &Look<'_>,
    ) -> Option<Entry> {
        let metadata = fs::symlink_metadata(path).ok()?;
        let hash = self.hash_again(relative, path, &metadata, new_files, look);
        Some(Entry::new(&metadata, hash))
    }

    /// Everything below `below` in `directory` as it is now, by its path in `directory`.
    pub(super) fn walk_again(
        &self,
        directory: &Path,
        below: &Path,
        new_files: NewFiles,
        look: &Look<'_>,
    ) -> Result<BTreeMap<PathBuf, Entry>> {
        walk(directory, below, look, |relative, path, metadata| {
            self.hash_again(relative, path, metadata, new_files, look)
        })
    }

    fn hash_again(
        &self,
        relative: &Path,
        path: &Path,
        metadata: &Metadata,
        new_files: NewFiles,
        look: &Look<'_>,
    ) -> Option<blake3::Hash> {
        match self.entries.get(relative) {
            Some(entry) if self.is_untouched(entry, metadata) => entry.hash,
            None if new_files == NewFiles::Unread => None,
            _ => hash(path, metadata, look),
        }
    }

    /// A file changed in the same tick of the clock in which it was read could look untouched, so it does not count.
    pub(super) fn is_untouched(&self, entry: &Entry, metadata: &Metadata) -> bool {
        const TICK: Duration = Duration::from_millis(20);
        let (seconds, nanos) = entry.changed;
        let changed = UNIX_EPOCH + Duration::new(seconds.max(0) as u64, nanos as u32);
        let new = Entry::new(metadata, None);
        changed + TICK < self.taken
            && (entry.changed, entry.inode, entry.size) == (new.changed, new.inode, new.size)
    }
}

impl Change {
    fn of(path: &Path, entry: &Entry, kind: ChangeKind) -> Self {
        let has_size = entry.node == Node::File && kind != ChangeKind::Deleted;
        Self {
            path: path.to_owned(),
            kind,
            node: entry.node,
            size: has_size.then_some(entry.size),
        }
    }
}

impl Entry {
    pub(super) fn new(metadata: &Metadata, hash: Option<blake3::Hash>) -> Self {
        let kind = metadata.file_type();
        let node = match () {
            () if kind.is_file() => Node::File,
            () if kind.is_dir() => Node::Directory,
            () if kind.is_symlink() => Node::Symlink,
            () => Node::Other,
        };
        Self {
            node,
            size: metadata.len(),
            mode: metadata.mode() & 0o7777,
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            hash,
        }
    }

    /// Times alone make no difference, except where the content cannot be compared.
    fn differs(&self, now: &Self) -> bool {
        if (self.node, self.mode) != (now.node, now.mode) {
            return true;
        }
        match (self.hash, now.hash) {
            (Some(before), Some(now)) => before != now,
            _ if self.node == Node::File => (self.size, self.modified) != (now.size, now.modified),
            _ => false,
        }
    }
}

/// Visits everything below `below` in `root`; what vanishes or may not be entered meanwhile is passed over.
fn walk(
    root: &Path,
    below: &Path,
    look: &Look<'_>,
    hash: impl Fn(&Path, &Path, &Metadata) -> Option<blake3::Hash>,
) -> Result<BTreeMap<PathBuf, Entry>> {
    let mut entries = BTreeMap::new();
    let first = root.join(below);
    fs::read_dir(&first).map_err(Error::file("read", &first))?;
    let mut waiting = vec![first];
    while let Some(directory) = waiting.pop() {
        let found = fs::read_dir(&directory).inspect_err(|error| look.note_failure(error));
        for found in found.into_iter().flatten().flatten() {
            if !look.goes_on() {
                return Ok(entries);
            }
            let path = found.path();
            let metadata =
                fs::symlink_metadata(&path).inspect_err(|error| look.note_failure(error));
            let Ok(metadata) = metadata else {
                continue;
            };
            let Ok(relative) = path.strip_prefix(root) else {
                continue;
            };
            let hash = hash(relative, &path, &metadata);
            entries.insert(relative.to_owned(), Entry::new(&metadata, hash));
            if metadata.is_dir() {
                waiting.push(path);
            }
        }
    }
    Ok(entries)
}

fn hash(path: &Path, metadata: &Metadata, look: &Look<'_>) -> Option<blake3::Hash> {
    if metadata.is_file() {
        look.hash(path, metadata)
    } else if metadata.is_symlink() {
        let target = fs::read_link(path).ok()?;
        Some(blake3::hash(target.as_os_str().as_bytes()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn check(change: impl Fn(&Path), expected: &[(&str, ChangeKind, Node)]) {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path();
        fs::create_dir(directory.join("dir")).unwrap();
        fs::write(directory.join("dir/file"), "old").unwrap();
        symlink("dir", directory.join("link")).unwrap();
        let before = Snapshot::of(directory).unwrap();
        assert_eq!(before.len(), 3);
        change(directory);
        let changes = before.changes(directory).unwrap();
        let shown: Vec<_> = changes
            .iter()
            .map(|change| (change.path.to_str().unwrap(), change.kind, change.node))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn nothing_done_is_nothing_changed() {
        check(|_| {}, &[]);
    }

    #[test]
    fn a_touched_file_with_the_same_content_is_not_changed() {
        check(
            |directory| fs::write(directory.join("dir/file"), "old").unwrap(),
            &[],
        );
    }

    #[test]
    fn added_modified_and_deleted_are_told_apart() {
        let change = |directory: &Path| {
            fs::write(directory.join("dir/file"), "new").unwrap();
            fs::write(directory.join("new"), "").unwrap();
            fs::remove_file(directory.join("link")).unwrap();
        };
        let expected = [
            ("dir/file", ChangeKind::Modified, Node::File),
            ("link", ChangeKind::Deleted, Node::Symlink),
            ("new", ChangeKind::Added, Node::File),
        ];
        check(change, &expected);
    }

    #[test]
    fn same_size_and_forged_time_do_not_hide_a_change() {
        let change = |directory: &Path| {
            let path = directory.join("dir/file");
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            fs::write(&path, "new").unwrap();
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(modified)
                .unwrap();
        };
        check(change, &[("dir/file", ChangeKind::Modified, Node::File)]);
    }

    #[test]
    fn mode_target_and_kind_count() {
        let change = |directory: &Path| {
            fs::set_permissions(
                directory.join("dir/file"),
                fs::Permissions::from_mode(0o755),
            )
            .unwrap();
            fs::remove_file(directory.join("link")).unwrap();
            symlink("elsewhere", directory.join("link")).unwrap();
        };
        let expected = [
            ("dir/file", ChangeKind::Modified, Node::File),
            ("link", ChangeKind::Modified, Node::Symlink),
        ];
        check(change, &expected);
        let change = |directory: &Path| {
            fs::remove_file(directory.join("link")).unwrap();
            fs::create_dir(directory.join("link")).unwrap();
        };
        check(change, &[("link", ChangeKind::Modified, Node::Directory)]);
    }
}
