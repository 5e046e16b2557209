//! A copy that serves one attempt after another: what an attempt changed is found by inode, size and times and brought
//! back from the layer. After anything doubtful the copy is given up, and the next attempt gets a fresh one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::copy::{Content, Copier, copy_mode_and_times, copy_rights};
use super::layer::Layer;
use super::look::Look;
use super::snapshot::{Entry, NewFiles, Node};
use super::{Snapshot, WORKSPACE, remove_place, remove_tree};
use crate::error::{Error, Result};

/// A copy of a layer.
#[derive(Debug)]
pub(super) struct Slot {
    /// The directory around it.
    pub(super) place: PathBuf,
    /// Its content before any change.
    pub(super) start: Arc<Snapshot>,
    /// Files were brought back since git last looked at them.
    pub(super) is_stale: bool,
    root: (u64, u64),
}

impl Slot {
    pub(super) fn new(place: PathBuf, start: Arc<Snapshot>) -> Result<Self> {
        let root = identity(&place.join(WORKSPACE))?;
        Ok(Self {
            place,
            start,
            is_stale: true,
            root,
        })
    }

    /// Gives it a name that no attempt has seen: agents remember places. The directory around it is a new one, because
    /// the kernel remembers who may change the old one.
    pub(super) fn move_to(&mut self, place: &Path) -> Result<()> {
        fs::create_dir(place).map_err(Error::file("create", place))?;
        let (from, to) = (self.place.join(WORKSPACE), place.join(WORKSPACE));
        let old = std::mem::replace(&mut self.place, place.to_owned());
        match fs::rename(&from, to) {
            // A directory that may not be written keeps its parent.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                fs::rename(&old, place).map_err(Error::file("rename", &old))
            }
            Err(error) => Err(Error::file("rename", &from)(error)),
            Ok(()) => remove_place(&old),
        }
    }
}

/// Brings a copy back to its beginning. An error means that it must not serve again.
pub(super) fn bring_back(mut slot: Slot, layer: &Layer) -> Result<Slot> {
    let path = slot.place.join(WORKSPACE);
    let mut restoring = Restoring {
        layer,
        path: &path,
        start: Arc::unwrap_or_clone(std::mem::replace(
            &mut slot.start,
            Arc::new(Snapshot::empty()),
        )),
        directories: BTreeSet::new(),
        copier: Copier::of_whole(Content::Copied),
    };
    if identity(&path)? != slot.root || has_siblings(&slot.place)? {
        return Err(doubtful(&path, "the directory was replaced"));
    }
    let found = restoring.compare()?;
    restoring.directories.insert(PathBuf::new());
    restoring
        .directories
        .extend(found.directories.iter().cloned());
    slot.is_stale |= found.is_anything();
    restoring.remove(&found.extra)?;
    restoring.redo(&found.other)?;
    restoring.finish_directories()?;
    slot.start = Arc::new(restoring.start_again(&found));
    Ok(slot)
}

/// Paths that are not as they were.
struct Found {
    /// Not there at the beginning.
    extra: Vec<PathBuf>,
    /// Changed or missing files, links and directories.
    other: Vec<PathBuf>,
    /// Directories in which something was added, removed or renamed, or that were changed themselves.
    directories: Vec<PathBuf>,
}

impl Found {
    fn is_anything(&self) -> bool {
        !self.extra.is_empty() || !self.other.is_empty() || !self.directories.is_empty()
    }
}

struct Restoring<'a> {
    layer: &'a Layer,
    path: &'a Path,
    start: Snapshot,
    /// Those whose mode and times are to be set again.
    directories: BTreeSet<PathBuf>,
    copier: Copier,
}

