//! Directories of sessions for what is no work: homes, temporary files, prompts. They lie beside the workspaces, hidden from
//! other sessions, and what a killed process left is removed by the next.

use std::fs::{self, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Home, Workspaces, attributes, default_root, remove::empty_tree, remove_place};
use crate::error::{Error, Result};

/// A fresh directory that only this user can enter. Removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    id: (u64, u64),
    may_be_reused: bool,
    room: ScratchRoom,
}

/// The place of all scratch directories of this process. It goes with the last of them, so whoever makes many one after
/// another holds it.
#[derive(Debug, Clone)]
pub struct ScratchRoom(Arc<Room>);

#[derive(Debug)]
struct Room {
    home: Arc<Home>,
    /// Emptied ones. Some filesystems (ext4) search long for room for a new directory when many were just removed.
    emptied: Mutex<Vec<Emptied>>,
}

/// A directory that nothing is in.
#[derive(Debug)]
struct Emptied {
    path: PathBuf,
    id: (u64, u64),
}

/// More do not wait for their next session.
const MOST_EMPTIED: usize = 64;

/// True once a process was not brought to an end: it may still be at work in a directory of its session.
static IS_HAUNTED: AtomicBool = AtomicBool::new(false);

/// Keeps directories of sessions from serving again.
pub(crate) fn note_survivor() {
    IS_HAUNTED.store(true, Ordering::Relaxed);
}

static ROOM: Mutex<Weak<Room>> = Mutex::new(Weak::new());

impl ScratchRoom {
    /// Makes the place, or finds the one there is.
    pub fn open() -> Result<Self> {
        let mut room = ROOM.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = room.upgrade() {
            return Ok(Self(room));
        }
        let made = Arc::new(Room {
            home: Workspaces::open(&default_root()?)?.home,
            emptied: Mutex::default(),
        });
        *room = Arc::downgrade(&made);
        Ok(Self(made))
    }
}

impl Room {
    fn emptied(&self) -> MutexGuard<'_, Vec<Emptied>> {
        self.emptied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory under a name that no session has seen.
    fn directory(&self) -> Result<(PathBuf, (u64, u64))> {
        let path = self.home.reserve("session-");
        let emptied = self.emptied().pop();
        if let Some(Emptied { path: old, id }) = emptied
            && fs::rename(&old, &path).is_ok()
        {
            #[cfg(target_os = "linux")]
            crate::fence::note_renamed(&old, &path);
            return Ok((path, id));
        }
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(Error::file("create", &path))?;
        let metadata = fs::symlink_metadata(&path).map_err(Error::file("read", &path))?;
        Ok((path, (metadata.dev(), metadata.ino())))
    }

    /// Takes a directory back if it is as it was made.
    fn take_back(&self, emptied: Emptied) -> bool {
        let is_haunted = IS_HAUNTED.load(Ordering::Relaxed);
        let mut waiting = self.emptied();
        let takes = !is_haunted && waiting.len() < MOST_EMPTIED && emptied.is_as_made();
        if takes {
            waiting.push(emptied);
        }
        takes
    }
}

impl Emptied {
    /// Removes what is in it. What is left is the directory that was made, with the rights that it had.
    fn is_as_made(&self) -> bool {
        let is_same = |metadata: Metadata| {
            metadata.is_dir()
                && (metadata.dev(), metadata.ino()) == self.id
                && metadata.mode() & 0o7777 == 0o700
                && metadata.uid() == nix::unistd::geteuid().as_raw()
        };
        fs::symlink_metadata(&self.path).is_ok_and(is_same)
            && empty_tree(&self.path).is_ok()
            && attributes::has_none(&self.path)
    }
}

impl Scratch {
    /// Makes one.
    pub fn new() -> Result<Self> {
        let room = ScratchRoom::open()?;
        let (path, id) = room.0.directory()?;
        Ok(Self {
            path,
            id,
            may_be_reused: false,
            room,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the directory serve another session, emptied and under another name. Only for what programs behind a guard use: all they
    /// start has ended before, and nothing else was handed the directory.
    pub fn allow_reuse(&mut self) {
        self.may_be_reused = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let emptied = || Emptied {
            path: self.path.clone(),
            id: self.id,
        };
        if !(self.may_be_reused && self.room.0.take_back(emptied())) {
            // Files that cannot be removed now are removed with the room.
            let _ = remove_place(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_directories_are_private_and_end_with_their_values() {
        let (one, other) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        assert_ne!(one.path(), other.path());
        assert_eq!(one.path().parent(), other.path().parent());
        let path = one.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }

    /// A scratch directory after a session that did `work`, and the next one.
    fn two_sessions(work: impl Fn(&Path)) -> (PathBuf, Scratch) {
        let _room = ScratchRoom::open().unwrap();
        let mut first = Scratch::new().unwrap();
        first.allow_reuse();
        let path = first.path().to_owned();
        work(&path);
        drop(first);
        (path, Scratch::new().unwrap())
    }

    #[test]
    fn a_directory_that_serves_again_is_empty_private_and_has_a_new_name() {
        use std::os::unix::fs::PermissionsExt;

        for work in [
            |path: &Path| {
                fs::create_dir_all(path.join("home/.cache")).unwrap();
                fs::write(path.join("home/.cache/file"), "x").unwrap();
            },
            |path: &Path| {
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            },
            |path: &Path| {
                fs::remove_dir(path).unwrap();
                fs::create_dir(path).unwrap();
                fs::write(path.join("file"), "x").unwrap();
            },
            |path: &Path| {
                fs::remove_dir(path).unwrap();
                std::os::unix::fs::symlink("/", path).unwrap();
            },
        ] {
            let (old, next) = two_sessions(work);
            assert_ne!(next.path(), old);
            assert!(fs::symlink_metadata(&old).is_err() || old.is_dir());
            assert_eq!(fs::read_dir(next.path()).unwrap().count(), 0);
            let mode = fs::symlink_metadata(next.path()).unwrap().mode();
            assert_eq!(mode & 0o7777, 0o700);
        }
        assert!(Path::new("/etc").exists());
    }
}