impl Restoring<'_> {
    fn compare(&self) -> Result<Found> {
        let look = Look::default();
        let now: BTreeMap<PathBuf, Entry> =
            self.start
                .walk_again(self.path, Path::new(""), NewFiles::Unread, &look)?;
        if !look.is_whole() {
            return Err(doubtful(self.path, "there is too much in it"));
        }
        let mut found = Found {
            extra: Vec::new(),
            other: Vec::new(),
            directories: Vec::new(),
        };
        for (path, entry) in &now {
            match self.start.entry(path) {
                None => found.extra.push(path.clone()),
                Some(before) if before == entry => {}
                Some(before) if (before.node, entry.node) == (Node::Directory, Node::Directory) => {
                    found.directories.push(path.clone());
                }
                Some(_) => found.other.push(path.clone()),
            }
        }
        let all = self.start.below(Path::new(""));
        let missing = all.filter(|(path, _)| !now.contains_key(*path));
        found.other.extend(missing.map(|(path, _)| path.clone()));
        found.other.sort();
        let most = self.start.len() / 2 + 100;
        match found.extra.len() + found.other.len() > most.max(10_000) {
            true => Err(doubtful(self.path, "a fresh copy costs less")),
            false => Ok(found),
        }
    }

    fn remove(&mut self, extra: &[PathBuf]) -> Result<()> {
        let mut removed: Option<&Path> = None;
        for path in extra {
            if removed.is_some_and(|removed| path.starts_with(removed)) {
                continue;
            }
            remove(&self.path.join(path))?;
            self.touch_parent(path);
            removed = Some(path);
        }
        Ok(())
    }

    /// Parents come before what is in them.
    fn redo(&mut self, paths: &[PathBuf]) -> Result<()> {
        for path in paths {
            let (source, target) = (self.layer.path().join(path), self.path.join(path));
            remove(&target)?;
            self.touch_parent(path);
            let metadata = fs::symlink_metadata(&source).map_err(Error::file("read", &source))?;
            let original = self.layer.snapshot();
            let entry = original
                .entry(path)
                .filter(|entry| Entry::new(&metadata, entry.hash) == **entry);
            match entry.map(|entry| entry.node) {
                Some(Node::Directory) => {
                    fs::create_dir(&target).map_err(Error::file("create", &target))?;
                    self.directories.insert(path.clone());
                }
                Some(Node::File | Node::Symlink) => {
                    self.copier.copy_node(&source, &target, path)?;
                }
                _ => return Err(doubtful(&source, "the layer was changed")),
            }
        }
        Ok(())
    }

    fn touch_parent(&mut self, path: &Path) {
        if let Some(parent) = path.parent() {
            self.directories.insert(parent.to_owned());
        }
    }

    fn finish_directories(&mut self) -> Result<()> {
        // Children before parents, for the times.
        for path in self.directories.iter().rev() {
            let (source, target) = (self.layer.path().join(path), self.path.join(path));
            let metadata = fs::metadata(&source).map_err(Error::file("read", &source))?;
            copy_rights(&source, &metadata, &target)?;
            copy_mode_and_times(&metadata, &target)?;
        }
        Ok(())
    }

    /// The snapshot with the new inodes and times of what was brought back.
    fn start_again(self, found: &Found) -> Snapshot {
        let looked = found.other.iter().chain(&self.directories);
        let looked = looked.filter(|path| !path.as_os_str().is_empty());
        let original = self.layer.snapshot();
        let entries: Vec<_> = looked
            .map(|path| {
                let metadata = fs::symlink_metadata(self.path.join(path)).ok();
                let hash = original.entry(path).and_then(|entry| entry.hash);
                let entry = metadata.map(|metadata| Entry::new(&metadata, hash));
                (path.clone(), entry)
            })
            .collect();
        self.start.into_updated(entries)
    }
}

fn identity(path: &Path) -> Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).map_err(Error::file("read", path))?;
    Ok((metadata.dev(), metadata.ino()))
}

/// An agent may have put something beside its workspace.
fn has_siblings(place: &Path) -> Result<bool> {
    let entries = fs::read_dir(place).map_err(Error::file("read", place))?;
    Ok(entries.count() != 1)
}

fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => return remove_tree(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(Error::file("remove", path))
}

fn doubtful(path: &Path, why: &'static str) -> Error {
    Error::file("reuse", path)(io::Error::other(why))
}
